"""The count of an ONNX node: its operations and bytes in the symbols of its dims, once for all readers.

Operations are those of the op's spec (`OpSpec.macs`, `OpSpec.flops`). Bytes are those of ONNX's storage, where elements
of less than a byte are packed. A view reads and writes nothing. Every other node reads its operands and writes its
results, each once: the traffic to memory without caches. A node with graphs has no count of its own; the nodes in the
graphs have theirs, times `runs_of` (`graph_runs.py`).

Fusion, the steps of programs, the profile of a model, reports and the split into stages read these counts, each with
its own sizes and its own figures of a machine (docs/explanation/costs.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.names import VIEWS
from igniter.dialects.onnx.ops.counts import flops_of, macs_of
from igniter.dialects.onnx.ops.rules import operand_dims
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, minimum, product
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element

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

EXPERTS: dict[str, tuple[int, ...]] = {
    "com.microsoft.MoE": (2, 3, 4, 5, 6, 7),
    "com.microsoft.MoEPacked": (2, 3, 4),
    "com.microsoft.QMoE": (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13),
}
"""Operands with an entry for each expert: only chosen experts are read."""

UNCOUNTABLE = (ValueError, IndexError, ArithmeticError, AttributeError, TypeError, AssertionError)
"""Errors of a rule that needs an unknown dim, or an operand that the node lacks."""


@dataclass(frozen=True)
class TensorSize:
    """The elements of a tensor, and its bytes in ONNX's storage; strings have none."""

    elements: Expr
    nbytes: Expr


@dataclass(frozen=True)
class OpCount:
    """The work of one run of a node."""

    macs: Expr
    """Multiply-adds of sums of products."""
    flops: Expr
    """Scalar operations, including two for each of `macs`."""
    reads: tuple[Expr | None, ...]
    """The bytes read of each operand; `None` where they are unknown."""
    writes: tuple[Expr | None, ...]
    """The bytes written of each result; `None` where they are unknown."""
    uncounted: str = ""
    """The reason if the operations are unknown; they are 0 then."""


SizeOf = Callable[[SSAValue], TensorSize | None]


def tensor_size(type_: Attribute) -> TensorSize | None:
    """Returns the size of a tensor; `None` for another type, and where its rank or element type is not known."""
    element, dims = tensor_element(type_), known_dims_of(type_)
    row = BY_ATTR.get(element) if element is not None else None
    if row is None or dims is None:
        return None
    elements = product(dims)
    return TensorSize(elements, packed_bytes(elements, row.bits))


def packed_bytes(elements: Expr, bits: int) -> Expr:
    """Returns the bytes of `elements` elements of `bits` bits, packed if they are smaller than a byte."""
    if bits % 8 == 0:
        return elements * (bits // 8)
    return (elements * bits).ceildiv(8)


def size_of(value: SSAValue) -> TensorSize | None:
    """Returns the size of a value by its type."""
    return tensor_size(value.type)


def count_op(op: OnnxOp, size: SizeOf = size_of) -> OpCount:
    """Returns the count of a node with inferred types; `size` knows the sizes of its values."""
    macs, flops, uncounted = _operations(op, size)
    if op.regions:
        return OpCount(macs, flops, (ZERO,) * len(op.operands), (ZERO,) * len(op.results), uncounted)
    first = size(op.results[0]) if op.results else None
    picked = None if first is None else first.elements
    reads = tuple(_read(op, k, size(v), picked) if _is_there(v) else ZERO for k, v in enumerate(op.operands))
    moves = _name(op) not in VIEWS
    writes = tuple(_bytes(size(r)) if moves and _is_there(r) else ZERO for r in op.results)
    return OpCount(macs, flops, reads, writes, uncounted)


def flops_or_elements(op: Operation) -> Expr | None:
    """Returns the operations of a node without its graphs; for one that no rule counts, one operation for each element
    of its results; `None` where these are unknown as well."""
    try:
        found = flops_of(op) if isinstance(op, OnnxOp) else None
    except UNCOUNTABLE:
        found = None
    if found is not None:
        return found
    known = [s.elements for r in op.results if (s := size_of(r)) is not None]
    return sum(known, ZERO) if known else None


def known_sum(parts: Iterable[Expr | None]) -> Expr:
    """Returns the sum of the known parts."""
    return sum((p for p in parts if p is not None), ZERO)


def _operations(op: OnnxOp, size: SizeOf) -> tuple[Expr, Expr, str]:
    try:
        macs, flops = macs_of(op), flops_of(op)
    except UNCOUNTABLE as error:
        if any(size(v) is None for v in (*op.operands, *op.results) if _is_there(v)):
            why = "the rank of a tensor that it reads or makes is not known"
        else:
            why = str(error) or "it lacks an operand or an attribute that its count needs"
        return ZERO, ZERO, f"{op.qualified_name}: {why}"
    if flops is None:
        page = "docs/tutorials/add-an-op.md"
        why = f"{op.qualified_name}: Igniter does not know this op; register an OpSpec with flops ({page})"
        return macs, ZERO, why
    return macs, flops, ""


def _name(op: OnnxOp) -> str:
    """Returns the name of a node's op; a node bound to run-time values moves the same bytes."""
    return op.op_type if is_bound(op) else op.qualified_name


def _is_there(value: SSAValue) -> bool:
    return type(value.type) is not NoneType


def _bytes(size: TensorSize | None) -> Expr | None:
    return None if size is None else size.nbytes


def _read(op: OnnxOp, index: int, size: TensorSize | None, picked: Expr | None) -> Expr | None:
    """Returns the bytes read of an operand; `picked` counts the elements of the first result."""
    name = _name(op)
    if name in VIEWS or name in ASKS_SIZE:
        return ZERO
    if size is None:
        return None
    if picked is not None and index in PICKS.get(name, ()):
        width = _width(size)
        return size.nbytes if width is None else minimum(size.nbytes, picked * width)
    if index in EXPERTS.get(name, ()):
        experts = operand_dims(op, index)[0]
        tokens = product(operand_dims(op, 0)[:-1])
        asked = minimum(experts, tokens * int(op.attr("k", 1) or 1))
        return floordiv(size.nbytes, experts) * asked
    return size.nbytes


def _width(size: TensorSize) -> int | None:
    """Returns the whole bytes of an element; `None` for packed elements, which are counted in full."""
    elements, nbytes = size.elements, size.nbytes
    if elements.terms and nbytes.terms and elements.terms[0][0] == nbytes.terms[0][0]:
        width, rest = divmod(nbytes.terms[0][1], elements.terms[0][1])
        return width if not rest and elements * width == nbytes else None
    return None
