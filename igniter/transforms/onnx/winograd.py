"""`winograd`: convolutions of 3 x 3 in tiles, with fewer multiplications, on request (`igniter compile --winograd`).

    %y = onnx.Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}
becomes, with `tile=4`
    %y = onnx.Conv(%x, %w, %b) {igniter.winograd = 4 : i64, pads = [1, 1, 1, 1]}
"""
from __future__ import annotations
from dataclasses import dataclass
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import WINOGRAD_ATTRIBUTE


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Computes convolutions of 3 x 3 in tiles of `tile` results along each axis."""

    name = "winograd"
    tile: int = 4
    force: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for node in op.walk():
            if isinstance(node, OnnxOp) and node.qualified_name == "Conv":
                node.attributes[WINOGRAD_ATTRIBUTE] = IntegerAttr(self.tile, i64)
