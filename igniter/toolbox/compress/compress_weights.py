"""`compress-weights`: stores weights in fewer bits; ONNX Runtime can run the result directly.

`weights=int8 granularity=channel`: codes and scales, dequantised before their readers.

    %y = onnx.Conv(%x, %w)       ->    %d = onnx.DequantizeLinear(%codes, %scales, %zeros) {axis = 0}
                                       %y = onnx.Conv(%x, %d)

`weights=int4`: products use ONNX Runtime's op that reads codes, unless `standard` is set.

    %y = onnx.MatMul(%x, %w)     ->    %y = onnx.com.microsoft.MatMulNBits(%x, %codes, %scales) {K, N, bits, block_size}

`weights=f16` or `bf16`: the rounded weight, and a Cast.

    %y = onnx.MatMul(%x, %w)     ->    %d = onnx.Cast(%rounded)
                                       %y = onnx.MatMul(%x, %d)

Rows of an embedding are dequantised after the Gather, which is exact and reads only the needed rows. A weight with
several readers is stored once. The opset is raised if an op needs that (`DequantizeLinear` per axis 13, in blocks and
of 4 bits 21) and the nodes keep their meaning. Each weight gets a remark: the reason if it is not changed, otherwise
its bytes before and after and, unless `measure=false`, its error.

Weights are read when the model is written, one at a time (`igniter/analysis/onnx/weight_codes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains, raise_opset
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.toolbox.compress.weight_plan import Wanted, WeightPlan, others, plan_weights
from igniter.toolbox.compress.weight_rewriting import rewrite_weight

Weights = Literal["f16", "bf16", "int8", "int4"]
WEIGHTS = ("f16", "bf16", "int8", "int4")


@dataclass(frozen=True)
class CompressWeights(ModulePass):
    """Stores weights in fewer bits: 16-bit floats, or integers with scales"""

    name = "compress-weights"
    one_rewrite = "a weight compressed"

    weights: str = "int8"
    """f16, bf16, int8 or int4."""
    granularity: str = "channel"
    """The part of a weight with its own scale: tensor, channel, or block:N for blocks of N."""
    symmetric: bool = False
    """Uses no zero points: 0 has the code 0."""
    only: tuple[str, ...] = ()
    """Patterns of names of weights, or of names or ops of their readers; only these weights are compressed."""
    leave: tuple[str, ...] = ()
    """The same patterns, for weights that are not changed."""
    min_elements: int = 4096
    """Smaller weights are not changed."""
    standard: bool = False
    """Uses no ops of com.microsoft."""
    accuracy_level: int = 0
    """The accuracy level of MatMulNBits: 4 allows rounding the other factor to eight bits."""
    measure: bool = True
    """Reports each weight's difference from the original in the remarks."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.rewrite(ctx, op, self.plans(op))

    def plans(self, op: ModuleOp) -> list[WeightPlan]:
        """Returns what is to become of the weights."""
        if self.accuracy_level not in range(5):
            raise IgniterError(f"the accuracy level is 0 to 4, not {self.accuracy_level}")
        wanted = Wanted.of(
            self.weights, self.granularity, self.symmetric, self.only, self.leave, self.min_elements, self.standard
        )
        return plan_weights(op, wanted)

    def rewrite(self, ctx: Context, op: ModuleOp, plans: Sequence[WeightPlan]) -> None:
        """Stores the weights as planned."""
        refused = _raise_opset(op, [p.opset for p in plans if p.reason is None])
        rewrites, count = budget(ctx, self.name), 0
        left: list[tuple[str, str]] = []
        for plan in plans:
            reason = plan.reason
            if reason is None and refused is not None and plan.opset > plan.current_opset:
                convert = f"`igniter edit --opset {plan.opset}` converts the model, if it can"
                reason = f"it needs opset {plan.opset}, and {refused}; {convert}"
            if reason is not None:
                left.append((plan.name, reason))
                remark(ctx, self.name, plan.name, "missed", f"it stays as it is: {reason}", weight=plan.name)
                continue
            if not rewrites.take(plan.name, f"it is stored as {self.weights}"):
                break
            error = plan.error() if self.measure else None
            details = {"weight": plan.name, "shape": list(plan.weight.shape), "before": plan.weight.nbytes}
            after, form = rewrite_weight(plan, self.accuracy_level)
            details |= {"after": after, "form": form, "readers": [_said(use.op) for use in plan.uses]}
            if plan.coding is not None and plan.coding.fixed is not None:
                details["corrected"] = True
            if plan.uncorrected:
                details["uncorrected"] = plan.uncorrected
            if error is not None:
                details |= {"error": error.largest, "mean_error": error.mean}
            remark(ctx, self.name, plan.name, "applied", f"{plan.weight.nbytes:,} bytes are {after:,}", **details)
            count += 1
        import_domains(op)
        if count == 0 and not rewrites.is_spent:
            raise IgniterError(_nothing(self.weights, left, op))


def _said(op: OnnxOp) -> str:
    return f"{op.op_type} {op.node_name}".rstrip()


def _raise_opset(module: ModuleOp, needed: Sequence[int]) -> str | None:
    """Raises the opset to the highest needed and legal version. Returns the reason if a needed one was refused."""
    refused: str | None = None
    for version in sorted(set(needed), reverse=True):
        why = raise_opset(module, version)
        if why is None:
            return refused
        refused = refused or why
    return refused


def _nothing(weights: str, left: Sequence[tuple[str, str]], module: ModuleOp) -> str:
    if not left:
        told = f"no weight can be stored as {weights}: no f32, f16 or bf16 constant of two dims or more is read by a "
        listed = "; ".join(f"'{name}' {why}" for name, why in others(module)[:4])
        return f"{told}node with a product{': ' * bool(listed)}{listed}"
    reasons: dict[str, list[str]] = {}
    for name, reason in left:
        reasons.setdefault(reason, []).append(name)
    told = "; ".join(f"{len(names)} ({names[0]} ...): {reason}" for reason, names in list(reasons.items())[:4])
    return f"no weight was stored as {weights}: {told}"


__all__ = ["WEIGHTS", "CompressWeights"]
