"""`narrow-convolutions`: makes convolutions of widened bf16 read the 16 bits.

    %a = onnx.Cast(%x) {to = 1} : (tensor<1x64x56x56xbf16>) -> tensor<1x64x56x56xf32>
    %v = onnx.Cast(%w) {to = 1} : (tensor<64x64x3x3xbf16>) -> tensor<64x64x3x3xf32>
    %y = onnx.Conv(%a, %v)
becomes
    %y = onnx.Conv(%x, %w) {igniter.narrow} : (tensor<1x64x56x56xbf16>, tensor<64x64x3x3xbf16>) -> ..

The sums are those of before: f32, and the products of two bf16 are exact in it. The image is then padded and
transposed in 16 bits, and its micro-kernel is the one of bf16. That is faster where tiles multiply bf16 (AMX), so
elsewhere the pass does nothing. Such a node is not of ONNX: `inline-regions` and `inline-failed-regions` put the casts
back.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float32Type, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.graph import node_label
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop.panels import SMALLEST_COLUMNS, group_of
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.registry import NARROW_ATTRIBUTE, WINOGRAD_ATTRIBUTE
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.fold_constants import erase_dead

FLOAT = 1
"""The number of f32 in ONNX."""

FACTORS = (0, 1)
"""The operands that are multiplied: the image and the filters."""


@dataclass(frozen=True)
class NarrowConvolutions(ModulePass):
    """Makes convolutions of widened bf16 read the 16 bits, where tiles multiply bf16."""

    name = "narrow-convolutions"
    one_rewrite = "a convolution that reads bf16"

    half_tiles: bool = False
    """True if the machine multiplies tiles of bf16 (AMX)."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.half_tiles:
            return
        rewrites = budget(ctx, self.name)
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            for node in [n for n in region.block.ops if isinstance(n, OnnxOp) and n.qualified_name == "Conv"]:
                narrow = [_narrow(node.operands[k]) for k in FACTORS]
                if None in narrow or not _fills_tiles(node) or not rewrites.take(node_label(node), "it reads bf16"):
                    continue
                for k, value in zip(FACTORS, narrow, strict=True):
                    wide = node.operands[k]
                    assert value is not None
                    node.operands[k] = value
                    erase_dead([wide])
                node.attributes[NARROW_ATTRIBUTE] = UnitAttr()
                remark(ctx, self.name, node_label(node), "applied", "it reads 16 bits of each factor")


def _narrow(value: SSAValue) -> SSAValue | None:
    """Returns the bf16 that a value of f32 was widened from, or None."""
    cast = value.owner
    if (
        not isinstance(cast, Operation)
        or op_name(cast) != "Cast"
        or not isinstance(element_of(value.type), Float32Type)
    ):
        return None
    source = cast.operands[0]
    return source if isinstance(element_of(source.type), BFloat16Type) else None


def _fills_tiles(node: OnnxOp) -> bool:
    """True if a convolution has panels of columns, and pairs of channels."""
    columns, depth = (d.constant for d in dims_of(node.operands[1].type)[:2])
    group = int(node.attr("group", 1))
    if columns is None or depth is None or WINOGRAD_ATTRIBUTE in node.attributes:
        return False
    return columns // group >= SMALLEST_COLUMNS and depth % group_of("bf16") == 0


def widen(node: OnnxOp) -> None:
    """Puts the casts of a convolution that reads bf16 back."""
    if node.attributes.pop(NARROW_ATTRIBUTE, None) is None:
        return
    for k in FACTORS:
        source = node.operands[k]
        cast = make_op("Cast", [source], [tensor_of(Float32Type(), dims_of(source.type))], {"to": FLOAT})
        assert node.parent is not None
        node.parent.insert_op_before(cast, node)
        node.operands[k] = cast.results[0]


__all__ = ["NarrowConvolutions", "widen"]
