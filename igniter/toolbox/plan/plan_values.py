"""The activations of a model: the results of nodes, their bytes, and the steps in which they are kept.

Steps are numbered through the whole model. The graphs of a node (If, Loop, Scan) have their steps before its own, one
branch after another, so two branches share memory like two parts of a model. An activation is kept

* from the step that computes it to its last read, or to the end for an output of the model;
* to the end of a Loop or Scan with a read from outside, because each iteration reads it again;
* through the whole loop, for a loop-carried value, and for a stacked result;
* from the first step on, for an input of the model, if inputs are counted.

A value computed from weights alone is computed once, when ONNX Runtime loads the model, and is a weight itself
(`folded`).

Values share one buffer by three rules; each can be disabled:

* `view`: `Reshape`, `Squeeze`, `Unsqueeze`, `Flatten` and `Identity` only reinterpret the same bytes.
* `in place`: an elementwise node may write its result over an operand with the same dims and width, if nothing reads
  the operand's buffer after the node.
* `branch`: the result of an If's branch is computed in the If's own result, if both are known to have the same size.

The caller owns inputs, weights and outputs: their memory is never another value's, as in ONNX Runtime. So a view of an
input, or a view as an output, is a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from igniter.analysis.fusion.graph import node_label
from igniter.analysis.onnx.op_counts import packed_bytes
from igniter.dialects.fusion import GroupOp
from igniter.dialects.onnx.attributes import texts_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.draws import RANDOM_OPS
from igniter.dialects.onnx.names import VIEWS, op_name
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.structure import GraphOp, ReturnOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.toolbox.plan.plan_order import run_order, runs

KEPT = frozenset(("DequantizeLinear",))
"""Ops that ONNX Runtime does not fold even if all their operands are constant."""


@dataclass(frozen=True)
class Rules:
    """The counted values, and the rules for sharing buffers."""

    inputs: bool = False
    """True if inputs of the model count."""
    fold: bool = True
    """True if values computed from weights alone are weights."""
    views: bool = True
    in_place: bool = True


@dataclass(frozen=True)
class RunStep:
    """One node, in the order of execution. `graph` names the nested graph around it, by node and graph,
    `if_1.then_branch`; "" in the main graph."""

    op: Operation
    graph: str

    @property
    def name(self) -> str:
        """The name of the node."""
        return f"@{self.op.label}" if isinstance(self.op, GroupOp) else node_label(self.op)


@dataclass
class LiveValue:
    """One activation: `dims` in the model's symbols, `size` its bytes, kept in the steps `first` to `last`."""

    name: str
    kind: str
    """`result` of a node, `output` of the model, `input` of the model, `carried` from iteration to iteration, or the
    `arena` of a compiled program."""
    dtype: str
    dims: tuple[Expr, ...]
    size: Expr
    first: int
    last: int
    how: str = ""
    """The rule by which it shares a buffer, and the other value: `view of x`."""


@dataclass
class Lifetimes:
    """The steps and activations of a model. `groups` are the values in one buffer, by their numbers."""

    steps: list[RunStep] = field(default_factory=list[RunStep])
    values: list[LiveValue] = field(default_factory=list[LiveValue])
    groups: list[list[int]] = field(default_factory=list[list[int]])
    uncounted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Values whose bytes are not known, each with the reason."""
    folded: int = 0
    """The number of nodes computed when the model is loaded."""


def lifetimes(graph: GraphOp, order: str, rules: Rules, arenas: Mapping[Operation, Expr] | None = None) -> Lifetimes:
    """Returns the activations of a graph with inferred shapes, in an order of `plan_order.ORDERS`. `arenas` are the
    bytes of running compiled programs in the graph."""
    walk = _Walk(graph, order, rules)
    walk.run()
    for op, size in (arenas or {}).items():
        own = walk.spans[op][1]
        walk.found.groups.append([len(walk.found.values)])
        walk.found.values.append(
            LiveValue(f"arena of {walk.found.steps[own].name}", "arena", "uint8", (size,), size, own, own)
        )
    return walk.found


def size_of(kind: Attribute) -> tuple[str, tuple[Expr, ...], Expr] | str:
    """Returns the element type, the dims and the bytes of a tensor; for another type the reason why they are
    unknown."""
    element, dims = tensor_element(kind), known_dims_of(kind)
    row = BY_ATTR.get(element) if element is not None else None
    if element is None:
        return f"it is no tensor: {kind}"
    if row is None or not row.bits:
        return "its elements have no size of their own: strings" if row is not None else "its type is not known"
    if dims is None:
        return "its rank is not known"
    return row.onnx_name, dims, packed_bytes(product(dims), row.bits)


class _Walk:
    """Collects the lifetimes of one graph."""

    def __init__(self, graph: GraphOp, order: str, rules: Rules):
        self.graph = graph
        self.order = order
        self.rules = rules
        self.found = Lifetimes()
        self.spans: dict[Operation, tuple[int, int]] = {}
        """The first step of each node, and its own step, the last."""
        self.folded: set[SSAValue] = set()
        self.number: dict[SSAValue, int] = {}
        """The number of each counted value."""
        self.outputs = set(graph.terminator.operands)

    def run(self) -> None:
        self._number(self.graph.body, "")
        if self.rules.inputs:
            for name, arg in zip(self.graph.input_names, self.graph.body.args, strict=True):
                self._add(arg, name, "input", 0)
        for op in self.spans:
            self._results(op)
        self._group()

    # -- steps -------------------------------------------------------------------------------------------------------

    def _number(self, block: Block, graph: str) -> None:
        for op in run_order(block, self.order):
            if self.rules.fold and self._is_folded(op):
                self.folded.update(op.results)
                self.found.folded += 1
                continue
            first = len(self.found.steps)
            for name, region in _graphs(op):
                self._number(region.block, f"{node_label(op)}.{name}")
            self.spans[op] = first, len(self.found.steps)
            self.found.steps.append(RunStep(op, graph))

    def _is_folded(self, op: Operation) -> bool:
        """True if a node reads only weights."""
        if op.regions or (isinstance(op, OnnxOp) and (not op.operands or op.op_type in RANDOM_OPS | KEPT)):
            return False
        return all(v in self.folded or (isinstance(v, OpResult) and not runs(v.op)) for v in op.operands)

    # -- lifetimes ---------------------------------------------------------------------------------------------------

    def _results(self, op: Operation) -> None:
        first, own = self.spans[op]
        carried = _carried_count(op)
        for k, result in enumerate(op.results):
            name = value_name(result)
            piles_up = carried is not None and k >= carried
            self._add(result, name, "output" if result in self.outputs else "result", first if piles_up else own)
        for graph, region in _graphs(op):
            last = region.block.last_op
            given = _input_names(last) if isinstance(last, ReturnOp) else []
            for k, arg in enumerate(region.block.args):
                name = given[k] if k < len(given) and given[k] else f"{node_label(op)}.{graph}:{k}"
                self._add(arg, name, "carried", first)

    def _add(self, value: SSAValue, name: str, kind: str, first: int) -> None:
        if isinstance(value.type, NoneType):
            return
        size = size_of(value.type)
        if isinstance(size, str):
            self.found.uncounted.append((name, size))
            return
        self.number[value] = len(self.found.values)
        self.found.values.append(LiveValue(name, kind, *size, first, max(first, self._last(value))))

    def _last(self, value: SSAValue) -> int:
        """Returns the last step of a value's lifetime."""
        if value in self.outputs:
            return max(0, len(self.found.steps) - 1)
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        around = self._span(home.parent_op()) if isinstance(value, BlockArgument) and home is not None else None
        # A loop-carried value lives until the next iteration's replaces it.
        held = around[1] if around is not None else 0
        return max([held, *(self._read_at(use.operation, home) for use in value.uses)])

    def _read_at(self, op: Operation, home: Block | None) -> int:
        """Returns the step of the last read of a value of the graph `home` by `op`, a node in it or in a graph inside
        it. A graph's terminator reads in the step of the node around the graph."""
        span = self._span(op.parent_op() if isinstance(op, ReturnOp) else op)
        at = span[1] if span is not None else 0
        outer: Operation | None = op
        while outer is not None and outer.parent_block() is not home:
            outer = outer.parent_op()
            span = self._span(outer)
            if outer is not None and span is not None and op_name(outer) != "If":
                # The next iteration may read it once more.
                at = span[1]
        return at

    def _span(self, op: Operation | None) -> tuple[int, int] | None:
        return self.spans.get(op) if op is not None else None

    # -- buffers -----------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Lets values share buffers, by the rules."""
        groups = _Groups(self.found.values)
        for op in self.spans:
            if op_name(op) == "If":
                self._join_branches(op, groups)
        for op in self.spans:
            if self.rules.views and op_name(op) in VIEWS and (pair := self._pair(op, 0)) is not None:
                groups.join(*pair, f"view of {self.found.values[pair[0]].name}")
        for op in self.spans:
            if self.rules.in_place and _is_elementwise(op):
                self._join_in_place(op, groups)
        self.found.groups = groups.all()

    def _pair(self, op: Operation, operand: int) -> tuple[int, int] | None:
        """Returns an operand and the only result of a node, if they may share a buffer."""
        if len(op.results) != 1 or operand >= len(op.operands):
            return None
        source, target = self.number.get(op.operands[operand]), self.number.get(op.results[0])
        if source is None or target is None:
            return None
        both = self.found.values[source], self.found.values[target]
        # The next iteration's value takes the buffer of a carried value at the end of this one.
        return (source, target) if all(v.kind == "result" for v in both) else None

    def _join_in_place(self, op: Operation, groups: _Groups) -> None:
        own = self.spans[op][1]
        for k in range(len(op.operands)):
            pair = self._pair(op, k)
            if pair is None or groups.last(pair[0]) != own or groups.first(pair[1]) != own:
                continue
            source, target = (self.found.values[n] for n in pair)
            if source.dims == target.dims and source.size == target.size:
                groups.join(*pair, f"in place of {source.name}")
                return

    def _join_branches(self, op: Operation, groups: _Groups) -> None:
        for k, result in enumerate(op.results):
            target = self.number.get(result)
            for block in (region.block for region in op.regions):
                end = block.last_op
                yielded = list(end.operands) if end is not None else []
                value = yielded[k] if k < len(yielded) else None
                source = self.number.get(value) if value is not None else None
                if target is None or source is None or value is None or yielded.count(value) > 1:
                    continue
                theirs, its = self.found.values[source], self.found.values[target]
                if isinstance(value, OpResult) and value.op.parent_block() is block and theirs.size == its.size:
                    groups.join(target, source, f"branch of {its.name}")


class _Groups:
    """Sets of values in one buffer."""

    def __init__(self, values: Sequence[LiveValue]):
        self.values = values
        self.home = [[k] for k in range(len(values))]

    def first(self, k: int) -> int:
        return min(self.values[n].first for n in self.home[k])

    def last(self, k: int) -> int:
        return max(self.values[n].last for n in self.home[k])

    def join(self, a: int, b: int, how: str) -> None:
        """Puts `b` into the buffer of `a`."""
        if self.home[a] is self.home[b]:
            return
        self.values[b].how = how
        self.home[a].extend(self.home[b])
        for k in self.home[b]:
            self.home[k] = self.home[a]

    def all(self) -> list[list[int]]:
        seen: dict[int, list[int]] = {}
        for group in self.home:
            seen.setdefault(id(group), group)
        return [sorted(group) for group in seen.values()]


def value_name(value: OpResult) -> str:
    """Returns the name of a node's result in the model, or one derived from the node's name. The result of a program or
    of a region is the result of a node in it."""
    op, k = value.op, value.index
    if isinstance(op, GroupOp):
        inner = op.yielded[k]
        return value_name(inner) if isinstance(inner, OpResult) else f"@{op.label}:{k}"
    names = op.output_names if isinstance(op, OnnxOp) else []
    return names[k] if k < len(names) and names[k] else f"{node_label(op)}:{k}"


def _graphs(op: Operation) -> list[tuple[str, Region]]:
    """Returns the graphs of a node by name. A program of kernels is one step, whatever it holds."""
    names = op.graph_names if isinstance(op, OnnxOp) else []
    return [(n, region) for n, region in zip(names, op.regions, strict=False)]


def _input_names(end: ReturnOp) -> list[str]:
    return texts_of(end.attributes.get("input_names"))


def _carried_count(op: Operation) -> int | None:
    """Returns the number of results of a Loop or Scan from its last iteration; the other results are stacked."""
    if op_name(op) == "Loop":
        return max(0, len(op.operands) - 2)
    if op_name(op) == "Scan" and isinstance(op, OnnxOp):
        return len(op.operands) - int(op.attr("num_scan_inputs", 0)) - (1 if op.opset < 9 else 0)
    return None


def _is_elementwise(op: Operation) -> bool:
    spec = spec_of(op) if isinstance(op, OnnxOp) else None
    return spec is not None and spec.kind == "elementwise" and op_name(op) not in VIEWS
