"""Weights in blocks of few bits, as in ONNX Runtime's int4 models: MatMulNBits, GatherBlockQuantized.

Numbers of `bits` bits (2, 4, 8) are packed in bytes, from the low bits on, along the last dim. Each block has a scale
and a zero point:

  w = (q - zero) * scale

`block_products.py` lowers MatMulNBits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop.attrs import SMALL_FLOATS
from igniter.dialects.onnx.base import constant_weight
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.block_products import EIGHT_BITS, Blocks, lower_product, rounds_rows
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.indexing import from_front
from igniter.dialects.onnx.ops.pointwise import elementwise_flops, ui8
from igniter.dialects.onnx.ops.rules import (
    element_type,
    infos,
    input_dims,
    legal,
    normal_axis,
    operand,
    operand_dims,
)
from igniter.dialects.onnx.registry import PLAIN_ATTRIBUTE, Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, mod, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


MOST_ROWS_16 = 2
"""The maximum number of f16 rows for which a product with 4-bit weights is as fast as in ONNX Runtime."""


# -- MatMulNBits ------------------------------------------------------------------------------------------------------


def _matmul_infer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return infos(element_type(ctx), None)
    ctx.equate(dims[-1], Expr.of(int(ctx.op.attr("K"))))
    return infos(element_type(ctx), (*dims[:-1], int(ctx.op.attr("N"))))


def _matmul_reason(op: OnnxOp) -> str | None:
    bits = int(op.attr("bits", 4) or 4)
    if bits not in (2, 4, 8):
        return f"weights of {bits} bits are not supported"
    if operand(op, 4) is not None:
        return "its operand g_idx is not supported"
    if int(op.attr("weight_prepacked", 0) or 0):
        return "its weight has a layout for GPUs"
    shape = Blocks.of(op)
    for index, (what, wanted) in shape.operands(op).items():
        if operand_dims(op, index) not in wanted:
            return f"its {what} are not known to have the dims {[str(d) for d in wanted[0]]}"
    return None


def _matmul_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    """Returns a reason for formats with a kernel in ONNX Runtime; it multiplies other formats number by number."""
    if PLAIN_ATTRIBUTE in op.attributes:
        return None
    shape, rows = Blocks.of(op), estimate(product(operand_dims(op, 0)[:-1]))
    if constant_weight(op.operands[1]) is None:
        return "its weights are computed, so they are not packed into panels"
    zeros = operand(op, 3)
    if zeros is not None and element_of(zeros.type) != ui8:
        return None
    if int(op.attr("accuracy_level", 0) or 0) == EIGHT_BITS:
        return (
            None
            if rounds_rows(op)
            else (
                "it may multiply bytes (accuracy_level 4), but its weights are not of 4 or 8 bits with f32 activations"
            )
        )
    if shape.bits != 4:
        return None
    if element_of(op.operands[0].type) == f32:
        return None
    return (
        f"for {rows} rows, more than {MOST_ROWS_16}, ONNX Runtime dequantises the weights only once"
        if rows > MOST_ROWS_16
        else None
    )


def _matmul_panels(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns byte weights, and the scales and zero points with two dims."""
    found: dict[int, tuple[int, ...]] = {} if Blocks.of(op).are_words else {1: (0, 1, 2)}
    for index in (2, 3):
        if operand(op, index) is not None and len(operand_dims(op, index)) == 2:
            found[index] = (0, 1)
    return found


def _matmul_words(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns weights with several numbers in a byte."""
    return {1: (0, 1, 2)} if Blocks.of(op).are_words else {}


# -- GatherBlockQuantized ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """The gathered table: the dims of the numbers, the gathered axis, and the axis of blocks of `block` numbers (0: one
    block)."""

    dims: Dims
    gathered: int
    quantized: int
    block: int
    bits: int

    @staticmethod
    def of(op: OnnxOp, data: Dims, element: Attribute) -> Table:
        bits = int(op.attr("bits", 4) or 4) if element == ui8 else 8
        rank, parts = len(data), 8 // bits
        gathered = normal_axis(int(op.attr("gather_axis", 0) or 0), rank)
        quantized = normal_axis(int(op.attr("quantize_axis", 1)), rank)
        block = op.attr("block_size", 128)
        dims = (*data[:-1], data[-1] * parts)
        return Table(dims, gathered, quantized, 128 if block is None else int(block), bits)

    @property
    def parts(self) -> int:
        """The numbers in a byte."""
        return 8 // self.bits

    def scale_dims(self) -> Dims:
        blocks = self.dims[self.quantized].ceildiv(self.block) if self.block else ONE
        return tuple(blocks if k == self.quantized else d for k, d in enumerate(self.dims))

    def result(self, index: Dims) -> Dims:
        return (*self.dims[: self.gathered], *index, *self.dims[self.gathered + 1 :])


def _gather_infer(ctx: InferContext) -> list[TensorInfo]:
    data, index = input_dims(ctx, 0), input_dims(ctx, 1)
    element = element_type(ctx, 2)
    if data is None or index is None or not data:
        return infos(element, None)
    return infos(element, Table.of(ctx.op, data, element_type(ctx)).result(index))


def _gather_reason(op: OnnxOp) -> str | None:
    element, data, scales = element_of(op.operands[0].type), operand_dims(op, 0), operand_dims(op, 2)
    small = isinstance(element, SMALL_FLOATS)
    if element != ui8 and not small:
        return f"tables with elements of type {element} are not supported yet"
    try:
        table = Table.of(op, data, element)
    except ValueError as error:
        return str(error)
    if table.bits not in (2, 4, 8) or (table.parts > 1 and len(data) - 1 == table.gathered):
        return f"{table.bits}-bit elements along the gathered axis are not supported"
    if not table.block and not small:
        return "it has no block size"
    wanted = table.scale_dims()
    if len(scales) != len(wanted) or any(
        s != w and not (small and s == ONE) for s, w in zip(scales, wanted, strict=True)
    ):
        return "it is not known to have one scale for each block"
    if operand(op, 3) is not None:
        packed = (*wanted[:-1], wanted[-1].ceildiv(table.parts))
        if small or element_of(op.operands[3].type) != element or operand_dims(op, 3) != packed:
            return "its zero points do not have the shape of its scales"
    return None


def _gather(ctx: Lowering) -> list[SSAValue]:
    data, index, scales, zeros = (*(ctx.required(k) for k in range(3)), ctx.input(3))
    element, table = ctx.element(0), Table.of(ctx.op, ctx.dims(0), ctx.element(0))
    before, rank, parts = table.gathered, len(ctx.dims(1)), Expr.of(table.parts)

    def number(nest: Nest, tensor: SSAValue, at: list[Expr], indices: list[Scalar], guards: list[Expr]) -> Scalar:
        """Reads the number at `at`; a byte may contain several."""
        where = [*at[:-1], floordiv(at[-1], parts)]
        byte = nest.read(tensor, where, guards=guards, indices=indices)
        if table.bits == 8:
            return byte.to(f32)
        place = nest.index(mod(at[-1], parts) * table.bits).to(i32)
        return (byte.to(i32).shift_right(place) & ((1 << table.bits) - 1)).to(f32)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        size, row = table.dims[before], Expr.of("_0")
        picked = from_front(nest, nest.read(index, i[before : before + rank]), size)
        at = [*i[:before], row, *i[before + rank :]]
        # Elements outside the table are 0.
        guards = [row, size - 1 - row]
        value = number(nest, data, at, [picked], guards)
        blocks = list(at)
        blocks[table.quantized] = floordiv(at[table.quantized], Expr.of(table.block)) if table.block else ZERO
        if zeros is not None:
            value = value - number(nest, zeros, blocks, [picked], guards)
        elif element == ui8:
            value = value - 2.0 ** (table.bits - 1)
        own = [ZERO if d == ONE else b for b, d in zip(blocks, dims_of(scales.type), strict=True)]
        indirect = any("_0" in e.symbols for e in own)
        scale = nest.read(scales, own, guards=guards if indirect else [], indices=[picked] if indirect else [])
        inside = (picked >= 0) & (picked < nest.index(size))
        return inside.select(value * scale.to(f32), 0.0).to(ctx.out_element())

    return [ctx.generate(ctx.out_dims(), point)]


def _matmul_macs(op: OnnxOp) -> Expr:
    """elements of the result × K"""
    return product(dims_of(op.results[0].type)) * int(op.attr("K"))


SPECS: list[OpSpec] = [
    OpSpec(
        "com.microsoft.MatMulNBits",
        infer=_matmul_infer,
        lower=lower_product,
        legal=legal(_matmul_reason),
        macs=_matmul_macs,
        flops=twice(_matmul_macs),
        panels=_matmul_panels,
        words=_matmul_words,
        unprofitable=_matmul_slow,
        kind="contraction",
    ),
    OpSpec(
        "com.microsoft.GatherBlockQuantized",
        infer=_gather_infer,
        lower=_gather,
        legal=legal(_gather_reason),
        flops=elementwise_flops(6),
        kind="movement",
    ),
]
