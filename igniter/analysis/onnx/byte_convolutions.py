"""What ONNX Runtime does on bytes around its convolutions of bytes.

ORT makes one op on bytes of a convolution between DequantizeLinear and QuantizeLinear, whose channels are last
(`nhwc_transformer.cc`), and so is what stands between one and the next: a sum of residuals between DequantizeLinear and
QuantizeLinear is an op on bytes that takes them as they lie. A kernel of ours there would cost a transposition before
and one behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

QUANTIZING = frozenset(("QuantizeLinear", "DequantizeLinear"))
"""Keep the layout; part of the op on bytes that ORT makes of them and what they stand around."""

ALONE = frozenset(("AveragePool", "Clip", "GlobalAveragePool", "LeakyRelu", "Relu", "Sigmoid"))
"""What ORT makes an op on bytes of, between DequantizeLinear and QuantizeLinear, that reads one tensor."""

TOGETHER = frozenset(("Add", "Concat", "Mul"))
"""And that reads several; arithmetic, where their dims are equal."""

AS_BYTES = frozenset(("MaxPool",))
"""What ORT does on bytes as they are."""

IMAGE_RANK = 4


def around_byte_convolutions(nodes: Sequence[Operation]) -> frozenset[Operation]:
    """The nodes, of a graph in order, that belong to a convolution of bytes which ORT runs."""
    from igniter.dialects.onnx.base import OnnxOp

    inside: set[SSAValue] = set()
    found: set[Operation] = set()
    for op in nodes:
        if isinstance(op, OnnxOp) and op.results and _is_of_bytes(op, inside):
            inside.add(op.results[0])
            found.add(op)
    # Before what is computed elsewhere a DequantizeLinear belongs there: bytes are less to read.
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
    """Whether a tensor comes from a DequantizeLinear."""
    return isinstance(value.owner, Operation) and value.owner.name == "onnx.DequantizeLinear"
