"""Random arguments for functions of MLIR: edge values of integers, small sizes, floats whose sums are exact."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from igniter.verification.mlir.machine import attr_of
from igniter.verification.mlir.values import (
    DYNAMIC,
    Array,
    Buffer,
    MemRef,
    Unsupported,
    allocate,
    array_of,
    bits_of,
    element_of,
    is_array,
    is_integer,
    is_memref,
    is_shaped,
    is_vector,
    rounding,
    row_major,
    shape_of,
    wrapped,
)

SMALL = range(5)
MANY_ELEMENTS = 1 << 16
"""The largest argument that is drawn."""


@dataclass(frozen=True)
class Argument:
    """One drawn argument: a scalar, or the elements of a vector, tensor or memref."""

    type_: Attribute
    data: Any

    def value(self, type_: Attribute | None = None) -> Any:
        """Returns a fresh value of the argument; `type_` is its type in a bufferized function."""
        wanted = self.type_ if type_ is None else type_
        if is_memref(wanted):
            return _memref(wanted, self.data)
        return self.data.copy() if is_array(self.data) else self.data

    def __str__(self) -> str:
        if not is_array(self.data):
            return str(self.data)
        flat = [str(x) for x in self.data.reshape(-1)[:12]]
        more = ", ..." if self.data.size > 12 else ""
        shape = "x".join(map(str, self.data.shape))
        return f"{shape}[{', '.join(flat)}{more}]"


def _memref(type_: Attribute, data: Array) -> MemRef:
    assert isinstance(type_, builtin.MemRefType)
    layout = type_.layout
    identity = AffineMap.identity(data.ndim)
    if isinstance(layout, builtin.NoneAttr) or (isinstance(layout, builtin.AffineMapAttr) and layout.data == identity):
        made = allocate(data.shape, "an argument")
    elif isinstance(layout, builtin.StridedLayoutAttr):
        made = _strided(layout, data.shape)
    else:
        raise Unsupported(f"an argument with the layout {layout}")
    made.fill_from(data)
    return made


def _strided(layout: builtin.StridedLayoutAttr, shape: Sequence[int]) -> MemRef:
    """Returns a memref with a strided layout; strides that the type leaves open have a gap of 1."""
    open_ = row_major([n + 1 for n in shape])
    strides = tuple(
        s.data if isinstance(s, builtin.IntAttr) else o for s, o in zip(layout.strides.data, open_, strict=True)
    )
    offset = layout.offset.data if isinstance(layout.offset, builtin.IntAttr) else 3
    extent = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
    count = max(extent, offset, 1)
    if any(s < 0 for s in strides) or count > 1 << 20:
        raise Unsupported(f"an argument with the layout {layout}")
    return MemRef(Buffer([0] * count, "an argument"), offset, tuple(shape), strides)


def constants_of(module: ModuleOp) -> list[int]:
    """Returns the integers that the program mentions: values beside them are likely to matter."""
    found: set[int] = set()
    for op in module.walk():
        value = attr_of(op, "value")
        if isinstance(value, builtin.IntegerAttr):
            found |= {value.value.data - 1, value.value.data, value.value.data + 1}
    return sorted(found)


@dataclass
class Draw:
    """A source of arguments. `near` are integers that the program mentions."""

    rng: random.Random
    near: Sequence[int] = ()
    _good: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """Sizes with which a draw was valid; half of the later draws use them again."""
    _sizes: list[int] = field(default_factory=list[int])
    _again: list[int] = field(default_factory=list[int])

    def arguments(self, types: Sequence[Attribute]) -> list[Argument]:
        """Returns one argument per type."""
        rng = self.rng
        # Unknown sizes of one function are often equal; so they are in two of three draws.
        common = rng.choice((0, 1, 2, 3, 4, 5, 8, 16, 20)) if rng.random() < 0.66 else None
        special = rng.random() < 0.25
        edges = rng.random() < 0.4
        self._sizes = []
        self._again = list(rng.choice(self._good)) if self._good and rng.random() < 0.5 else []
        found: list[Argument] = []
        for type_ in types:
            found.append(Argument(type_, self._argument(type_, common, special, edges)))
        return found

    def keep(self) -> None:
        """Remembers the sizes of the last draw, which was valid."""
        if tuple(self._sizes) not in self._good:
            self._good.append(tuple(self._sizes))

    def _argument(self, type_: Attribute, common: int | None, special: bool, edges: bool) -> Any:
        if is_shaped(type_):
            element = element_of(type_)
            if is_vector(element):
                raise Unsupported(f"an argument of the type {type_}")
            shape = [self._size(common) if n == DYNAMIC else n for n in shape_of(type_)]
            if math.prod(shape) > MANY_ELEMENTS:
                raise Unsupported(f"an argument of {math.prod(shape):,} elements")
            mode = self.rng.random()
            return array_of((self._element(element, special, edges, mode) for _ in range(math.prod(shape))), shape)
        if isinstance(type_, builtin.IndexType):
            return self._index(edges)
        return self._element(type_, special, edges, self.rng.random())

    def _size(self, common: int | None) -> int:
        if self._again:
            size = self._again.pop(0)
        else:
            size = self.rng.choice((0, 1, 2, 3, 4, 5, 7, 9)) if common is None else common
        self._sizes.append(size)
        return size

    def _element(self, type_: Attribute, special: bool, edges: bool, mode: float) -> Any:
        rng = self.rng
        if is_integer(type_):
            bits = bits_of(type_)
            if bits == 1:
                return int(rng.random() < mode)
            if isinstance(type_, builtin.IndexType) and not edges:
                return rng.choice(SMALL)
            least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
            if edges:
                pool = (least, least + 1, -1, 0, 1, 2, most, rng.randint(least, most), *self.near)
                return wrapped(rng.choice(pool), bits)
            # Many programs use integers as subscripts.
            return wrapped(rng.choice(SMALL[:3]) if mode < 0.4 else rng.randint(-9, 9), bits)
        if isinstance(type_, builtin.AnyFloat):
            round_ = rounding(type_)
            if special:
                return round_(rng.choice((0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -2.5, 1e30, 1e-30)))
            return round_(rng.randint(-16, 16) / 4)
        raise Unsupported(f"an argument of the type {type_}")

    def _index(self, edges: bool) -> int:
        rng = self.rng
        if edges and rng.random() < 0.5:
            large = (-1, 1 << 31, (1 << 32) + rng.choice(SMALL), (1 << 63) - 1, -(1 << 63))
            return wrapped(rng.choice((*large, *self.near)), 64)
        return rng.choice((*SMALL, *SMALL, 5, 6, 7, 8, 9, 16))
