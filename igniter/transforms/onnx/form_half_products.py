"""`form-half-products`: a product with weights that are stored as 16-bit floats reads those.

    %w = onnx.Constant                     // f32, which `fold-constants` made of %h, a constant of 768x2048xf16
    %y = onnx.MatMul(%x, %w)
becomes
    %d = onnx.Cast(%h) {to = 1}
    %y = onnx.MatMul(%x, %d)

The micro-kernels widen 16-bit floats in registers, so the compiled model has two bytes a weight, and a product of few
rows, which takes as long as its weights take to be read, takes about half of that. Each product has a Cast of its own,
which `form-fusion-regions` puts to it. The passes before this one see a constant of f32, as of any other weight; so it
stands in front of `form-fusion-regions`.

So it is with the filters of a convolution, but where `winograd` has chosen tiles: these read filters that have been
transformed, in f32. f16 takes an instruction (`half_loads`); bf16 takes a shift, which every target has.
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
from igniter.rewrites import budget
from igniter.transforms.onnx.fold_constants import erase_dead

PRODUCTS = frozenset(("MatMul", "Gemm", "com.microsoft.FusedMatMul", "Conv"))
"""What multiplies its second operand: a matrix from the right, or the filters of a convolution."""

FLOAT = 1
"""The number of f32 in ONNX."""


@dataclass(frozen=True)
class FormHalfProducts(ModulePass):
    """Has products read weights as the 16-bit floats that they are stored as."""

    name = "form-half-products"
    one_rewrite = "a product that reads what is stored"

    half_loads: bool = True
    """Whether all targets make f32 of a vector of f16 in one instruction."""
    min_elements: int = 4096
    """Smaller weights are f32."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites, count = budget(ctx, self.name), 0
        made: dict[SSAValue, SSAValue] = {}
        for node in [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in PRODUCTS]:
            source = self._source(node)
            if source is not None and rewrites.take(node.node_name, f"it reads {source.element_type}"):
                _read(node, source, made)
                count += 1
        if count:
            remark(ctx, self.name, "", "applied", f"{count} products read floats of 16 bits", count=count)

    def _source(self, node: OnnxOp) -> Weight | None:
        """The 16-bit floats that the product is to read; `None` where its weight is stored in another way."""
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
    """Puts a Cast of what is stored in front of a product; `made` are the constants that are there by those of f32."""
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
