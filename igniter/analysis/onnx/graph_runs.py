"""The runs of a node's graphs for each execution of the node: the branches of an If, the bodies of Loop and Scan."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.sym.expr import ONE, Expr
from igniter.dialects.sym.tensor_types import known_dims_of


def runs_of(op: OnnxOp) -> Expr | None:
    """Returns the runs of a node's graphs, 1 for a branch that is taken; `None` if the model does not give them.

    A Loop has the trip count that alone ends it, else the dim that stacks its iterations. A Scan has the dim of its
    slices.
    """
    match op.qualified_name:
        case "If":
            return ONE
        case "Loop":
            return _loop_runs(op)
        case "Scan":
            return _scan_runs(op)
        case _:
            return None


def is_unconditional(op: OnnxOp) -> bool:
    """True if only its trip count ends a Loop."""
    body, yielded = body_of(op)
    start = op.inputs[1] if len(op.operands) > 1 else None
    going = unchanged(yielded[0])
    return truth_of(start) is True and (going is body.args[1] or truth_of(going) is True)


def body_of(op: OnnxOp) -> tuple[Block, tuple[SSAValue, ...]]:
    """Returns the body of a Loop or a Scan, and the values that it returns."""
    body: Block = op.attr("body").block
    last = body.last_op
    assert last is not None
    return body, tuple(last.operands)


def unchanged(value: SSAValue) -> SSAValue:
    """Returns the value behind Identity nodes."""
    while isinstance(value.owner, OnnxOp) and value.owner.qualified_name == "Identity":
        value = value.owner.operands[0]
    return value


def truth_of(value: SSAValue | None) -> bool | None:
    """Returns the value of a condition, if it is known at compile time; an absent condition is true."""
    if value is None:
        return True
    constant = constant_value(value)
    return bool(constant.reshape(-1)[0]) if constant is not None and constant.size == 1 else None


def _loop_runs(op: OnnxOp) -> Expr | None:
    limit = known(op, 0) if op.inputs and op.inputs[0] is not None else None
    constant = constant_value(op.inputs[0]) if limit is None else None
    if constant is not None and constant.size == 1:
        limit = (Expr.of(int(constant.reshape(-1)[0])),)
    if limit is not None and len(limit) == 1 and is_unconditional(op):
        return limit[0]
    carried = max(len(op.operands) - 2, 0)
    return next((dims[0] for r in op.results[carried:] if (dims := known_dims_of(r.type))), None)


def _scan_runs(op: OnnxOp) -> Expr | None:
    count = int(op.attr("num_scan_inputs"))
    dims = known_dims_of(op.operands[-count].type) if count else None
    if not dims:
        return None
    if op.opset < 9:
        # The first version runs over a batch, and then along the second dim.
        return dims[0] * dims[1]
    axes = cast("list[int]", op.attr("scan_input_axes") or [0])
    return dims[axes[0]]
