"""The compression of a model's weights: the weights to store in fewer bits, their coding, and reasons for the
others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp, bf16, f16
from xdsl.ir import Attribute

from igniter.analysis.onnx.weight_codes import Coding, error_of, is_finite
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight, imported_opset
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.tensor_types import declared_dims
from igniter.errors import IgniterError
from igniter.toolbox.compress.weight_uses import WeightUse, is_folded, weight_uses

if TYPE_CHECKING:
    from igniter.analysis.onnx.weight_codes import WeightError

BITS = {"int8": 8, "int4": 4}
HALVES: dict[str, Attribute] = {"f16": f16, "bf16": bf16}
LARGEST_F16 = 65504.0

NARROWEST_BLOCK = 16
"""The smallest block of MatMulNBits and GatherBlockQuantized; larger ones are powers of two."""
USUAL_BLOCK = 128
"""The block of an op that has only scales of blocks, where one scale covers the whole depth."""


@dataclass(frozen=True)
class Wanted:
    """The requested form of weights, and the selected weights."""

    weights: str
    granularity: str = "channel"
    block: int = 0
    symmetric: bool = False
    only: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    min_elements: int = 4096
    standard: bool = False

    @staticmethod
    def of(
        weights: str,
        granularity: str,
        symmetric: bool,
        only: Sequence[str],
        leave: Sequence[str],
        min_elements: int,
        standard: bool,
    ) -> Wanted:
        """Checks the values and returns the request; raises `IgniterError` for an invalid one."""
        if weights not in (*HALVES, *BITS):
            raise IgniterError(f"weights are stored as {', '.join((*HALVES, *BITS))}, not as '{weights}'")
        kind, colon, size = granularity.partition(":")
        if kind not in ("tensor", "channel", "block") or (kind == "block") != bool(colon):
            raise IgniterError(f"the granularity is tensor, channel or block:N, as in block:32, not '{granularity}'")
        if colon and (not size.isdigit() or int(size) < 2):
            raise IgniterError(f"'{granularity}': a block has two numbers or more")
        if weights in HALVES and symmetric:
            raise IgniterError(f"{weights} has no zero points: leave out symmetric")
        chosen = (int(size) if colon else 0, symmetric, tuple(only), tuple(leave), min_elements, standard)
        return Wanted(weights, kind, *chosen)


@dataclass(frozen=True, eq=False)
class WeightPlan:
    """One constant with its readers, and its new form: `coding` for integers, `half` for 16-bit floats; `reason` if it
    is left unchanged."""

    name: str
    constant: OnnxOp
    weight: Weight
    uses: tuple[WeightUse, ...] = ()
    foreign: bool = False
    """True if nodes of other kinds read it too."""
    coding: Coding | None = None
    half: Attribute | None = None
    contrib: bool = False
    """True if all its readers become ops of com.microsoft."""
    opset: int = 0
    current_opset: int = 0
    reason: str | None = None
    uncorrected: str = ""
    """Why samples do not correct it, if they are to."""

    def error(self) -> WeightError:
        """Returns the error of the stored weight."""
        found = self.coding or self.half
        assert found is not None
        return error_of(self.weight, found)


def plan_weights(module: ModuleOp, wanted: Wanted) -> list[WeightPlan]:
    """Returns a plan for each constant of two dims or more used in products.

    Raises `IgniterError` for a pattern without a match.
    """
    found: list[WeightPlan] = []
    for op in module.walk():
        if not isinstance(op, OnnxOp) or op.op_type != "Constant":
            continue
        weight = constant_weight(op.results[0])
        if weight is None or len(weight.shape) < 2:
            continue
        all_uses = weight_uses(op.results[0], len(weight.shape))
        uses = tuple(u for u in all_uses if u is not None)
        if uses and weight.element_type in FLOATS:
            found.append(WeightPlan(weight_name(op), op, weight, uses, len(uses) < len(all_uses)))
    _require_matches(found, (*wanted.only, *wanted.leave))
    return [_planned(plan, wanted) for plan in found]


def others(module: ModuleOp) -> list[tuple[str, str]]:
    """Returns the constants of two dims or more without a plan, the largest first, each with the reason."""
    found: list[tuple[int, str, str]] = []
    for op in module.walk():
        if not isinstance(op, OnnxOp) or op.op_type != "Constant":
            continue
        value = op.results[0]
        weight = constant_weight(value)
        if weight is None:
            if "sparse_value" in op.attributes:
                found.append((0, weight_name(op), "is sparse"))
        elif len(weight.shape) > 1 and weight.element_type not in FLOATS:
            found.append((weight.nbytes, weight_name(op), f"holds {weight.element.numpy_name}"))
        elif len(weight.shape) > 1 and not any(weight_uses(value, len(weight.shape))):
            nodes = [u.operation for u in value.uses if isinstance(u.operation, OnnxOp)]
            readers = dict.fromkeys(f"{n.qualified_name}{' of constants alone' * is_folded(n)}" for n in nodes)
            found.append((weight.nbytes, weight_name(op), f"is read by {', '.join(readers) or 'nothing'}"))
    return [(name, why) for _, name, why in sorted(found, key=lambda row: -row[0])]


FLOATS = (Float32Type(), Float16Type(), BFloat16Type())


def weight_name(op: OnnxOp) -> str:
    """Returns the name of a constant in the model."""
    named = text_of(op.properties.get("initializer_name"))
    outputs = [n for n in op.output_names if n]
    return named or (outputs[0] if outputs else "") or op.results[0].name_hint or "weight"


def names_of(plan: WeightPlan) -> list[str]:
    """Returns the names for patterns: the weight, and the names and ops of its readers."""
    ops = [use.op for use in plan.uses]
    return [plan.name, *(op.node_name for op in ops if op.node_name), *(op.op_type for op in ops)]


def _matches(plan: WeightPlan, patterns: Sequence[str]) -> str | None:
    return next((p for p in patterns if any(fnmatchcase(name, p) for name in names_of(plan))), None)


def _require_matches(plans: Sequence[WeightPlan], patterns: Sequence[str]) -> None:
    for pattern in patterns:
        if any(_matches(plan, [pattern]) for plan in plans):
            continue
        known = list(dict.fromkeys(name for plan in plans for name in names_of(plan)))
        near = difflib.get_close_matches(pattern.strip("*"), known, 3, 0.5)
        hint = f"like it are {', '.join(near)}" if near else f"weights are {', '.join(known[:5]) or 'none'} ..."
        raise IgniterError(f"'{pattern}' names no weight, and no node or op that reads one: {hint}")


def _planned(plan: WeightPlan, wanted: Wanted) -> WeightPlan:
    reason = _left(plan, wanted)
    if reason is not None:
        return replace(plan, reason=reason)
    current = imported_opset(plan.constant, "") or 0
    if wanted.weights in HALVES:
        return _half(replace(plan, current_opset=current), wanted)
    if isinstance(plan.weight.element_type, BFloat16Type):
        return replace(plan, reason="bf16 has no kernel that dequantises in ONNX Runtime")
    coding = coding_for(plan, wanted)
    made = replace(plan, coding=coding, current_opset=current)
    made = replace(made, contrib=_is_contrib(made, wanted))
    made = replace(made, opset=0 if made.contrib else _opset_for(made))
    if coding.nbytes(plan.weight.shape, 4) >= plan.weight.nbytes:
        return replace(made, reason="its codes and scales would not be smaller")
    return made if is_finite(plan.weight) else replace(made, reason="it holds numbers that are not finite")


def _left(plan: WeightPlan, wanted: Wanted) -> str | None:
    if wanted.only and _matches(plan, wanted.only) is None:
        return "it is not among those to compress"
    left = _matches(plan, wanted.leave)
    if left is not None:
        return f"'{left}' is to be left"
    if plan.weight.size < max(wanted.min_elements, 1):
        return f"it has fewer than {wanted.min_elements} elements"
    return "its values were elided when it was printed" if plan.weight.elided else None


def _half(plan: WeightPlan, wanted: Wanted) -> WeightPlan:
    half = HALVES[wanted.weights]
    if not isinstance(plan.weight.element_type, Float32Type):
        return replace(plan, reason=f"it is stored as {plan.weight.element_type}")
    plan = replace(plan, half=half, opset=13 if wanted.weights == "bf16" else 9)
    if not is_finite(plan.weight, LARGEST_F16 if wanted.weights == "f16" else None):
        return replace(plan, reason="it holds numbers that f16 has not: bf16 has them" if half == f16 else "not finite")
    return plan


# -- codings ----------------------------------------------------------------------------------------------------------


def coding_for(plan: WeightPlan, wanted: Wanted) -> Coding:
    """Returns the coding of a weight; among several readers, a product decides."""
    shape = plan.weight.shape
    use = next((u for u in plan.uses if u.kind == "product"), plan.uses[0])
    bits, symmetric = BITS[wanted.weights], wanted.symmetric
    if wanted.granularity == "tensor":
        return Coding(bits, None, 0, symmetric)
    block = wanted.block if wanted.granularity == "block" and shape[use.depth] >= wanted.block else 0
    if block:
        return Coding(bits, use.depth, block, symmetric)
    if any(u.kind == "table" for u in plan.uses) and len(shape) == 2 and use.channel == 0:
        # A row has one block, which can be gathered with it.
        return Coding(bits, 1, shape[1], symmetric)
    return Coding(bits, use.channel, 0, symmetric)


def _opset_for(plan: WeightPlan) -> int:
    """Returns the oldest opset with the ONNX features that a plan needs."""
    coding = plan.coding
    assert coding is not None
    if coding.block or coding.bits < 8:
        return 21
    if not isinstance(plan.weight.element_type, Float32Type):
        return 19
    return 10 if coding.axis is None else 13


def contrib_block(plan: WeightPlan, use: WeightUse) -> int:
    """Returns the block of an op of com.microsoft equivalent to `use`; 0 without such an op."""
    coding, shape = plan.coding, plan.weight.shape
    if coding is None or len(shape) != 2:
        return 0
    depth = shape[use.depth]
    if coding.axis == use.channel and not coding.block:
        return USUAL_BLOCK
    if coding.axis is None:
        return USUAL_BLOCK
    if coding.axis != use.depth:
        return 0
    if coding.block >= depth:
        return USUAL_BLOCK
    return coding.block if coding.block >= NARROWEST_BLOCK and not coding.block & (coding.block - 1) else 0


def _is_contrib(plan: WeightPlan, wanted: Wanted) -> bool:
    coding = plan.coding
    assert coding is not None
    # ONNX Runtime has a fast op for 8 bits only if the other factor may be rounded; it fuses DequantizeLinear into one.
    return coding.bits == 4 and not wanted.standard and not plan.foreign and all(_fits(plan, u) for u in plan.uses)


def _fits(plan: WeightPlan, use: WeightUse) -> bool:
    if not contrib_block(plan, use):
        return False
    op, coding = use.op, plan.coding
    assert coding is not None
    if use.kind == "table":
        even = plan.weight.shape[1] * coding.bits % 8 == 0
        return use.through is None and use.channel == 0 and even and op.qualified_name == "Gather"
    if op.qualified_name == "MatMul":
        dims = declared_dims(op.operands[0].type)
        return use.index == 1 and dims is not None and len(dims) >= 2
    if op.qualified_name != "Gemm" or use.index != 1 or op.attr("transA", 0):
        return False
    return op.attr("alpha", 1.0) == 1.0 and (len(op.operands) < 3 or op.attr("beta", 1.0) == 1.0)


__all__ = ["Wanted", "WeightPlan", "contrib_block", "plan_weights"]
