"""The run time as C programs of their own, under the sanitizers of the machine's C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from igniter.backends.c_runtime.build import SOURCES

HERE = Path(__file__).parent
OPS = ("ops", "made", "cpus", "infer", "messages", "register", "cpu", "sanitized")
FLAGS = (
    "-std=c11",
    "-g",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
    "-fno-sanitize-recover=all",
    "-pthread",
)
TEAM = (SOURCES / "team.c", SOURCES / "load.c")
RUNS = ("1 8 20 100", "2 4 100 50", "3 8 100 1000", "5 3 50 0")
"""Threads, runs of the pool's task, programs, looks."""
LATE = "2 2 40 1000000000000 late"
"""A helper ends each first job, long after the leader has ended its own tasks."""


def build(
    compiler: list[str], sanitizers: str, folder: Path, driver: str = "team_driver.c", units: Sequence[Path] = TEAM
) -> Path:
    """Returns the driver; skips the test where the compiler lacks the sanitizer's library."""
    made = folder / "driver"
    command = [*compiler, *FLAGS, f"-fsanitize={sanitizers}", f"-I{SOURCES}", "-o", str(made), str(HERE / driver)]
    command += map(str, units)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    if done.returncode and "cannot find" in done.stderr:
        pytest.skip(f"{compiler[0]} has no library for -fsanitize={sanitizers}")
    assert done.returncode == 0, done.stderr
    return made


def run(driver: Path, arguments: str | Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a driver up to its end or the first race: a list that races have broken may be a ring."""
    given = arguments.split() if isinstance(arguments, str) else arguments
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    return subprocess.run([str(driver), *given], capture_output=True, text=True, check=False, timeout=120, env=env)


def compiler() -> list[str]:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("no C compiler on the path; the zig variant is marked `full`")
    return [found]


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_the_team_is_sound(sanitizers: str, tmp_path: Path) -> None:
    driver = build(compiler(), sanitizers, tmp_path)
    for arguments in (*RUNS, LATE):
        done = run(driver, arguments)
        assert (done.returncode, done.stdout) == (0, "ok\n"), f"{arguments}: {done.stdout}{done.stderr}"


def test_a_race_is_found(tmp_path: Path) -> None:
    """The leader reads what tasks wrote without an acquire: the thread sanitizer sees it."""
    text = (SOURCES / "team.c").read_text()
    acquire = "while (__atomic_load_n(&team->finished, __ATOMIC_ACQUIRE)"
    assert text.count(acquire) == 1
    team = tmp_path / "team.c"
    team.write_text(text.replace(acquire, acquire.replace("ACQUIRE", "RELAXED")))
    driver = build(compiler(), "thread", tmp_path, units=[team, *TEAM[1:]])
    # A helper ends the last task, also on a busy machine: the leader's own tasks then acquire nothing from it.
    assert "data race" in run(driver, LATE).stderr


@pytest.mark.slow
def test_ops_are_sound(tmp_path: Path) -> None:
    """In an ONNX Runtime of its own, whose every call fails once: no access is outside, and no object is lost."""
    units = [SOURCES / f"{name}.c" for name in OPS]
    driver = build(compiler(), "address,undefined", tmp_path, "ops_driver.c", units)
    for arguments in ("", *map(str, range(1, 7))):
        done = run(driver, arguments)
        assert (done.returncode, done.stdout) == (0, "ok\n"), f"{arguments}: {done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_computed_constants_are_sound(sanitizers: str, tmp_path: Path) -> None:
    """Sessions of several threads share them, and a failed call or a lack of memory loses nothing."""
    units = [SOURCES / f"{name}.c" for name in ("ops", "made", "cpus", "messages")]
    driver = build(compiler(), sanitizers, tmp_path, "made_driver.c", units)
    done = run(driver, "4 300")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.slow
def test_a_block_without_a_lock_is_found(tmp_path: Path) -> None:
    """Without the lock of the list, the thread sanitizer sees a race."""
    text = (SOURCES / "made.c").read_text()
    wait = "while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))"
    assert text.count(wait) == 1
    made = tmp_path / "made.c"
    made.write_text(text.replace(wait, "while (__atomic_exchange_n(&lock, 0, __ATOMIC_RELAXED))"))
    units = [made, *(SOURCES / f"{name}.c" for name in ("ops", "cpus", "messages"))]
    driver = build(compiler(), "thread", tmp_path, "made_driver.c", units)
    assert "data race" in run(driver, "4 300").stderr


@pytest.mark.full
@pytest.mark.parametrize("sanitizers", ["undefined", "thread"])
def test_the_team_is_sound_as_zig_compiles_it(sanitizers: str, tmp_path: Path) -> None:
    """The first run compiles zig's sanitizers for a minute or two. It has none for addresses."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is missing")
    driver = build([sys.executable, "-m", "ziglang", "cc"], sanitizers, tmp_path)
    done = run(driver, "3 8 300 1000")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
