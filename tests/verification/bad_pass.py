"""Passes that are wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp


@dataclass(frozen=True)
class SwapSubtractions(ModulePass):
    """Swaps the operands of every subtraction in kernels."""

    name = "swap-subtractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == "arith.subf":
                inner.operands = [inner.operands[1], inner.operands[0]]


@dataclass(frozen=True)
class SwapSubNodes(ModulePass):
    """Swaps the operands of every Sub node, before there are kernels."""

    name = "swap-sub-nodes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, OnnxOp) and inner.op_type == "Sub":
                inner.operands = [inner.operands[1], inner.operands[0]]
