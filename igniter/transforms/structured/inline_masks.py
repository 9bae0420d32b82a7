"""`inline-masks`: folds masks made of positions into the attention that reads them.

Before:

    %m = loop.nest "greater" [i: parallel s, j: parallel t] -> tensor<?x?xi1, #sym.dims<s, t>> {
      %a = loop.index j - i : i64
      ...
      loop.yield none %c at [i, j]
    }
    %s = loop.nest "where" [h: parallel 12, i: parallel s, j: parallel t] -> tensor<12x?x?xf32, ...> {
      %a = loop.read %m[i, j] : i1
      ...

After:

    %s = loop.nest "where" [h: parallel 12, i: parallel s, j: parallel t] -> tensor<12x?x?xf32, ...> {
      %a = loop.index j - i : i64
      ...

`inline-nests` keeps such a nest where its body costs more than a read, as it is the same for all heads. On a GPU
the comparison in the attention saves the memory, and tells `lower-to-triton` which keys a row sees: it leaves out the
blocks of the others. A nest is folded if it reads nothing and an attention
(`igniter.analysis.structured.attention`) reads it. The pass runs after `inline-nests` and before `collapse-axes`, where
subscripts are still axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.structured.attention import attentions
from igniter.dialects.loop import IndexOp, KernelOp, NestOp, YieldOp
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.inline_nests import inline_nest, producers_of

MOST = 16
"""The most ops of a folded body."""

CHEAP = (
    IndexOp,
    YieldOp,
    arith.ConstantOp,
    arith.CmpiOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.SelectOp,
    arith.ExtSIOp,
)
"""The ops of masks of positions."""


@dataclass(frozen=True)
class InlineMasks(ModulePass):
    """Folds masks made of positions into attention"""

    name = "inline-masks"
    one_rewrite = "a mask folded into the attention that reads it"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for mask in list(dict.fromkeys(masks_of(kernel))):
                if not budget(ctx, self.name).take(mask.label, "it is folded into attention"):
                    return
                label, reason = mask.label, inline_nest(mask)
                kind, message = ("applied", "folded into attention") if reason is None else ("missed", reason)
                remark(ctx, self.name, label, kind, message)


def masks_of(kernel: KernelOp) -> Iterator[NestOp]:
    """Yields the nests that make a mask of positions for an attention."""
    for attention in attentions(kernel):
        for nest in attention.members:
            if any(axis.kind == "reduction" for axis in nest.axes):
                continue
            yield from (p for p in producers_of(nest) if p not in attention.members and is_mask(p))


def is_mask(nest: NestOp) -> bool:
    """True for an elementwise nest that reads no tensor and is cheap to repeat."""
    ops = list(nest.block.ops)
    plain = all(c.combiner == "none" and c.otherwise is None for c in nest.yield_op.clauses)
    return nest.schedule is None and plain and len(ops) <= MOST and all(isinstance(op, CHEAP) for op in ops)
