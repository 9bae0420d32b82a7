"""The Python API: load a model, run passes over it, compile it.

import igniter

artifact = igniter.compile("model.onnx", target="native")
session = artifact.session(intra_op_num_threads=1)

module = igniter.load("model.onnx").run_passes("infer-shapes,fold-constants")
print(module)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from igniter.compiler.compilation import Compilation, CompiledKernel, CompileOptions
from igniter.compiler.driver import (
    count_nodes,
    make_fusion,
    make_library,
    make_llvm,
    make_loop,
    make_onnx,
    nodes_left,
    require_all_compiled,
    require_no_author,
)
from igniter.errors import IgniterError
from igniter.memory import collection_paused
from igniter.model_tools import ModelTools
from igniter.runtime.folders import NotGood

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.machine import Given
    from igniter.compiler.artifact import Artifact
    from igniter.context import IgniterContext
    from igniter.remarks import Remarks
    from igniter.runtime.library import Library
    from igniter.toolbox.shapes.shape_engine import ShapeEngine
    from igniter.verification.report import Verification

    Model: TypeAlias = "str | PathLike[str] | bytes | onnx.ModelProto"
    Machine: TypeAlias = "Mapping[str, Any] | str | PathLike[str] | None"
    Inputs: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None"

EXTERNAL_BYTES = 1024
"""The least size in bytes of weights in the external file, mapped by ORT; smaller weights stay in the model."""


VERIFY_OPTIONS = {"shapes": None, "inputs": None, "rtol": None, "atol": 0.0, "seed": 0, "budget": None}
"""The options that `compile` passes to `Artifact.verify`, with their defaults."""


class VerificationFailed(NotGood):
    """Raised when the outputs of the compiled model differ from the original's; `verification` has the figures,
    `folder` the model."""

    def __init__(self, message: str, verification: Verification):
        super().__init__(message)
        self.verification = verification


class Module(ModelTools):
    """A model as IR, at the level of its last pass."""

    def __init__(self, ir: ModuleOp, ctx: IgniterContext, source: str | Path | bytes | None = None):
        self.ir = ir
        self.ctx = ctx
        self.source = source
        self.external: set[str] = set()
        """The files with weights besides `source`."""
        self.import_seconds = 0.0
        """The duration of `load` in seconds."""

    @property
    def remarks(self) -> Remarks:
        """The remarks of all passes so far."""
        return self.ctx.remarks

    def run_passes(
        self,
        pipeline: str,
        *,
        verify_each: bool = True,
        target: str | None = None,
        machine: Machine = None,
        sizes: Mapping[str, int] | None = None,
    ) -> Self:
        """Runs a pipeline (`"infer-shapes,form-fusion-regions{...}"`) over the IR, in place.

        Passes work for the CPU `target`; `machine` overrides its figures. Without either they work for a typical
        machine with AVX-512. `sizes` are typical sizes of the module's symbols.
        """
        from igniter.analysis.typical_sizes import give_module_sizes
        from igniter.passes import run_pipeline

        give_module_sizes(self.ir, sizes or {})
        if target is None and machine is None:
            run_pipeline(self.ctx.on(self.ctx.machine, None, sizes), self.ir, pipeline, verify_each=verify_each)
            return self
        from igniter.analysis.machine import pass_figures
        from igniter.targets import described_machines

        machines = described_machines(target, machine)
        ctx = self.ctx.on(machines[0], None, sizes)
        run_pipeline(ctx, self.ir, pipeline, figures=pass_figures(machines), verify_each=verify_each)
        return self

    def clone(self) -> Module:
        """Returns a copy; passes over it leave this module unchanged."""
        from igniter.dialects.onnx import building

        copy = Module(building.clone(self.ir), self.ctx.clone(), self.source)
        copy.external, copy.edits = set(self.external), self.edits
        return copy

    def to_onnx(self) -> onnx.ModelProto:
        """Returns the model as a `ModelProto`, with fusion regions inlined and without kernels."""
        from igniter.frontend import export_model

        return export_model(self._onnx_level())

    def save(self, path: str | PathLike[str], *, keep_weights: bool = False) -> None:
        """Writes the model as an ONNX file. With `keep_weights`, weights in external data files in the folder of `path`
        stay in these files, and the model refers to them."""
        from igniter.frontend import save_model

        save_model(self._onnx_level(), path, keep=self.external if keep_weights else ())

    def _onnx_level(self) -> ModuleOp:
        from igniter.transforms.fusion.inline_regions import onnx_level

        return onnx_level(self.ir)

    def compile(
        self,
        output: str | PathLike[str] | None = None,
        *,
        target: str = "native",
        machine: Machine = None,
        sizes: Mapping[str, int] | None = None,
        precision: str = "f32",
        winograd: int | str = "auto",
        fusion_author: str = "",
        options: CompileOptions | None = None,
        verify: bool = True,
        load: bool = True,
        shapes: Sequence[Mapping[str, int]] | None = None,
        inputs: Inputs = None,
        rtol: float | None = None,
        atol: float = 0.0,
        seed: int = 0,
        budget: float | None = None,
        cache: bool = True,
        strict: bool = False,
        sanitize: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Artifact:
        """Compiles a copy of the model, and checks the result against ONNX Runtime unless `verify` is false.

        The folder `output` receives the rewritten model, its library and a report; without one the artifact lives in a
        temporary folder as long as the object. `machine` overrides figures of the target's machine: a file written by
        `igniter machine -o`, or values by name. `sizes` are typical sizes of symbolic dims; schedules are optimised for
        them, and the code is correct for all sizes. `precision` is f32, or on request bf16 or int8-dynamic for products
        with weights. `winograd` selects the convolutions of 3 x 3 computed in tiles: `auto` the profitable ones, 2 or 4
        the same with at most this number of results in a tile along each axis, `on` all possible ones, `off` none.
        `shapes`, `inputs`, `rtol`, `atol`, `seed` and `budget` (seconds) are passed to the verification
        (`Artifact.verify`). `VerificationFailed` names the differing output, and leaves `output` unchanged; if nothing
        could be compared, the report says so. Unless `load` is false, ONNX Runtime loads a result for this machine,
        verified or not; `NotLoaded` names the refused node, and nothing is written. `strict` forbids nodes left to ONNX
        Runtime for want of a kernel; with `sanitize`, every access of a kernel checks its address at run time.
        `fusion_author` selects the author of fusion (`NAME` or `NAME{option=value ...}`).
        """
        chosen = _chosen(
            options,
            target=target,
            machine=machine,
            sizes=sizes,
            precision=precision,
            winograd=winograd,
            fusion_author=fusion_author,
            sanitize=sanitize,
        )
        copy = self.clone()
        compilation = Compilation(copy.ir, chosen, copy.ctx, strict=strict, progress=progress or (lambda _: None))
        if cache:
            from igniter.runtime.cache import default_cache

            compilation.cache = default_cache()
        if self.import_seconds:
            compilation.seconds["import"] = self.import_seconds
        given = {"shapes": shapes, "inputs": inputs, "rtol": rtol, "atol": atol, "seed": seed}
        if budget is not None:
            given["budget"] = budget
        # An edited model is its own reference: its inputs and outputs may differ from the file's.
        source = None if self.edits else self.source
        with blaming(self.source):
            return _compile(compilation, source, self, output, given if verify else None, load)

    def __str__(self) -> str:
        return str(self.ir)

    def __repr__(self) -> str:
        where = "a model in memory" if self.source is None or isinstance(self.source, bytes) else str(self.source)
        return f"<igniter.Module of {where}: {count_nodes(self.ir)} nodes>"


def load(model: Model) -> Module:
    """Loads an ONNX model: a path, the bytes of a file, or a `ModelProto`. Weights stay in their file.

    A path ending in `.mlir` is the text of a module.
    """
    from igniter.context import IgniterContext
    from igniter.frontend import fits_message, import_model

    if isinstance(model, (str, PathLike)) and str(model).endswith(".mlir"):
        return parse(Path(cast("str", model)).read_text(encoding="utf-8"), str(model))

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    source: str | Path | bytes | None = None
    if isinstance(model, bytes):
        source = model
    elif isinstance(model, (str, PathLike)):
        source = Path(cast("str", model))
    elif fits_message(model):
        source = model.SerializeToString()
    start = time.perf_counter()
    with collection_paused():
        external: set[str] = set()
        module = Module(import_model(model, external=external), ctx, source)
        module.external = external
    module.import_seconds = time.perf_counter() - start
    return module


def shape_engine(model: Model, values: Sequence[str] | None = None) -> ShapeEngine:
    """Returns `load(model).shape_engine(values)`: shapes of a model's values at any sizes, in microseconds."""
    return load(model).shape_engine(values)


def parse(text: str, name: str = "<text>") -> Module:
    """Parses a module from `text`, in the syntax of `str(module)`; errors call the text `name`."""
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    from igniter.context import IgniterContext

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    try:
        return Module(Parser(ctx, text, name).parse_module(), ctx)
    except ParseError as error:
        raise IgniterError(str(error).strip()) from error


def compile(model: Model, output: str | PathLike[str] | None = None, **options: Any) -> Artifact:
    """Returns `load(model).compile(output, ...)`. For a model file compiled before with the same options, the finished
    result comes from the cache."""
    if not isinstance(model, (str, PathLike)) or str(model).endswith(".mlir") or not options.get("cache", True):
        return load(model).compile(output, **options)
    from igniter.compiler.results import Results
    from igniter.runtime.cache import default_cache

    given = {k: options[k] for k, default in VERIFY_OPTIONS.items() if options.get(k, default) != default}
    verify = given if options.get("verify", True) else None
    load_it = bool(options.get("load", True))
    named = ("options", "target", "machine", "sizes", "precision", "winograd", "fusion_author", "sanitize")
    chosen = _chosen(**{k: options[k] for k in named if k in options})
    results = Results.of(default_cache(), Path(cast("str", model)), chosen, bool(options.get("strict")))
    if results is None:
        return load(model).compile(output, **options)
    found = results.take(Path(output) if output is not None else None, verify, check, load_it)
    if found is not None:
        return found
    step: Callable[[str], None] = options.get("progress") or (lambda _: None)
    step("reading")
    module = load(model)
    artifact = module.compile(output, **options)
    results.keep(artifact, sorted(module.external), verify)
    return artifact


def _chosen(
    options: CompileOptions | None = None,
    target: str = "native",
    machine: Machine = None,
    sizes: Mapping[str, int] | None = None,
    precision: str = "f32",
    winograd: int | str = "auto",
    fusion_author: str = "",
    sanitize: bool = False,
) -> CompileOptions:
    """Merges the options given by name into `options`, in place of defaults. Raises `IgniterError` if both set an
    option, to different values."""
    figures: tuple[Given, ...] = ()
    if machine is not None:
        from igniter.targets import given_machine

        figures = given_machine(machine)
    by_name: dict[str, Any] = {
        "target": target,
        "machine": figures,
        "sizes": tuple(sorted(dict(sizes or {}).items())),
        "precision": precision,
        "winograd": 0 if winograd == "off" else winograd,
        "fusion_author": fusion_author,
    }
    chosen, plain = options or CompileOptions(), CompileOptions()
    added: dict[str, Any] = {"sanitize": True} if sanitize else {}
    for name, value in by_name.items():
        default, said = getattr(plain, name), getattr(chosen, name)
        if value in (default, said):
            continue
        if said != default:
            raise IgniterError(f"{name} is given twice, as {value!r} and in the options as {said!r}: choose one")
        added[name] = value
    return replace(chosen, **added) if added else chosen


@contextmanager
def blaming(model: str | Path | bytes | None) -> Generator[None]:
    """Replaces a pass's error by one about the invalid node, if the model is invalid.

    A model is checked only after a failure; errors with other causes are raised unchanged.
    """
    from igniter.passes import PassError
    from igniter.runtime.session import SessionError

    try:
        yield
    except Exception as error:
        if model is None or (isinstance(error, IgniterError) and not isinstance(error, (PassError, SessionError))):
            raise
        from igniter.frontend import why_invalid

        why = why_invalid(model)
        if why is None:
            raise
        what = "the model" if isinstance(model, bytes) else str(model)
        raise IgniterError(f"{what} is not a valid model: {why}") from error


def is_fused(module: ModuleOp) -> bool:
    """True if a module is past the ONNX level: it contains regions or kernels."""
    from igniter.dialects.fusion import RegionOp
    from igniter.dialects.loop import KernelOp

    return any(isinstance(op, KernelOp) for op in module.ops) or any(isinstance(op, RegionOp) for op in module.walk())


def lower_to_kernels(c: Compilation) -> None:
    """Lowers a module from its current level to compiled kernels; levels above the current one are skipped."""
    from igniter.analysis.typical_sizes import give_module_sizes

    if not is_fused(c.module):
        make_onnx(c)
        make_fusion(c)
    else:
        require_no_author(c)
        give_module_sizes(c.module, dict(c.options.sizes))
    c.nodes_before = c.nodes_before or count_nodes(c.module)
    make_loop(c)
    make_llvm(c)
    if c.strict:
        require_all_compiled(c)


def _compile(
    c: Compilation,
    source: str | Path | bytes | None,
    original: Module,
    output: str | PathLike[str] | None,
    verify: Mapping[str, Any] | None,
    load: bool,
) -> Artifact:
    from igniter.compiler.artifact import check_replaceable
    from igniter.compiler.loading import NotLoaded, again

    if output is not None:
        # Checked here, before a compilation of minutes for a large model.
        check_replaceable(Path(output))
    _require_outputs(c.module)
    _require_dims(original.ir, verify)
    c.require_options()
    c.require_library()
    while True:
        lower_to_kernels(c)
        try:
            return _write(c, make_library(c), source, original, output, verify, load)
        except NotLoaded as error:
            c = again(c, original, error)


def _write(
    c: Compilation,
    library: Library | None,
    source: str | Path | bytes | None,
    original: Module,
    output: str | PathLike[str] | None,
    verify: Mapping[str, Any] | None,
    load: bool,
) -> Artifact:
    """Writes the folder, after loading and verification."""
    from igniter.compiler.artifact import write_artifact
    from igniter.compiler.results import folder_for

    with folder_for(output) as place:
        artifact = write_artifact(
            place.folder,
            save_model=lambda path: _save(c, path),
            libraries=[library] if library is not None else [],
            report=report(c),
            source=source,
            finish=lambda artifact: _finish(artifact, c, original, verify, load),
        )
        place.lives_with(artifact)
    return artifact


def _require_outputs(module: ModuleOp) -> None:
    """Raises for a model without outputs: ONNX Runtime loads it but refuses each run."""
    from igniter.dialects.onnx.structure import main_graph

    end = main_graph(module).body.last_op
    if end is not None and not end.operands:
        raise IgniterError("the model has no outputs, so there is nothing to compute: name one in its graph")


def _require_dims(module: ModuleOp, verify: Mapping[str, Any] | None) -> None:
    """Raises before the compilation if the sizes given for the verification are of unknown dims."""
    from igniter.verification.specs import checked_shapes, specs_of_module

    asked: Sequence[Mapping[str, int]] = (verify or {}).get("shapes") or ()
    specs = specs_of_module(module) if asked else []
    for shapes in asked:
        checked_shapes(specs, shapes)


def _save(c: Compilation, path: Path) -> None:
    from igniter.frontend import save_model

    with c.stage("write"):
        save_model(
            c.module,
            path,
            external_data_threshold=EXTERNAL_BYTES,
            hashed=True,
            oldest_ir=True,
            exact_integers=True,
        )


def _finish(artifact: Artifact, c: Compilation, original: Module, verify: Mapping[str, Any] | None, load: bool) -> None:
    """Verifies and loads a model before it replaces `output`, and adds the outcome and the times to its report. Raises
    `VerificationFailed` if an output differs, `NotLoaded` if ONNX Runtime does not load it."""
    from igniter.compiler.loading import not_loaded, require_loads

    try:
        if verify is not None:
            with c.stage("verify"):
                try:
                    _verify(artifact, original, verify)
                except VerificationFailed:
                    if artifact.loads or artifact.refusal is None:
                        raise
                    if load:
                        raise not_loaded(artifact.refusal, c) from artifact.refusal
                    artifact.report["verification"] = _unloaded(artifact.refusal)
        if load:
            with c.stage("load"):
                require_loads(artifact, c)
    finally:
        artifact.report["seconds"] = c.report_seconds()
        artifact.report["peak_memory"] = c.peak_memory


def _unloaded(error: Exception) -> dict[str, Any]:
    """Returns the outcome of a verification without a run."""
    from igniter.runtime.session import said_by_onnxruntime
    from igniter.verification.report import Verification

    return Verification((), cannot=f"the compiled model does not load: {said_by_onnxruntime(error)}").to_dict()


def _verify(artifact: Artifact, original: Module, verify: Mapping[str, Any]) -> None:
    """Calls `check`, with the original from memory if it is in no file."""
    from igniter.verification.report import Verification

    if artifact.source is None:
        try:
            artifact.source = original.to_onnx().SerializeToString()
        except IgniterError:
            cannot = "the original is in memory, and too large for a message: give the path of a file"
            artifact.report["verification"] = Verification((), cannot=cannot).to_dict()
            return
    check(artifact, verify)


def check(artifact: Artifact, verify: Mapping[str, Any]) -> None:
    """Verifies a compiled model and adds the outcome to its report; raises `VerificationFailed` if an output
    differs."""
    verification = artifact.verify(**verify)
    artifact.report["verification"] = verification.to_dict()
    if verification.status == "differs":
        failures = "; ".join(verification.failures[:3])
        raise VerificationFailed(
            f"the compiled model does not compute what the original computes: {failures}", verification
        )


def report(c: Compilation) -> dict[str, Any]:
    """Returns the contents of `report.json` for a compilation."""
    from igniter.runtime.library import versions
    from igniter.transforms.fusion.form_fusion_regions import summaries

    return {
        "versions": versions(),
        "options": c.options.to_dict(),
        "target": c.options.target,
        "machines": [m.to_dict() for m in c.machines],
        "nodes_before": c.nodes_before,
        "nodes_after": count_nodes(c.module),
        "kernels": len(c.kernels),
        "kernel_digest": kernel_digest(c.kernels),
        "regions": _region_count(c),
        "programs": [p.to_dict() for p in c.steps],
        "inputs": _input_dims(c),
        "left_to_onnxruntime": [node.to_dict() for node in nodes_left(c)],
        "seconds": c.report_seconds(),
        "peak_memory": c.peak_memory,
        "fusion": [{**s.to_dict(), "text": str(s)} for s in summaries(c.ctx.remarks)],
        "remarks": [r.to_dict() for r in c.ctx.remarks],
    }


def kernel_digest(kernels: Sequence[CompiledKernel]) -> str:
    """Returns a hash of the code of kernels, independent of the programs around them."""
    texts = sorted(text for kernel in kernels for text in kernel.variants)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _input_dims(c: Compilation) -> dict[str, list[str]]:
    """Returns the dims of the inputs, in the symbols used by the figures of programs."""
    from igniter.analysis.fusion.legality import as_tensor, has_dims
    from igniter.dialects.onnx.structure import main_graph
    from igniter.dialects.sym import dims_of

    graph = main_graph(c.module)
    types = [(name, as_tensor(arg.type)) for name, arg in zip(graph.input_names, graph.body.args, strict=True)]
    return {name: [str(d) for d in dims_of(t)] for name, t in types if t is not None and has_dims(t)}


def _region_count(c: Compilation) -> int:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.bound import is_exported

    own = (op for op in c.module.walk() if isinstance(op, OnnxOp) and op.domain.startswith("igniter."))
    return sum(not is_exported(op) for op in own)
