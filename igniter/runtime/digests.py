"""Hashes of files, each file read once: a file unchanged since it was hashed is identified by the system's metadata
(device, inode, size, times)."""

from __future__ import annotations

import hashlib
import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from igniter.errors import IgniterError
from igniter.runtime.cache import cache_key

if TYPE_CHECKING:
    from os import PathLike

    from igniter.runtime.cache import Cache

SETTLED = 200_000_000
"""The age in nanoseconds from which a file's times are reliable: two quick changes can have equal times."""


def file_digest(path: str | PathLike[str], cache: Cache | None = None) -> str:
    """Returns the SHA-256 of a file in hexadecimal; `cache` shares it with other processes. Raises `IgniterError` if
    the file cannot be read."""
    try:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _remembered(os.path.abspath(path), identity, cache)
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error


def changed_since(path: str | PathLike[str], moment: int) -> bool:
    """True if a file may have changed after `moment` (nanoseconds of the clock), or is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return True
    return max(status.st_mtime_ns, status.st_ctime_ns) >= moment - SETTLED


def _remembered(path: str, identity: tuple[int, ...], cache: Cache | None) -> str:
    if cache is None or max(identity[3:]) > time.time_ns() - SETTLED:
        return _digest(path, identity)
    key = cache_key("file digest", path, repr(identity))
    found = cache.get(key)
    if found is None:
        found = _digest(path, identity).encode()
        cache.put(key, found)
    return found.decode()


@lru_cache(maxsize=256)
def _digest(path: str, identity: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
