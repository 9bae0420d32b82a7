"""Identity, and If with a constant condition."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Region

from igniter.dialects.onnx.base import OnnxOp
from igniter.transforms.onnx_rewriting import Replacement, Rewriter, Rules, splat


def drop_identity(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Identity. Where an output of the graph needs a copy to have its name, export makes one."""
    return [op.operands[0]]


def inline_if(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """If with a constant condition is the branch that is taken"""
    condition = splat(op.operands[0])
    if condition is None:
        return None
    region = cast(Region, op.attr("then_branch" if condition else "else_branch"))
    block = region.block
    last = block.last_op
    target = op.parent
    assert last is not None and target is not None
    values = list(last.operands)
    block.erase_op(last)
    for inner in list(block.ops):
        inner.detach()
        target.insert_op_before(inner, op)
        rw.push(inner)
    return values


RULES: Rules = {"Identity": [drop_identity], "If": [inline_if]}
