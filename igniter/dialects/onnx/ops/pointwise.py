"""Descriptions of elementwise ops: `pointwise("Add", lambda x, y: x + y)`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f16, f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.ops.counts import counted, times
from igniter.dialects.onnx.ops.rules import broadcast, element_type, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import (
    Dims,
    FlopsRule,
    InferContext,
    InferRule,
    OpSpec,
    RequiresRule,
    TensorInfo,
)
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.requirements import Requirement, equal, one_or

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering
    from igniter.dialects.onnx.lowering.context import ScalarFunction

ui8 = IntegerType(8, Signedness.UNSIGNED)

COMPUTED: frozenset[Attribute] = frozenset(
    (
        *(f32, f64, f16, bf16, i1),
        *(IntegerType(width, sign) for width in (8, 16, 32, 64) for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)),
    )
)
"""The element types with arithmetic."""

EXP = 10
"""The cost of an exponential or a similar function, relative to an addition."""


def pointwise(
    name: str,
    function: ScalarFunction,
    *,
    element: Attribute | None = None,
    cost: int = 1,
    check: Callable[[OnnxOp], str | None] | None = None,
) -> OpSpec:
    """Returns the spec of an op with broadcast operands; its result has the element type of the first one, or
    `element`."""
    return pointwise_with(name, lambda ctx: function, element=element, cost=cost, check=check)


def pointwise_with(
    name: str,
    make: Callable[[Lowering], ScalarFunction],
    *,
    element: Attribute | None = None,
    cost: int = 1,
    check: Callable[[OnnxOp], str | None] | None = None,
) -> OpSpec:
    """Returns the spec as `pointwise`, with a function that depends on the node's attributes."""
    checks = (
        (legacy_reason, computed_reason, capped_legal)
        if check is None
        else (
            legacy_reason,
            computed_reason,
            capped_legal,
            check,
        )
    )
    return OpSpec(
        name,
        infer=broadcast_infer(name, element),
        lower=lambda ctx: [ctx.map(make(ctx))],
        legal=legal(*checks),
        requires=broadcast_requires,
        flops=elementwise_flops(cost),
        kind="elementwise",
    )


def also(spec: OpSpec, rule: RequiresRule) -> OpSpec:
    """Returns the spec of an op with further requirements."""
    own = spec.requires

    def both(op: OnnxOp) -> list[Requirement]:
        return [*(own(op) if own is not None else ()), *rule(op)]

    return replace(spec, requires=both)


def variadic(name: str, make: Callable[[Lowering], Callable[..., Any]], last: int = 0) -> OpSpec:
    """Returns the spec of an op with any number of operands, broadcast since opset 8 and of equal shapes before.

    It costs one operation for each operand but the first, and `last` for a final step.
    """
    spec = pointwise_with(name, lambda ctx: cast("ScalarFunction", make(ctx)))
    text = f"elements of the result × (operands - 1{f' + {last}' if last else ''})"
    flops = counted(text, lambda op: result_count(op) * (len(op.inputs) - 1 + last))
    return replace(also(spec, _one_shape), flops=flops)


def _one_shape(op: OnnxOp) -> list[Requirement]:
    if op.opset >= 8:
        return []
    text = "its operands do not have the same shape, as opsets before 8 want"
    first, *others = (operand_dims(op, i) for i in range(len(op.inputs)))
    found = [equal(len(first), len(other), text) for other in others]
    return found + [equal(a, b, text) for other in others for a, b in zip(first, other, strict=False)]


def broadcast_infer(name: str, element: Attribute | None = None) -> InferRule:
    """Returns the shape rule of operands broadcast against each other."""

    def rule(ctx: InferContext) -> list[TensorInfo]:
        shapes = [input_dims(ctx, i) for i, v in enumerate(ctx.op.inputs) if v is not None]
        made = element_type(ctx) if element is None else element
        known = [s for s in shapes if s is not None]
        if len(known) < len(shapes):
            return [TensorInfo(made, None)]
        return [TensorInfo(made, broadcast(ctx, known, name.rpartition(".")[2].lower()))]

    return rule


def same_as_input(*elements: Attribute | None) -> InferRule:
    """Returns the shape rule of results with the dims of the first operand; `None` stands in for its element type."""

    def rule(ctx: InferContext) -> list[TensorInfo]:
        own = element_type(ctx)
        return [TensorInfo(own if e is None else e, input_dims(ctx, 0)) for e in elements]

    return rule


def elementwise_flops(cost: int) -> FlopsRule:
    """Returns the FLOPs rule of `cost` for each element of the first result."""
    return counted(times(cost, "elements of the result"), lambda op: result_count(op) * cost)


def result_count(op: OnnxOp) -> Expr:
    """Returns the number of elements of the first result."""
    return product(dims_of(op.results[0].type))


def operand_count(op: OnnxOp) -> Expr:
    """Returns the number of elements of the first operand."""
    return product(dims_of(op.operands[0].type))


# -- legality ---------------------------------------------------------------------------------------------------------


def computed_reason(op: OnnxOp) -> str | None:
    """Returns the reason why kernels cannot compute with the node's element types; None if they can."""
    for value in (*op.inputs, *op.outputs):
        if value is not None and isinstance(value.type, TensorType):
            element = element_of(cast("Attribute", value.type))
            if element not in COMPUTED:
                return f"elements of type {element} are not supported in kernels yet"
    return None


def broadcast_legal(op: OnnxOp) -> str | None:
    """Returns the reason why the operands do not broadcast to the result, or are not known to; None if they do."""
    from igniter.dialects.onnx.lowering.broadcast import broadcast_reason

    return broadcast_reason(_operand_shapes(op), dims_of(op.results[0].type))


def capped_legal(op: OnnxOp) -> str | None:
    """Returns the reason why a map of the operands is unknown; None if they broadcast, or if a run has to find out
    which of two dims is 1 (`broadcast_requires`). The result's dim is then that of an operand."""
    from igniter.dialects.onnx.lowering.broadcast import broadcast_reason

    reason = broadcast_legal(op)
    if reason is None or not _capped_dims(op):
        return reason
    shapes, target = _operand_shapes(op), dims_of(op.results[0].type)
    given = [{s[k] for s in shapes if len(s) >= -k} for k in range(-len(target), 0)]
    if any(dim not in dims for dim, dims in zip(target, given, strict=True)):
        return reason
    return broadcast_reason(shapes, target, capped=True)


def broadcast_requires(op: OnnxOp) -> list[Requirement]:
    """Requires every dim that is not proven to broadcast to be 1 or the result's."""
    return [one_or(dim, have, "its operands do not broadcast") for dim, have in _capped_dims(op)]


def _capped_dims(op: OnnxOp) -> list[tuple[Expr, Expr]]:
    """Returns the pairs of a dim of an operand and one of the result of which only a run knows the relation."""
    from igniter.dialects.onnx.lowering.broadcast import is_capped

    target = dims_of(op.results[0].type)
    pairs = [pair for shape in _operand_shapes(op) for pair in zip(reversed(shape), reversed(target), strict=False)]
    return [(dim, have) for dim, have in pairs if is_capped(dim, have)]


def _operand_shapes(op: OnnxOp) -> list[Dims]:
    return [dims_of(v.type) for v in op.inputs if v is not None]


def legacy_reason(op: OnnxOp) -> str | None:
    """Returns the reason why an op before opset 7 cannot be lowered: it aligned dims by the attributes `broadcast` and
    `axis`."""
    if op.domain == "" and op.opset < 7 and int(op.attr("broadcast", 0)) == 1:
        return "it broadcasts by the attributes of opset 6 and before; convert the model to opset 7 or later"
    return None


# -- attributes -------------------------------------------------------------------------------------------------------


def float_attr(ctx: Lowering, name: str, default: float = 0.0) -> float:
    """Returns a float attribute, rounded to f32 as ONNX stores it."""
    value = ctx.attr(name)
    return struct.unpack("<f", struct.pack("<f", default if value is None else float(value)))[0]


def scalar_reason(op: OnnxOp, index: int, what: str) -> str | None:
    """Returns the reason why an operand is not a single element; None if it is, or is omitted."""
    inputs = op.inputs
    value: SSAValue | None = inputs[index] if index < len(inputs) else None
    if value is None or product(dims_of(value.type)) == 1:
        return None
    return f"its {what} is not one element"
