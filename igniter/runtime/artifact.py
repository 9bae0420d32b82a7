"""A compiled model on disk.

    FOLDER/model.onnx        the rewritten model; its weights beside it, in files that ORT maps
    FOLDER/libigniter_*.so   the custom-op library (none when nothing was compiled)
    FOLDER/report.json       what was done, and where the model came from

The folder appears, or changes, in one step: everything is written into a folder beside it, which then takes its
place. A folder that holds anything else than a compiled model is never replaced.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.errors import IgniterError
from igniter.runtime.library import Library, library_info
from igniter.runtime.session import make_session
from igniter.runtime.verify import PRECISIONS, Verification, verify_sessions

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MODEL, REPORT = "model.onnx", "report.json"
FORMAT = 1
_MARK = "igniter_artifact"

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass
class Artifact:
    """A compiled model. `source` is the original one, where it is known: a path, or the bytes of a model."""

    folder: Path
    report: dict[str, Any]
    source: str | bytes | None = field(default=None, repr=False)

    @classmethod
    def load(cls, folder: str | Path) -> Artifact:
        """The compiled model in a folder; `IgniterError` when there is none, or not a whole one."""
        where = Path(folder)
        report = _read_report(where)
        if report is None:
            raise IgniterError(f"{where} is not a model compiled by Igniter: there is no {REPORT} that says so")
        if report[_MARK] != FORMAT:
            raise IgniterError(f"{where} was compiled by another version of Igniter (format {report[_MARK]})")
        artifact = cls(where, report, _known_source(report))
        for path in (artifact.model_path, *artifact.libraries):
            if not path.is_file():
                raise IgniterError(f"{where} is incomplete: {path.name} is missing")
        return artifact

    @property
    def model_path(self) -> Path:
        return self.folder / MODEL

    @property
    def libraries(self) -> list[Path]:
        """The custom-op libraries, in the order in which a session registers them."""
        return [self.folder / Path(name).name for name in self.report.get("libraries", ())]

    def library_infos(self) -> list[dict[str, Any]]:
        """What each library says of itself."""
        return [library_info(path) for path in self.libraries]

    def session(self, **ort_options: Any) -> InferenceSession:
        """An ORT session of the compiled model; for the options see `igniter.runtime.session.make_session`."""
        return make_session(self.model_path, self.libraries, **ort_options)

    def verify(
        self,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        shapes: Sequence[Mapping[str, int]] | None = None,
        rtol: float | None = None,
        *,
        reference: str | Path | bytes | None = None,
        seed: int = 0,
        **ort_options: Any,
    ) -> Verification:
        """Compare with ORT on the original model (`reference`, or where the model came from).

        See `igniter.runtime.verify.verify_sessions` for what is compared and how. A model of lower precision is
        compared with the original in f32, within the bounds of `igniter.runtime.verify.PRECISIONS` unless `rtol` is
        given.
        """
        if rtol is None:
            rtol = PRECISIONS.get(str(self.report.get("options", {}).get("precision", "f32")))
        original = reference if reference is not None else self.source
        if original is None:
            raise IgniterError(
                f"the original model of {self.folder} is not known or has changed since: name it with `reference`"
            )
        return verify_sessions(
            make_session(original, **ort_options),
            self.session(**ort_options),
            inputs=inputs,
            shapes=shapes,
            rtol=rtol,
            limits=_limits_of(original) if inputs is None else None,
            seed=seed,
        )


def write_artifact(
    folder: str | Path,
    *,
    save_model: Callable[[Path], object],
    libraries: Sequence[Library] = (),
    report: Mapping[str, Any] | None = None,
    source: str | Path | bytes | None = None,
) -> Artifact:
    """Write a compiled model and put it in place of what is in `folder`, all at once.

    `save_model` writes the rewritten model, with whatever files it needs beside it, to the path that it is given.
    `report` is what `report.json` is to say besides the names of the files; `source` the original model.
    `IgniterError` when the folder cannot be written or holds something else.
    """
    target = Path(os.path.abspath(folder))
    _check_replaceable(target)
    described: dict[str, Any] = {
        **(report or {}),
        _MARK: FORMAT,
        "model": MODEL,
        "libraries": [library.file_name for library in libraries],
        "source": _describe_source(source),
    }
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".igniter", dir=target.parent))
    except OSError as error:
        raise IgniterError(f"cannot write {target}: {error.strerror}") from error
    try:
        save_model(staging / MODEL)
        for library in libraries:
            library.write(staging)
        (staging / REPORT).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        # mkdtemp makes private folders; a compiled model is as readable as any other output.
        staging.chmod(0o777 & ~_umask())
        _put_in_place(staging, target)
    except OSError as error:
        raise IgniterError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return Artifact(target, described, str(source) if isinstance(source, Path) else source)


# -- the report -------------------------------------------------------------------------------------------------------


def _read_report(folder: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) and _MARK in found else None


def _describe_source(source: str | Path | bytes | None) -> dict[str, str] | None:
    if source is None:
        return None
    if isinstance(source, bytes):
        return {"sha256": hashlib.sha256(source).hexdigest()}
    return {"path": os.path.abspath(source), "sha256": _file_digest(source)}


def _file_digest(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error


def _known_source(report: Mapping[str, Any]) -> str | None:
    """The path of the original model, if it is still the one that was compiled."""
    source: Mapping[str, str] = report.get("source") or {}
    path = source.get("path")
    if path is None or not os.path.isfile(path) or _file_digest(path) != source.get("sha256"):
        return None
    return path


def _limits_of(model: str | Path | bytes) -> dict[str, int]:
    from igniter.frontend import import_model
    from igniter.runtime.random_inputs import index_limits

    try:
        return index_limits(import_model(model))
    except IgniterError:
        # ORT reads more than Igniter does; then the names of the inputs have to do.
        return {}


# -- folders ----------------------------------------------------------------------------------------------------------


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise IgniterError(f"{target} is a file; a compiled model is a folder")
    if any(target.iterdir()) and _read_report(target) is None:
        raise IgniterError(f"{target} is a folder with something else in it than a compiled model; not replaced")


def _put_in_place(staging: Path, target: Path) -> None:
    """Make `staging` be `target`; afterwards, what was there before is at `staging`, or gone."""
    for _ in range(10):
        try:
            os.rename(staging, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if _exchange(staging, target):
            return
        # No exchange on this system: for a moment there is nothing, and the old folder is kept until then.
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


def _exchange(one: Path, two: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux's `renameat2`)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(two), _RENAME_EXCHANGE) == 0


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
