"""`order-weights`: stores the weights of convolutions in the order in which the products of a GPU read them.

    %y = fusion.region @r0 (%a = %x : .., %b = %w : tensor<64x32x3x3xf32>) -> (..) {
      %0 = onnx.Conv(%a, %b) : ..
becomes
    %p = fusion.pack %w [2, 3, 1, 0] : tensor<64x32x3x3xf32> to tensor<3x3x32x64xf32>
    %y = fusion.region @r0 (%a = %x : .., %b = %p : tensor<3x3x32x64xf32>) -> (..) {
      %1 = fusion.unpack %b [2, 3, 1, 0] : tensor<3x3x32x64xf32> to tensor<64x32x3x3xf32>
      %0 = onnx.Conv(%a, %1) : ..

An image with its channels last has the channels of a place of the window side by side, so the depth of the product is
the window with its channels. It comes first in memory: the output channels are contiguous. It comes last for f32 where
tensor cores want that (`turn-weights`), in the order `[0, 2, 3, 1]`. Groups have it first. `fold-packs` computes the
stored weights when the model is written. The pass runs after `choose-layouts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import BlockArgument
from xdsl.passes import ModulePass

from igniter.analysis.fusion.graph import node_label
from igniter.analysis.machine import machine_of
from igniter.dialects.fusion import RegionOp
from igniter.dialects.layouts import Layout, Part
from igniter.dialects.loop.schedule import PRODUCTS
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.sym import dims_of, element_of
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.product_blocks import figures_of
from igniter.transforms.fusion.pack_weights import read_packed

ORDERED = frozenset(("Conv", "com.microsoft.FusedConv"))
"""The ops whose weights are stored in another order."""


@dataclass(frozen=True)
class OrderWeights(ModulePass):
    """Stores the constant weights of convolutions with the window and the channels side by side."""

    name = "order-weights"
    one_rewrite = "a weight in another order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        turns = machine.features in PRODUCTS and figures_of(machine.cpu).asynchronous
        rewrites, count = budget(ctx, self.name), 0
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            for node in [n for n in region.block.ops if isinstance(n, OnnxOp) and n.qualified_name in ORDERED]:
                layout = _order(region, node, turns=turns)
                if layout is not None and rewrites.take(node_label(node), "its weight is stored in another order"):
                    read_packed(region, node, 1, layout)
                    count += 1
        if count:
            remark(ctx, self.name, "", "applied", f"{count} convolutions read weights in the order of products")


def _order(region: RegionOp, node: OnnxOp, *, turns: bool) -> Layout | None:
    """Returns the order of a convolution's weight; `None` if it is no constant, or has it already. `turns`: f32 has the
    depth last."""
    weight = node.operands[1]
    if not isinstance(weight, BlockArgument) or constant_weight(region.inputs[weight.index]) is None:
        return None
    window = range(2, len(dims_of(weight.type)))
    last = turns and isinstance(element_of(weight.type), Float32Type) and int(node.attr("group", 1)) == 1
    order = (0, *window, 1) if last else (*window, 1, 0)
    sizes = [dims_of(weight.type)[k] for k in order if dims_of(weight.type)[k].constant != 1]
    if sizes == [d for d in dims_of(weight.type) if d.constant != 1] and len(set(sizes)) == len(sizes):
        return None
    return Layout(tuple(map(Part, order)))
