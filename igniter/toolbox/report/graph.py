"""The graph of a compiled model as data for a page: nodes, their programs, regions and modules, and edges.

A node run by ONNX Runtime stands alone; nodes in a kernel are in their region, and the region in its program. A
subgraph of a node (of If, Loop or Scan) is a group before the node, which gets the results of the subgraph. The
exporter names the module of a node: in the name scopes of PyTorch's exporter, or in the parts of its name between
slashes or points.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DictionaryAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.analysis.fusion.graph import is_node, node_label
from igniter.analysis.onnx.op_counts import count_op, flops_or_elements
from igniter.dialects.fusion import GroupOp, ProgramOp, RegionOp
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.toolbox.plan.plan_values import value_name
from igniter.toolbox.report.attributes import attribute_texts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import OpResult

SCOPES = "pkg.torch.onnx.name_scopes"
"""The metadata key with the modules of a node in PyTorch's exporter."""

NO_SCOPE = "_empty_nn_module_stack"
"""PyTorch's name for the module of a node outside modules."""


@dataclass
class Graph:
    """`nodes`, `groups` and `edges` in JSON's types; the page's script draws them."""

    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    groups: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edges: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """The edges: from, to, and the name of the value."""

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {"nodes": self.nodes, "groups": self.groups, "edges": [list(e) for e in self.edges]}


def graph_of(module: ModuleOp, original: ModuleOp, reasons: Mapping[str, str], sizes: Mapping[str, int]) -> Graph:
    """Returns the graph of a module with programs. `original` gives the modules of nodes, `reasons` by node name the
    reason why it is in no kernel, and `sizes` the symbols for counts of operations."""
    builder = _Builder(_modules(original), reasons, sizes)
    builder.graph_op(main_graph(module))
    _place_made(builder.graph)
    return builder.graph


def type_text(kind: Attribute) -> str:
    """Returns a readable type: `f32[batch, 768]`."""
    element, dims = tensor_element(kind), known_dims_of(kind)
    if element is None:
        return str(kind)
    return f"{element}[{', '.join(map(str, dims))}]" if dims is not None else f"{element}[?]"


def module_path(op: OnnxOp) -> tuple[str, ...]:
    """Returns the modules around a node, outermost first; empty if unknown."""
    said = op.properties.get("metadata")
    scopes = said.data.get(SCOPES) if isinstance(said, DictionaryAttr) else None
    if scopes is not None:
        try:
            # Each scope is the whole path to it; the last one is the node's own.
            names = [str(s) for s in ast.literal_eval(text_of(scopes) or str(scopes))][:-1]
            return _steps([name for name in names if name and not name.startswith(NO_SCOPE)])
        except (ValueError, SyntaxError):
            return ()
    name = op.node_name
    if "/" in name:
        return tuple(part for part in name.split("/")[:-1] if part)
    # Dots between words: a number after a point is a counter.
    return tuple(name.split(".")[:-1]) if re.fullmatch(r"\w+(\.\w+)+", name) else ()


def _steps(scopes: Sequence[str]) -> tuple[str, ...]:
    """Converts scopes with whole paths to steps: `model`, `model.layer` to `model`, `layer`."""
    steps: list[str] = []
    before = ""
    for scope in scopes:
        steps.append(scope.removeprefix(f"{before}.") if before else scope)
        before = scope
    return tuple(steps)


def _modules(module: ModuleOp) -> dict[str, tuple[str, ...]]:
    """Returns the modules of nodes, by their names and by the names of their results: a replacement of nodes keeps the
    names of results."""
    found: dict[str, tuple[str, ...]] = {}
    for op in module.walk():
        if isinstance(op, OnnxOp) and (path := module_path(op)):
            found.update(dict.fromkeys(filter(None, op.output_names), path))
    named = {op.node_name: module_path(op) for op in module.walk() if isinstance(op, OnnxOp) and op.node_name}
    return {**found, **{name: path for name, path in named.items() if path}}


def _place_made(graph: Graph) -> None:
    """Gives nodes made by passes the innermost module that contains all of their neighbours."""
    beside: dict[str, list[str]] = {}
    for source, target, _ in graph.edges:
        beside.setdefault(source, []).append(target)
        beside.setdefault(target, []).append(source)
    by_id = {node["id"]: node for node in graph.nodes}
    waiting = [n for n in graph.nodes if not n["module"] and n["kind"] in ("node", "left")]
    if len(waiting) == sum(n["kind"] in ("node", "left") for n in graph.nodes):
        return
    while waiting:
        found = [(n, [m for b in beside.get(n["id"], ()) if (m := by_id[b]["module"])]) for n in waiting]
        placed = [(n, _common(paths)) for n, paths in found if paths]
        for node, path in placed:
            node["module"] = path
        if not any(path for _, path in placed):
            return
        waiting = [n for n in waiting if not n["module"]]


def _common(paths: Sequence[list[str]]) -> list[str]:
    """Returns the common prefix."""
    first = paths[0]
    length = 0
    while all(len(p) > length and p[length] == first[length] for p in paths):
        length += 1
    return first[:length]


class _Builder:
    """The graph under construction."""

    def __init__(self, modules: Mapping[str, tuple[str, ...]], reasons: Mapping[str, str], sizes: Mapping[str, int]):
        self.graph = Graph()
        self.modules = modules
        self.reasons = reasons
        self.sizes = dict(sizes)
        self.sources: dict[SSAValue, tuple[str, str]] = {}
        """The node behind a value, and the value's name."""

    def graph_op(self, graph: GraphOp) -> None:
        for name, arg in zip(graph.input_names, graph.body.args, strict=True):
            self._end(arg, name, "input")
        self.block(graph.body, "")
        for name, value in zip(graph.output_names, graph.terminator.operands, strict=True):
            node = self._node(name, "output", "output", "", value.type)
            self._edge(value, node)

    def _end(self, value: SSAValue, name: str, kind: str) -> None:
        self.sources[value] = (self._node(name, kind, kind, "", value.type), name)

    def _node(self, name: str, op: str, kind: str, group: str, type_: Attribute | None = None) -> str:
        node = f"n{len(self.graph.nodes)}"
        entry: dict[str, Any] = {"id": node, "name": name, "op": op, "kind": kind, "group": group, "module": []}
        if type_ is not None:
            entry["type"] = type_text(type_)
        self.graph.nodes.append(entry)
        return node

    def _group(self, label: str, kind: str, parent: str, **facts: Any) -> str:
        group = f"g{len(self.graph.groups)}"
        self.graph.groups.append({"id": group, "label": label, "kind": kind, "parent": parent, **facts})
        return group

    def _edge(self, value: SSAValue, node: str) -> None:
        found = self.sources.get(value)
        if found is not None:
            self.graph.edges.append((found[0], node, found[1]))

    def block(self, block: Block, group: str) -> None:
        """Adds the nodes of a block, nested groups as groups."""
        for op in block.ops:
            if isinstance(op, GroupOp):
                self._enter(op, group)
            elif isinstance(op, OnnxOp) and is_node(op):
                self._onnx(op, group)
            elif not op.has_trait(IsTerminator) and len(op.operands) and op.results:
                # Layouts and views of a value: an edge passes through them.
                found = self.sources.get(op.operands[0])
                if found is not None:
                    self.sources[op.results[0]] = found

    def _enter(self, op: GroupOp, parent: str) -> None:
        kind = "program" if isinstance(op, ProgramOp) else "region"
        kernel = (op.kernel_name or "") if isinstance(op, RegionOp) else ""
        group = self._group(f"@{op.label}", kind, parent, name=op.label, kernel=kernel)
        for arg, outer in zip(op.block.args, op.operands, strict=True):
            if outer in self.sources:
                self.sources[arg] = self.sources[outer]
        self.block(op.block, group)
        for result, inner in zip(op.results, op.yielded, strict=True):
            if inner in self.sources:
                self.sources[result] = self.sources[inner]

    def _onnx(self, op: OnnxOp, group: str) -> None:
        name = node_label(op)
        yielded: list[SSAValue] = []
        for label, region in zip(op.graph_names, op.regions, strict=False):
            inner = self._group(f"{name}.{label}", "graph", group, name=f"{name}.{label}", kernel="")
            self.block(region.block, inner)
            end = region.block.last_op
            yielded += end.operands if end is not None else []
        reason = self.reasons.get(name, "")
        node = self._node(name, op_name(op), "node" if _is_in_kernel(op) else "left", group)
        entry = self.graph.nodes[-1]
        entry["module"] = list(self._module(op))
        entry["flops"] = self._at([flops_or_elements(op)])
        entry["bytes"] = self._at(_moved(op))
        entry["attributes"] = attribute_texts(op)
        entry["inputs"] = [self._value(v) for v in op.operands if not isinstance(v.type, NoneType)]
        entry["outputs"] = [_result(r) for r in op.results if not isinstance(r.type, NoneType)]
        if reason:
            entry["reason"] = reason
        for value in (*op.operands, *yielded):
            self._edge(value, node)
        for result in op.results:
            self.sources[result] = (node, value_name(result))

    def _module(self, op: OnnxOp) -> tuple[str, ...]:
        names = [n for n in (op.node_name, *op.output_names) if n]
        return next((found for n in names if (found := self.modules.get(n))), ()) or module_path(op)

    def _value(self, value: SSAValue) -> list[str]:
        found = self.sources.get(value)
        name = found[1] if found is not None else ""
        if not name and isinstance(value.owner, Operation) and value.owner.name == "onnx.Constant":
            given = value.owner.properties.get("initializer_name")
            name = (text_of(given) if isinstance(given, StringAttr) else "") or "constant"
        return [name or "weight", type_text(value.type)]

    def _at(self, amounts: Sequence[Expr | None]) -> int | None:
        """Returns the sum of amounts at the sizes; `None` if one of them, or a size, is unknown."""
        known = [a for a in amounts if a is not None and a.symbols <= self.sizes.keys()]
        return sum(a.evaluate(self.sizes) for a in known) if len(known) == len(amounts) else None


def _moved(op: OnnxOp) -> list[Expr | None]:
    """Returns the bytes that a node reads from outside its kernel, and writes for readers outside it."""
    count = count_op(op)
    read = [size for v, size in zip(op.operands, count.reads, strict=True) if not _is_beside(v, op)]
    written = [
        size
        for r, size in zip(op.results, count.writes, strict=True)
        if any(not _is_beside(r, use.operation) for use in r.uses)
    ]
    return [*read, *written]


def _result(result: OpResult) -> list[str]:
    return [value_name(result), type_text(result.type)]


def _is_beside(value: SSAValue, op: Operation) -> bool:
    """True if a value passes between nodes of one kernel."""
    owner = value.owner
    return (
        isinstance(owner, OnnxOp)
        and is_node(owner)
        and not op.has_trait(IsTerminator)
        and owner.parent is op.parent
        and isinstance(op.parent_op(), RegionOp)
    )


def _is_in_kernel(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, RegionOp):
            return True
        parent = parent.parent_op()
    return False
