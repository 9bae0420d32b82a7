"""Small integer arithmetic as ONNX nodes, and carriers of its results, for the rules of `bind-values`.

`Ints` are i64 tensors of static dims. Constants are computed at once; other values become nodes, which are compiled
like all nodes. A value of -1 marks an invalid parameter: the carrier rejects it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import TensorType, i1, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.bound import BOUND_DOMAIN, CARRIER_ATTRIBUTE, carrier_attr, own_attributes
from igniter.dialects.onnx.schemas import find_schema
from igniter.dialects.sym import DYNAMIC, dims_of, tensor_of
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element

if TYPE_CHECKING:
    from igniter.transforms.onnx.onnx_rewriting import Rewriter

Array: TypeAlias = np.ndarray[Any, Any]
IntsLike: TypeAlias = "Ints | int | Sequence[int] | Array"


@dataclass(frozen=True)
class Ints:
    """Integers known only at run time (`value`) or constant (`array`)."""

    builder: Builder
    value: SSAValue | None
    array: Array | None

    @property
    def dims(self) -> tuple[int, ...]:
        if self.array is not None:
            return self.array.shape
        assert self.value is not None
        return _static(self.value.type) or ()

    def __len__(self) -> int:
        return self.dims[0]

    def __add__(self, other: IntsLike) -> Ints:
        return self.builder.binary("Add", self, other)

    def __sub__(self, other: IntsLike) -> Ints:
        return self.builder.binary("Sub", self, other)

    def __mul__(self, other: IntsLike) -> Ints:
        return self.builder.binary("Mul", self, other)

    def quotient(self, other: IntsLike) -> Ints:
        """Returns `self / other`; both must be nonnegative."""
        return self.builder.binary("Div", self, other)

    def at_least(self, other: IntsLike) -> Ints:
        return self.builder.binary("Max", self, other)

    def at_most(self, other: IntsLike) -> Ints:
        return self.builder.binary("Min", self, other)

    def equals(self, other: IntsLike) -> Ints:
        """Returns 1 where they are equal, else 0."""
        return self.builder.compare("Equal", self, other)

    def less(self, other: IntsLike) -> Ints:
        """Returns 1 where this is less, else 0."""
        return self.builder.compare("Less", self, other)

    def select(self, yes: IntsLike, no: IntsLike) -> Ints:
        """Returns `yes` where this is 1, `no` where it is 0."""
        return self.builder.select(self, yes, no)

    def sum(self, axis: int) -> Ints:
        """Returns the sum along an axis."""
        return self.builder.fold("ReduceSum", self, axis)

    def product(self, axis: int) -> Ints:
        """Returns the product along an axis."""
        return self.builder.fold("ReduceProd", self, axis)

    def reshape(self, *dims: int) -> Ints:
        return self.builder.reshape(self, dims)

    def __getitem__(self, index: int | slice) -> Ints:
        """Returns some elements along the first axis, always as a list."""
        picks = range(len(self))[index] if isinstance(index, slice) else [range(len(self))[index]]
        return self.builder.take(self, list(picks))


class Builder:
    """Inserts nodes before the rewritten one."""

    def __init__(self, rewriter: Rewriter):
        self.rewriter = rewriter

    # -- values -------------------------------------------------------------------------------------------------------

    def of(self, given: IntsLike) -> Ints:
        """Returns constants as `Ints`."""
        return given if isinstance(given, Ints) else Ints(self, None, np.asarray(given, dtype=np.int64))

    def list(self, value: SSAValue | None) -> Ints | None:
        """Returns the integers of an operand of rank 0 or 1 as a list; `None` if its length is unknown."""
        dims = None if value is None else _static(value.type)
        if value is None or dims is None or len(dims) > 1:
            return None
        array = constant_value(value)
        if array is not None:
            return self.of(array.reshape(-1))
        if tensor_element(value.type) != i64:
            value = self.rewriter.op("Cast", [value], [tensor_of(i64, dims)], {"to": 7}).results[0]
        return Ints(self, value, None) if dims else Ints(self, value, None).reshape(1)

    def shape(self, value: SSAValue) -> Ints:
        """Returns the dims of a tensor of known rank."""
        dims = dims_of(value.type)
        if all(d.constant is not None for d in dims):
            return self.of([d.constant or 0 for d in dims])
        return Ints(self, self.rewriter.op("Shape", [value], [tensor_of(i64, [len(dims)])]).results[0], None)

    def value(self, ints: IntsLike) -> SSAValue:
        """Returns the integers as an operand."""
        ints = self.of(ints)
        if ints.value is not None:
            return ints.value
        assert ints.array is not None
        return self.rewriter.constant(ints.array)

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def binary(self, name: str, a: Ints, b: IntsLike) -> Ints:
        b = self.of(b)
        if a.array is not None and b.array is not None:
            return self.of(_NUMPY[name](a.array, b.array))
        return self._op(name, [a, b], np.broadcast_shapes(a.dims, b.dims))

    def compare(self, name: str, a: Ints, b: IntsLike) -> Ints:
        b = self.of(b)
        if a.array is not None and b.array is not None:
            return self.of(_NUMPY[name](a.array, b.array).astype(np.int64))
        dims = np.broadcast_shapes(a.dims, b.dims)
        found = self.rewriter.op(name, [self.value(a), self.value(b)], [tensor_of(i1, dims)])
        return Ints(self, self.rewriter.op("Cast", found.results, [tensor_of(i64, dims)], {"to": 7}).results[0], None)

    def select(self, condition: Ints, yes: IntsLike, no: IntsLike) -> Ints:
        yes, no = self.of(yes), self.of(no)
        dims = np.broadcast_shapes(condition.dims, yes.dims, no.dims)
        if condition.array is not None and yes.array is not None and no.array is not None:
            return self.of(np.where(condition.array != 0, yes.array, no.array))
        flag = self.rewriter.op("Cast", [self.value(condition)], [tensor_of(i1, condition.dims)], {"to": 9}).results[0]
        operands = [flag, self.value(yes), self.value(no)]
        return Ints(self, self.rewriter.op("Where", operands, [tensor_of(i64, dims)]).results[0], None)

    def fold(self, name: str, ints: Ints, axis: int) -> Ints:
        if ints.array is not None:
            return self.of(_NUMPY[name](ints.array, axis=axis))
        dims = [d for k, d in enumerate(ints.dims) if k != axis]
        attrs: dict[str, Any] = {"keepdims": 0}
        operands = [self.value(ints)]
        if name == "ReduceSum" or self.rewriter.root.opset >= 18:
            operands.append(self.value([axis]))
        else:
            attrs["axes"] = [axis]
        return Ints(self, self.rewriter.op(name, operands, [tensor_of(i64, dims)], attrs).results[0], None)

    def reshape(self, ints: Ints, dims: Sequence[int]) -> Ints:
        if ints.array is not None:
            return self.of(ints.array.reshape(tuple(dims)))
        made = self.rewriter.op("Reshape", [self.value(ints), self.value(list(dims))], [tensor_of(i64, dims)])
        return Ints(self, made.results[0], None)

    def take(self, ints: Ints, picks: Sequence[int]) -> Ints:
        """Returns the elements at constant places along the first axis."""
        if ints.array is not None:
            return self.of(ints.array[list(picks)])
        operands = [self.value(ints), self.value(list(picks))]
        made = self.rewriter.op("Gather", operands, [tensor_of(i64, [len(picks), *ints.dims[1:]])], {"axis": 0})
        return Ints(self, made.results[0], None)

    def concat(self, *parts: IntsLike) -> Ints:
        """Returns the concatenation of lists."""
        lists = [self.of(p) for p in parts]
        lists = [p for p in lists if len(p)]
        if all(p.array is not None for p in lists):
            return self.of(np.concatenate([p.array for p in lists if p.array is not None] or [np.zeros(0, np.int64)]))
        if len(lists) == 1:
            return lists[0]
        return self._op("Concat", lists, (sum(map(len, lists)),), axis=0)

    def _op(self, name: str, operands: Sequence[Ints], dims: Sequence[int], **attrs: Any) -> Ints:
        made = self.rewriter.op(name, [self.value(o) for o in operands], [tensor_of(i64, dims)], attrs)
        return Ints(self, made.results[0], None)

    # -- shared parts -------------------------------------------------------------------------------------------------

    def axes(self, given: Ints, rank: int) -> Ints:
        """Returns axes counted from the front; -1 for an invalid one."""
        found = given.less(0).select(given + rank, given)
        return (found.less(0) + (self.of(rank - 1) - found).less(0)).at_most(1).select(-1, found)

    def mask(self, axes: Ints, rank: int) -> Ints:
        """Returns for each axis its number of occurrences in `axes`."""
        hits = axes.reshape(len(axes), 1).equals(np.arange(rank).reshape(1, rank))
        return hits.sum(0)

    # -- carriers -----------------------------------------------------------------------------------------------------

    def carrier(self, values: Ints, what: str) -> SSAValue:
        """Returns a tensor whose dims are 0 and the values; `what` is the error message for a negative value."""
        root = self.rewriter.root
        name = root.node_name or next(iter(root.output_names), "")
        text = f"node '{name}' ({root.op_type}): {what}" if name else f"{root.op_type}: {what}"
        target = self.value(self.concat([0], values))
        count = len(values)
        made = self.rewriter.op(
            "ConstantOfShape",
            [target],
            [TensorType(i1, [0, *[DYNAMIC] * count])],
            {"value": np.zeros(1, np.bool_), CARRIER_ATTRIBUTE: carrier_attr(text)},
        )
        return made.results[0]

    def read(self, carrier: SSAValue, first: int, count: int) -> SSAValue:
        """Returns values of a carrier as a tensor whose elements are known to shape arithmetic."""
        type_ = tensor_of(i64, [count])
        if self.rewriter.root.opset >= 15:
            attrs = {"start": first + 1, "end": first + 1 + count}
            return self.rewriter.op("Shape", [carrier], [type_], attrs).results[0]
        whole = self.rewriter.op("Shape", [carrier], [tensor_of(i64, [_rank(carrier)])]).results[0]
        operands = [whole, self.value([first + 1]), self.value([first + 1 + count])]
        return self.rewriter.op("Slice", operands, [type_]).results[0]

    def bound(
        self,
        op: OnnxOp,
        operands: Sequence[SSAValue | None],
        carrier: SSAValue,
        attrs: dict[str, Any] | None = None,
    ) -> OnnxOp:
        """Returns the bound form of a node, with other operands."""
        return self.bound_to(op.op_type, op, operands, carrier, {**own_attributes(op), **(attrs or {})})

    def bound_to(
        self,
        name: str,
        op: OnnxOp,
        operands: Sequence[SSAValue | None],
        carrier: SSAValue,
        attrs: Mapping[str, Any] | None = None,
    ) -> OnnxOp:
        """Returns the bound form of another ONNX op with the same results as a node."""
        schema = find_schema("", name, op.opset)
        omitted = [None] * ((len(schema.inputs) if schema is not None else 0) - len(operands))
        types = [r.type for r in op.results]
        return self.rewriter.op(f"{BOUND_DOMAIN}.{name}", [*operands, *omitted, carrier], types, attrs)


def _static(type_: Attribute) -> tuple[int, ...] | None:
    dims = known_dims_of(type_)
    if dims is None or any(d.constant is None for d in dims):
        return None
    return tuple(d.constant or 0 for d in dims)


def _rank(value: SSAValue) -> int:
    assert isinstance(value.type, TensorType)
    return value.type.get_num_dims()


_NUMPY: dict[str, Any] = {
    "Add": np.add,
    "Div": np.floor_divide,
    "Equal": np.equal,
    "Less": np.less,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "Sub": np.subtract,
}
