"""Models made of some nodes of another one: values across their borders become inputs and outputs.

The nodes of the main graph are distributed over a sequence of parts. A value computed in one part and read in a later
one is an output of the first and an input of the other, with its type and its symbols. Weights are not passed on: every
part has its own weights, by the same handle. The same holds for values computed from weights and constants alone (such
as a dequantised weight), unless a random node computes them: they are computed in each reading part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.traits import Pure

from igniter.dialects.onnx.attributes import entries_of, text_attr, text_of, texts_attr
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, info_list
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp, main_graph
from igniter.dialects.sym.tensor_types import ranked
from igniter.errors import IgniterError
from igniter.toolbox.edit.graph_edits import info_entries, is_omitted, reads
from igniter.toolbox.edit.names import node_text, result_names, set_result_name
from igniter.toolbox.edit.value_types import is_unknown, value_types


@dataclass(frozen=True)
class Part:
    """One part, and the names of its inputs and outputs."""

    name: str
    module: ModuleOp
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int
    """The number of the model's nodes in it, without shared ones."""


class Partition:
    """A model to be split into parts. Names every unnamed value of the main graph."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.graph: GraphOp = main_graph(module)
        self.shared = _shared(self.graph.body)
        """Constants and values computed from them alone; each reading part has a copy."""
        self.reads: dict[Operation, list[SSAValue]] = {
            op: [v for v in dict.fromkeys(reads(op)) if not is_omitted(v)] for op in self.graph.body.ops
        }
        self.nodes: list[OnnxOp] = [
            op
            for op in self.graph.body.ops
            if isinstance(op, OnnxOp) and op not in self.shared and not isinstance(op, NoValueOp)
        ]
        self.outputs = list(zip(self.graph.output_names, self.graph.terminator.operands, strict=True))
        self.names: dict[SSAValue, str] = self._named()
        self.types = value_types(module)

    def _named(self) -> dict[SSAValue, str]:
        names: dict[SSAValue, str] = dict(zip(self.graph.body.args, self.graph.input_names, strict=True))
        taken = set(self.graph.input_names) | {n for n, _ in self.outputs}
        unnamed: list[SSAValue] = []
        ops = [op for op in self.graph.body.ops if isinstance(op, OnnxOp)]
        for op in ops:
            for name, value in zip(result_names(op), op.results, strict=True):
                if name:
                    names[value] = name
                    taken.add(name)
                else:
                    unnamed.append(value)
        for name, value in self.outputs:
            if isinstance(value, OpResult) and value.owner.parent is self.graph.body:
                names[value] = name
        for i, value in enumerate(v for v in unnamed if not is_omitted(v) and v not in names):
            name = f"value_{i}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[value] = name
            set_result_name(value, name)
        return names

    def parts(self, stages: Sequence[Sequence[OnnxOp]], titles: Sequence[str]) -> list[Part]:
        """Returns the models of a sequence of stages; together they have all nodes needed for outputs. If an output of
        the model is an input, or shared, it belongs to the last part."""
        place: dict[Operation, int] = {op: i for i, stage in enumerate(stages) for op in stage}
        inputs: list[list[SSAValue]] = [self.needed(stage) for stage in stages]
        passed: list[list[tuple[str, SSAValue]]] = [[] for _ in stages]
        for i, values in enumerate(inputs):
            for value in values:
                if isinstance(value, OpResult) and (owner := value.owner) in place:
                    if place[owner] > i:
                        raise IgniterError(f"{node_text(owner)} is in a part behind one that reads its result")
                    entry = (self.names[value], value)
                    if entry not in passed[place[owner]]:
                        passed[place[owner]].append(entry)
        for name, value in self.outputs:
            at = place.get(value.owner, len(stages) - 1) if isinstance(value, OpResult) else len(stages) - 1
            if (name, value) not in passed[at]:
                passed[at].append((name, value))
        return [
            self.part(title, stage, given, out)
            for title, stage, given, out in zip(titles, stages, inputs, passed, strict=True)
        ]

    def needed(self, nodes: Iterable[OnnxOp]) -> list[SSAValue]:
        """Returns the values read but not computed by nodes, in the order of the model, without constants and shared
        values."""
        own = set(nodes)
        found: dict[SSAValue, None] = {}
        for op in self.nodes:
            if op in own:
                for value in self.reads[op]:
                    owner = value.owner
                    if isinstance(owner, Block) or (owner not in own and owner not in self.shared):
                        found[value] = None
        order: dict[SSAValue, int] = {v: i for i, v in enumerate(self.graph.body.args)}
        return sorted(found, key=lambda v: order.get(v, len(order)))

    def part(
        self, title: str, nodes: Sequence[OnnxOp], inputs: Sequence[SSAValue], outputs: Sequence[tuple[str, SSAValue]]
    ) -> Part:
        """Returns the model of some nodes. Outputs may be inputs, passed through."""
        arguments = list(inputs)
        arguments += [v for _, v in outputs if isinstance(v, BlockArgument) and v not in arguments]
        module = part_module(self.graph, nodes, arguments, outputs, self.type_of, self.names, title)
        part = main_graph(module)
        for result, (_, value) in zip(part.terminator.operands, outputs, strict=True):
            if ranked(result.type) is None:
                result._type = self.best_type(value)
        return Part(title, module, tuple(part.input_names), tuple(part.output_names), len(nodes))

    def best_type(self, value: SSAValue) -> Attribute:
        """Returns the most precise known type of a value; `!onnx.unknown` if nothing is known."""
        if isinstance(value, BlockArgument):
            return value.type
        inferred = self.types.get(value, value.type)
        return value.type if ranked(value.type) is not None and ranked(inferred) is None else inferred

    def type_of(self, value: SSAValue) -> Attribute:
        """Returns the type of a value as an input: the model's, or inference's if that is more precise."""
        found = self.best_type(value)
        if is_unknown(found):
            by = node_text(value.owner) if isinstance(value.owner, Operation) else "nothing"
            raise IgniterError(
                f"the type of '{self.names.get(value, '?')}', which {by} computes, is not known, so it cannot be the "
                "input of a part: give it a type in the model (value_info), or cut elsewhere"
            )
        return found


def _shared(block: Block) -> set[Operation]:
    found: set[Operation] = set()
    for op in block.ops:
        if (
            isinstance(op, NoValueOp)
            or op.name == "onnx.Constant"
            or (
                isinstance(op, OnnxOp)
                and op.has_trait(Pure)
                and op.operands
                and all(isinstance(v, OpResult) and v.owner in found for v in op.operands)
            )
        ):
            found.add(op)
    return found


def part_module(
    graph: GraphOp,
    nodes: Iterable[OnnxOp],
    inputs: Sequence[SSAValue],
    outputs: Sequence[tuple[str, SSAValue]],
    type_of: Callable[[SSAValue], Attribute],
    names: Mapping[SSAValue, str],
    title: str = "",
) -> ModuleOp:
    """Returns a module of `nodes`, in the order of the graph, with their constants."""
    wanted = _with_shared(graph, nodes, [v for _, v in outputs], set(inputs))
    block = Block(arg_types=[type_of(v) for v in inputs])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for op in graph.body.ops:
        if op in wanted:
            block.add_op(op.clone(mapping))
    block.add_op(ReturnOp.make([mapping[v] for _, v in outputs]))
    attributes = _attributes(graph, inputs, [n for n, _ in outputs], names, title)
    made = GraphOp.make("main", Region(block), attributes)
    old = graph.parent_op()
    assert isinstance(old, ModuleOp)
    functions = _called(old, made)
    return ModuleOp([*functions, made], dict(old.attributes))


def _with_shared(
    graph: GraphOp, nodes: Iterable[OnnxOp], outputs: Sequence[SSAValue], inputs: set[SSAValue]
) -> set[Operation]:
    """Returns the nodes, and the producers of their operands, except inputs."""
    wanted: set[Operation] = set(nodes)
    pending = [v for op in wanted for v in reads(op)] + list(outputs)
    while pending:
        value = pending.pop()
        owner = value.owner
        if value not in inputs and isinstance(owner, Operation) and owner.parent is graph.body and owner not in wanted:
            wanted.add(owner)
            pending += reads(owner)
    return wanted


def _attributes(
    graph: GraphOp, inputs: Sequence[SSAValue], outputs: list[str], names: Mapping[SSAValue, str], title: str
) -> dict[str, Attribute]:
    """Returns the attributes of a part; the model's own inputs and outputs keep their info."""
    old = graph.attributes
    given = graph.input_names
    infos = dict(zip(given, info_entries(old.get("input_info"), len(given)), strict=True))
    results = dict(zip(graph.output_names, info_entries(old.get("output_info"), len(graph.output_names)), strict=True))
    named = [names[v] for v in inputs]
    defaults = {k: v for k, v in entries_of(old.get("input_defaults")).items() if k in named}
    graph_name = text_of(old.get("graph_name"))
    found: dict[str, Attribute | None] = {
        "graph_name": text_attr(f"{graph_name}_{title}" if title else graph_name),
        "input_names": texts_attr(named),
        "output_names": texts_attr(outputs),
        "input_info": info_list([infos.get(n) for n in named]),
        "output_info": info_list([results.get(n) for n in outputs]),
        "input_defaults": DictionaryAttr(defaults) if defaults else None,
        "doc_string": old.get("doc_string"),
        "metadata": old.get("metadata"),
        "quantization_annotations": old.get("quantization_annotations"),
    }
    return {k: v for k, v in found.items() if v is not None}


def _called(module: ModuleOp, graph: GraphOp) -> list[FunctionOp]:
    """Returns copies of the functions called by a graph, directly or through others."""
    functions = {op.key: op for op in module.ops if isinstance(op, FunctionOp)}
    called: set[tuple[str, str, str]] = set()
    pending: list[Operation] = [graph]
    while pending:
        for op in pending.pop().walk():
            if isinstance(op, OnnxOp):
                key = (op.domain, op.op_type, op.overload)
                if key in functions and key not in called:
                    called.add(key)
                    pending.append(functions[key])
    return [op.clone() for key, op in functions.items() if key in called]


def prefix_module(graph: GraphOp, nodes: Sequence[OnnxOp]) -> ModuleOp:
    """Returns a module of the first nodes of a graph, with their results as outputs, for inference on them alone."""
    names: dict[SSAValue, str] = dict(zip(graph.body.args, graph.input_names, strict=True))
    outputs = [(f"{i}", v) for i, v in enumerate(v for op in nodes for v in op.results if not is_omitted(v))]
    return part_module(graph, nodes, list(graph.body.args), outputs, lambda v: v.type, names)
