"""Quantised caches of GroupQueryAttention: keys and values of 8 bits (i8), or of 4 bits, two to a byte (u8).

    code = round(x / scale) within the bits           x = code * scale

The scales of keys are multiplied with the queries, and the scales of values with the weighted sums of their codes, so
the codes are only converted to floats for their sums.

A scale belongs to the whole tensor (`PER_TENSOR`), or to a feature of a head (`PER_CHANNEL`, [1, heads, 1, size]). A
number of 4 bits is stored plus 8, the first of two in the low half of a byte. Attention reads new keys and values from
the cache too, after their rounding, as ONNX Runtime does on CPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.attention_nests import AttentionDims, Heads, dims_reason
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.ops.rules import operand, operand_dims
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.context import Subscripts

KEY_SCALE, VALUE_SCALE = 12, 13
"""Operands of GroupQueryAttention."""
NONE, TENSOR, CHANNEL = "NONE", "PER_TENSOR", "PER_CHANNEL"


def kinds_of(op: OnnxOp) -> tuple[str, str]:
    """Returns the kinds of scales of keys and of values."""
    key, value = (str(op.attr(f"{side}_quant_type", NONE) or NONE) for side in "kv")
    return key, value


def is_quantized(op: OnnxOp) -> bool:
    """True if the cache of an attention is quantised."""
    return kinds_of(op) != (NONE, NONE)


def bits_of(op: OnnxOp) -> int:
    """Returns the bits of a number in a quantised cache."""
    return int(op.attr("kv_cache_bit_width", 0) or 8)


def row_size(op: OnnxOp, head: Expr) -> Expr:
    """Returns the elements of a row of the cache of an attention, whose heads have `head` features."""
    return floordiv(head, Expr.of(2)) if is_quantized(op) and bits_of(op) == 4 else head


def quantized_reason(op: OnnxOp, past: int, dims: AttentionDims) -> str | None:
    """Returns the reason why this module cannot read the cache `past`; None if it can, or if no cache is quantised."""
    scales = [operand(op, k) for k in (KEY_SCALE, VALUE_SCALE)]
    if not is_quantized(op):
        found = any(scale is not None for scale in scales) or int(op.attr("kv_cache_bit_width", 0) or 0)
        return "it has scales or bits of a quantised cache, which is not quantised" if found else None
    cached = operand(op, past)
    if cached is None or any(scale is None for scale in scales):
        return "its cache is quantised, and it has no past or no scales"
    bits = bits_of(op)
    if (bits, element_of(cached.type)) not in ((8, i8), (4, ui8)):
        return f"its cache has elements of {element_of(cached.type)}, which hold no numbers of {bits} bits"
    if bits == 4 and (dims.head.constant or 1) % 2:
        return f"its cache has two numbers to a byte, and its heads have {dims.head} features"
    for index, kind in zip((KEY_SCALE, VALUE_SCALE), kinds_of(op), strict=True):
        if kind == TENSOR and product(operand_dims(op, index)) == ONE:
            continue
        if kind not in (TENSOR, CHANNEL):
            return f"its cache is quantised by '{kind}', and its keys or values alone"
        wanted = (ONE,) if kind == TENSOR else (ONE, dims.kv_heads, ONE, dims.head)
        reason = dims_reason([operand_dims(op, index)], ["scale"], {0: wanted})
        if reason is not None:
            return reason
    return None


@dataclass(frozen=True)
class Codes:
    """The numbers of a quantised cache of keys or of values."""

    scale: SSAValue
    by_channel: bool
    bits: int

    @staticmethod
    def of(ctx: Lowering, index: int) -> Codes:
        kind = kinds_of(ctx.op)[index - KEY_SCALE]
        return Codes(ctx.required(index), kind == CHANNEL, bits_of(ctx.op))

    def _scale(self, nest: Nest, h: Expr, d: Expr) -> Scalar:
        at = [ZERO, h, ZERO, d] if self.by_channel else [ZERO] * len(dims_of(self.scale.type))
        return nest.read(self.scale, at)

    def quantized(self, ctx: Lowering, dims: AttentionDims, new: Heads, part: str) -> Heads:
        """Returns the codes of new keys or values, [batch, heads, position, row of the cache]."""
        size, high = row_size(ctx.op, dims.head), (1 << (self.bits - 1)) - 1

        def code(nest: Nest, at: Subscripts, d: Expr) -> Scalar:
            b, h, s, _ = at
            scaled = new.read(nest, b, h, s, d).to(f32) / self._scale(nest, h, d)
            rounded = scaled.math("roundeven")
            # NaN is the largest number, as in ONNX Runtime.
            return (rounded < float(high)).select(rounded, float(high)).maximum(-high - 1.0).to(i32)

        def point(nest: Nest, at: Subscripts) -> Scalar:
            if self.bits == 8:
                return code(nest, at, at[3]).to(i8)
            low, above = (code(nest, at, at[3] * 2 + k) + (high + 1) for k in range(2))
            return (low | above.shift_left(4)).to(ui8)

        made = ctx.generate(
            [dims.batch, dims.kv_heads, new.length, size], point, element=i8 if self.bits == 8 else ui8, part=part
        )
        return Heads(made, new.length, size, joined=False)

    @property
    def _places(self) -> Expr:
        """The numbers of a byte."""
        return Expr.of(8 // self.bits)

    def scaled(self, ctx: Lowering, dims: AttentionDims, query: Heads) -> Heads:
        """Returns the queries times the scales of keys, with the features in the order of `numbers`. f32, [batch,
        heads, position, feature]."""
        nest = ctx.nest("scaled")
        b, h, s, place, byte = nest.axes(
            [dims.batch, dims.heads, query.length, self._places, row_size(ctx.op, dims.head)]
        )
        d = byte * self._places + place
        value = query.read(nest, b, h, s, d).to(f32) * self._scale(nest, floordiv(h, dims.group), d)
        parts = tensor_of(f32, [dims.batch, dims.heads, query.length, self._places, row_size(ctx.op, dims.head)])
        (made,) = nest.finish(("none", value, [b, h, s, place, byte], parts))
        tensor = ctx.view(made, [dims.batch, dims.heads, query.length, dims.head])
        return Heads(tensor, query.length, dims.head, joined=False)

    def numbers(self, ctx: Lowering, dims: AttentionDims, codes: SSAValue, part: str) -> SSAValue:
        """Returns the numbers of codes without their scales: f32, [batch, heads, row, feature].

        Features of two to a byte are in the order of their places: those in the low halves of all bytes, then those in
        the high halves. So a vector of numbers is made of a vector of bytes.
        """
        rows = [dims.batch, dims.kv_heads, dims.total, self._places, dims_of(codes.type)[3]]

        def point(nest: Nest, at: Sequence[Expr]) -> Scalar:
            b, h, s, place, byte = at
            number = nest.read(codes, [b, h, s, byte]).to(i32)
            if self.bits == 4:
                number = (number.shift_right(nest.index(place * 4).to(i32)) & 15) - 8
            return number.to(f32)

        made = ctx.generate(rows, point, element=f32, part=part)
        return ctx.view(made, [*rows[:3], dims.head])

    def unscaled(self, ctx: Lowering, dims: AttentionDims, sums: SSAValue) -> SSAValue:
        """Returns sums of numbers of values, [batch, position, head, feature], times their scales, with the features in
        their own order."""
        outer, bytes_ = dims_of(sums.type)[:3], row_size(ctx.op, dims.head)
        parts = ctx.view(sums, [*outer, self._places, bytes_])

        def point(nest: Nest, at: Sequence[Expr]) -> Scalar:
            b, i, h, byte, place = at
            scale = self._scale(nest, floordiv(h, dims.group), byte * self._places + place)
            return nest.read(parts, [b, i, h, place, byte]) * scale

        made = ctx.generate([*outer, bytes_, self._places], point, element=f32, part="unscaled")
        return ctx.view(made, [*outer, dims.head])
