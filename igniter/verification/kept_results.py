"""The results of runs of the original, kept in files: for a verification in another process."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MOST_BYTES = 512 << 20
"""The limit of all results together: they are files in the folder of temporary ones."""
PLAIN = "biuf"
"""The kinds of arrays that are kept."""


class KeptResults:
    """The results in a folder: a file for each run, named by the kind of its session and by its inputs.

    With `keeps`, results are added, and none is taken. Otherwise each result is taken once.
    """

    def __init__(self, folder: Path, *, keeps: bool = False):
        self.folder = folder
        self.keeps = keeps
        self._count: Counter[str] = Counter()
        self._bytes = 0

    def keep(self, kind: str, feed: Mapping[str, Any], outputs: Sequence[Any]) -> None:
        """Writes the outputs of a run, unless they are of unusual types or too large."""
        name = _name(kind, feed) if self.keeps else None
        if name is None or not all(map(_is_plain, outputs)):
            return
        self._bytes += sum(value.nbytes for value in outputs)
        if self._bytes > MOST_BYTES:
            return
        written = self.folder / "incomplete"
        with written.open("wb") as file:
            for value in outputs:
                np.save(file, value, allow_pickle=False)
        # A result is there as a whole, or not at all.
        written.rename(self._path(name))
        self._count[name] += 1

    def take(self, kind: str, feed: Mapping[str, Any], count: int) -> list[Any] | None:
        """Returns the `count` outputs of a run that was not taken before; `None` without one."""
        name = None if self.keeps else _name(kind, feed)
        if name is None or not self._path(name).exists():
            return None
        path = self._path(name)
        self._count[name] += 1
        with path.open("rb") as file:
            found: list[Any] = [np.load(file, allow_pickle=False) for _ in range(count)]
        path.unlink()
        return found

    def _path(self, name: str) -> Path:
        """Returns the file of the next run with this name."""
        return self.folder / f"{name}.{self._count[name]}"


def _name(kind: str, feed: Mapping[str, Any]) -> str | None:
    """Returns the name of runs on these inputs; `None` for inputs of unusual types."""
    state = hashlib.blake2b(kind.encode(), digest_size=20)
    for name, value in sorted(feed.items()):
        if not _is_plain(value):
            return None
        state.update(f" {name} {value.dtype.str} {value.shape} ".encode())
        state.update(value.tobytes())
    return state.hexdigest()


def _is_plain(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape") and value.dtype.kind in PLAIN
