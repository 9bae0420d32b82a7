"""The methods of `Module` besides compilation: the toolbox in Python.

Each method is one verb of the command line (`docs/reference/toolbox.md`). A query returns frozen data and leaves the
module unchanged; an edit runs a pass of the same name in place and returns the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from igniter.analysis.onnx.input_places import by_symbol
from igniter.compiler.arguments import require_integer, require_sizes
from igniter.errors import IgniterError
from igniter.memory import collection_paused
from igniter.model_edits import ModelEdits
from igniter.passes import run_passes, run_pipeline
from igniter.toolbox.compress.compress_weights import CompressWeights
from igniter.toolbox.compress.correction import correct as correct_weights
from igniter.toolbox.diff.diff import diff_modules
from igniter.toolbox.edit.dims import name_by_place
from igniter.toolbox.fuse.fuse_pattern import FusePattern, keeps_types
from igniter.toolbox.plan.compiled import plan_compiled
from igniter.toolbox.plan.plan import plan_memory
from igniter.toolbox.plan.plan_values import Rules
from igniter.toolbox.profile.counting import count_model
from igniter.toolbox.shapes.shape_engine import ShapeEngine
from igniter.toolbox.shapes.shapes import model_shapes
from igniter.toolbox.shapes.sizes import given_sizes
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.transforms.onnx.infer_shapes import InferShapes

if TYPE_CHECKING:
    from igniter.toolbox.diff.diff import ModelDiff
    from igniter.toolbox.edit.verified import EditCheck
    from igniter.toolbox.plan.compiled import CompiledPlan
    from igniter.toolbox.plan.plan import MemoryPlan
    from igniter.toolbox.profile.profile import Profile
    from igniter.toolbox.quantize.calibration.histogram import Method
    from igniter.toolbox.quantize.calibration.quantizer import Quantization
    from igniter.toolbox.shapes.shapes import ModelShapes
    from igniter.toolbox.split.stages.manifest import Manifest


class ModelTools(ModelEdits):
    """The verbs of the toolbox, for `Module`."""

    def shapes(self) -> ModelShapes:
        """Returns the shape and type of every value, as expressions of the symbols of the inputs' dims. A dim without a
        name is called by its place: `x.0` is the first of `x`."""
        copy = onnx_level(self.ir)
        run_pipeline(self.ctx.clone(), copy, "inline-functions,infer-shapes", verify_each=False)
        name_by_place(copy)
        return model_shapes(copy)

    def shape_engine(self, values: Sequence[str] | None = None) -> ShapeEngine:
        """Returns an engine for the shapes of all values, or of the named ones, at any sizes, in microseconds."""
        return ShapeEngine(self.shapes(), values)

    def profile(self, sizes: Mapping[str, int] | None = None, *, sparsity: bool = False) -> Profile:
        """Counts the model's computation, memory and traffic, by node, op type, module and in total
        (docs/how-to/profile.md).

        Amounts are expressions in the symbols of the model, and numbers if `sizes` gives all of these. Weights are read
        only for `sparsity`. A dim without a name is called by its place: `x.0`, or `x:0`, is the first of `x`. Raises
        `IgniterError` for a size of an unknown symbol.
        """
        require_sizes("profile", "sizes", sizes)
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
        """Plans the memory of the model's activations: lifetimes, places and totals in bytes
        (docs/how-to/memory-plan.md).

        Amounts are expressions in the symbols of the model, and numbers if `sizes` gives all of these. `order` is ONNX
        Runtime's order of nodes (`ort`, or with its `execution_order=1` `ort-priority`), or the `model`'s. `inputs`
        counts the model's inputs too; `fold` treats values computed only from weights as weights; `views` and
        `in_place` let values share a buffer; buffers are multiples of `align` bytes. Raises `IgniterError` for a size
        of an unknown symbol.
        """
        require_sizes("plan", "sizes", sizes)
        require_integer("plan", "align", align)
        module = onnx_level(self.ir)
        run_pipeline(self.ctx.clone(), module, "inline-functions,infer-shapes", verify_each=False)
        given = by_symbol(module, sizes or {})
        places = name_by_place(module)
        given = {places.get(symbol, symbol): size for symbol, size in given.items()}
        return plan_memory(module, given, order, Rules(inputs, fold, views, in_place), align)

    def plan_compiled(self, sizes: Mapping[str, int] | None = None, *, target: str = "native") -> CompiledPlan:
        """Plans the memory of the model compiled for `target`: `graph` is the plan of ONNX Runtime's nodes, `arenas`
        has the values between the kernels of each program. The model is compiled, but not linked."""
        from igniter.module import Module

        require_sizes("plan_compiled", "sizes", sizes)
        return plan_compiled(cast("Module", self), sizes, target)

    def diff(self, other: ModelTools) -> ModelDiff:
        """Compares this model with `other`: nodes, weights, inputs and outputs, opsets and metadata. Nodes are matched
        independently of names and order. The result is false if the models are equal."""
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
        """Compiles the model for `target`, and writes a page on it: its graph, and its time and memory, measured with
        `threads` threads on generated inputs of `sizes` (docs/how-to/report.md). Raises `VerificationFailed` if an
        output differs."""
        from igniter.module import Module
        from igniter.toolbox.report.make import report_module

        require_sizes("report", "sizes", sizes)
        report_module(cast("Module", self), Path(output), sizes, threads, target, verify)

    def compute_graph(self, sizes: Mapping[str, int] | None = None) -> Self:
        """Removes nodes used only for shapes, in place. With `sizes`, one for each symbol of the inputs' dims, all dims
        derived from the inputs' are fixed.

        A shape stays computed if a constant operand, 0 or -1 cannot express it; a remark of `drop-shape-nodes` reports
        it. Calls of functions are inlined.
        """
        require_sizes("compute_graph", "sizes", sizes)
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
        """Replaces the instances of a pattern, in place: by calls of a function of the model made of the original
        nodes, or by the op `into` (`"com.microsoft.Gelu"`; `"default"` for the op named in the pattern).

        `pattern` is a file, or the name of a file of Igniter's. Without a match `IgniterError` describes the nearest
        one; otherwise remarks of `fuse-pattern` list the instances.
        """
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
        correct: Literal["none", "gptq"] = "none",
        data: Any = None,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Stores weights as `f16`, `bf16`, `int8` or `int4`, in place (`docs/how-to/compression.md`); returns the
        module.

        `granularity` is the unit with one scale: `tensor`, `channel`, or `block:32` for blocks of 32. `only` and
        `leave` are patterns (`*` and `?`) of names of weights, and of names and op types of their readers. Weights of
        fewer than `min_elements` elements stay. `standard` excludes ops of com.microsoft; `accuracy_level` is
        MatMulNBits' attribute. With `correct="gptq"`, codes keep the products over the samples `data`, which are given
        as to `quantize`. Remarks of the pass `compress-weights` report each weight, with its error unless `measure` is
        false. Raises `IgniterError` if nothing could be compressed, and for a pattern without a match.
        """
        chosen = CompressWeights(
            weights, granularity, symmetric, tuple(only), tuple(leave), min_elements, standard, accuracy_level, measure
        )
        if (data is None) != (correct == "none"):
            raise IgniterError("samples are for a correction: give both data and correct='gptq', or neither")
        if correct == "none":
            run_passes(self.ctx, self.ir, (InferShapes(), chosen))
        else:
            run_passes(self.ctx, self.ir, (InferShapes(),))
            plans = correct_weights(self.ir, chosen.plans(self.ir), data, progress or (lambda _: None))
            chosen.rewrite(self.ctx, self.ir, plans)
            self.ir.verify()
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
        """Computes products and convolutions on quantised tensors, in place (`docs/how-to/quantization.md`).

        `data` are samples: a `.npz` file, a folder of them, `module:function`, a list of mappings of inputs by name, or
        a generator function of them, called several times. `calibrate` is `min-max`, `entropy`, `percentile` or
        `distribution`, or `best`, the one with the least error; `percentile` is for the third. `ops` are op types, and
        `only` and `leave` patterns of names and op types of nodes. With `max_error`, nodes stay in float until the
        error of every output over the samples (the root of the mean square, relative to the output's) is no larger.
        With `correct`, biases compensate the mean error of each channel. Returns ranges, errors and choices.
        """
        from igniter.toolbox.quantize.calibration.quantizer import Asked, quantize_module
        from igniter.toolbox.quantize.quantize_model import Style, require_opset

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
        """Writes the model as `stages` of a pipeline into a folder, with even `flops`, `bytes` or `time` at the given
        sizes (64 by default); `slack` allows a more expensive stage if it reduces the bytes between stages. Returns the
        manifest, and the comparison of the stages with the whole model.
        `igniter.toolbox.split.stages.workers.ProcessStages` runs them."""
        from igniter.toolbox.split.stages.splitting import split_model

        require_sizes("split", "sizes", sizes)
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
        """Writes a model for each of several ranks into a folder; the ranks share the products with weights
        (`shard-products`). Returns the manifest, and the comparison of the ranks with the whole model."""
        from igniter.toolbox.split.stages.splitting import split_products

        return split_products(self, folder, ranks, alone, verify=verify, seed=seed)
