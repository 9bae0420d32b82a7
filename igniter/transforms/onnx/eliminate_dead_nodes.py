"""`eliminate-dead-nodes`: removes nodes that no output of the model depends on, in one backward walk.

    %a = onnx.Exp(%x)                         (nothing)
    %y, %mask = onnx.Dropout(%x)       ->     %y, %none = onnx.Dropout(%x) : ... -> (tensor<4xf32>, none)
    onnx.return %y                            onnx.return %y

Dead nodes of nested graphs are removed too. An unused optional result becomes an omitted one, and ONNX Runtime need not
compute it. Uncalled functions are dropped. xDSL's `dce` would remove the nodes, but it keeps random ones, and does not
know optional results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.dialects.onnx.types import NONE
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.onnx.onnx_rewriting import is_unused


@dataclass(frozen=True)
class EliminateDeadNodes(ModulePass):
    """Removes unused nodes, optional results and functions."""

    name = "eliminate-dead-nodes"
    one_rewrite = "an unused node erased"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, (GraphOp, FunctionOp)):
                _sweep(graph.body, budget(ctx, self.name))
        _drop_functions(op)


def _sweep(block: Block, rewrites: Budget) -> None:
    op = block.last_op
    while op is not None:
        before = op.prev_op
        if is_unused(op):
            if rewrites.take(op.node_name if isinstance(op, OnnxOp) else "", f"{op.name} is erased"):
                block.erase_op(op)
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _sweep(inner, rewrites)
            if isinstance(op, OnnxOp):
                _omit_results(op)
        op = before


def _omit_results(op: OnnxOp) -> None:
    unused = [r for r in op.results if r.first_use is None and not isinstance(r.type, NoneType)]
    schema = op.schema if unused else None
    for result in unused:
        if schema is not None and schema.output(result.index).optional:
            result._type = NONE


def _drop_functions(module: ModuleOp) -> None:
    functions = {op.key: op for op in module.ops if isinstance(op, FunctionOp)}
    if not functions:
        return
    called: set[tuple[str, str, str]] = set()

    def visit(root: Operation, follow: Callable[[Operation], None]) -> None:
        for op in root.walk():
            if isinstance(op, OnnxOp):
                key = (op.domain, op.op_type, op.overload)
                if key in functions and key not in called:
                    called.add(key)
                    follow(functions[key])

    def follow(root: Operation) -> None:
        visit(root, follow)

    for op in module.ops:
        if not isinstance(op, FunctionOp):
            follow(op)
    for key, function in functions.items():
        if key not in called:
            function.detach()
            function.erase()
