"""`turn-weights`: stores the weights of products with the depth as the last dim, for tensor cores that want it there.

    %y = onnx.MatMul(%x, %w)               // %w: a constant of 768x3072xf32
becomes
    %t = onnx.Transpose(%turned)           // %turned: a constant of 3072x768xf32
    %y = onnx.MatMul(%x, %t)

The asynchronous products of sm_90 and sm_100 read factors of f32 from shared memory only with the depth last. With any
other order each block is turned in registers first: a product of 4096^3 takes 1.6 ms instead of 0.45 on an H100. So the
pass changes products of f32 for such a GPU if the target asks for tensor cores (`+tf32`, `+tf32x3`). Each product has a
Transpose of its own, which becomes a part of its region and then of its reads. It runs directly before
`form-fusion-regions`: `fold-constants` would undo it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.machine import machine_of
from igniter.analysis.onnx.stored_weights import Transposed
from igniter.dialects.loop.schedule import PRODUCTS
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant, make_op
from igniter.dialects.onnx.weights import Weight
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.product_blocks import figures_of
from igniter.transforms.onnx.fold_constants import erase_dead


@dataclass(frozen=True)
class TurnWeights(ModulePass):
    """Stores the weights of f32 products with the depth last."""

    name = "turn-weights"
    one_rewrite = "a product that reads a turned weight"

    min_elements: int = 4096
    """Smaller weights stay as they are."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        if machine.features not in PRODUCTS or not figures_of(machine.cpu).asynchronous:
            return
        rewrites, made, count = budget(ctx, self.name), dict[SSAValue, SSAValue](), 0
        for node in [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in ("MatMul", "Gemm")]:
            weight = constant_weight(node.operands[1])
            if weight is None or weight.elided or not isinstance(weight.element_type, Float32Type):
                continue
            if len(weight.shape) != 2 or weight.size < self.min_elements or node.attr("transB"):
                continue
            if rewrites.take(node.node_name, "its weight has the depth last"):
                _turn(node, weight, made)
                count += 1
        if count:
            remark(ctx, self.name, "", "applied", f"{count} products read weights with the depth last", count=count)


def _turn(node: OnnxOp, weight: Weight, made: dict[SSAValue, SSAValue]) -> None:
    """Makes a product read the Transpose of the turned weight; `made` maps weights to the constants already made."""
    plain = node.operands[1]
    constant = plain.owner
    assert isinstance(constant, Operation) and constant.parent is not None and node.parent is not None
    if plain not in made:
        name = text_of(constant.properties.get("initializer_name")) or "weight"
        turned = Weight(weight.shape[::-1], weight.element_type, derivation=Transposed(weight, (1, 0)))
        new = make_constant(turned, f"{name}.t")
        constant.parent.insert_op_before(new, constant)
        made[plain] = new.results[0]
    transposed = make_op("Transpose", [made[plain]], [plain.type], {"perm": [1, 0]})
    node.parent.insert_op_before(transposed, node)
    node.operands[1] = transposed.results[0]
    erase_dead([plain])


__all__ = ["TurnWeights"]
