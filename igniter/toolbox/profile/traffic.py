"""The bytes read by a node from memory; from a table only the picked elements.

A view reads and writes nothing. Every other node reads its operands and writes its results, each once: the traffic to
memory without caches.
"""

from __future__ import annotations

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import VIEWS
from igniter.dialects.onnx.ops.rules import operand_dims
from igniter.dialects.sym.expr import Expr, floordiv, minimum, product

PICKS: dict[str, tuple[int, ...]] = {
    "Compress": (0,),
    "Gather": (0,),
    "GatherElements": (0,),
    "GatherND": (0,),
    "SequenceAt": (0,),
    "Slice": (0,),
    "ai.onnx.ml.ArrayFeatureExtractor": (0,),
    "com.microsoft.EmbedLayerNormalization": (2, 3, 4),
    "com.microsoft.GatherBlockQuantized": (0,),
    "com.microsoft.GatherND": (0,),
    "com.microsoft.GatherPacked": (0,),
    "com.microsoft.QEmbedLayerNormalization": (2, 3, 4),
    "com.microsoft.TorchEmbedding": (0,),
}
"""Operands with as many elements read as the first result has."""

ASKS_SIZE = frozenset(("Shape", "Size", "OptionalHasElement", "SequenceLength"))
"""Ops on a value's type or size, not its elements."""

FREE = VIEWS | ASKS_SIZE
"""Ops without element reads."""

EXPERTS: dict[str, tuple[int, ...]] = {
    "com.microsoft.MoE": (2, 3, 4, 5, 6, 7),
    "com.microsoft.MoEPacked": (2, 3, 4),
    "com.microsoft.QMoE": (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13),
}
"""Operands with an entry for each expert: only chosen experts are read."""


def bytes_read(op: OnnxOp, index: int, elements: Expr, nbytes: Expr, picked: Expr | None) -> Expr:
    """Returns the bytes read of an operand with `elements` elements and `nbytes` bytes; `picked` counts the elements of
    its first result."""
    if op.qualified_name in FREE:
        return Expr.of(0)
    if picked is not None and index in PICKS.get(op.qualified_name, ()):
        width = _width(elements, nbytes)
        return nbytes if width is None else minimum(nbytes, picked * width)
    if index in EXPERTS.get(op.qualified_name, ()):
        return _of_experts(op, index, nbytes)
    return nbytes


def _width(elements: Expr, nbytes: Expr) -> int | None:
    """Returns the whole bytes of an element; `None` for packed elements, which are counted in full."""
    if elements.terms and nbytes.terms and elements.terms[0][0] == nbytes.terms[0][0]:
        width, rest = divmod(nbytes.terms[0][1], elements.terms[0][1])
        return width if not rest and elements * width == nbytes else None
    return None


def _of_experts(op: OnnxOp, index: int, nbytes: Expr) -> Expr:
    experts = operand_dims(op, index)[0]
    tokens = product(operand_dims(op, 0)[:-1])
    asked = minimum(experts, tokens * int(op.attr("k", 1) or 1))
    return floordiv(nbytes, experts) * asked
