"""`pack-operands`: packs run-time operands of contractions into the layout of micro-kernels.

    %s = loop.nest "scores" [b: parallel 12, i: parallel n, j: parallel n, k: reduction 64] -> .. {
      %x = loop.read %q[b, i, k] : f32      %y = loop.read %keys[b, j, k] : f32      ...
becomes
    %p = loop.nest "scores.pack" [b: parallel 12, p: parallel .., k: parallel 64, l: parallel 16] -> .. {
      %y = loop.read %keys[b, 16*p + l, k] if [n - 1 - 16*p - l] : f32
      loop.yield none %y at [b, p, k, l]
    }
    %s = loop.nest "scores" [...] { ...      %y = loop.read %p[b, j floordiv 16, k, j mod 16] : f32      ... }

A left factor whose rows have another order than the result's is copied to the result's order. The rows are then one
axis, of all rows together. Example: an image of ten columns with its channels first, whose pixels are the rows of a
linear layer: `[batch, channels, pixel]` is read as `[pixel * batch, channels]`, with a batch of one.

So are the rows of a small image and the places in each, for AMX tiles (`join_image_rows.py`).

A left factor with fewer bits than the sums, whose steps of depth do not have the layout of micro-kernels, is copied to
that layout. 16-bit floats are widened to f32 on the way (by their producer, if nothing else reads them).

If both factors are bf16 and the machine multiplies tiles of bf16, the panels have the steps of depth in pairs. A depth
that is odd, or known only at run time, is extended by a step of zeros in copies of both factors:

    %p = loop.nest "out.pack" [b: .., p: .., h: parallel (n + 1) floordiv 2, l: parallel 16, s: parallel 2] -> .. {
      %y = loop.read %values[b, 2*h + s, 16*p + l] if [n - 1 - 2*h - s] : bf16      ...
    }
    %a = loop.nest "out.rows" [b: .., i: .., k: parallel 2*((n + 1) floordiv 2)] { .. %weights[b, i, k] if [n - 1 - k] }

A factor is packed only if enough rows share it, and only if the columns of neither factor are contiguous in panels
already (`igniter.analysis.structured.contractions`), or if they are a part of longer rows: the values of one head of an
attention, a few lines of every row of all heads. Then the steps of depth are whole pages apart, and those lines map to
a few sets of the caches. The same holds for the lines of a panel of any matrix with many long rows. The pass runs
before `choose-schedule`, after the passes that change the reads of nests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.structured.contractions import Contraction, contraction_of, factors_of, offset_of
from igniter.analysis.structured.packing import (
    UnpackedFactor,
    computed_weight,
    crowded_factor,
    fewest_rows,
    is_packed,
    line_of,
    paired_factor,
    unpacked_factor,
)
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ReadOp, ViewOp, YieldOp
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.loop.panels import SMALLEST_COLUMNS, are_dot_products, group_of, kind_of, panel_lanes
from igniter.dialects.loop.variants import has_variant
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv, mod, symbols_of
from igniter.dialects.sym.ranges import is_nonneg
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.products import reads_weights
from igniter.transforms.structured.collapse_axes import CollapseAxes
from igniter.transforms.structured.inline_nests import inline_nest
from igniter.transforms.structured.join_image_rows import join_image_rows
from igniter.transforms.structured.narrow_factors import narrow_factors
from igniter.transforms.structured.nest_rewriting import fresh_label

FULL_TILE = 8
"""Rows that fill, or nearly fill, the tile of any machine."""

SPREAD = 4
"""The ratio of the length of a row in memory to the columns from which the columns count as too far apart. It is a
ratio of a model's sizes (four heads to a row), not a figure of a machine: lines that are a power of two apart map to
few sets of any cache, and the caches of one level have about the same number of ways."""


@dataclass(frozen=True)
class PackOperands(ModulePass):
    """Adds a nest that packs the right factor of a contraction, if that factor is computed at run time."""

    name = "pack-operands"
    one_rewrite = "a contraction whose right factor is packed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in list(kernel.nests):
                if budget(ctx, self.name).is_spent:
                    return
                if join_image_rows(nest, machine_of(ctx)):
                    budget(ctx, self.name).count(nest.label, "the rows of its image are joined")
                    remark(ctx, self.name, nest.label, "applied", "the rows of its image are one axis, for tiles")
                    continue
                if order_rows(nest):
                    budget(ctx, self.name).count(nest.label, "its left factor is reordered")
                    remark(ctx, self.name, nest.label, "applied", "its left factor is copied in the order of the rows")
                    continue
                reason = pack_operand(nest, machine_of(ctx))
                if reason is None:
                    budget(ctx, self.name).count(nest.label, "its right factor is packed")
                    remark(ctx, self.name, nest.label, "applied", "its right factor is packed into panels")
                elif reason:
                    remark(ctx, self.name, nest.label, "missed", reason)


def order_rows(nest: NestOp) -> bool:
    """Copies the left factor of a nest to the order of the result's rows and joins their axes. It does so if the rows
    of the factor have another order and therefore are several axes, of which the micro-kernel takes only the last.
    False if there is nothing to do.

    All elements are multiplied with all columns of a weight, so the copy is a small part of the work. There is no copy
    if the last axis alone is known to fill tiles."""
    found = contraction_of(nest)
    if nest.schedule is not None or isinstance(found, str) or found.sums or not _has_turned_rows(nest, found):
        return False
    _move(nest, found)
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    CollapseAxes().run_on(Context(), kernel)
    return True


def _has_turned_rows(nest: NestOp, contraction: Contraction) -> bool:
    """True if an axis of rows outside the last one has a smaller stride."""
    if contraction.rows is None or not reads_weights(contraction):
        return False
    extent = nest.axis(contraction.rows).extent
    count = typical_of(nest).known(extent)
    if count is not None and count >= FULL_TILE:
        return False
    offset = offset_of(nest, contraction.a, {}, nest.axes_attr.ranges)
    step = offset.coefficient(contraction.rows)
    read = symbols_of(contraction.a.subscripts) - symbols_of(contraction.b.subscripts)
    others = [offset.coefficient(n) for n in contraction.batch if n in read and nest.axis(n).extent != ONE]
    return step is not None and any(other is not None and _is_less(other, step) for other in others)


def _is_less(a: Expr, b: Expr) -> bool:
    """True if a step is shorter than another for all positive sizes."""
    more = b - a - ONE
    return is_nonneg(more.substitute({s: Expr.of(s) + ONE for s in more.symbols}))


def pack_operand(nest: NestOp, machine: MachineModel) -> str | None:
    """Packs the right factor of one nest. Returns the reason if it did not, or "" if there is nothing to pack."""
    line = line_of(nest)
    if line is not None:
        return _pack_whole(nest, line, machine)
    if machine.half_tiles:
        narrow_factors(nest)
    paired = paired_factor(nest, machine)
    if paired is not None and _fills_tiles(nest, paired, machine):
        _pack_in_pairs(nest, paired)
        return None
    factors = factors_of(nest)
    if nest.schedule is not None or isinstance(factors, str):
        return ""
    found = contraction_of(nest)
    if not isinstance(found, str):
        if not _is_spread(nest, found, machine) and not _is_crowded(nest, machine):
            return ""
        _hoist(_pack(nest, found.b, found.columns, found.depth))
        return None
    moved = contraction_of(nest, moved=True)
    if not isinstance(moved, str):
        _move(nest, moved)
        return None
    weight = computed_weight(nest)
    if not isinstance(weight, str):
        return _pack_whole(nest, weight, machine)
    factor = unpacked_factor(nest)
    if isinstance(factor, str):
        return weight or factor
    columns, depth = (nest.axis(n).extent.constant for n in (factor.column, factor.depth))
    if are_dot_products(columns, depth, _kind(nest)):
        return f"{columns} columns fill too small a part of a panel"
    typical = typical_of(nest)
    count, columns = typical.known(factor.rows), typical.known(nest.axis(factor.column).extent)
    if count is not None and count < fewest_rows(nest, factor, columns, machine):
        return f"only {count} rows would share it"
    _pack(nest, factor.read, factor.column, factor.depth)
    moved = contraction_of(nest, moved=True)
    if isinstance(contraction_of(nest), str) and not isinstance(moved, str):
        _move(nest, moved)
    return None


def _only_rounds(nest: NestOp) -> bool:
    """True if a nest only moves and rounds elements."""
    plain = all(clause.combiner == "none" and clause.otherwise is None for clause in nest.yield_op.clauses)
    return plain and all(isinstance(op, (ReadOp, arith.TruncFOp, YieldOp)) for op in nest.block.ops)


def _move_first(copy: NestOp) -> None:
    """Moves a copy, and the ops that it depends on, to the start of the kernel if they are views and nests without a
    sum. Otherwise nests fused with the contraction would precede the copy, and fusion would be impossible."""
    block = copy.parent
    assert block is not None
    needed: set[Operation] = set()
    todo: list[Operation] = [copy]
    while todo:
        op = todo.pop()
        if op in needed:
            continue
        if not isinstance(op, (NestOp, ViewOp)) or (
            isinstance(op, NestOp) and any(a.kind != "parallel" for a in op.axes)
        ):
            return
        needed.add(op)
        sources = [op.source] if isinstance(op, ViewOp) else [read.source for read in op.reads]
        todo += [v.owner for v in sources if isinstance(v.owner, Operation)]
    ops = [op for op in block.ops if op in needed]
    for op in ops:
        op.detach()
    if block.first_op is None:
        block.add_ops(ops)
    else:
        block.insert_ops_before(ops, block.first_op)


def _fills_tiles(nest: NestOp, factor: UnpackedFactor, machine: MachineModel) -> bool:
    """True if a factor has the columns of a panel, and enough rows share it to repay packing."""
    columns, count = nest.axis(factor.column).extent.constant, typical_of(nest).known(factor.rows)
    return (columns is None or columns >= SMALLEST_COLUMNS) and (count is None or count >= machine.pack_rows)


def _pack_in_pairs(nest: NestOp, factor: UnpackedFactor) -> None:
    """Packs a factor of bf16 in pairs of steps of depth, and makes the depth of the product a multiple of a pair."""
    steps = nest.axis(factor.depth).extent
    group = group_of("bf16")
    padded = steps.ceildiv(group) * group
    left = next(read for read in nest.reads if read is not factor.read)
    copy = _pack(nest, factor.read, factor.column, factor.depth, group=group)
    source = copy.reads[0].source
    if isinstance(source.owner, NestOp) and _only_rounds(source.owner) and source.has_one_use():
        inline_nest(source.owner)
    _move_first(copy)
    if padded != steps:
        in_left = symbols_of(left.subscripts)
        axes = [Axis(a.name, a.extent, "parallel") for a in nest.axes if a.name in in_left and a.name != factor.depth]
        axes.append(Axis(factor.depth, padded, "parallel"))
        inner = ReadOp(left.source, left.subscripts, guards=[steps - 1 - Expr.of(factor.depth)])
        copy = _copied(nest, inner, "rows", axes, element_of(left.source.type))
        _read_instead(nest, left, copy.outputs[0], [Expr.of(a.name) for a in axes])
        nest.axes_attr = AxesAttr(
            Axis(a.name, padded if a.name == factor.depth else a.extent, a.kind) for a in nest.axes
        )
    moved = contraction_of(nest, moved=True)
    if isinstance(contraction_of(nest), str) and not isinstance(moved, str):
        _move(nest, moved)


def _pack_whole(nest: NestOp, factor: UnpackedFactor, machine: MachineModel) -> str | None:
    """Packs a factor of a convolution with all its reductions in each panel, the depth innermost, and joins those that
    are contiguous. The panels of a computed weight are those that `pack-weights` makes of constant ones; a row of a
    window then is one depth."""
    count = typical_of(nest).known(factor.all_rows)
    if count is not None and count < machine.pack_rows:
        return f"only {count} rows would share it"
    used = symbols_of(factor.read.subscripts)
    sums = [a.name for a in nest.axes if a.kind == "reduction" and a.name in used and a.name != factor.depth]
    _pack(nest, factor.read, factor.column, factor.depth, sums)
    moved = contraction_of(nest, moved=True)
    if isinstance(contraction_of(nest), str) and not isinstance(moved, str):
        _move(nest, moved)
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    CollapseAxes().run_on(Context(), kernel)
    return None


def _kind(nest: NestOp) -> str | None:
    """Returns the kind of micro-kernel for the elements of a nest's factors, or None."""
    a, b = (element_of(read.source.type) for read in nest.reads[:2])
    return kind_of(a, b, element_of(nest.outputs[0].type))


def _is_spread(nest: NestOp, contraction: Contraction, machine: MachineModel) -> bool:
    """True if the columns of a contraction are a small part of their rows in memory and enough rows share them. The
    number of rows is the known or typical one; without it, the rows must be as many as the steps of depth."""
    read = contraction.b
    if contraction.rows is None or element_of(read.source.type) != element_of(nest.outputs[0].type):
        return False
    if is_packed(read):
        return False
    columns, depth = nest.axis(contraction.columns).extent, nest.axis(contraction.depth).extent
    rows = nest.axis(contraction.rows).extent
    count = typical_of(nest).known(rows)
    few = count < machine.pack_rows_beside if count is not None else rows != depth
    step = offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(contraction.depth)
    if few or step is None or step.constant is None or columns.constant is None:
        return False
    return step.constant >= SPREAD * columns.constant


def _is_crowded(nest: NestOp, machine: MachineModel) -> bool:
    """True if the lines of a panel crowd a few sets of the caches and enough rows share them. The number of rows is the
    known or typical one; without it, the kernel must have variants."""
    factor = crowded_factor(nest, machine)
    if factor is None:
        return False
    count = typical_of(nest).known(factor.all_rows)
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    return has_variant(kernel, factor.all_rows) if count is None else count >= machine.pack_rows


def _hoist(copy: NestOp) -> None:
    """Moves a copy and the views that it reads directly after their source. Otherwise nests fused with the contraction
    would precede the copy, and fusion would be impossible."""
    ops: list[Operation] = [copy]
    value = copy.reads[0].source
    while isinstance(value.owner, ViewOp):
        ops.append(value.owner)
        value = value.owner.source
    block = copy.parent
    assert block is not None
    for op in ops:
        op.detach()
    place = value.owner.next_op if isinstance(value.owner, Operation) else block.first_op
    assert place is not None
    block.insert_ops_before(ops[::-1], place)


def _pack(nest: NestOp, read: ReadOp, column: str, depth: str, sums: Sequence[str] = (), group: int = 1) -> NestOp:
    """Returns a nest that packs a factor; the contraction now reads its result. `sums` are other reductions, inside the
    panels. `group`: the number of adjacent steps of depth, which keep their element type."""
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    extent = nest.axis(column).extent
    used = symbols_of(read.subscripts)
    batch = [Axis(a.name, a.extent, "parallel") for a in nest.axes if a.name in used - {column, depth, *sums}]
    names = _fresh([a.name for a in nest.axes], ("p", "l", "s"))
    panel, lane = Axis(names[0], extent.ceildiv(lanes), "parallel"), Axis(names[1], Expr.of(lanes), "parallel")
    steps = nest.axis(depth).extent
    deep = [
        *(Axis(n, nest.axis(n).extent, "parallel") for n in sums),
        Axis(depth, steps.ceildiv(group), "parallel"),
    ]
    places = [Axis(names[2], Expr.of(group), "parallel")] if group > 1 else []
    axes = [*batch, panel, *deep, lane, *places]
    at = {column: Expr.of(panel.name) * lanes + Expr.of(lane.name)}
    if group > 1:
        at[depth] = Expr.of(depth) * group + Expr.of(names[2])
    # Beyond the last column and the last step there are zeros.
    ends = [extent - 1 - at[column]] if extent.constant is None or extent.constant % lanes else []
    if steps.ceildiv(group) * group != steps:
        ends.append(steps - 1 - at[depth])
    inner = ReadOp(
        read.source,
        [s.substitute(at) for s in read.subscripts],
        guards=[*(g.substitute(at) for g in read.guards), *ends],
    )
    element = element_of((nest.outputs[0] if group == 1 else read.source).type)
    copy = _copied(nest, inner, "pack", axes, element)
    at_column, at_depth = Expr.of(column), Expr.of(depth)
    subscripts = [
        *(Expr.of(a.name) for a in batch),
        floordiv(at_column, Expr.of(lanes)),
        *(Expr.of(n) for n in sums),
        floordiv(at_depth, Expr.of(group)) if group > 1 else at_depth,
        mod(at_column, Expr.of(lanes)),
        *([mod(at_depth, Expr.of(group))] if group > 1 else []),
    ]
    _read_instead(nest, read, copy.outputs[0], subscripts)
    return copy


def _move(nest: NestOp, contraction: Contraction) -> None:
    """Makes the left factor of a contraction contiguous in the order of the axes, in f32 if the contraction's kind
    needs it."""
    read = contraction.a
    element, result = element_of(read.source.type), element_of(nest.outputs[0].type)
    wide = kind_of(element, element_of(contraction.b.source.type), result) != contraction.kind
    if wide and _widen_producer(nest, read, result) and not isinstance(contraction_of(nest), str):
        return
    used = symbols_of(read.subscripts)
    axes = [Axis(a.name, a.extent, "parallel") for a in nest.axes if a.name in used and a.name != contraction.depth]
    axes.append(Axis(contraction.depth, nest.axis(contraction.depth).extent, "parallel"))
    inner = ReadOp(read.source, read.subscripts)
    moved = _copied(nest, inner, "rows", axes, result if wide else element)
    _read_instead(nest, read, moved.outputs[0], [Expr.of(a.name) for a in axes])


def _widen_producer(nest: NestOp, read: ReadOp, element: Attribute) -> bool:
    """Makes the producer of 16-bit floats yield them widened, if this read is the only one. False if there is no such
    producer.

    The values stay rounded to 16 bits, and are stored as f32.
    """
    producer = read.source.owner
    if not isinstance(producer, NestOp) or not read.source.has_one_use() or producer.schedule is not None:
        return False
    index = producer.outputs.index(read.source)  # pyright: ignore[reportArgumentType]
    clauses = producer.yield_op.clauses
    if clauses[index].combiner != "none" or clauses[index].otherwise is not None:
        return False
    clause = clauses[index]
    wide = arith.ExtFOp(clause.value, element)
    producer.block.insert_op_before(wide, producer.yield_op)
    changed = [Clause("none", wide.result, c.subscripts) if k == index else c for k, c in enumerate(clauses)]
    Rewriter.replace_op(producer.yield_op, YieldOp(changed))
    tensor = producer.outputs[index]
    Rewriter.replace_value_with_new_type(tensor, tensor_of(element, dims_of(tensor.type)))
    _read_instead(nest, read, read.source, read.subscripts)
    return True


def _copied(nest: NestOp, inner: ReadOp, what: str, axes: list[Axis], element: Attribute) -> NestOp:
    """Returns a new nest over `axes` before `nest` that reads `inner` into a tensor of `element`."""
    where = [Expr.of(a.name) for a in axes]
    body = Block([inner])
    value = inner.result
    if element_of(inner.source.type) != element:
        wide = arith.ExtFOp(value, element)
        body.add_op(wide)
        value = wide.result
    body.add_op(YieldOp([Clause("none", value, where)]))
    target = tensor_of(element, [a.extent for a in axes])
    copy = NestOp(fresh_label(nest, f"{nest.label}.{what}"), axes, [target], Region(body))
    block = nest.parent
    assert block is not None
    block.insert_op_before(copy, nest)
    return copy


def _read_instead(nest: NestOp, read: ReadOp, tensor: SSAValue, subscripts: Sequence[Expr]) -> None:
    """Makes a contraction read another tensor in place of a factor."""
    fresh = ReadOp(tensor, subscripts)
    nest.block.insert_op_before(fresh, read)
    if fresh.result.type == read.result.type:
        read.result.replace_all_uses_with(fresh.result)
    else:
        for use in list(read.result.uses):
            use.operation.results[0].replace_all_uses_with(fresh.result)
            use.operation.detach()
            use.operation.erase()
    read.detach()
    read.erase()


def _fresh(taken: list[str], wanted: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for base in wanted:
        name, k = base, 1
        while name in taken:
            name, k = f"{base}{k}", k + 1
        names.append(name)
        taken = [*taken, name]
    return names


__all__ = ["PackOperands", "order_rows", "pack_operand"]
