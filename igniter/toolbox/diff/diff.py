"""The differences of two models: nodes, weights, inputs and outputs, and the header of the file.

    diff_modules(a, b) -> ModelDiff

Nodes are matched whatever their names, the names of their values, and their order (`node_matching`); the names of a
model's inputs and outputs do count. The nodes of nested graphs and of functions are compared in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import Attribute, Block, BlockArgument, OpResult, SSAValue

from igniter.dialects.onnx.algebra import attribute_text, said_attributes
from igniter.dialects.onnx.attributes import entries_of, pairs_of, text_of, to_python
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, functions, main_graph
from igniter.dialects.onnx.types import UNKNOWN
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.tensor_types import declared_dims
from igniter.toolbox.diff.node_matching import NodePairs, is_constant, match_nodes, nodes_of, operand_pairs, weight_of
from igniter.toolbox.diff.weight_difference import same_bytes, weight_difference
from igniter.toolbox.shapes.shapes import shape_text, type_text

Kind = Literal["added", "removed", "replaced", "attributes", "rewired"]


@dataclass(frozen=True)
class NodeChange:
    """One node. `a` and `b` are its names in the models, "" if it is absent from one; `details` list the
    differences."""

    kind: Kind
    op: str
    a: str
    b: str
    details: tuple[str, ...] = ()
    where: str = ""
    """The nested graph or function around it."""


@dataclass(frozen=True)
class WeightChange:
    """One changed weight or constant. Figures are `None` where the shapes or types differ."""

    a: str
    b: str
    type_a: str
    type_b: str
    elements: int | None = None
    """The number of differing elements."""
    absolute: float | None = None
    relative: float | None = None
    reader: str = ""
    """A node that reads it."""


@dataclass(frozen=True)
class ModelDiff:
    """All differences; false without any."""

    nodes: tuple[NodeChange, ...] = ()
    weights: tuple[WeightChange, ...] = ()
    interface: tuple[str, ...] = ()
    """The differences of inputs and outputs."""
    header: tuple[str, ...] = ()
    """The differences of opsets, the IR version, the producer, metadata and functions."""
    matched: int = 0
    """The number of nodes in both models."""
    same_weights: int = 0

    def __bool__(self) -> bool:
        return bool(self.nodes or self.weights or self.interface or self.header)

    def to_dict(self) -> dict[str, Any]:
        """Converts the differences to JSON values."""
        return {"same": not self, **asdict(self)}


def diff_modules(a: ModuleOp, b: ModuleOp) -> ModelDiff:
    """Returns the differences from `a` to `b`, both at the `onnx` level."""
    differ = _Differ()
    one, other = main_graph(a), main_graph(b)
    pairs = differ.pair_inputs(one, other)
    differ.outputs(one, other)
    differ.block(one.body, other.body, pairs, "", (one.output_names, other.output_names))
    differ.functions(functions(a), functions(b))
    differ.header(a, b)
    differ.unused(one.body, other.body)
    nodes, weights = tuple(differ.nodes), tuple(differ.weights.values())
    counts = (differ.matched, len(differ.compared) - len(weights))
    return ModelDiff(nodes, weights, tuple(differ.interface), tuple(differ.heads), *counts)


@dataclass
class _Differ:
    nodes: list[NodeChange] = field(default_factory=list[NodeChange])
    weights: dict[tuple[SSAValue, SSAValue], WeightChange] = field(
        default_factory=dict[tuple[SSAValue, SSAValue], WeightChange]
    )
    compared: set[tuple[SSAValue, SSAValue]] = field(default_factory=set[tuple[SSAValue, SSAValue]])
    interface: list[str] = field(default_factory=list[str])
    heads: list[str] = field(default_factory=list[str])
    matched: int = 0

    # -- inputs and outputs ------------------------------------------------------------------------------------------

    def pair_inputs(self, a: GraphOp, b: GraphOp) -> dict[SSAValue, SSAValue]:
        """Pairs inputs of one name; the others are differences, and are paired in order where the types are equal."""
        mine, theirs = (dict(zip(g.input_names, g.body.args, strict=True)) for g in (a, b))
        self._named("input", {n: v.type for n, v in mine.items()}, {n: v.type for n, v in theirs.items()})
        pairs: dict[SSAValue, SSAValue] = {v: theirs[n] for n, v in mine.items() if n in theirs}
        rest = [v for n, v in theirs.items() if n not in mine]
        for value in (v for n, v in mine.items() if n not in theirs):
            same = next((r for r in rest if r.type == value.type), None)
            if same is not None:
                rest.remove(same)
                pairs[value] = same
        return pairs

    def outputs(self, a: GraphOp, b: GraphOp) -> None:
        """Compares the declared names and types of outputs."""
        self._named("output", _declared_outputs(a), _declared_outputs(b))

    def _named(self, what: str, a: Mapping[str, Attribute], b: Mapping[str, Attribute]) -> None:
        self.interface += [f"{what} '{n}' {_typed(t)} is only in A" for n, t in a.items() if n not in b]
        self.interface += [f"{what} '{n}' {_typed(t)} is only in B" for n, t in b.items() if n not in a]
        for name, type_ in a.items():
            if name in b and _typed(type_) != _typed(b[name]):
                self.interface.append(f"{what} '{name}' is {_typed(type_)} in A and {_typed(b[name])} in B")
        both = [n for n in a if n in b]
        if both != [n for n in b if n in a]:
            self.interface.append(f"the {what}s are in another order: {', '.join(a)} in A, {', '.join(b)} in B")

    # -- nodes -------------------------------------------------------------------------------------------------------

    def block(
        self,
        a: Block,
        b: Block,
        values: Mapping[SSAValue, SSAValue],
        where: str,
        outputs: tuple[list[str], list[str]] | None = None,
    ) -> None:
        """Compares two blocks; `outputs` are names that identify corresponding results."""
        pairs = match_nodes(a, b, values)
        self.matched += len(pairs.to_b)
        for op in nodes_of(a):
            other = pairs.to_b.get(op)
            if other is None:
                self.nodes.append(NodeChange("removed", op.qualified_name, _name(op), "", where=where))
            else:
                self._node(op, other, pairs, where)
        for op in nodes_of(b):
            if op not in pairs.to_a:
                self.nodes.append(NodeChange("added", op.qualified_name, "", _name(op), where=where))
        self._returned(a, b, pairs, where, outputs)

    def _node(self, a: OnnxOp, b: OnnxOp, pairs: NodePairs, where: str) -> None:
        if a.qualified_name != b.qualified_name:
            details = (f"{a.qualified_name} in A, {b.qualified_name} in B",)
            self.nodes.append(NodeChange("replaced", a.qualified_name, _name(a), _name(b), details, where))
        else:
            said = self._attributes(a, b)
            if said:
                self.nodes.append(NodeChange("attributes", a.qualified_name, _name(a), _name(b), tuple(said), where))
        wires = [
            f"operand {k} is {_value(va)} in A and {_value(vb)} in B"
            for k, (va, vb) in enumerate(operand_pairs(a, b, pairs.values))
            if not self._same_value(va, vb, pairs, a)
        ]
        if len(a.operands) != len(b.operands):
            wires.append(f"{len(a.operands)} operands in A and {len(b.operands)} in B")
        if wires and a.qualified_name == b.qualified_name:
            self.nodes.append(NodeChange("rewired", a.qualified_name, _name(a), _name(b), tuple(wires), where))
        for name, one, other in zip(a.graph_names, a.regions, b.regions, strict=False):
            inner = f"{where}/" * bool(where) + f"{_name(a)}/{name}"
            given = {**pairs.values, **dict(zip(one.block.args, other.block.args, strict=False))}
            self.block(one.block, other.block, given, inner)

    def _attributes(self, a: OnnxOp, b: OnnxOp) -> list[str]:
        mine, theirs = said_attributes(a), said_attributes(b)
        return [
            f"{name} is {attribute_text(mine.get(name))} in A and {attribute_text(theirs.get(name))} in B"
            for name in sorted({*mine, *theirs})
            if mine.get(name) != theirs.get(name)
        ]

    def _same_value(self, a: SSAValue, b: SSAValue, pairs: NodePairs, reader: OnnxOp | None) -> bool:
        if isinstance(a.type, NoneType) or isinstance(b.type, NoneType):
            return isinstance(a.type, NoneType) and isinstance(b.type, NoneType)
        if is_constant(a) and is_constant(b):
            self._weight(a, b, reader)
            return True
        return pairs.values.get(a) is b

    def _returned(
        self, a: Block, b: Block, pairs: NodePairs, where: str, names: tuple[list[str], list[str]] | None
    ) -> None:
        mine, theirs = (list(x.last_op.operands) if x.last_op is not None else [] for x in (a, b))
        if names is not None:
            by_name = dict(zip(names[1], theirs, strict=False))
            both = [(n, v, by_name[n]) for n, v in zip(names[0], mine, strict=False) if n in by_name]
        else:
            both = [(f"{k} of {where}", v, w) for k, (v, w) in enumerate(zip(mine, theirs, strict=False))]
            if len(mine) != len(theirs):
                self.interface.append(f"{where} has {len(mine)} outputs in A and {len(theirs)} in B")
        for name, va, vb in both:
            if not self._same_value(va, vb, pairs, None):
                details = (f"output '{name}' is {_value(va)} in A and {_value(vb)} in B",)
                self.nodes.append(NodeChange("rewired", "output", name, name, details, where))

    # -- weights -----------------------------------------------------------------------------------------------------

    def _weight(self, a: SSAValue, b: SSAValue, reader: OnnxOp | None) -> None:
        if (a, b) in self.compared:
            return
        self.compared.add((a, b))
        mine, theirs = weight_of(a), weight_of(b)
        if mine is None or theirs is None or same_bytes(mine, theirs):
            return
        names = (_constant_name(a), _constant_name(b))
        figures = weight_difference(mine, theirs)
        if figures.elements == 0 and mine.element_type == theirs.element_type:
            return
        by = f"{reader.qualified_name} '{_name(reader)}'" if reader is not None else "an output"
        found = (figures.elements, figures.absolute, figures.relative)
        self.weights[a, b] = WeightChange(*names, _weight_type(mine), _weight_type(theirs), *found, by)

    def unused(self, a: Block, b: Block) -> None:
        """Compares the names of unused weights."""
        mine, theirs = _unused(a), _unused(b)
        self.heads += [f"weight '{n}', which nothing reads, is only in A" for n in sorted(mine - theirs)]
        self.heads += [f"weight '{n}', which nothing reads, is only in B" for n in sorted(theirs - mine)]

    # -- the head of the file ----------------------------------------------------------------------------------------

    def functions(self, a: Mapping[Any, FunctionOp], b: Mapping[Any, FunctionOp]) -> None:
        """Compares functions by domain, name and overload, and their nodes."""
        for key in sorted({*a, *b}):
            name = ".".join(filter(None, key))
            if key not in a or key not in b:
                self.heads.append(f"function {name} is only in {'A' if key in a else 'B'}")
                continue
            mine, theirs = a[key], b[key]
            if len(mine.body.args) != len(theirs.body.args):
                self.heads.append(
                    f"function {name} has {len(mine.body.args)} inputs in A, {len(theirs.body.args)} in B"
                )
            values: dict[SSAValue, SSAValue] = dict(zip(mine.body.args, theirs.body.args, strict=False))
            self.block(mine.body, theirs.body, values, f"function {name}")

    def header(self, a: ModuleOp, b: ModuleOp) -> None:
        """Compares opsets, versions, the producer and metadata."""
        mine, theirs = (entries_of(m.attributes.get("onnx.model")) for m in (a, b))
        opsets = [{d: str(to_python(v)) for d, v in entries_of(h.get("opset_import")).items()} for h in (mine, theirs)]
        self._entries("opset of", *({d or "ai.onnx": v for d, v in o.items()} for o in opsets))
        for key in ("ir_version", "model_version"):
            values = [str(to_python(h[key])) if key in h else "none" for h in (mine, theirs)]
            if values[0] != values[1]:
                self.heads.append(f"{key} is {values[0]} in A and {values[1]} in B")
        for key in ("producer_name", "producer_version", "domain", "doc_string"):
            values = [text_of(h.get(key)) for h in (mine, theirs)]
            if values[0] != values[1]:
                self.heads.append(f"{key} is {values[0]!r} in A and {values[1]!r} in B")
        metadata = [dict(pairs_of(h.get("metadata"))) for h in (mine, theirs)]
        self._entries("metadata", *metadata)

    def _entries(self, what: str, a: Mapping[str, str], b: Mapping[str, str]) -> None:
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key):
                values = [v if len(v) <= 60 else f"{v[:57]}..." for v in (a.get(key, "none"), b.get(key, "none"))]
                self.heads.append(f"{what} '{key}' is {values[0]} in A and {values[1]} in B")


def _declared_outputs(graph: GraphOp) -> dict[str, Attribute]:
    noted: Any = graph.attributes.get("output_info")
    infos: list[Any] = list(noted.data) if noted is not None else []
    found: dict[str, Attribute] = {}
    for i, (name, value) in enumerate(zip(graph.output_names, graph.terminator.operands, strict=False)):
        said = entries_of(infos[i]).get("type") if i < len(infos) else None
        found[name] = said if said is not None else value.type
    return found


def _typed(type_: Attribute) -> str:
    if type_ == UNKNOWN:
        return "of an unknown type"
    dims = declared_dims(type_)
    # Generated names of unnamed dims are no difference.
    shown = None if dims is None else [None if d is None or str(d).startswith("unk_") else d for d in dims]
    return f"{type_text(type_)} {shape_text(shown)}"


def _name(op: OnnxOp) -> str:
    return op.node_name or next(iter(op.output_names), "") or op.op_type


def _value(value: SSAValue) -> str:
    if isinstance(value.type, NoneType):
        return "omitted"
    if isinstance(value, OpResult) and isinstance(value.owner, OnnxOp):
        if is_constant(value):
            return f"the constant '{_constant_name(value)}'"
        return f"result {value.index} of {value.owner.qualified_name} '{_name(value.owner)}'"
    graph: Any = value.owner.parent_op() if isinstance(value.owner, Block) else None
    names = graph.input_names if isinstance(graph, (GraphOp, FunctionOp)) else []
    index = value.index if isinstance(value, BlockArgument) else 0
    return f"input '{names[index]}'" if index < len(names) else f"input {index}"


def _constant_name(value: SSAValue) -> str:
    op = value.owner
    if not isinstance(op, OnnxOp):
        return ""
    return text_of(op.properties.get("initializer_name")) or next(iter(op.output_names), "") or op.node_name


def _unused(block: Block) -> set[str]:
    constants = (op.results[0] for op in block.ops if op.name == "onnx.Constant")
    return {_constant_name(v) for v in constants if v.first_use is None}


def _weight_type(weight: Weight) -> str:
    name = "string" if weight.strings is not None else weight.element.numpy_name
    return f"{name} {list(weight.shape)}"


def count_kinds(changes: Iterable[NodeChange]) -> dict[str, int]:
    """Counts the changed nodes of each kind."""
    found: dict[str, int] = {}
    for change in changes:
        found[change.kind] = found.get(change.kind, 0) + 1
    return found
