"""Passes that are wrong on purpose, as a package outside of Igniter would have them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.dialects.loop import ForOp
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Expr, minimum
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget


def nodes(module: ModuleOp, op_type: str) -> Iterator[OnnxOp]:
    """The nodes of one kind, wherever they are."""
    for op in list(module.walk()):
        if isinstance(op, OnnxOp) and op.op_type == op_type:
            yield op


@dataclass(frozen=True)
class RebuildActivations(ModulePass):
    """Makes every activation anew: an Abs and a Relu as they were, and a Sigmoid of a Tanh, which is wrong"""

    name = "rebuild-activations"
    one_rewrite = "an activation made anew"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        for node in [n for n in op.walk() if isinstance(n, OnnxOp) and n.op_type in ("Abs", "Relu", "Tanh")]:
            if not rewrites.take(node.node_name, f"{node.op_type} is made anew"):
                return
            kind = "Sigmoid" if node.op_type == "Tanh" else node.op_type
            fresh = make_op(kind, node.inputs, [r.type for r in node.results])
            block = node.parent
            assert block is not None
            block.insert_op_before(fresh, node)
            node.results[0].replace_all_uses_with(fresh.results[0])
            block.erase_op(node)


@dataclass(frozen=True)
class SwapSubtractions(ModulePass):
    """Swaps the operands of every subtraction in kernels, which is wrong"""

    name = "swap-subtractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == "arith.subf":
                inner.operands = [inner.operands[1], inner.operands[0]]


def _reads_a_softmax(node: Operation) -> bool:
    return any(isinstance(v.owner, OnnxOp) and v.owner.op_type == "Softmax" for v in node.operands)


@dataclass(frozen=True)
class RefuseSoftmax(ModulePass):
    """Raises where a Mul reads a Softmax, and another error on a Sqrt"""

    name = "refuse-softmax"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for node in nodes(op, "Mul"):
            if _reads_a_softmax(node):
                raise IgniterError(f"node '{node.node_name}': a product of 7 probabilities is not understood")
        for node in nodes(op, "Sqrt"):
            raise IgniterError(f"a root of '{node.node_name}'")


@dataclass(frozen=True)
class AbortOnErf(ModulePass):
    """Ends the process where there is an Erf, or hangs it"""

    name = "abort-on-erf"
    hang: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _ in nodes(op, "Erf"):
            if self.hang:
                time.sleep(3600)
            os.kill(os.getpid(), signal.SIGSEGV)


@dataclass(frozen=True)
class CutLoops(ModulePass):
    """Ends every loop over a symbol after 1000 iterations: no small size shows it."""

    name = "cut-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in op.walk():
            if isinstance(loop, ForOp) and loop.end.constant is None:
                loop.bounds = DimsAttr([loop.first, minimum(loop.end, Expr.of(1000))])
