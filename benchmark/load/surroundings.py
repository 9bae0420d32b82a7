"""Busy neighbours, and control groups with a quota of CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD = 100_000
"""Of a quota, in microseconds."""


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Runs `count` processes that never wait."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


class NoGroup(Exception):
    """Raised with the reason if no control group can be made."""


class Group:
    """A control group below this process's own, with a quota of CPUs."""

    def __init__(self, cpus: float):
        parent, version = _own_group()
        self._folder = parent / f"igniter-load-{os.getpid()}"
        try:
            if version == 2:
                (parent / "cgroup.subtree_control").write_text("+cpu")
            self._folder.mkdir()
            if version == 2:
                (self._folder / "cpu.max").write_text(f"{round(cpus * PERIOD)} {PERIOD}")
            else:
                (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD))
                (self._folder / "cpu.cfs_quota_us").write_text(str(round(cpus * PERIOD)))
        except OSError as error:
            self.remove()
            raise NoGroup(f"no control group can be made in {parent}: {error.strerror}") from error

    def add(self, process: int) -> None:
        """Moves a process into the group."""
        (self._folder / "cgroup.procs").write_text(str(process))

    def remove(self) -> None:
        """Removes the group; its processes have ended."""
        if self._folder.is_dir():
            self._folder.rmdir()


def _own_group() -> tuple[Path, int]:
    """Returns the folder of this process's group for CPUs, and the version of its hierarchy."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError as error:
        raise NoGroup("this system has no control groups") from error
    named = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
    if "cpu" in named:
        return _mounted(Path("/sys/fs/cgroup/cpu"), named["cpu"]), 1
    return _mounted(Path("/sys/fs/cgroup"), named.get("", "/")), 2


def _mounted(root: Path, path: str) -> Path:
    """Returns the group's folder; in a container the path may be the host's."""
    folder = root / path.lstrip("/")
    return folder if folder.is_dir() else root
