"""`form-integer-products`: turns products of dequantised tensors into products of the integers, scaled afterwards.

    %a = onnx.DequantizeLinear(%q, %sa, %za)          %0 = onnx.MatMulInteger(%q, %w, %za, %zw)
    %b = onnx.DequantizeLinear(%w, %sb, %zw)    ->    %1 = onnx.Cast(%0) : f32
    %y = onnx.MatMul(%a, %b)                          %y = onnx.Mul(%1, %sa * %sb)

Both factors are bytes. The right one is a matrix of weights with one scale, or one per column; the left one has one
scale. A Gemm of that kind may transpose its weight; its bias is added after the product. Convolutions become integer
convolutions in the form of kernels (`integer_products/convolutions.py`). The step of a following QuantizeLinear is
merged into the same factor: with `%sa * %sb / %sy` the result equals ONNX Runtime's to the bit, which rounds the
quotient of the scales once. `integer_products/steps.py` has that rule and others for ops between codes.

With `unsigned` (x86-64, whose instructions multiply u8 by i8), tensors quantised to i8 and only dequantised again are
quantised to u8 instead, plus 128. ONNX Runtime does so as well, but only if it sees both nodes.

If no target multiplies bytes (`byte_products=false`), only products with small weights become integer products. The
others stay between DequantizeLinear and QuantizeLinear: ONNX Runtime makes one op on bytes of each, and an encoder of
them takes 1.0 to 1.1 of its time, against 1.2 to 1.8 with products of words here.

The pass runs before `fold-constants`, which would turn the weights into f32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop.panels import SMALLEST_COLUMNS
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.hoist_zero_points import BYTES, MIDDLE, is_small, name_of
from igniter.transforms.onnx.integer_products import steps
from igniter.transforms.onnx.integer_products.convolutions import form_convolution, settle, settle_fast
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rule,
    defining,
    element,
    known_dims,
    operand,
    run_rules,
)

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

FLOAT = 1


@dataclass(frozen=True)
class FormIntegerProducts(ModulePass):
    """Multiplies the integers of dequantised factors."""

    name = "form-integer-products"
    one_rewrite = "a rule applied to a node"

    unsigned: bool = False
    """Changes i8 to u8 for tensors that are only quantised and dequantised again."""
    byte_products: bool = True
    """True if a target multiplies bytes; otherwise only products with small weights are formed."""
    always: bool = False
    """Forms all integer products, even if no target multiplies bytes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        all_of_them = self.byte_products or self.always
        wanted = form if all_of_them else form_small
        rules: dict[str, list[Rule]] = {"Gemm": [wanted], "MatMul": [wanted], "ConvInteger": [settle_fast]}
        if all_of_them:
            rules |= {"Conv": [form_convolution], "ConvInteger": [settle]}
        rules["QuantizeLinear"] = [*steps.RULES, *([as_unsigned] if self.unsigned else [])]
        for rule, count in sorted(run_rules(op, rules, budget(ctx, self.name)).applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)


@dataclass(frozen=True)
class Turned:
    """A transposed weight."""

    source: Weight

    def compute(self) -> Array:
        return np.ascontiguousarray(self.source.array().T)


@dataclass(frozen=True)
class Weights:
    """A dequantised matrix of weights: its bytes, `transposed` or not, its scales along the columns, its zero point."""

    value: SSAValue
    weight: Weight
    scale: Array
    zero: SSAValue | None
    transposed: bool


def weights_of(value: SSAValue, transposed: bool) -> Weights | None:
    """Returns the right factor of a product if its integers can be multiplied; else None."""
    source = defining(value, "DequantizeLinear")
    weight = constant_weight(source.operands[0]) if source is not None else None
    if source is None or weight is None or len(weight.shape) != 2 or weight.element_type not in (i8, ui8):
        return None
    scale, zero = constant_value(source.operands[1]), operand(source, 2)
    columns = 0 if transposed else 1
    if scale is None or scale.dtype.name != "float32" or source.attr("block_size", 0):
        return None
    if zero is not None and constant_value(zero) is None:
        return None
    if scale.size != 1 and (int(source.attr("axis", 1)) % 2 != columns or scale.ndim != 1):
        return None
    if weight.shape[columns] < SMALLEST_COLUMNS or weight.shape[1 - columns] % BYTES or not weight.shape[1 - columns]:
        return None
    return Weights(source.operands[0], weight, scale.reshape(-1), zero, transposed)


def form(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product of dequantised factors."""
    gemm = op.op_type == "Gemm"
    if gemm and (op.attr("transA", 0) or op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0):
        return None
    rows = defining(op.operands[0], "DequantizeLinear")
    right = weights_of(op.operands[1], bool(gemm and op.attr("transB", 0)))
    dims, result = known_dims(op.operands[0]), known_dims(op.results[0])
    if rows is None or right is None or dims is None or result is None or len(dims) < 2:
        return None
    scale, zero = known_dims(rows.operands[1]), operand(rows, 2)
    lines = known_dims(zero) if zero is not None else ()
    if element(rows.operands[0]) not in (i8, ui8) or element(op.results[0]) != f32 or rows.attr("block_size", 0):
        return None
    if scale is None or lines is None or any(d != ONE for d in (*scale, *lines)):
        return None
    factor = turned(op, right, rw) if right.transposed else right.value
    sums = rw.op("MatMulInteger", [rows.operands[0], factor, zero, right.zero], [tensor_of(i32, result)]).results[0]
    wide = rw.op("Cast", [sums], [tensor_of(f32, result)], {"to": FLOAT}).results[0]
    step = both_scales(rows.operands[1], right, op, rw)
    scaled = rw.op("Mul", [wide, step], [op.results[0].type])
    bias = operand(op, 2) if gemm else None
    return scaled.results if bias is None else rw.op("Add", [scaled.results[0], bias], [op.results[0].type]).results


def form_small(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product of dequantised factors if the right one is small."""
    source = defining(op.operands[1], "DequantizeLinear")
    dims = known_dims(source.operands[0]) if source is not None else None
    return form(op, rw) if dims is not None and is_small(dims) else None


def turned(op: OnnxOp, right: Weights, rw: Rewriter) -> SSAValue:
    """Returns the transposed weight of a Gemm with `transB`."""
    shape = right.weight.shape
    weight = Weight((shape[1], shape[0]), right.weight.element_type, derivation=Turned(right.weight))
    made = make_constant(weight, f"{name_of(op)}.turned")
    rw.insert(made)
    return made.results[0]


def both_scales(rows: SSAValue, right: Weights, op: OnnxOp, rw: Rewriter) -> SSAValue:
    """Returns the scale of the rows times those of the columns, as a constant if possible."""
    one = constant_value(rows)
    scale = right.scale if right.scale.size > 1 else right.scale.reshape(())
    known = np.asarray(scale if one is None else scale * one.reshape(()).astype(np.float32), np.float32)
    made = make_constant(known, f"{name_of(op)}.scale")
    rw.insert(made)
    if one is not None:
        return made.results[0]
    return rw.op("Mul", [rows, made.results[0]], [tensor_of(f32, known.shape or (known_dims(rows) or ()))]).results[0]


def as_unsigned(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Quantises to u8 instead of i8."""
    readers = [use.operation for use in op.results[0].uses]
    if element(op.results[0]) != i8 or not all(is_dequantized(r, op.results[0]) for r in readers):
        return None
    dims, zero = known_dims(op.results[0]), moved_zero(op, rw)
    if dims is None or zero is None:
        return None
    zeros = [moved_zero(r, rw) for r in readers if isinstance(r, OnnxOp)]
    if any(z is None for z in zeros):
        return None
    attrs = {k: op.attr(k) for k in ("axis", "block_size", "saturate") if k in op.attributes}
    made = rw.op(op.qualified_name, [op.operands[0], op.operands[1], zero], [tensor_of(ui8, dims)], attrs)
    for reader, other in zip(readers, zeros, strict=True):
        assert isinstance(reader, OnnxOp) and other is not None
        rw.set_operand(reader, 0, made.results[0])
        rw.set_operand(reader, 2, other)
    return made.results


def is_dequantized(reader: Operation, value: SSAValue) -> bool:
    """True if a reader dequantises a value."""
    return isinstance(reader, OnnxOp) and reader.op_type == "DequantizeLinear" and reader.operands[0] is value


def moved_zero(op: OnnxOp, rw: Rewriter) -> SSAValue | None:
    """Returns the zero point of an op on i8 for the same numbers as u8; None if it is omitted or computed."""
    zero = operand(op, 2)
    known = constant_value(zero) if zero is not None else None
    if known is None or known.dtype != np.int8:
        return None
    return rw.constant(np.asarray(known.astype(np.int16) + MIDDLE).astype(np.uint8))
