"""Folders with changes in one step: staged beside their place, put there if good, kept aside otherwise.

A user's files in the old folder are carried over. The report's `files` identify the files written by Igniter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path

from igniter.activity import leaving
from igniter.errors import IgniterError

FAILED = ".failed"
"""The suffix of the folder for a wrong compiled model."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_TRIES = 10


class NotGood(IgniterError):
    """Raised for a compiled model that must not be put in place. `folder` is where it is kept, if it is."""

    code = "IGN0505"

    folder: Path | None = None

    def kept_in(self, folder: Path, target: Path) -> None:
        """Records the folder with the model, and adds it to the message."""
        self.folder = folder
        self.message = f"{self.message} (it is kept in {folder}; {target} is as it was)"
        self.args = (self.message,)


@contextmanager
def staging_folder(target: Path) -> Generator[Path]:
    """Creates a private folder beside `target`, on the same file system; removes it afterwards, unless it was moved."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".igniter", dir=target.parent))
    except OSError as error:
        raise IgniterError(f"cannot write {target}: {error.strerror}") from error
    try:
        with leaving(str(staging)):
            yield staging
    except OSError as error:
        raise IgniterError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def make_readable(folder: Path) -> None:
    """Gives a folder made by `mkdtemp` the permissions of any other output."""
    mask = os.umask(0o022)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def carry_over(old: Path, staging: Path, written: Collection[str]) -> None:
    """Moves the content of `old` except `written` into `staging`; existing files in `staging` stay."""
    if not old.is_dir():
        return
    for path in old.iterdir():
        target = staging / path.name
        if path.name in written or os.path.lexists(target):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, target, symlinks=True, copy_function=_link_or_copy)
        else:
            _link_or_copy(path, target)


def _link_or_copy(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):
        # Another file system, or one without hard links; Windows has none of a link itself.
        shutil.copy2(source, target, follow_symlinks=False)


def keep_failed(staging: Path, target: Path, is_ours: bool = True) -> Path:
    """Moves `staging` to `TARGET.failed`, in place of an earlier one if `is_ours`, otherwise beside it; returns the new
    path."""
    for number in range(1, 100):
        kept = target.with_name(f"{target.name}{FAILED}{'' if number == 1 else f'-{number}'}")
        if not kept.exists() or (number == 1 and is_ours):
            put_in_place(staging, kept)
            return kept
    raise IgniterError(f"there are too many folders {target.name}{FAILED}-N: remove some")


def put_in_place(staging: Path, target: Path) -> None:
    """Replaces `target` by `staging`; the old content is then at `staging`, or removed."""
    for _ in range(_TRIES):
        try:
            os.rename(staging, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if exchange(staging, target):
            return
        # No exchange on this system: the target is missing for a moment, and the old folder is kept until then.
        old = staging.with_name(staging.name + ".old")
        try:
            os.rename(target, old)
        except FileNotFoundError:
            continue
        try:
            os.rename(staging, target)
        except OSError:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return
    raise OSError(errno.EBUSY, "other processes keep replacing the folder")


def exchange(one: Path, two: Path) -> bool:
    """Swaps two folders in one step, if the system can (Linux's `renameat2`)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(two), _RENAME_EXCHANGE) == 0
