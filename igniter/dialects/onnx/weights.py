"""Weights: handles of tensors whose bytes stay in place, in a mapped file or in their original array.

The IR holds a `Weight`, never the bytes. A weight in another layout is derived: computed from its source at each
access, not cached. The bytes are in ONNX's `raw_data` layout: row-major, little-endian, elements of less than a byte
packed from the low bits on. A file is mapped once for all its weights.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from xdsl.ir import Attribute

from igniter.dialects.onnx.types import STRING, ElementType, element_of_dtype, element_type
from igniter.errors import IgniterError


class FileRange(NamedTuple):
    """A range of `length` bytes at `offset` of the file at `path`."""

    path: str
    offset: int
    length: int


class Derivation(Protocol):
    """A computation of a weight from another; equal derivations give equal bytes."""

    def compute(self) -> np.ndarray[Any, Any]:
        """Returns the values."""
        ...


class Weight:
    """A constant tensor: shape, element type and location of the bytes.

    Equal weights have the same shape, element type and bytes; derived weights are equal if their derivations are.
    `array()` and `raw()` return read-only views if possible.
    """

    __slots__ = ("_array", "_digest", "_raw", "derivation", "element", "file", "shape", "strings")

    shape: tuple[int, ...]
    element: ElementType
    file: FileRange | None
    strings: tuple[bytes, ...] | None
    derivation: Derivation | None

    def __init__(
        self,
        shape: Sequence[int],
        element: Attribute | ElementType,
        *,
        raw: bytes | memoryview | None = None,
        file: FileRange | None = None,
        strings: Sequence[bytes] | None = None,
        array: np.ndarray[Any, Any] | None = None,
        derivation: Derivation | None = None,
    ):
        self.derivation = derivation
        self.shape = tuple(shape)
        self.element = element if isinstance(element, ElementType) else element_type(element)
        self.file = file
        self.strings = None if strings is None else tuple(strings)
        self._raw = raw
        self._array = array
        self._digest: str | None = None
        if self.strings is not None:
            if len(self.strings) != self.size:
                raise IgniterError(f"{self.describe()} needs {self.size} strings, but has {len(self.strings)}")
        elif file is not None or raw is not None:
            given = file.length if file is not None else len(raw) if raw is not None else 0
            if given != self.nbytes:
                raise IgniterError(f"{self.describe()} needs {self.nbytes} bytes, but has {given}")

    # -- construction ------------------------------------------------------------------------------------------------

    @staticmethod
    def of(array: np.ndarray[Any, Any]) -> Weight:
        """Returns a weight with the values of `array`; the array must not be changed afterwards. Strings are `str` or
        `bytes` objects."""
        row = element_of_dtype(array.dtype)
        if row.attr == STRING:
            return Weight(array.shape, STRING, strings=[_encode(s) for s in array.reshape(-1).tolist()])
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        return Weight(array.shape, row.attr, array=array)

    # -- inspection --------------------------------------------------------------------------------------------------

    @property
    def element_type(self) -> Attribute:
        return self.element.attr

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of `raw()`; for strings, their total length."""
        if self.strings is not None:
            return sum(map(len, self.strings))
        return (self.size * self.element.bits + 7) // 8

    @property
    def elided(self) -> bool:
        """True if the bytes were omitted in the parsed text of this weight."""
        given = (self._raw, self._array, self.file, self.strings, self.derivation)
        return all(source is None for source in given)

    def array(self) -> np.ndarray[Any, Any]:
        """Returns the values, read-only; strings are `str` objects (non-UTF-8 bytes escaped as surrogates)."""
        if self.strings is not None:
            values = np.empty(len(self.strings), dtype=object)
            values[:] = [s.decode("utf-8", "surrogateescape") for s in self.strings]
            return values.reshape(self.shape)
        if self.derivation is not None:
            return self.derivation.compute()
        if self._array is None:
            row = self.element
            if row.bits < 8:
                self._array = _unpack(self.raw(), self.size, row).reshape(self.shape)
            else:
                self._array = np.frombuffer(self.raw(), dtype=row.dtype, count=self.size).reshape(self.shape)
        view = self._array.view()
        view.flags.writeable = False
        return view

    def raw(self) -> memoryview:
        """Returns the bytes in ONNX's `raw_data` layout."""
        if self.strings is not None or self.element_type == STRING:
            raise IgniterError(f"{self.describe()} has no raw bytes")
        if self.file is not None:
            return _file_bytes(self.file)
        if self.derivation is not None:
            values = self.array()
            if self.element.bits < 8:
                return memoryview(_pack(values, self.element))
            return memoryview(cast(Any, values.reshape(-1).view(np.uint8)))
        if self._raw is not None:
            return memoryview(self._raw)
        if self._array is None:
            raise IgniterError(f"the values of {self.describe()} were elided when it was printed")
        if self.element.bits < 8:
            self._raw = _pack(self._array, self.element)
            return memoryview(self._raw)
        return memoryview(cast(Any, self._array.reshape(-1).view(np.uint8)))

    def digest(self) -> str:
        """Returns a hexadecimal hash of the shape, element type and bytes."""
        if self._digest is None:
            state = hashlib.blake2b(f"{self.element.onnx_name}{self.shape}".encode(), digest_size=16)
            if self.strings is not None:
                for s in self.strings:
                    state.update(len(s).to_bytes(8, "little") + s)
            else:
                state.update(self.raw())
            self._digest = state.hexdigest()
        return self._digest

    def describe(self) -> str:
        """Returns a short name for messages."""
        shape = "x".join(map(str, (*self.shape, self.element_type)))
        return f"tensor<{shape}>" + (f" in {self.file.path}" if self.file is not None else "")

    # -- identity ----------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Weight) or self.shape != other.shape or self.element_type != other.element_type:
            return False
        if self.elided or other.elided:
            return self.elided and other.elided
        if self.strings is not None or (self.file is not None and self.file == other.file):
            return self.strings == other.strings
        if self.derivation is not None and other.derivation is not None:
            return self.derivation == other.derivation
        return self.raw() == other.raw()

    def __hash__(self) -> int:
        # A hash reads only the first bytes of a large weight; equality compares the rest.
        unread = self.elided or self.strings is not None or self.derivation is not None
        sample = b"" if unread else bytes(self.raw()[:64])
        return hash((self.shape, self.element_type, self.strings, self.derivation, sample))

    def __repr__(self) -> str:
        return f"Weight({self.describe()})"


def _encode(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def _unpack(raw: memoryview, count: int, row: ElementType) -> np.ndarray[Any, Any]:
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[: count * row.bits].reshape(count, row.bits)
    values = np.packbits(bits, axis=1, bitorder="little").reshape(count)
    if row.onnx_name.startswith("int"):
        values = (values ^ (1 << (row.bits - 1))) - np.uint8(1 << (row.bits - 1))
    return values.view(row.dtype)


def _pack(array: np.ndarray[Any, Any], row: ElementType) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if row.bits == 4:
        # The common case, without a temporary byte for each bit.
        low, high = flat[0::2] & 15, flat[1::2] << 4
        low[: high.size] |= high
        return low.tobytes()
    bits = np.unpackbits(flat[:, None], axis=1, count=row.bits, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


# -- files ------------------------------------------------------------------------------------------------------------


def map_file(path: str) -> memoryview:
    """Returns the whole file, mapped; the mapping is shared until the file changes."""
    try:
        status = os.stat(path)
        return _mapping(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error


@lru_cache(maxsize=64)
def _mapping(path: str, inode: int, size: int, changed: int) -> memoryview:
    if size == 0:
        return memoryview(b"")
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _file_bytes(where: FileRange) -> memoryview:
    whole = map_file(where.path)
    if where.offset + where.length > len(whole):
        raise IgniterError(
            f"{where.path} is truncated: a weight needs bytes {where.offset} to {where.offset + where.length}, but "
            f"the file has {len(whole)}"
        )
    return whole[where.offset : where.offset + where.length]
