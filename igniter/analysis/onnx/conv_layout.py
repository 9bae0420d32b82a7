"""What ONNX Runtime does inside or in the layout of its convolutions.

On x86-64 ORT runs a convolution of images on blocks of channels (its NCHWc layout) and keeps to that layout until an op
that has no kernel for it: an activation behind a convolution, and the sum with a residual, happen in the convolution
itself, and a `Pad` with zeros in front of it is part of its own padding. A kernel of ours in between costs the
reorderings into the usual layout and back, which is more than it saves. Which ops those are is in ORT's
`nchwc_transformer.cc` and `pad_fusion.cc`.

Convolutions of bytes have their channels last in ORT (`nhwc_transformer.cc`), and so has what stands between one and
the next: a sum of residuals between DequantizeLinear and QuantizeLinear is an op on bytes that takes them as they lie.
A kernel of ours there would cost a transposition before and one behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import NoneType, f32
from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor, has_dims, known_values
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

ACTIVATIONS = frozenset(
    (
        "BatchNormalization",
        "Clip",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Relu",
        "Sigmoid",
        "Tanh",
        "com.microsoft.Gelu",
        "com.microsoft.QuickGelu",
    )
)
"""Done by the convolution before them, or in its layout."""
POOLS = frozenset(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"))
COMBINING = frozenset(("Add", "Sum", "Mul", "Concat"))
"""Done in the layout where all operands are in it; arithmetic, where their dims are equal. A constant for each channel
is folded into the weights of the convolution before it."""

QUANTIZING = frozenset(("QuantizeLinear", "DequantizeLinear"))
"""Keep the layout; part of the op on bytes that ORT makes of them and what they stand around."""

OF_BYTES = frozenset(
    (
        "Add",
        "AveragePool",
        "Clip",
        "Concat",
        "Conv",
        "GlobalAveragePool",
        "LeakyRelu",
        "MaxPool",
        "Mul",
        "QuantizeLinear",
        "Relu",
        "Sigmoid",
    )
)
"""What ORT makes an op on bytes of, between DequantizeLinear and QuantizeLinear."""

IMAGE_RANK = 4


def nodes_in_conv_layout(nodes: Sequence[Operation]) -> frozenset[Operation]:
    """The nodes, of a graph in order, that belong to a convolution which ORT runs."""
    from igniter.dialects.onnx.base import OnnxOp

    blocked: set[SSAValue] = set()
    found: set[Operation] = set()
    for op in nodes:
        if not isinstance(op, OnnxOp) or not op.results:
            continue
        if _stays_blocked(op, blocked):
            blocked.add(op.results[0])
            found.add(op)
        elif _is_padding_of_conv(op):
            found.add(op)
    # Before what is computed elsewhere a DequantizeLinear belongs there: bytes are less to read.
    outer = {op for op in found if op.name == "onnx.DequantizeLinear" and not _is_read_in(op, found)}
    return frozenset(found - outer)


def _is_read_in(op: Operation, found: set[Operation]) -> bool:
    return any(use.operation in found for use in op.results[0].uses)


def _stays_blocked(op: OnnxOp, blocked: set[SSAValue]) -> bool:
    name = op.qualified_name
    if name not in OF_BYTES and any(v in blocked and _is_dequantized(v) for v in op.operands):
        return False
    if name == "Conv":
        if not _runs_in_ort(op):
            return False
        tensor = as_tensor(op.operands[0].type)
        return tensor is not None and tensor.element_type == f32 and tensor.get_num_dims() == IMAGE_RANK
    if name in ACTIVATIONS or name in POOLS or name in QUANTIZING:
        return op.operands[0] in blocked
    if name in ("Add", "Mul") and _scales_channels(op):
        return True
    if name not in COMBINING or not all(v in blocked for v in op.operands):
        return False
    if name == "Concat":
        return int(op.attr("axis")) in (1, 1 - IMAGE_RANK)
    tensors = [as_tensor(v.type) for v in op.operands]
    return len({dims_of(t) for t in tensors if t is not None and has_dims(t)}) == 1


def _runs_in_ort(op: Operation) -> bool:
    """Whether a node is a convolution that is left to ORT: one of bytes."""
    return op.name == "onnx.Conv" and _is_dequantized(op.operands[0])


def _is_dequantized(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "onnx.DequantizeLinear"


def _scales_channels(op: OnnxOp) -> bool:
    """Whether a node combines the result of a convolution with a constant of one element a channel."""
    for value, other in (tuple(op.operands), tuple(reversed(op.operands))):
        tensor = as_tensor(other.type)
        if not isinstance(value.owner, Operation) or not _runs_in_ort(value.owner):
            continue
        if tensor is None or not isinstance(other.owner, Operation) or other.owner.name != "onnx.Constant":
            continue
        dims = [d.constant for d in dims_of(tensor)] if has_dims(tensor) else []
        if len(dims) >= IMAGE_RANK - 1 and all(d == 1 for k, d in enumerate(reversed(dims)) if k != IMAGE_RANK - 2):
            return True
    return False


def _is_padding_of_conv(op: OnnxOp) -> bool:
    from igniter.dialects.onnx.base import constant_value

    if op.qualified_name != "Pad" or op.attr("mode", "constant") != "constant":
        return False
    users = [use.operation for use in op.results[0].uses]
    if not users or any(not _runs_in_ort(u) or u.operands[0] is not op.results[0] for u in users):
        return False
    pads = known_values(op, 1) if len(op.operands) > 1 else None
    fill = op.operands[2] if len(op.operands) > 2 else None
    if fill is not None and not isinstance(fill.type, NoneType):
        value = constant_value(fill)
        if value is None or value.any():
            return False
    if pads is None:
        return False
    outer = (*pads[:2], *pads[len(pads) // 2 : len(pads) // 2 + 2])
    return all(p.constant == 0 for p in outer)
