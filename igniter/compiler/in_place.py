"""A result whose files are in their folder already: only the report is written.

The same compile again, into the same folder, neither copies nor reads the weights: the cache has notes about files by
the system's metadata (`igniter.runtime.digests.holds_entry`). The folder must have exactly the files of the result; any
doubt, and it is written as a new one.

All accesses go through one open folder: if another process replaces it meanwhile, nothing of this result ends up in the
other's folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from igniter.compiler.artifact import MODEL, REPORT, Artifact, read_report, report_text
from igniter.runtime.cache import Cache
from igniter.runtime.digests import holds_entry
from igniter.runtime.files import write_whole

OPENED = "/proc/self/fd"
"""The folder of open files on Linux: a path through it stays in the same folder, whatever replaces that. On a system
without it, results are always copied."""


def in_place(
    described: dict[str, Any],
    parts: Mapping[str, str],
    target: Path,
    cache: Cache,
    finish: Callable[[Artifact], None],
) -> Artifact | None:
    """Returns the compiled model in the folder `target`, with the report `described`; `None` if the folder has other
    files of Igniter's than a result with `parts`, the keys of its files by name.

    `finish` adds to the report before it is written.
    """
    folder = Path(os.path.abspath(target))
    if not os.path.isdir(OPENED) or folder.is_symlink():
        return None
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        held = Path(OPENED, str(opened))
        names = sorted([REPORT, *parts])
        earlier = read_report(held) or {}
        if earlier.get("files") != names or earlier.get("libraries") != described["libraries"]:
            return None
        if not all(holds_entry(held / name, key, cache) for name, key in parts.items()):
            return None
        artifact = Artifact(folder, {**described, "files": names})
        finish(artifact)
        write_whole(held / REPORT, report_text(artifact.report))
        # A tool such as `make` sees that the result is newer than the model.
        os.utime(held / MODEL)
        is_there = os.path.samestat(os.fstat(opened), os.stat(folder))
        return artifact if is_there else None
    except OSError:
        # A file is missing, or cannot be read or written: writing the whole folder tells.
        return None
    finally:
        os.close(opened)
