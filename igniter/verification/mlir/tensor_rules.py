"""The ops of `tensor`."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.ir import Operation

from igniter.verification.mlir.machine import Execute, Machine, int_of, ints_of, require_attr, rule, segments
from igniter.verification.mlir.memory_rules import expanded_sizes, groups_of, kept_dims, merged, slice_parts
from igniter.verification.mlir.values import POISON, Array, OutOfSteps, Undefined, concrete, filled, shape_of


def checked(point: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Returns an index. Raises `Undefined` if it is out of bounds."""
    for axis, (index, size) in enumerate(zip(point, shape, strict=True)):
        if not 0 <= concrete(index, "an index") < size:
            raise Undefined(f"index {index} of dim {axis} is outside of its {size} elements")
    return tuple(point)


def new_tensor(sizes: Sequence[int], value: Any = POISON) -> Array:
    """Returns a tensor with `value` in every element."""
    if any(size < 0 for size in sizes):
        raise Undefined(f"a tensor of the sizes {list(sizes)}")
    if math.prod(sizes) > 1 << 22:
        raise OutOfSteps(f"a tensor of {math.prod(sizes):,} elements is too large to interpret")
    return filled(value, sizes)


@rule("tensor.empty", "bufferization.alloc_tensor")
def empty(_: Machine, op: Operation) -> Execute:
    """Decodes a tensor whose elements are poison."""
    shape = shape_of(op.results[0].type)

    def run(*operands: Any) -> Array:
        copied = [v for v in operands if isinstance(v, np.ndarray)]
        return copied[0].copy() if copied else new_tensor(merged(shape, operands))

    return run


@rule("tensor.extract")
def extract(_: Machine, op: Operation) -> Execute:
    """Decodes the extraction of an element."""
    return lambda tensor, *indices: tensor[checked(indices, tensor.shape)]


@rule("tensor.insert")
def insert(_: Machine, op: Operation) -> Execute:
    """Decodes the insertion of an element."""

    def run(scalar: Any, tensor: Array, *indices: Any) -> Array:
        made = tensor.copy()
        made[checked(indices, tensor.shape)] = scalar
        return made

    return run


def _box(op: Operation, operands: Sequence[Any], fixed: int, shape: Sequence[int]) -> tuple[slice, ...]:
    """Returns the box of a slice. Raises `Undefined` if it is out of bounds."""
    found: list[slice] = []
    for offset, size, stride, n in zip(*slice_parts(op, operands, fixed), shape, strict=True):
        last = offset + (size - 1) * stride
        if size < 0 or offset < 0 or (size and not 0 <= last < n) or stride <= 0:
            raise Undefined(f"a slice of {size} elements from {offset} of a dim of {n}")
        found.append(slice(offset, offset + size * stride, stride))
    return tuple(found)


@rule("tensor.extract_slice")
def extract_slice(_: Machine, op: Operation) -> Execute:
    """Decodes the extraction of a box."""
    kept = kept_dims(op, shape_of(op.results[0].type))

    def run(*operands: Any) -> Array:
        source = operands[0]
        part = source[_box(op, operands, 1, source.shape)]
        return part.reshape(tuple(part.shape[i] for i in kept)).copy()

    return run


@rule("tensor.insert_slice")
def insert_slice(_: Machine, op: Operation) -> Execute:
    """Decodes the insertion of a box."""

    def run(*operands: Any) -> Array:
        made = operands[1].copy()
        _assign(made, operands[0], _box(op, operands, 2, made.shape))
        return made

    return run


def _assign(target: Array, source: Array, box: tuple[slice, ...]) -> None:
    part = target[box]
    if part.size != source.size:
        raise Undefined(f"a slice of the sizes {list(part.shape)} from a tensor of {list(source.shape)}")
    target[box] = source.reshape(part.shape)


def parallel_insert(machine: Machine, op: Operation) -> None:
    """Inserts a box into a shared tensor of `scf.forall`, in place."""
    operands = [machine.value(v) for v in op.operands]
    _assign(operands[1], operands[0], _box(op, operands, 2, operands[1].shape))


@rule("tensor.generate")
def generate(machine: Machine, op: Operation) -> Execute:
    """Decodes a tensor computed by a region."""
    shape = shape_of(op.results[0].type)

    def run(*sizes: Any) -> Array:
        made = new_tensor(merged(shape, sizes))
        for point in product(*map(range, made.shape)):
            made[point] = machine.run(op.regions[0], point)[1][0]
        return made

    return run


@rule("tensor.pad")
def pad(machine: Machine, op: Operation) -> Execute:
    """Decodes a tensor with a border computed by a region."""
    static = [ints_of(require_attr(op, f"static_{name}")) for name in ("low", "high")]

    def run(*operands: Any) -> Array:
        (source,), *dynamic = segments(op, operands)
        low, high = (merged(s, d) for s, d in zip(static, dynamic, strict=True))
        made = new_tensor([a + n + b for a, n, b in zip(low, source.shape, high, strict=True)])
        for point in product(*map(range, made.shape)):
            inner = tuple(i - a for i, a in zip(point, low, strict=True))
            if all(0 <= i < n for i, n in zip(inner, source.shape, strict=True)):
                made[point] = source[inner]
            else:
                made[point] = machine.run(op.regions[0], point)[1][0]
        return made

    return run


@rule("tensor.expand_shape")
def expand_shape(_: Machine, op: Operation) -> Execute:
    """Decodes a split of dims."""
    return lambda source, *dynamic: source.reshape(expanded_sizes(op, source.shape, dynamic))


@rule("tensor.collapse_shape")
def collapse_shape(_: Machine, op: Operation) -> Execute:
    """Decodes a join of dims."""

    def run(source: Array) -> Array:
        return source.reshape([math.prod(source.shape[i] for i in group) for group in groups_of(op)])

    return run


@rule("tensor.reshape")
def reshape(_: Machine, op: Operation) -> Execute:
    """Decodes a change of dims to the ones in a tensor."""

    def run(source: Array, shape: Array) -> Array:
        sizes = [concrete(n, "a size") for n in shape]
        if math.prod(sizes) != source.size or any(n < 0 for n in sizes):
            raise Undefined(f"a reshape of {list(source.shape)} to {sizes}")
        return source.reshape(sizes)

    return run


@rule("tensor.concat")
def concat(_: Machine, op: Operation) -> Execute:
    """Decodes a concatenation."""
    axis = int_of(require_attr(op, "dim"))
    return lambda *parts: np.concatenate(parts, axis=axis)
