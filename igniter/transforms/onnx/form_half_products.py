"""`form-half-products`: makes a product read weights stored as 16-bit floats.

    %w = onnx.Constant                     // f32, which `fold-constants` made of %h, a constant of 768x2048xf16
    %y = onnx.MatMul(%x, %w)
becomes
    %d = onnx.Cast(%h) {to = 1}
    %y = onnx.MatMul(%x, %d)

The micro-kernels widen 16-bit floats in registers. So the compiled model has two bytes per weight, and a product of few
rows, whose time is the time to read its weights, takes about half. Each product has its own Cast, which
`form-fusion-regions` puts into its region. The passes before this one see a constant of f32, like any other weight; so
this pass runs directly before `form-fusion-regions`.

The filters of a convolution are treated alike, unless `winograd` chose tiles: these read transformed filters in f32.
f16 takes an instruction (`half_loads`); bf16 takes a shift, available on every target.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float16Type, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.onnx.stored_weights import stored
from igniter.dialects.loop.panels import SMALLEST_COLUMNS
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant, make_op
from igniter.dialects.onnx.registry import WINOGRAD_ATTRIBUTE
from igniter.dialects.onnx.weights import Weight
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.fold_constants import erase_dead

PRODUCTS = frozenset(("MatMul", "Gemm", "com.microsoft.FusedMatMul", "Conv"))
"""Ops with their second operand as a factor: a matrix from the right, or the filters of a convolution."""

FLOAT = 1
"""The number of f32 in ONNX."""


@dataclass(frozen=True)
class FormHalfProducts(ModulePass):
    """Makes products read weights in their stored form of 16-bit floats."""

    name = "form-half-products"
    one_rewrite = "a product that reads 16-bit floats directly"

    half_loads: bool = True
    """True if all targets convert a vector of f16 to f32 in one instruction."""
    min_elements: int = 4096
    """Smaller weights stay f32."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites, count = budget(ctx, self.name), 0
        made: dict[SSAValue, SSAValue] = {}
        for node in [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in PRODUCTS]:
            source = self._source(node)
            if source is not None and rewrites.take(node.node_name, f"it reads {source.element_type}"):
                _read(node, source, made)
                count += 1
        if count:
            remark(ctx, self.name, "", "applied", f"{count} products read 16-bit floats directly", count=count)

    def _source(self, node: OnnxOp) -> Weight | None:
        """Returns the 16-bit floats for the product to read; `None` if its weight is stored in another form."""
        weight = constant_weight(node.operands[1])
        source = stored(weight) if weight is not None else None
        if source is None or WINOGRAD_ATTRIBUTE in node.attributes:
            return None
        if (len(source.shape) != 2 and node.op_type != "Conv") or min(source.shape[:2]) < SMALLEST_COLUMNS:
            return None
        if source.size < self.min_elements:
            return None
        return None if isinstance(source.element_type, Float16Type) and not self.half_loads else source


def _read(node: OnnxOp, source: Weight, made: dict[SSAValue, SSAValue]) -> None:
    """Inserts a Cast of the stored weight before a product; `made` maps f32 weights to the constants already made."""
    plain = node.operands[1]
    constant = plain.owner
    assert isinstance(constant, Operation) and constant.parent is not None and node.parent is not None
    if plain not in made:
        name = text_of(constant.properties.get("initializer_name")) or "weight"
        narrow = make_constant(source, f"{name}.{source.element_type}")
        constant.parent.insert_op_before(narrow, constant)
        made[plain] = narrow.results[0]
    wide = make_op("Cast", [made[plain]], [plain.type], {"to": FLOAT})
    node.parent.insert_op_before(wide, node)
    node.operands[1] = wide.results[0]
    erase_dead([plain])


__all__ = ["FormHalfProducts"]
