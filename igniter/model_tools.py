"""What a `Module` can say of its model, and do to it, besides compiling: the toolbox in Python.

Each method is one verb of the command line (`docs/toolbox.md`). Those that look return frozen data and leave the module
as it is; those that change it run a pass of the same name in place and return the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from igniter.model_edits import ModelEdits

if TYPE_CHECKING:
    from igniter.analysis.model.diff import ModelDiff
    from igniter.analysis.model.plan import MemoryPlan
    from igniter.analysis.model.profile import Profile
    from igniter.analysis.model.shape_engine import ShapeEngine
    from igniter.analysis.model.shapes import ModelShapes
    from igniter.runtime.calibration.histogram import Method
    from igniter.runtime.calibration.quantizer import Quantization
    from igniter.runtime.compiled_plan import CompiledPlan
    from igniter.runtime.stages.manifest import Manifest
    from igniter.runtime.verification.edited import EditCheck


class ModelTools(ModelEdits):
    """The verbs of the toolbox, for `Module`."""

    def shapes(self) -> ModelShapes:
        """The shape and type of every value, as expressions of the symbols of the inputs' dims. A dim without a name is
        called by its place: `x.0` is the first of `x`."""
        from igniter.analysis.model.shapes import model_shapes
        from igniter.passes import run_pipeline
        from igniter.transforms.edit.dims import name_by_place
        from igniter.transforms.fusion.inline_regions import onnx_level

        copy = onnx_level(self.ir)
        run_pipeline(self.ctx.clone(), copy, "inline-functions,infer-shapes", verify_each=False)
        name_by_place(copy)
        return model_shapes(copy)

    def shape_engine(self, values: Sequence[str] | None = None) -> ShapeEngine:
        """What tells the shapes of all values, or of those named, at any sizes, in microseconds."""
        from igniter.analysis.model.shape_engine import ShapeEngine

        return ShapeEngine(self.shapes(), values)

    def profile(self, sizes: Mapping[str, int] | None = None, *, sparsity: bool = False) -> Profile:
        """What the model computes, holds and moves, by node, op type, module and in total (docs/profile.md).

        Amounts are expressions in the symbols of the model, and numbers where `sizes` gives all of these. Weights are
        read only for `sparsity`. A dim without a name is called by its place: `x.0`, or `x:0`, is the first of `x`.
        `IgniterError` for a size of a symbol that the model has not.
        """
        from igniter.analysis.model.counting import count_model
        from igniter.analysis.model.input_places import by_symbol
        from igniter.analysis.model.sizes import given_sizes
        from igniter.memory import collection_paused
        from igniter.passes import run_pipeline
        from igniter.transforms.edit.dims import name_by_place
        from igniter.transforms.fusion.inline_regions import onnx_level

        with collection_paused():
            module = onnx_level(self.ir)
            run_pipeline(self.ctx.clone(), module, "inline-functions,infer-shapes", verify_each=False)
            given = by_symbol(module, sizes or {})
            places = name_by_place(module)
            given = {places.get(symbol, symbol): size for symbol, size in given.items()}
            found = count_model(module, given, sparsity)
        return found.at(given_sizes(found, given))

    def plan(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        order: str = "ort",
        inputs: bool = False,
        fold: bool = True,
        views: bool = True,
        in_place: bool = True,
        align: int = 64,
    ) -> MemoryPlan:
        """The memory of the model's activations: lifetimes, places and totals in bytes (docs/memory-plan.md).

        Amounts are expressions in the symbols of the model, and numbers where `sizes` gives all of these. Nodes are in
        the `order` in which ONNX Runtime runs them (`ort`, or with its `execution_order=1` `ort-priority`), or as the
        `model` has them. `inputs` counts the model's inputs too; `fold` takes what only weights lead to for weights;
        `views` and `in_place` let values share a buffer; buffers are multiples of `align` bytes. `IgniterError` for a
        size of a symbol that the model does not have.
        """
        from igniter.analysis.model.input_places import by_symbol
        from igniter.analysis.model.plan import plan_memory
        from igniter.analysis.model.plan_values import Rules
        from igniter.passes import run_pipeline
        from igniter.transforms.edit.dims import name_by_place
        from igniter.transforms.fusion.inline_regions import onnx_level

        module = onnx_level(self.ir)
        run_pipeline(self.ctx.clone(), module, "inline-functions,infer-shapes", verify_each=False)
        given = by_symbol(module, sizes or {})
        places = name_by_place(module)
        given = {places.get(symbol, symbol): size for symbol, size in given.items()}
        return plan_memory(module, given, order, Rules(inputs, fold, views, in_place), align)

    def plan_compiled(self, sizes: Mapping[str, int] | None = None, *, target: str = "native") -> CompiledPlan:
        """The memory of the model as Igniter runs it on `target`: `graph` is the plan of what ONNX Runtime runs,
        `arenas` has what passes between the kernels of each program. The model is compiled for it, but not linked."""
        from typing import cast

        from igniter.api import Module
        from igniter.runtime.compiled_plan import plan_compiled

        return plan_compiled(cast("Module", self), sizes, target)

    def diff(self, other: ModelTools) -> ModelDiff:
        """What differs from this model to `other`: nodes, weights, inputs and outputs, opsets and metadata. Nodes are
        matched whatever they are called and wherever they stand. False where nothing does."""
        from igniter.analysis.model.diff import diff_modules
        from igniter.transforms.fusion.inline_regions import onnx_level

        return diff_modules(onnx_level(self.ir), onnx_level(other.ir))

    def report(
        self,
        output: str | PathLike[str],
        sizes: Mapping[str, int] | None = None,
        *,
        threads: int = 1,
        target: str = "native",
        verify: bool = True,
    ) -> None:
        """Compile the model for `target`, and write a page on it: its graph, and where time and memory go, measured
        with so many threads on made inputs of `sizes` (docs/report.md). `VerificationFailed` where an output differs.
        """
        from typing import cast

        from igniter.api import Module
        from igniter.runtime.report.make import report_module

        report_module(cast("Module", self), Path(output), sizes, threads, target, verify)

    def compute_graph(self, sizes: Mapping[str, int] | None = None) -> Self:
        """Drops the nodes that only compute shapes, in place. With `sizes`, one for each symbol of the inputs' dims,
        all dims that follow from the inputs' are fixed.

        What a constant operand, 0 or -1 cannot say stays computed, and remarks of `drop-shape-nodes` say so. Calls of
        functions are inlined.
        """
        from igniter.analysis.model.input_places import by_symbol
        from igniter.passes import run_pipeline

        fixed = ",".join(f"{name}={size}" for name, size in by_symbol(self.ir, sizes or {}).items())
        steps = ["inline-functions", "infer-shapes"]
        if fixed:
            steps += [f'fix-symbols{{sizes="{fixed}"}}', "infer-shapes"]
        steps += ["fold-constants{weights=false}", "drop-shape-nodes", "eliminate-dead-nodes", "infer-shapes"]
        run_pipeline(self.ctx, self.ir, ",".join(steps))
        if fixed:
            self._forget_original()
        return self

    def fuse(self, pattern: str | PathLike[str], into: str = "") -> Self:
        """Replaces the instances of a pattern, in place: by calls of a function of the model that is made of the nodes
        that were there, or by the op `into` (`"com.microsoft.Gelu"`; `"default"` for the one that the pattern names).

        `pattern` is a file, or the name of one that comes with Igniter. `IgniterError` says what came nearest where
        nothing matches; where something does, remarks of `fuse-pattern` do.
        """
        from igniter.errors import IgniterError
        from igniter.passes import run_passes
        from igniter.transforms.edit.fuse_pattern import FusePattern, keeps_types
        from igniter.transforms.onnx.infer_shapes import InferShapes

        told, name = len(self.ctx.remarks), FusePattern.name
        before = self.ctx.rewrites.made.get(name, 0)
        first = () if keeps_types(self.ir) else (InferShapes(),)
        run_passes(self.ctx, self.ir, (*first, FusePattern(str(pattern), into)))
        if self.ctx.rewrites.made.get(name, 0) == before:
            said = [r for r in list(self.ctx.remarks)[told:] if r.pass_name == name]
            nearest = "; ".join(f"'{r.node}': {r.message}" for r in said if r.kind == "missed")
            raise IgniterError(f"nothing in the model matches {pattern}: {nearest or 'no two nodes of it are there'}")
        return self

    def compress(
        self,
        weights: str,
        granularity: str = "channel",
        *,
        symmetric: bool = False,
        only: Sequence[str] = (),
        leave: Sequence[str] = (),
        min_elements: int = 4096,
        standard: bool = False,
        accuracy_level: int = 0,
        measure: bool = True,
    ) -> Self:
        """Store weights as `f16`, `bf16`, `int8` or `int4`, in place (`docs/compression.md`); returns the module.

        `granularity` is what has a scale of its own: `tensor`, `channel`, or `block:32` for blocks of 32. `only` and
        `leave` are patterns (`*` and `?`) of names of weights, and of names and op types of the nodes that read them.
        Weights of fewer than `min_elements` elements stay. With `standard` there are no ops of com.microsoft;
        `accuracy_level` is that of MatMulNBits. What became of each weight, with its error unless `measure` is false,
        is a remark of the pass `compress-weights`. `IgniterError` where nothing could be compressed, and for a pattern
        that names nothing.
        """
        from igniter.passes import run_passes
        from igniter.transforms.edit.compress_weights import CompressWeights
        from igniter.transforms.onnx.infer_shapes import InferShapes

        chosen = CompressWeights(
            weights, granularity, symmetric, tuple(only), tuple(leave), min_elements, standard, accuracy_level, measure
        )
        run_passes(self.ctx, self.ir, (InferShapes(), chosen))
        self._forget_original()
        return self

    def quantize(
        self,
        data: Any,
        *,
        calibrate: Method | Literal["best"] = "min-max",
        percentile: float = 99.999,
        activations: str = "u8",
        symmetric: bool = False,
        granularity: str = "channel",
        asymmetric_weights: bool = False,
        ops: Sequence[str] = (),
        only: Sequence[str] = (),
        leave: Sequence[str] = (),
        max_error: float | None = None,
        correct: bool = True,
        equalize: bool = True,
        held: Any = None,
        progress: Callable[[str], None] | None = None,
    ) -> Quantization:
        """Have products and convolutions compute on quantised tensors, in place (`docs/quantization.md`).

        `data` are samples: a `.npz` file, a folder of them, `module:function`, a list of mappings of inputs by name, or
        a function that yields them, which is called several times. `calibrate` is `min-max`, `entropy`, `percentile`
        or `distribution`, or `best`, of all of them what has the least error; `percentile` is for the third. `ops` are
        op types, and `only` and `leave` patterns of names and op types of nodes. With `max_error`, nodes stay in float
        until the error of every output over the samples (the root of the mean square, relative to that of the output)
        is no larger. With `correct`, biases make up for the mean error of each channel. Returns ranges, errors and
        choices.
        """
        from igniter.passes import run_passes
        from igniter.runtime.calibration.quantizer import Asked, quantize_module
        from igniter.transforms.edit.quantize_model import Style, require_opset
        from igniter.transforms.onnx.infer_shapes import InferShapes

        style = Style(activations, symmetric, granularity, asymmetric_weights)
        names = tuple(ops), tuple(only), tuple(leave)
        asked = Asked(calibrate, percentile, style, *names, max_error, correct, equalize, held)
        require_opset(self.ir, style.checked())
        run_passes(self.ctx, self.ir, (InferShapes(),))
        found = quantize_module(self.ir, data, asked, progress or (lambda _: None))
        self._forget_original()
        return found

    def split(
        self,
        folder: str | PathLike[str],
        stages: int,
        balance: str = "flops",
        *,
        sizes: Mapping[str, int] | None = None,
        slack: float = 0.0,
        verify: bool = True,
        seed: int = 0,
    ) -> tuple[Manifest, EditCheck | None]:
        """Write the model as `stages` of a pipeline into a folder, with even `flops`, `bytes` or `time` at the given
        sizes (64 where none is given); `slack` allows a dearer stage where fewer bytes flow then. Returns the manifest,
        and how the stages compare with the whole model. `igniter.runtime.stages.workers.ProcessStages` runs them."""
        from igniter.runtime.stages.splitting import split_model

        return split_model(self, folder, stages, balance, dict(sizes or {}), slack, verify=verify, seed=seed)

    def split_products(
        self,
        folder: str | PathLike[str],
        ranks: int,
        alone: bool = True,
        *,
        verify: bool = True,
        seed: int = 0,
    ) -> tuple[Manifest, EditCheck | None]:
        """Write a model for each of several ranks that share the products with weights (`shard-products`) into a
        folder. Returns the manifest, and how the ranks compare with the whole model."""
        from igniter.runtime.stages.splitting import split_products

        return split_products(self, folder, ranks, alone, verify=verify, seed=seed)
