"""A compiled model on disk.

    FOLDER/model.onnx          the rewritten model
    FOLDER/model.HASH.data     its weights, which ORT maps; the name has a hash of them
    FOLDER/libigniter_HASH.so  the custom-op library (none when nothing was compiled)
    FOLDER/report.json         what was done, and where the model came from

The folder appears, or changes, in one step: everything is written and verified in a folder beside it, which then
replaces it (`igniter.runtime.folders`). A folder without a compiled model is never replaced; in one with a compiled
model, the user's own files stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.compiler.arguments import require_number, require_shapes
from igniter.compiler.genai_library import renew_library
from igniter.errors import IgniterError
from igniter.registry import load
from igniter.runtime.digests import file_digest, folder_digest, require_files
from igniter.runtime.folders import (
    FAILED,
    NotGood,
    carry_over,
    keep_failed,
    make_readable,
    put_in_place,
    staging_folder,
)
from igniter.runtime.library import Library, library_info, library_providers
from igniter.runtime.session import CPU_PROVIDER, ProviderMissing, SessionError, make_session, providers_of
from igniter.verification.report import Verification

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from igniter.verification.kept_results import KeptResults
    from igniter.verification.regions import ValuesResult

MODEL, REPORT = "model.onnx", "report.json"
MODEL_SUFFIXES = (".onnx", ".onnxtxt", ".textproto", ".mlir")
FORMAT = 1
_MARK = "igniter_artifact"
_RELOADS = 20


class VerificationFailed(NotGood):
    """Raised when the outputs of the compiled model differ from the original's; `verification` has the figures,
    `folder` the model."""

    code = "IGN0603"
    exit_status = 3

    def __init__(self, message: str, verification: Verification):
        super().__init__(message)
        self.verification = verification


@dataclass
class Artifact:
    """A compiled model. `source` is the original, if known: a path, or the bytes of a model."""

    folder: Path
    report: dict[str, Any] = field(repr=False)
    source: str | bytes | None = field(default=None, repr=False)
    loads: bool = field(default=False, repr=False, compare=False)
    """True if this object has made a session of it."""
    refusal: SessionError | None = field(default=None, repr=False, compare=False)
    """The last refusal of a session."""
    reference_results: KeptResults | None = field(default=None, repr=False, compare=False)
    """The results of runs of the original beside the compilation, for its verification."""
    renewed: str | None = field(default=None, repr=False, compare=False)
    """A sentence on `genai_config.json` in the folder, if it named an earlier library."""

    @classmethod
    def load(cls, folder: str | Path) -> Artifact:
        """Loads the compiled model in a folder; raises `IgniterError` if it is missing or incomplete."""
        where = Path(folder)
        for _ in range(_RELOADS):
            try:
                return cls._load(where)
            except IgniterError:
                # Another process may be replacing the model at this moment; a folder that is really incomplete stays
                # so.
                if not _is_whole(where):
                    raise
        return cls._load(where)

    @classmethod
    def _load(cls, where: Path) -> Artifact:
        require_folder(where)
        report = read_report(where)
        if report is None:
            raise IgniterError(f"{where} is not a model compiled by Igniter: it has no {REPORT}")
        wrong = _why_damaged(report)
        if wrong is not None:
            raise IgniterError(f"{where / REPORT} is damaged: {wrong}; compile the model again")
        if report[_MARK] != FORMAT:
            raise IgniterError(f"{where} was compiled by another version of Igniter (format {report[_MARK]})")
        artifact = cls(where, report, _known_source(report))
        for path in (artifact.model_path, *artifact.libraries):
            if not path.is_file():
                raise IgniterError(f"{where} is incomplete: {path.name} is missing")
        return artifact

    def __repr__(self) -> str:
        nodes = f"{self.report.get('nodes_before', '?')} nodes became {self.report.get('nodes_after', '?')}"
        return f"<igniter.Artifact {self.folder}: {nodes}, for {self.report.get('target', '?')}>"

    def _repr_html_(self) -> str:
        """Returns the summary and, if it was measured, the speed, for notebooks."""
        html: str = load("igniter.toolbox.html:artifact_html")(str(self.folder), self.report)
        return html

    @property
    def model_path(self) -> Path:
        return self.folder / MODEL

    @property
    def libraries(self) -> list[Path]:
        """The custom-op libraries, in the order in which a session registers them."""
        return [self.folder / Path(name).name for name in self.report.get("libraries", ())]

    def library_infos(self) -> list[dict[str, Any]]:
        """Returns the information in each library."""
        return [library_info(path) for path in self.libraries]

    def session(self, **ort_options: Any) -> InferenceSession:
        """Creates an ORT session of the compiled model currently in the folder; for the options see
        `igniter.runtime.session.make_session`."""
        self._check_saving(ort_options)
        try:
            made = self._session(ort_options)
        except SessionError as error:
            self.refusal = error
            raise
        self.loads = True
        return made

    def _session(self, ort_options: Mapping[str, Any]) -> InferenceSession:
        for _ in range(_RELOADS):
            try:
                return self._checked_session(ort_options)
            except IgniterError:
                # Another process may have replaced the model since the report was read. The names of the files differ,
                # so the two are never mixed: read the new report, and try again.
                report = read_report(self.folder)
                if report is None or report == self.report:
                    raise
                self.report = report
        return self._checked_session(ort_options)

    def _checked_session(self, ort_options: Mapping[str, Any]) -> InferenceSession:
        self.require_unchanged()
        return make_session(self.model_path, self.libraries, **ort_options)

    def require_unchanged(self) -> None:
        """Raises `WrongDigest` for a library that is not the one that was compiled, by its SHA-256 in the report. A
        report without digests, of an earlier version, is not compared."""
        digests = self.report.get("digests", {})
        require_files(self.folder, {path.name: digests[path.name] for path in self.libraries if path.name in digests})

    def digest(self) -> str:
        """Returns the digest of the whole folder, `sha256:HEX`: see `igniter.runtime.digests.folder_digest`."""
        return folder_digest(self.folder)[0]

    def _check_saving(self, ort_options: Mapping[str, Any]) -> None:
        """Raises if ORT would save its optimised model outside the folder of its external weights: the saved model
        refers to them by their path relative to this folder."""
        wanted = ort_options.get("optimized_model_filepath")
        settings = ort_options.get("sess_options")
        wanted = wanted or getattr(settings, "optimized_model_filepath", "")
        if not wanted or Path(wanted).resolve().parent == self.folder.resolve():
            return
        if any(self.folder.glob("*.data")):
            raise IgniterError(
                f"ONNX Runtime would save its optimised model as {wanted} without its weights, which are in a file of "
                f"{self.folder}; name a file in that folder (and copy both to move the model)"
            )

    def verify(
        self,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None = None,
        shapes: Sequence[Mapping[str, int]] | None = None,
        rtol: float | None = None,
        atol: float = 0.0,
        *,
        reference: str | Path | bytes | None = None,
        seed: int = 0,
        budget: float | None = None,
        **ort_options: Any,
    ) -> Verification:
        """Compares with ORT on the original model (`reference`, or the model's source).

        `inputs` are feeds, or the path of a file or folder of them; by default they are generated, at `shapes` or at
        sizes found by a search. `budget` is in seconds. If ONNX Runtime does not load the original, a stand-in runs it
        (`igniter.verification.stand_in`). `docs/explanation/verification.md` describes the comparison. A model of lower
        precision is compared with the original in f32, within the bounds of `igniter.verification.verify.PRECISIONS`
        unless `rtol` is given.
        """
        require_shapes("verify", shapes)
        for name, number in (("rtol", rtol), ("atol", atol), ("budget", budget)):
            require_number("verify", name, number)
        if "providers" not in ort_options:
            try:
                providers_of(self.libraries)
            except ProviderMissing as error:
                # Runs of the original would have nothing to be compared with.
                return Verification((), cannot=error.message)
        # Not before: a compiled model is loaded and run without the comparison.
        from igniter.compiler.artifact_checks import Checks

        return Checks(self).verify(inputs, shapes, rtol, atol, reference, seed, budget, ort_options)

    def require_verified(self, options: Mapping[str, Any]) -> None:
        """Verifies the model with these options of `verify`, and adds the outcome to its report; raises
        `VerificationFailed` if an output differs."""
        found = self.verify(**options)
        self.report["verification"] = found.to_dict()
        if found.status == "differs":
            failures = "; ".join(found.failures[:3])
            raise VerificationFailed(
                f"the compiled model does not compute what the original computes: {failures}", found
            )

    def providers(self) -> tuple[list[str], list[str]]:
        """Returns the execution providers of the model's code, the best first: those in the installed ONNX Runtime, and
        the missing ones."""
        import onnxruntime

        ort: Any = onnxruntime
        available: list[str] = ort.get_available_providers()
        named = [[name or CPU_PROVIDER for name in library_providers(path)] for path in self.libraries]
        choices = list(dict.fromkeys(name for names in named or [[CPU_PROVIDER]] for name in names))
        return [p for p in choices if p in available], [p for p in choices if p not in available]

    def verify_every_value(
        self,
        inputs: Mapping[str, Any] | str | Path | None = None,
        shapes: Mapping[str, int] | None = None,
        rtol: float | None = None,
        atol: float = 0.0,
        *,
        reference: str | Path | bytes | None = None,
        seed: int = 0,
        budget: float | None = None,
    ) -> ValuesResult:
        """Compares every value that crosses a region, each region on the inputs of the original nodes: see
        `igniter.verification.regions`. A failure leaves a folder in `FOLDER.every-value` that reproduces it."""
        from igniter.compiler.artifact_checks import Checks

        return Checks(self).verify_every_value(inputs, shapes, rtol, atol, reference, seed, budget)


def write_artifact(
    folder: str | Path | None,
    *,
    save_model: Callable[[Path], object],
    libraries: Sequence[Library] = (),
    report: Mapping[str, Any] | None = None,
    source: str | Path | bytes | None = None,
    finish: Callable[[Artifact], None] | None = None,
    digest: str = "",
) -> Artifact:
    """Writes a compiled model and replaces the content of `folder` with it in one step. Without `folder` the model is
    in a temporary one, which is removed together with the artifact.

    `save_model` writes the rewritten model, with the files that it needs beside it, to the path in its argument.
    `report` is the content of `report.json` besides the names of the files; `source` the original model, a file with
    the SHA-256 `digest` if that is known. `finish` gets the model before it is in place: to verify it, and to add to
    its report. If it raises `NotGood`, the model moves to `FOLDER.failed`, and `folder` is unchanged; after any other
    error the new model is removed. A user's own files in `folder` stay; a `genai_config.json` gets the name of the new
    library. Raises `IgniterError` if the folder cannot be written or has other content.
    """
    temporary = "" if folder is not None else tempfile.mkdtemp(prefix="igniter-")
    target = Path(os.path.abspath(os.path.join(temporary, "model.igniter") if folder is None else folder))
    check_replaceable(target)
    described = described_artifact(report or {}, [library.file_name for library in libraries], source, digest)
    artifact = Artifact(target, described, str(source) if isinstance(source, Path) else source)
    with _removed_with(artifact, temporary), staging_folder(target) as staging:
        save_model(staging / MODEL)
        for library in libraries:
            library.write(staging)
        described["files"] = sorted([REPORT, *(p.name for p in staging.iterdir())])
        described["digests"] = _digests(staging / MODEL, libraries)
        make_readable(staging)
        try:
            if finish is not None:
                artifact.folder = staging
                finish(artifact)
        except NotGood as error:
            _write_report(staging, described)
            earlier = read_report(target.with_name(target.name + FAILED))
            error.kept_in(keep_failed(staging, target, earlier is not None), target)
            raise
        _write_report(staging, described)
        carry_over(target, staging, _written_by_igniter(target))
        artifact.renewed = renew_library(staging, described["libraries"])
        put_in_place(staging, target)
    artifact.folder = target
    return artifact


def _digests(model: Path, libraries: Sequence[Library]) -> dict[str, str]:
    """Returns the SHA-256 of the model, whose weights are in other files, and of each library."""
    data = {MODEL: model.read_bytes(), **{library.file_name: library.data for library in libraries}}
    return {name: hashlib.sha256(each).hexdigest() for name, each in data.items()}


@contextmanager
def _removed_with(artifact: Artifact, temporary: str) -> Generator[None]:
    """Removes a temporary folder, if it is not "", after an error, otherwise together with `artifact`."""
    if not temporary:
        yield
        return
    removal = weakref.finalize(artifact, shutil.rmtree, temporary, ignore_errors=True)
    try:
        yield
    except BaseException:  # an interrupt, too, removes the folder; raised again
        removal()
        raise


# -- the report -------------------------------------------------------------------------------------------------------


def described_artifact(
    report: Mapping[str, Any], libraries: Sequence[str], source: str | Path | bytes | None, digest: str = ""
) -> dict[str, Any]:
    """Returns a report with the names of the files and the original model, a file with the SHA-256 `digest` if that is
    known."""
    return {
        **report,
        _MARK: FORMAT,
        "model": MODEL,
        "libraries": list(libraries),
        "source": _describe_source(source, digest),
    }


def _write_report(folder: Path, report: Mapping[str, Any]) -> None:
    (folder / REPORT).write_text(report_text(report), encoding="utf-8")


def report_text(report: Mapping[str, Any]) -> str:
    """Returns JSON with a line for each entry of each key. With `indent`, Python's JSON encoder takes ten times as
    long: a second for the remarks of a large model, longer than the rest of a result from the cache."""
    lines: list[str] = []
    for key, value in report.items():
        brackets = "{}" if isinstance(value, dict) else "[]"
        if isinstance(value, dict):
            parts = [f"{_one_line(str(k))}: {_one_line(v)}" for k, v in cast("dict[str, Any]", value).items()]
        elif isinstance(value, list):
            parts = [_one_line(v) for v in cast("list[Any]", value)]
        else:
            parts = []
        inner = ",\n    ".join(parts)
        text = f"{brackets[0]}\n    {inner}\n  {brackets[1]}" if parts else _one_line(value)
        lines.append(f"  {_one_line(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _one_line(value: Any) -> str:
    return json.dumps(value, default=str)


def _written_by_igniter(folder: Path) -> set[str]:
    """Returns the names of a compiled model's own files in a folder; all others are the user's."""
    report = read_report(folder) or {}
    if _why_damaged(report) is not None:
        # Files not known to be Igniter's own stay.
        report = {}
    known = {MODEL, REPORT, f"{MODEL}.data", *report.get("libraries", ()), *report.get("files", ())}
    return {str(name) for name in known}


def read_report(folder: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) and _MARK in found else None


def _is_whole(folder: Path) -> bool:
    """True if the folder now has all files named in its report, in this version's format."""
    report = read_report(folder)
    if report is None or _why_damaged(report) is not None or report[_MARK] != FORMAT:
        return False
    return all((folder / Path(name).name).is_file() for name in (MODEL, *report.get("libraries", ())))


_SHAPES: dict[str, tuple[type, ...]] = {
    "libraries": (list,),
    "files": (list,),
    "digests": (dict,),
    "options": (dict,),
    "programs": (list,),
    "fusion": (list,),
    "remarks": (list,),
    "left_to_onnxruntime": (list,),
    "seconds": (dict,),
    "verification": (dict,),
    "source": (dict, type(None)),
}
"""The types of the report's entries that other code reads, if present."""


def _why_damaged(report: Mapping[str, Any]) -> str | None:
    """Returns the error in a report, or None; users may edit the file."""
    for key, kinds in _SHAPES.items():
        if key in report and not isinstance(report[key], kinds):
            return f"'{key}' is of the type {type(report[key]).__name__}"
    for key in ("libraries", "files"):
        if not all(isinstance(name, str) and name for name in report.get(key, ())):
            return f"'{key}' does not list names"
    source = cast("Mapping[str, Any]", report.get("source") or {})
    if not all(isinstance(value, str) for value in source.values()):
        return "'source' has an entry that is not a string"
    if not all(isinstance(entry, dict) for key in ("programs", "fusion", "remarks") for entry in report.get(key, ())):
        return "an entry of a list is not an object"
    return None


def _describe_source(source: str | Path | bytes | None, digest: str) -> dict[str, str] | None:
    if source is None:
        return None
    if isinstance(source, bytes):
        return {"sha256": hashlib.sha256(source).hexdigest()}
    return {"path": os.path.abspath(source), "sha256": digest or file_digest(source)}


def _known_source(report: Mapping[str, Any]) -> str | None:
    """Returns the path of the original model, if it is unchanged since the compilation."""
    source: Mapping[str, str] = report.get("source") or {}
    path = source.get("path")
    if path is None or not os.path.isfile(path) or file_digest(path) != source.get("sha256"):
        return None
    return path


# -- folders ----------------------------------------------------------------------------------------------------------


def require_folder(folder: str | Path) -> None:
    """Raises `IgniterError` if there is no folder for a compiled model to be in."""
    if not Path(folder).exists():
        raise IgniterError(f"there is no folder {folder}: give one that 'igniter compile MODEL -o FOLDER' made")


def require_model_or_folder(path: str | Path) -> None:
    """Raises `IgniterError` if there is neither a model nor a compiled one; a model has the suffix of one."""
    if Path(path).suffix not in MODEL_SUFFIXES:
        require_folder(path)
    elif not Path(path).exists():
        raise IgniterError(f"there is no model {path}")


def check_replaceable(target: Path) -> None:
    """Raises `IgniterError` if a compiled model may not replace the target."""
    if not target.exists():
        return
    if not target.is_dir():
        raise IgniterError(f"{target} is a file; a compiled model is a folder")
    if any(target.iterdir()) and read_report(target) is None:
        raise IgniterError(f"{target} is a folder that contains something other than a compiled model; not replaced")
