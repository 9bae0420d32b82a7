"""`compile-draws`: compiles random nodes with a seed, with Igniter's own generator.

    %y = onnx.RandomNormalLike(%x) {seed = 7.0 : f32}
                                   ->  %y = onnx.RandomNormalLike(%x) {seed = 7.0 : f32, igniter.draws}

The pass is in no pipeline: ONNX Runtime's generator is not accessible, so the compiled model gives other values than
the original, with the same distribution, and the same values in every run (docs/explanation/numerics.md, "Random
numbers"). Nodes in loop bodies, where every iteration draws anew, and nodes in called functions are not changed.

The pass may run anywhere on the ONNX level; the numbers drawn by a marked node are a value of the graph
(`igniter.dialects.onnx.draws`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.draws import DRAWS_ATTRIBUTE, RANDOM_OPS
from igniter.dialects.onnx.structure import GraphOp
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class CompileDraws(ModulePass):
    """Compiles random nodes with a seed."""

    name = "compile-draws"
    one_rewrite = "a random node moved to a kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outer = {node for graph in op.ops if isinstance(graph, GraphOp) for node in graph.body.ops}
        for node in op.walk():
            if not isinstance(node, OnnxOp) or node.domain or node.op_type not in RANDOM_OPS:
                continue
            if node.op_type == "Dropout" and (node.opset < 12 or len(node.inputs) < 3 or node.inputs[2] is None):
                continue
            if node.attributes.get("seed") is None:
                remark(ctx, self.name, node.node_name, "missed", f"{node.op_type} has no seed")
            elif node not in outer:
                remark(ctx, self.name, node.node_name, "missed", f"{node.op_type} is inside another node")
            elif budget(ctx, self.name).take(node.node_name, f"a kernel computes {node.op_type}"):
                node.attributes[DRAWS_ATTRIBUTE] = UnitAttr()
                remark(ctx, self.name, node.node_name, "applied", f"a kernel computes {node.op_type}")
