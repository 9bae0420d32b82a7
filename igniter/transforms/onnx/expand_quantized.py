"""`expand-quantized`: rewrites ops on quantised tensors to the plain op between DequantizeLinear and QuantizeLinear.

    %y = com.microsoft.QLinearAdd(%a, %sa, %za, %b, %sb, %zb, %sy, %zy)
becomes
    %0 = onnx.DequantizeLinear(%a, %sa, %za)    %1 = onnx.DequantizeLinear(%b, %sb, %zb)
    %2 = onnx.Add(%0, %1)                       %y = onnx.QuantizeLinear(%2, %sy, %zy)

The three become elementwise nests and are fused into one. `form-integer-products` recovers the integer products. ORT
forms QLinear ops again from the nodes left to it, when it loads the model. Results differ only for values near the
midpoint of two quantisation steps: ONNX Runtime rounds the quotient of scales once, while here the scales are applied
in sequence.

QAttention and QEmbedLayerNormalization only get dequantised operands; their results are f32.

MatMulIntegerToFloat and DynamicQuantizeMatMul become the integer product and the ops after it. This is the first pass
on the ONNX level that rewrites ops: it needs no shapes, and makes ops with shapes known to `infer-shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp, constant_value, imported_opset
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.types import element_type
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rule, Rules, known_dims, operand, run_rules

FIRST_OPSET = 10
"""The first opset with DequantizeLinear and QuantizeLinear."""
AXES_OPSET = 13
"""The first opset with scales along an axis, and with Softmax over a single axis."""
REDUCE_OPSET = 18
"""The first opset with the axes of ReduceMean as an operand."""

FLOAT = 1


@dataclass(frozen=True)
class ExpandQuantized(ModulePass):
    """Rewrites ops on quantised tensors to plain ops between DequantizeLinear and QuantizeLinear."""

    name = "expand-quantized"
    one_rewrite = "a rule applied to a node"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for rule, count in sorted(run_rules(op, RULES, budget(ctx, self.name)).applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)


# -- parts ------------------------------------------------------------------------------------------------------------


def some(element: Attribute) -> Attribute:
    """Returns the type of an unranked tensor with this element type."""
    return UnrankedTensorType(element)


def dequantize(rw: Rewriter, x: SSAValue, scale: SSAValue, zero: SSAValue | None, axis: int | None = None) -> SSAValue:
    """Returns `x` dequantised. `axis` is the axis of the scales if there are several."""
    attrs = {} if axis is None else {"axis": axis}
    return rw.op("DequantizeLinear", [x, scale, zero], [some(f32)], attrs).results[0]


def widened(rw: Rewriter, value: SSAValue) -> SSAValue:
    """`value` in f32. Codes times a scale of 16 bits would be rounded to 16 bits."""
    return value if getattr(value.type, "element_type", None) == f32 else plain(rw, "Cast", [value], {"to": FLOAT})


def dequantized(rw: Rewriter, op: OnnxOp, first: int, axis: int | None = None) -> SSAValue:
    """Returns the operand at `first`, dequantised with the scale and the zero point after it."""
    return dequantize(rw, op.operands[first], op.operands[first + 1], operand(op, first + 2), axis)


def quantize(rw: Rewriter, op: OnnxOp, x: SSAValue, first: int) -> Replacement:
    """Returns `x` quantised as the result of `op`, with the scale at operand `first` and the zero point after it."""
    return rw.op("QuantizeLinear", [x, op.operands[first], operand(op, first + 1)], [op.results[0].type]).results


def plain(rw: Rewriter, name: str, inputs: Sequence[SSAValue | None], attrs: dict[str, Any] | None = None) -> SSAValue:
    return rw.op(name, inputs, [some(f32)], attrs).results[0]


def attributes(op: OnnxOp, *left_out: str) -> dict[str, Any]:
    """Returns the attributes of a node without `left_out` and Igniter's own."""
    return {k: op.attr(k) for k in op.attributes if k not in left_out and not k.startswith("igniter.")}


def scale_product(rw: Rewriter, a: SSAValue, b: SSAValue) -> SSAValue:
    """Returns the product of two scales, a constant if both are constants."""
    one, other = constant_value(a), constant_value(b)
    if one is not None and other is not None:
        return rw.constant(_product(one, other))
    return rw.op("Mul", [a, b], [some(f32)]).results[0]


def _product(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(a.reshape(-1) * b if a.size == 1 and b.ndim else a * b, np.float32)


def several(scale: SSAValue) -> bool | None:
    """True if there is a scale for each index of an axis; None if that is unknown."""
    dims = known_dims(scale)
    if dims is None or len(dims) > 1 or any(d.constant is None for d in dims):
        return None
    return any(d != 1 for d in dims)


def columns_of(op: OnnxOp, scale: SSAValue) -> bool | None:
    """Returns `several` for the scale of a weight; None if it is along an axis and the opset does not support that."""
    found = several(scale)
    return None if found and (imported_opset(op, "") or 0) < AXES_OPSET else found


# -- rules ------------------------------------------------------------------------------------------------------------


def binary(name: str) -> Rule:
    def expand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
        return quantize(rw, op, plain(rw, name, [dequantized(rw, op, 0), dequantized(rw, op, 3)]), 6)

    return named(expand, name)


def unary(name: str, *left_out: str, accepts: Callable[[OnnxOp], bool] = lambda op: True) -> Rule:
    def expand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
        if not accepts(op):
            return None
        return quantize(rw, op, plain(rw, name, [dequantized(rw, op, 0)], attributes(op, *left_out)), 3)

    return named(expand, name)


def named(rule: Rule, name: str) -> Rule:
    """Returns the rule with its name for remarks, restricted to opsets with DequantizeLinear."""

    def expand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
        return rule(op, rw) if (imported_opset(op, "") or 0) >= FIRST_OPSET else None

    expand.__name__ = f"quantised {name}"
    return expand


def plain_layout(op: OnnxOp) -> bool:
    return not op.attr("channels_last", 0)


def last_axis_or_new(op: OnnxOp) -> bool:
    """True if a QLinearSoftmax is over a single axis: since opset 13 always, before for the last axis."""
    if (imported_opset(op, "") or 0) < AXES_OPSET:
        return False
    return int(op.attr("opset", 13) or 13) >= AXES_OPSET or int(op.attr("axis", -1)) == -1


def concat(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    parts = [dequantized(rw, op, k) for k in range(2, len(op.operands), 3)]
    return quantize(rw, op, plain(rw, "Concat", parts, attributes(op)), 0)


def where(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    return quantize(rw, op, plain(rw, "Where", [op.operands[0], dequantized(rw, op, 1), dequantized(rw, op, 4)]), 7)


def matmul(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    rows, columns = several(op.operands[1]), columns_of(op, op.operands[4])
    if rows is not False or columns is None:
        return None
    left_scale, right_scale, scale = (widened(rw, op.operands[k]) for k in (1, 4, 6))
    left = dequantize(rw, op.operands[0], left_scale, operand(op, 2))
    right = dequantize(rw, op.operands[3], right_scale, operand(op, 5), -1 if columns else None)
    product = plain(rw, "MatMul", [left, right])
    return rw.op("QuantizeLinear", [product, scale, operand(op, 7)], [op.results[0].type]).results


def gemm(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    columns = columns_of(op, op.operands[4])
    if several(op.operands[1]) is not False or columns is None:
        return None
    axis = (0 if op.attr("transB", 0) else 1) if columns else None
    inputs: list[SSAValue] = [dequantized(rw, op, 0), dequantized(rw, op, 3, axis)]
    bias = operand(op, 6)
    if bias is not None:
        # The bias is quantised with the product of both scales.
        scale = scale_product(rw, op.operands[1], op.operands[4])
        dims = known_dims(bias)
        if columns and dims is None:
            return None
        inputs.append(dequantize(rw, bias, scale, None, len(dims or ()) - 1 if columns else None))
    alpha = float(op.attr("alpha", 1.0) or 1.0)
    attrs = {k: int(op.attr(k, 0) or 0) for k in ("transA", "transB")}
    product = plain(rw, "Gemm", inputs, {"alpha": alpha, "beta": alpha, **attrs})
    return [product] if operand(op, 7) is None else quantize(rw, op, product, 7)


def conv(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    channels = columns_of(op, op.operands[4])
    if several(op.operands[1]) is not False or channels is None or not plain_layout(op):
        return None
    inputs = [dequantized(rw, op, 0), dequantized(rw, op, 3, 0 if channels else None)]
    bias = operand(op, 8)
    if bias is not None:
        scale = scale_product(rw, op.operands[1], op.operands[4])
        inputs.append(dequantize(rw, bias, scale, None, 0 if channels else None))
    return quantize(rw, op, plain(rw, "Conv", inputs, attributes(op, "channels_last")), 6)


def reduce_mean(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    x, axes = dequantized(rw, op, 0), [int(a) for a in op.attr("axes") or ()]
    kept = {"keepdims": int(op.attr("keepdims", 1))}
    if (imported_opset(op, "") or 0) < REDUCE_OPSET:
        return quantize(rw, op, plain(rw, "ReduceMean", [x], {**kept, "axes": axes} if axes else kept), 3)
    return quantize(rw, op, plain(rw, "ReduceMean", [x, _integers(axes, rw) if axes else None], kept), 3)


def _integers(values: Sequence[int], rw: Rewriter) -> SSAValue:
    return rw.constant(np.array(values, np.int64))


def attention(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites QAttention to the attention of dequantised rows and weights."""
    columns = columns_of(op, op.operands[4])
    if several(op.operands[3]) is not False or columns is None or len(op.results) > 2:
        return None
    rows = dequantize(rw, op.operands[0], op.operands[3], operand(op, 6))
    weight = dequantize(rw, op.operands[1], op.operands[4], operand(op, 7), 1 if columns else None)
    inputs = [rows, weight, op.operands[2], operand(op, 5), operand(op, 8)]
    return rw.op("com.microsoft.Attention", inputs, [r.type for r in op.results], attributes(op)).results


def embedding(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites to the embeddings of dequantised tables. Scales and zero points follow the tables, in the same order."""
    tables: list[SSAValue | None] = []
    for k, index in enumerate(range(2, 7)):
        table, scale = operand(op, index), operand(op, index + 6)
        tables.append(None if table is None or scale is None else dequantize(rw, table, scale, operand(op, 13 + k)))
    inputs = [op.operands[0], operand(op, 1), *tables, operand(op, 7)]
    types = [r.type for r in op.results]
    return rw.op("com.microsoft.EmbedLayerNormalization", inputs, types, attributes(op)).results


def to_float(
    rw: Rewriter, op: OnnxOp, factors: list[SSAValue | None], scales: tuple[SSAValue, SSAValue], bias: SSAValue | None
) -> Replacement:
    """Returns the integer product of `factors` times both scales, plus the bias."""
    sums = rw.op("MatMulInteger", factors, [some(i32)]).results[0]
    wide = plain(rw, "Cast", [sums], {"to": FLOAT})
    scaled = rw.op("Mul", [wide, scale_product(rw, *scales)], [op.results[0].type])
    return scaled.results if bias is None else rw.op("Add", [scaled.results[0], bias], [op.results[0].type]).results


def integer_to_float(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Computes the product in f32. Scales and bias of 16 bits are widened, and the result is rounded once, as in ONNX
    Runtime."""
    a, b, *scales = op.operands[:4]
    factors, bias = [a, b, operand(op, 4), operand(op, 5)], operand(op, 6)
    element = getattr(scales[0].type, "element_type", None)
    if element == f32:
        return to_float(rw, op, factors, (scales[0], scales[1]), bias)
    if element is None:
        return None
    sums = plain(rw, "Cast", rw.op("MatMulInteger", factors, [some(i32)]).results, {"to": FLOAT})
    wide = [widened(rw, value) for value in (*scales, bias) if value is not None]
    result = plain(rw, "Mul", [sums, plain(rw, "Mul", wide[:2])])
    if bias is not None:
        result = plain(rw, "Add", [result, wide[2]])
    return rw.op("Cast", [result], [op.results[0].type], {"to": element_type(element).code}).results


def dynamic(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    a, b, b_scale = op.operands[:3]
    rows, scale, zero = rw.op("DynamicQuantizeLinear", [a], [some(ui8), some(f32), some(ui8)]).results
    return to_float(rw, op, [rows, b, zero, operand(op, 3)], (scale, b_scale), operand(op, 4))


RULES: Rules = {
    "QLinearConv": [named(conv, "Conv")],
    "QLinearMatMul": [named(matmul, "MatMul")],
    "com.microsoft.DynamicQuantizeMatMul": [named(dynamic, "MatMul of dynamically quantised rows")],
    "com.microsoft.MatMulIntegerToFloat": [named(integer_to_float, "MatMul to float")],
    "com.microsoft.QAttention": [named(attention, "Attention")],
    "com.microsoft.QEmbedLayerNormalization": [named(embedding, "EmbedLayerNormalization")],
    "com.microsoft.QGemm": [named(gemm, "Gemm")],
    "com.microsoft.QLinearAdd": [binary("Add")],
    "com.microsoft.QLinearAveragePool": [unary("AveragePool", "channels_last", accepts=plain_layout)],
    "com.microsoft.QLinearConcat": [named(concat, "Concat")],
    "com.microsoft.QLinearConv": [named(conv, "Conv")],
    "com.microsoft.QLinearGlobalAveragePool": [unary("GlobalAveragePool", "channels_last", accepts=plain_layout)],
    "com.microsoft.QLinearLeakyRelu": [unary("LeakyRelu")],
    "com.microsoft.QLinearMul": [binary("Mul")],
    "com.microsoft.QLinearReduceMean": [named(reduce_mean, "ReduceMean")],
    "com.microsoft.QLinearSigmoid": [unary("Sigmoid")],
    "com.microsoft.QLinearSoftmax": [unary("Softmax", "opset", accepts=last_axis_or_new)],
    "com.microsoft.QLinearWhere": [named(where, "Where")],
}
