"""Predicates of `fold-constants`: the nodes that stay, the nodes that are folded at any size, and sizes."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from igniter.analysis.onnx.quantized_neighbours import INTEGER_OPS
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.pointwise import EXP
from igniter.dialects.onnx.types import BY_ATTR, STRING
from igniter.dialects.sym.expr import product
from igniter.transforms.onnx.onnx_rewriting import element, known_dims

_WIDENING = frozenset(("Add", "Cast", "DequantizeLinear", "Mul", "Reshape", "Sub", "Transpose"))
"""The ops through which weights of few bits are widened."""


def keeps_bytes(op: OnnxOp) -> bool:
    """True if a DequantizeLinear belongs to a product of bytes."""
    if op.op_type != "DequantizeLinear":
        return False
    for use in op.results[0].uses:
        reader = use.operation
        if isinstance(reader, OnnxOp) and reader.qualified_name in INTEGER_OPS and use.index > 0:
            first = reader.operands[0].owner
            if isinstance(first, OnnxOp) and first.op_type == "DequantizeLinear":
                return True
    return False


def is_weight(op: OnnxOp, depth: int = 6) -> bool:
    """True if only products read the result, as their weight: they would need the computed form in each run.

    ONNX Runtime also computes these when it loads a model.
    """
    if op.op_type not in _WIDENING or depth == 0:
        return False
    uses = list(op.results[0].uses)
    for use in uses:
        reader = use.operation
        if not isinstance(reader, OnnxOp):
            return False
        if reader.qualified_name in ("Conv", "Gemm", "MatMul"):
            if use.index != 1:
                return False
        elif not is_weight(reader, depth - 1):
            return False
    return bool(uses)


def bytes_of(value: SSAValue) -> int | None:
    """Returns the bytes of a tensor; None if its dims are unknown."""
    dims = known_dims(value)
    size = product(dims).constant if dims is not None else None
    kind = element(value)
    if size is None or kind is None or kind not in BY_ATTR or not isinstance(value.type, TensorType):
        return None
    return size * 16 if kind == STRING else (size * BY_ATTR[kind].bits + 7) // 8


def is_costly(op: OnnxOp) -> bool:
    """True if an element of the result takes the time of an exponential or longer: reading it takes less."""
    spec, dims = spec_of(op), known_dims(op.results[0])
    if spec is None or spec.flops is None or spec.kind != "elementwise" or dims is None:
        return False
    operations, elements = spec.flops(op).constant, product(dims).constant
    return operations is not None and elements is not None and operations >= EXP * elements > 0
