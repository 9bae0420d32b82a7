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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.compiler.compilation import CompileOptions
from igniter.errors import IgniterError
from igniter.runtime.digests import file_digest
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
from igniter.runtime.session import CPU_PROVIDER, SessionError, make_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from igniter.verification.judge import Ready
    from igniter.verification.original import Original
    from igniter.verification.regions import ValuesResult
    from igniter.verification.report import CaseResult, Verification
    from igniter.verification.verify import VerifyOptions

MODEL, REPORT = "model.onnx", "report.json"
FORMAT = 1
_MARK = "igniter_artifact"
_RELOADS = 20
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""ORT's setting for the folder of the weights of a model in memory."""


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
        report = _read_report(where)
        if report is None:
            raise IgniterError(f"{where} is not a model compiled by Igniter: there is no {REPORT} that says so")
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
                return make_session(self.model_path, self.libraries, **ort_options)
            except IgniterError:
                # Another process may have replaced the model since the report was read. The names of the files differ,
                # so the two are never mixed: read the new report, and try again.
                report = _read_report(self.folder)
                if report is None or report == self.report:
                    raise
                self.report = report
        return make_session(self.model_path, self.libraries, **ort_options)

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
                f"{self.folder}: name a file in that folder (and copy both, if the model is to go elsewhere)"
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
        from igniter.verification.stand_in import with_stand_ins
        from igniter.verification.verify import BUDGET_SECONDS, PRECISIONS, VerifyOptions

        if rtol is None:
            asked: Mapping[str, Any] = self.report.get("options", {})
            in_tf32 = any(each.endswith("+tf32") for each in str(asked.get("target", "")).split(","))
            rtol = PRECISIONS.get("tf32" if in_tf32 else str(asked.get("precision", "f32")))
        options = VerifyOptions(None, shapes, rtol, atol, seed, BUDGET_SECONDS if budget is None else budget)
        original = self._original(reference, ort_options)
        return with_stand_ins(original, lambda runs: self._compared(runs, inputs, options, ort_options))

    def _compared(
        self,
        original: Original,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None,
        options: VerifyOptions,
        ort_options: Mapping[str, Any],
    ) -> Verification:
        """Compares with one original, in each available execution provider."""
        from igniter.verification.graph_facts import GraphFacts, model_facts
        from igniter.verification.verify import Candidate, verify_models

        feeds = _read(original, inputs) if isinstance(inputs, (str, Path)) else inputs
        original, mixed = self._with_threads(original)
        assert original.model is not None
        if mixed:
            ort_options = {**ort_options, "intra_op_num_threads": 1}
        facts = model_facts(original.model) if feeds is None else GraphFacts()
        options = replace(options, inputs=feeds)
        if "providers" in ort_options:
            choices, without = [dict(ort_options)], list[str]()
        else:
            providers, without = self.providers()
            choices = [{**ort_options, "providers": [*dict.fromkeys((p, CPU_PROVIDER))]} for p in providers]
        found: Verification | None = None
        for chosen in choices or [dict(ort_options)]:
            candidate = Candidate(lambda n, cut, chosen=chosen: self._candidate(0 if mixed else n, cut, chosen))
            each = verify_models(original, candidate, facts, options, self._pieces(original, options, chosen))
            if len(choices) > 1:
                provider = str(chosen["providers"][0])
                each = replace(each, cases=tuple(replace(case, provider=provider) for case in each.cases))
            found = each if found is None else found.joined(each)
        assert found is not None
        return replace(found, without=tuple(without)) if choices else found

    def _with_threads(self, original: Original) -> tuple[Original, bool]:
        """Returns the original in the form for the comparison, and true if both models need a single thread.

        Some nodes give values that depend on the number of threads; their kernels compute the values of one thread. If
        all such nodes are left to ONNX Runtime, both models have the values of their own threads.
        """
        from igniter.frontend import surgery

        if not original.by_threads:
            return original, False
        assert original.proto is not None
        left = surgery.thread_dependent(surgery.read_proto(str(self.model_path))[0])
        if left >= surgery.thread_dependent(original.proto):
            return original, False
        return original.on_one_thread(), left > 0

    def providers(self) -> tuple[list[str], list[str]]:
        """Returns the execution providers of the model's code, the best first: those in the installed ONNX Runtime, and
        the missing ones."""
        import onnxruntime

        ort: Any = onnxruntime
        available: list[str] = ort.get_available_providers()
        named = [[name or CPU_PROVIDER for name in library_providers(path)] for path in self.libraries]
        choices = list(dict.fromkeys(name for names in named or [[CPU_PROVIDER]] for name in names))
        return [p for p in choices if p in available], [p for p in choices if p not in available]

    def _pieces(
        self, original: Original, options: VerifyOptions, ort_options: Mapping[str, Any]
    ) -> Callable[[dict[str, int], Ready], CaseResult] | None:
        """Returns the function that compares the parts of the model; `None` if there are no nodes to compare them with,
        or ONNX Runtime does not run them."""
        if original.model is None or original.stand_in is not None:
            return None

        def case(sizes: dict[str, int], ready: Ready) -> CaseResult:
            from igniter.frontend.ort_values import run
            from igniter.verification.by_region import ByRegion
            from igniter.verification.judgement import Allowance
            from igniter.verification.original import unoptimised

            def whole(feed: Mapping[str, Any]) -> list[Any]:
                session = self._candidate(0, {}, {**ort_options, "graph_optimization_level": unoptimised()})
                return run(session, feed, original.output_names)

            settings: dict[str, Any] = dict(self.report.get("options", {}))
            digest = str(self.report.get("kernel_digest", ""))
            allowed = Allowance(options.rtol, options.atol)
            return ByRegion(original, CompileOptions.of_report(settings), digest, whole, allowed, options.budget).case(
                sizes, ready
            )

        return case

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
        from igniter.verification.graph_facts import model_facts
        from igniter.verification.judgement import Allowance
        from igniter.verification.regions import verify_regions
        from igniter.verification.verify import BUDGET_SECONDS, PRECISIONS, typical_inputs

        original = self._original(reference, {})
        sizes, feed = dict(shapes or {}), inputs
        budget = BUDGET_SECONDS if budget is None else budget
        if isinstance(feed, (str, Path)):
            feed = _read(original, feed)[0]
        if feed is None:
            assert original.model is not None
            sizes, feed = typical_inputs(original, model_facts(original.model), sizes, seed, budget, small=True)
        options: dict[str, Any] = dict(self.report.get("options", {}))
        keep_in = self.folder.with_name(f"{self.folder.name}.every-value")
        allowed = Allowance(rtol if rtol is not None else PRECISIONS.get(str(options.get("precision"))), atol)
        return verify_regions(original, CompileOptions.of_report(options), feed, sizes, allowed, keep_in)

    def _original(self, reference: str | Path | bytes | None, ort_options: Mapping[str, Any]) -> Original:
        from igniter.verification.original import Original

        original = reference if reference is not None else self.source
        if original is None:
            raise IgniterError(
                f"the original model of {self.folder} is not known or has changed since: name it with `reference`"
            )
        return Original(original if isinstance(original, bytes) else str(original), options=ort_options)

    def _candidate(self, threads: int, cut: Mapping[str, Any], ort_options: Mapping[str, Any]) -> InferenceSession:
        """Creates a session of the compiled model, with its own number of threads, or with random values as inputs."""
        options: dict[str, Any] = {"log_severity_level": 4, **ort_options}
        config: dict[str, Any] = dict(options.get("config") or {})
        if threads:
            options["intra_op_num_threads"] = threads
            options["config"] = config = {**config, "session.intra_op.allow_spinning": "0"}
        if not cut:
            return self.session(**options)
        from igniter.frontend import surgery

        proto, folder = surgery.read_proto(str(self.model_path))
        computed = surgery.producers(proto)
        there = [value for name, value in cut.items() if name in computed]
        # A value with another name there is an Identity of it, so the bits are the same.
        hidden = [n for n, value in cut.items() if n not in computed and not any(_is_same(value, v) for v in there)]
        if hidden:
            raise IgniterError(f"the random value '{hidden[0]}' of the original is not in the compiled model")
        options["config"] = {**config, EXTERNAL_FOLDER: folder}
        return make_session(surgery.with_inputs(proto, cut).SerializeToString(), self.libraries, **options)


def _is_same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _read(original: Original, path: str | Path) -> list[dict[str, Any]]:
    """Reads the feeds in a file or folder."""
    from igniter.frontend.ort_values import typed
    from igniter.verification.given import read_inputs

    names = [value.name for value in original.session.get_inputs()]
    return [typed(original.session, feed) for feed in read_inputs(path, names)]


def write_artifact(
    folder: str | Path,
    *,
    save_model: Callable[[Path], object],
    libraries: Sequence[Library] = (),
    report: Mapping[str, Any] | None = None,
    source: str | Path | bytes | None = None,
    finish: Callable[[Artifact], None] | None = None,
) -> Artifact:
    """Writes a compiled model and replaces the content of `folder` with it in one step.

    `save_model` writes the rewritten model, with the files that it needs beside it, to the path in its argument.
    `report` is the content of `report.json` besides the names of the files; `source` the original model. `finish` gets
    the model before it is in place: to verify it, and to add to its report. If it raises `NotGood`, the model moves to
    `FOLDER.failed`, and `folder` is unchanged; after any other error the new model is removed. A user's own files in
    `folder` stay. Raises `IgniterError` if the folder cannot be written or has other content.
    """
    target = Path(os.path.abspath(folder))
    check_replaceable(target)
    described: dict[str, Any] = {
        **(report or {}),
        _MARK: FORMAT,
        "model": MODEL,
        "libraries": [library.file_name for library in libraries],
        "source": _describe_source(source),
    }
    artifact = Artifact(target, described, str(source) if isinstance(source, Path) else source)
    with staging_folder(target) as staging:
        save_model(staging / MODEL)
        for library in libraries:
            library.write(staging)
        described["files"] = sorted([REPORT, *(p.name for p in staging.iterdir())])
        make_readable(staging)
        try:
            if finish is not None:
                artifact.folder = staging
                finish(artifact)
        except NotGood as error:
            _write_report(staging, described)
            earlier = _read_report(target.with_name(target.name + FAILED))
            error.kept_in(keep_failed(staging, target, earlier is not None), target)
            raise
        _write_report(staging, described)
        carry_over(target, staging, _written_by_igniter(target))
        put_in_place(staging, target)
    artifact.folder = target
    return artifact


# -- the report -------------------------------------------------------------------------------------------------------


def _write_report(folder: Path, report: Mapping[str, Any]) -> None:
    (folder / REPORT).write_text(_report_text(report), encoding="utf-8")


def _report_text(report: Mapping[str, Any]) -> str:
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
    report = _read_report(folder) or {}
    if _why_damaged(report) is not None:
        # Files not known to be Igniter's own stay.
        report = {}
    known = {MODEL, REPORT, f"{MODEL}.data", *report.get("libraries", ()), *report.get("files", ())}
    return {str(name) for name in known}


def _read_report(folder: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) and _MARK in found else None


def _is_whole(folder: Path) -> bool:
    """True if the folder now has all files named in its report, in this version's format."""
    report = _read_report(folder)
    if report is None or _why_damaged(report) is not None or report[_MARK] != FORMAT:
        return False
    return all((folder / Path(name).name).is_file() for name in (MODEL, *report.get("libraries", ())))


_SHAPES: dict[str, tuple[type, ...]] = {
    "libraries": (list,),
    "files": (list,),
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
        return "'source' has something else than texts"
    if not all(isinstance(entry, dict) for key in ("programs", "fusion", "remarks") for entry in report.get(key, ())):
        return "an entry of a list is no object"
    return None


def _describe_source(source: str | Path | bytes | None) -> dict[str, str] | None:
    if source is None:
        return None
    if isinstance(source, bytes):
        return {"sha256": hashlib.sha256(source).hexdigest()}
    return {"path": os.path.abspath(source), "sha256": file_digest(source)}


def _known_source(report: Mapping[str, Any]) -> str | None:
    """Returns the path of the original model, if it is unchanged since the compilation."""
    source: Mapping[str, str] = report.get("source") or {}
    path = source.get("path")
    if path is None or not os.path.isfile(path) or file_digest(path) != source.get("sha256"):
        return None
    return path


# -- folders ----------------------------------------------------------------------------------------------------------


def check_replaceable(target: Path) -> None:
    """Raises `IgniterError` if a compiled model may not replace the target."""
    if not target.exists():
        return
    if not target.is_dir():
        raise IgniterError(f"{target} is a file; a compiled model is a folder")
    if any(target.iterdir()) and _read_report(target) is None:
        raise IgniterError(f"{target} is a folder with something else in it than a compiled model; not replaced")
