"""A content-addressed store of compiled code on disk, shared by processes.

An entry is a file named by its key, holding a digest and the payload:

    CACHE/objects-2/ab/abcdef...     32 bytes of SHA-256 of the key and the payload, then the payload

It appears in one `rename`, so a reader sees all of it or nothing. A hit sets the file's times, so the order of times
is the order of use and eviction is least-recently-used, whatever process used it. A file that does not match its
digest (a disk error, a half-written copy, an entry under another's name) is dropped and counts as a miss. Eviction
runs under a lock; losing a race to another process only ever costs a compile.

The folder is `$IGNITER_CACHE_DIR`, else `$XDG_CACHE_HOME/igniter`, else `~/.cache/igniter`; the limit
`$IGNITER_CACHE_SIZE` (`500M`, `2G`; 0 turns the cache off), else 1 GiB. Where the folder cannot be written, nothing is
cached and nothing fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

from igniter.errors import IgniterError

LAYOUT = "objects-2"
OLD_LAYOUTS = ("objects-1",)
"""What earlier versions left is removed when the cache is next measured."""
DEFAULT_LIMIT = 1 << 30
MOST_BYTES = 1 << 62
STALE_SECONDS = 3600
"""A temporary file this old belongs to a process that is gone."""
KEEP_FRACTION = 0.9
"""Eviction makes room beyond the limit, so that it does not run again for the next entry."""
MEASURE_EVERY = 32

_DIGEST = 32
_CHUNK = 1 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def cache_key(*parts: str | bytes) -> str:
    """The key for what depends on all `parts`, in this order: 64 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def parse_size(text: str) -> int:
    """Bytes from `1048576`, `500M`, `1.5 GiB`; `IgniterError` for anything else."""
    match = re.fullmatch(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise IgniterError(f"'{text}' is not a size: write a number of bytes, or one with K, M, G or T")
    return min(int(Fraction(match[1]) * _UNITS[match[2].upper()]), MOST_BYTES)


def default_folder() -> Path:
    """Where the cache is, by the environment."""
    own = os.environ.get("IGNITER_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if own:
            return Path(own).expanduser()
        # The XDG specification has relative paths ignored.
        return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "igniter"
    except RuntimeError as error:
        # There is no such user, or none that has a home.
        where = f"IGNITER_CACHE_DIR is '{own}'" if own else "there is no home folder"
        raise IgniterError(f"{where}: {error}; name a folder for the cache in IGNITER_CACHE_DIR") from error


def default_cache() -> Cache:
    """The cache of this user."""
    size = os.environ.get("IGNITER_CACHE_SIZE")
    try:
        limit = DEFAULT_LIMIT if size is None else parse_size(size)
    except IgniterError as error:
        raise IgniterError(f"IGNITER_CACHE_SIZE: {error.message}") from error
    return Cache(default_folder(), limit)


@dataclass
class CacheStatistics:
    """What happened since the `Cache` object was made, in this process."""

    hits: int = 0
    misses: int = 0
    corrupt: int = 0
    evicted: int = 0


@dataclass(frozen=True)
class _Entry:
    used: int
    size: int
    path: Path


class Cache:
    """See the module's text. `limit` is in bytes of files; 0 stores nothing."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT):
        self.folder = folder
        self.limit = limit
        self.statistics = CacheStatistics()
        self._objects = folder / LAYOUT
        # What the files are known to take; None until they have been looked at.
        self._size: int | None = None
        self._puts = 0

    def has(self, key: str) -> bool:
        """Whether something is stored under `key`; `get` says whether it is whole."""
        return self._path(key).exists()

    def get(self, key: str) -> bytes | None:
        """The payload stored under `key`, or None."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            self.statistics.misses += 1
            return None
        payload = data[_DIGEST:]
        if len(data) < _DIGEST or _digest(key, payload) != data[:_DIGEST]:
            self._drop(path)
            return None
        # Gone since, or not ours to touch: the payload is good all the same.
        with contextlib.suppress(OSError):
            _touch(path)
        self.statistics.hits += 1
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload`, and drop the least recently used entries when the limit is passed."""
        self._store(key, (payload,), len(payload))

    def put_file(self, key: str, source: Path) -> bool:
        """Store what is in a file, without reading all of it at once; whether it is there now."""
        try:
            with source.open("rb") as file:
                return self._store(key, _chunks(file), os.fstat(file.fileno()).st_size)
        except OSError:
            return False

    def get_file(self, key: str, target: Path) -> bool:
        """Write the payload stored under `key` to a new file; whether there was one. `OSError` where the file cannot be
        written."""
        try:
            entry = self._path(key).open("rb")
        except OSError:
            self.statistics.misses += 1
            return False
        with entry:
            expected, digest = entry.read(_DIGEST), hashlib.sha256(key.encode())
            with target.open("xb") as file:
                for chunk in _chunks(entry):
                    digest.update(chunk)
                    file.write(chunk)
        if digest.digest() != expected:
            target.unlink()
            self._drop(self._path(key))
            return False
        with contextlib.suppress(OSError):
            _touch(self._path(key))
        self.statistics.hits += 1
        return True

    def _store(self, key: str, chunks: Iterable[bytes], length: int) -> bool:
        size = length + _DIGEST
        if size > self.limit:
            return False
        path = self._path(key)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        digest = hashlib.sha256(key.encode())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(bytes(_DIGEST))
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
                file.seek(0)
                file.write(digest.digest())
            _touch(temporary)
            os.replace(temporary, path)
        except OSError:
            # A full or read-only disk makes compiling slower, not wrong.
            with contextlib.suppress(OSError):
                temporary.unlink()
            return False
        self._puts += 1
        # Other processes write too: what is there is measured now and then, and estimated in between.
        known = None if self._puts % MEASURE_EVERY == 0 else self._size
        self._size = self._measure() if known is None else known + size
        if self._size > self.limit:
            self._evict(path)
        return True

    def _drop(self, path: Path) -> None:
        """Remove an entry that is not what it should be."""
        self.statistics.corrupt += 1
        self.statistics.misses += 1
        with contextlib.suppress(OSError):
            path.unlink()

    def size(self) -> int:
        """The bytes of all entries, read from the disk."""
        return self._measure()

    def contents(self) -> tuple[int, int]:
        """How many entries there are, and the bytes of all; nothing is changed."""
        sizes = [entry.size for entry in self._entries()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove every entry; how many there were."""
        removed = sum(_remove(e.path) for e in self._entries())
        self._size = 0
        return removed

    def _path(self, key: str) -> Path:
        if re.fullmatch(r"[0-9a-f]{64}", key) is None:
            raise ValueError(f"'{key}' is not a key made by cache_key")
        return self._objects / key[:2] / key[2:]

    def _measure(self) -> int:
        for old in OLD_LAYOUTS:
            shutil.rmtree(self.folder / old, ignore_errors=True)
        return sum(e.size for e in self._entries())

    def _entries(self) -> Iterator[_Entry]:
        """Every entry that is there now; files that vanish while we look are none."""
        for path in self._files():
            if not path.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    yield _Entry(status.st_mtime_ns, status.st_size, path)

    def _files(self) -> Iterator[Path]:
        try:
            shelves = sorted(self._objects.iterdir())
        except OSError:
            return
        for shelf in shelves:
            with contextlib.suppress(OSError):
                yield from sorted(shelf.iterdir())

    def _evict(self, newest: Path) -> None:
        """Remove entries by time of use until there is room; the one just written stays."""
        with self._lock():
            for path in self._files():
                if path.name.endswith(".tmp"):
                    _remove_stale(path)
            entries = sorted(self._entries(), key=lambda e: (e.used, e.path.name))
            total = sum(e.size for e in entries)
            target = int(self.limit * KEEP_FRACTION) if total > self.limit else self.limit
            for entry in entries:
                if total <= target:
                    break
                if entry.path != newest:
                    total -= entry.size
                    self.statistics.evicted += _remove(entry.path)
            self._size = total

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """Only one process evicts at a time: two would each remove what the other leaves."""
        try:
            import fcntl
        except ImportError:
            # Without file locks two processes may evict more than they need to.
            yield
            return
        try:
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            yield
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _digest(key: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(payload)
    return digest.digest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _touch(path: Path) -> None:
    """Mark as used now, to the nanosecond: the times that the kernel sets by itself are milliseconds apart."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _remove_stale(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > STALE_SECONDS:
            path.unlink()
