"""Nodes that compute each row of an axis from the same row of their operands.

Such a node computes fewer rows if its operands have fewer, so a selection of rows can stand before it instead of behind
it: products with a matrix of weights, normalisations of rows, and elementwise nodes. An axis is counted from the end,
since elementwise nodes broadcast operands of lower rank.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.sym.expr import ONE, Expr

PRODUCTS = frozenset(("MatMul", "FusedMatMul", "MatMulNBits"))
NORMALISATIONS = frozenset(
    (
        "LayerNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    )
)
"""Normalisations of rows. ONNX Runtime broadcasts their scales and added rows as numpy does."""
_BROADCAST = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil
    Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity
    IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu
    Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
    com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.Gelu com.microsoft.QuickGelu
"""
BROADCAST = frozenset(_BROADCAST.split())
"""Elementwise nodes whose operands broadcast as in numpy. Other elementwise nodes have operands for axes that they
name, as QuantizeLinear, or for positions, as RotaryEmbedding."""

DimsOf = Callable[[SSAValue], Dims | None]


def row_operands(op: OnnxOp, from_end: int, row: Expr, dims_of: DimsOf) -> list[int]:
    """Returns the operands whose rows become rows of the results, along the axis `from_end` dims from the end.

    The list is empty if the node does not compute each row by itself. `row` is the number of rows; `dims_of` returns
    the dims of a value, or None if its rank is unknown.
    """
    if op.domain not in ("", "com.microsoft"):
        return []
    if op.op_type in NORMALISATIONS:
        by_rows = from_end > 1 and int(op.attr("axis", -1)) == -1
        return _of_broadcast(op, from_end, row, dims_of) if by_rows else []
    if op.op_type in PRODUCTS:
        weight = dims_of(op.operands[1])
        turned = any(op.attr(name, 0) for name in ("transA", "transBatchA", "transBatchB"))
        plain = op.op_type == "MatMulNBits" or (weight is not None and len(weight) == 2)
        return [0] if from_end > 1 and plain and not turned else []
    if op.op_type == "Gemm":
        return _of_gemm(op, from_end, row, dims_of)
    # Before opset 7, an attribute says which axes an operand has.
    is_broadcast = op.qualified_name in BROADCAST and not op.attr("broadcast", 0)
    return _of_broadcast(op, from_end, row, dims_of) if is_broadcast else []


def _of_gemm(op: OnnxOp, from_end: int, row: Expr, dims_of: DimsOf) -> list[int]:
    if from_end != 2 or op.attr("transA", 0):
        return []
    if len(op.operands) < 3 or isinstance(op.operands[2].owner, NoValueOp):
        return [0]
    added = dims_of(op.operands[2])
    if added is None or (len(added) == 2 and added[0] not in (ONE, row)):
        return []
    return [0, 2] if len(added) == 2 and added[0] == row else [0]


def _of_broadcast(op: OnnxOp, from_end: int, row: Expr, dims_of: DimsOf) -> list[int]:
    found: list[int] = []
    for k, value in enumerate(op.operands):
        if isinstance(value.owner, NoValueOp):
            continue
        dims = dims_of(value)
        if dims is None:
            return []
        if len(dims) < from_end or dims[-from_end] == ONE:
            continue
        if dims[-from_end] != row:
            return []
        found.append(k)
    return found


__all__ = ["BROADCAST", "NORMALISATIONS", "PRODUCTS", "row_operands"]
