"""`split-codes`: gives a sum of products with codes, for few rows, axes for groups and bytes.

Before, for weights of 4 bits with a scale for 32 of a column:

    loop.nest "product" [j: parallel 64, k: reduction 256] {
      x = %x[0, k]    q = (%w[j, k floordiv 2] >> 4*(k mod 2)) & 15    s = %s[j, k floordiv 32]
      loop.yield add x * round(q * s) at [0, j]
    }

After:

    loop.nest "product" [j: parallel 64, g: reduction 8, h: reduction 16] {
      x0 = %x[0, 32*g + 2*h]    x1 = %x[0, 32*g + 2*h + 1]    b = %w[j, 16*g + h]    s = %s[j, g]
      loop.yield add (x0 * (b & 15) + x1 * (b >> 4)) * s at [0, j]
    }

A point reads a byte once, for all of its numbers, and a scale is the same for a group. The scale is multiplied once for
the numbers of a byte, and a product is no longer rounded to the type of 16-bit activations. Threads compute these sums,
without tensor cores: a product of blocks has at least 16 rows.

The author decides by the number of rows (`igniter.schedules.code_sums`). So the pass runs after `form-variants`, which
makes a variant for few rows, and before `choose-splits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.machine import machine_of
from igniter.analysis.structured.attention import attentions
from igniter.analysis.structured.codes import CodedSum, coded_sum, simplified
from igniter.analysis.structured.dot_products import hangs_on, narrowed
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, YieldOp
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.loop.schedule import PRODUCTS
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.proofs import proven
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.code_sums import sums_by_threads
from igniter.schedules.product_blocks import figures_of
from igniter.transforms.structured.nest_rewriting import (
    condition,
    erase_dead_ops,
    fresh_axis,
    map_exprs,
    merge_equal_ops,
    zero,
)

UNGROUPED = 128
"""The depths of a group of codes without scales of their own."""


@dataclass(frozen=True)
class SplitCodes(ModulePass):
    """Gives sums of products with codes, for few rows, axes for groups and bytes"""

    name = "split-codes"
    one_rewrite = "a sum given axes for groups and bytes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        how, gpu = machine.features if machine.features in PRODUCTS else "", figures_of(machine.cpu)
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            inside = {nest for found in attentions(kernel) for nest in found.members}
            for nest in [n for n in kernel.nests if n not in inside and n.schedule is None]:
                found = coded_sum(nest)
                if found is None or not sums_by_threads(nest, how, gpu):
                    continue
                said = f"threads sum over {found.axis}, {found.codes.parts} numbers of a byte at a time"
                if not budget(ctx, self.name).take(nest.label, said):
                    return
                split_codes(nest, found)
                remark(ctx, self.name, nest.label, "applied", said)


def split_codes(nest: NestOp, found: CodedSum) -> None:
    """Replaces a nest by one with an axis of groups and an axis of bytes."""
    whole, parts = nest.axis(found.axis).extent, found.codes.parts
    group = found.codes.group or UNGROUPED
    outer, inner = fresh_axis(nest, "g"), fresh_axis(nest, "h")
    new = [Axis(outer, whole.ceildiv(group), "reduction"), Axis(inner, Expr.of(group // parts), "reduction")]
    axes = [each for axis in nest.axes for each in (new if axis.name == found.axis else [axis])]
    place = Expr.of(outer) * group + Expr.of(inner) * parts
    types = [r.type for r in nest.outputs]
    copies = [NestOp(nest.label, axes, types, nest.body.clone(), None, dict(nest.attributes)) for _ in range(parts)]
    for part, copy in enumerate(copies):
        values = {found.axis: place + part}
        copy.axes_attr = AxesAttr(axes)
        ranges = copy.axes_attr.ranges
        map_exprs(copy, lambda e, v=values, r=ranges: simplified(e.substitute(v), r))
        for read in copy.reads:
            limits = zip(dims_of(read.source.type), read.subscripts, strict=True)
            if not all(proven(dim - 1 - at, ranges, read.guards) for dim, at in limits):
                read.guards_attr = DimsAttr([*read.guards, whole - 1 - place - part])
    first, *others = copies
    last = first.yield_op
    products = [copy.yield_op.clauses[0].value.owner for copy in copies]
    for other in others:
        for op in [each for each in other.block.ops if not isinstance(each, YieldOp)]:
            op.detach()
            first.block.insert_op_before(op, last)
        end = other.yield_op
        end.detach()
        end.erase()
    left = [whole - 1 - place - part for part in range(parts)] if (whole.constant or 0) % group else []
    _sum_products(first, [p for p in products if isinstance(p, arith.MulfOp)], left, inner, found)
    block = nest.parent
    assert block is not None
    block.insert_op_before(first, nest)
    for old, fresh in zip(nest.outputs, first.outputs, strict=True):
        fresh.name_hint = old.name_hint
        old.replace_all_uses_with(fresh)
    nest.detach()
    nest.erase()


def _sum_products(
    nest: NestOp, products: Sequence[arith.MulfOp], left: Sequence[Expr], inner: str, found: CodedSum
) -> None:
    """Makes a nest yield the sum of its products, with a scale that they share multiplied once. A product at a depth
    with a negative `left` is 0."""
    last = nest.yield_op

    def add(op: Operation) -> SSAValue:
        nest.block.insert_op_before(op, last)
        return op.results[0]

    merge_equal_ops(nest.block)
    weight_first = found.weight is _product_of(found).lhs
    scales: list[SSAValue | None] = []
    total: SSAValue | None = None
    for k, product in enumerate(products):
        x, weight = (product.rhs, product.lhs) if weight_first else (product.lhs, product.rhs)
        number, scale = _without_scale(weight, inner)
        scales.append(scale)
        term = add(arith.MulfOp(x, number))
        if left:
            inside = condition([left[k]], [], lambda op: nest.block.insert_op_before(op, last))
            nothing = add(zero(term.type))
            term = add(arith.SelectOp(inside, term, nothing))
        total = term if total is None else add(arith.AddfOp(total, term))
    assert total is not None
    if scales[0] is not None:
        assert len(set(scales)) == 1, "the numbers of a byte have one scale"
        total = add(arith.MulfOp(total, scales[0]))
    clause = last.clauses[0]
    replace = YieldOp([Clause(clause.combiner, total, clause.subscripts)])
    nest.block.insert_op_before(replace, last)
    last.detach()
    last.erase()
    erase_dead_ops(nest.block)


def _product_of(found: CodedSum) -> arith.MulfOp:
    use = next(iter(found.weight.uses)).operation
    assert isinstance(use, arith.MulfOp)
    return use


def _without_scale(weight: SSAValue, inner: str) -> tuple[SSAValue, SSAValue | None]:
    """Returns the number of a weight and its scale, the same for all bytes of a group; the weight and `None` for a
    weight of another form."""
    value = narrowed(weight)
    if isinstance(value.owner, arith.TruncFOp):
        value = value.owner.operands[0]
    scaled = value.owner
    if isinstance(scaled, arith.MulfOp):
        for number, scale in ((scaled.lhs, scaled.rhs), (scaled.rhs, scaled.lhs)):
            if inner not in hangs_on(scale):
                return number, scale
    return weight, None
