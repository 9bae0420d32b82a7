"""A content-addressed store of compiled code on disk, shared by processes.

An entry is a file named by its key, holding a digest and the payload:

    CACHE/objects-2/ab/abcdef...     32 bytes of SHA-256 of the key and the payload, then the payload

It appears in one `rename`, so a reader sees all of it or nothing. A hit updates the file's times, so the order of times
is the order of use and eviction is least-recently-used across processes. A file that does not match its digest (a disk
error, a half-written copy, an entry under another's name) is dropped and counts as a miss. Eviction runs under a lock;
a lost race with another process only costs a compile.

The folder is `$IGNITER_CACHE_DIR`, else `$XDG_CACHE_HOME/igniter`, else `~/.cache/igniter`; the limit
`$IGNITER_CACHE_SIZE` (`500M`, `2G`; 0 turns the cache off), else 1 GiB. If the folder is not writable, nothing is
cached and nothing fails.

Entries are native code that sessions execute, and their digest does not tell who wrote them. So the folder must belong
to this user or to root, and nobody else may write to it; every entry must belong to one of the two when it is read. For
a folder named in `$IGNITER_CACHE_DIR`, anything else is an error; the usual one is made so, or not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

from igniter.errors import IgniterError

LAYOUT = "objects-2"
OLD_LAYOUTS = ("objects-1",)
"""The folders of earlier versions, removed at the next measurement of the cache."""
DEFAULT_LIMIT = 1 << 30
MOST_BYTES = 1 << 62
STALE_SECONDS = 3600
"""The age in seconds of an abandoned temporary file; its process has ended."""
KEEP_FRACTION = 0.9
"""The target of an eviction, below the limit, so that the next entry does not cause another one."""
MEASURE_EVERY = 32

PRIVATE = 0o700
"""The permissions of new folders of the cache."""

_log = logging.getLogger(__name__)

_DIGEST = 32
_CHUNK = 1 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class UntrustedCache(IgniterError):
    """Raised for a cache with write permission for others than this user and root."""

    code = "IGN0509"


def cache_key(*parts: str | bytes) -> str:
    """Returns the key of content that depends on all `parts`, in this order: 64 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def parse_size(text: str) -> int:
    """Parses bytes from `1048576`, `500M`, `1.5 GiB`; raises `IgniterError` for anything else."""
    match = re.fullmatch(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise IgniterError(f"'{text}' is not a size: write a number of bytes, or one with K, M, G or T")
    return min(int(Fraction(match[1]) * _UNITS[match[2].upper()]), MOST_BYTES)


def default_folder() -> Path:
    """Returns the folder of the cache, according to the environment."""
    own = os.environ.get("IGNITER_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if own:
            return Path(own).expanduser()
        # The XDG specification ignores relative paths.
        return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "igniter"
    except RuntimeError as error:
        # The user does not exist, or has no home folder.
        where = f"IGNITER_CACHE_DIR is '{own}'" if own else "the user has no home folder"
        raise IgniterError(f"{where}: {error}; name a folder for the cache in IGNITER_CACHE_DIR") from error


def default_cache() -> Cache:
    """Returns the cache of this user; raises `UntrustedCache` if somebody else can write to it.

    At the usual place, a folder of this user loses the write permission of others (older versions made it by the
    umask), and one of another user, as in a container with `--user`, is not used: the cache is off, with a warning.
    """
    size = os.environ.get("IGNITER_CACHE_SIZE")
    try:
        limit = DEFAULT_LIMIT if size is None else parse_size(size)
    except IgniterError as error:
        raise IgniterError(f"IGNITER_CACHE_SIZE: {error.message}") from error
    folder = default_folder()
    cache = Cache(folder, limit, _size_of(folder))
    named = bool(os.environ.get("IGNITER_CACHE_DIR"))
    if not named:
        cache.make_private()
    try:
        cache.require_trusted()
    except UntrustedCache as error:
        if named:
            raise
        _warn_once(f"nothing is cached: {error.message}")
        # A place without entries: a limit of 0 only stores nothing.
        return Cache(Path(os.devnull), 0)
    return cache


@functools.cache
def _warn_once(text: str) -> None:
    _log.warning(text)


@dataclass
class CacheSize:
    """The estimate of a folder's total size, and the number of entries stored since it was measured."""

    size: int | None = None
    """None before the first measurement."""
    puts: int = 0


@functools.cache
def _size_of(folder: Path) -> CacheSize:
    """Returns the estimate that the compilations of this process share: a measurement looks at every file."""
    return CacheSize()


@dataclass
class CacheStatistics:
    """The counts of events in this process since the `Cache` object was made."""

    hits: int = 0
    misses: int = 0
    corrupt: int = 0
    evicted: int = 0


@dataclass(frozen=True)
class _Entry:
    used: int
    size: int
    path: str


class Cache:
    """The cache described in the module docstring. `limit` is in bytes of files; 0 stores nothing."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT, known: CacheSize | None = None):
        self.folder = folder
        self.limit = limit
        self.statistics = CacheStatistics()
        self._objects = folder / LAYOUT
        self._known = known or CacheSize()

    def make_private(self) -> None:
        """Takes the write permission of others from the folders of the cache that belong to this user. Entries with
        write permission for others count as missing, each by its own permissions."""
        for folder in (self.folder, self._objects) if self.limit and hasattr(os, "geteuid") else ():
            with contextlib.suppress(OSError):  # missing, or on a file system without permissions
                status = folder.stat()
                if status.st_uid == os.geteuid() and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    folder.chmod(stat.S_IMODE(status.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))

    def require_trusted(self) -> None:
        """Raises `UntrustedCache` if the folder, or that of its entries, belongs to another user than this one and
        root, or may be written to by others. Not examined if it is turned off."""
        for folder in (self.folder, self._objects) if self.limit else ():
            with contextlib.suppress(OSError):  # if it cannot be examined, it cannot be read either
                reason = _distrust(folder.stat())
                if reason:
                    raise UntrustedCache(
                        f"the cache {folder} {reason}, who could put code into it that your sessions execute: run "
                        f"'chmod -R go-w {self.folder}' if it is yours and its content is too, or remove it, or name "
                        "another folder in IGNITER_CACHE_DIR"
                    )

    def has(self, key: str) -> bool:
        """True if `key` has an entry; only `get` checks that the entry is whole."""
        return self._path(key).exists()

    def get(self, key: str) -> bytes | None:
        """Returns the payload stored under `key`, or None."""
        path = self._path(key)
        try:
            with _opened(path) as entry:
                data = entry.read()
        except OSError:
            self.statistics.misses += 1
            return None
        payload = data[_DIGEST:]
        if len(data) < _DIGEST or _digest(key, payload) != data[:_DIGEST]:
            self._drop(path)
            return None
        # Deleted meanwhile, or without permission: the payload is good all the same.
        with contextlib.suppress(OSError):
            _touch(path)
        self.statistics.hits += 1
        return payload

    def digest(self, key: str) -> bytes | None:
        """Returns the digest stored with the entry of `key`, or None. The entry counts as used, but is not checked."""
        path = self._path(key)
        try:
            with _opened(path) as entry:
                digest = entry.read(_DIGEST)
            _touch(path)
        except OSError:
            return None
        return digest if len(digest) == _DIGEST else None

    def put(self, key: str, payload: bytes) -> None:
        """Stores `payload`, and drops the least recently used entries above the limit."""
        self._store(key, (payload,), len(payload))

    def put_file(self, key: str, source: Path) -> bool:
        """Stores the content of a file, in chunks; returns true if it is now stored."""
        try:
            with source.open("rb") as file:
                return self._store(key, _chunks(file), os.fstat(file.fileno()).st_size)
        except OSError:
            return False

    def get_file(self, key: str, target: Path) -> bool:
        """Writes the payload stored under `key` to a new file; returns false if there is no entry. Raises `OSError` if
        the file cannot be written."""
        path = self._path(key)
        with contextlib.ExitStack() as opened:
            try:
                entry, source = (opened.enter_context(_opened(path)) for _ in range(2))
            except OSError:
                self.statistics.misses += 1
                return False
            if not os.path.sameopenfile(entry.fileno(), source.fileno()):
                # Another process has replaced the entry in between.
                self.statistics.misses += 1
                return False
            file = opened.enter_context(target.open("xb"))
            copier = opened.enter_context(ThreadPoolExecutor(1))
            # One thread copies while this one checks.
            copied = copier.submit(_copy, source, file, _DIGEST)
            expected, digest = entry.read(_DIGEST), hashlib.sha256(key.encode())
            for chunk in _chunks(entry):
                digest.update(chunk)
            copied.result()
        if digest.digest() != expected:
            target.unlink()
            self._drop(path)
            return False
        with contextlib.suppress(OSError):
            _touch(path)
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
            for place in (self.folder, self._objects, path.parent):
                _make_private(place)
            with open(temporary, "xb", opener=_private_opener) as file:
                file.write(bytes(_DIGEST))
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
                file.seek(0)
                file.write(digest.digest())
            _touch(temporary)
            os.replace(temporary, path)
        except OSError:
            # A full or read-only disk makes compilation slower, not wrong.
            with contextlib.suppress(OSError):
                temporary.unlink()
            return False
        self._known.puts += 1
        # Other processes write too: the size is measured now and then, and estimated in between.
        known = None if self._known.puts % MEASURE_EVERY == 0 else self._known.size
        self._known.size = self._measure() if known is None else known + size
        if self._known.size > self.limit:
            self._evict(path)
        return True

    def _drop(self, path: Path) -> None:
        """Removes a corrupt entry."""
        self.statistics.corrupt += 1
        self.statistics.misses += 1
        with contextlib.suppress(OSError):
            path.unlink()

    def size(self) -> int:
        """Returns the bytes of all entries, read from the disk."""
        return self._measure()

    def contents(self) -> tuple[int, int]:
        """Returns the number of entries, and their total bytes, without changes."""
        sizes = [entry.size for entry in self._entries()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Removes every entry; returns their number."""
        removed = sum(_remove(e.path) for e in self._entries())
        self._known.size = 0
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
        """Yields every entry; files that vanish meanwhile are skipped."""
        for file in self._files():
            if not file.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    status = file.stat()
                    yield _Entry(status.st_mtime_ns, status.st_size, file.path)

    def _files(self) -> Iterator[os.DirEntry[str]]:
        # `scandir` instead of paths: a full cache has tens of thousands of files.
        with contextlib.suppress(OSError), os.scandir(self._objects) as shelves:
            for shelf in shelves:
                with contextlib.suppress(OSError), os.scandir(shelf) as files:
                    yield from files

    def _evict(self, newest: Path) -> None:
        """Removes entries by time of use until they fit; the newest one stays."""
        with self._lock():
            for file in self._files():
                if file.name.endswith(".tmp"):
                    _remove_stale(file.path)
            entries = sorted(self._entries(), key=lambda e: (e.used, e.path))
            total = sum(e.size for e in entries)
            target = int(self.limit * KEEP_FRACTION) if total > self.limit else self.limit
            for entry in entries:
                if total <= target:
                    break
                if entry.path != str(newest):
                    total -= entry.size
                    self.statistics.evicted += _remove(entry.path)
            self._known.size = total

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """Allows only one process to evict at a time: two would each remove the entries that the other keeps."""
        try:
            import fcntl
        except ImportError:
            # Without file locks two processes may evict more than necessary.
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


def entry_digest(key: str, file: IO[bytes]) -> bytes:
    """Returns the digest of an entry whose payload is the content of `file`."""
    digest = hashlib.sha256(key.encode())
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.digest()


def _digest(key: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(payload)
    return digest.digest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _copy(source: IO[bytes], target: IO[bytes], start: int) -> None:
    """Writes a file from `start` on to a new one, in the kernel if it can."""
    size, place = os.fstat(source.fileno()).st_size, start
    with contextlib.suppress(AttributeError, OSError):  # not on every system, nor between all file systems
        while place < size and (n := os.copy_file_range(source.fileno(), target.fileno(), size - place, place)):
            place += n
    source.seek(place)
    target.seek(place - start)
    for chunk in _chunks(source):
        target.write(chunk)


def _make_private(folder: Path) -> None:
    """Creates a folder for this user alone, if it is missing."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE, exist_ok=True)


def _private_opener(path: str, flags: int) -> int:
    """Opens a new file for this user alone."""
    return os.open(path, flags, 0o600)


def _opened(path: Path) -> IO[bytes]:
    """Opens an entry; raises `PermissionError` if another user wrote it, or may write to it."""
    file = path.open("rb")
    reason = _distrust(os.fstat(file.fileno()))
    if reason:
        file.close()
        raise PermissionError(f"{path} {reason}")
    return file


def _distrust(status: os.stat_result) -> str:
    """Returns the reason why a file or folder cannot be trusted; "" if only this user and root can change it."""
    if not hasattr(os, "geteuid"):
        # Permissions on Windows are lists, which the home folder's protect.
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {status.st_uid}, you are {os.geteuid()})"
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return f"may be written to by {'everybody' if writers & stat.S_IWOTH else 'its group'}" if writers else ""


def _touch(path: Path) -> None:
    """Marks an entry as used now, to the nanosecond: the kernel's own timestamps have a granularity of milliseconds."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _remove_stale(path: str) -> None:
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > STALE_SECONDS:
            os.unlink(path)
