"""The nodes on bytes around ONNX Runtime's convolutions of bytes.

ORT fuses a convolution between DequantizeLinear and QuantizeLinear into one op on bytes with channels last
(`nhwc_transformer.cc`). It does the same with the nodes between two convolutions: a sum of residuals between
DequantizeLinear and QuantizeLinear becomes an op on bytes in the same layout. A kernel of ours there would cost a
transposition before it and one behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.sym import dims_of

QUANTIZING = frozenset(("QuantizeLinear", "DequantizeLinear"))
"""Ops in the same layout, fused into ORT's op on bytes."""

ALONE = frozenset(("AveragePool", "Clip", "GlobalAveragePool", "LeakyRelu", "Relu", "Sigmoid"))
"""Ops of one tensor with an ORT kernel on bytes, between DequantizeLinear and QuantizeLinear."""

TOGETHER = frozenset(("Add", "Concat", "Mul"))
"""The same for ops of several tensors; arithmetic only where their dims are equal."""

AS_BYTES = frozenset(("MaxPool",))
"""Ops on bytes without conversion."""

IMAGE_RANK = 4


def around_byte_convolutions(nodes: Sequence[Operation]) -> frozenset[Operation]:
    """Returns the nodes, of a graph in order, around convolutions of bytes left to ORT."""
    inside: set[SSAValue] = set()
    found: set[Operation] = set()
    for op in nodes:
        if isinstance(op, OnnxOp) and op.results and _is_of_bytes(op, inside):
            inside.add(op.results[0])
            found.add(op)
    # A DequantizeLinear before a kernel belongs to the kernel, which then reads bytes, and so less memory.
    outer = {op for op in found if op.name == "onnx.DequantizeLinear" and not _is_read_in(op, found)}
    return frozenset(found - outer)


def _is_read_in(op: Operation, found: set[Operation]) -> bool:
    return any(use.operation in found for use in op.results[0].uses)


def _is_of_bytes(op: OnnxOp, inside: set[SSAValue]) -> bool:
    name = op.qualified_name
    if name == "Conv":
        return is_dequantized(op.operands[0])
    if name in QUANTIZING or name in ALONE or name in AS_BYTES:
        return op.operands[0] in inside
    if name not in TOGETHER or not all(v in inside for v in op.operands):
        return False
    if name == "Concat":
        return int(op.attr("axis")) in (1, 1 - IMAGE_RANK)
    tensors = [as_tensor(v.type) for v in op.operands]
    return len({dims_of(t) for t in tensors if t is not None and has_dims(t)}) == 1


def is_dequantized(value: SSAValue) -> bool:
    """True if a tensor comes from a DequantizeLinear."""
    return isinstance(value.owner, Operation) and value.owner.name == "onnx.DequantizeLinear"
