"""`loop.dot_bytes` as instructions: products of four unsigned bytes and four signed ones, added to a sum.

| target | instructions of a vector |
| --- | --- |
| x86-64 with AVX512-VNNI or AVX-VNNI | `vpdpbusd` |
| x86-64 with AVX2 or AVX512-BW | `pmaddubsw`, `pmaddwd` by ones, `paddd` |
| aarch64 with dotprod | `sdot`: unsigned bytes of at most 127 are signed ones as well |
| others, and scalars | shifts, products and additions, byte by byte |

`pmaddubsw` adds the products of two bytes in 16 bits with saturation. Unsigned bytes of at most 127 and signed ones do
not reach it: 2 * 127 * 128 = 32512. Numbers of 4 bits are at most 15, so the sums of eight of them, 8 * 2 * 15 * 128 =
30720, are added in 16 bits before `pmaddwd` widens them. Unsigned bytes above 127 do, and are no signed bytes either:
except for `vpdpbusd`, they are multiplied as two numbers of 4 bits, `low + 16 * high`.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import I32, Type
from igniter.backends.cpu.target import Target

GROUP, BITS = 4, 8
MOST_WORD, SIGNED_MOST = 32767, 128
"""The largest number of 16 bits, and the largest magnitude of a signed byte."""
HALF, HALF_MOST, LOW_HALVES = 4, 15, 0x0F0F0F0F
"""Half of a byte: its bits, its largest number, and the mask of the lower halves of four bytes."""
_PAIRS = {
    16: ("avx512.pmaddubs.w.512", "avx512.pmaddw.d.512"),
    8: ("avx2.pmadd.ub.sw", "avx2.pmadd.wd"),
    4: ("ssse3.pmadd.ub.sw.128", "sse2.pmadd.wd"),
}
"""The intrinsics that add the products of two bytes, and of two words, by lanes."""


Pair = tuple[Value, Value]
"""Unsigned bytes and signed bytes."""


def dot(b: Builder, pairs: Sequence[Pair], total: Value, most: int) -> Value:
    """Returns `total` plus the products of the bytes of pairs of i32, or of vectors of them; unsigned bytes are at most
    `most`."""
    lanes, target = total.type.lanes, b.target
    if most >= SIGNED_MOST and _needs_signed(target, lanes):
        return _by_halves(b, pairs, total)
    if _has_words(target, lanes):
        if _has_one(target):
            return _one_by_one(b, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}", pairs, total)
        sum_ = WordSum(b, total, most)
        for pair in pairs:
            sum_.add(pair)
        return sum_.whole()
    if _has_signed(target, lanes):
        return _one_by_one(b, f"llvm.aarch64.neon.sdot.v{lanes}i32.v{lanes * GROUP}i8", pairs, total)
    for unsigned, signed in pairs:
        total = _byte_by_byte(b, unsigned, signed, total)
    return total


def words_at_once(target: Target, lanes: int, most: int) -> int:
    """Returns the number of pairs whose products a target adds in 16 bits; 0 if it does not."""
    return _at_once(most) if _has_words(target, lanes) and not _has_one(target) else 0


def _at_once(most: int) -> int:
    return MOST_WORD // (2 * most * SIGNED_MOST)


def _has_words(target: Target, lanes: int) -> bool:
    """True if x86 multiplies bytes of vectors with these lanes."""
    return target.arch == "x86_64" and lanes in _PAIRS and lanes * 4 <= target.vector_bytes and target.vector_bytes > 16


def _has_one(target: Target) -> bool:
    """True if one instruction multiplies four bytes and adds them. AVX512-VNNI with vectors of 64 bytes implies
    AVX512-VL, and so the instructions for shorter vectors."""
    return target.has_feature("avxvnni" if target.vector_bytes == 32 else "avx512vnni")


def _has_signed(target: Target, lanes: int) -> bool:
    """True if aarch64 multiplies signed bytes of vectors with these lanes."""
    return target.arch == "aarch64" and lanes == 4 and target.has_feature("dotprod")


def _needs_signed(target: Target, lanes: int) -> bool:
    """True if the instructions of a target take unsigned bytes of at most 127."""
    return _has_signed(target, lanes) or (_has_words(target, lanes) and not _has_one(target))


def _one_by_one(b: Builder, instruction: str, pairs: Sequence[Pair], total: Value) -> Value:
    """Adds the products of a pair with one instruction."""
    bytes_ = Type("i8", total.type.lanes * GROUP)
    for pair in pairs:
        total = b.call(instruction, total.type, [total, *(b.bitcast(v, bytes_) for v in pair)])
    return total


def _by_halves(b: Builder, pairs: Sequence[Pair], total: Value) -> Value:
    """Adds the products with the low four bits of unsigned bytes, and those with the high ones, times 16."""

    def number(value: int) -> Value:
        one = b.const(I32, value)
        return b.splat(one, total.type.lanes) if total.type.is_vector else one

    low, half = number(LOW_HALVES), number(HALF)
    highs = [(b.binary("and", b.binary("lshr", unsigned, half), low), signed) for unsigned, signed in pairs]
    lows = [(b.binary("and", unsigned, low), signed) for unsigned, signed in pairs]
    above = dot(b, highs, number(0), HALF_MOST)
    return dot(b, lows, b.binary("add", total, b.binary("shl", above, half)), HALF_MOST)


class WordSum:
    """A sum whose products are added in 16 bits, as many as cannot overflow, and widened then."""

    def __init__(self, b: Builder, total: Value, most: int):
        self.b = b
        self.total = total
        self.words: Value | None = None
        """The products since the last widening."""
        self.at_once = _at_once(most)
        self.count = 0

    @property
    def latest(self) -> Value:
        """The value that the next product is added to."""
        return self.total if self.words is None else self.words

    @latest.setter
    def latest(self, value: Value) -> None:
        if self.words is None:
            self.total = value
        else:
            self.words = value

    def add(self, pair: Pair) -> None:
        """Adds the products of a pair."""
        b, lanes = self.b, self.total.type.lanes
        bytes_, words = Type("i8", lanes * GROUP), Type("i16", lanes * 2)
        product = b.call(f"llvm.x86.{_PAIRS[lanes][0]}", words, [b.bitcast(v, bytes_) for v in pair])
        self.words = product if self.words is None else b.binary("add", self.words, product)
        self.count += 1
        if self.count == self.at_once:
            self.total, self.words, self.count = self.whole(), None, 0

    def whole(self) -> Value:
        """Returns the sum of all products."""
        if self.words is None:
            return self.total
        b, t = self.b, self.total.type
        ones = b.splat(b.const(Type("i16"), 1), self.words.type.lanes)
        return b.binary("add", self.total, b.call(f"llvm.x86.{_PAIRS[t.lanes][1]}", t, [self.words, ones]))


def _byte_by_byte(b: Builder, unsigned: Value, signed: Value, total: Value) -> Value:
    def number(value: int) -> Value:
        one = b.const(I32, value)
        return b.splat(one, total.type.lanes) if total.type.is_vector else one

    top = number(32 - BITS)
    for place in range(0, 32, BITS):
        low = b.binary("and", b.binary("lshr", unsigned, number(place)), number((1 << BITS) - 1))
        high = b.binary("ashr", b.binary("shl", signed, number(32 - BITS - place)), top)
        total = b.binary("add", total, b.binary("mul", low, high))
    return total
