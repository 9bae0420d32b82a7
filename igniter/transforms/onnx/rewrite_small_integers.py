"""`rewrite-small-integers`: integers of 2 and 4 bits become what kernels have: blocks of weights, or bytes.

Tensors of such integers are packed in memory, several to a byte, and no kernel reads or writes one. Three forms need
not:

    %w = onnx.DequantizeLinear(%q, %s, %z) {axis = 0, block_size = 32}
    %y = onnx.MatMul(%x, %w)                             ->  %y = com.microsoft.MatMulNBits(%x, %p, ..)

A product of a few rows with a large weight in blocks along its depth (integers of 8 bits too) takes the weight as it is
stored. As f32 it would be too large for `fold-constants`, and be dequantised in every run.

    %y = com.microsoft.GatherBlockQuantized(%q, ..)      ->  the same of bytes, each with two integers

    %q = onnx.QuantizeLinear(%x, %s, %z) : ..xi4>        ->  %q = onnx.QuantizeLinear(%x, %s, %z) : ..xi8>
    %y = onnx.DequantizeLinear(%q, %s, %z)                   %c = onnx.Clip(%q, -8, 7)
                                                             %y = onnx.DequantizeLinear(%c, %s, %z)

What is quantised and only dequantised again may lie in bytes. Other computed tensors of few bits stay with ONNX
Runtime; constants of them are folded. It stands before `fold-constants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import is_unsigned
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.lowering.scalar import int_bits
from igniter.dialects.onnx.ops.block_quantized import MOST_ROWS, PANEL
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import product
from igniter.remarks import remark
from igniter.rewrites import budget
from igniter.transforms.onnx.form_integer_products import is_dequantized
from igniter.transforms.onnx.hoist_zero_points import name_of
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    element,
    known_dims,
    operand,
    run_rules,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SMALLEST_WEIGHT = 1 << 23
"""Elements of a weight that is kept in blocks. Smaller ones are folded: as f32 they take 0.5 to 0.8 of the time that
blocks take while a cache holds them. Larger ones `fold-constants` leaves, and to dequantise them in a run takes 6 to 30
times as long as to multiply blocks."""

SMALLEST_BLOCK = 16


@dataclass(frozen=True)
class RewriteSmallIntegers(ModulePass):
    """Makes blocks of weights, or bytes, of integers of few bits."""

    name = "rewrite-small-integers"
    one_rewrite = "a rule applied to a node"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for rule, count in sorted(run_rules(op, RULES, budget(ctx, self.name)).applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)


def integer_bits(value: SSAValue) -> int:
    """The bits of the integers that a tensor has; 0 where it has others, or more than 8."""
    bits = int_bits(element(value) or f32)
    return bits if bits in (2, 4, 8) else 0


def is_signed(value: SSAValue) -> bool:
    return not is_unsigned(element(value) or f32)


def packed(numbers: Array, bits: int) -> Array:
    """Unsigned numbers in bytes along the last dim, from the low bits on; zeros fill the last byte."""
    import numpy as np

    parts = 8 // bits
    short = -numbers.shape[-1] % parts
    wide = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, short)])
    places = wide.reshape(*wide.shape[:-1], -1, parts).astype(np.uint8) << (np.arange(parts, dtype=np.uint8) * bits)
    return np.bitwise_or.reduce(places, axis=-1).astype(np.uint8)


def unsigned(numbers: Array, bits: int, signed: bool) -> Array:
    """Numbers of few bits, those with a sign moved to begin at 0."""
    import numpy as np

    wide = numbers.astype(np.int16)
    return (wide + (1 << (bits - 1)) if signed else wide).astype(np.uint8)


# -- products with weights in blocks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blobs:
    """A matrix of weights as MatMulNBits has it: for each column, bytes of each block of its depth."""

    source: Weight
    bits: int
    block: int
    signed: bool

    def compute(self) -> Array:
        import numpy as np

        numbers = unsigned(self.source.array(), self.bits, self.signed).T
        blocks = -(-numbers.shape[1] // self.block)
        wide = np.pad(numbers, ((0, 0), (0, blocks * self.block - numbers.shape[1])))
        return packed(wide.reshape(numbers.shape[0], blocks, self.block), self.bits)


def block_product(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """product with a weight in blocks"""
    import numpy as np

    source = defining(op.operands[1], "DequantizeLinear")
    weight = constant_weight(source.operands[0]) if source is not None else None
    dims = known_dims(op.operands[0])
    if source is None or weight is None or dims is None or len(weight.shape) != 2 or element(op.operands[0]) != f32:
        return None
    (depth, columns), bits, block = weight.shape, integer_bits(source.operands[0]), int(source.attr("block_size") or 0)
    rows = product(dims[:-1]).constant
    if rows is None or rows > MOST_ROWS or not bits or weight.size < SMALLEST_WEIGHT or columns % PANEL:
        return None
    scale, given = constant_value(source.operands[1]), operand(source, 2)
    zero = constant_value(given) if given is not None else None
    whole = block >= SMALLEST_BLOCK and block & (block - 1) == 0 and int(source.attr("axis", 1)) % 2 == 0
    if scale is None or scale.dtype != np.float32 or not whole or (given is not None and zero is None):
        return None
    signed, blocks = is_signed(source.operands[0]), -(-depth // block)
    blobs = Weight((columns, blocks, block * bits // 8), ui8, derivation=Blobs(weight, bits, block, signed))
    inputs = [op.operands[0], _kept(rw, op, blobs, "blocks"), _kept(rw, op, Weight.of(scale.T.copy()), "scales")]
    if zero is not None or not signed:
        points = np.zeros((blocks, columns), np.int16) if zero is None else zero
        inputs.append(_kept(rw, op, Weight.of(packed(unsigned(points, bits, signed).T, bits)), "zeros"))
    attrs = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    return rw.op("com.microsoft.MatMulNBits", inputs, [op.results[0].type], attrs).results


def _kept(rw: Rewriter, op: OnnxOp, weight: Weight, what: str) -> SSAValue:
    """A constant that is an initializer of the model that results."""
    made = make_constant(weight, f"{name_of(op)}.{what}")
    rw.insert(made)
    return made.results[0]


# -- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bytes:
    """Integers of few bits as the bytes that hold them."""

    source: Weight
    bits: int
    signed: bool

    def compute(self) -> Array:
        return packed(unsigned(self.source.array(), self.bits, self.signed), self.bits)


def table_of_bytes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """table of integers in bytes"""
    import numpy as np

    data, zeros = constant_weight(op.operands[0]), operand(op, 3)
    points, scales = constant_weight(zeros), known_dims(op.operands[2])
    bits, signed = integer_bits(op.operands[0]), is_signed(op.operands[0])
    if data is None or bits not in (2, 4) or scales is None or (zeros is not None and points is None):
        return None
    rank, parts = len(data.shape), 8 // bits
    axes = [int(op.attr("gather_axis", 0) or 0) % rank, int(op.attr("quantize_axis", 1)) % rank]
    shape = [d.constant for d in scales]
    # ONNX Runtime has tables of bytes whose rows are gathered.
    if axes[0] != 0 or axes[1] == 0 or data.shape[-1] % parts or None in shape:
        return None
    inputs = [_bytes(rw, op, data, bits, signed), op.operands[1], op.operands[2]]
    if points is not None:
        inputs.append(_bytes(rw, op, points, bits, signed))
    elif not signed:
        inputs.append(_kept(rw, op, Weight.of(packed(np.zeros([n or 0 for n in shape], np.uint8), bits)), "zeros"))
    attrs = {n: op.attr(n) for n in ("block_size", "gather_axis", "quantize_axis") if n in op.attributes}
    return rw.op(op.qualified_name, inputs, [op.results[0].type], {**attrs, "bits": bits}).results


def _bytes(rw: Rewriter, op: OnnxOp, weight: Weight, bits: int, signed: bool) -> SSAValue:
    shape = (*weight.shape[:-1], -(-weight.shape[-1] // (8 // bits)))
    return _kept(rw, op, Weight(shape, ui8, derivation=Bytes(weight, bits, signed)), "bytes")


# -- what is quantised and dequantised --------------------------------------------------------------------------------


def quantised_to_bytes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """integers of few bits in bytes"""
    import numpy as np

    result = op.results[0]
    bits, dims = integer_bits(result), known_dims(result)
    readers = [use.operation for use in result.uses]
    if bits not in (2, 4) or dims is None or not readers or not all(is_dequantized(r, result) for r in readers):
        return None
    signed, kind = is_signed(result), i8 if is_signed(result) else ui8
    zeros = [widened(each, rw) for each in (op, *readers) if isinstance(each, OnnxOp)]
    if any(z is False for z in zeros):
        return None
    target = tensor_of(kind, dims)
    attrs = {n: op.attr(n) for n in ("axis", "block_size", "precision") if n in op.attributes}
    attrs["output_dtype"] = BY_ATTR[kind].code
    first, *others = [z if isinstance(z, SSAValue) else None for z in zeros]
    wide = rw.op(op.qualified_name, [*op.operands[:2], first], [target], attrs).results[0]
    least = -(1 << (bits - 1)) if signed else 0
    ends = [rw.constant(np.array(end, np.int8 if signed else np.uint8)) for end in (least, least + (1 << bits) - 1)]
    made = rw.op("Clip", [wide, *ends], [target])
    for reader, zero in zip(readers, others, strict=True):
        rw.set_operand(reader, 0, made.results[0])
        if zero is not None:
            rw.set_operand(reader, 2, zero)
    return made.results


def widened(op: OnnxOp, rw: Rewriter) -> SSAValue | bool:
    """The zero point of a node as bytes; True where it has none, False where it is computed."""
    zero = operand(op, 2)
    if zero is None:
        return True
    known = constant_value(zero)
    return False if known is None else rw.constant(known.astype("int8" if is_signed(zero) else "uint8"))


RULES: Rules = {
    "MatMul": [block_product],
    "QuantizeLinear": [quantised_to_bytes],
    "com.microsoft.GatherBlockQuantized": [table_of_bytes],
    "com.microsoft.QuantizeLinear": [quantised_to_bytes],
}
