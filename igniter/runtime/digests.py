"""Hashes of files, each file read once: a file unchanged since it was hashed is identified by the system's metadata
(device, inode, size, times); and the digest of a whole folder, for signatures."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from igniter.errors import IgniterError
from igniter.runtime.cache import cache_key, entry_digest

if TYPE_CHECKING:
    from os import PathLike

    from igniter.runtime.cache import Cache

SETTLED = 200_000_000
"""The age in nanoseconds from which a file's times are reliable: two quick changes can have equal times."""


def file_digest(path: str | PathLike[str], cache: Cache | None = None) -> str:
    """Returns the SHA-256 of a file in hexadecimal; `cache` shares it with other processes. Raises `IgniterError` if
    the file cannot be read."""
    try:
        return _remembered(os.path.abspath(path), _identity(os.stat(path)), cache)
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error


PREFIX = "sha256:"
"""The begin of a folder's digest: its algorithm."""


class WrongDigest(IgniterError):
    """Raised for a file or folder whose content is not the one that its digest says."""

    code = "IGN0510"


def folder_digest(folder: str | PathLike[str]) -> tuple[str, dict[str, str]]:
    """Returns the digest of a folder with all its files, `sha256:HEX`, and the SHA-256 of each file by its path.

    The digest is the SHA-256 of what `sha256sum` prints for the files, in the order of the bytes of their paths. Raises
    `IgniterError` for a folder with anything but files and folders: content outside of it would not be covered.
    """
    root = Path(folder)
    files: dict[str, str] = {}
    for path in root.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            what = "a symbolic link" if path.is_symlink() else "no regular file"
            raise IgniterError(
                f"{path} is {what}, and a digest covers the content of a folder only: replace it by a file"
            )
        if path.is_file():
            files[path.relative_to(root).as_posix()] = file_digest(path)
    lines = b"".join(_line(name, files[name]) for name in sorted(files, key=os.fsencode))
    return f"{PREFIX}{hashlib.sha256(lines).hexdigest()}", dict(sorted(files.items()))


def require_digest(folder: str | PathLike[str], expected: str) -> None:
    """Raises `WrongDigest` unless a folder has the digest `expected`, as returned by `folder_digest`."""
    wanted = expected.strip().lower()
    if not re.fullmatch(rf"{PREFIX}[0-9a-f]{{64}}", wanted):
        raise IgniterError(f"'{expected}' is not a digest: it is 'sha256:' and 64 hexadecimal digits")
    found, _ = folder_digest(folder)
    if not hmac.compare_digest(found, wanted):
        raise WrongDigest(f"{folder} has the digest {found}, not {wanted}: do not load it; get the folder again")


def require_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Raises `WrongDigest` for the first file of a folder without its digest (SHA-256) in `digests`."""
    for name, expected in digests.items():
        path = folder / Path(name).name
        if file_digest(path) != expected:
            raise WrongDigest(
                f"{path} has changed since it was compiled (its SHA-256 is not the one in the report), and is not "
                "loaded: copy the folder again, or compile the model again"
            )


def _line(name: str, digest: str) -> bytes:
    """Returns the line of `sha256sum` about a file; it marks a line with escaped characters by a backslash."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return os.fsencode(f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n")


SMALL = 1 << 20
"""The size of files that are hashed each time: that takes no longer than to look up and store their digests."""


def holds_entry(path: str | PathLike[str], key: str, cache: Cache) -> bool:
    """True if a regular file has exactly the payload stored under `key`. A file unchanged since it was compared, or
    since it was stored (`note_stored`), is not read. Raises `OSError` if the file cannot be read."""
    status, expected = os.lstat(path), cache.digest(key)
    if expected is None or not stat.S_ISREG(status.st_mode):
        return False
    note = _note(key, status)
    if note is not None and (found := cache.get(note)) is not None:
        return found == expected
    with open(path, "rb") as file:
        digest = entry_digest(key, file)
    if note is not None:
        cache.put(note, digest)
    return digest == expected


def note_stored(key: str, cache: Cache, status: os.stat_result) -> None:
    """Notes that a file has the payload that was just stored under `key`: `status` is the file's before it was read."""
    note, digest = _note(key, status), cache.digest(key)
    if note is not None and digest is not None:
        cache.put(note, digest)


def _note(key: str, status: os.stat_result) -> str | None:
    """Returns the key of the note about a file's content; None for a small or a fresh file."""
    identity = _identity(status)
    if status.st_size < SMALL or _is_fresh(identity):
        return None
    return cache_key("entry in a file", key, repr(identity))


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_fresh(identity: tuple[int, ...]) -> bool:
    """True if the file's times do not show every change yet."""
    return max(identity[3:]) > time.time_ns() - SETTLED


def changed_since(path: str | PathLike[str], moment: int) -> bool:
    """True if a file may have changed after `moment` (nanoseconds of the clock), or is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return True
    return max(status.st_mtime_ns, status.st_ctime_ns) >= moment - SETTLED


def _remembered(path: str, identity: tuple[int, ...], cache: Cache | None) -> str:
    if cache is None or _is_fresh(identity):
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
