"""The ops of `memref` and `bufferization`."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from igniter.verification.mlir.affine import affine_function
from igniter.verification.mlir.machine import Execute, Machine, attr_of, ints_of, name_of, require_attr, rule, segments
from igniter.verification.mlir.values import (
    DYNAMIC,
    Array,
    Buffer,
    MemRef,
    TypedBytes,
    Undefined,
    Unsupported,
    allocate,
    bits_of,
    concrete,
    element_of,
    row_major,
    shape_of,
)


def inner_of(type_: Attribute) -> tuple[int, ...]:
    """Returns the dims of a memref's elements if these are vectors."""
    element = element_of(type_)
    return shape_of(element) if isinstance(element, builtin.VectorType) else ()


def merged(static: Sequence[int], dynamic: Sequence[Any]) -> tuple[int, ...]:
    """Returns static numbers with the dynamic ones in their places."""
    rest = iter(dynamic)
    return tuple(concrete(next(rest), "a size") if n == DYNAMIC else n for n in static)


def slice_parts(op: Operation, operands: Sequence[Any], fixed: int) -> list[tuple[int, ...]]:
    """Returns the offsets, sizes and strides of a slice; `fixed` operands come before them."""
    parts = segments(op, operands)[fixed:]
    names = ("static_offsets", "static_sizes", "static_strides")
    return [merged(ints_of(require_attr(op, n)), p) for n, p in zip(names, parts, strict=True)]


def kept_dims(op: Operation, shape: Sequence[int]) -> list[int]:
    """Returns the dims of a slice that its type keeps; the others have the size 1."""
    sizes = ints_of(require_attr(op, "static_sizes"))
    kept: list[int] = []
    for axis, size in enumerate(sizes):
        left = len(sizes) - axis
        wanted = len(shape) - len(kept)
        if wanted and (size == shape[len(kept)] or left == wanted):
            kept.append(axis)
    if len(kept) != len(shape):
        raise Unsupported("a slice whose dropped dims are not clear")
    return kept


@rule("memref.alloc", "memref.alloca")
def alloc(_: Machine, op: Operation) -> Execute:
    """Decodes an allocation; its elements are poison until they are written."""
    type_ = op.results[0].type
    shape, inner = shape_of(type_), inner_of(type_)
    if isinstance(type_, builtin.MemRefType) and not isinstance(type_.layout, builtin.NoneAttr):
        raise Unsupported(f"an allocation with the layout {type_.layout}")
    return lambda *operands: allocate(merged(shape, segments(op, operands)[0]), name_of(op), inner=inner)


@rule("memref.dealloc", "bufferization.dealloc_tensor")
def dealloc(_: Machine, op: Operation) -> Execute:
    """Decodes a deallocation."""

    def run(memref: Any) -> None:
        if isinstance(memref, MemRef) and isinstance(memref.buffer, Buffer):
            if memref.buffer.freed:
                raise Undefined(f"{memref.buffer.name} is deallocated twice")
            memref.buffer.freed = True

    return run


@rule("memref.load")
def load(_: Machine, op: Operation) -> Execute:
    """Decodes a load."""
    return lambda memref, *indices: memref.load(indices)


@rule("memref.store")
def store(_: Machine, op: Operation) -> Execute:
    """Decodes a store."""
    return lambda value, memref, *indices: memref.store(value, indices)


@rule("memref.dim", "tensor.dim")
def dim(_: Machine, op: Operation) -> Execute:
    """Decodes the size of a dim."""

    def run(value: Any, axis: Any) -> int:
        sizes = value.sizes if isinstance(value, MemRef) else value.shape
        if not 0 <= concrete(axis, "a dim") < len(sizes):
            raise Undefined(f"the size of dim {axis} of {len(sizes)}")
        return sizes[axis]

    return run


@rule("memref.rank", "tensor.rank")
def rank(_: Machine, op: Operation) -> Execute:
    """Decodes the rank."""
    return lambda value: len(value.sizes if isinstance(value, MemRef) else value.shape)


@rule("memref.cast", "tensor.cast", "memref.memory_space_cast")
def cast(_: Machine, op: Operation) -> Execute:
    """Decodes a cast to a type that states more or fewer sizes."""
    shape = shape_of(op.results[0].type)

    def run(value: Any) -> Any:
        sizes = value.sizes if isinstance(value, MemRef) else value.shape
        if any(known not in (DYNAMIC, size) for known, size in zip(shape, sizes, strict=True)):
            raise Undefined(f"a cast of the sizes {list(sizes)} to {op.results[0].type}")
        return value

    return run


@rule("memref.copy", "linalg.copy_memref")
def copy(_: Machine, op: Operation) -> Execute:
    """Decodes a copy."""

    def run(source: MemRef, target: MemRef) -> None:
        if source.sizes != target.sizes:
            raise Undefined(f"a copy of the sizes {list(source.sizes)} to {list(target.sizes)}")
        for point, value in [(p, source.load(p)) for p in source.points()]:
            target.store(value, point)

    return run


@rule("memref.get_global")
def get_global(machine: Machine, op: Operation) -> Execute:
    """Decodes a reference to a global."""
    named = machine.symbol(require_attr(op, "name"))
    return lambda: machine.global_memref(named)


@rule("memref.global")
def global_(_: Machine, op: Operation) -> Execute:
    """Decodes a global, which its first reference creates."""
    return lambda: None


@rule("memref.assume_alignment", "memref.prefetch")
def assume(_: Machine, op: Operation) -> Execute:
    """Decodes a hint: it does nothing."""
    return lambda *_: None


@rule("memref.subview")
def subview(_: Machine, op: Operation) -> Execute:
    """Decodes a view of a part."""
    kept = kept_dims(op, shape_of(op.results[0].type))

    def run(source: MemRef, *operands: Any) -> MemRef:
        offsets, sizes, strides = slice_parts(op, (source, *operands), 1)
        offset = source.offset + sum(o * s for o, s in zip(offsets, source.strides, strict=True))
        steps = [a * b for a, b in zip(strides, source.strides, strict=True)]
        return MemRef(source.buffer, offset, tuple(sizes[i] for i in kept), tuple(steps[i] for i in kept), source.inner)

    return run


@rule("memref.reinterpret_cast")
def reinterpret_cast(_: Machine, op: Operation) -> Execute:
    """Decodes a view with sizes and strides of its own."""

    def run(source: MemRef, *operands: Any) -> MemRef:
        (offset,), sizes, strides = slice_parts(op, (source, *operands), 1)
        return MemRef(source.buffer, offset, sizes, strides, source.inner)

    return run


@rule("memref.view")
def view(_: Machine, op: Operation) -> Execute:
    """Decodes a part of a buffer of bytes as elements of a type."""
    type_ = op.results[0].type
    if inner_of(type_):
        raise Unsupported("a view of bytes as vectors")
    shape, width = shape_of(type_), (bits_of(element_of(type_)) + 7) // 8

    def run(source: MemRef, shift: Any, *dynamic: Any) -> MemRef:
        if not isinstance(source.buffer, Buffer):
            raise Unsupported("a view of a view of bytes")
        sizes = merged(shape, dynamic)
        if source.buffer.typed is None:
            source.buffer.typed = {}
        start = source.offset + concrete(shift, "the offset of a view")
        return MemRef(TypedBytes(source.buffer, start, width, source.buffer.typed), 0, sizes, row_major(sizes))

    return run


@rule("memref.transpose")
def transpose(_: Machine, op: Operation) -> Execute:
    """Decodes a view with its dims in another order."""
    order = affine_function(require_attr(op, "permutation"))

    def run(source: MemRef) -> MemRef:
        return MemRef(source.buffer, source.offset, order(source.sizes), order(source.strides), source.inner)

    return run


def groups_of(op: Operation) -> list[tuple[int, ...]]:
    """Returns the dims that a reshape splits or joins, one group per dim of the side with fewer."""
    attribute = require_attr(op, "reassociation")
    assert isinstance(attribute, builtin.ArrayAttr)
    return [ints_of(group) for group in attribute.data]


def expanded_sizes(op: Operation, sizes: Sequence[int], dynamic: Sequence[Any]) -> tuple[int, ...]:
    """Returns the sizes after `expand_shape`. Raises `Undefined` if they have another number of elements."""
    static = attr_of(op, "static_output_shape")
    shape = shape_of(op.results[0].type)
    result = list(merged(ints_of(static), dynamic)) if static is not None else list(shape)
    for group, size in zip(groups_of(op), sizes, strict=True):
        known = math.prod(result[i] for i in group if result[i] != DYNAMIC)
        for i in group:
            if result[i] == DYNAMIC:
                result[i] = size // known if known else 0
        if math.prod(result[i] for i in group) != size:
            raise Undefined(f"an expansion of a dim of {size} to {[result[i] for i in group]}")
    return tuple(result)


@rule("memref.expand_shape")
def expand_shape(_: Machine, op: Operation) -> Execute:
    """Decodes a view with dims split."""

    def run(source: MemRef, *dynamic: Any) -> MemRef:
        sizes = expanded_sizes(op, source.sizes, dynamic)
        strides = [0] * len(sizes)
        for group, outer in zip(groups_of(op), source.strides, strict=True):
            for i, stride in zip(group, row_major([sizes[i] for i in group]), strict=True):
                strides[i] = stride * outer
        if not source.sizes:
            strides = [1] * len(sizes)
        return MemRef(source.buffer, source.offset, sizes, tuple(strides), source.inner)

    return run


@rule("memref.collapse_shape")
def collapse_shape(_: Machine, op: Operation) -> Execute:
    """Decodes a view with dims joined."""

    def run(source: MemRef) -> MemRef:
        sizes: list[int] = []
        strides: list[int] = []
        for group in groups_of(op):
            real = [i for i in group if source.sizes[i] != 1] or [group[-1]]
            for a, b in pairwise(real):
                if source.strides[a] != source.strides[b] * source.sizes[b] and 0 not in source.sizes:
                    raise Undefined("a collapse of dims that are not contiguous")
            sizes.append(math.prod(source.sizes[i] for i in group))
            strides.append(source.strides[real[-1]])
        return MemRef(source.buffer, source.offset, tuple(sizes), tuple(strides), source.inner)

    return run


@rule("memref.reshape")
def reshape(_: Machine, op: Operation) -> Execute:
    """Decodes a view of a contiguous memref with the sizes in another one."""

    def run(source: MemRef, shape: MemRef) -> MemRef:
        sizes = [concrete(shape.load((i,)), "a size") for i in range(shape.sizes[0])]
        if math.prod(sizes) != math.prod(source.sizes) or any(n < 0 for n in sizes):
            raise Undefined(f"a reshape of {list(source.sizes)} to {sizes}")
        if source.strides != row_major(source.sizes):
            raise Undefined("a reshape of a memref that is not contiguous")
        return MemRef(source.buffer, source.offset, tuple(sizes), row_major(sizes), source.inner)

    return run


@rule("memref.extract_strided_metadata")
def strided_metadata(_: Machine, op: Operation) -> Execute:
    """Decodes the parts of a memref."""

    def run(source: MemRef) -> Any:
        base = MemRef(source.buffer, 0, (), (), source.inner)
        return (base, source.offset, *source.sizes, *source.strides)

    return run


@rule("vector.type_cast")
def type_cast(_: Machine, op: Operation) -> Execute:
    """Decodes a memref of scalars as one of vectors, or of vectors with fewer dims."""
    type_ = op.results[0].type
    sizes, inner = shape_of(type_), inner_of(type_)

    def run(source: MemRef) -> MemRef:
        if source.strides != row_major(source.sizes):
            raise Unsupported("a type_cast of a memref that is not contiguous")
        offset = source.offset * math.prod(source.inner) // max(math.prod(inner), 1)
        return MemRef(source.buffer, offset, sizes, row_major(sizes), inner)

    return run


# -- bufferization -----------------------------------------------------------------------------------------------------


@rule("bufferization.to_tensor")
def to_tensor(_: Machine, op: Operation) -> Execute:
    """Decodes the value of a buffer at this time."""
    return lambda memref: memref.array()


@rule("bufferization.to_memref", "bufferization.to_buffer", "bufferization.clone")
def to_memref(_: Machine, op: Operation) -> Execute:
    """Decodes a buffer with the value of a tensor or of another buffer."""

    def run(value: Any) -> MemRef:
        array: Array = value.array() if isinstance(value, MemRef) else value
        made = allocate(array.shape, name_of(op))
        made.fill_from(array)
        return made

    return run


@rule("bufferization.materialize_in_destination")
def materialize(_: Machine, op: Operation) -> Execute:
    """Decodes a copy of a tensor into a destination."""

    def run(source: Array, target: Any) -> Any:
        if isinstance(target, MemRef):
            target.fill_from(source)
            return None
        return source

    return run


@rule("bufferization.dealloc")
def dealloc_if(_: Machine, op: Operation) -> Execute:
    """Decodes deallocations under conditions; a memref that is retained stays."""

    def run(*operands: Any) -> Any:
        memrefs, conditions, retained = segments(op, operands)
        kept = [r.buffer for r in retained]
        owned: dict[int, bool] = {}
        for memref, condition in zip(memrefs, conditions, strict=True):
            if not condition:
                continue
            owned[id(memref.buffer)] = True
            if memref.buffer not in kept and isinstance(memref.buffer, Buffer):
                memref.buffer.freed = True
        found = tuple(int(owned.get(id(buffer), False)) for buffer in kept)
        return found[0] if len(op.results) == 1 else found

    return run
