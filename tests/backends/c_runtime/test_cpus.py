"""The number of CPUs that a process may use, and the account of a team, as C programs of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from igniter.backends.c_runtime.build import SOURCES

from .test_sanitized import build, compiler, run

GROUPS = "/proc/self/cgroup="


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    return build(compiler(), "address,undefined", folder, "groups_driver.c", [SOURCES / "cpus.c"])


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(compiler(), "address,undefined", tmp_path_factory.mktemp("load"), "load_driver.c", ())


def quota(groups: Path, *files: str) -> int:
    done = run(groups, files)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), -1),
        ((f"{GROUPS}0::/a/b\n",), -1),
        ((f"{GROUPS}0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max=max 100000\n"), -1),
        ((f"{GROUPS}0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max=200000 100000\n"), 2),
        # A part of a CPU is one that threads can use.
        ((f"{GROUPS}0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max=150000 100000\n"), 2),
        ((f"{GROUPS}0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max=1000 100000\n"), 1),
        # The limit of a group holds for those within it.
        (
            (
                f"{GROUPS}0::/a/b\n",
                "/sys/fs/cgroup/a/b/cpu.max=400000 100000\n",
                "/sys/fs/cgroup/a/cpu.max=300000 100000\n",
            ),
            3,
        ),
        # In a container the process's group is the root, or the host's path that is not mounted.
        ((f"{GROUPS}0::/\n", "/sys/fs/cgroup/cpu.max=100000 50000\n"), 2),
        ((f"{GROUPS}0::/kubepods/x/y\n", "/sys/fs/cgroup/cpu.max=100000 50000\n"), 2),
        # Version 1 has a hierarchy for each controller.
        (
            (
                f"{GROUPS}11:memory:/m\n4:cpu,cpuacct:/a\n1:name=systemd:/s\n0::/\n",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us=250000\n",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us=100000\n",
            ),
            3,
        ),
        (
            (
                f"{GROUPS}3:cpuset:/a\n2:cpuacct,cpu:/a",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us=-1\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us=100000\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us=100000\n",
            ),
            1,
        ),
        # A controller whose name only begins like it.
        ((f"{GROUPS}3:cpuset:/a\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us=100000\n"), -1),
        # Files that are cut, empty or no such tables.
        ((GROUPS,), -1),
        ((f"{GROUPS}\n\nnothing here\n:\n::\n0::/a", "/sys/fs/cgroup/a/cpu.max=100000 100000"), 1),
        ((f"{GROUPS}0::/a\n", "/sys/fs/cgroup/a/cpu.max=100000"), -1),
        ((f"{GROUPS}0::/a\n", "/sys/fs/cgroup/a/cpu.max=100000 0\n"), -1),
        ((f"{GROUPS}0::/{'a' * 600}\n", "/sys/fs/cgroup/cpu.max=100000 100000\n"), 1),
        ((f"{GROUPS}0::/a\n", f"/sys/fs/cgroup/a/cpu.max={'9' * 40} 1\n"), 10**18 - 1),
    ],
)
def test_quotas_of_control_groups(groups: Path, files: tuple[str, ...], expected: int) -> None:
    assert quota(groups, *files) == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks on this system")
def test_masks_of_threads(tmp_path: Path) -> None:
    driver = build(compiler(), "address,undefined", tmp_path, "cpus_driver.c", [SOURCES / "cpus.c"])
    free = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(free)})
        limits = run(driver, "18").stdout.split("quota")[0].split()
    finally:
        os.sched_setaffinity(0, free)
    # The first run of every sixteen is without the masks, so that other threads can show theirs.
    assert limits[1:16] == ["1"] * 15
    assert limits[0] == limits[16]
    assert limits[17] == "1"


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        # The helper did half of the work, and the leader waited for a moment or not at all.
        ("100:5:10:20 100:5:10:0", "kept kept"),
        # It held a task for as long as ten take: the team is dismissed, and the next run is alone.
        ("100:9:10:1000 100:5:10:0 100:5:10:0 100:5:10:0", "lost! alone kept kept"),
        # The number of runs alone doubles with each loss and halves with each gain.
        ("100:9:10:1000 1:1:1:0 100:9:10:1000 1:1:1:0 1:1:1:0 100:9:10:1000", "lost! alone lost! alone alone lost!"),
        # A wait that is small beside the run dismisses nobody.
        ("100:99:100:200", "kept"),
        # A leader that was away and came back to a job whose tasks have all ended.
        ("100:0:10:0", "kept"),
        # A job without tasks.
        ("0:0:0:0", "kept"),
    ],
)
def test_a_team_that_costs_more_than_it_saves(load: Path, runs: str, said: str) -> None:
    done = run(load, runs)
    assert (done.returncode, done.stdout.split()) == (0, said.split()), done.stderr


def test_runs_alone_are_bounded(load: Path) -> None:
    said = run(load, " ".join(["100:9:10:1000"] * 400)).stdout.split()
    alone = "".join("." if word == "alone" else "|" for word in said).split("|")
    assert [len(part) for part in alone[1:8]] == [1, 2, 4, 8, 16, 32, 32]
