"""`eliminate-common-nodes`: merges equal nodes into the first one.

    %a = onnx.Shape(%x)                       %a = onnx.Shape(%x)
    %b = onnx.Shape(%x)                ->     %c = onnx.Add(%a, %a)
    %c = onnx.Add(%a, %b)

Two nodes are equal if they have the same op, attributes, operands and result types; names do not count. Operands with
the same elements recorded by `infer-shapes` are equal, however they are computed: the first one replaces all others. So
one copy remains of shape arithmetic repeated in every layer of a model. Constants are equal if their bytes are. Nodes
with graphs inside, and random ones, stay. A nested graph may use values of the graphs around it. The pass is one walk:
a node costs a hash of its operands and attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import DimsAttr, element_of, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import ranked
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.onnx.onnx_rewriting import known_dims

BIG_CONSTANT = 1 << 20
"""Larger constants, in bytes, are compared only by their range in a file: reading all weights of a model costs more
than the merge gains."""


@dataclass(frozen=True)
class EliminateCommonNodes(ModulePass):
    """Merges equal nodes."""

    name = "eliminate-common-nodes"
    one_rewrite = "a node merged with an earlier equal one"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, (GraphOp, FunctionOp)):
                same: dict[str, Expr] = {}
                _merge(graph.body, {}, same, budget(ctx, self.name))
                if same:
                    _substitute(graph, same)


def _merge(
    block: Block, outer: Mapping[Hashable, Operation | SSAValue], same: dict[str, Expr], rewrites: Budget
) -> None:
    known: dict[Hashable, Operation | SSAValue] = dict(outer)
    for op in list(block.ops):
        _share_noted(op, known)
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, known, same, rewrites)
        key = _key(op)
        if key is None:
            continue
        first = known.setdefault(key, op)
        if first is op or not isinstance(first, Operation):
            continue
        if not rewrites.take(op.node_name if isinstance(op, OnnxOp) else "", f"{op.name} is merged with an equal one"):
            return
        for result, kept in zip(op.results, first.results, strict=True):
            _note_same(kept, result, same)
            result.replace_all_uses_with(kept)
        block.erase_op(op)


def _note_same(kept: SSAValue, dropped: SSAValue, same: dict[str, Expr]) -> None:
    """Records the equality of two dims: inference named them separately for two nodes, now merged."""
    a, b = known_dims(kept), known_dims(dropped)
    for x, y in zip(a or (), b or (), strict=False):
        x, y = x.substitute(same), y.substitute(same)
        if x != y and y.symbol is not None and y.symbol not in x.symbols:
            for name, value in same.items():
                same[name] = value.substitute({y.symbol: x})
            same[y.symbol] = x


def _substitute(graph: Operation, same: dict[str, Expr]) -> None:
    for op in graph.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            dims = known_dims(value)
            if dims is not None and any(not d.symbols.isdisjoint(same) for d in dims):
                value._type = tensor_of(element_of(value.type), [d.substitute(same) for d in dims])
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if isinstance(noted, DictionaryAttr):
            values = {k: v.substitute(same) if isinstance(v, DimsAttr) else v for k, v in noted.data.items()}
            op.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(values)


def _signature(op: Operation) -> tuple[Hashable, ...]:
    """Returns the result types, without dims left open by inference."""
    return tuple(_open_type(t) for t in op.result_types)


def _open_type(type_: Attribute) -> Hashable:
    tensor = ranked(type_)
    if tensor is None or not isinstance(tensor.encoding, DimsAttr):
        return type_
    return (tensor.element_type, len(tensor.get_shape()))


def _share_noted(op: Operation, known: dict[Hashable, Operation | SSAValue]) -> None:
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    for key, values in noted.data.items() if isinstance(noted, DictionaryAttr) else ():
        value = op.operands[int(key)]
        first = known.setdefault(("values", values, value.type), value)
        if first is not value and isinstance(first, SSAValue):
            op.operands[int(key)] = first


def _key(op: Operation) -> Hashable | None:
    if isinstance(op, NoValueOp):
        return ("onnx.NoValue",)
    if not isinstance(op, OnnxOp) or op.regions:
        return None
    schema = op.schema
    if schema is None or not schema.deterministic:
        # Two runs of an unknown op may differ.
        return None
    if op.op_type == "Constant" and op.domain == "":
        weight = constant_weight(op.results[0])
        if weight is not None:
            return ("onnx.Constant", _content(weight), tuple(op.result_types))
    attributes = frozenset((k, v) for k, v in op.attributes.items() if k != VALUES_ATTRIBUTE)
    return (op.name, tuple(op.operands), attributes, _signature(op))


def _content(weight: Weight) -> Hashable:
    if weight.elided:
        return id(weight)
    if weight.file is not None and weight.nbytes > BIG_CONSTANT:
        return (weight.file, weight.shape, weight.element_type)
    return weight if weight.nbytes <= BIG_CONSTANT else id(weight)
