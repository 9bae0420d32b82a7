"""Subtracts mean errors of channels from biases: the bias of a convolution or Gemm, or the Add after a MatMul."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_value, constant_weight, make_constant
from igniter.toolbox.quantize.quantization_plan import Candidate

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


def takes_shift(node: Candidate) -> bool:
    """True if a node has a bias to subtract a mean error from, or can be given one."""
    op = node.op
    if 1 in node.computed:
        return False
    if op.op_type == "MatMul":
        return _addition(op) is not None
    if op.op_type == "Gemm" and (op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0):
        return False
    if len(op.operands) <= 2 or isinstance(op.operands[2].owner, NoValueOp):
        return True
    bias, weight = constant_weight(op.operands[2]), constant_weight(op.operands[1])
    return bias is not None and weight is not None and len(bias.shape) == 1 and not bias.elided


def take_shift(node: Candidate, shift: Array, name: str) -> None:
    """Subtracts a number per channel from the bias of a node."""
    op = node.op
    if not takes_shift(node) or not np.isfinite(shift).all():
        return
    if op.op_type == "MatMul":
        found = _addition(op)
        assert found is not None
        adder, index = found
        bias = constant_value(adder.operands[index])
        if bias is not None and bias.shape[-1] == shift.size:
            adder.operands[index] = _made(adder, (bias - shift).astype(np.float32), name)
        return
    bias = np.zeros(shift.shape, np.float32)
    if len(op.operands) > 2 and not isinstance(op.operands[2].owner, NoValueOp):
        weight = constant_weight(op.operands[2])
        if weight is None or weight.shape != shift.shape:
            return
        bias = weight.array()
    op.operands = [*op.operands[:2], _made(op, (bias - shift).astype(np.float32), name)]


def _made(before: OnnxOp, values: Array, name: str) -> SSAValue:
    made = make_constant(values, f"{name}.shifted")
    assert before.parent is not None
    before.parent.insert_op_before(made, before)
    return made.results[0]


def _addition(op: OnnxOp) -> tuple[OnnxOp, int] | None:
    """Returns the Add of a row that is the only reader of a product, and the operand index of the row; else None."""
    use = op.results[0].get_unique_use()
    adder, weight = use.operation if use is not None else None, constant_weight(op.operands[1])
    if use is None or weight is None or not isinstance(adder, OnnxOp) or adder.op_type != "Add" or adder.domain:
        return None
    row = constant_value(adder.operands[1 - use.index])
    plain = row is not None and row.dtype.name == "float32" and row.ndim >= 1
    if not plain or row is None or row.shape[-1] != row.size or row.size != weight.shape[-1]:
        return None
    return adder, 1 - use.index


__all__ = ["take_shift", "takes_shift"]
