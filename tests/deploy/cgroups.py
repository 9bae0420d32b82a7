"""Control groups with limits, as a container has them: version 1 or 2, where this process may make them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path("/sys/fs/cgroup")
PERIOD = 100_000


@dataclass
class Limits:
    """The groups of one test. `before` is a command that puts the program behind it into them."""

    folders: list[Path] = field(default_factory=list[Path])

    @property
    def before(self) -> list[str]:
        joins = "; ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self.folders)
        return ["sh", "-ec", f'{joins}; exec "$@"', "sh"]

    def stat(self, name: str) -> dict[str, int]:
        """Returns the fields of a statistics file of the first group that has it."""
        text = next(folder / name for folder in self.folders if (folder / name).exists()).read_text()
        return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


@contextmanager
def limited(cpus: float | None = None, memory: int | None = None) -> Iterator[Limits]:
    """Makes groups with at most `cpus` processors' time and `memory` bytes. Skips where they cannot be made."""
    version2 = (ROOT / "cgroup.controllers").exists()
    settings: list[tuple[str, dict[str, str]]] = []
    if cpus is not None:
        quota = str(int(cpus * PERIOD))
        two, one = {"cpu.max": f"{quota} {PERIOD}"}, {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": quota}
        settings.append(("cpu", two if version2 else one))
    if memory is not None:
        settings.append(("memory", {"memory.max" if version2 else "memory.limit_in_bytes": str(memory)}))
    with ExitStack() as stack:
        limits = Limits()
        for controller, files in settings:
            folder = (ROOT if version2 else ROOT / controller) / f"igniter-{os.getpid()}-{controller}"
            try:
                folder.mkdir()
                stack.callback(_remove, folder)
                for name, value in files.items():
                    (folder / name).write_text(value)
            except OSError as error:
                pytest.skip(f"no control group with a limit of {controller}: {error}")
            limits.folders.append(folder)
        if version2 and len(settings) > 1:
            pytest.skip("version 2 has one group for all limits of a process; ask for one limit")
        yield limits


def _remove(folder: Path) -> None:
    # A group that still has a process stays, without harm.
    with suppress(OSError):
        folder.rmdir()
