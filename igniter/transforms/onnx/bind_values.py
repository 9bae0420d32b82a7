"""`bind-values`: rewrites nodes whose axes, shapes or sizes are known only at run time into a form that kernels
compute.

    %y = onnx.Tile(%x, %repeats)          %t = onnx.Concat(%zero, %repeats)
                                          %c = onnx.ConstantOfShape(%t) {igniter.carrier = "..."} : tensor<0x?x?xi1>
                                  ->      %r = onnx.Shape(%c) {start = 1}
                                          %y = onnx.custom(%x, %r, %c) <{domain = "igniter.bound", op_type = "Tile"}>

The carrier `%c` has no bytes, but its dims are the repeats (docs/explanation/values.md). They are symbols, which a
kernel reads from the dims of an operand, like all symbols. Nodes before the carrier compute the parameters of an op
from its operands; these nodes are compiled too. A result whose size depends on data is counted first and then filled.

`ops`: `none`, `all` ops with such a form, or only `loops`, whose trip count is the length of their stacked results. The
pass is the last of `cpu-onnx`. A carrier is a node between two kernels, and ONNX Runtime runs most of the other ops in
the time of the carrier alone.

The pass needs `infer-shapes`, and infers again after its changes. It is the last pass on the ONNX level: a parameter
made constant by another pass needs no carrier. The rules are in `igniter.transforms.onnx.binding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.binding import OLDEST_OPSET, rules_of
from igniter.transforms.onnx.infer_shapes import InferShapes
from igniter.transforms.onnx.onnx_rewriting import run_rules

MAX_ROUNDS = 8
"""The largest number of rounds of inference and binding: the rank of one node may depend on another."""


@dataclass(frozen=True)
class BindValues(ModulePass):
    """Binds nodes to parameters that are known only at run time."""

    name = "bind-values"
    one_rewrite = "a rule applied to a node"

    ops: Literal["none", "loops", "all"] = "all"
    """The nodes to bind."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ops == "none" or (self.ops == "loops" and not any(node.name == "onnx.Loop" for node in op.walk())):
            return
        first = next((node for node in op.walk() if isinstance(node, OnnxOp) and not node.domain), None)
        opset = OLDEST_OPSET if first is None else first.opset
        if opset < OLDEST_OPSET:
            message = f"the model is of opset {opset}; bound parameters need opset {OLDEST_OPSET} or newer"
            remark(ctx, self.name, "", "missed", message)
        for _ in range(MAX_ROUNDS):
            applied = run_rules(op, rules_of(opset, self.ops), budget(ctx, self.name)).applied
            for rule, count in sorted(applied.items()):
                remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)
            if not applied:
                return
            InferShapes().apply(ctx, op)
