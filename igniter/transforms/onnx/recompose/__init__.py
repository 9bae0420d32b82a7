"""`recompose`: merges ops decomposed by exporters back into one op.

    %e = onnx.Erf(%x / 1.41421354)
    %y = %x * 0.5 * (%e + 1.0)              ->    %y = onnx.Gelu(%x)

One op rounds less, ONNX Runtime has a kernel for it if a region is not compiled, and later levels see the intent. The
patterns are a table, one file per group, each with its conditions; none allows other users of the values in between,
and none changes a result beyond rounding. Tables of installed packages (entry point group `igniter.patterns`) come
first.

An op that the model's opset lacks comes from com.microsoft, if ONNX Runtime has it there. Otherwise the opset is
raised, if every node keeps its meaning (`raise-opset=false` forbids that); else nothing is merged.

The pass needs dims, and the normal forms of `canonicalize-onnx` and `eliminate-common-nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.rule_guards import guarded_pattern, say_failed_rules
from igniter.dialects.onnx.structure import GraphOp
from igniter.frontend.opsets import import_domains, raise_opset
from igniter.registry import load_external
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import Rewriter, Rule, Rules


def all_patterns() -> Rules:
    """Returns the table of all groups: for the last op of a pattern, the matching functions."""
    from igniter.transforms.onnx.recompose import activations, convolutions, linear, normalizations, softmax

    table: dict[str, list[Rule]] = {}
    outside = [
        {name: tuple(map(guarded_pattern, rules)) for name, rules in group.items()}
        for group in load_external("patterns")
    ]
    for group in (*outside, normalizations.RULES, softmax.RULES, activations.RULES, linear.RULES, convolutions.RULES):
        for name, rules in group.items():
            table.setdefault(name, []).extend(rules)
    return table


@dataclass(frozen=True)
class Recompose(ModulePass):
    """Merges ops decomposed by exporters."""

    name = "recompose"
    one_rewrite = "a rule applied to a node"
    raise_opset: bool = True
    """Allows raising the model's opset if a pattern needs it and every node keeps its meaning."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewriter = _run(ctx, op)
        for version in sorted(rewriter.wanted) if self.raise_opset else ():
            reason = raise_opset(op, version)
            if reason is None:
                rewriter = _run(ctx, op, rewriter)
                remark(ctx, self.name, "", "applied", f"the opset was raised to {version}")
            else:
                remark(ctx, self.name, "", "missed", f"a pattern needs opset {version}: {reason}")
        import_domains(op)
        say_failed_rules(ctx, op, self.name)
        for rule, count in sorted(rewriter.applied.items()):
            remark(ctx, self.name, "", "applied", rule.replace("_", " "), count=count)


def _run(ctx: Context, module: ModuleOp, earlier: Rewriter | None = None) -> Rewriter:
    rewriter = Rewriter(all_patterns(), budget(ctx, Recompose.name))
    if earlier is not None:
        rewriter.applied = earlier.applied
    for graph in module.ops:
        if isinstance(graph, GraphOp):
            rewriter.run(node for node in graph.walk() if isinstance(node, OnnxOp))
    return rewriter
