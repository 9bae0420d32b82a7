"""Products with weights in blocks of few bits: the lowerings of MatMulNBits.

Weights are read in panels of columns, as in micro-kernels, but in their stored form. For few rows, the numbers of a
vector (a word of each column) become floats in registers and the rows share them. For many rows, a nest makes panels of
floats, a group at a time (`igniter/schedules/made_panels.py`), and a product reads them. If the left factor
may be rounded to eight bits, it is, and bytes are multiplied, for any number of rows.

Words are four bytes of a column: one load brings 8 numbers of 4 bits for each lane. A number is masked in place, and
the left factor is scaled down by the same power of two, which is exact:

    sum of x[k] * q[k] = sum of (x[k] * 2^-s) * (word & (15 << s))        s = 0, 4, 8, 12

The upper half of a word is shifted down first: s stays small, so that factors down to 2^-114 keep all their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i8, i32
from xdsl.ir import SSAValue

from igniter.dialects.fusion import UnpackOp
from igniter.dialects.layouts import WORD
from igniter.dialects.loop.panels import PANEL_BYTES
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.plain_products import lower_plain
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.ops.rules import (
    operand,
)
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE, PLAIN_ATTRIBUTE, Dims
from igniter.dialects.sym import element_of, tensor_of
from igniter.dialects.sym.expr import Expr, floordiv, mod, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


PANEL = PANEL_BYTES // 4
"""The columns of a panel of sums in f32."""

EIGHT_BITS = 4
"""The `accuracy_level` that allows rounding the left factor to eight bits."""

BYTE_MOST = 127.0
"""The largest magnitude of a factor rounded to eight bits."""
BYTE_MASK, LOW_NUMBERS = 0xFF, 0x0F0F0F0F
INTEGER_BITS = 1.5 * 2**23
"""Added to a small integer, this gives a float whose low bits are the integer."""

MOST_ROWS = 4
"""The maximum number of rows that convert numbers in registers. Compared with panels of floats, 2 rows take 0.6 (4
bits) and 0.7 (8 bits) of the time, 3 rows 0.8 and 0.9, 4 rows 1.09 and 0.86, 8 rows 1.5 and 1.05 (768 x 3072 and back,
one thread of a Zen 3, interleaved)."""

WORDS = IntegerType(32, Signedness.UNSIGNED)
HALF = 16
"""The bits of half a word."""


STRETCH = 16
"""The bytes of a stretch; they share the work for zero points and scales. A longer one is more code, and no faster."""
CHAINS = 2
"""The number of independent partial sums, to hide the latency of additions."""


def added(terms: Sequence[Scalar]) -> Scalar:
    """Returns the sum, computed as `CHAINS` partial sums."""
    sums: list[Scalar] = list(terms[:CHAINS])
    for k, term in enumerate(terms[CHAINS:]):
        sums[k % CHAINS] = sums[k % CHAINS] + term
    while len(sums) > 1:
        sums = [sums[k] if k + 1 == len(sums) else sums[k] + sums[k + 1] for k in range(0, len(sums), 2)]
    return sums[0]


def unpacked(byte: Scalar, part: int, bits: int) -> Scalar:
    """Returns the number at place `part` of a byte, as an i32."""
    wide = byte.to(i32)
    if bits == 8:
        return wide
    shifted = wide.shift_right(part * bits) if part else wide
    return shifted if (part + 1) * bits == 8 else shifted & ((1 << bits) - 1)


def in_place(word: Scalar, place: int, bits: int) -> Scalar:
    """Returns the number at `place` of a word as an i32, times the power of two removed from its
    factor by `lowered`."""
    at = place * bits
    half = word.shift_right(HALF) if at >= HALF else word
    return (half & (((1 << bits) - 1) << at % HALF)).to(i32)


def lowered(nest: Nest, value: Scalar, place: Expr, bits: int) -> Scalar:
    """Returns the factor of the numbers at `place` of words, divided by their excess power of two."""
    shift = nest.index(mod(place, Expr.of(HALF // bits)) * bits).to(i32)
    return value * ((127 - shift).shift_left(23)).bits(f32)


@dataclass(frozen=True)
class Blocks:
    """The sizes of a matrix of weights: `columns` of `depth` numbers each, in blocks of `block`."""

    depth: int
    columns: int
    block: int
    bits: int
    of_bytes: bool = False
    """True if the left factor is rounded to eight bits."""

    @staticmethod
    def of(op: OnnxOp) -> Blocks:
        depth, columns, block = (int(op.attr(n)) for n in ("K", "N", "block_size"))
        return Blocks(depth, columns, block, int(op.attr("bits", 4) or 4), rounds_rows(op))

    @property
    def parts(self) -> int:
        """The numbers in a byte."""
        return 8 // self.bits

    @property
    def are_words(self) -> bool:
        """True if packed weights are read as words: for several numbers in a byte, and for products of bytes."""
        return (self.parts > 1 or self.of_bytes) and self.blob % WORD == 0

    @property
    def count(self) -> int:
        """The blocks of a column."""
        return -(-self.depth // self.block)

    @property
    def blob(self) -> int:
        """The bytes of a block."""
        return self.block // self.parts

    @property
    def stretch(self) -> int:
        """The numbers of a block summed before zero points and scales are applied."""
        return gcd(self.blob, STRETCH) * self.parts

    @property
    def over(self) -> tuple[Expr, Expr]:
        """The blocks of a column, and the stretches of a block."""
        return Expr.of(self.count), Expr.of(self.block // self.stretch)

    @property
    def zero_bytes(self) -> int:
        """The bytes of the packed zero points of a column."""
        return -(-self.count // self.parts)

    def operands(self, op: OnnxOp) -> dict[int, tuple[str, list[Dims]]]:
        """Returns the allowed dims of the operands, by index."""

        def dims(*sizes: int) -> Dims:
            return tuple(Expr.of(n) for n in sizes)

        n, blocks = self.columns, self.count
        found = {
            1: ("weights", [dims(n, blocks, self.blob)]),
            2: ("scales", [dims(n, blocks), dims(n * blocks)]),
        }
        if operand(op, 3) is not None:
            width = self.zero_bytes if element_of(op.operands[3].type) == ui8 else blocks
            found[3] = ("zero points", [dims(n, width), dims(n * width)])
        if operand(op, 5) is not None:
            found[5] = ("biases", [dims(n)])
        return found


@dataclass(frozen=True)
class Columns:
    """An operand with a row for each column of the product, as a tensor of the kernel."""

    tensor: SSAValue
    in_panels: bool
    """True if it is packed, [panel, .., lane], with zeros for missing columns of the last panel."""

    @staticmethod
    def of(ctx: Lowering, index: int, dims: tuple[int, ...]) -> Columns:
        unpack = ctx.op.operands[index].owner
        if isinstance(unpack, UnpackOp):
            return Columns(ctx.lowered(unpack.source), True)
        return Columns(ctx.view(ctx.required(index), dims), False)

    def read(self, nest: Nest, panel: Expr, lane: Expr, *at: Expr) -> Scalar:
        """Reads the element of a column; 0 past the last column."""
        if self.in_panels:
            return nest.read(self.tensor, [panel, *at, lane])
        return nest.read_inside(self.tensor, [panel * PANEL + lane, *at])


@dataclass(frozen=True)
class Weights:
    """The weights of a lowering: numbers, scales and zero points."""

    shape: Blocks
    numbers: Columns
    are_words: bool
    """True if numbers are read as words of four bytes."""
    scales: Columns
    zeros: Columns | None
    are_packed: bool
    """True if zero points have the same number of bits as the weights."""

    @staticmethod
    def of(ctx: Lowering, shape: Blocks) -> Weights:
        numbers = Columns.of(ctx, 1, (shape.columns, shape.count, shape.blob))
        are_words = numbers.in_panels and element_of(numbers.tensor.type) != ui8
        scales, zeros = Columns.of(ctx, 2, (shape.columns, shape.count)), ctx.input(3)
        are_packed = zeros is not None and element_of(zeros.type) == ui8
        width = shape.zero_bytes if are_packed else shape.count
        points = None if zeros is None else Columns.of(ctx, 3, (shape.columns, width))
        return Weights(shape, numbers, are_words, scales, points, are_packed)

    @property
    def parts(self) -> int:
        """The numbers in an element: a word, or a byte."""
        return self.shape.parts * (WORD if self.are_words else 1)

    def scale(self, nest: Nest, panel: Expr, lane: Expr, block: Expr) -> Scalar:
        """Reads the scale of a block of a column."""
        return self.scales.read(nest, panel, lane, block).to(f32)

    def point(self, nest: Nest, panel: Expr, lane: Expr, block: Expr) -> Scalar | int:
        """Reads its zero point as an i32, if zero points are packed or absent."""
        bits, parts = self.shape.bits, self.shape.parts
        if self.zeros is None:
            return 1 << (bits - 1)
        numbers = self.zeros.read(nest, panel, lane, floordiv(block, Expr.of(parts))).to(i32)
        place = nest.index(mod(block, Expr.of(parts)) * bits).to(i32)
        return numbers.shift_right(place) & ((1 << bits) - 1)

    def zero(self, nest: Nest, panel: Expr, lane: Expr, block: Expr) -> Scalar | float:
        """Reads its zero point as a float."""
        if self.zeros is not None and not self.are_packed:
            return self.zeros.read(nest, panel, lane, block).to(f32)
        found = self.point(nest, panel, lane, block)
        return float(found) if isinstance(found, int) else found.to(f32)


def lower_product(ctx: Lowering) -> list[SSAValue]:
    """Lowers by the number of rows: few rows convert numbers in registers, many rows share panels of floats. If the
    left factor may be rounded to eight bits, it is, and bytes are multiplied. A product for a GPU is one nest."""
    rows = product(ctx.dims(0)[:-1])
    if PLAIN_ATTRIBUTE in ctx.op.attributes:
        return lower_plain(ctx, Blocks.of(ctx.op))
    if rounds_rows(ctx.op):
        return _of_bytes(ctx, rows)
    many = MANY_ROWS_ATTRIBUTE in ctx.op.attributes or (rows.constant is not None and rows.constant > MOST_ROWS)
    return _of_many(ctx, rows) if many else _of_few(ctx, rows)


def _of_many(ctx: Lowering, rows: Expr) -> list[SSAValue]:
    """Multiplies by panels of floats, made from the numbers a group of panels at a time and shared by all rows."""
    shape, bias = Blocks.of(ctx.op), ctx.input(5)
    weights = Weights.of(ctx, shape)
    a = ctx.view(ctx.required(0), (rows, shape.depth))
    panels, parts = -(-shape.columns // PANEL), weights.parts

    # The steps of depth of a panel are one dim, though several axes cover it, so that the product reads it directly.
    nest = ctx.nest("panels")
    panel, block, each, part, lane = nest.axes((panels, shape.count, shape.block // parts, parts, PANEL))
    bits = weights.numbers.read(nest, panel, lane, block, each).to(i32)
    if parts > 1:
        bits = bits.shift_right(nest.index(part * shape.bits).to(i32)) & ((1 << shape.bits) - 1)
    number = (bits.to(f32) - weights.zero(nest, panel, lane, block)) * weights.scale(nest, panel, lane, block)
    at = [panel, block * shape.block + each * parts + part, lane]
    (dense,) = nest.finish(("none", number, at, tensor_of(f32, (panels, shape.count * shape.block, PANEL))))

    def multiplied(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        at = [floordiv(i[1], Expr.of(PANEL)), r[0], mod(i[1], Expr.of(PANEL))]
        return nest.read(a, [i[0], r[0]]).to(f32) * nest.read(dense, at)

    sums = ctx.generate((rows, shape.columns), multiplied, over=(Expr.of(shape.depth),), combiner="add", element=f32)
    if bias is None and ctx.out_element() == f32:
        return [ctx.view(sums, ctx.out_dims())]

    def result(nest: Nest, i: Sequence[Expr]) -> Scalar:
        value = nest.read(sums, i)
        return value if bias is None else value + nest.read(bias, [i[1]]).to(f32)

    plain = ctx.generate((rows, shape.columns), result, element=ctx.out_element(), part="columns")
    return [ctx.view(plain, ctx.out_dims())]


def _of_few(ctx: Lowering, rows: Expr) -> list[SSAValue]:
    """Multiplies by packed columns: the numbers of a vector of bytes become floats in registers, for a few rows."""
    shape = Blocks.of(ctx.op)
    weights = Weights.of(ctx, shape)
    parts, bits = weights.parts, shape.bits
    a = ctx.view(ctx.required(0), (rows, shape.depth))
    stretch = shape.stretch

    def left(nest: Nest, tensor: SSAValue, row: Expr, r: Sequence[Expr], at: int) -> Scalar:
        return nest.read_inside(tensor, [row, r[0] * shape.block + (r[1] * stretch + at)]).to(f32)

    def sums(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return added([left(nest, a, i[0], i[1:], at) for at in range(stretch)])

    # The factor of the zero points is the same for all columns.
    whole = ctx.generate((rows, *shape.over), sums, element=f32, part="left")
    factors = a
    if weights.are_words:

        def factor(nest: Nest, i: Sequence[Expr]) -> Scalar:
            return lowered(nest, nest.read(a, i).to(f32), i[1], bits)

        factors = ctx.generate((rows, shape.depth), factor, element=f32, part="factors")

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        panel, row, lane = i
        scale, zero = weights.scale(nest, panel, lane, r[0]), weights.zero(nest, panel, lane, r[0])
        number = in_place if weights.are_words else unpacked
        products: list[Scalar] = []
        for k in range(stretch // parts):
            read = weights.numbers.read(nest, panel, lane, r[0], r[1] * (stretch // parts) + k)
            for part in range(parts):
                factor = left(nest, factors, row, r, k * parts + part)
                products.append(factor.contracted(number(read, part, bits).to(f32)))
        return (added(products) - nest.read(whole, [row, *r]) * zero) * scale

    return _panel_sums(ctx, rows, point)


SumRule = Callable[["Nest", Sequence[Expr], Sequence[Expr]], Scalar]
"""The summed value at the parallel axes and the reductions."""


def _panel_sums(ctx: Lowering, rows: Expr, point: SumRule) -> list[SSAValue]:
    """Returns the results of a node whose sums are `point` at [panel, row, lane], summed over stretches of blocks."""
    shape, bias = Blocks.of(ctx.op), ctx.input(5)
    # Panels are outermost, so that all rows use one while it is in the cache.
    whole = shape.columns % PANEL == 0
    nest = ctx.nest("")
    i = nest.axes((-(-shape.columns // PANEL), rows, PANEL))
    value = point(nest, i, [nest.reduction(e) for e in shape.over])
    # Full panels are written to their place among the columns.
    at = [i[1], i[0] * PANEL + i[2]] if whole else i
    dims = (rows, Expr.of(shape.columns)) if whole else (Expr.of(-(-shape.columns // PANEL)), rows, Expr.of(PANEL))
    (made,) = nest.finish(("add", value, at, tensor_of(f32, dims)))
    if whole and bias is None and ctx.out_element() == f32:
        return [ctx.view(made, ctx.out_dims())]

    def result(nest: Nest, i: Sequence[Expr]) -> Scalar:
        place = i if whole else [floordiv(i[1], Expr.of(PANEL)), i[0], mod(i[1], Expr.of(PANEL))]
        value = nest.read(made, place)
        return value if bias is None else value + nest.read(bias, [i[1]]).to(f32)

    plain = ctx.generate((rows, shape.columns), result, element=ctx.out_element(), part="columns")
    return [ctx.view(plain, ctx.out_dims())]


def rounds_rows(op: OnnxOp) -> bool:
    """True if the left factor is rounded to eight bits, as ONNX Runtime does if the node allows it."""
    zeros = operand(op, 3)
    return (
        int(op.attr("accuracy_level", 0) or 0) == EIGHT_BITS
        and int(op.attr("bits", 4) or 4) in (4, 8)
        and element_of(op.operands[0].type) == f32
        and (zeros is None or element_of(zeros.type) == ui8)
    )


def _of_bytes(ctx: Lowering, rows: Expr) -> list[SSAValue]:
    """Multiplies numbers of 4 or 8 bits by bytes: each block of the left factor is rounded to 8 bits, scaled by its
    largest magnitude, as in ONNX Runtime, and the products of a block are summed as integers."""
    shape = Blocks.of(ctx.op)
    weights = Weights.of(ctx, shape)
    left = _rounded_rows(ctx, rows, shape, 1 if weights.zeros is not None else 1 << (shape.bits - 1))
    # With 4 bits, one integer has the even numbers of a word as its bytes, and another the odd ones.
    numbers, stretch = shape.parts * WORD, shape.stretch

    def word_at(r: Sequence[Expr], k: int) -> Expr:
        return r[0] * (shape.block // numbers) + (r[1] * (stretch // numbers) + k)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        panel, row, lane = i
        pairs: list[tuple[Scalar, Scalar]] = []
        for k in range(stretch // numbers):
            word = _word(nest, weights, panel, lane, r, k)
            for part in range(shape.parts):
                found = word.shift_right(part * shape.bits) if part else word
                found = found & LOW_NUMBERS if shape.parts > 1 else found
                factor = nest.read(left.words, [row, word_at(r, k) * shape.parts + part])
                pairs.append((found.bits(i32), factor))
        total = nest.const(0, i32).plus_dot_bytes(pairs, (1 << shape.bits) - 1)
        whole = nest.read(left.sums, [row, *r])
        if weights.zeros is not None:
            whole = whole * weights.point(nest, panel, lane, r[0])
        scale = weights.scale(nest, panel, lane, r[0]) * nest.read(left.scales, [row, r[0]])
        return (total - whole).to(f32).contracted(scale)

    return _panel_sums(ctx, rows, point)


@dataclass(frozen=True)
class RoundedRows:
    """A left factor rounded to eight bits, block by block."""

    words: SSAValue
    """Its numbers, [row, word]: beside 8 bits, four in a word of i32; beside 4 bits, the four even ones of eight, then
    the four odd ones."""
    scales: SSAValue
    """The scale of each block, [row, block]."""
    sums: SSAValue
    """The sums of stretches, [row, block, stretch], times the zero point if it is the same for all columns."""


def _rounded_rows(ctx: Lowering, rows: Expr, shape: Blocks, point: int) -> RoundedRows:
    """Rounds the blocks of the left factor as ONNX Runtime does on x86-64: `x * (127 / largest)` to the nearest even
    integer. `point` is a factor of all sums."""
    a = ctx.view(ctx.required(0), (rows, shape.depth))
    numbers, dims = shape.parts * WORD, (rows, Expr.of(shape.count))

    def magnitude(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return nest.read_inside(a, [i[0], i[1] * shape.block + r[0]]).abs()

    largest = ctx.generate(dims, magnitude, over=[Expr.of(shape.block)], combiner="max", element=f32, part="largest")

    def inverse(nest: Nest, i: Sequence[Expr]) -> Scalar:
        found = nest.read(largest, i)
        return found.ne(0.0).select(nest.const(BYTE_MOST, f32) / found, 0.0)

    inverses = ctx.generate(dims, inverse, element=f32, part="inverses")

    def scale(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(largest, i) / BYTE_MOST

    scales = ctx.generate(dims, scale, element=f32, part="scales")

    def rounded(nest: Nest, i: Sequence[Expr]) -> Scalar:
        # A row of a block has one inverse: with an axis of its own, it is not computed again for each number.
        value = nest.read_inside(a, [i[0], i[1] * shape.block + i[2]]) * nest.read(inverses, i[:2])
        # The low byte of this sum is the integer, in two's complement; NaN has any byte, and a scale that is NaN.
        return (value.math("roundeven") + INTEGER_BITS).bits(i32).to(i8)

    blocks = ctx.generate((*dims, Expr.of(shape.block)), rounded, element=i8, part="rounded")
    bytes_ = ctx.view(blocks, (rows, shape.count * shape.block))

    def word_of(nest: Nest, i: Sequence[Expr]) -> Scalar:
        # Four of eight bytes, two apart, do not form a vector: assembled byte by byte.
        parts = Expr.of(shape.parts)
        row, word, part = i[0], floordiv(i[1], parts), mod(i[1], parts)
        total: Scalar | None = None
        for place in range(WORD):
            byte = nest.read(bytes_, [row, word * numbers + parts * place + part]).to(i32)
            byte = (byte & BYTE_MASK).shift_left(8 * place)
            total = byte if total is None else total | byte
        assert total is not None
        return total

    words = ctx.generate((rows, shape.count * shape.block // WORD), word_of, element=i32, part="factors")

    def sums(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return nest.read(blocks, [i[0], i[1], i[2] * shape.stretch + r[0]]).to(i32) * point

    added = ctx.generate(
        (rows, *shape.over), sums, over=[Expr.of(shape.stretch)], combiner="add", element=i32, part="left"
    )
    return RoundedRows(words, scales, added)


def _word(nest: Nest, weights: Weights, panel: Expr, lane: Expr, r: Sequence[Expr], k: int) -> Scalar:
    """Reads word `k` of a stretch of a block; assembles it from four bytes if words are not stored."""
    words = weights.shape.stretch // (weights.shape.parts * WORD)
    at = r[1] * words + k
    if weights.are_words:
        return weights.numbers.read(nest, panel, lane, r[0], at)
    total: Scalar | None = None
    for place in range(WORD):
        byte = weights.numbers.read(nest, panel, lane, r[0], at * WORD + place).to(WORDS).shift_left(8 * place)
        total = byte if total is None else total | byte
    assert total is not None
    return total
