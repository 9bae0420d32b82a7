"""Counts the work of a model, node by node: the profile of a module with inferred shapes and inlined functions.

A graph inside a node counts as often as it runs: the body of a Loop or a Scan by its trip count, a symbol if the model
does not give it. Of the branches of an If, the one with more FLOPs counts, and the other is listed with 0 times. Nodes
without a dependence on inputs are computed when a runtime loads the model; their values become weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Block, SSAValue

from igniter.analysis.onnx.assumptions import declared_types
from igniter.analysis.onnx.graph_runs import runs_of
from igniter.analysis.onnx.op_counts import TensorSize, count_op, known_sum
from igniter.analysis.typical_sizes import WORK, TypicalSizes
from igniter.dialects.onnx.attributes import entries_of
from igniter.dialects.onnx.base import CustomOp, OnnxOp, constant_value
from igniter.dialects.onnx.building import ops_of
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.onnx.structure import GraphOp, functions, main_graph
from igniter.dialects.sym.expr import ONE, ZERO, Expr, symbols_of
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of
from igniter.errors import IgniterError
from igniter.toolbox.profile.constants import Constants
from igniter.toolbox.profile.modules import module_chain
from igniter.toolbox.profile.profile import Cost, NodeProfile, Port, Profile, Tensor, WeightUse, summed
from igniter.toolbox.profile.tensors import TensorTable

BY_TYPES = frozenset(("elementwise", "movement", "normalization", "shape"))
"""The kinds of ops whose counts need only types and attributes."""

PRODUCTS = frozenset(("Conv", "Gemm", "MatMul"))
"""Products whose counts need only types and attributes."""

STEPS = frozenset(f"com.microsoft.{name}" for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"))
"""Ops that run their graph `decoder` once a token, and `encoder` and `init_decoder` once."""


def count_model(module: ModuleOp, sizes: Mapping[str, int] | None = None, sparsity: bool = False) -> Profile:
    """Returns the profile of a module's graph, with inferred shapes and inlined functions.

    Amounts are in the symbols of the graph; `sizes` only decide between the branches of an If. Weights are read only
    for `sparsity`.
    """
    try:
        graph = main_graph(module)
    except ValueError as error:
        raise IgniterError(f"{error}: a profile is of a model") from error
    found = _Counter(module, graph, sizes or {}, Constants(TensorTable(), True, sparsity)).run()
    if found.nodes or not found.constant_nodes:
        return found
    # A model without inputs is constant as a whole: then the constant nodes are profiled.
    return _Counter(module, graph, sizes or {}, Constants(TensorTable(), False, sparsity)).run()


class _Alike(NamedTuple):
    """The common properties of nodes with the same op, attributes and types."""

    op: str
    cost: Cost
    uncounted: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class _Counter:
    def __init__(self, module: ModuleOp, graph: GraphOp, sizes: Mapping[str, int], constants: Constants):
        self.graph = graph
        self.sizes = TypicalSizes(tuple(sizes.items()))
        self.calls = {key[:2] for key in functions(module)}
        self.tensors = constants.tensors
        self.constants = constants
        self.folded = 0
        self.unnamed: dict[str, int] = {}
        self.symbols: dict[str, str] = {}
        self.alike: dict[object, _Alike] = {}
        self.plain: dict[type[OnnxOp], bool] = {}
        self.own = {s for a in graph.body.args for d in known_dims_of(a.type) or () for s in d.symbols}
        self.notes: list[str] = []

    def run(self) -> Profile:
        graph = self.graph
        defaults = graph.attributes.get("input_defaults")
        given = set(entries_of(defaults)) if isinstance(defaults, DictionaryAttr) else set[str]()
        for name, arg in zip(graph.input_names, graph.body.args, strict=True):
            if name in given:
                self.constants.add_default(arg, name)
        nodes = self._block(graph.body, (), ONE)
        ports = (
            self._ports(zip(graph.input_names, graph.body.args, strict=True)),
            self._ports(zip(graph.output_names, graph.terminator.operands, strict=True)),
        )
        self._name_symbols(ports[0], nodes)
        return Profile(tuple(nodes), *ports, self.folded, self.symbols, self._aliases(), tuple(self.notes))

    def _aliases(self) -> dict[str, Expr]:
        """Returns the symbols of the inputs' declared types that inference replaced by others."""
        found: dict[str, Expr] = {}
        for given, arg in zip(declared_types(self.graph), self.graph.body.args, strict=True):
            before, after = declared_dims(given), known_dims_of(arg.type)
            if before is None or after is None or len(before) != len(after):
                continue
            for old, new in zip(before, after, strict=True):
                name = None if old is None else old.symbol
                if name is not None and new.symbol != name:
                    found[name] = new
        return found

    def _ports(self, pairs: Iterable[tuple[str, SSAValue]]) -> tuple[Port, ...]:
        found: list[Port] = []
        for name, value in pairs:
            fact = self.tensors.of(value.type)
            found.append(Port(name, Tensor(str(value.type), None) if fact is None else fact.tensor))
        return tuple(found)

    def _name_symbols(self, inputs: tuple[Port, ...], nodes: list[NodeProfile]) -> None:
        """Records the meaning of every symbol in an amount."""
        named: dict[str, str] = {}
        dims = [(d, f"dim {k} of input {p.name}") for p in inputs for k, d in enumerate(p.tensor.dims or ())]
        # A dim equal to the symbol describes it better than a dim with a longer expression.
        for dim, where in sorted(dims, key=lambda pair: pair[0].symbol is None):
            for name in sorted(dim.symbols):
                named.setdefault(name, where)
        used: dict[str, str] = {}
        seen: set[tuple[int, Expr]] = set()
        for node in nodes:
            cost = node.cost
            if (id(cost), node.times) in seen:
                continue
            seen.add((id(cost), node.times))
            for name in symbols_of((node.times, cost.macs, cost.flops, cost.moved, cost.activations)):
                used.setdefault(name, named.get(name) or self.symbols.get(name) or f"a size that {node.name} finds")
        # Symbols of inputs first, in a caller's order.
        self.symbols = {n: used[n] for n in (*(n for n in named if n in used), *sorted(set(used) - set(named)))}

    # -- the walk ----------------------------------------------------------------------------------------------------

    def _block(self, block: Block, inside: tuple[str, ...], times: Expr) -> list[NodeProfile]:
        """Returns the nodes of a graph that runs `times` times in a run of the model."""
        found: list[NodeProfile] = []
        for op in ops_of(block):
            if not isinstance(op, OnnxOp):
                continue
            if op.name == "onnx.Constant":
                self.constants.add(op)
            elif self.constants.fold(op):
                self.folded += 1
            else:
                node = self._node(op, inside, times)
                found.append(node)
                if op.regions:
                    found += self._graphs(op, (*inside, node.name), times)
        return found

    def _node(self, op: OnnxOp, inside: tuple[str, ...], times: Expr) -> NodeProfile:
        key = self._key(op)
        alike = None if key is None else self.alike.get(key)
        if alike is None:
            alike = self._of_types(op)
            if key is not None:
                self.alike[key] = alike
        return NodeProfile(
            name=self._name(op),
            op=alike.op,
            modules=module_chain(op),
            inside=inside,
            times=times,
            cost=alike.cost,
            weights=self._weights(op),
            inputs=alike.inputs,
            outputs=alike.outputs,
            uncounted=alike.uncounted,
        )

    def _of_types(self, op: OnnxOp) -> _Alike:
        cost, uncounted = self._cost(op)
        operands = [v for v in op.operands if v not in self.constants.known]
        inputs, outputs = (
            [f.tensor for v in values if (f := self.tensors.of(v.type))] for values in (operands, op.results)
        )
        return _Alike(op.qualified_name, cost, uncounted, tuple(inputs), tuple(outputs))

    def _weights(self, op: OnnxOp) -> tuple[WeightUse, ...]:
        """Returns the constants among the operands."""
        constants = self.constants
        known, operands = constants.known, op.operands
        return tuple([constants.use(value, op, k) for k, value in enumerate(operands) if value in known])

    def _key(self, op: OnnxOp) -> object | None:
        """Returns a key for the cost of a node, for ops whose costs need only types and attributes: layers are alike.
        Types and attributes live as long as their nodes, so identity distinguishes them. Names of attributes are
        text, so the key is unambiguous without separators."""
        plain = self.plain.get(type(op))
        if plain is None:
            spec = spec_of(op)
            plain = spec is not None and (spec.kind in BY_TYPES or op.qualified_name in PRODUCTS)
            # All ops without a schema share one class.
            plain = self.plain[type(op)] = plain and type(op) is not CustomOp
        if not plain:
            return None
        known = self.constants.known
        key: list[object] = [type(op)]
        if op.attributes:
            key += op.attributes
            key += map(id, op.attributes.values())
        for value in op.operands:
            constant = known.get(value)
            key += (-1 if constant is None else constant.nbytes, id(value.type))
        key += [id(result.type) for result in op.results]
        return tuple(key)

    def _cost(self, op: OnnxOp) -> tuple[Cost, str]:
        """Returns the cost of one execution, and the reason if its arithmetic is unknown."""
        count = count_op(op, self._size)
        uncounted = count.uncounted
        if uncounted and (op.domain, op.op_type) in self.calls:
            uncounted = f"{op.qualified_name}: a function of the model that could not be put in the place of its call"
        written = known_sum(count.writes)
        return Cost(count.macs, count.flops, known_sum(count.reads) + written, written), uncounted

    def _size(self, value: SSAValue) -> TensorSize | None:
        constant = self.constants.known.get(value)
        if constant is not None:
            return TensorSize(Expr.of(constant.elements), Expr.of(constant.nbytes))
        fact = self.tensors.of(value.type)
        return None if fact is None else fact.size

    def _name(self, op: OnnxOp) -> str:
        """Returns the node's name; without one, its op and a number."""
        if op.node_name:
            return op.node_name
        number = self.unnamed[op.op_type] = self.unnamed.get(op.op_type, 0) + 1
        return f"{op.op_type}_{number}"

    # -- graphs of nodes ---------------------------------------------------------------------------------------------

    def _graphs(self, op: OnnxOp, inside: tuple[str, ...], times: Expr) -> list[NodeProfile]:
        names = [*op.graph_names, *(str(k) for k in range(len(op.graph_names), len(op.regions)))]
        trips = self._trips(op, inside)
        found: list[list[NodeProfile]] = []
        for name, region in zip(names, op.regions, strict=False):
            once = op.qualified_name in STEPS and name != "decoder"
            where = (*inside[:-1], f"{inside[-1]}.{name}")
            found.append(self._block(region.block, where, times if once else times * trips))
        if op.op_type == "If" and op.domain == "" and len(found) == 2:
            found = self._choose(op, inside[-1], names, found)
        return [node for graph in found for node in graph]

    def _choose(
        self, op: OnnxOp, label: str, names: list[str], branches: list[list[NodeProfile]]
    ) -> list[list[NodeProfile]]:
        """Returns the branches of an If, with 0 times for the uncounted one."""
        condition = constant_value(op.operands[0])
        flops = [summed(n.total for n in nodes).flops for nodes in branches]
        if condition is not None and condition.size == 1:
            taken = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
            chosen, why = names.index(taken), "its condition is constant"
        else:
            chosen = 0 if self.sizes.value(flops[0], WORK) >= self.sizes.value(flops[1], WORK) else 1
            why = f"it has more FLOPs than {names[1 - chosen]} ({flops[chosen]} and {flops[1 - chosen]})"
        self.notes.append(f"If {label}: {names[chosen]} counts, for {why}")
        other = [replace(n, times=ZERO) for n in branches[1 - chosen]]
        return [branches[0], other] if chosen == 0 else [other, branches[1]]

    def _trips(self, op: OnnxOp, inside: tuple[str, ...]) -> Expr:
        """Returns the runs of a node's graph for each execution of the node."""
        kind, found = op.qualified_name, runs_of(op)
        if found is not None:
            if kind == "Loop":
                for name in found.symbols - symbols_of(known(op, 0) or ()):
                    self.symbols.setdefault(name, f"iterations of {kind} {op.node_name}")
            return found
        base = "steps" if kind in STEPS else "trips"
        name = base
        for number in count(1):
            if name not in self.symbols and name not in self.own:
                break
            name = f"{base}_{number}"
        what = "tokens that {} makes" if kind in STEPS else "iterations of {}"
        self.symbols[name] = what.format(f"{kind} {'/'.join(inside)}")
        return Expr.of(name)
