"""`eliminate-common-nodes`: of nodes that compute the same, the first stays.

    %a = onnx.Shape(%x)                       %a = onnx.Shape(%x)
    %b = onnx.Shape(%x)                ->     %c = onnx.Add(%a, %a)
    %c = onnx.Add(%a, %b)

Two nodes compute the same when they have the same op, attributes, operands and result types; names do not count.
Constants are the same when their bytes are. Nodes with graphs inside, and random ones, stay. A nested graph may use
what the graphs around it compute. One walk: a node costs a hash of its operands and attributes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.frontend.weights import Weight

BIG_CONSTANT = 1 << 20
"""Constants of more bytes are compared only when they are the same range of the same file: reading all the weights of
a model costs more than the merge gains."""


@dataclass(frozen=True)
class EliminateCommonNodes(ModulePass):
    """Merge nodes that compute the same."""

    name = "eliminate-common-nodes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, (GraphOp, FunctionOp)):
                _merge(graph.body, {})


def _merge(block: Block, outer: dict[Hashable, Operation]) -> None:
    known = dict(outer)
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, known)
        key = _key(op)
        if key is None:
            continue
        first = known.setdefault(key, op)
        if first is op:
            continue
        for result, same in zip(op.results, first.results, strict=True):
            result.replace_all_uses_with(same)
        block.erase_op(op)


def _key(op: Operation) -> Hashable | None:
    if isinstance(op, NoValueOp):
        return ("onnx.NoValue",)
    if not isinstance(op, OnnxOp) or op.regions:
        return None
    schema = op.schema
    if schema is None or not schema.deterministic:
        # Of an op that we do not know, two runs may differ.
        return None
    if op.op_type == "Constant" and op.domain == "":
        weight = constant_weight(op.results[0])
        if weight is not None:
            return ("onnx.Constant", _content(weight), tuple(op.result_types))
    attributes = frozenset((k, v) for k, v in op.attributes.items() if k != VALUES_ATTRIBUTE)
    return (op.name, tuple(op.operands), attributes, tuple(op.result_types))


def _content(weight: Weight) -> Hashable:
    if weight.elided:
        return id(weight)
    if weight.file is not None and weight.nbytes > BIG_CONSTANT:
        return (weight.file, weight.shape, weight.element_type)
    return weight if weight.nbytes <= BIG_CONSTANT else id(weight)
