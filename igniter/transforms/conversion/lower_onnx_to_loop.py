"""`lower-onnx-to-loop`: lowers every fusion region to a `loop.kernel` of the same name.

    %y = fusion.region @r0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
      %0 = onnx.Relu(%a) : ...
      fusion.yield %0 : ...
    }

becomes

    %y = fusion.region @r0 (...) kernel @r0 -> ... { the same }
    loop.kernel @r0 symbols [n] (%a : tensor<?x8xf32, ..>) -> (tensor<?x8xf32, ..>) {
      %0 = loop.nest "relu" [i0: parallel n, i1: parallel 8] -> tensor<?x8xf32, ..> {
        %1 = loop.read %a[i0, i1] : f32
        %2 = arith.constant 0.0 : f32
        %3 = arith.maximumf %1, %2 : f32
        loop.yield none %3 at [i0, i1]
      }
      loop.return %0 : ...
    }

The rule in each op's `OpSpec` lowers the op to one nest or a few; later passes merge nests. Constants in the region
become `arith.constant`s in the bodies. The region keeps its ONNX nodes, for fallback, checks and reports. The kernel
requires the assumptions about symbols that the nodes and the graph's types (`igniter.assumptions`) make. Given sizes of
the model's symbols (`igniter.analysis.typical_sizes`) are written on the kernels.

Regions with the same signature (`igniter.analysis.fusion.region_signature`) are lowered once and share a kernel. A
region that cannot be lowered fails alone, together with its equals (`igniter.isolation`).

Requires: shapes inferred (`infer-shapes`), regions formed. An output is always the result of a nest, or a view of one,
and no two outputs belong to the same nest: if a region passes an input through, the lowering adds a copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, NoneType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.graph import region_nodes
from igniter.analysis.fusion.region_signature import region_signature
from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.typical_sizes import give_sizes, sizes_of, typical_of
from igniter.dialects.fusion import DimsOp, RegionOp, UnpackOp
from igniter.dialects.locations import name_added
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.lowering import KernelBuilder, Lowering, LoweringError
from igniter.dialects.onnx.lowering.builder import symbols_of_types
from igniter.dialects.onnx.lowering.constants import constant_tensor, dims_tensor
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.block_products import MOST_ROWS, rounds_rows
from igniter.dialects.onnx.ops.windowed_cache import slides
from igniter.dialects.onnx.ops.winograd import tile_weight_bytes
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE, VALUES_ATTRIBUTE, WINOGRAD_ATTRIBUTE
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import DimsAttr, dims_of, element_of
from igniter.dialects.sym.bind_symbols import bind_symbols
from igniter.dialects.sym.expr import Expr, mod, product
from igniter.dialects.sym.requirements import Requirement
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.isolation import attempt
from igniter.rewrite_budget import budget
from igniter.schedules.few_places import FEW_PLACES
from igniter.transforms.fusion.inline_failed_regions import failure_of, mark_group
from igniter.transforms.onnx.infer_shapes import graph_assumptions


@dataclass(frozen=True)
class LowerOnnxToLoopPass(ModulePass):
    """Lowers every `fusion.region` to a `loop.kernel`."""

    name = "lower-onnx-to-loop"
    one_rewrite = "a region lowered to a kernel"

    few_rows: bool = False
    """Adds variants for small sizes: few rows of products with codes whose rows are a symbol, few places of
    convolutions in tiles, one token of attentions over a window."""

    blocks: bool = False
    """Lowers for programs on blocks of elements, those of a GPU."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        present = {k.sym_name.data for k in op.body.block.ops if isinstance(k, KernelOp)}
        equal: dict[Hashable, list[RegionOp]] = {}
        for region in op.walk():
            if isinstance(region, RegionOp) and region.kernel_name not in present and failure_of(region) is None:
                equal.setdefault(region_signature(region), []).append(region)
        sizes = sizes_of(ctx, op)
        for regions in equal.values():
            first = regions[0]
            if not budget(ctx, self.name).take(f"@{first.label}", "the region is lowered"):
                return
            lowered = partial(self._lowered, first, sizes, machine_of(ctx))
            kernel = attempt(ctx, lowered, partial(_mark, regions))
            if kernel is None:
                continue
            op.body.block.add_op(kernel)
            for region in regions:
                region.kernel_name = first.label

    def _lowered(self, region: RegionOp, sizes: Mapping[str, int], machine: MachineModel) -> KernelOp:
        kernel = lower_region(region, blocks=self.blocks)
        give_sizes(kernel, sizes)
        if self.few_rows:
            add_few_rows(region, kernel)
            add_few_places(region, kernel, machine)
            add_one_token(region, kernel)
        return kernel


def _mark(regions: Sequence[RegionOp], reason: str) -> None:
    for region in regions:
        mark_group(region, reason)


def lower_region(region: RegionOp, *, blocks: bool = False, one_token: bool = False) -> KernelOp:
    """Returns the kernel of one region; `blocks`: for programs on blocks of elements; `one_token`: for runs of at most
    one token. `LoweringError` names the node without a lowering."""
    kernel = KernelBuilder([a.type for a in region.block.args], _symbols(region))
    kernel.blocks, kernel.one_token = blocks, one_token
    values: dict[SSAValue, SSAValue] = dict(zip(region.block.args, kernel.args, strict=True))
    nodes = region_nodes(region)
    places: dict[Operation, int] = {node: place for place, node in enumerate(nodes)}
    for op in region.block.ops:
        known = len(kernel.checks)
        if op is not region.yield_op:
            lower_node(op, kernel, values)
        kernel.checks[known:] = [(check.at(places.get(op)), value) for check, value in kernel.checks[known:]]
    for place, node in enumerate(nodes):
        kernel.requires += [r.at(place) for r in node_requirements(node)]
    kernel.requires += assumptions_about(region, kernel)
    return kernel.finish(region.label, [values[v] for v in region.yielded])


def add_few_rows(region: RegionOp, kernel: KernelOp) -> None:
    """Adds a variant for few rows to a kernel of products with block-quantised weights, if its rows are a symbol and
    typically many. The variant dequantises in registers; this takes a third of the time for one row and is slower for
    many. It needs a separate lowering, because the nests differ. The variant of rows rounded to bytes is for one."""
    many = [n for n in region_nodes(region) if MANY_ROWS_ATTRIBUTE in n.attributes]
    dims = [known_dims_of(node.operands[0].type) for node in many]
    rows = {product(d[:-1]) for d in dims if d is not None}
    if len(rows) != 1:
        return
    (count,) = rows
    ones = dict.fromkeys(sorted(count.symbols), 1)
    # Rows rounded to bytes have the same nests for any number; only a single row has another schedule.
    most = 1 if any(rounds_rows(node) for node in many) else MOST_ROWS
    if not ones or not ones.keys() <= set(kernel.symbol_names) or count.evaluate(ones) > most:
        return
    for node in many:
        del node.attributes[MANY_ROWS_ATTRIBUTE]
    try:
        variant = lower_region(region)
    finally:
        for node in many:
            node.attributes[MANY_ROWS_ATTRIBUTE] = UnitAttr()
    variant.sym_name, variant.when = StringAttr("few_rows"), DimsAttr([count, most])
    give_sizes(variant, {**dict(typical_of(kernel).given), **ones})
    kernel.set_variants([variant])


def add_few_places(region: RegionOp, kernel: KernelOp, machine: MachineModel) -> None:
    """Adds a variant for images of few places to a kernel of convolutions in tiles, if the sides of its images are
    symbols. The variant sums over windows, and needs a separate lowering, because the nests differ. The weight of tiles
    has up to four times the size; if it exceeds the second-level cache, reading it takes longer than the products."""
    marks = {n: n.attributes[WINOGRAD_ATTRIBUTE] for n in region_nodes(region) if WINOGRAD_ATTRIBUTE in n.attributes}
    places = {product(d for k, d in enumerate(dims_of(n.results[0].type)) if k != 1) for n in marks}
    if kernel.variants or len(places) != 1 or any(tile_weight_bytes(n) <= machine.l2_bytes for n in marks):
        return
    (count,) = places
    ones = dict.fromkeys(sorted(count.symbols), 1)
    if not ones.keys() <= set(kernel.symbol_names) or count.evaluate(ones) > FEW_PLACES:
        return
    for node in marks:
        del node.attributes[WINOGRAD_ATTRIBUTE]
    try:
        variant = lower_region(region)
    finally:
        for node, mark in marks.items():
            node.attributes[WINOGRAD_ATTRIBUTE] = mark
    variant.sym_name, variant.when = StringAttr("few_places"), DimsAttr([count, FEW_PLACES])
    give_sizes(variant, {**dict(typical_of(kernel).given), **ones})
    kernel.set_variants([variant])


def add_one_token(region: RegionOp, kernel: KernelOp) -> None:
    """Adds a variant for one token to a kernel of an attention whose cache is a window, if the number of tokens is a
    symbol. The window of a single token is in the cache after the run, so it needs a separate lowering, which moves no
    row twice."""
    sliding = [n for n in region_nodes(region) if slides(n)]
    counts = {dims_of(node.operands[0].type)[1] for node in sliding}
    if kernel.variants or len(counts) != 1:
        return
    (count,) = counts
    ones = dict.fromkeys(sorted(count.symbols), 1)
    if not ones or not ones.keys() <= set(kernel.symbol_names) or count.evaluate(ones) > 1:
        return
    variant = lower_region(region, one_token=True)
    variant.sym_name, variant.when = StringAttr("one_token"), DimsAttr([count, 1])
    give_sizes(variant, {**dict(typical_of(kernel).given), **ones})
    kernel.set_variants([variant])


def assumptions_about(region: RegionOp, kernel: KernelBuilder) -> list[Requirement]:
    """Returns the assumptions of the graph's types about symbols known from the region's operands (`infer-shapes`)."""
    graph = region.parent_op()
    while graph is not None and not isinstance(graph, GraphOp):
        graph = graph.parent_op()
    if graph is None:
        return []
    told = bind_symbols([(dims_of(arg.type), True) for arg in kernel.args]).bound
    return [r for r in graph_assumptions(graph) if r.symbols <= told]


def lower_node(op: Operation, kernel: KernelBuilder, values: dict[SSAValue, SSAValue]) -> None:
    """Appends the nests of one ONNX op to `kernel` and records its results in `values`."""
    if all(isinstance(r.type, NoneType) for r in op.results):
        return
    if isinstance(op, DimsOp):
        values[op.result] = dims_tensor(kernel, op.dims, op.result.type)
        return
    if isinstance(op, UnpackOp):
        values[op.result] = unpacked(kernel, op, values[op.source])
        return
    if not isinstance(op, OnnxOp):
        raise LoweringError(f"'{op.name}' in a fusion region is not an ONNX op")
    array = constant_value(op.results[0]) if op.name == "onnx.Constant" else None
    if array is not None:
        values[op.results[0]] = constant_tensor(kernel, array, op.results[0].type)
        return
    spec = spec_of(op)
    context = Lowering(op, kernel, values)
    if spec is None or spec.lower is None:
        raise context.fail("it has no lowering")
    reason = spec.legal(op) if spec.legal is not None else None
    if reason is not None:
        raise context.fail(reason)
    last = kernel.block.last_op
    _bind(op, context, list(spec.lower(context)), values)
    name_added(kernel.block, last, op.node_name or op.op_type)


def unpacked(kernel: KernelBuilder, op: UnpackOp, packed: SSAValue) -> SSAValue:
    """Adds a nest that reads a packed weight in its plain layout; contractions absorb it."""
    nest = kernel.nest("unpack")
    at = nest.axes(dims_of(op.result.type))
    value = nest.read(packed, op.layout.subscripts(at))
    if op.layout.words:
        last = op.layout.parts[-1]
        place = nest.index(mod(at[last.dim], Expr.of(last.size)) * 8).to(value.element)
        value = value.shift_right(place).to(element_of(op.result.type))
    return nest.finish(("none", value, at, op.result.type))[0]


def _bind(op: OnnxOp, context: Lowering, made: list[SSAValue | None], values: dict[SSAValue, SSAValue]) -> None:
    for index, result in enumerate(op.results):
        value = made[index] if index < len(made) else None
        if isinstance(result.type, NoneType):
            continue
        if value is None:
            if result.first_use is not None:
                raise context.fail(f"its lowering returns no output {index}")
            continue
        if value.type != result.type:
            raise context.fail(f"its lowering returns {value.type} for output {index} of type {result.type}")
        values[result] = value


def _symbols(region: RegionOp) -> frozenset[str]:
    """Returns every symbol in the region's types and recorded values; axes must get other names."""

    def types() -> Iterator[Attribute]:
        yield from (a.type for a in region.block.args)
        for op in region.block.ops:
            yield from (r.type for r in op.results)

    return symbols_of_types(types()) | frozenset(_noted(region.block.ops))


def _noted(ops: Iterable[Operation]) -> Iterator[str]:
    for op in ops:
        if isinstance(op, DimsOp):
            for dim in op.dims:
                yield from dim.symbols
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if isinstance(noted, DictionaryAttr):
            for dims in noted.data.values():
                if isinstance(dims, DimsAttr):
                    for dim in dims.data:
                        yield from dim.symbols
