"""The values of the interpreter: integers, floats, poison, arrays and buffers.

An integer is a Python `int` in the signed range of its type, and 0 or 1 for `i1`. A float is a Python `float` that its
type can hold. Vectors and tensors are NumPy arrays of objects. A memref is a `MemRef`: a view of a `Buffer`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, TypeGuard, cast

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from igniter.errors import IgniterError

INDEX_BITS = 64
DYNAMIC = builtin.DYNAMIC_INDEX

Array = np.ndarray[Any, Any]
"""A vector or a tensor: an array of objects."""


class Undefined(IgniterError):
    """Raised where the behaviour of the program is undefined."""

    code = "IGN0604"


class Unsupported(IgniterError):
    """Raised for an op, a type or an attribute that the interpreter does not know."""

    code = "IGN0605"


class OutOfSteps(IgniterError):
    """Raised if the program executes more ops than allowed."""

    code = "IGN0606"


class Poison:
    """A value that MLIR does not define: the result of an overflow with `nsw`, or an element never written."""

    def __repr__(self) -> str:
        return "poison"


POISON = Poison()


def is_integer(type_: Attribute) -> bool:
    """True for integers and `index`."""
    return isinstance(type_, (builtin.IntegerType, builtin.IndexType))


def bits_of(type_: Attribute) -> int:
    """Returns the width of an integer type, a float type or `index`."""
    if isinstance(type_, builtin.IndexType):
        return INDEX_BITS
    if isinstance(type_, builtin.IntegerType):
        return int(cast(Any, type_).width.data)
    if isinstance(type_, builtin.AnyFloat):
        return cast(Any, type_).bitwidth
    raise Unsupported(f"the interpreter has no width for the type {type_}")


def unsigned(value: int, bits: int) -> int:
    """Returns the value of the bits of an integer without a sign."""
    return value & ((1 << bits) - 1)


def signed(value: int, bits: int) -> int:
    """Returns the value of the bits of an integer in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def wrapped(value: int, bits: int) -> int:
    """Returns an integer as the interpreter stores it: signed, and 0 or 1 for one bit."""
    return value & 1 if bits == 1 else signed(value, bits)


_NARROW = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


@cache
def rounding(type_: Attribute) -> Callable[[float], float]:
    """Returns the function that rounds to a float type."""
    if isinstance(type_, builtin.Float64Type):
        return float
    narrow = _NARROW.get(str(type_))
    if narrow is None:
        raise Unsupported(f"the interpreter does not compute with the type {type_}")

    def round_(value: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.float64(value).astype(narrow))

    return round_


def to_bits(value: Any, type_: Attribute) -> int:
    """Returns the bits of a scalar as an unsigned integer."""
    bits = bits_of(type_)
    if is_integer(type_):
        return unsigned(value, bits)
    if isinstance(type_, builtin.Float64Type):
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    narrow = np.asarray(value, np.float64).astype(_NARROW[str(type_)])
    return int.from_bytes(narrow.tobytes(), "little")


def from_bits(bits: int, type_: Attribute) -> Any:
    """Returns the scalar of a type with these bits."""
    width = bits_of(type_)
    if is_integer(type_):
        return wrapped(bits, width)
    if isinstance(type_, builtin.Float64Type):
        return struct.unpack("<d", struct.pack("<Q", unsigned(bits, 64)))[0]
    data = unsigned(bits, width).to_bytes(width // 8, "little")
    return float(np.frombuffer(data, _NARROW[str(type_)])[0])


def array_of(values: Iterable[Any], shape: Sequence[int]) -> Array:
    """Returns an array of objects with these elements in row-major order."""
    made = np.empty(tuple(shape), dtype=object)
    flat = made.reshape(-1)
    for place, value in enumerate(values):
        flat[place] = value
    return made


def filled(value: Any, shape: Sequence[int]) -> Array:
    """Returns an array with `value` in every element."""
    made = np.empty(tuple(shape), dtype=object)
    made.fill(value)
    return made


def is_array(value: Any) -> TypeGuard[Array]:
    """True for a vector or a tensor."""
    return isinstance(value, np.ndarray)


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """Applies a scalar function, element by element if the operands are arrays."""
    if not is_array(operands[0]):
        return function(*operands)
    flat = [operand.reshape(-1) for operand in operands]
    return array_of((function(*scalars) for scalars in zip(*flat, strict=True)), operands[0].shape)


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a scalar function that gives poison if an operand is poison."""

    def run(*operands: Any) -> Any:
        return POISON if any(operand is POISON for operand in operands) else function(*operands)

    return run


def concrete(value: Any, what: str) -> Any:
    """Returns a value that decides about control flow or an address; it must not be poison."""
    if value is POISON:
        raise Undefined(f"{what} is poison")
    return value


@dataclass(eq=False)
class Buffer:
    """Memory that an allocation, a global or an argument owns."""

    cells: list[Any]
    name: str = "a buffer"
    freed: bool = False
    typed: dict[int, tuple[int, Any]] | None = None
    """For bytes with typed views: their values by the first byte, with their width."""

    def load(self, place: int) -> Any:
        """Returns the value of a cell."""
        self._check(place)
        return self.cells[place]

    def store(self, value: Any, place: int) -> None:
        """Writes a cell."""
        self._check(place)
        self.cells[place] = value

    def _check(self, place: int) -> None:
        if self.freed:
            raise Undefined(f"{self.name} is accessed after its deallocation")
        if not 0 <= place < len(self.cells):
            raise Undefined(f"an access to element {place} of {self.name} with {len(self.cells)} elements")


@dataclass(eq=False)
class TypedBytes:
    """A part of a buffer of bytes as elements of `width` bytes (`memref.view`).

    Values are kept whole: bytes written as one type cannot be read as another.
    """

    bytes_: Buffer
    start: int
    width: int
    values: dict[int, tuple[int, Any]] = field(default_factory=dict[int, "tuple[int, Any]"])
    """By the first byte: the width, and the value. All views of a buffer share it."""

    @property
    def freed(self) -> bool:
        """True after the deallocation of the bytes."""
        return self.bytes_.freed

    def load(self, place: int) -> Any:
        """Returns the value of an element."""
        first = self._first(place)
        width, value = self.values.get(first, (self.width, POISON))
        if width != self.width:
            raise Unsupported("bytes that were written as one type are read as another")
        return value

    def store(self, value: Any, place: int) -> None:
        """Writes an element."""
        first = self._first(place)
        for other in range(first - 63, first + self.width):
            if other in self.values and other + self.values[other][0] > first:
                del self.values[other]
        self.values[first] = (self.width, value)

    def _first(self, place: int) -> int:
        first = self.start + place * self.width
        self.bytes_._check(first)
        self.bytes_._check(first + self.width - 1)
        return first


@dataclass(eq=False)
class MemRef:
    """A strided view of a buffer. Offset and strides count elements; a vector is an element of several cells."""

    buffer: Buffer | TypedBytes
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    inner: tuple[int, ...] = ()
    """The dims of an element that is a vector."""

    def place(self, indices: Sequence[Any]) -> int:
        """Returns the cell of an element. Raises `Undefined` if an index is out of bounds."""
        found = self.offset
        for axis, (index, size, stride) in enumerate(zip(indices, self.sizes, self.strides, strict=True)):
            if not 0 <= concrete(index, "an index") < size:
                raise Undefined(f"index {index} of dim {axis} is outside of its {size} elements")
            found += index * stride
        return found

    def load(self, indices: Sequence[Any]) -> Any:
        """Returns an element."""
        return self.load_at(self.place(indices))

    def store(self, value: Any, indices: Sequence[Any]) -> None:
        """Writes an element."""
        self.store_at(value, self.place(indices))

    def load_at(self, place: int) -> Any:
        """Returns the element at a place of the buffer."""
        if not self.inner:
            return self.buffer.load(place)
        count = math.prod(self.inner)
        return array_of((self.buffer.load(place * count + i) for i in range(count)), self.inner)

    def store_at(self, value: Any, place: int) -> None:
        """Writes the element at a place of the buffer."""
        if not self.inner:
            self.buffer.store(value, place)
            return
        count = math.prod(self.inner)
        for i, scalar in enumerate(value.reshape(-1)):
            self.buffer.store(scalar, place * count + i)

    def points(self) -> Iterator[tuple[int, ...]]:
        """Yields the indices of every element in row-major order."""
        return product(*map(range, self.sizes))

    def array(self) -> Array:
        """Returns the elements; the dims of elements that are vectors come last."""
        if self.inner:
            scalars = [x for point in self.points() for x in self.load(point).reshape(-1)]
            return array_of(scalars, (*self.sizes, *self.inner))
        return array_of((self.load(point) for point in self.points()), self.sizes)

    def fill_from(self, values: Array) -> None:
        """Writes every element."""
        for point in self.points():
            self.store(values[point], point)


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a contiguous row-major buffer."""
    strides = [1] * len(sizes)
    for axis in range(len(sizes) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sizes[axis + 1]
    return tuple(strides)


def allocate(sizes: Sequence[int], name: str = "a buffer", value: Any = POISON, inner: tuple[int, ...] = ()) -> MemRef:
    """Returns a new contiguous memref, every element `value`."""
    if any(size < 0 for size in sizes):
        raise Undefined(f"an allocation of the sizes {list(sizes)}")
    count = math.prod(sizes) * math.prod(inner)
    if count > 1 << 22:
        raise OutOfSteps(f"a buffer of {count:,} elements is too large to interpret")
    return MemRef(Buffer([value] * count, name), 0, tuple(sizes), row_major(sizes), inner)


def is_vector(type_: Attribute) -> bool:
    """True for vector types."""
    return isinstance(type_, builtin.VectorType)


def is_tensor(type_: Attribute) -> bool:
    """True for tensor types."""
    return isinstance(type_, builtin.TensorType)


def is_memref(type_: Attribute) -> bool:
    """True for memref types."""
    return isinstance(type_, builtin.MemRefType)


def is_shaped(type_: Attribute) -> bool:
    """True for vectors, tensors and memrefs."""
    return isinstance(type_, (builtin.VectorType, builtin.TensorType, builtin.MemRefType))


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Returns the dims of a vector, tensor or memref type; `DYNAMIC` is an unknown one."""
    if is_shaped(type_):
        return tuple(cast(Any, type_).get_shape())
    raise Unsupported(f"the interpreter knows no dims of the type {type_}")


def element_of(type_: Attribute) -> Attribute:
    """Returns the element type of a vector, tensor or memref; a scalar is its own."""
    return cast(Any, type_).element_type if is_shaped(type_) else type_


def zero_of(type_: Attribute) -> Any:
    """Returns the zero of a scalar type."""
    return 0 if is_integer(type_) else 0.0
