"""Products with weights in blocks of few bits as one nest over rows, columns and depth, for GPUs.

    y[i, j] = sum over k of x[i, k] * (number(j, k) - zero(j, k // block)) * scale(j, k // block)

A byte holds the numbers of adjacent depths, so the nest reads `codes[j, k // parts]` and shifts by `k % parts`. The
lowering to programs reads each byte once (`igniter.transforms.conversion.packed_factors`). With 16-bit activations the
weight is rounded to their type, as in ONNX Runtime's kernels for GPUs, so that tensor cores multiply it; sums are of
f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32

from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, floordiv, mod

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.ops.block_products import Blocks


@dataclass(frozen=True)
class PlainWeights:
    """The weights of a lowering, column by column: numbers, scales and zero points."""

    shape: Blocks
    numbers: SSAValue
    scales: SSAValue
    zeros: SSAValue | None

    @staticmethod
    def of(ctx: Lowering, shape: Blocks) -> PlainWeights:
        numbers = ctx.view(ctx.required(1), (shape.columns, shape.count * shape.blob))
        scales, zeros = ctx.view(ctx.required(2), (shape.columns, shape.count)), ctx.input(3)
        if zeros is not None:
            width = shape.zero_bytes if element_of(zeros.type) == ui8 else shape.count
            zeros = ctx.view(zeros, (shape.columns, width))
        return PlainWeights(shape, numbers, scales, zeros)

    def number(self, nest: Nest, tensor: SSAValue, column: Expr, at: Expr) -> Scalar:
        """Reads the number at place `at` of a column as an i32."""
        bits, parts = self.shape.bits, Expr.of(self.shape.parts)
        wide = nest.read(tensor, [column, floordiv(at, parts)]).to(i32)
        if bits == 8:
            return wide
        place = nest.index(mod(at, parts) * bits).to(i32)
        shifted = nest.append(arith.ShRUIOp(wide.value, place.value), i32)
        return shifted & ((1 << bits) - 1)

    def weight(self, nest: Nest, column: Expr, depth: Expr) -> Scalar:
        """Returns a weight in f32."""
        block = floordiv(depth, Expr.of(self.shape.block))
        number, zeros = self.number(nest, self.numbers, column, depth), self.zeros
        if zeros is None:
            found = (number - (1 << (self.shape.bits - 1))).to(f32)
        elif element_of(zeros.type) == ui8:
            found = (number - self.number(nest, zeros, column, block)).to(f32)
        else:
            found = number.to(f32) - nest.read(zeros, [column, block]).to(f32)
        return found * nest.read(self.scales, [column, block]).to(f32)


def lower_plain(ctx: Lowering, shape: Blocks) -> list[SSAValue]:
    """Multiplies the activations by the weights of each column, and adds the bias."""
    weights, x, bias = PlainWeights.of(ctx, shape), ctx.required(0), ctx.input(5)
    element: Attribute = ctx.element(0)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        *rows, column = i
        factor = nest.read(x, [*rows, r[0]])
        return factor.to(f32) * weights.weight(nest, column, r[0]).to(element).to(f32)

    over = [Expr.of(shape.depth)]
    sums = ctx.generate(ctx.out_dims(), point, over=over, combiner="add", element=f32)
    if bias is None:
        return [ctx.rounded(sums)]

    def result(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(sums, i) + nest.read(bias, [i[-1]]).to(f32)

    return [ctx.generate(ctx.out_dims(), result, part="bias")]
