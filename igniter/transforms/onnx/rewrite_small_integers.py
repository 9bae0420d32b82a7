"""`rewrite-small-integers`: turns integers of 2 and 4 bits into bytes, which kernels support.

Tensors of such integers are packed in memory, several to a byte, and no kernel reads or writes them. Two forms can
avoid them:

    %y = com.microsoft.GatherBlockQuantized(%q, ..)      ->  the same of bytes, each with two integers

    %q = onnx.QuantizeLinear(%x, %s, %z) : ..xi4>        ->  %q = onnx.QuantizeLinear(%x, %s, %z) : ..xi8>
    %y = onnx.DequantizeLinear(%q, %s, %z)                   %c = onnx.Clip(%q, -8, 7)
                                                             %y = onnx.DequantizeLinear(%c, %s, %z)

Numbers that are quantised and only dequantised again may be stored as bytes. `form-block-products` handles products
with weights of few bits. Other computed tensors of few bits are left to ONNX Runtime; constants of them are folded. The
pass runs before `fold-constants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import is_unsigned
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.lowering.scalar import int_bits
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.form_integer_products import is_dequantized
from igniter.transforms.onnx.hoist_zero_points import name_of
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    element,
    known_dims,
    operand,
    run_rules,
)

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RewriteSmallIntegers(ModulePass):
    """Turns integers of few bits into bytes."""

    name = "rewrite-small-integers"
    one_rewrite = "a rule applied to a node"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for rule, count in sorted(run_rules(op, RULES, budget(ctx, self.name)).applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)


def integer_bits(value: SSAValue) -> int:
    """Returns the bits of a tensor's integers; 0 for other elements or more than 8 bits."""
    bits = int_bits(element(value) or f32)
    return bits if bits in (2, 4, 8) else 0


def is_signed(value: SSAValue) -> bool:
    return not is_unsigned(element(value) or f32)


def packed(numbers: Array, bits: int) -> Array:
    """Packs unsigned numbers into bytes along the last dim, from the low bits on; zeros fill the last byte."""
    parts = 8 // bits
    short = -numbers.shape[-1] % parts
    wide = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, short)])
    places = wide.reshape(*wide.shape[:-1], -1, parts).astype(np.uint8) << (np.arange(parts, dtype=np.uint8) * bits)
    return np.bitwise_or.reduce(places, axis=-1).astype(np.uint8)


def unsigned(numbers: Array, bits: int, signed: bool) -> Array:
    """Returns numbers of few bits as unsigned; signed ones are shifted to start at 0."""
    wide = numbers.astype(np.int16)
    return (wide + (1 << (bits - 1)) if signed else wide).astype(np.uint8)


def _kept(rw: Rewriter, op: OnnxOp, weight: Weight, what: str) -> SSAValue:
    """Returns a constant stored as an initializer of the resulting model."""
    made = make_constant(weight, f"{name_of(op)}.{what}")
    rw.insert(made)
    return made.results[0]


# -- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bytes:
    """Integers of few bits as packed bytes."""

    source: Weight
    bits: int
    signed: bool

    def compute(self) -> Array:
        return packed(unsigned(self.source.array(), self.bits, self.signed), self.bits)


def table_of_bytes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a table of integers to bytes."""
    data, zeros = constant_weight(op.operands[0]), operand(op, 3)
    points, scales = constant_weight(zeros), known_dims(op.operands[2])
    bits, signed = integer_bits(op.operands[0]), is_signed(op.operands[0])
    if data is None or bits not in (2, 4) or scales is None or (zeros is not None and points is None):
        return None
    rank, parts = len(data.shape), 8 // bits
    axes = [int(op.attr("gather_axis", 0) or 0) % rank, int(op.attr("quantize_axis", 1)) % rank]
    shape = [d.constant for d in scales]
    # ONNX Runtime supports tables of bytes whose rows are gathered.
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


# -- quantised and dequantised values ---------------------------------------------------------------------------------


def quantised_to_bytes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Stores integers of few bits as bytes."""
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
    """Returns the zero point of a node as bytes; True if it has none, False if it is computed."""
    zero = operand(op, 2)
    if zero is None:
        return True
    known = constant_value(zero)
    return False if known is None else rw.constant(known.astype("int8" if is_signed(zero) else "uint8"))


RULES: Rules = {
    "QuantizeLinear": [quantised_to_bytes],
    "com.microsoft.GatherBlockQuantized": [table_of_bytes],
    "com.microsoft.QuantizeLinear": [quantised_to_bytes],
}
