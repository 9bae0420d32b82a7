"""The uses of weights by nodes: the op, the axis with a scale for each index, and the axis of blocks.

The matrix of a product has a scale for each column and blocks along its depth, a window one for each output channel and
blocks along the input channels, an embedding one for each row and blocks along it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp

Kind = Literal["product", "table", "other"]


@dataclass(frozen=True, eq=False)
class WeightUse:
    """A node that reads a weight as operand `index`; `through` is the Transpose of a matrix between them."""

    op: OnnxOp
    index: int
    kind: Kind
    channel: int
    """The axis of the weight whose indices have scales of their own."""
    depth: int
    """The axis that is summed over, or the axis along a row of a table."""
    through: OnnxOp | None = None


Axes = Callable[[OnnxOp, int], "tuple[Kind, int, int] | None"]
"""The kind of use, the channel and the depth of a weight of some rank; `None` where the op does not fit."""


def _matmul(op: OnnxOp, rank: int) -> tuple[Kind, int, int]:
    return ("product", rank - 2, rank - 1) if op.attr("transB", 0) else ("product", rank - 1, rank - 2)


def _left(op: OnnxOp, rank: int) -> tuple[Kind, int, int]:
    return ("other", rank - 1, rank - 2) if op.attr("transA", 0) else ("other", rank - 2, rank - 1)


def _gather(op: OnnxOp, rank: int) -> tuple[Kind, int, int]:
    axis = int(op.attr("axis", 0) or 0) % rank
    return "table", axis, rank - 1 if axis != rank - 1 else 0


def _fixed(channel: int, depth: int, kind: Kind = "other") -> Axes:
    return lambda _, rank: (kind, channel, depth) if rank > max(channel, depth) else None


def _einsum(_: OnnxOp, rank: int) -> tuple[Kind, int, int]:
    return "other", rank - 1, rank - 2


USES: dict[tuple[str, int], Axes] = {
    ("MatMul", 0): _left,
    ("MatMul", 1): _matmul,
    ("Gemm", 0): _left,
    ("Gemm", 1): _matmul,
    ("Einsum", 0): _einsum,
    ("Einsum", 1): _einsum,
    ("Conv", 1): _fixed(0, 1),
    ("ConvTranspose", 1): _fixed(1, 0),
    ("Gather", 0): _gather,
    **{(name, index): _fixed(1, 2) for name in ("LSTM", "GRU", "RNN") for index in (1, 2)},
    ("com.microsoft.FusedMatMul", 0): _left,
    ("com.microsoft.FusedMatMul", 1): _matmul,
    ("com.microsoft.FusedGemm", 1): _matmul,
    ("com.microsoft.FusedConv", 1): _fixed(0, 1),
    ("com.microsoft.Attention", 1): _fixed(1, 0),
    **{("com.microsoft.EmbedLayerNormalization", index): _fixed(0, 1) for index in (2, 3, 4)},
}
"""The ops whose weights are large, by name and operand."""


def weight_uses(value: SSAValue, rank: int) -> list[WeightUse | None]:
    """Returns the uses of a weight; `None` for a use by any other node."""
    found: list[WeightUse | None] = []
    for use in value.uses:
        op = use.operation
        if (
            isinstance(op, OnnxOp)
            and op.qualified_name == "Transpose"
            and rank == 2
            and op.attr("perm") in (None, [1, 0])
        ):
            for later in op.results[0].uses:
                found.append(_use(later.operation, later.index, rank, op))
        else:
            found.append(_use(op, use.index, rank, None))
    return found


def is_folded(op: OnnxOp) -> bool:
    """True if a node reads constants alone: it is computed when the model is loaded, and its results are stored."""
    return all(isinstance(v.owner, OnnxOp) and v.owner.op_type == "Constant" for v in op.operands)


def _use(op: object, index: int, rank: int, through: OnnxOp | None) -> WeightUse | None:
    if isinstance(op, OnnxOp) and is_folded(op):
        return None
    axes = USES.get((op.qualified_name, index)) if isinstance(op, OnnxOp) else None
    found = axes(op, rank) if axes is not None and isinstance(op, OnnxOp) and rank >= 2 else None
    if found is None or not isinstance(op, OnnxOp):
        return None
    kind, channel, depth = found
    if through is not None:
        channel, depth = 1 - channel, 1 - depth
    return WeightUse(op, index, kind, channel, depth, through)
