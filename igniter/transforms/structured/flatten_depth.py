"""`flatten-depth`: joins the window and the channels of a convolution into one axis, the depth of its product.

    %h = loop.nest "conv" [m: parallel 196, o: parallel 64, d: reduction 32, i: reduction 3, j: reduction 3] {
      %w = loop.read %weight[i, j, d, o]
      %a = loop.read %image[m floordiv 14 + i - 1, m mod 14 + j - 1, d] if [..]
becomes
    %h = loop.nest "conv" [m: parallel 196, o: parallel 64, i_j_d: reduction 288] {
      %w = loop.read %weight'[i_j_d, o]
      %a = loop.read %image[m floordiv 14 + i_j_d floordiv 96 - 1, m mod 14 + i_j_d floordiv 32 mod 3 - 1,
                            i_j_d mod 32] if [..]

A program on a GPU multiplies block after block of the depth, with several blocks in flight: three loops of a few
iterations each would wait for memory at the start of each one, and a depth of three channels would fill a fifth of a
block. The order of the joined axes is that of the factor without guards, the weight (`order-weights`), so its blocks
are whole rows. If a block of the depth is inside of one element of the window, its place is one number for the block.
The pass runs after `flatten-rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.structured.attention import attentions
from igniter.analysis.structured.dot_products import dot_product, hangs_on
from igniter.dialects.loop import Axis, KernelOp, NestOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv, linearize, mod, product, symbols_of
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.joined_reads import join_reads
from igniter.transforms.structured.nest_rewriting import substitute_axes


@dataclass(frozen=True)
class FlattenDepth(ModulePass):
    """Joins the reductions of a product of blocks."""

    name = "flatten-depth"
    one_rewrite = "the reductions of a product joined"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            attention = {nest for found in attentions(kernel) for nest in found.members}
            for nest in kernel.nests:
                run = depth_of(nest) if nest not in attention and nest.schedule is None else []
                if not run:
                    continue
                said = f"joined the depth {', '.join(run)}"
                if not budget(ctx, self.name).take(nest.label, said):
                    return
                flatten(nest, run, frozenset(kernel.symbol_names))
                remark(ctx, self.name, nest.label, "applied", said)


def depth_of(nest: NestOp) -> list[str]:
    """Returns the reductions of a product, outermost first in the factor without guards; empty if there are fewer than
    two, or if that factor has no such order."""
    dot = dot_product(nest)
    if dot is None:
        return []
    extents = {a.name: a.extent for a in nest.axes if a.extent != ONE and a.kind == "reduction"}
    if len(extents) < 2 or not extents.keys() <= hangs_on(dot.a) & hangs_on(dot.b):
        return []
    for read in nest.reads:
        if read.guards or read.indices or not extents.keys() <= symbols_of(read.subscripts):
            continue
        offset = linearize(read.subscripts, dims_of(read.source.type))
        steps: dict[str, int] = {}
        for name in extents:
            step = offset.coefficient(name)
            if step is not None and step.constant is not None:
                steps[name] = step.constant
        run = sorted(extents, key=lambda name: -steps.get(name, 0))
        if len(steps) == len(run) and all(Expr.of(steps[a]) == extents[b] * steps[b] for a, b in pairwise(run)):
            return run
    return []


def flatten(nest: NestOp, run: list[str], taken: frozenset[str]) -> None:
    """Joins reductions into one axis in the place of the first of them."""
    extents = {a.name: a.extent for a in nest.axes}
    name = "_".join(run)
    while name in taken or name in extents:
        name += "_"
    joined = Axis(name, product(extents[n] for n in run), "reduction")
    first = next(a.name for a in nest.axes if a.name in run)
    axes = [joined if a.name == first else a for a in nest.axes if a.name == first or a.name not in run]
    values: dict[str, Expr] = {}
    rest = Expr.of(name)
    for axis in reversed(run[1:]):
        values[axis] = mod(rest, extents[axis])
        rest = floordiv(rest, extents[axis])
    values[run[0]] = rest
    substitute_axes(nest, axes, values)
    join_reads(nest)
