"""`postpone-scales`: divides a softmax by its sums after the product with the values instead of before.

    %p = loop.nest "softmax" [i, j] { %e = loop.read %exp[i, j]  %r = loop.read %inverse[i]  %e * %r }
    %o = loop.nest "values" [i, d, j: reduction] { add (%x = loop.read %p[i, j]) * (%y = loop.read %v[j, d]) }
becomes
    %o = loop.nest "values" [i, d, j: reduction] { add (%x = loop.read %exp[i, j]) * (%y = loop.read %v[j, d]) }
    %q = loop.nest "values.scale" [i, d] { %x = loop.read %o[i, d]  %r = loop.read %inverse[i]  %x * %r }

This replaces a scan of every query's row of scores by one of its features, of which there are fewer. It reassociates a
sum; this is allowed. Only exponentials are unscaled; a softmax keeps them within 0 and 1, so no new overflow is
possible. An empty sum stays 0, although its scale is the inverse of 0. The pass runs after `inline-nests`, because it
keeps the two nests apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.structured.contractions import factors_of
from igniter.dialects.loop import Axis, Clause, IndexOp, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.sym.expr import ONE, Expr, product, symbols_of
from igniter.dialects.sym.ranges import is_nonneg
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_rewriting import fresh_label


@dataclass(frozen=True)
class PostponeScales(ModulePass):
    """Moves the scale of exponentials after their contraction."""

    name = "postpone-scales"
    one_rewrite = "a contraction scaled after its sum"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in list(kernel.nests):
                if budget(ctx, self.name).is_spent:
                    return
                scaled = postpone(nest)
                if scaled is not None:
                    budget(ctx, self.name).count(nest.label, f"'{scaled}' is applied after the sum")
                    remark(ctx, self.name, nest.label, "applied", f"'{scaled}' is applied after the sum")


@dataclass(frozen=True)
class Scaled:
    """A factor of a contraction: the product of exponentials and a scale, both as reads of the producing nest."""

    factor: ReadOp
    producer: NestOp
    value: ReadOp
    scale: ReadOp


def postpone(nest: NestOp) -> str | None:
    """Scales the sums of one contraction instead of a factor. Returns the label of the nest that scaled it, or None."""
    factors = factors_of(nest)
    if nest.schedule is not None or isinstance(factors, str):
        return None
    sums = {a.name for a in nest.axes if a.kind == "reduction"}
    found = next((s for s in map(_scaled, factors) if s is not None), None)
    if found is None:
        return None
    places = _places(found)
    if places is None or sums & symbols_of(s.substitute(places) for s in found.scale.subscripts):
        return None
    block = found.factor.parent
    assert block is not None
    plain = ReadOp(found.value.source, [s.substitute(places) for s in found.value.subscripts])
    block.insert_op_before(plain, found.factor)
    found.factor.result.replace_all_uses_with(plain.result)
    found.factor.detach()
    found.factor.erase()
    _scale_after(nest, found, places)
    label = found.producer.label
    found.producer.detach()
    found.producer.erase()
    return label


def _scaled(factor: ReadOp) -> Scaled | None:
    """Returns a factor as exponentials times a scale, if nothing else reads it."""
    producer = factor.source.owner
    if not isinstance(producer, NestOp) or producer.schedule is not None or not factor.source.has_one_use():
        return None
    clauses = producer.yield_op.clauses
    if len(clauses) != 1 or clauses[0].combiner != "none":
        return None
    product = clauses[0].value.owner
    if not isinstance(product, arith.MulfOp) or len(list(producer.block.ops)) != 4:
        return None
    reads = [v.owner for v in product.operands]
    for value, scale in (reads, reads[::-1]):
        if isinstance(value, ReadOp) and isinstance(scale, ReadOp) and _is_exponential(value.source):
            plain = not (value.guards or value.indices or scale.guards or scale.indices)
            return Scaled(factor, producer, value, scale) if plain else None
    return None


def _is_exponential(tensor: SSAValue) -> bool:
    owner = tensor.owner
    if not isinstance(owner, NestOp) or len(owner.outputs) != 1:
        return False
    value = owner.yield_op.clauses[0].value.owner
    return isinstance(value, Operation) and value.name in ("math.exp", "math.exp2")


def _places(found: Scaled) -> dict[str, Expr] | None:
    """Returns the axes of the producer as expressions at the point read by the factor."""
    written = found.producer.yield_op.clauses[0].subscripts
    places: dict[str, Expr] = {}
    for subscript, at in zip(written, found.factor.subscripts, strict=True):
        if subscript.constant is not None:
            continue
        if subscript.symbol is None or subscript.symbol in places:
            return None
        places[subscript.symbol] = at
    return places


def _summed(nest: NestOp) -> Expr | None:
    """Returns the number of terms of each sum if it may be 0; otherwise None."""
    extents = [a.extent for a in nest.axes if a.kind == "parallel"]
    doubtful = [
        a.extent
        for a in nest.axes
        if a.kind == "reduction" and not any(is_nonneg(a.extent - least) for least in (ONE, *extents))
    ]
    return product(doubtful) if doubtful else None


def _scale_after(nest: NestOp, found: Scaled, places: dict[str, Expr]) -> None:
    """Adds a nest after a contraction, to multiply its sums by the scale; all readers now read its result."""
    clause = nest.yield_op.clauses[0]
    result = nest.outputs[0]
    axes = [Axis(a.name, a.extent, "parallel") for a in nest.axes if a.kind == "parallel"]
    total = ReadOp(result, clause.subscripts)
    scale = ReadOp(found.scale.source, [s.substitute(places) for s in found.scale.subscripts])
    scaled = arith.MulfOp(total.result, scale.result)
    body = Block([total, scale, scaled])
    value, summed = scaled.result, _summed(nest)
    if summed is not None:
        count, none = IndexOp(summed), arith.ConstantOp(IntegerAttr(0, i64))
        empty = arith.CmpiOp(count.result, none.result, "eq")
        chosen = arith.SelectOp(empty.result, total.result, value)
        body.add_ops([count, none, empty, chosen])
        value = chosen.result
    body.add_op(YieldOp([Clause("none", value, clause.subscripts)]))
    after = NestOp(fresh_label(nest, f"{nest.label}.scale"), axes, [result.type], Region(body))
    block = nest.parent
    assert block is not None
    block.insert_op_after(after, nest)
    result.replace_uses_with_if(after.outputs[0], lambda use: use.operation is not total)
