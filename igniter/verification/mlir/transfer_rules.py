"""The ops of `vector` that read and write memory or tensors."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Operation

from igniter.verification.mlir.affine import AffineFunction, affine_function
from igniter.verification.mlir.affine_rules import vector_points
from igniter.verification.mlir.machine import Execute, Machine, int_of, require_attr, rule, segments
from igniter.verification.mlir.values import (
    Array,
    MemRef,
    Undefined,
    Unsupported,
    array_of,
    concrete,
    element_of,
    shape_of,
)
from igniter.verification.mlir.vector_rules import Masked, lane, masked_rule


def _sizes(source: Any) -> tuple[int, ...]:
    return source.sizes if isinstance(source, MemRef) else source.shape


def _load(source: Any, point: tuple[int, ...]) -> Any:
    return source.load(point) if isinstance(source, MemRef) else source[point]


def _store(target: Any, value: Any, point: tuple[int, ...]) -> None:
    if isinstance(target, MemRef):
        target.store(value, point)
    else:
        target[point] = value


def _transfer_points(
    op: Operation,
    shape: Sequence[int],
    start: Sequence[int],
    sizes: Sequence[int],
    on: Callable[[tuple[int, ...]], bool],
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Yields the place of every element in the vector and in memory; `None` if it is not transferred.

    `on` tells if the mask, whose dims have the order of memory, selects an element. Raises `Undefined` if a selected
    element is out of bounds in a dim that the op promises to be in bounds.
    """
    bounds = require_attr(op, "in_bounds")
    assert isinstance(bounds, builtin.ArrayAttr)
    promised = [int_of(bound) != 0 for bound in bounds.data]
    dims = _moving_dims(affine_function(require_attr(op, "permutation_map")))
    used = sorted(d for d in dims if d is not None)
    for place in product(*map(range, shape)):
        if not on(tuple(place[dims.index(d)] for d in used)):
            yield place, None
            continue
        memory = list(start)
        for axis, d in enumerate(dims):
            if d is not None:
                memory[d] += place[axis]
        outside = [axis for axis, d in enumerate(dims) if d is not None and not 0 <= memory[d] < sizes[d]]
        if any(promised[axis] for axis in outside):
            raise Undefined(f"element {memory} of the sizes {list(sizes)} in a transfer with in_bounds")
        yield place, None if outside or not _within(memory, sizes) else tuple(memory)


def _moving_dims(function: AffineFunction) -> list[int | None]:
    """Returns the dim of memory for every dim of the vector; `None` for a broadcast, a constant in the map."""
    zero = function([0] * function.dims)
    units = [function([int(i == d) for i in range(function.dims)]) for d in range(function.dims)]
    return [next((d for d, u in enumerate(units) if u[axis] != zero[axis]), None) for axis in range(len(zero))]


def _on(mask: Any, own: Sequence[Any], place: tuple[int, ...]) -> bool:
    return (mask is None or lane(mask[place])) and all(lane(m[place]) for m in own)


@masked_rule("vector.transfer_read")
def transfer_read(_: Machine, op: Operation) -> Masked:
    """Decodes a read of a box; elements out of bounds, and masked-off ones, have the value of the padding."""
    shape = shape_of(op.results[0].type)
    _scalars_only(op.operands[0].type)

    def run(mask: Any, *operands: Any) -> Array:
        (source,), indices, (padding,), own = segments(op, operands)
        start, sizes = [concrete(i, "an index") for i in indices], _sizes(source)
        points = _transfer_points(op, shape, start, sizes, lambda place: _on(mask, own, place))
        return array_of((padding if p is None else _load(source, p) for _, p in points), shape)

    return run


@masked_rule("vector.transfer_write")
def transfer_write(_: Machine, op: Operation) -> Masked:
    """Decodes a write of a box; elements out of bounds, and masked-off ones, stay."""
    shape = shape_of(op.operands[0].type)
    _scalars_only(op.operands[1].type)

    def run(mask: Any, *operands: Any) -> Any:
        (vector,), (target,), indices, own = segments(op, operands)
        start, sizes = [concrete(i, "an index") for i in indices], _sizes(target)
        made: Any = target if isinstance(target, MemRef) else target.copy()
        for place, memory in _transfer_points(op, shape, start, sizes, lambda place: _on(mask, own, place)):
            if memory is not None:
                _store(made, vector[place], memory)
        return None if isinstance(target, MemRef) else made

    return run


def _within(point: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(0 <= i < n for i, n in zip(point, sizes, strict=True))


def _scalars_only(type_: Any) -> None:
    if isinstance(element_of(type_), builtin.VectorType):
        raise Unsupported("a transfer of elements that are vectors")


@rule("vector.load")
def load(_: Machine, op: Operation) -> Execute:
    """Decodes a load of contiguous elements."""
    shape = shape_of(op.results[0].type)

    def run(base: MemRef, *indices: Any) -> Array:
        if base.inner:
            return base.load(indices)
        return array_of((base.load(p) for p in vector_points(base, _ints(indices), shape)), shape)

    return run


@rule("vector.store")
def store(_: Machine, op: Operation) -> Execute:
    """Decodes a store of contiguous elements."""
    shape = shape_of(op.operands[0].type)

    def run(value: Array, base: MemRef, *indices: Any) -> None:
        if base.inner:
            base.store(value, indices)
            return
        for point, scalar in zip(vector_points(base, _ints(indices), shape), value.reshape(-1), strict=True):
            base.store(scalar, point)

    return run


def _ints(indices: Sequence[Any]) -> tuple[int, ...]:
    return tuple(concrete(i, "an index") for i in indices)


@rule("vector.maskedload")
def masked_load(_: Machine, op: Operation) -> Execute:
    """Decodes a load of the elements that a mask selects."""
    shape = shape_of(op.results[0].type)

    def run(base: MemRef, *operands: Any) -> Array:
        *indices, mask, other = operands
        points = vector_points(base, _ints(indices), shape)
        lanes = zip(points, mask.reshape(-1), other.reshape(-1), strict=True)
        return array_of((base.load(p) if lane(m) else o for p, m, o in lanes), shape)

    return run


@rule("vector.maskedstore")
def masked_store(_: Machine, op: Operation) -> Execute:
    """Decodes a store of the elements that a mask selects."""

    def run(base: MemRef, *operands: Any) -> None:
        *indices, mask, value = operands
        points = vector_points(base, _ints(indices), value.shape)
        for point, m, scalar in zip(points, mask.reshape(-1), value.reshape(-1), strict=True):
            if lane(m):
                base.store(scalar, point)

    return run


def _addressed(base: Any, indices: Sequence[Any]) -> Callable[[Any], Any]:
    """Returns the function from an offset to a place: offsets count along the last dim, and past its end."""
    start = _ints(indices)
    if isinstance(base, MemRef):
        first = base.place(start)
        stride = base.strides[-1] if base.strides else 1
        return lambda offset: first + concrete(offset, "an offset") * stride
    return lambda offset: (*start[:-1], start[-1] + concrete(offset, "an offset"))


@masked_rule("vector.gather")
def gather(_: Machine, op: Operation) -> Masked:
    """Decodes loads from offsets."""
    shape = shape_of(op.results[0].type)

    def run(outer: Any, base: Any, *operands: Any) -> Array:
        *indices, offsets, mask, other = operands
        place_of = None
        values: list[Any] = []
        for place in product(*map(range, shape)):
            if not _on(outer, (mask,), place):
                values.append(other[place])
                continue
            place_of = place_of or _addressed(base, indices)
            found = place_of(offsets[place])
            if isinstance(base, MemRef):
                values.append(base.load_at(found))
            elif _within(found, base.shape):
                values.append(base[found])
            else:
                raise Undefined(f"a gather from element {list(found)} of the sizes {list(base.shape)}")
        return array_of(values, shape)

    return run


@rule("vector.scatter")
def scatter(_: Machine, op: Operation) -> Execute:
    """Decodes stores to offsets, in order."""

    def run(base: MemRef, *operands: Any) -> None:
        *indices, offsets, mask, value = operands
        place_of = None
        for offset, m, scalar in zip(offsets.reshape(-1), mask.reshape(-1), value.reshape(-1), strict=True):
            if lane(m):
                place_of = place_of or _addressed(base, indices)
                base.store_at(scalar, place_of(offset))

    return run


@rule("vector.expandload")
def expand_load(_: Machine, op: Operation) -> Execute:
    """Decodes a load of contiguous elements into the lanes that a mask selects."""

    def run(base: MemRef, *operands: Any) -> Array:
        *indices, mask, other = operands
        start, made, count = _ints(indices), other.copy(), 0
        for i, m in enumerate(mask):
            if lane(m):
                made[i] = base.load((*start[:-1], start[-1] + count))
                count += 1
        return made

    return run


@rule("vector.compressstore")
def compress_store(_: Machine, op: Operation) -> Execute:
    """Decodes a contiguous store of the lanes that a mask selects."""

    def run(base: MemRef, *operands: Any) -> None:
        *indices, mask, value = operands
        start = _ints(indices)
        chosen = [v for v, m in zip(value, mask, strict=True) if lane(m)]
        for count, scalar in enumerate(chosen):
            base.store(scalar, (*start[:-1], start[-1] + count))

    return run
