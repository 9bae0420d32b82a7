"""Decomposed Softmax and LogSoftmax.

    e = exp(x - max(x, axis))
    y = e / sum(e, axis)                   ->    y = Softmax(x) {axis}
    y = d - log(sum(exp(d), axis))         ->    y = LogSoftmax(x) {axis}     // d = x - max(x, axis)

Conditions: one axis, kept as 1 by both reductions; opset 13 or later, where Softmax works along one axis. Without the
subtraction of the maximum, the exponentials overflow earlier than Softmax does, so that form stays.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, same_dims
from igniter.transforms.onnx.recompose.matching import is_closed, reduced_axes


def _shifted(value: SSAValue, axes: list[int]) -> tuple[SSAValue, list[OnnxOp]] | None:
    """Returns `x` for `x - max(x)`."""
    sub = defining(value, "Sub")
    greatest = defining(sub.operands[1], "ReduceMax") if sub is not None else None
    if sub is None or greatest is None or greatest.operands[0] is not sub.operands[0]:
        return None
    return (sub.operands[0], [sub, greatest]) if reduced_axes(greatest) == axes else None


def form_softmax(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites exp(x - max) over its sum."""
    exp, total = defining(op.operands[0], "Exp"), defining(op.operands[1], "ReduceSum")
    if exp is None or total is None or total.operands[0] is not exp.results[0]:
        return None
    return _form(op, rw, "Softmax", exp.operands[0], total, [exp])


def form_log_softmax(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites x - max, minus the logarithm of the sum of its exponentials."""
    log = defining(op.operands[1], "Log")
    total = defining(log.operands[0], "ReduceSum") if log is not None else None
    exp = defining(total.operands[0], "Exp") if total is not None else None
    if log is None or total is None or exp is None or exp.operands[0] is not op.operands[0]:
        return None
    return _form(op, rw, "LogSoftmax", op.operands[0], total, [log, exp])


def _form(
    op: OnnxOp, rw: Rewriter, name: str, difference: SSAValue, total: OnnxOp, nodes: list[OnnxOp]
) -> Replacement | None:
    axes = reduced_axes(total)
    shifted = _shifted(difference, axes) if axes is not None and len(axes) == 1 else None
    if axes is None or shifted is None or op.opset < 13 or not is_closed(op, [*nodes, total, *shifted[1]]):
        return None
    if not same_dims(shifted[0], op.results[0]):
        return None
    return rw.op(name, [shifted[0]], [op.results[0].type], {"axis": axes[0]}).results


RULES: Rules = {"Div": [form_softmax], "Sub": [form_log_softmax]}
