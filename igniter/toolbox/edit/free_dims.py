"""`free-dims`: turns constant dims of inputs into symbols, if the model can run with other sizes.

    %x: tensor<1x128xf32>   free-dims{dims="x:0" symbols="batch"}   ->   %x: tensor<?x128xf32, #sym.dims<batch, 128>>

The types of dependent values are inferred again. The pass refuses if a node would not run with another size, or would
compute something unintended: a Reshape to `[1, 128, 768]` accepts only a batch of 1, and one to `[1, -1, 768]` would
concatenate a batch of two. The error names the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.onnx.shape_inference import ShapeFacts, infer_shapes
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import unproven
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of, tensor_element, unranked
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.dims import ModelDims
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.graph_edits import forget_derived, info_entries, set_info
from igniter.toolbox.edit.names import node_text, scopes
from igniter.toolbox.edit.rename_dims import require_name
from igniter.toolbox.edit.shape_conflicts import requirements, side_by_side, typed_by
from igniter.toolbox.extract.parts import prefix_module


@dataclass(frozen=True)
class FreeDims(Edit):
    """Turns constant dims of inputs into symbols, if legal."""

    name = "free-dims"
    dims: tuple[str, ...] = ()
    """The dims, as INPUT:AXIS."""
    symbols: tuple[str, ...] = ()
    """The new name of each; equal dims have the same name."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = ModelDims(op)
        graph = main_graph(op)
        sizes: dict[str, int] = {}
        for text, symbol in paired("free-dims", self.dims, self.symbols):
            place = known.place(text)
            if place is None:
                raise known.unknown(text)
            value, axis, dim = place
            size = None if dim is None else dim.constant
            if size is None:
                raise IgniterError(f"'{text}' is {dim}: it is free already")
            if sizes.setdefault(require_name(symbol), size) != size:
                raise IgniterError(f"'{symbol}' cannot be both {sizes[symbol]} and {size}, as '{text}' is")
            dims = list(declared_dims(value.type) or ())
            dims[axis] = Expr.of(symbol)
            value._type = _tensor_of(tensor_element(value.type), dims, text)
        forget_derived(graph)
        changed = _forget_types(graph)
        facts = infer_shapes(op)
        _require_free(graph, facts, sizes)
        _require_nodes(graph, facts, sizes)
        for value in changed:
            value._type = facts.types.get(value, value.type)
        for text, symbol in zip(self.dims, self.symbols, strict=True):
            remark(ctx, self.name, text, "applied", f"is '{symbol}', was {sizes[symbol]}")

    def track(self, interface: Interface) -> None:
        for symbol in self.symbols:
            interface.freed[symbol] = 0


def _tensor_of(element: Attribute | None, dims: list[Expr | None], text: str) -> Attribute:
    if element is None or any(d is None for d in dims):
        raise IgniterError(f"'{text}': the model does not say all dims of this input")
    return tensor_of(element, cast("list[Expr]", dims))


def _forget_types(graph: GraphOp) -> list[SSAValue]:
    """Makes the dims of all values that depend on inputs unknown. Returns these values."""
    depends: set[SSAValue] = set(graph.body.args)
    changed: list[SSAValue] = []
    for op in graph.walk():
        if op is graph or not isinstance(op, OnnxOp):
            continue
        inner = [a for region in op.regions for block in region.blocks for a in block.args]
        if op.name == "onnx.Constant" or not (op.regions or any(v in depends for v in op.operands)):
            continue
        for value in (*op.results, *inner):
            depends.add(value)
            if isinstance(value.type, TensorType):
                changed.append(value)
                value._type = unranked(cast("TensorType[Attribute]", value.type).element_type)
    for scope in scopes(graph):
        infos = info_entries(scope.info.get("output_info"), len(scope.result.operands))
        kept = [
            DictionaryAttr({k: v for k, v in e.data.items() if k != "type"}) if isinstance(e, DictionaryAttr) else None
            for e in infos
        ]
        set_info(scope.holder, "output_info", [e if e is not None and e.data else None for e in kept])
    return changed


def _require_free(graph: GraphOp, facts: ShapeFacts, sizes: dict[str, int]) -> None:
    """Raises `IgniterError` if inference finds that a freed dim is constant or depends on another dim."""
    resolve = facts.equalities[graph].resolve
    for symbol, size in sizes.items():
        found = resolve(Expr.of(symbol))
        if found != Expr.of(symbol) and (found.constant is not None or found.symbol in sizes):
            node = _first_fixed(graph, facts, symbol)
            where = f": {node_text(node)} takes nothing else" if node is not None else ""
            what = str(found) if found.constant is not None else f"equal to '{found}', so name both the same"
            raise IgniterError(f"'{symbol}' (now {size}) cannot be free, it has to be {what}{where}")
    for r in facts.assumptions.get(graph, []):
        names = sorted(r.symbols & sizes.keys())
        if names and r.relation == "==":
            raise IgniterError(
                f"'{names[0]}' (now {sizes[names[0]]}) cannot be free: {r.left} has to be {r.right}, {r.text}"
            )


def _first_fixed(graph: GraphOp, facts: ShapeFacts, symbol: str) -> Operation | None:
    """Returns the first node whose shape rule fixes the symbol, by a binary search over prefixes of the graph."""
    nodes = [op for op in graph.body.ops if isinstance(op, OnnxOp) and op.name != "onnx.Constant"]
    low, high = 0, len(nodes)
    while low < high:
        middle = (low + high) // 2
        if _is_fixed_by(graph, nodes[: middle + 1], symbol):
            high = middle
        else:
            low = middle + 1
    return nodes[low] if low < len(nodes) else None


def _is_fixed_by(graph: GraphOp, nodes: list[OnnxOp], symbol: str) -> bool:
    module = prefix_module(graph, nodes)
    part = main_graph(module)
    facts = infer_shapes(module)
    return facts.equalities[part].resolve(Expr.of(symbol)) != Expr.of(symbol)


def _require_nodes(graph: GraphOp, facts: ShapeFacts, sizes: dict[str, int]) -> None:
    """Raises `IgniterError` if a node assumes the size of a freed dim. It sees the inferred types, of which the model
    keeps only some."""
    with typed_by(facts):
        for node in graph.walk():
            if isinstance(node, OnnxOp):
                _require_node(node, sizes)


def _require_node(node: OnnxOp, sizes: dict[str, int]) -> None:
    """Raises `IgniterError` if a node assumes the size of a freed dim."""
    for r in unproven(requirements(node)):
        names = sorted(r.symbols & sizes.keys())
        if names:
            text = f"'{names[0]}' (now {sizes[names[0]]}) cannot be free"
            raise IgniterError(f"{text}: {node_text(node)} needs {r.left} {r.relation} {r.right}, else {r.text}")
    for pair in side_by_side(node):
        for dim, other in (pair, pair[::-1]):
            if dim.symbol in sizes:
                text = f"'{dim}' (now {sizes[dim.symbol]}) cannot be free"
                raise IgniterError(f"{text}: {node_text(node)} has it beside {other}, so it has to be {other} or 1")
    if node.op_type == "Reshape" and node.domain == "":
        _require_reshape(node, sizes)


def _require_reshape(node: OnnxOp, sizes: dict[str, int]) -> None:
    """Raises `IgniterError` if the target has the dim's old size at its place: it meant the dim."""
    before, after = known_dims_of(node.operands[0].type), known_dims_of(node.results[0].type)
    target = constant_value(node.operands[1])
    if before is None or after is None or target is None:
        return
    written = [int(n) for n in target.reshape(-1)]
    for axis, number in enumerate(written):
        symbol = before[axis].symbol if axis < len(before) else None
        if symbol in sizes and number == sizes[symbol] and number != 0 and after[axis].constant == number:
            raise IgniterError(
                f"'{symbol}' (now {number}) cannot be free: {node_text(node)} reshapes to {written}, which would put "
                f"'{symbol}' into another dim; give it a shape with 0 in the place of {number} first (--replace-weight)"
            )
