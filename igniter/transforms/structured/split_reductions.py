"""`split-reductions`: splits a reduction into partial reductions and a reduction of their results.

    %c = loop.nest "matmul" [i: parallel 8, j: parallel 64, k: reduction 16384] -> tensor<8x64xf32> {
      %x = loop.read %a[i, k] : f32      %y = loop.read %b[k, j] : f32      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
becomes, with `nest=matmul axis=k parts=4`
    %t = loop.nest "matmul.parts" [part: parallel 4, i: parallel 8, j: parallel 64, k: reduction 4096] -> .. {
      %x = loop.read %a[i, 4096*part + k] : f32      ...
      loop.yield add %p at [part, i, j]
    }
    %c = loop.nest "matmul" [i: parallel 8, j: parallel 64, part: reduction 4] -> tensor<8x64xf32> {
      %v = loop.read %t[part, i, j] : f32
      loop.yield add %v at [i, j]
    }

The parts are independent: they give work to threads if rows and columns are few (split-K), and shorten chains of
dependent sums. The user names `nest`, `axis` and `parts`; nothing is split otherwise, and an impossible split is an
error. If the parts do not divide the axis, the last one is shorter: the combiner's identity pads it. A float sum is
reassociated.

The pass runs among the structured passes, before `choose-schedule`. A nest with a schedule is refused, because the
schedule would no longer match its loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.combiners import identity
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr, mod
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_rewriting import condition, fresh_axis, fresh_label, substitute_axes, zero


@dataclass(frozen=True)
class SplitReductions(ModulePass):
    """Splits the reduction `axis` of the nest called `nest` into `parts` partial ones"""

    name = "split-reductions"
    one_rewrite = "a reduction split"

    nest: str
    axis: str
    parts: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        nests = [n for kernel in op.ops if isinstance(kernel, KernelOp) for n in kernel.nests]
        found = [n for n in nests if n.label == self.nest]
        if not found:
            listed = ", ".join(n.label for n in nests)
            raise IgniterError(f"split-reductions: unknown nest '{self.nest}'; known: {listed or 'none'}")
        for nest in found:
            if not budget(ctx, self.name).take(nest.label, f"its sums over {self.axis} are split"):
                break
            parts = split_reduction(nest, self.axis, self.parts)
            remark(ctx, self.name, nest.label, "applied", f"its partial sums over {self.axis} are in '{parts.label}'")


def split_reduction(nest: NestOp, axis: str, parts: int, unit: int = 1) -> NestOp:
    """Adds the nest of the partial reductions before `nest`, which now reduces their results; returns the new nest.
    The length of a part is a multiple of `unit`, so there may be fewer parts. Raises `IgniterError` if it cannot."""
    where = f"split-reductions: nest '{nest.label}'"
    if nest.schedule is not None:
        raise IgniterError(f"{where} has a schedule for its present loops")
    if axis not in {a.name for a in nest.axes if a.kind == "reduction"}:
        names = ", ".join(a.name for a in nest.axes if a.kind == "reduction")
        raise IgniterError(f"{where} has no reduction '{axis}'; it has: {names or 'none'}")
    if parts < 2:
        raise IgniterError(f"{where}: the number of parts must be at least 2, not {parts}")
    whole = nest.axis(axis).extent
    length = whole.ceildiv(parts).ceildiv(unit) * unit
    parts = whole.ceildiv(length).constant or parts
    part = fresh_axis(nest, "part")
    first = _parts(nest, axis, part, parts, length)
    block = nest.parent
    assert block is not None
    block.insert_op_before(first, nest)
    _reduce_parts(nest, first, part, parts)
    return first


def _parts(nest: NestOp, axis: str, part: str, parts: int, length: Expr) -> NestOp:
    """Returns the nest with the additional axis `part`, which is also an additional dim of its results."""
    whole = nest.axis(axis).extent
    axes = [Axis(part, Expr.of(parts), "parallel")]
    axes += [Axis(a.name, length, a.kind) if a.name == axis else a for a in nest.axes]
    types = [tensor_of(element_of(r.type), [parts, *dims_of(r.type)]) for r in nest.outputs]
    first = NestOp(fresh_label(nest, f"{nest.label}.parts"), nest.axes, types, nest.body.clone())
    place = Expr.of(part) * length + axis
    substitute_axes(first, axes, {axis: place})
    if mod(whole, Expr.of(parts)) != ZERO:
        _guard(first, whole - 1 - place)
    last = first.yield_op
    clauses = [Clause(c.combiner, c.value, (Expr.of(part), *c.subscripts)) for c in last.clauses]
    first.block.insert_op_before(YieldOp(clauses), last)
    last.detach()
    last.erase()
    return first


def _guard(first: NestOp, left: Expr) -> None:
    """Makes the nest read nothing beyond the end of the axis, and combine the identity there."""
    last = first.yield_op
    for read in first.reads:
        otherwise = read.otherwise
        if otherwise is None:
            constant = zero(read.result.type)
            first.block.insert_op_before(constant, read)
            otherwise = constant.result
        fresh = ReadOp(
            read.source, read.subscripts, indices=read.indices, guards=[*read.guards, left], otherwise=otherwise
        )
        first.block.insert_op_before(fresh, read)
        read.result.replace_all_uses_with(fresh.result)
        read.detach()
        read.erase()
    inside = condition([left], [], lambda op: first.block.insert_op_before(op, last))
    values: list[SSAValue] = []
    for clause, result in zip(last.clauses, first.outputs, strict=True):
        nothing = identity(clause.combiner, element_of(result.type))
        chosen = arith.SelectOp(inside, clause.value, nothing.result)
        first.block.insert_ops_before([nothing, chosen], last)
        values.append(chosen.result)
    fresh = YieldOp([Clause(c.combiner, v, c.subscripts) for c, v in zip(last.clauses, values, strict=True)])
    first.block.insert_op_before(fresh, last)
    last.detach()
    last.erase()


def _reduce_parts(nest: NestOp, first: NestOp, part: str, parts: int) -> None:
    """Makes `nest` reduce the results of `first` along `part`."""
    clauses = nest.yield_op.clauses
    reads = [ReadOp(r, (Expr.of(part), *c.subscripts)) for r, c in zip(first.outputs, clauses, strict=True)]
    body = Block(reads)
    body.add_op(YieldOp([Clause(c.combiner, r.result, c.subscripts) for c, r in zip(clauses, reads, strict=True)]))
    kept = [a for a in nest.axes if a.kind == "parallel"]
    axes = [*kept, Axis(part, Expr.of(parts), "reduction")]
    types = [r.type for r in nest.outputs]
    second = NestOp(nest.label, axes, types, Region(body), None, dict(nest.attributes))
    block = nest.parent
    assert block is not None
    block.insert_op_before(second, nest)
    for old, new in zip(nest.outputs, second.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    nest.detach()
    nest.erase()
