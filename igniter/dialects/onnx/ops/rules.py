"""Shared helpers of the op families: dims and known values of nodes, axes, broadcasting and legality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import NoneType, TensorType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import is_storable
from igniter.dialects.onnx.base import constant_weight
from igniter.dialects.onnx.registry import Dims, InferContext, LegalRule, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.broadcasting import broadcast_dims, must_agree
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import NO_RANGES, is_nonneg, simplify

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.weights import Weight

INFINITE = 1 << 30
"""The least magnitude of starts and ends that mean "to the end": no dim is as large."""


# -- the node ---------------------------------------------------------------------------------------------------------


def operand(op: OnnxOp, index: int) -> SSAValue | None:
    """Returns the operand; None if it is omitted."""
    # Not `op.inputs`, the list of all: a Concat may have thousands.
    operands = op.operands
    if index >= len(operands):
        return None
    value = operands[index]
    return None if type(value.type) is NoneType else value


def operand_dims(op: OnnxOp, index: int) -> Dims:
    """Returns the dims of a tensor operand."""
    value = operand(op, index)
    if value is None:
        raise ValueError(f"{op.qualified_name} has no input {index}")
    return dims_of(value.type)


def known(op: OnnxOp, index: int) -> Dims | None:
    """Returns the elements of an integer operand if they are known at compile time; else None."""
    from igniter.dialects.onnx.lowering.context import operand_values

    return operand_values(op, index)


def weight_operand(op: OnnxOp, index: int) -> Weight | None:
    """Returns the weight of a constant operand, also in a region, where it may be an argument; None if it is not
    constant."""
    value, region = operand(op, index), op.parent_op()
    if isinstance(value, BlockArgument) and isinstance(region, RegionOp):
        value = region.inputs[value.index]
    return constant_weight(value)


def input_dims(ctx: InferContext, index: int) -> Dims | None:
    """Returns the dims of an operand in a shape rule; None if it is omitted or its rank is unknown."""
    info = ctx.input(index)
    return None if info is None else info.dims


def equate_length(ctx: InferContext, index: int, count: int) -> None:
    """Records in a shape rule the number of elements of a list in every valid run."""
    dims = input_dims(ctx, index)
    if dims is not None and len(dims) == 1:
        ctx.equate(dims[0], Expr.of(count))


def element_type(ctx: InferContext, index: int = 0) -> Attribute:
    """Returns the element type of an operand in a shape rule."""
    info = ctx.input(index)
    if info is None:
        raise ValueError(f"input {index} is missing")
    return info.element


def constants(values: Dims | None) -> list[int] | None:
    """Returns the values as integers if all are constant; else None."""
    if values is None:
        return None
    found = [v.constant for v in values]
    ints = [v for v in found if v is not None]
    return ints if len(ints) == len(found) else None


def normal_axis(axis: int, rank: int) -> int:
    """Returns `axis` counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def attr_or_input(op: OnnxOp, name: str, values: Dims | None) -> Dims | None:
    """Returns a parameter, an attribute in old opsets and an operand in new ones; `values` are the known elements of
    the operand."""
    given = op.attributes.get(name)
    return values if given is None else tuple(Expr.of(int(v)) for v in op.attr(name))


# -- dims -------------------------------------------------------------------------------------------------------------


def tidy(e: Expr) -> Expr:
    """Returns `e` simplified by facts about all dims."""
    return simplify(e, NO_RANGES)


def counted(distance: Expr, step: int) -> Expr:
    """Returns the number of steps of `step` that begin before `distance`; 0 if it is negative."""
    return tidy(maximum(ZERO, floordiv(distance + (step - 1), Expr.of(step))))


def broadcast(ctx: InferContext, shapes: Sequence[Dims], hint: str) -> Dims:
    """Returns the dims of a broadcast result. Two different symbols leave a dim unknown, because either may be 1."""
    rank = max((len(s) for s in shapes), default=0)
    found: list[Expr] = []
    for position in range(-rank, 0):
        others = list(dict.fromkeys(s[position] for s in shapes if len(s) >= -position and s[position] != ONE))
        sizes = [d for d in others if d.constant is not None]
        if len(sizes) > 1:
            raise ValueError(f"dims {sizes[0]} and {sizes[1]} do not broadcast")
        if len(others) > 1 and not sizes:
            for dim in others[1:]:
                if ctx.optimistic or must_agree(others[0], dim):
                    ctx.equate(others[0], dim)
            known = others[0] if ctx.optimistic else broadcast_dims(others)
            found.append(known or ctx.fresh(f"{hint}_{position + rank}"))
        else:
            # A symbol beside an integer above 1 is the same integer or 1: the result is the integer.
            for dim in others if sizes and ctx.optimistic else ():
                ctx.equate(sizes[0], dim)
            found.append((sizes or others or [ONE])[0])
    return tuple(found)


def clamped(value: Expr, low: Expr, high: Expr) -> Expr:
    return tidy(minimum(maximum(value, low), high))


def is_sure(e: Expr) -> bool:
    """True if the sign of `e` is known."""
    return is_never_negative(e) or is_nonneg(-1 - e)


def is_never_negative(e: Expr) -> bool:
    """True if a size or an amount is proven non-negative for all symbols."""
    return is_nonneg(e) or proven(e, NO_RANGES)


def same_count(a: Dims, b: Dims) -> bool:
    """True if two lists of dims hold the same number of elements: as polynomials, or because a dim of `b` is defined as
    the quotient."""
    total, other = product(a), product(b)
    if total == other:
        return True
    return any(d == tidy(floordiv(total, product((*b[:k], *b[k + 1 :])))) for k, d in enumerate(b))


# -- legality ---------------------------------------------------------------------------------------------------------


def element_reason(element: Attribute) -> str | None:
    """Returns the reason why tensors of an element type cannot be in a kernel; None if they can."""
    return None if is_storable(element) else f"elements of type {element} are not supported in kernels yet"


def tensors_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the operands and results of a node cannot be tensors of a kernel; None if they can."""
    for value in (*op.inputs, *op.outputs):
        if value is None:
            continue
        if not isinstance(value.type, TensorType):
            return f"{value.type} is not a tensor of known rank"
        try:
            dims_of(cast("Attribute", value.type))
        except ValueError as error:
            return str(error)
        reason = element_reason(element_of(cast("Attribute", value.type)))
        if reason is not None:
            return reason
    return None


def legal(*checks: Callable[[OnnxOp], str | None]) -> LegalRule:
    """Returns a rule: the tensors must be supported in kernels, and all of `checks` must pass."""

    def rule(op: OnnxOp) -> str | None:
        reason = tensors_reason(op)
        for check in checks:
            if reason is None:
                reason = check(op)
        return reason

    return rule


def needs_values(index: int, what: str) -> Callable[[OnnxOp], str | None]:
    """Returns the check of an integer operand: if present, it must be known at compile time."""

    def check(op: OnnxOp) -> str | None:
        if operand(op, index) is None or known(op, index) is not None:
            return None
        return f"its {what} is known only at run time"

    return check


def infos(element: Attribute, *shapes: Sequence[Any] | None) -> list[TensorInfo]:
    """Returns the results of a shape rule, one for each list of dims."""
    return [TensorInfo(element, None if s is None else tuple(Expr.of(d) for d in s)) for s in shapes]


def unknown_rank(ctx: InferContext) -> list[TensorInfo]:
    """Returns the result of a shape rule with unknown rank and the element type of the first operand."""
    return infos(element_type(ctx), None)
