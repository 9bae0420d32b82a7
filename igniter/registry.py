"""Every dialect, pass and op family by name, each as a string with its module and attribute.

Nothing is imported before its use: a tool can list or look up a name at no cost. A package outside Igniter adds its own
through entry points, consulted only for names not found here; so do files and folders that are not installed
(`igniter.plugin_files`):

    [project.entry-points."igniter.passes"]
    my-pass = "my_package.my_pass:MyPass"

The groups are `igniter.dialects` (an xDSL `Dialect`), `igniter.passes` (a `ModulePass` class), `igniter.pipelines` (a
tuple of passes, as text), `igniter.ops` (a module that registers `OpSpec`s when it is imported), `igniter.patterns` (a
table of rules for `recompose`), `igniter.fusion_authors` (a `FusionAuthor` class), `igniter.schedule_authors` (a
`ScheduleAuthor` class), `igniter.micro_kernels` (a `CpuMicroKernel`) and `igniter.backends` (a `Backend` class).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from igniter.crashes import crash_text
from igniter.errors import IgniterError, did_you_mean
from igniter.plugin_files import Plugin, digest_of, load_plugins

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

SCHEMAS = "igniter.frontend.schemas"
"""The module with the schemas of ONNX ops."""

DIALECTS: dict[str, str] = {
    "affine": "xdsl.dialects.affine:Affine",
    "arith": "igniter.dialects.arith:Arith",
    "builtin": "xdsl.dialects.builtin:Builtin",
    "cf": "xdsl.dialects.cf:Cf",
    "func": "xdsl.dialects.func:Func",
    "fusion": "igniter.dialects.fusion:Fusion",
    "index": "igniter.dialects.index:Index",
    "linalg": "igniter.dialects.linalg:Linalg",
    "loop": "igniter.dialects.loop:Loop",
    "math": "igniter.dialects.math:Math",
    "memref": "xdsl.dialects.memref:MemRef",
    "onnx": "igniter.dialects.onnx:Onnx",
    "ort": "igniter.dialects.ort:Ort",
    "scf": "xdsl.dialects.scf:Scf",
    "sym": "igniter.dialects.sym:Sym",
    "tensor": "igniter.dialects.tensor:Tensor",
    "test": "xdsl.dialects.test:Test",
    "tt": "igniter.dialects.triton:Triton",
    "vector": "xdsl.dialects.vector:Vector",
}

PASSES: dict[str, str] = {
    "abstract-dims": "igniter.transforms.conversion.abstract_dims:AbstractDims",
    "apply-tuned-schedules": "igniter.transforms.structured.apply_tuned_schedules:ApplyTunedSchedules",
    "bind-values": "igniter.transforms.onnx.bind_values:BindValues",
    "canonicalize": "xdsl.transforms.canonicalize:CanonicalizePass",
    "canonicalize-loop": "igniter.transforms.structured.canonicalize_loop:CanonicalizeLoop",
    "canonicalize-onnx": "igniter.transforms.onnx.canonicalize_onnx:CanonicalizeOnnx",
    "change-types": "igniter.toolbox.edit.change_types:ChangeTypes",
    "check-bounds": "igniter.transforms.structured.check_bounds:CheckBounds",
    "choose-layouts": "igniter.transforms.fusion.choose_layouts:ChooseLayouts",
    "choose-schedule": "igniter.transforms.structured.choose_schedule:ChooseSchedule",
    "choose-splits": "igniter.transforms.structured.choose_splits:ChooseSplits",
    "collapse-axes": "igniter.transforms.structured.collapse_axes:CollapseAxes",
    "compile-draws": "igniter.transforms.onnx.compile_draws:CompileDraws",
    "compress-weights": "igniter.toolbox.compress.compress_weights:CompressWeights",
    "convert-opset": "igniter.toolbox.edit.convert_opset:ConvertOpset",
    "copy-dequantized": "igniter.transforms.onnx.copy_dequantized:CopyDequantized",
    "cse": "xdsl.transforms.common_subexpression_elimination:CommonSubexpressionElimination",
    "dce": "xdsl.transforms.dead_code_elimination:DeadCodeElimination",
    "deduplicate-kernels": "igniter.transforms.structured.deduplicate_kernels:DeduplicateKernels",
    "drop-checks": "igniter.transforms.structured.drop_checks:DropChecks",
    "drop-nodes": "igniter.toolbox.edit.drop_nodes:DropNodes",
    "drop-shape-nodes": "igniter.toolbox.shapes.drop_shape_nodes:DropShapeNodes",
    "elide-weights": "igniter.transforms.onnx.elide_weights:ElideWeights",
    "eliminate-common-nodes": "igniter.transforms.onnx.eliminate_common_nodes:EliminateCommonNodes",
    "eliminate-dead-nodes": "igniter.transforms.onnx.eliminate_dead_nodes:EliminateDeadNodes",
    "expand-quantized": "igniter.transforms.onnx.expand_quantized:ExpandQuantized",
    "expose-values": "igniter.toolbox.edit.expose_values:ExposeValues",
    "extract-part": "igniter.toolbox.extract.extract_part:ExtractPart",
    "fix-symbols": "igniter.toolbox.shapes.fix_symbols:FixSymbols",
    "flatten-depth": "igniter.transforms.structured.flatten_depth:FlattenDepth",
    "flatten-rows": "igniter.transforms.structured.flatten_rows:FlattenRows",
    "flush-subnormals": "igniter.transforms.onnx.flush_subnormals:FlushSubnormals",
    "fold-constants": "igniter.transforms.onnx.fold_constants:FoldConstants",
    "fold-conversions": "igniter.transforms.structured.fold_conversions:FoldConversions",
    "fold-packs": "igniter.transforms.fusion.fold_packs:FoldPacks",
    "form-block-products": "igniter.transforms.onnx.form_block_products:FormBlockProducts",
    "form-fma": "igniter.transforms.structured.form_fma:FormFma",
    "form-fusion-regions": "igniter.transforms.fusion.form_fusion_regions:FormFusionRegions",
    "form-half-products": "igniter.transforms.onnx.form_half_products:FormHalfProducts",
    "form-integer-products": "igniter.transforms.onnx.form_integer_products:FormIntegerProducts",
    "form-kernel-graph": "igniter.transforms.fusion.form_kernel_graph:FormKernelGraph",
    "form-ort-library": "igniter.transforms.scheduled.form_ort_library:FormOrtLibrary",
    "form-programs": "igniter.transforms.fusion.form_programs:FormPrograms",
    "form-rims": "igniter.transforms.structured.form_rims:FormRims",
    "form-subpixel-convolutions": "igniter.transforms.onnx.form_subpixel_convolutions:FormSubpixelConvolutions",
    "form-variants": "igniter.transforms.structured.form_variants:FormVariants",
    "free-dims": "igniter.toolbox.edit.free_dims:FreeDims",
    "fuse-loops": "igniter.transforms.scheduled.fuse_loops:FuseLoops",
    "fuse-pattern": "igniter.toolbox.fuse.fuse_pattern:FusePattern",
    "guard-assumptions": "igniter.transforms.fusion.guard_assumptions:GuardAssumptions",
    "hoist-selections": "igniter.transforms.onnx.hoist_selections:HoistSelections",
    "hoist-zero-points": "igniter.transforms.onnx.hoist_zero_points:HoistZeroPoints",
    "infer-shapes": "igniter.transforms.onnx.infer_shapes:InferShapes",
    "inline-failed-regions": "igniter.transforms.fusion.inline_failed_regions:InlineFailedRegions",
    "inline-functions": "igniter.transforms.onnx.inline_functions:InlineFunctions",
    "inline-masks": "igniter.transforms.structured.inline_masks:InlineMasks",
    "inline-nests": "igniter.transforms.structured.inline_nests:InlineNests",
    "inline-regions": "igniter.transforms.fusion.inline_regions:InlineRegions",
    "insert-nodes": "igniter.toolbox.edit.insert_nodes:InsertNodes",
    "keep-last": "igniter.toolbox.edit.keep_last:KeepLast",
    "lift-constants": "igniter.transforms.fusion.lift_constants:LiftConstants",
    "lower-linalg-to-loop": "igniter.transforms.conversion.lower_linalg_to_loop:LowerLinalgToLoop",
    "lower-onnx-to-loop": "igniter.transforms.conversion.lower_onnx_to_loop:LowerOnnxToLoopPass",
    "lower-precision": "igniter.transforms.onnx.lower_precision:LowerPrecision",
    "lower-programs": "igniter.transforms.conversion.lower_programs:LowerPrograms",
    "lower-to-loops": "igniter.transforms.conversion.lower_to_loops:LowerToLoops",
    "lower-to-triton": "igniter.transforms.conversion.lower_to_triton:LowerToTriton",
    "make-at-load": "igniter.transforms.fusion.make_at_load:MakeAtLoad",
    "mark-batches": "igniter.transforms.fusion.mark_batches:MarkBatches",
    "narrow-convolutions": "igniter.transforms.fusion.narrow_convolutions:NarrowConvolutions",
    "order-dims": "igniter.transforms.structured.order_dims:OrderDims",
    "order-weights": "igniter.transforms.fusion.order_weights:OrderWeights",
    "pack-operands": "igniter.transforms.structured.pack_operands:PackOperands",
    "pack-weights": "igniter.transforms.fusion.pack_weights:PackWeights",
    "parallelize-loops": "igniter.transforms.scheduled.parallelize_loops:ParallelizeLoops",
    "plan-buffers": "igniter.transforms.scheduled.plan_buffers:PlanBuffers",
    "postpone-scales": "igniter.transforms.structured.postpone_scales:PostponeScales",
    "prefetch-loops": "igniter.transforms.scheduled.prefetch_loops:PrefetchLoops",
    "promote-buffers": "igniter.transforms.scheduled.promote_buffers:PromoteBuffers",
    "quantize-model": "igniter.toolbox.quantize.quantize_model:QuantizeModel",
    "read-past-views": "igniter.transforms.structured.read_past_views:ReadPastViews",
    "recompose": "igniter.transforms.onnx.recompose:Recompose",
    "remove-inputs": "igniter.toolbox.edit.remove_inputs:RemoveInputs",
    "remove-outputs": "igniter.toolbox.edit.remove_outputs:RemoveOutputs",
    "rename-dims": "igniter.toolbox.edit.rename_dims:RenameDims",
    "rename-nodes": "igniter.toolbox.edit.rename_nodes:RenameNodes",
    "rename-values": "igniter.toolbox.edit.rename_values:RenameValues",
    "replace-nodes": "igniter.toolbox.edit.replace_nodes:ReplaceNodes",
    "replace-weights": "igniter.toolbox.edit.replace_weights:ReplaceWeights",
    "rewrite-small-integers": "igniter.transforms.onnx.rewrite_small_integers:RewriteSmallIntegers",
    "schedule-kernels": "igniter.transforms.conversion.schedule_kernels:ScheduleKernels",
    "set-dims": "igniter.toolbox.edit.set_dims:SetDims",
    "shard-products": "igniter.toolbox.split.shard_products:ShardProducts",
    "sink-loops": "igniter.transforms.scheduled.sink_loops:SinkLoops",
    "slide-loops": "igniter.transforms.scheduled.slide_loops:SlideLoops",
    "split-axes": "igniter.transforms.structured.split_axes:SplitAxes",
    "split-codes": "igniter.transforms.structured.split_codes:SplitCodes",
    "split-heads": "igniter.transforms.structured.split_heads:SplitHeads",
    "split-reductions": "igniter.transforms.structured.split_reductions:SplitReductions",
    "split-rims": "igniter.transforms.scheduled.split_rims:SplitRims",
    "split-softmax": "igniter.transforms.structured.split_softmax:SplitSoftmax",
    "tile-loops": "igniter.transforms.scheduled.tile_loops:TileLoops",
    "transpose-accesses": "igniter.transforms.scheduled.transpose_accesses:TransposeAccesses",
    "turn-weights": "igniter.transforms.onnx.turn_weights:TurnWeights",
    "unroll-loops": "igniter.transforms.scheduled.unroll_loops:UnrollLoops",
    "vectorize-loops": "igniter.transforms.scheduled.vectorize_loops:VectorizeLoops",
    "winograd": "igniter.transforms.onnx.winograd:Winograd",
}


FUSION_AUTHORS: dict[str, str] = {
    "by-kind": "igniter.analysis.fusion.by_kind_author:ByKindAuthor",
    "default": "igniter.analysis.fusion.default_author:DefaultAuthor",
}

SCHEDULE_AUTHORS: dict[str, str] = {
    "default": "igniter.schedules.default_author:DefaultAuthor",
    "naive": "igniter.schedules.naive_author:NaiveAuthor",
    "triton": "igniter.schedules.triton_author:TritonAuthor",
}


BACKENDS: dict[str, str] = {
    "cpu": "igniter.backends.cpu.backend:CpuBackend",
    "cuda": "igniter.backends.triton.backend:TritonBackend",
    "hip": "igniter.backends.triton.hip:HipBackend",
}


class UnknownName(IgniterError):
    """Raised for a name unknown to Igniter and to installed packages. With `listed`, the message lists all names."""

    code = "IGN0103"

    def __init__(self, kind: str, name: str, known: Mapping[str, object], listed: bool = False):
        hint = f"; there are {', '.join(sorted(known)) or 'none'}" if listed else ""
        super().__init__(f"there is no {kind} called '{name}'{hint}{did_you_mean(name, known)}")
        self.name = name


def load(where: str) -> Any:
    """Returns the object for a `module:attribute` string, or the module for a string without an attribute."""
    module_name, _, attribute = where.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in filter(None, attribute.split(".")):
        found = getattr(found, part)
    return found


@cache
def external(group: str) -> dict[str, str]:
    """Returns the names under the entry point group `igniter.<group>` of installed packages, and of plug-in files, with
    their places."""
    found = {point.name: point.value for point in _installed().select(group=f"igniter.{group}")}
    for plugin in _files():
        found.update(plugin.points.get(group, {}))
    return found


def distribution_of(group: str, name: str) -> tuple[str, str]:
    """Returns the name and the version of the package with an entry point; ("", "") without one."""
    for plugin in _files():
        if name in plugin.points.get(group, {}):
            return plugin.name, plugin.version
    for point in _installed().select(group=f"igniter.{group}", name=name):
        if point.dist is not None:
            return point.dist.name, point.dist.version
    return "", ""


@cache
def _installed() -> Any:
    """Returns the entry points of all packages: reading their metadata takes milliseconds."""
    from importlib.metadata import entry_points

    return entry_points()


@cache
def _files() -> tuple[Plugin, ...]:
    """Returns the plug-ins that are not installed."""
    return tuple(load_plugins())


GROUPS = (
    "dialects",
    "passes",
    "pipelines",
    "ops",
    "patterns",
    "fusion_authors",
    "schedule_authors",
    "micro_kernels",
    "backends",
)
"""The groups of entry points."""


@cache
def plugins() -> tuple[str, ...]:
    """Returns the installed distributions with entry points of Igniter, each as "NAME VERSION", and plug-in files."""
    found = set(map(str, _files()))
    for group in GROUPS:
        for point in _installed().select(group=f"igniter.{group}"):
            if point.dist is not None:
                found.add(f"{point.dist.name} {point.dist.version}")
    return tuple(sorted(found))


@cache
def plugin_code() -> str:
    """Returns a digest of the code of all plug-ins, for the keys of cached kernels; "" without plug-ins."""
    places = {where.partition(":")[0].partition(".")[0] for group in GROUPS for where in external(group).values()}
    return digest_of(sorted(places)) if places else ""


def forget_packages() -> None:
    """Reads the installed packages anew at the next question."""
    plugin_code.cache_clear()
    external.cache_clear()
    plugins.cache_clear()
    _installed.cache_clear()
    _files.cache_clear()


def where_dialect(name: str) -> str | None:
    """Returns the place of the dialect called `name`, or `None`."""
    return DIALECTS.get(name) or external("dialects").get(name)


def where_pass(name: str) -> str | None:
    """Returns the place of the pass called `name`, or `None`."""
    return PASSES.get(name) or external("passes").get(name)


def load_dialect(name: str) -> Dialect:
    """Loads the dialect called `name`; raises `UnknownName` if it does not exist."""
    where = where_dialect(name)
    if where is None:
        raise UnknownName("dialect", name, {**external("dialects"), **DIALECTS})
    return _load_named("dialect", name, where)


def load_pass(name: str) -> type[ModulePass]:
    """Loads the pass class called `name`; raises `UnknownName` if it does not exist."""
    where = where_pass(name)
    if where is None:
        raise UnknownName("pass", name, all_passes())
    return _load_named("pass", name, where)


def load_fusion_author(name: str) -> Any:
    """Loads the class of the fusion author called `name`; raises `UnknownName` if it does not exist."""
    where = FUSION_AUTHORS.get(name) or external("fusion_authors").get(name)
    if where is None:
        raise UnknownName("fusion author", name, all_fusion_authors(), listed=True)
    return _load_named("fusion author", name, where)


def load_schedule_author(name: str) -> Any:
    """Loads the class of the schedule author called `name`; raises `UnknownName` if it does not exist."""
    where = SCHEDULE_AUTHORS.get(name) or external("schedule_authors").get(name)
    if where is None:
        raise UnknownName("schedule author", name, all_schedule_authors(), listed=True)
    return _load_named("schedule author", name, where)


def load_micro_kernel(name: str) -> Any:
    """Loads the micro-kernel called `name` from an installed package; the name must exist."""
    return _load_named("micro-kernel", name, external("micro_kernels")[name])


def load_backend(name: str) -> Any:
    """Loads the class of the backend called `name`; raises `UnknownName` if it does not exist."""
    where = BACKENDS.get(name) or external("backends").get(name)
    if where is None:
        raise UnknownName("backend", name, {**external("backends"), **BACKENDS}, listed=True)
    return _load_named("backend", name, where)


def _load_named(kind: str, name: str, where: str) -> Any:
    try:
        return load(where)
    except Exception as error:  # a plug-in's code raises anything
        raise IgniterError(f"the {kind} '{name}' cannot be loaded from {where}: {crash_text(error)}") from error


def all_passes() -> dict[str, str]:
    """Returns every pass by name, including those of installed packages."""
    return dict(sorted({**external("passes"), **PASSES}.items()))


def all_fusion_authors() -> dict[str, str]:
    """Returns every fusion author by name, including those of installed packages."""
    return dict(sorted({**external("fusion_authors"), **FUSION_AUTHORS}.items()))


def all_schedule_authors() -> dict[str, str]:
    """Returns every schedule author by name, including those of installed packages."""
    return dict(sorted({**external("schedule_authors"), **SCHEDULE_AUTHORS}.items()))


def load_external(group: str) -> list[Any]:
    """Loads every object under `igniter.<group>` of installed packages, in the order of the entry points' names."""
    found: list[Any] = []
    for name, where in sorted(external(group).items()):
        try:
            found.append(load(where))
        except Exception as error:  # a plug-in's code raises anything
            raise IgniterError(
                f"the entry point '{name} = {where}' of igniter.{group} cannot be loaded: {crash_text(error)}"
            ) from error
    return found
