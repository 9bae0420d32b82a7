"""`form-block-products`: makes a product with dequantised weights read the codes.

    %d = onnx.DequantizeLinear(%codes, %scales) {axis = 1}    // codes: a constant of 768x2048xi8
    %y = onnx.MatMul(%x, %d)
becomes
    %y = onnx.com.microsoft.MatMulNBits(%x, %blocks, %scales) {K = 768, N = 2048, bits = 8, block_size = 128}

The time of a product of few rows is the time to read its weights, and codes are a quarter or an eighth of the floats
that `fold-constants` would make. A product of many rows dequantises a group of panels at a time, which costs little
compared to the rows; and the compiled model has the size of the codes. So the pass runs before `fold-constants`. The
numbers are the same: unsigned codes are signed ones plus 128, 8 or 2, and a scale per column is repeated for its
blocks.

The pass takes codes of two, four and eight bits, with a scale per tensor, per column, or per block whose size is a
power of two from 16 on or a multiple of 16, and products of f32. If the other factor is dequantised too, the product
stays: it is an integer product (`expand-quantized`, or ONNX Runtime). The pass marks products with many rows
(`igniter.many_rows`), including those of the model itself. For symbolic dims, the number of rows comes from given sizes
(`igniter compile --sizes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from igniter.analysis.onnx.weight_codes import blocked, packed
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, sizes_of
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.ops.block_products import MOST_ROWS
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE, PLAIN_ATTRIBUTE
from igniter.dialects.onnx.types import BY_NAME
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.expr import Expr, product
from igniter.frontend.opsets import import_domains
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
    run_rules,
)

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

BLOCKS = (128, 64, 32, 16)
"""The block sizes for other scales; the first that divides is used."""
NARROWEST_BLOCK = BLOCKS[-1]
CODES = {"int8": (8, 128), "uint8": (8, 0), "int4": (4, 8), "uint4": (4, 0), "int2": (2, 2), "uint2": (2, 0)}
"""The bits of codes, and the offset of unsigned codes from signed ones."""


@dataclass(frozen=True)
class FormBlockProducts(ModulePass):
    """Makes products read the codes of their weights."""

    name = "form-block-products"
    one_rewrite = "a rule applied to a node"

    rows: int = 1 << 30
    """The largest number of rows."""
    plain: bool = False
    """For GPUs: marks every product as one nest, whose programs unpack the codes, and takes products of f16 and bf16
    too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sources = ("DequantizeLinear", "MatMulNBits")
        if not any(isinstance(o, OnnxOp) and o.op_type in sources for o in op.walk()):
            return

        sizes = TypicalSizes(tuple(sizes_of(ctx, op).items()))

        def read_codes(node: OnnxOp, rw: Rewriter) -> Replacement | None:
            return form(node, rw, sizes, self.rows, self.plain)

        rules: Rules = {"MatMul": [read_codes], "Gemm": [read_codes]}
        if not self.plain:
            _mark(op, sizes)
        count = sum(run_rules(op, rules, budget(ctx, self.name)).applied.values())
        if self.plain:
            _mark_plain(op)
        if count:
            import_domains(op)
            remark(ctx, self.name, "", "applied", f"{count} products read quantised weights directly", count=count)


def form(op: OnnxOp, rw: Rewriter, sizes: TypicalSizes, most: int, plain: bool = False) -> Replacement | None:
    """Returns the product with codes; `None` for other products, or for too many rows."""
    turned = defining(operand(op, 1), "Transpose")
    source = defining(operand(op, 1) if turned is None else turned.operands[0], "DequantizeLinear")
    dims = known_dims(op.operands[0])
    kinds = (Float32Type, Float16Type, BFloat16Type) if plain else (Float32Type,)
    if source is None or dims is None or len(dims) < 2 or not isinstance(element(op.operands[0]), kinds):
        return None
    if defining(op.operands[0], "DequantizeLinear") is not None:
        return None
    gemm = op.qualified_name == "Gemm"
    if gemm and (op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0 or op.attr("transA", 0)):
        return None
    rows = sizes.value(product(dims[:-1]), MEMORY)
    if rows > most:
        return None
    found = coded(source, (gemm and bool(op.attr("transB", 0))) != (turned is not None))
    if found is None:
        return None
    return _product(op, rw, found, rows > MOST_ROWS and not plain)


def _mark(module: ModuleOp, sizes: TypicalSizes) -> None:
    """Marks the model's own products with codes that have many rows."""
    for op in module.walk():
        if isinstance(op, OnnxOp) and op.qualified_name == "com.microsoft.MatMulNBits":
            dims = known_dims(op.operands[0])
            if dims and sizes.value(product(dims[:-1]), MEMORY) > MOST_ROWS:
                op.attributes[MANY_ROWS_ATTRIBUTE] = UnitAttr()


def _mark_plain(module: ModuleOp) -> None:
    """Marks all products with codes, the model's own too, as one nest each."""
    for op in module.walk():
        if isinstance(op, OnnxOp) and op.qualified_name == "com.microsoft.MatMulNBits":
            op.attributes[PLAIN_ATTRIBUTE] = UnitAttr()


@dataclass(frozen=True)
class Coded:
    """The dequantised weights of a product; scales and zero points are [columns, blocks]."""

    codes: Weight
    swapped: bool
    """True if the codes are [depth, columns]."""
    block: int
    scales: Array
    zeros: Array
    name: str

    @property
    def columns(self) -> int:
        return self.codes.shape[1 if self.swapped else 0]

    @property
    def depth(self) -> int:
        return self.codes.shape[0 if self.swapped else 1]


def coded(source: OnnxOp, transposed: bool) -> Coded | None:
    """Returns the weights of a DequantizeLinear of constants, if blocks can express them."""
    codes, scale = constant_weight(source.operands[0]), constant_value(source.operands[1])
    given = operand(source, 2)
    zero = constant_value(given)
    if codes is None or codes.elided or len(codes.shape) != 2 or codes.element.onnx_name not in CODES:
        return None
    if scale is None or scale.dtype.name not in ("float32", "float16", "bfloat16"):
        return None
    if given is not None and zero is None:
        return None
    swapped = not transposed
    columns, depth = (codes.shape[1], codes.shape[0]) if swapped else codes.shape
    axis, block = int(source.attr("axis", 1)) % 2, int(source.attr("block_size", 0) or 0)
    zero = np.zeros(scale.shape, np.int32) if zero is None else zero.astype(np.int32)
    if block:
        if axis != (0 if swapped else 1) or block < NARROWEST_BLOCK:
            return None
        scale, zero = (p.T if swapped else p for p in (scale, zero))
        if block & (block - 1):
            # Blocks of another size, or of the whole depth: several supported blocks share a scale.
            size = next((b for b in BLOCKS if block % b == 0), None)
            if size is None:
                return None
            scale, zero = (np.repeat(p, block // size, axis=1)[:, : -(-depth // size)] for p in (scale, zero))
            block = size
    else:
        if scale.size != 1 and axis != (1 if swapped else 0):
            return None
        block = next((b for b in BLOCKS if depth % b == 0), 32)
        dims = (columns, -(-depth // block))
        scale, zero = (np.broadcast_to(p.reshape(-1, 1), dims) for p in (scale, zero))
    name = text_of(getattr(source.operands[0].owner, "properties", {}).get("initializer_name")) or "weight"
    return Coded(codes, swapped, block, np.ascontiguousarray(scale), zero, name)


def _product(op: OnnxOp, rw: Rewriter, found: Coded, many: bool) -> Replacement:
    bits, more = CODES[found.codes.element.onnx_name]
    count = -(-found.depth // found.block)
    shape = (found.columns, count, found.block * bits // 8)
    derived = Blocks(found.codes, found.swapped, found.block)
    blocks = make_constant(Weight(shape, BY_NAME["uint8"].attr, derivation=derived), f"{found.name}.blocks")
    scales = make_constant(found.scales, f"{found.name}.scales")
    inputs = [op.operands[0]]
    for constant in (blocks, scales):
        rw.insert(constant)
        inputs.append(constant.results[0])
    zeros = (found.zeros + more).astype(np.uint8)
    given: list[Any] = [*inputs, None]
    if (zeros != 1 << (bits - 1)).any():
        given[3] = rw.constant(packed(zeros, bits))
    attrs = {"K": found.depth, "N": found.columns, "bits": bits, "block_size": found.block}
    bias = operand(op, 2) if op.qualified_name == "Gemm" else None
    if bias is None or known_dims(bias) == (Expr.of(found.columns),):
        given = [*given, None, bias]
        bias = None
    made = rw.op("com.microsoft.MatMulNBits", given, [op.results[0].type], attrs)
    if many:
        made.attributes[MANY_ROWS_ATTRIBUTE] = UnitAttr()
    if bias is None:
        return made.results
    return rw.op("Add", [made.results[0], bias], [op.results[0].type]).results


@dataclass(frozen=True)
class Blocks:
    """Codes in the layout of MatMulNBits: unsigned, [columns, blocks, bytes of a block]."""

    source: Weight
    swapped: bool
    block: int

    def compute(self) -> Array:
        bits, more = CODES[self.source.element.onnx_name]
        codes = self.source.array()
        unsigned = (codes.astype(np.int16) + more).astype(np.uint8) if more else codes.astype(np.uint8)
        rows = np.ascontiguousarray(unsigned.T) if self.swapped else unsigned
        return packed(blocked(rows, 1, self.block, "zero"), bits)


__all__ = ["FormBlockProducts"]
