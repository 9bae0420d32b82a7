"""`read-past-views`: makes nests read the source of a view that only adds or removes dims of size 1.

    %h = loop.nest "matmul" [..] -> tensor<?x2x1x16xf32, #sym.dims<b, 2, 1, 16>>
    %v = loop.view %h : tensor<?x2x1x16xf32, ..> to tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>>
    %y = loop.nest "add" [i, j, k] { %a = loop.read %v[i, 0, j, k] .. }
becomes
    %y = loop.nest "add" [i, j, k] { %a = loop.read %h[i, j, 0, k] .. }

A GPU launch fuses a nest with its producer only if it reads the producer's elements directly, without a view. The pass
runs after `collapse-axes` and `canonicalize-loop`, and before `choose-schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class ReadPastViews(ModulePass):
    """Reads the sources of views that only add or remove dims of size 1."""

    name = "read-past-views"
    one_rewrite = "a nest that reads the sources of its views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in kernel.nests:
                reads = [read for read in nest.reads if past_views(read) is not None]
                said = f"{len(reads)} reads use the sources of views"
                if not reads:
                    continue
                if not budget(ctx, self.name).take(nest.label, said):
                    return
                for read in reads:
                    _rewrite(read)
                remark(ctx, self.name, nest.label, "applied", said)
            for view in [v for v in kernel.block.ops if isinstance(v, ViewOp)][::-1]:
                if not view.result.uses:
                    view.detach()
                    view.erase()


def past_views(read: ReadOp) -> tuple[SSAValue, tuple[Expr, ...]] | None:
    """Returns the source of a read behind such views, and the subscripts; None if there are no such views."""
    source, at = read.source, tuple(read.subscripts)
    while isinstance(source.owner, ViewOp):
        here, there = dims_of(source.type), dims_of(source.owner.source.type)
        if [d for d in here if d != ONE] != [d for d in there if d != ONE]:
            break
        wide = iter(e for e, d in zip(at, here, strict=True) if d != ONE)
        at = tuple(ZERO if d == ONE else next(wide) for d in there)
        source = source.owner.source
    return None if source is read.source else (source, at)


def _rewrite(read: ReadOp) -> None:
    found = past_views(read)
    assert found is not None
    source, at = found
    nest = read.parent_op()
    assert isinstance(nest, NestOp)
    fresh = ReadOp(source, at, indices=read.indices, guards=read.guards, otherwise=read.otherwise)
    nest.block.insert_op_before(fresh, read)
    fresh.result.name_hint = read.result.name_hint
    read.result.replace_all_uses_with(fresh.result)
    read.detach()
    read.erase()
