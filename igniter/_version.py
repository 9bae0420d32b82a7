"""The version, in a file of its own: reading it imports nothing."""

import os
from collections.abc import Iterator
from functools import cache

__version__ = "0.1.0"

_SOURCES = (".py", ".txt", ".json")
"""The endings of files that decide about compiled code: data files, too (ONNX Runtime's kernels, measured points)."""


@cache
def build_id() -> str:
    """Returns the version and a fingerprint of the package's files, as a key for caches of compiled code.

    The version alone does not suffice: in a source tree the code changes and the version stays.
    """
    import hashlib

    digest = hashlib.sha256(__version__.encode())
    for line in sorted(_described(os.path.dirname(os.path.abspath(__file__)), "")):
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def _described(folder: str, name: str) -> Iterator[str]:
    """Yields the name, the size and the time of each source below a folder. `scandir` instead of paths: every start of
    a compile does this."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _described(entry.path, f"{name}{entry.name}/")
            elif entry.name.endswith(_SOURCES):
                status = entry.stat()
                yield f"{name}{entry.name} {status.st_size} {status.st_mtime_ns}\n"
