"""`hoist-zero-points`: moves the zero points out of an integer product, by algebra.

    sum (a - za) * (b - zb)  =  sum a * b  -  za * (sum b - depth * zb)  -  zb * sum a

    %y = onnx.MatMulInteger(%a, %b, %za, %zb)
becomes
    %s = onnx.MatMulInteger(%a, %b)                            // what micro-kernels multiply
    %c = onnx.Mul(%za, %columns)                               // a constant: the sums of b's columns, less depth * zb
    %y = onnx.Sub(%s, %c)

and, if `zb` is not 0, a second term with the sums of a's rows. The micro-kernels multiply u8 by i8. A weight of u8
becomes i8, minus 128, and so does its zero point. A left factor of i8 becomes u8, plus 128, in its QuantizeLinear if it
has one. The subtracted term is one number per column, a constant except for `za`, so it becomes part of the epilogue.
Integers wrap as before: the result is the same to the bit.

If no target multiplies bytes (`byte_products=false`), products of 16-bit words are as fast, and a number minus its zero
point is a word. Both factors become i16, the zero points are merged into the quantisation, and no correction is needed.

    %y = onnx.MatMul(i32(i16(%a - %za)), i32(%w))              // %w a constant of i16: %b - %zb

ONNX Runtime uses `pmaddubsw` there, which adds products of bytes at twice that rate, and saturates. A product between
elementwise ops takes 1.1 to 1.3 times its time, and a whole transformer 0.8 to 1.0 on one thread and more on two, but
with ONNX Runtime's products only 0.7 to 0.8. So by default (`words=small`) only products with small weights are
rewritten, for which ONNX Runtime's overhead per node exceeds the product. The others stay MatMulInteger and are left to
ONNX Runtime.

The pass takes only products with a matrix of weights with a constant zero point, and a depth in whole groups. Other
products keep the zero points inside the sum, and are left to ONNX Runtime if they are large. It is one of the last
passes on the ONNX level: later passes need not know zero points.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.cost import is_constant
from igniter.dialects.loop.panels import SMALLEST_COLUMNS
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE, product
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    element,
    known_dims,
    operand,
    owning_block,
    run_rules,
)

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

UINT8, INT16, INT32 = 2, 5, 6
"""The numbers of element types in ONNX."""

BYTES, WORDS = 4, 2
"""The steps of depth that micro-kernels multiply together."""

MIDDLE = 128
"""The difference between a byte read as unsigned and the same number centred at 0."""


SMALL_WEIGHT = 8192
"""The largest small weight, in elements. Up to this size a network of quantised layers takes 0.5 to 1.0 of ONNX
Runtime's time even without products of bytes."""


@dataclass(frozen=True)
class HoistZeroPoints(ModulePass):
    """Moves zero points out of integer products with weights."""

    name = "hoist-zero-points"
    one_rewrite = "a rule applied to a node"

    byte_products: bool = True
    """True if a target multiplies bytes; otherwise words are multiplied."""
    words: Literal["small", "attention", "all", "none"] = "small"
    """The products to rewrite: those with small weights, also those in graphs with attention, all, or none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules: Rules = {"MatMulInteger": [hoist if self.byte_products else self._subtract]}
        count = sum(run_rules(op, rules, budget(ctx, self.name)).applied.values())
        if count:
            remark(ctx, self.name, "", "applied", f"{count} products without zero points", count=count)

    def _subtract(self, op: OnnxOp, rw: Rewriter) -> Replacement | None:
        """Rewrites to a product of words minus their zero points."""
        small = self.words in ("small", "attention") and has_small_weight(op)
        wanted = small or self.words == "all" or (self.words == "attention" and beside_attention(op))
        return subtract(op, rw) if wanted else None


@dataclass(frozen=True)
class Around:
    """The values of a weight of u8, minus 128, as i8."""

    source: Weight

    def compute(self) -> Array:
        return (self.source.array() ^ MIDDLE).view("int8")


@dataclass(frozen=True)
class RightFactor:
    """A weight as i8, its zero points (one, or one per column), and each column's sum minus depth times its zero
    point."""

    value: SSAValue
    zero: Array
    offset: Array


@dataclass(frozen=True)
class IntegerProduct:
    """An integer product with a matrix of weights: the dims of the left factor and of the result."""

    dims: Dims
    result: Dims
    weight: Weight
    left_zero: SSAValue | None


def product_of(op: OnnxOp, group: int) -> IntegerProduct | None:
    """Returns a product for micro-kernels whose depth is a multiple of `group`; else None."""
    dims, result, weight = known_dims(op.operands[0]), known_dims(op.results[0]), constant_weight(op.operands[1])
    if dims is None or result is None or len(dims) < 2 or weight is None or len(weight.shape) != 2:
        return None
    depth, columns = weight.shape
    if depth % group or columns < SMALLEST_COLUMNS or not depth:
        return None
    given = operand(op, 2)
    lines = known_dims(given) if given is not None else ()
    return None if lines is None or any(d != ONE for d in lines) else IntegerProduct(dims, result, weight, given)


def is_small(dims: Dims) -> bool:
    """True if a weight of these dims has at most `SMALL_WEIGHT` elements."""
    count = product(dims)
    return not count.symbols and count.evaluate({}) <= SMALL_WEIGHT


def has_small_weight(op: OnnxOp) -> bool:
    """True if the right factor of a product is a small constant."""
    dims = known_dims(op.operands[1])
    return dims is not None and is_constant(op.operands[1]) and is_small(dims)


def beside_attention(op: OnnxOp) -> bool:
    """True if the graph of a product contains a Softmax and a product of computed floats, like attention."""
    block = owning_block(op.results[0])
    nodes = [n for n in block.ops if isinstance(n, OnnxOp)] if block is not None else []
    return any(n.op_type == "Softmax" for n in nodes) and any(
        n.op_type in ("MatMul", "FusedMatMul") and not any(is_constant(v) for v in n.operands[:2]) for n in nodes
    )


def subtract(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites to a product of words minus their zero points."""
    found, zero = product_of(op, WORDS), zero_of(op)
    if found is None or zero is None:
        return None
    rows = op.operands[0]
    # Another product may read the same rows with another zero point.
    key = (rows, identity_of(found.left_zero))
    narrow = remembered(key, rw)
    if narrow is None:
        wide = tensor_of(i32, found.dims)
        whole = rw.op("Cast", [rows], [wide], {"to": INT32}).results[0]
        if found.left_zero is not None:
            one = tensor_of(i32, known_dims(found.left_zero) or ())
            less = rw.op("Cast", [found.left_zero], [one], {"to": INT32}).results[0]
            whole = rw.op("Sub", [whole, less], [wide]).results[0]
        narrow = rw.op("Cast", [whole], [tensor_of(i16, found.dims)], {"to": INT16}).results[0]
        rw.memo[key] = narrow
    weight = Weight(found.weight.shape, i16, derivation=Words(found.weight, zero))
    made = make_constant(weight, f"{name_of(op)}.i16")
    rw.insert(made)
    left = rw.op("Cast", [narrow], [tensor_of(i32, found.dims)], {"to": INT32}).results[0]
    right = rw.op("Cast", [made.results[0]], [tensor_of(i32, found.weight.shape)], {"to": INT32}).results[0]
    return rw.op("MatMul", [left, right], [op.results[0].type]).results


@dataclass(frozen=True, eq=False)
class Words:
    """The values of a weight minus its zero points, one or one per column, as i16."""

    source: Weight
    zero: Array

    def compute(self) -> Array:
        return (self.source.array().astype("int16") - self.zero.astype("int16")).astype("int16")


def zero_of(op: OnnxOp) -> Array | None:
    """Returns the zero points of the weight as numbers; None if they are computed, or not one or one per column."""
    given = operand(op, 3)
    zero = np.zeros(1, np.int64) if given is None else constant_value(given)
    weight = constant_weight(op.operands[1])
    if zero is None or weight is None or zero.size not in (1, weight.shape[1]):
        return None
    return zero.astype(np.int64).reshape(-1)


def name_of(op: OnnxOp) -> str:
    """Returns the name of a product: the prefix for its constants."""
    return next((n for n in op.output_names if n), op.op_type)


def hoist(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Moves zero points out of a product."""
    found, kind = product_of(op, BYTES), element(op.operands[0])
    if found is None:
        return None
    dims, result, weight, given = found.dims, found.result, found.weight, found.left_zero
    if all(operand(op, k) is None for k in (2, 3)) and kind == ui8 and weight.element_type == i8:
        return None
    right = right_factor(op, weight, rw)
    if right is None:
        return None
    rows, shift = op.operands[0], 0
    if kind == i8:
        rows, shift = unsigned(rows, dims, rw), MIDDLE
    sums = rw.op("MatMulInteger", [rows, right.value], [op.results[0].type])
    total = without_left_zero(sums.results[0], given, shift, right, result, rw)
    if right.zero.any():
        total = without_right_zero(total, rows, right, (dims, result), op.opset, rw)
    return [total]


def right_factor(op: OnnxOp, weight: Weight, rw: Rewriter) -> RightFactor | None:
    """Returns the constants of a weight; None if its zero point is computed."""
    whole = zero_of(op)
    if whole is None:
        return None
    value, shift = op.operands[1], 0
    if weight.element_type == ui8:
        shift = MIDDLE
        kept = remembered(op.operands[1], rw)
        if kept is not None:
            value = kept
        else:
            made = make_constant(Weight(weight.shape, i8, derivation=Around(weight)), f"{name_of(op)}.i8")
            rw.insert(made)
            value = rw.memo[op.operands[1]] = made.results[0]
    sums = weight.array().sum(axis=0, dtype=np.int64) - shift * weight.shape[0]
    return RightFactor(value, whole - shift, sums - weight.shape[0] * (whole - shift))


def unsigned(rows: SSAValue, dims: Dims, rw: Rewriter) -> SSAValue:
    """Returns a left factor of i8 as u8, plus 128."""
    kept = remembered(rows, rw)
    if kept is not None:
        return kept
    target = tensor_of(ui8, dims)
    quantize = defining(rows, "QuantizeLinear", "com.microsoft.QuantizeLinear")
    zero = operand(quantize, 2) if quantize is not None else None
    number = constant_value(zero) if zero is not None else None
    if quantize is not None and number is not None:
        moved = rw.constant(np.asarray(number.astype(np.int16) + MIDDLE).astype(np.uint8))
        attrs = {k: quantize.attr(k) for k in ("axis", "block_size", "saturate") if k in quantize.attributes}
        inputs = [quantize.operands[0], quantize.operands[1], moved]
        found = rw.op(quantize.qualified_name, inputs, [target], attrs).results[0]
    else:
        wide = tensor_of(i32, dims)
        whole = rw.op("Cast", [rows], [wide], {"to": INT32}).results[0]
        more = rw.op("Add", [whole, rw.constant(np.array(MIDDLE, np.int32))], [wide]).results[0]
        found = rw.op("Cast", [more], [target], {"to": UINT8}).results[0]
    rw.memo[rows] = found
    return found


def without_left_zero(
    sums: SSAValue, given: SSAValue | None, shift: int, right: RightFactor, dims: Dims, rw: Rewriter
) -> SSAValue:
    """Returns `sums` minus za * offset; `given` is za before 128 was added, None for 0."""
    result = tensor_of(i32, dims)
    known = np.zeros(1, np.int64) if given is None else constant_value(given)
    if known is not None:
        total = (known.astype(np.int64).reshape(-1) + shift) * right.offset
        if not total.any():
            return sums
        return rw.op("Sub", [sums, named(wrapped(total), rw)], [result]).results[0]
    assert given is not None
    one = tensor_of(i32, known_dims(given) or ())
    zero = rw.op("Cast", [given], [one], {"to": INT32}).results[0]
    if shift:
        zero = rw.op("Add", [zero, rw.constant(np.array(shift, np.int32))], [one]).results[0]
    total = rw.op("Mul", [zero, named(wrapped(right.offset), rw)], [tensor_of(i32, [right.offset.size])]).results[0]
    return rw.op("Sub", [sums, total], [result]).results[0]


def without_right_zero(
    sums: SSAValue, rows: SSAValue, right: RightFactor, dims: tuple[Dims, Dims], opset: int, rw: Rewriter
) -> SSAValue:
    """Returns `sums` minus zb times the sums of the left factor's rows."""
    of, result = dims
    lines = (*of[:-1], ONE)
    kept = remembered(rows, rw)
    if kept is None:
        whole = rw.op("Cast", [rows], [tensor_of(i32, of)], {"to": INT32}).results[0]
        axes = [rw.constant(np.array([-1], np.int64))] if opset >= 13 else []
        attrs: dict[str, Any] = {"keepdims": 1} if axes else {"keepdims": 1, "axes": [-1]}
        kept = rw.op("ReduceSum", [whole, *axes], [tensor_of(i32, lines)], attrs).results[0]
        rw.memo[rows] = kept
    zero = right.zero if right.zero.size > 1 else right.zero.reshape(())
    width: Attribute = tensor_of(i32, result if zero.ndim else lines)
    part = rw.op("Mul", [kept, rw.constant(wrapped(zero))], [width]).results[0]
    return rw.op("Sub", [sums, part], [tensor_of(i32, result)]).results[0]


def identity_of(zero: SSAValue | None) -> Hashable:
    """Returns a key for zero points: their numbers if they are constant."""
    numbers = constant_value(zero) if zero is not None else None
    return zero if numbers is None else (numbers.shape, numbers.tobytes())


def remembered(key: Hashable, rw: Rewriter) -> SSAValue | None:
    """Returns the result that an earlier product in this block computed for a key, or None."""
    kept = rw.memo.get(key)
    return kept if kept is not None and rw.is_alive(kept) and owning_block(kept) is rw.root.parent else None


def named(values: Array, rw: Rewriter) -> SSAValue:
    """Returns a constant that becomes an initializer of the resulting model."""
    made = make_constant(values, f"{name_of(rw.root)}.columns")
    rw.insert(made)
    return made.results[0]


def wrapped(values: Array) -> Array:
    return np.asarray(values, np.int64).astype(np.int32)
