"""`canonicalize-onnx`: rewrites nodes to simpler ones with the same result.

    %a = onnx.Transpose(%x) {perm = [0, 2, 1]}
    %b = onnx.Transpose(%a) {perm = [0, 2, 1]}     ->    onnx.return %x
    %c = onnx.Cast(%b) {to = 1}                          // x: tensor<2x3x4xf32>
    onnx.return %c

Each rule is a small function in `igniter.transforms.onnx.canonicalization`, which checks its own conditions. All are
exact. The pass needs the dims inferred by `infer-shapes`, and erases dead nodes on the way. One worklist tries rules
until none applies, so the run is linear (see `onnx_rewriting`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.canonicalization import all_rules
from igniter.transforms.onnx.onnx_rewriting import run_rules


@dataclass(frozen=True)
class CanonicalizeOnnx(ModulePass):
    """Rewrites nodes to simpler ones with the same result."""

    name = "canonicalize-onnx"
    one_rewrite = "a rule applied to a node"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        applied = run_rules(op, all_rules(), budget(ctx, self.name)).applied
        for rule, count in sorted(applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)
