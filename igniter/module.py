"""The model as an object: `Module`, and the two functions that make one, `load` and `parse`."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from igniter.analysis.machine import pass_figures
from igniter.analysis.typical_sizes import give_module_sizes
from igniter.compiler.arguments import (
    require_compile_arguments,
    require_observers,
    require_path,
    require_sizes,
    require_text,
)
from igniter.compiler.artifact import Artifact
from igniter.compiler.bounded import Bounds, compile_bounded
from igniter.compiler.compilation import Compilation, CompileOptions, chosen_options
from igniter.compiler.compile_model import compile_model
from igniter.compiler.driver import count_nodes
from igniter.compiler.measuring.request import Measure
from igniter.context import IgniterContext
from igniter.dialects.onnx import building
from igniter.dialects.onnx.structure import GraphOp
from igniter.errors import IgniterError
from igniter.frontend import export_model, fits_message, import_model, save_model, why_invalid
from igniter.memory import collection_paused
from igniter.model_tools import ModelTools
from igniter.passes import PassError, run_pipeline
from igniter.remarks import Remarks
from igniter.reproducers import Recorder
from igniter.runtime.cache import default_cache
from igniter.runtime.session import SessionError
from igniter.targets import described_machines
from igniter.toolbox.html import module_html
from igniter.toolbox.reproducing import parse_ir
from igniter.transforms.fusion.inline_regions import onnx_level

if TYPE_CHECKING:
    import onnx

    from igniter.compiler.compilation import Inputs, Machine
    from igniter.compiler.measuring.request import Asked
    from igniter.observation import PassObserver

    Model: TypeAlias = "str | PathLike[str] | bytes | onnx.ModelProto"


class NotAModel(IgniterError, TypeError):
    """Raised if `load` gets an object that is no model."""

    code = "IGN0004"


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
        observers: Sequence[PassObserver] = (),
        reproducer: str | PathLike[str] | None = None,
    ) -> Self:
        """Runs a pipeline (`"infer-shapes,form-fusion-regions{...}"`) over the IR, in place.

        Passes work for the CPU `target`; `machine` overrides its figures. Without either they work for a typical
        machine with AVX-512. `sizes` are typical sizes of the module's symbols. `observers` are called around every
        pass; those of `igniter.observation` see the passes that run kernel by kernel, too. With `reproducer`, a failure
        leaves the IR before the failing pass and the rest of the pipeline in this file (.mlir).
        """
        require_text("run_passes", "pipeline", pipeline, " with commas between the passes ('infer-shapes,cse')")
        require_sizes("run_passes", "sizes", sizes)
        require_observers("run_passes", observers)
        give_module_sizes(self.ir, sizes or {})
        watched: Mapping[str, Any] = {"verify_each": verify_each, "observers": tuple(observers)}
        recorder = None if reproducer is None else Recorder(str(reproducer))
        if target is None and machine is None:
            ctx = self.ctx.on(self.ctx.machine, None, sizes)
            ctx.recorder = recorder
            run_pipeline(ctx, self.ir, pipeline, **watched)
            return self
        machines = described_machines(target, machine)
        ctx = self.ctx.on(machines[0], None, sizes)
        ctx.recorder = recorder
        run_pipeline(ctx, self.ir, pipeline, figures=pass_figures(machines), **watched)
        return self

    def clone(self) -> Module:
        """Returns a copy; passes over it leave this module unchanged."""
        copy = Module(building.clone(self.ir), self.ctx.clone(), self.source)
        copy.external, copy.edits = set(self.external), self.edits
        return copy

    def to_onnx(self) -> onnx.ModelProto:
        """Returns the model as a `ModelProto`, with fusion regions inlined and without kernels."""
        return export_model(self._onnx_level())

    def save(self, path: str | PathLike[str], *, keep_weights: bool = False) -> None:
        """Writes the model as an ONNX file. With `keep_weights`, weights in external data files in the folder of `path`
        stay in these files, and the model refers to them."""
        save_model(self._onnx_level(), path, keep=self.external if keep_weights else ())

    def _onnx_level(self) -> ModuleOp:
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
        subnormals: str = "flush",
        tile_weights: str = "load",
        fusion_author: str = "",
        passes: str = "",
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
        debug_info: bool = False,
        progress: Callable[[str], None] | None = None,
        measure: Asked = False,
        threads: int = 1,
        observers: Sequence[PassObserver] = (),
        max_memory: int | str | None = None,
        max_seconds: float | None = None,
    ) -> Artifact:
        """Compiles a copy of the model, and checks the result against ONNX Runtime unless `verify` is false.

        The folder `output` receives the rewritten model, its library and a report; without one the artifact lives in a
        temporary folder as long as the object. `machine` overrides figures of the target's machine: a file written by
        `igniter machine -o`, or values by name. `sizes` are typical sizes of symbolic dims; schedules are optimised for
        them, and the code is correct for all sizes. `precision` is f32, or on request bf16 or int8-dynamic for products
        with weights. `winograd` selects the convolutions of 3 x 3 computed in tiles: `auto` the profitable ones, 2 or 4
        the same with at most this number of results in a tile along each axis, `on` all possible ones, `off` none.
        Their transformed weights are computed when a session is created (`tile_weights` is load) or stored (file).
        `subnormals` is flush to write subnormal weights as 0, flush-values to take subnormal values in kernels for 0
        too, or keep.
        `shapes`, `inputs`, `rtol`, `atol`, `seed` and `budget` (seconds) are passed to the verification
        (`Artifact.verify`). `VerificationFailed` names the differing output, and leaves `output` unchanged; if nothing
        could be compared, the report says so. Unless `load` is false, ONNX Runtime loads a result for this machine,
        verified or not; `NotLoaded` names the refused node, and nothing is written. `strict` forbids nodes left to ONNX
        Runtime for want of a kernel; with `sanitize`, every access of a kernel checks its address at run time; with
        `debug_info`, the library names the ONNX nodes of each kernel for debuggers and profilers (DWARF).
        `fusion_author` selects the author of fusion (`NAME` or `NAME{option=value ...}`). `passes` edits the pipeline:
        `with my-pass after canonicalize-onnx` (`igniter.pipeline_text`). `observers` are called around every pass, in
        this process alone; the passes of kernels from the cache do not run. With `measure`, each region
        is timed beside ONNX Runtime on this machine, with `threads` threads, at `shapes` or on `inputs`, or else at
        `sizes`; regions without which the whole model is faster are left to it. `"again"` ignores earlier outcomes in
        the cache. See `igniter.compiler.measuring`. With `max_memory` (bytes, or `2G`) or `max_seconds`, another
        process compiles, and is ended with `BoundReached` beyond them (`igniter.compiler.bounded`); `igniter.compile`
        then reads the model there as well.
        """
        given: dict[str, Any] = {"shapes": shapes, "inputs": inputs, "rtol": rtol, "atol": atol, "seed": seed}
        texts = {"target": target, "precision": precision, "subnormals": subnormals, "tile_weights": tile_weights}
        texts |= {"fusion_author": fusion_author, "passes": passes}
        others = {"sizes": sizes, "budget": budget, "threads": threads, "observers": observers, "options": options}
        require_path("compile", "output", output)
        bounded = {"max_memory": max_memory, "max_seconds": max_seconds}
        require_compile_arguments("compile", {**given, **texts, **others, **bounded})
        bounds = Bounds.of(max_memory, max_seconds)
        if bounds is not None:
            flags: dict[str, Any] = {
                "verify": verify,
                "load": load,
                "cache": cache,
                "strict": strict,
                "debug_info": debug_info,
            }
            flags |= {"machine": machine, "winograd": winograd, "sanitize": sanitize, "measure": measure}
            flags["progress"] = progress
            return compile_bounded(self._as_source(), output, {**given, **texts, **others, **flags}, bounds)
        asked = Measure.of(measure, threads)
        chosen = chosen_options(
            options,
            target=target,
            machine=machine,
            sizes=sizes,
            precision=precision,
            winograd=winograd,
            subnormals=subnormals,
            tile_weights=tile_weights,
            fusion_author=fusion_author,
            sanitize=sanitize,
            passes=passes,
            debug_info=debug_info,
        )
        original = self.with_graph()
        copy = original.clone()
        strict = strict or original is not self
        compilation = Compilation(copy.ir, chosen, copy.ctx, strict=strict, progress=progress or (lambda _: None))
        compilation.observers = tuple(observers)
        if cache:
            compilation.cache = default_cache()
        if self.import_seconds:
            compilation.seconds["import"] = self.import_seconds
        if budget is not None:
            given["budget"] = budget
        # An edited model is its own reference: its inputs and outputs may differ from the file's.
        source = None if self.edits else self.source
        with blaming(self.source):
            if asked is not None:
                from igniter.compiler.measuring.measure import with_measured

                compilation = with_measured(compilation, original.ir, source, given, asked)
            return compile_model(compilation, source, original.ir, output, given if verify else None, load)

    def _as_source(self) -> Model:
        """Returns the present model for another process, as bytes."""
        return export_model(onnx_level(self.with_graph().ir)).SerializeToString()

    def with_graph(self) -> Module:
        """Returns this module; for a function of `linalg`, or its kernel, a copy with a graph around the kernel."""
        if any(isinstance(op, GraphOp) for op in self.ir.ops):
            return self
        copy = self.clone()
        if any(op.name == "func.func" for op in self.ir.walk()):
            copy.run_passes("lower-linalg-to-loop")
        return copy.run_passes("form-kernel-graph")

    def __str__(self) -> str:
        return str(self.ir)

    def __repr__(self) -> str:
        where = "a model in memory" if self.source is None or isinstance(self.source, bytes) else str(self.source)
        return f"<igniter.Module of {where}: {count_nodes(self.ir)} nodes>"

    def _repr_html_(self) -> str:
        """Returns the graph with its regions, for notebooks."""
        return module_html(self.ir, repr(self)[1:-1])


def load(model: Model) -> Module:
    """Loads an ONNX model: a path, the bytes of a file, or a `ModelProto`. Weights stay in their file.

    A path ending in `.mlir` is the text of a module.
    """
    if isinstance(model, (str, PathLike)) and str(model).endswith(".mlir"):
        return parse(Path(cast("str", model)).read_text(encoding="utf-8"), str(model))

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    source: str | Path | bytes | None = None
    if not isinstance(cast("object", model), (bytes, str, PathLike)) and not hasattr(model, "SerializeToString"):
        raise NotAModel(
            f"load takes the path of a model (.onnx) or of IR (.mlir), the bytes of a model, or an onnx.ModelProto, "
            f"not {type(model).__name__} ({model!r:.60})"
        )
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


def parse(text: str, name: str = "<text>") -> Module:
    """Parses a module from `text`, in the syntax of `str(module)`; errors call the text `name`."""
    ctx = IgniterContext()
    ctx.remarks.enabled = True
    try:
        return Module(parse_ir(ctx, text, name), ctx)
    except ParseError as error:
        raise IgniterError(str(error).strip()) from error


@contextmanager
def blaming(model: str | Path | bytes | None) -> Generator[None]:
    """Replaces a pass's error by one about the invalid node, if the model is invalid.

    A model is checked only after a failure; errors with other causes are raised unchanged.
    """
    try:
        yield
    except Exception as error:  # raised again, or explained by the checker
        if model is None or (isinstance(error, IgniterError) and not isinstance(error, (PassError, SessionError))):
            raise
        why = why_invalid(model)
        if why is None:
            raise
        what = "the model" if isinstance(model, bytes) else str(model)
        raise IgniterError(f"{what} is not a valid model: {why}") from error
