"""`split-heads`: gives attention without rows the query heads that share keys as rows.

Before, in a decoding step of 32 query heads and 8 heads of keys:

    %s = loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 128] -> tensor<32x?xf32, #sym.dims<32, t>> {
      %a = loop.read %q[h, d] : f16
      %b = loop.read %k[h floordiv 4, j, d] : f16
      ...
      loop.yield add %p at [h, j]
    }

After:

    %0 = loop.nest "scores" [h_0: parallel 8, h_1: parallel 4, j: parallel t, d: reduction 128] -> tensor<8x4x?xf32> {
      %a = loop.read %q[4*h_0 + h_1, d] : f16
      %b = loop.read %k[h_0, j, d] : f16
      ...
      loop.yield add %p at [h_0, h_1, j]
    }
    %s = loop.view %0 : tensor<8x4x?xf32, ...> to tensor<32x?xf32, ...>

and so on with all nests of the attention and with those that read its result. The scores and the weighted sum are now
products of blocks, whose rows are the heads `h_1`: a program on a GPU reads the keys and values once for all of them,
not once for each. Only for factors of 16 bits, which tensor cores multiply: blocks of so few rows are mostly padding.

The pass runs after `collapse-axes`, which would join the axes again.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.structured.attention import Attention, attentions
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.loop.panels import is_half
from igniter.dialects.sym.expr import Expr
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.split_axes import Parts, SplitAxes, split

MOST = 64
"""The most heads that become the rows of one block."""


@dataclass(frozen=True)
class SplitHeads(ModulePass):
    """Makes query heads that share keys the rows of an attention without rows"""

    name = "split-heads"
    one_rewrite = "the heads of an attention split"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for attention in attentions(kernel):
                found = shared_heads(attention)
                if isinstance(found, str):
                    remark(ctx, self.name, attention.scores.label, "missed", found)
                    continue
                axis, count = found
                message = f"the {count} query heads of each head of keys became rows"
                if budget(ctx, self.name).take(attention.scores.label, message):
                    split_heads(kernel, attention, axis, count)
                    remark(ctx, self.name, attention.scores.label, "applied", message)


def shared_heads(attention: Attention) -> tuple[str, int] | str:
    """Returns the axis of query heads in the scores, and the number of them that share keys; or the reason why they
    do not become rows."""
    if attention.rows:
        return "it has rows"
    scores = attention.scores
    if any(nest.schedule is not None for nest in attention.members):
        return "it has a schedule"
    if not all(is_half(read.result.type) for read in scores.reads):
        return "its factors are not of 16 bits"
    extents = {axis.name: axis.extent.constant for axis in scores.axes if axis.kind == "parallel"}
    for read in scores.reads:
        for subscript in read.subscripts:
            call = subscript.call
            if call is None or call.fn != "floordiv" or call.args[0].symbol not in extents:
                continue
            axis, count = call.args[0].symbol or "", call.args[1].constant
            heads = extents.get(axis)
            if count and heads and count > 1 and heads % count == 0:
                return (axis, count) if count <= MOST else f"{count} heads are more than a block of {MOST} rows"
    return "no heads share keys"


def split_heads(kernel: KernelOp, attention: Attention, axis: str, count: int) -> None:
    """Splits the axis of heads of the scores, and that of every later nest that reads what is split."""
    taken = frozenset(kernel.symbol_names)
    scores = attention.scores
    (extent,) = [a.extent for a in scores.axes if a.name == axis]
    assert extent.constant is not None
    pieces = Expr.of(extent.constant // count), Expr.of(count)
    split(scores, {axis: pieces}, taken)
    through_views = SplitAxes(min_inner=1, sums=True)
    for nest in list(kernel.nests):
        if nest is scores or nest.schedule is not None or not _may_follow(nest, attention):
            continue
        parts: Parts = {name: found for name, found in through_views.parts_of(nest).items() if found == pieces}
        if parts:
            split(nest, parts, taken)


def _may_follow(nest: NestOp, attention: Attention) -> bool:
    """True for the nests of the attention, and for nests without sums after it."""
    return nest in attention.members or all(axis.kind == "parallel" for axis in nest.axes)
