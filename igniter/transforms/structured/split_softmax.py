"""`split-softmax`: attention in blocks of keys, each with its own maximum (online softmax).

    %s = .. scores [i, j]                                  n keys, j
    %m = max over j of %s[i, j]                            %f = what is taken from the scores of a row, made of %m[i]
    %e = exp(%s[i, j] - %f[i])
    %l = add over j of %e[i, j]                            %o = add over j of %e[i, j] * %v[j, d]
becomes, with `keys=512`
    %s = .. scores [i, block, j]                           j: 512; what lies behind the n keys is read as -inf
    %mb = max over j of %s[i, block, j]                    %fb = max(%mb[block, i] + log 512, the least number)
    %e = exp(%s[i, block, j] - %fb[block, i])
    %lb = add over j of %e[i, block, j]                    %ob = add over j of %e[i, block, j] * %vb[block, j, d]
    %m = max over block of %mb[block, i]                   %f, as before
    %w = exp(%mb[block, i] + log 512 - %f[i])
    %l = add over block of %w[block, i] * %lb[block, i]    %o = add over block of %w[block, i] * %ob[block, i, d]

No nest of a block depends on another block. So a schedule may keep a block's scores, keys and values in the cache while
many rows are processed, or distribute blocks over threads if rows are few. The method is that of Milakov and
Gimelshein, "Online normalizer calculation for softmax" (2018), in the form of FlashAttention (Dao et al., 2022). The
running maximum is a reduction over blocks here, because nests have no order. The readers of the sums are not changed.

The results equal those of the whole softmax, up to rounding. `%f` is any value subtracted from the scores of a row,
since exp(s - f) = exp(s - fb) * exp(fb - f). log 512 keeps the sums of a block within the mean of its values. A block
of -inf alone has exponentials of -inf minus the least number, which are 0, and the weight exp(-inf - f): 0, or NaN in a
row of -inf alone, which was NaN before. NaN and +inf make their row NaN in both forms. If the blocks do not divide the
keys, scores beyond the end are -inf and values are 0. Contractions take plain reads, so their part of the last block is
copied and padded, by `pack-operands` if it packs them.

The user asks for the pass. It runs after `postpone-scales`, which leaves the exponentials to the contraction, and
before `pack-operands`. Nests with a schedule are refused, because the schedule would no longer match their loops.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.structured.contractions import contraction_of
from igniter.analysis.structured.softmaxes import Softmax, difference_of, dim_of, place_of, read_of, softmax_of
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.combiners import identity
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr, mod, symbols_of
from igniter.dialects.sym.ranges import simplify
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_rewriting import fresh_label, replace_op, substitute_axes
from igniter.transforms.structured.pack_operands import pack_operand

LEAST = {Float32Type: -3.4028234663852886e38, Float64Type: -1.7976931348623157e308}
"""The least finite number of each float type of exponentials."""


@dataclass(frozen=True)
class SplitSoftmax(ModulePass):
    """Splits the keys of attention's softmax into blocks of `keys`"""

    name = "split-softmax"
    one_rewrite = "a softmax split into blocks of keys"

    keys: int = 512

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.keys < 2:
            raise IgniterError(f"split-softmax: blocks of {self.keys} keys are too small")
        found = False
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            for nest in [n for n in kernel.nests if difference_of(n) is not None]:
                found = True
                softmax = softmax_of(nest, self.keys)
                if isinstance(softmax, str):
                    remark(ctx, self.name, nest.label, "missed", softmax)
                elif budget(ctx, self.name).take(nest.label, f"its keys are split into blocks of {self.keys}"):
                    split_softmax(softmax, self.keys, machine_of(ctx))
                    remark(ctx, self.name, nest.label, "applied", f"its keys are split into blocks of {self.keys}")
        if not found:
            remark(
                ctx, self.name, "", "missed", ("no nest computes exponentials of scores minus the maximum of their row")
            )


# -- the rewrite ------------------------------------------------------------------------------------------------------


@dataclass
class Blocks:
    """Blocks of keys, and the tensors with a dim of blocks."""

    keys: Expr
    """The number of keys."""
    machine: MachineModel
    """The machine; decides if packing a block pays."""
    size: int
    axis: str
    """The name of the axis of blocks in all nests."""
    tensors: dict[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict[SSAValue, tuple[SSAValue, int]])
    """For a tensor: its replacement, and the dim now split into two, the block and the key in it."""
    made: list[NestOp] = field(default_factory=list[NestOp])
    """The nests of blocks."""
    copies: list[NestOp] = field(default_factory=list[NestOp])
    """The copies of keys and values for these."""

    @property
    def count(self) -> Expr:
        return self.keys.ceildiv(self.size)

    @property
    def outer(self) -> Axis:
        return Axis(self.axis, self.count, "parallel")

    @property
    def is_even(self) -> bool:
        """True if all blocks are full."""
        return mod(self.keys, Expr.of(self.size)) == ZERO

    def key(self, inner: str) -> Expr:
        return Expr.of(self.axis) * self.size + inner

    def left(self, key: Expr) -> list[Expr]:
        """Returns the guards under which `key` is a valid key."""
        return [] if self.is_even else [self.keys - 1 - key]


def split_softmax(softmax: Softmax, size: int, machine: MachineModel) -> None:
    """Splits the keys of a softmax into blocks of `size`."""
    top, nest, keys = softmax.top, softmax.exponentials, softmax.keys
    blocks = Blocks(keys.extent, machine, size, _fresh_axis(nest))
    for score, axis in reversed(softmax.scores):
        _split_scores(score, axis, blocks)
    rows = [blocks.outer if a.name == keys.name else a for a in nest.axes]
    at = [Expr.of(a.name) for a in sorted(rows, key=lambda a: a.name != blocks.axis)]
    raised = _split(nest, keys.name, blocks, nest.label)
    score, floor = _below_the_end(raised, keys.name, blocks)
    tops = _tops(top, score, rows, at, keys, blocks)
    _take_away(raised, floor, tops, rows, at, blocks)
    blocks.tensors[nest.outputs[0]] = raised.outputs[0], dim_of(nest.yield_op.clauses[0].subscripts, keys.name)
    places = _places(softmax.score.subscripts, read_of(top, softmax.score.source).subscripts)
    whole = [_combined(top, tops, [s.substitute(places) for s in at], blocks)]
    weights = _weights(softmax, tops, rows, at, blocks)
    written = nest.yield_op.clauses[0].subscripts
    for total in softmax.sums:
        partial = _split_sum(total, nest.outputs[0], blocks)
        places = _places(written, read_of(total, nest.outputs[0]).subscripts)
        part = partial.outputs[0]
        subscripts = [Expr.of(blocks.axis), *total.yield_op.clauses[0].subscripts]
        whole.append(_combined(total, part, subscripts, blocks, (weights, [s.substitute(places) for s in at])))
    for dead in (nest, *(score for score, _ in softmax.scores)):
        dead.detach()
        dead.erase()
    _sink(whole[0], blocks)
    for copy in blocks.copies:
        _hoist(copy, blocks)


def _fresh_axis(nest: NestOp) -> str:
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    taken = {a.name for op in kernel.computations for a in op.axes} | set(kernel.symbol_names)
    return next(n for n in ("block", *(f"block{k}" for k in range(len(taken) + 1))) if n not in taken)


def _places(written: Sequence[Expr], at: Sequence[Expr]) -> Mapping[str, Expr]:
    """Returns the axes in `written` as expressions, given the subscripts `at` of the same dims."""
    return {s.symbol: e for s, e in zip(written, at, strict=True) if s.symbol is not None}


def _split(nest: NestOp, axis: str, blocks: Blocks, label: str) -> NestOp:
    """Adds a copy of `nest` before it, with an axis of blocks. A dim of keys in the result becomes a dim of blocks and
    a dim of keys; if `nest` sums over the keys, the result gets a first dim of blocks instead."""
    axes: list[Axis] = []
    for a in nest.axes:
        axes += [blocks.outer, Axis(axis, Expr.of(blocks.size), a.kind)] if a.name == axis else [a]
    clause, result = nest.yield_op.clauses[0], nest.outputs[0]
    dims = list(dims_of(result.type))
    subscripts = [Expr.of(blocks.axis), *clause.subscripts]
    if nest.axis(axis).kind == "parallel":
        dim = dim_of(clause.subscripts, axis)
        dims[dim : dim + 1] = [blocks.count, Expr.of(blocks.size)]
        subscripts = [*clause.subscripts[:dim], Expr.of(blocks.axis), *clause.subscripts[dim:]]
    else:
        dims.insert(0, blocks.count)
    types = [tensor_of(element_of(result.type), dims)]
    made = NestOp(label, nest.axes, types, nest.body.clone(), None, dict(nest.attributes))
    made.outputs[0].name_hint = result.name_hint if label == nest.label else None
    substitute_axes(made, axes, {axis: blocks.key(axis)})
    last = made.yield_op
    replaced = YieldOp([Clause(clause.combiner, last.clauses[0].value, subscripts)])
    made.block.insert_op_before(replaced, last)
    last.detach()
    last.erase()
    for read in made.reads:
        if read.source in blocks.tensors:
            tensor, dim = blocks.tensors[read.source]
            split = [*read.subscripts[:dim], Expr.of(blocks.axis), Expr.of(axis), *read.subscripts[dim + 1 :]]
            replace_op(read, ReadOp(tensor, split))
    block = nest.parent
    assert block is not None
    block.insert_op_before(made, nest)
    blocks.made.append(made)
    return made


def _guarded(nest: NestOp, read: ReadOp, guards: Sequence[Expr], otherwise: Operation | None = None) -> ReadOp:
    """Replaces a read by one with additional `guards`."""
    ranges = nest.axes_attr.ranges
    every = [*read.guards, *(simplify(g, ranges) for g in guards)]
    if otherwise is not None:
        nest.block.insert_op_before(otherwise, read)
    value = otherwise.results[0] if otherwise is not None else read.otherwise
    made = ReadOp(read.source, read.subscripts, read.indices, every, value)
    replace_op(read, made)
    return made


def _below_the_end(nest: NestOp, axis: str, blocks: Blocks) -> tuple[ReadOp, ReadOp]:
    """Makes the scores read by `nest` -inf beyond the last key. Returns the read of the scores and the read of the
    value subtracted from them."""
    reads = difference_of(nest)
    assert reads is not None
    score, floor = reads
    if blocks.is_even:
        return score, floor
    nothing = identity("max", element_of(score.source.type))
    return _guarded(nest, score, blocks.left(blocks.key(axis)), nothing), floor


def _split_scores(nest: NestOp, axis: str, blocks: Blocks) -> None:
    """Splits a nest that computes scores; nothing reads its results beyond the last key."""
    made = _split(nest, axis, blocks, nest.label)
    blocks.tensors[nest.outputs[0]] = made.outputs[0], dim_of(nest.yield_op.clauses[0].subscripts, axis)
    _stay_inside(nest, made, axis, blocks)


def _split_sum(nest: NestOp, exponentials: SSAValue, blocks: Blocks) -> NestOp:
    """Computes the sums of every block. Beyond the last key, exponentials are 0, and so are their factors."""
    axis = next(a.name for a in nest.axes if a.kind == "reduction")
    made = _split(nest, axis, blocks, fresh_label(nest, f"{nest.label}.blocks"))
    _stay_inside(nest, made, axis, blocks)
    return made


def _stay_inside(nest: NestOp, made: NestOp, axis: str, blocks: Blocks) -> None:
    """Guards the reads of `made`, the split `nest`, along the keys; for a contraction, which takes no guards, a copy
    has them."""
    if blocks.is_even:
        return
    whole = [r for r in nest.reads if r.source not in blocks.tensors and axis in symbols_of((*r.subscripts, *r.guards))]
    sources = {r.source: next((k for k, s in enumerate(r.subscripts) if s.symbol == axis), None) for r in whole}
    kernel = made.parent_op()
    assert isinstance(kernel, KernelOp)
    known = kernel.nests
    if None not in sources.values():
        pack_operand(made, blocks.machine)
    for packed in [n for n in kernel.nests if n not in known]:
        blocks.copies.append(packed)
        for read in packed.reads:
            dim = sources.get(read.source)
            if dim is not None:
                _guarded(packed, read, blocks.left(read.subscripts[dim]))
    for read in [r for r in made.reads if r.source in sources]:
        contraction = contraction_of(made)
        if isinstance(contraction, str):
            _guarded(made, read, blocks.left(blocks.key(axis)))
        else:
            _copy(made, read, axis, contraction.columns, blocks)


def _copy(nest: NestOp, read: ReadOp, axis: str, columns: str, blocks: Blocks) -> None:
    """Makes a contraction read a copy of a factor, 0 beyond the last key."""
    used = symbols_of(read.subscripts)
    inner = [blocks.axis, *(n for n in (axis,) if n != columns)]
    names = [a.name for a in nest.axes if a.name in used and a.name not in (*inner, columns)]
    names += [*inner, *(a.name for a in nest.axes if a.name in used and a.name not in (*inner, columns, *names))]
    names += [columns] if columns in used else []
    axes = [Axis(n, nest.axis(n).extent, "parallel") for n in names]
    at = [Expr.of(n) for n in names]
    source = ReadOp(read.source, read.subscripts, guards=blocks.left(blocks.key(axis)))
    body = Block([source, YieldOp([Clause("none", source.result, at)])])
    copied = tensor_of(element_of(read.source.type), [a.extent for a in axes])
    copy = NestOp(fresh_label(nest, f"{nest.label}.copy"), axes, [copied], Region(body))
    block = nest.parent
    assert block is not None
    block.insert_op_before(copy, nest)
    replace_op(read, ReadOp(copy.outputs[0], at))
    blocks.copies.append(copy)


# -- the values of a block for a row ----------------------------------------------------------------------------------


def _per_row(before: NestOp, label: str, axes: Sequence[Axis], body: Block, at: Sequence[Expr]) -> NestOp:
    """Adds a nest before `before` over blocks and rows; `body` ends with the yield. The dims are those of `at`."""
    clause = body.ops.last
    assert isinstance(clause, YieldOp)
    extents = {a.name: a.extent for a in axes}
    result = tensor_of(clause.clauses[0].value.type, [extents[s.symbol or ""] for s in at])
    made = NestOp(fresh_label(before, label), axes, [result], Region(body))
    block = before.parent
    assert block is not None
    block.insert_op_before(made, before)
    return made


def _tops(top: NestOp, score: ReadOp, rows: Sequence[Axis], at: Sequence[Expr], keys: Axis, blocks: Blocks) -> SSAValue:
    """Computes the maximum of the scores of every block and row, from the read of a score in the split exponentials."""
    body = Block()
    read = ReadOp(score.source, score.subscripts, guards=score.guards)
    if score.otherwise is not None:
        nothing = identity("max", element_of(score.source.type))
        body.add_op(nothing)
        read = ReadOp(score.source, score.subscripts, guards=score.guards, otherwise=nothing.result)
    body.add_op(read)
    body.add_op(YieldOp([Clause("max", read.result, at)]))
    raised = score.parent_op()
    assert isinstance(raised, NestOp)
    axes = [*rows, Axis(keys.name, Expr.of(blocks.size), "reduction")]
    made = _per_row(raised, f"{top.label}.blocks", axes, body, at)
    blocks.made.append(made)
    return made.outputs[0]


def _raised(tops: SSAValue, at: Sequence[Expr], blocks: Blocks) -> list[Operation]:
    """Returns the ops for the sum of a block's maximum and the logarithm of its size."""
    read = ReadOp(tops, at)
    length = arith.ConstantOp(FloatAttr(numbers.log(blocks.size), read.result.type))  # pyright: ignore
    return [read, length, arith.AddfOp(read.result, length.result)]


def _take_away(
    nest: NestOp, floor: ReadOp, tops: SSAValue, rows: Sequence[Axis], at: Sequence[Expr], blocks: Blocks
) -> None:
    """Makes the split exponentials subtract the value of their own block from the scores, instead of `floor`."""
    ops = _raised(tops, at, blocks)
    element = ops[0].results[0].type
    least = arith.ConstantOp(FloatAttr(LEAST[type(element)], element))  # pyright: ignore
    above = arith.MaximumfOp(ops[-1].results[0], least.result)
    body = Block([*ops, least, above, YieldOp([Clause("none", above.result, at)])])
    made = _per_row(nest, f"{nest.label}.floor", rows, body, at)
    replace_op(floor, ReadOp(made.outputs[0], at))


def _weights(softmax: Softmax, tops: SSAValue, rows: Sequence[Axis], at: Sequence[Expr], blocks: Blocks) -> SSAValue:
    """Computes the factors for the exponentials of a block."""
    ops = _raised(tops, at, blocks)
    floor = ReadOp(softmax.floor.source, softmax.floor.subscripts)
    less = arith.SubfOp(ops[-1].results[0], floor.result)
    weight = math.ExpOp(less.result)
    body = Block([*ops, floor, less, weight, YieldOp([Clause("none", weight.result, at)])])
    nest = softmax.exponentials
    return _per_row(nest, f"{nest.label}.weights", rows, body, at).outputs[0]


def _combined(
    nest: NestOp,
    parts: SSAValue,
    at: Sequence[Expr],
    blocks: Blocks,
    weight: tuple[SSAValue, Sequence[Expr]] | None = None,
) -> NestOp:
    """Makes `nest` combine `parts` over the blocks, times `weight` if given."""
    clause, result = nest.yield_op.clauses[0], nest.outputs[0]
    part = ReadOp(parts, at)
    body, value = Block([part]), part.result
    if weight is not None:
        factor = ReadOp(*weight)
        product = arith.MulfOp(factor.result, part.result)
        body.add_ops([factor, product])
        value = product.result
    body.add_op(YieldOp([Clause(clause.combiner, value, clause.subscripts)]))
    axes = [*(a for a in nest.axes if a.kind == "parallel"), Axis(blocks.axis, blocks.count, "reduction")]
    made = NestOp(nest.label, axes, [result.type], Region(body), None, dict(nest.attributes))
    made.outputs[0].name_hint = result.name_hint
    result.replace_all_uses_with(made.outputs[0])
    block = nest.parent
    assert block is not None
    block.insert_op_before(made, nest)
    nest.detach()
    nest.erase()
    return made


# -- the order of the nests -------------------------------------------------------------------------------------------


def _sink(first: NestOp, blocks: Blocks) -> None:
    """Moves `first` and its users after the nests of blocks, to keep the loops of these together."""
    block, last = first.parent, max(blocks.made, key=place_of)
    assert block is not None
    moved: list[Operation] = [first]
    for op in list(block.ops)[place_of(first) + 1 : place_of(last) + 1]:
        if any(value.owner in moved for inner in op.walk() for value in inner.operands):
            moved.append(op)
    if any(op in blocks.made or op in blocks.copies for op in moved):
        return
    for op in reversed(moved):
        op.detach()
        block.insert_op_after(op, last)


def _hoist(copy: NestOp, blocks: Blocks) -> None:
    """Moves a copy, with its operands, before the nests of blocks."""
    block, first = copy.parent, min(blocks.made, key=place_of)
    assert block is not None
    moved: list[Operation] = [copy]
    for op in reversed(list(block.ops)[place_of(first) : place_of(copy)]):
        if any(use.operation in moved or use.operation.parent_op() in moved for r in op.results for use in r.uses):
            moved.append(op)
    if any(op in blocks.made for op in moved):
        return
    for op in reversed(moved):
        op.detach()
        block.insert_op_before(op, first)


__all__ = ["Softmax", "SplitSoftmax", "softmax_of", "split_softmax"]
