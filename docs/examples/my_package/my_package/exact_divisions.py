"""`exact-divisions`: multiplies by the inverse instead of dividing by a power of two.

    %y = onnx.Div(%x, %eight)     ->     %y = onnx.Mul(%x, %eighth)

Both round the same real number once, so the results are equal to the bit, if the inverse is exact. It is for a power of
two, unless the inverse overflows or is subnormal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, run_rules


@dataclass(frozen=True)
class ExactDivisions(ModulePass):
    """Multiplies by the inverse instead of dividing by a power of two"""

    name = "exact-divisions"
    one_rewrite = "a Div that becomes a Mul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refused: dict[OnnxOp, str] = {}

        def multiply_by_the_inverse(node: OnnxOp, rewriter: Rewriter) -> Replacement | None:
            divisor = constant_value(node.operands[1])
            reason = why_not(divisor)
            if divisor is None or reason is not None:
                refused[node] = reason or ""
                return None
            inverse = rewriter.constant(np.asarray(1 / divisor, divisor.dtype))
            return rewriter.op("Mul", [node.operands[0], inverse], [node.results[0].type]).results

        rules = {"Div": (multiply_by_the_inverse,)}
        made = run_rules(op, rules, budget(ctx, self.name)).applied
        remark(ctx, self.name, "", "applied", f"to {sum(made.values())} nodes")
        for node, reason in refused.items():
            remark(ctx, self.name, node.node_name, "missed", reason)


def why_not(divisor: np.ndarray | None) -> str | None:
    """Returns the reason why a divisor has no exact inverse, or None."""
    if divisor is None or divisor.dtype not in (np.float32, np.float64):
        return "its divisor is no constant of f32 or f64"
    limits = np.finfo(divisor.dtype)
    for value in map(float, divisor.flat):
        if math.frexp(value)[0] not in (0.5, -0.5) or not limits.tiny <= abs(1 / value) <= limits.max:
            return f"{value} is no power of two with an exact inverse"
    return None
