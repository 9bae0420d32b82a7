"""`recompose`: finds what exporters took apart, and makes one op of it again.

    %e = onnx.Erf(%x / 1.41421354)
    %y = %x * 0.5 * (%e + 1.0)              ->    %y = onnx.Gelu(%x)

One op computes with less rounding, ORT has a kernel for it where a region is not compiled, and the later levels see
what is meant. The patterns are a table, a group a file, each with the conditions under which it holds; all ask that
nothing else uses a value in between, and none changes a result beyond rounding. Tables of installed packages (entry
point group `igniter.patterns`) come first.

An op that the model's opset lacks comes from com.microsoft, where ORT has it there; otherwise the opset is raised, if
every node of the model means the same in the new one (`raise-opset=false` forbids that), and else nothing is made.

It asks for dims, and for the normal forms of `canonicalize-onnx` and `eliminate-common-nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp
from igniter.remarks import remark
from igniter.rewrites import budget
from igniter.transforms.onnx.onnx_rewriting import Rewriter, Rule, Rules


def all_patterns() -> Rules:
    """The table of all groups: for the last op of a pattern, the functions that look for it."""
    from igniter.registry import load_external
    from igniter.transforms.onnx.recompose import activations, convolutions, linear, normalizations, softmax

    table: dict[str, list[Rule]] = {}
    outside: list[Rules] = load_external("patterns")
    for group in (*outside, normalizations.RULES, softmax.RULES, activations.RULES, linear.RULES, convolutions.RULES):
        for name, rules in group.items():
            table.setdefault(name, []).extend(rules)
    return table


@dataclass(frozen=True)
class Recompose(ModulePass):
    """Make one op of what exporters took apart."""

    name = "recompose"
    one_rewrite = "a rule applied to a node"
    raise_opset: bool = True
    """Whether to raise the model's opset where a pattern needs it and every node means the same in the new one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from igniter.frontend.opsets import import_domains, raise_opset

        rewriter = _run(ctx, op)
        for version in sorted(rewriter.wanted) if self.raise_opset else ():
            reason = raise_opset(op, version)
            if reason is None:
                rewriter = _run(ctx, op, rewriter)
                remark(ctx, self.name, "", "applied", f"the opset was raised to {version}")
            else:
                remark(ctx, self.name, "", "missed", f"a pattern needs opset {version}: {reason}")
        import_domains(op)
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
