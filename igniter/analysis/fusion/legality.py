"""Legality of fusion: the possible ONNX nodes of a fusion region, and the form of each operand of a node in a region.

A refusal is a `Reason`, never a bare `False`: its kind, a message, and its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from xdsl.dialects.builtin import (
    DictionaryAttr,
    NoneType,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.dialects.loop import is_storable
from igniter.dialects.loop.attrs import as_integer
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.bound import is_carrier
from igniter.dialects.onnx.lowering.constants import is_inline
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym import DYNAMIC, DimsAttr, dims_of, element_of
from igniter.dialects.sym.expr import Expr

CONSTANT_BYTES = 4096
"""The largest constant considered for a kernel."""


@dataclass(frozen=True)
class Reason:
    """The reason why a node is in no region, or two regions are not merged."""

    kind: str
    """`no-lowering`, `illegal`, `type`, `rank`, `subgraph`, `data-dependent`, `shape`, `carrier`: a node that cannot be
    fused; `loop`: one that programs take; `cost`, `measured`, `view`, `symbols`: one that should not be; `request`: one
    named by the caller; `barrier`, `cycle`, `contractions`, `nodes`, `inputs`, `outputs`, `far`, `draws`: two regions
    that do not merge; `limit`: enough regions were formed (`--stop-after`)."""
    message: str
    nodes: tuple[str, ...] = ()
    """The names of the blocking nodes."""

    def __str__(self) -> str:
        return f"{self.message} ({', '.join(self.nodes)})" if self.nodes else self.message


Legality: TypeAlias = "Callable[[OnnxOp], Reason | None]"
"""A check of a node with a lowering; its reason if the backend has no code for the node."""


def all_legal(op: OnnxOp) -> Reason | None:
    """Allows every node with a lowering in a region."""
    del op
    return None


def as_tensor(type_: Attribute) -> TensorType[Attribute] | None:
    """Returns the type, if it is a ranked tensor."""
    return cast("TensorType[Attribute]", type_) if isinstance(type_, TensorType) else None


OperandKind = Literal["absent", "values", "constant", "tensor"]


def operand_kind(op: Operation, index: int) -> OperandKind:
    """Returns the source of an operand in a region: absent, the region's symbols, a clone of a constant, or a tensor
    operand."""
    value = op.operands[index]
    if isinstance(value.type, NoneType):
        return "absent"
    if op.name in ("fusion.region", "onnx.Scan") or (op.name == "onnx.Loop" and index > 1):
        return "tensor"
    if is_inline_constant(value):
        return "constant"
    return "tensor" if known_values(op, index) is None else "values"


def tensor_operands(op: Operation) -> Iterator[SSAValue]:
    """Yields the tensors of an op in a region or a program: its operands, and for a loop also the body's reads of the
    graphs around it."""
    for index, operand in enumerate(op.operands):
        if operand_kind(op, index) == "tensor":
            yield operand
    if is_loop(op):
        for inner in (inner for region in op.regions for inner in region.block.ops):
            for operand in _body_operands(op, inner):
                if not op.is_ancestor(operand.owner):
                    yield operand


def _body_operands(loop: Operation, op: Operation) -> Iterator[SSAValue]:
    """Yields the tensors of one op in a loop's body."""
    if op.has_trait(IsTerminator):
        # The condition to continue is read only if it is computed.
        goes_on = [
            v for k, v in enumerate(op.operands) if loop.name == "onnx.Loop" and k == 0 and is_inline_constant(v)
        ]
        yield from (v for v in op.operands if v not in goes_on)
    elif not is_shape_arithmetic(op):
        yield from tensor_operands(op)


def known_values(op: Operation, index: int) -> Dims | None:
    """Returns the elements of an integer operand if `infer-shapes` knows them and `fusion.dims` can express them."""
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    dims = noted.data.get(str(index)) if isinstance(noted, DictionaryAttr) else None
    if not isinstance(dims, DimsAttr):
        return None
    found = as_tensor(op.operands[index].type)
    if found is None or found.get_num_dims() > 1 or element_of(found) not in (i32, i64):
        return None
    count = dims_of(found)
    return dims.data if not count or count[0] == len(dims.data) else None


def is_inline_constant(value: SSAValue) -> bool:
    """True if the value is a constant for a kernel."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "onnx.Constant":
        return False
    weight = constant_weight(value)
    if weight is not None and weight.nbytes > CONSTANT_BYTES:
        return False
    type_ = as_tensor(value.type)
    if type_ is None or not is_kernel_type(type_.element_type):
        return False
    array = constant_value(value)
    return array is not None and is_inline(array)


def is_kernel_type(element: Attribute) -> bool:
    """True if tensors of kernels can have elements of this type."""
    return is_storable(element)


def node_reason(op: Operation, outer_symbols: frozenset[str]) -> Reason | None:
    """Returns the reason why a node cannot be in any region; `None` if it can.

    `outer_symbols` are bound in every region, from the graph's inputs.
    """
    if not isinstance(op, OnnxOp):
        return Reason("no-lowering", f"'{op.name}' is not an ONNX node")
    if is_loop(op):
        from igniter.analysis.fusion.program_loops import compiled, loop_reason

        return loop_reason(op, outer_symbols, compiled) or Reason("loop", "its body is called from a program")
    if op.regions:
        return Reason("subgraph", f"{op.qualified_name} has a subgraph, which runs in ONNX Runtime")
    if is_carrier(op):
        return Reason("carrier", "its values become known between two kernels")
    if is_shape_arithmetic(op):
        return Reason("shape", f"{op.qualified_name} is shape arithmetic whose value the compiler knows")
    spec = spec_of(op)
    if spec is None or spec.lower is None:
        return Reason("no-lowering", f"Igniter has no lowering for {op.qualified_name}")
    types = _types_reason(op)
    if types is not None:
        return types
    illegal = spec.legal(op) if spec.legal is not None else None
    if illegal is not None:
        return Reason("illegal", f"{op.qualified_name}: {illegal}")
    return _size_reason(op, outer_symbols)


def is_shape_arithmetic(op: Operation) -> bool:
    """True if every use of the node's results has a value known to the compiler."""
    used = False
    for result in op.results:
        type_ = as_tensor(result.type)
        if type_ is not None and type_.element_type not in (i32, i64):
            return False
        for use in result.uses:
            used = True
            if known_values(use.operation, use.index) is None:
                return False
    return used


def tensors_of(op: Operation) -> Iterator[SSAValue]:
    """Yields the tensor operands of a node in a region, and the existing results."""
    for index, operand in enumerate(op.operands):
        if operand_kind(op, index) == "tensor":
            yield operand
    for result in op.results:
        if not isinstance(result.type, NoneType):
            yield result


def _types_reason(op: OnnxOp) -> Reason | None:
    for value in tensors_of(op):
        type_ = as_tensor(value.type)
        if type_ is None:
            return Reason("rank", f"{op.qualified_name}: the rank of a {value.type} is unknown")
        if not is_kernel_type(type_.element_type):
            integer = as_integer(type_.element_type)
            more = ", because several share a byte" if integer is not None and integer.width.data < 8 else ""
            return Reason("type", f"{op.qualified_name}: kernels do not support {type_.element_type}{more}")
        if not has_dims(type_):
            return Reason("rank", f"{op.qualified_name}: the dims of a {type_} have no names; run infer-shapes")
    return None


def has_dims(shaped: TensorType[Attribute]) -> bool:
    """True if every dim is an integer or an expression."""
    return isinstance(shaped.encoding, DimsAttr) or DYNAMIC not in shaped.get_shape()


def _size_reason(op: OnnxOp, outer_symbols: frozenset[str]) -> Reason | None:
    """Returns a reason if a result's size depends on the data: kernels need their outputs' sizes."""
    known = set(outer_symbols)
    for index, operand in enumerate(op.operands):
        known |= type_symbols(operand.type)
        known |= symbols_of(known_values(op, index) or ())
    for result in op.results:
        free = type_symbols(result.type) - known
        if free:
            return Reason("data-dependent", f"{op.qualified_name}: the size {min(free)} depends on the data")
    return None


def type_symbols(type_: Attribute) -> frozenset[str]:
    """Returns the symbols in the dims of a tensor; none where the dims are not known."""
    shaped = as_tensor(type_)
    if shaped is None or not isinstance(shaped.encoding, DimsAttr):
        return frozenset()
    return symbols_of(shaped.encoding.data)


def symbols_of(dims: Iterable[Expr]) -> frozenset[str]:
    """Returns the symbols in expressions."""
    found: set[str] = set()
    for dim in dims:
        found |= dim.symbols
    return frozenset(found)


def node_symbols(op: Operation) -> frozenset[str]:
    """Returns the symbols of a node in a kernel: those of its tensors and of the values recorded on it."""
    found: set[str] = set()
    for value in tensors_of(op):
        found |= type_symbols(value.type)
    for index in range(len(op.operands)):
        found |= symbols_of(known_values(op, index) or ())
    if is_loop(op):
        for inner in (inner for region in op.regions for inner in region.block.ops):
            if not is_shape_arithmetic(inner):
                found |= node_symbols(inner)
    return frozenset(found)
