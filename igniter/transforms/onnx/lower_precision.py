"""`lower-precision`: computes matrix products with constant weights in fewer bits, on request (`igniter compile
--precision`).

`to=bf16`: both factors are rounded to bfloat16, products and sums are f32.

    %y = onnx.MatMul(%x, %w)        %b = onnx.Cast(%x) : bf16        %v = a constant of bf16
                                 -> %c = onnx.Cast(%b) : f32         %u = onnx.Cast(%v) : f32
                                    %y = onnx.MatMul(%c, %u)

`to=int8-dynamic`: the weight is quantised to i8 with a scale per column, symmetrically; the other factor to eight bits
with a scale per row, computed at run time. Sums are i32 and exact.

    %m = max |%x| of each row, %s = %m / 127, %q = u8(round(%x * 127 / %m) + 128)
    %y = f32(MatMulInteger(%q, %v) - 128 * sum of %v's columns) * %s * %scale

A product with codes of 4 bits (MatMulNBits, or made of one by `form-block-products`) keeps its weight. Its other factor
may be rounded to eight bits with a scale for each block, as with `accuracy_level=4`.

Where tiles multiply bf16 (AMX), `to=bf16` rewrites convolutions with constant filters in the same way; elsewhere
Winograd's tiles of f32 are faster. So it does with products of two computed tensors that have many rows and columns:
the scores of an attention and the product of its weights with the values. A factor is rounded before the views and
transpositions that lead to it, where its producer stores it.

The result is plain ONNX, so it can be run by ONNX Runtime, inspected and fused like any model. A product with a weight
stays if its depth is no multiple of the instructions' group (2 of bf16, 4 of i8), or if it has few columns. A model
below opset 13 is raised to it if its nodes keep their meaning, and otherwise not changed. A remark gives the number of
products in fewer bits, and the reason if the number is 0. The pass is the last one on the ONNX level: simplification
would remove the pairs of casts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, NoneType, UnitAttr, bf16, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant, make_op
from igniter.dialects.onnx.ops.block_products import EIGHT_BITS
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE, WINOGRAD_ATTRIBUTE
from igniter.dialects.onnx.types import element_of_dtype
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.frontend.opsets import raise_opset
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand, run_rules

Precision = Literal["f32", "bf16", "int8-dynamic"]
PRECISIONS = ("f32", "bf16", "int8-dynamic")

LEAST_OPSET = 13
GROUPS = {"bf16": 2, "int8-dynamic": 4}
"""The depth of a product must be a multiple of the number of products that one instruction adds."""

FEWEST_COLUMNS = 16
"""A product with fewer columns takes little time, and often is the answer itself."""

FEWEST = (12, 16, 16)
"""The fewest rows, steps of depth and columns of a product of two computed tensors on tiles."""

MOVES = frozenset(("Reshape", "Transpose", "Squeeze", "Unsqueeze"))
"""Ops that only move elements."""

BF16, UINT8, FLOAT = 16, 2, 1
"""The numbers of element types in ONNX."""


@dataclass(frozen=True)
class LowerPrecision(ModulePass):
    """Computes products with constant weights in bf16, or in int8 with scales computed at run time."""

    name = "lower-precision"
    one_rewrite = "a rule applied to a node"

    to: str = "f32"
    """f32 (unchanged), bf16 or int8-dynamic."""
    half_tiles: bool = False
    """True if the machine multiplies tiles of bf16 (AMX): convolutions in bf16 are then faster than in f32."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.to not in PRECISIONS:
            raise VerifyException(f"the option 'to' must be one of {', '.join(PRECISIONS)}, not '{self.to}'")
        if self.to == "f32":
            return

        # Older opsets lack casts to bf16 and have other forms of Round and ReduceMax.
        refused = raise_opset(op, LEAST_OPSET)
        rule = to_bf16 if self.to == "bf16" else to_int8
        rules: Rules = {"MatMul": [rule], "Gemm": [rule]}
        if self.to == "int8-dynamic":
            rules["com.microsoft.MatMulNBits"] = [rounded_beside_codes]
        if self.to == "bf16" and self.half_tiles:
            rules["Conv"] = [convolution_to_bf16]
            rules["MatMul"] = [rule, computed_product_to_bf16]
        count = sum(run_rules(op, rules, budget(ctx, self.name)).applied.values()) if refused is None else 0
        if self.to == "bf16" and self.half_tiles:
            share_rounding(op)
        why = ""
        if refused is not None:
            why = f": it needs opset {LEAST_OPSET}, and {refused}"
        elif count == 0:
            why = (
                f": no product is of f32 with a constant matrix of at least {FEWEST_COLUMNS} columns and a depth that "
                f"is a multiple of {GROUPS[self.to]}"
            )
        remark(ctx, self.name, "", "note", f"{count} products in {self.to}{why}", count=count)


@dataclass(frozen=True)
class FloatProduct:
    """A node that multiplies rows by a weight; `transposed`: the columns are the weight's first dim."""

    rows: SSAValue
    weight: Weight
    transposed: bool
    bias: SSAValue | None

    @property
    def depth(self) -> int:
        return self.weight.shape[1 if self.transposed else 0]

    @property
    def columns(self) -> int:
        return self.weight.shape[0 if self.transposed else 1]


def product_of(op: OnnxOp, group: int) -> FloatProduct | None:
    """Returns a MatMul, or a plain Gemm, of f32 with a matrix of weights whose depth is a multiple of `group`; else
    None."""
    weight = constant_weight(operand(op, 1))
    gemm = op.qualified_name == "Gemm"
    if weight is None or len(weight.shape) != 2 or not isinstance(weight.element_type, Float32Type):
        return None
    if gemm and (op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0 or op.attr("transA", 0)):
        return None
    rows = op.operands[0]
    if not known_dims(rows) or constant_weight(rows) is not None:
        return None
    found = FloatProduct(rows, weight, gemm and bool(op.attr("transB", 0)), operand(op, 2) if gemm else None)
    return found if found.depth % group == 0 and found.columns >= FEWEST_COLUMNS and found.depth > 0 else None


# -- bf16 -------------------------------------------------------------------------------------------------------------


def to_bf16(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product to bf16."""
    found = product_of(op, GROUPS["bf16"])
    if found is None:
        return None
    left, right = rounded_rows(found.rows, rw), rounded_weight(op, found.weight, rw)
    attrs = {"transB": 1} if found.transposed else {}
    inputs = [left, right] if found.bias is None else [left, right, found.bias]
    return rw.op(op.op_type, inputs, [op.results[0].type], attrs).results


def convolution_to_bf16(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a convolution with constant filters, of pairs of channels, to bf16."""
    image, weight = op.operands[0], constant_weight(operand(op, 1))
    if weight is None or not isinstance(weight.element_type, Float32Type) or WINOGRAD_ATTRIBUTE in op.attributes:
        return None
    columns, depth = weight.shape[:2]
    if columns // int(op.attr("group", 1)) < FEWEST_COLUMNS or depth % GROUPS["bf16"] or not weight.size:
        return None
    if not known_dims(image) or constant_weight(image) is not None:
        return None
    inputs = [rounded_rows(image, rw), rounded_weight(op, weight, rw), *op.operands[2:]]
    kept = {k: op.attr(k) for k in op.attributes}
    return rw.op(op.qualified_name, inputs, [op.results[0].type], kept).results


def computed_product_to_bf16(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product of two computed tensors to bf16 if tiles repay the packing of the right factor: many rows and
    columns. A number of rows that is a symbol must be the number of columns or the depth, too: an attention without a
    past. With a past it may be one row, and all keys would be packed again for each."""
    factors = list(op.operands)
    dims = [dims_of(v.type) for v in factors]
    if any(
        len(d) < 2 or not known_dims(v) or constant_weight(v) is not None for d, v in zip(dims, factors, strict=True)
    ):
        return None
    if any(not isinstance(element_of(v.type), Float32Type) or _is_widened(v) for v in factors):
        return None
    rows, depth, columns = dims[0][-2], dims[0][-1], dims[1][-1]
    if rows.constant is None and rows not in (depth, columns):
        return None
    if any(
        n.constant is not None and n.constant < least for n, least in zip((rows, depth, columns), FEWEST, strict=True)
    ):
        return None
    inputs = [_rounded_behind_views(v, rw) for v in factors]
    return rw.op(op.op_type, inputs, [op.results[0].type]).results


def _is_widened(value: SSAValue) -> bool:
    """True if a value is a widened bf16."""
    source = _root(value)[0]
    owner = source.owner
    return isinstance(owner, OnnxOp) and owner.op_type == "Cast" and element_of(owner.operands[0].type) == bf16


def _root(value: SSAValue) -> tuple[SSAValue, list[OnnxOp]]:
    """Returns the value behind the views and transpositions that nothing else reads, and these, outermost first."""
    path: list[OnnxOp] = []
    while isinstance(owner := value.owner, OnnxOp) and owner.qualified_name in MOVES and len(list(value.uses)) == 1:
        path.append(owner)
        value = owner.operands[0]
    return value, path


def _rounded_behind_views(value: SSAValue, rw: Rewriter) -> SSAValue:
    """Returns a computed factor rounded to bf16, as f32. The rounding comes before the views that lead to it."""
    source, path = _root(value)
    found = rounded_rows(source, rw)
    for op in reversed(path):
        kept = {k: op.attr(k) for k in op.attributes}
        found = rw.op(op.op_type, [found, *op.operands[1:]], [op.results[0].type], kept).results[0]
    return found


def rounded_rows(value: SSAValue, rw: Rewriter) -> SSAValue:
    """Returns a computed factor rounded to bf16, as f32; all products with it share the rounding."""
    narrow = rw.memo.get(value)
    if narrow is None or not rw.is_alive(narrow):
        narrow = rw.op("Cast", [value], [tensor_of(bf16, dims_of(value.type))], {"to": BF16}).results[0]
        rw.memo[value] = narrow
    return rw.op("Cast", [narrow], [value.type], {"to": FLOAT}).results[0]


def rounded_weight(op: OnnxOp, weight: Weight, rw: Rewriter) -> SSAValue:
    """Returns the weight of a product rounded to bf16, as f32; all products with it share the constant."""
    plain = op.operands[1]
    rounded = rw.memo.get(plain)
    if rounded is None or not rw.is_alive(rounded):
        constant = make_constant(Weight(weight.shape, bf16, derivation=Rounded(weight)), f"{weight_name(op)}.bf16")
        rw.insert(constant)
        rounded = rw.memo[plain] = constant.results[0]
    return rw.op("Cast", [rounded], [tensor_of(f32, weight.shape)], {"to": FLOAT}).results[0]


def share_rounding(module: ModuleOp) -> None:
    """Makes the other readers of an image that a convolution rounds read the rounded one, so that memory holds its 16
    bits alone: a residual, for example. Results of the model stay as they are."""
    for cast in [n for n in module.walk() if isinstance(n, OnnxOp) and n.op_type == "Cast" and _rounds_image(n)]:
        image = cast.operands[0]
        producer = image.owner
        if not isinstance(producer, OnnxOp) or producer.parent is not cast.parent:
            continue
        others = [use for use in image.uses if isinstance(use.operation, OnnxOp) and use.operation is not cast]
        if not others:
            continue
        block = cast.parent
        assert block is not None
        cast.detach()
        block.insert_op_after(cast, producer)
        for use in others:
            wide = make_op("Cast", [cast.results[0]], [image.type], {"to": FLOAT})
            block_of_use = use.operation.parent
            assert block_of_use is not None
            block_of_use.insert_op_before(wide, use.operation)
            use.operation.operands[use.index] = wide.results[0]


def _rounds_image(cast: OnnxOp) -> bool:
    """True if a Cast rounds the image of a convolution to bf16."""
    if element_of(cast.results[0].type) != bf16 or not isinstance(element_of(cast.operands[0].type), Float32Type):
        return False
    wide = [use.operation for use in cast.results[0].uses]
    users = [use.operation for each in wide for result in each.results for use in result.uses]
    return any(isinstance(user, OnnxOp) and user.op_type == "Conv" for user in users)


@dataclass(frozen=True)
class Rounded:
    """The values of a weight rounded to bf16, to nearest, ties to even."""

    source: Weight

    def compute(self) -> np.ndarray[Any, Any]:
        return self.source.array().astype(ml_dtypes.bfloat16)


# -- int8 -------------------------------------------------------------------------------------------------------------


def to_int8(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product to int8."""
    found = product_of(op, GROUPS["int8-dynamic"])
    if found is None:
        return None
    rows, scale = quantized_rows(found.rows, op.opset, rw)
    weight, factor, offset = quantized_columns(found, op, rw)
    dims = dims_of(op.results[0].type)
    sums = rw.op("MatMulInteger", [rows, weight], [tensor_of(i32, dims)]).results[0]
    exact = rw.op("Sub", [sums, offset], [tensor_of(i32, dims)]).results[0]
    result = tensor_of(f32, dims)
    wide = rw.op("Cast", [exact], [result], {"to": FLOAT}).results[0]
    scaled = rw.op("Mul", [wide, scale], [result]).results[0]
    product = rw.op("Mul", [scaled, factor], [op.results[0].type])
    if found.bias is None:
        return product.results
    return rw.op("Add", [product.results[0], found.bias], [op.results[0].type]).results


def rounded_beside_codes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Allows a product with codes of 4 bits to round its other factor to eight bits."""
    zeros = operand(op, 3)
    plain = zeros is None or element_of(zeros.type) == ui8
    if int(op.attr("bits", 4) or 4) != 4 or element_of(op.operands[0].type) != f32 or not plain:
        return None
    if int(op.attr("accuracy_level", 0) or 0) == EIGHT_BITS or op.attr("weight_prepacked", 0):
        return None
    attrs = {name: int(op.attr(name)) for name in ("K", "N", "block_size")}
    attrs |= {"bits": 4, "accuracy_level": EIGHT_BITS}
    given = [None if isinstance(v.type, NoneType) else v for v in op.operands]
    made = rw.op("com.microsoft.MatMulNBits", given, [op.results[0].type], attrs)
    if MANY_ROWS_ATTRIBUTE in op.attributes:
        made.attributes[MANY_ROWS_ATTRIBUTE] = UnitAttr()
    return made.results


def quantized_rows(x: SSAValue, opset: int, rw: Rewriter) -> tuple[SSAValue, SSAValue]:
    """Returns each row of `x` as u8 around 128, and the scales."""
    dims = dims_of(x.type)
    kept = rw.memo.get(x)
    if kept is not None and rw.is_alive(kept):
        scale = rw.memo.get(kept)
        if scale is not None and rw.is_alive(scale):
            return kept, scale
    one = tensor_of(f32, [*dims[:-1], 1])

    def node(name: str, inputs: list[SSAValue], kind: Attribute, attrs: dict[str, Any] | None = None) -> SSAValue:
        return rw.op(name, inputs, [kind], attrs).results[0]

    def number(value: float) -> SSAValue:
        return rw.constant(np.array(value, np.float32))

    size = node("Abs", [x], x.type)
    if opset >= 18:
        largest = node("ReduceMax", [size, rw.constant(np.array([-1], np.int64))], one, {"keepdims": 1})
    else:
        largest = node("ReduceMax", [size], one, {"axes": [-1], "keepdims": 1})
    # A row of zeros has no scale; any will do.
    positive = node("Max", [largest, number(1e-30)], one)
    scale = node("Mul", [positive, number(1 / 127)], one)
    steps = node("Mul", [x, node("Div", [number(127.0), positive], one)], x.type)
    shifted = node("Add", [node("Round", [steps], x.type), number(128.0)], x.type)
    rows = node("Cast", [shifted], tensor_of(element_of_dtype(np.dtype(np.uint8)).attr, dims), {"to": UINT8})
    rw.memo[x], rw.memo[rows] = rows, scale
    return rows, scale


def quantized_columns(product: FloatProduct, op: OnnxOp, rw: Rewriter) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns the constants of a weight: its columns, their scales and their sums; shared by all products with it."""
    plain = op.operands[1]
    found = [rw.memo.get(plain)]
    while found[-1] is not None and len(found) < 3:
        found.append(rw.memo.get(found[-1]))
    if not product.transposed and all(v is not None and rw.is_alive(v) for v in found) and len(found) == 3:
        weight, scale, offset = found
        assert weight is not None and scale is not None and offset is not None
        return weight, scale, offset
    name = weight_name(op) + (".t" if product.transposed else "")
    parts = zip(quantized_weight(product), ("i8", "scale", "sum"), strict=True)
    constants = [make_constant(value, f"{name}.{part}") for value, part in parts]
    for constant in constants:
        rw.insert(constant)
    weight, scale, offset = (c.results[0] for c in constants)
    if not product.transposed:
        rw.memo[plain], rw.memo[weight], rw.memo[scale] = weight, scale, offset
    return weight, scale, offset


def quantized_weight(
    product: FloatProduct,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the weight as i8 [depth, columns], the scale of each column, and 128 times each column's sum."""
    plain = product.weight.array()
    matrix = np.ascontiguousarray(plain.T) if product.transposed else plain
    largest = np.max(np.abs(matrix), axis=0, initial=0.0)
    scale = np.where(largest > 0, largest / 127.0, 1.0).astype(np.float32)
    steps = np.rint(matrix / scale)
    narrow = np.clip(steps, -127, 127).astype(np.int8)
    return narrow, scale, (narrow.sum(axis=0, dtype=np.int32) * np.int32(128)).astype(np.int32)


def weight_name(op: OnnxOp) -> str:
    """Returns the name of a product's weight, or of its result: the prefix for new weights."""
    constant = op.operands[1].owner
    named = constant.properties.get("initializer_name") if isinstance(constant, OnnxOp) else None
    outputs = [n for n in op.output_names if n]
    return text_of(named) or (outputs[0] if outputs else op.op_type)


__all__ = ["PRECISIONS", "LowerPrecision", "Precision"]
