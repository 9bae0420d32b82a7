"""Finds the values and nodes of a model by name.

A value is searched in the main graph first, then in the graphs inside its nodes. A node is found by its own name, or by
that of a value that it computes, because many models have unnamed nodes. Values and nodes inside local functions are
not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from igniter.dialects.onnx.attributes import text_attr, text_of, texts_attr, texts_of
from igniter.dialects.onnx.base import OnnxOp, name_hint
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.errors import IgniterError
from igniter.registry import UnknownName


@dataclass(frozen=True)
class Scope:
    """A graph: its block, and the op whose attributes describe it, the main graph or its `onnx.return`."""

    block: Block
    holder: Operation

    @property
    def is_main(self) -> bool:
        return isinstance(self.holder, GraphOp)

    @property
    def info(self) -> dict[str, Attribute]:
        """The attributes about the graph."""
        return self.holder.attributes

    @property
    def result(self) -> ReturnOp:
        return cast(ReturnOp, self.block.last_op)

    @property
    def input_names(self) -> list[str]:
        return _padded(texts_of(self.info.get("input_names")), len(self.block.args))

    @property
    def output_names(self) -> list[str]:
        return _padded(texts_of(self.info.get("output_names")), len(self.result.operands))


def scopes(graph: GraphOp) -> Iterator[Scope]:
    """Yields the main graph, and then those inside its nodes."""
    yield Scope(graph.body, graph)
    for op in graph.body.walk():
        for region in op.regions:
            last = region.block.last_op
            if isinstance(last, ReturnOp):
                yield Scope(region.block, last)


class Names:
    """The names of one model. Built once and not updated: an edit looks up all names before it changes anything."""

    def __init__(self, module: ModuleOp):
        try:
            self.graph = main_graph(module)
        except ValueError as error:
            raise IgniterError(f"{error}: an edit works on the ONNX level") from error
        self.module = module
        self.values: dict[str, SSAValue] = {}
        self.nodes: dict[str, list[OnnxOp]] = {}
        self.by_output: dict[str, OnnxOp] = {}
        self.scopes = list(scopes(self.graph))
        self.taken: set[str] = set()
        for scope in self.scopes:
            self._add_scope(scope)

    def _add_scope(self, scope: Scope) -> None:
        for name, value in zip(scope.output_names, scope.result.operands, strict=True):
            self._add(name, value)
        for name, value in zip(scope.input_names, scope.block.args, strict=True):
            self._add(name, value)
        for op in scope.block.ops:
            if not isinstance(op, OnnxOp):
                continue
            for name, value in zip(result_names(op), op.results, strict=True):
                self._add(name, value)
                if name and "initializer_name" not in op.properties:
                    self.by_output.setdefault(name, op)
            if op.node_name:
                self.nodes.setdefault(op.node_name, []).append(op)

    def _add(self, name: str, value: SSAValue) -> None:
        if name:
            self.values.setdefault(name, value)
            self.taken.add(name)

    # -- finding ------------------------------------------------------------------------------------------------------

    def value(self, name: str) -> SSAValue:
        """Returns the value of a name. Raises `IgniterError` for other names."""
        found = self.values.get(name)
        if found is None:
            raise UnknownName("value", name, self.values)
        return found

    def main_value(self, name: str, why: str) -> SSAValue:
        """Returns a value of the main graph; `why` ends the error message for another one."""
        value = self.value(name)
        if block_of(value) is not self.graph.body:
            inside = owner_text(value)
            raise IgniterError(f"'{name}' is a value inside of {inside}, {why}")
        return value

    def node(self, name: str) -> OnnxOp:
        """Returns the node of a name, or the one that computes the value of that name. Raises `IgniterError` if there
        is none, or several."""
        found = self.nodes.get(name, [])
        if len(found) > 1:
            raise IgniterError(f"{len(found)} nodes are called '{name}': name one by a value that it computes")
        if found:
            return found[0]
        if name in self.by_output:
            return self.by_output[name]
        if name in self.values:
            raise IgniterError(f"'{name}' is {self.kind(self.values[name])}: no node computes it")
        raise UnknownName("node", name, {**self.nodes, **self.by_output})

    def input(self, name: str) -> int:
        """Returns the position of an input. Raises `IgniterError` for other names."""
        return _position("input", name, self.graph.input_names, self.values)

    def output(self, name: str) -> int:
        """Returns the position of an output. Raises `IgniterError` for other names."""
        return _position("output", name, self.graph.output_names, self.values)

    def name_of(self, value: SSAValue) -> str:
        """Returns the model's name for a value, or the name in the IR if it has none."""
        return next((n for n, v in self.values.items() if v is value), "") or (
            value.name_hint or "a value without name"
        )

    def kind(self, value: SSAValue) -> str:
        """Returns `an input`, `a weight` or `a value`."""
        if isinstance(value, BlockArgument):
            return "an input" if block_of(value) is self.graph.body else f"an input of {owner_text(value)}"
        owner = value.owner
        return "a weight" if isinstance(owner, Operation) and owner.name == "onnx.Constant" else "a value"

    # -- new names ----------------------------------------------------------------------------------------------------

    def require_free(self, name: str) -> None:
        """Raises `IgniterError` if a new name is empty or taken."""
        if not name:
            raise IgniterError("a name must not be empty")
        if name in self.taken:
            raise IgniterError(f"there is {self.kind(self.values[name])} called '{name}' already")

    def fresh(self, base: str) -> str:
        """Returns an unused name, and marks it as taken."""
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


def _position(what: str, name: str, names: list[str], values: Mapping[str, SSAValue]) -> int:
    if name in names:
        return names.index(name)
    if name in values:
        raise IgniterError(f"'{name}' is a value of the model, but no {what}; these are {', '.join(names)}")
    raise UnknownName(what, name, dict.fromkeys(names), listed=len(names) < 20)


def _padded(names: list[str], count: int) -> list[str]:
    return [*names, *[""] * (count - len(names))]


def result_names(op: OnnxOp) -> list[str]:
    """Returns the names of a node's results, "" for unnamed ones."""
    if "initializer_name" in op.properties:
        return [text_of(op.properties["initializer_name"])]
    return _padded(op.output_names, len(op.results))[: len(op.results)]


def set_result_name(value: SSAValue, name: str) -> None:
    """Names the result of a node."""
    assert isinstance(value, OpResult)
    op = cast(OnnxOp, value.owner)
    value.name_hint = name_hint(name)
    if "initializer_name" in op.properties:
        op.properties["initializer_name"] = text_attr(name)
        return
    names = result_names(op)
    names[value.index] = name
    op.properties["output_names"] = texts_attr(names)


def block_of(value: SSAValue) -> Block | None:
    """Returns the block of a value's definition."""
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def owner_text(value: SSAValue) -> str:
    """Returns the text of the node around a value's graph, for messages."""
    block = block_of(value)
    parent = block.parent_op() if block is not None else None
    return node_text(parent) if isinstance(parent, OnnxOp) else "another graph"


def node_text(op: Operation) -> str:
    """Returns `Add 'add_1'`, with the name of a result if the node has no name."""
    if not isinstance(op, OnnxOp):
        return op.name
    named = op.node_name or next((n for n in result_names(op) if n), "")
    return f"{op.qualified_name} '{named}'"


def readers(value: SSAValue) -> list[Operation]:
    """Returns the readers of a value, each once."""
    return list(dict.fromkeys(use.operation for use in value.uses))
