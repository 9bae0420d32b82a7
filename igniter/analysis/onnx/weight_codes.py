"""Weights as integers of few bits: their coding, and their codes, scales and zero points as derived weights.

A code `q` means `(q - zero) * scale`. A scale is one for the tensor, for each index along an axis, or for each block
along an axis. Codes, scales and zero points are computed from the weight when their bytes are requested, one stretch at
a time, so that rewriting and writing a model of any size takes the memory of its largest tensor.

Symmetric codes have no zero point: 0 is coded by 0. The scale is the least that gives both the greatest and the least
number a code, so that the additional code at the negative end is used. Other codes are unsigned, and their zero point
is itself a code, so that 0 is exact and every code can occur: 16 of 4 bits, 256 of 8.

Three layouts:

    plain    the codes in the order of the weight, i8, u8, i4 or u4, for DequantizeLinear
    blocks   [columns, blocks, bytes of a block], u8, for MatMulNBits; codes are unsigned in either case
    table    [rows, bytes of a row], u8, for GatherBlockQuantized; likewise
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from xdsl.dialects.builtin import Float16Type
from xdsl.ir import Attribute

from igniter.dialects.onnx.types import BY_NAME, element_type
from igniter.dialects.onnx.weights import Weight

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Layout = Literal["plain", "blocks", "table"]

STRETCH = 4 << 20
"""The elements of a weight that are processed together."""


@dataclass(frozen=True, eq=False)
class FixedCodes:
    """Codes that were chosen by samples: `codes` has the shape of the weight, scales and zero points that of the
    coding's parameters."""

    codes: Array
    scales: Array
    zeros: Array

    def turned(self, coding: Coding, swapped: bool) -> FixedCodes:
        """Returns codes of [depth, columns], with parameters of [blocks, columns], as those of a coding: of [columns,
        depth] if `swapped`."""
        scales, zeros = (self.scales, self.zeros) if coding.block else (self.scales[0], self.zeros[0])
        if not swapped:
            return FixedCodes(self.codes.astype(np.int8), scales, zeros)
        return FixedCodes(np.ascontiguousarray(self.codes.T.astype(np.int8)), scales.T, zeros.T)


@dataclass(frozen=True)
class Coding:
    """The coding of a weight: integers of `bits` bits, with one scale for the tensor (`axis` is `None`), one for each
    index along `axis` (`block` is 0), or one for each `block` elements along it."""

    bits: int
    axis: int | None = None
    block: int = 0
    symmetric: bool = False
    fixed: FixedCodes | None = field(default=None, compare=False, repr=False)
    """The codes themselves, if they are not those of rounding to nearest."""

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.symmetric else 0

    @property
    def greatest(self) -> int:
        return self.least + (1 << self.bits) - 1

    @property
    def element(self) -> Attribute:
        """The element type of plain codes."""
        return BY_NAME[f"{'int' if self.symmetric else 'uint'}{self.bits}"].attr

    def parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the dims of the scales of a weight."""
        if self.axis is None:
            return ()
        if not self.block:
            return (shape[self.axis],)
        return tuple(-(-d // self.block) if k == self.axis else d for k, d in enumerate(shape))

    def nbytes(self, shape: tuple[int, ...], scale_bytes: int) -> int:
        """Returns the bytes of codes, scales and zero points together."""
        count = prod(self.parameter_shape(shape))
        zeros = 0 if self.symmetric else (count * self.bits + 7) // 8
        return (prod(shape) * self.bits + 7) // 8 + count * scale_bytes + zeros


# -- scales and zero points -------------------------------------------------------------------------------------------


def stretches(shape: tuple[int, ...], unit: int = 1) -> Iterator[slice]:
    """Yields slices of the first dim of about `STRETCH` elements, in multiples of `unit`."""
    rows = shape[0] if shape else 1
    step = max(STRETCH // max(prod(shape[1:]), 1) // unit, 1) * unit
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def blocked(values: Array, axis: int, block: int, fill: str = "edge") -> Array:
    """Returns the values with `axis` in blocks: two dims in its place, the last block padded."""
    size = values.shape[axis]
    short = -size % block
    if short:
        pads = [(0, short if k == axis else 0) for k in range(values.ndim)]
        values = np.pad(values, pads, mode="edge") if fill == "edge" else np.pad(values, pads)
    return values.reshape(*values.shape[:axis], -1, block, *values.shape[axis + 1 :])


def extremes(weight: Weight, coding: Coding) -> tuple[Array, Array]:
    """Returns the least and the greatest number of each scale, including 0, in f32, both with the dims of the
    scales."""
    values, shape = weight.array(), weight.shape
    unit = coding.block if coding.axis == 0 and coding.block else 1
    found: list[tuple[Array, Array]] = []
    for part in stretches(shape, unit):
        piece = values[part].astype(np.float32)
        if coding.axis is None:
            over: tuple[int, ...] = tuple(range(piece.ndim))
        elif not coding.block:
            over = tuple(k for k in range(piece.ndim) if k != coding.axis)
        else:
            piece, over = blocked(piece, coding.axis, coding.block), (coding.axis + 1,)
        found.append((piece.min(axis=over, initial=0.0), piece.max(axis=over, initial=0.0)))
    if coding.axis == 0 or coding.block:
        return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])
    lows, highs = [low for low, _ in found], [high for _, high in found]
    return np.minimum.reduce(lows), np.maximum.reduce(highs)


def parameters(weight: Weight, coding: Coding) -> tuple[Array, Array]:
    """Returns the scales, in the weight's own type, and the zero points as i32, with the dims of the scales."""
    if coding.fixed is not None:
        return coding.fixed.scales, coding.fixed.zeros
    low, high = extremes(weight, coding)
    if coding.symmetric:
        scale = np.maximum(high / coding.greatest, low / coding.least)
    else:
        # Halve before subtracting: the difference of finite numbers may overflow.
        scale = 2.0 * (high / (2 * coding.greatest) - low / (2 * coding.greatest))
    kind = np.float16 if isinstance(weight.element_type, Float16Type) else np.float32
    if kind is np.float16:
        # Rounded up, so that the extremes keep their codes; the least such number is a subnormal.
        rounded = scale.astype(np.float16)
        scale = np.where(rounded < scale, np.nextafter(rounded, np.float16(np.inf)), rounded)
    scale = np.where(scale > 0, scale, 1.0).astype(kind)
    if coding.symmetric:
        return scale, np.zeros(scale.shape, np.int32)
    zero = np.clip(np.rint(-low / scale.astype(np.float32)), 0, coding.greatest)
    return scale, zero.astype(np.int32)


def spread(parameter: Array, shape: tuple[int, ...], coding: Coding, part: slice) -> Array:
    """Returns scales or zero points such that they broadcast with the rows `part` of the weight."""
    if coding.axis is None:
        return parameter
    if not coding.block:
        own = parameter[part] if coding.axis == 0 else parameter
        return own.reshape([-1 if k == coding.axis else 1 for k in range(len(shape))])
    if coding.axis != 0:
        whole = np.repeat(parameter[part], coding.block, axis=coding.axis)
        return whole[tuple(slice(0, d) if k else slice(None) for k, d in enumerate(shape))]
    blocks = slice(part.start // coding.block, -(-part.stop // coding.block))
    return np.repeat(parameter[blocks], coding.block, axis=0)[: part.stop - part.start]


def codes_of(weight: Weight, coding: Coding) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yields for each stretch the rows, their values, the codes as i32, and the decoded values."""
    values = weight.array()
    scale, zero = parameters(weight, coding)
    unit = coding.block if coding.axis == 0 and coding.block else 1
    for part in stretches(weight.shape, unit):
        piece = values[part].astype(np.float32)
        factor = spread(scale, weight.shape, coding, part).astype(np.float32)
        offset = spread(zero, weight.shape, coding, part)
        if coding.fixed is not None:
            codes = coding.fixed.codes[part].astype(np.int32)
            codes = codes & 0xFF if coding.least == 0 else codes
        else:
            codes = np.rint(piece / factor).astype(np.int32) + offset
        codes = np.clip(codes, coding.least, coding.greatest)
        yield part, piece, codes, ((codes - offset).astype(np.float32) * factor).astype(values.dtype)


@dataclass(frozen=True)
class WeightError:
    """The error of a coded weight: the largest error relative to the largest magnitude, and the root mean square of the
    error relative to that of the weight."""

    largest: float
    mean: float


def error_of(weight: Weight, coding: Coding | Attribute) -> WeightError:
    """Returns the error of a coding, or of rounding to floats of 16 bits."""
    worst = size = squares = total = 0.0
    if isinstance(coding, Coding):
        pairs = ((piece, stands) for _, piece, _, stands in codes_of(weight, coding))
    else:
        values, narrow = weight.array(), element_type(coding).dtype
        pairs = ((values[part], values[part].astype(narrow)) for part in stretches(weight.shape))
    for piece, stands in pairs:
        exact = piece.astype(np.float64)
        off = exact - stands.astype(np.float64)
        worst, size = max(worst, float(np.abs(off).max(initial=0.0))), max(size, float(np.abs(exact).max(initial=0.0)))
        squares, total = squares + float(np.vdot(off, off)), total + float(np.vdot(exact, exact))
    return WeightError(worst / size if size else 0.0, (squares / total) ** 0.5 if total else 0.0)


def is_finite(weight: Weight, limit: float | None = None) -> bool:
    """True if all numbers are finite, and no larger than `limit`."""
    values = weight.array()
    for part in stretches(weight.shape):
        largest = np.abs(values[part].astype(np.float64)).max(initial=0.0)
        if not np.isfinite(largest) or (limit is not None and largest > limit):
            return False
    return True


# -- derived weights --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coded:
    """The source of a weight's codes, scales and zero points in a layout."""

    source: Weight
    coding: Coding
    layout: Layout = "plain"
    swapped: bool = False
    """True if a weight of `blocks` is [depth, columns]."""
    width: int = 0
    """The numbers of a block: in `blocks`, and for scales and zero points of a `table`."""

    def matrix(self, parameter: Array) -> Array:
        """Returns scales or zero points as [columns, blocks], repeated for blocks of `width`."""
        coding, shape = self.coding, self.source.shape
        columns, depth = (shape[1], shape[0]) if self.swapped else shape
        count = -(-depth // self.width)
        if coding.axis is None:
            return np.full((columns, count), parameter)
        if not coding.block:
            return np.repeat(parameter[:, None], count, axis=1)
        matrix = np.ascontiguousarray(parameter.T) if self.swapped else parameter
        return np.repeat(matrix, -(-count // matrix.shape[1]), axis=1)[:, :count]


@dataclass(frozen=True)
class Codes(Coded):
    """The codes of a weight in a layout."""

    def compute(self) -> Array:
        coding, shape = self.coding, self.source.shape
        plain = np.int8 if coding.symmetric and self.layout == "plain" else np.uint8
        found = np.empty(shape, plain)
        for part, _, codes, _ in codes_of(self.source, coding):
            found[part] = codes if self.layout == "plain" else codes - coding.least
        if self.layout == "plain":
            return found if coding.bits == 8 else found.astype(element_type(coding.element).dtype)
        if self.swapped:
            found = np.ascontiguousarray(found.T)
        if self.layout == "table":
            return packed(found, coding.bits)
        blocks = blocked(found, 1, self.width, "zero")
        return packed(blocks, coding.bits)


@dataclass(frozen=True)
class Scales(Coded):
    """The scales of a weight; for `blocks` and `table` a matrix with a column for each `width` numbers of the depth."""

    def compute(self) -> Array:
        scale, _ = parameters(self.source, self.coding)
        return scale if self.layout == "plain" else self.matrix(scale)


@dataclass(frozen=True)
class Zeros(Coded):
    """The zero points of a weight: of the type of the codes in `plain`, packed in bytes for `blocks` and `table`."""

    def compute(self) -> Array:
        _, zero = parameters(self.source, self.coding)
        if self.layout == "plain":
            return zero.astype(element_type(self.coding.element).dtype)
        return packed(self.matrix(zero).astype(np.uint8), self.coding.bits)


@dataclass(frozen=True)
class Narrowed:
    """The values of a weight as floats of 16 bits, to nearest, ties to even."""

    source: Weight
    element: Attribute

    def compute(self) -> Array:
        return self.source.array().astype(element_type(self.element).dtype)


def packed(codes: Array, bits: int) -> Array:
    """Returns unsigned codes in bytes along the last dim, from the low bits on, padded with a 0 to an even number."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], 1), np.uint8)], axis=-1)
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


__all__ = ["Codes", "Coding", "Narrowed", "Scales", "WeightError", "Zeros", "error_of", "is_finite", "packed"]
