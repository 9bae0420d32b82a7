"""Hashes of files, each file read once: a file that has not changed since it was hashed is known by what the system
says of it (device, inode, size, times)."""

from __future__ import annotations

import hashlib
import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from os import PathLike

    from igniter.runtime.cache import Cache

SETTLED = 200_000_000
"""Nanoseconds after which a file's times tell a change: those of two changes in quick succession can be equal."""


def file_digest(path: str | PathLike[str], cache: Cache | None = None) -> str:
    """The SHA-256 of a file in hexadecimal; in `cache` it is found again by other processes. `IgniterError` where the
    file cannot be read."""
    try:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _remembered(os.path.abspath(path), identity, cache)
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error


def changed_since(path: str | PathLike[str], moment: int) -> bool:
    """Whether a file may have changed after `moment` (nanoseconds of the clock), or is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return True
    return max(status.st_mtime_ns, status.st_ctime_ns) >= moment - SETTLED


def _remembered(path: str, identity: tuple[int, ...], cache: Cache | None) -> str:
    from igniter.runtime.cache import cache_key

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
