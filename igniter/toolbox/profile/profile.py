"""The form of a profile: the cost of every node, and tables of them by node, op type, module and in total.

Amounts are expressions in the symbols of the model, and stay expressions after substitution of sizes (`Profile.at`): a
table with numbers is the table with symbols whose expressions are all constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from igniter.dialects.sym.expr import ONE, ZERO, Expr, Monomial
from igniter.toolbox.object_html import amount, profile_html

Shape = tuple[Expr, ...]


@dataclass(frozen=True)
class Tensor:
    """A value: the name of its element type in ONNX (`float16`), and its dims; `None` where the rank is not known."""

    element: str
    dims: Shape | None

    def __str__(self) -> str:
        if self.dims is None:
            return "?"
        numbers = all(d.constant is not None for d in self.dims)
        return ("x" if numbers else " x ").join(_dim(d) for d in self.dims) or "scalar"

    def at(self, sizes: Mapping[str, Expr]) -> Tensor:
        return self if self.dims is None else Tensor(self.element, tuple(d.substitute(sizes) for d in self.dims))


@dataclass(frozen=True)
class Sparsity:
    """Zeros of a weight. `pattern` is the largest block covering nearly all of them, `64x1` or `2:4`; "" for none."""

    zeros: int
    elements: int
    pattern: str = ""
    blocks: float = 0.0
    """The share of all-zero blocks of the pattern."""
    subnormal: int = 0
    """The number of subnormal elements, which slow many CPUs down."""

    @property
    def ratio(self) -> float:
        """The share of zero elements, 0 to 1."""
        return self.zeros / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class WeightUse:
    """A constant operand of a node. Equal keys are one constant, counted once in sums."""

    key: object
    name: str
    tensor: Tensor
    parameters: int
    """Learned elements: 0 for scalars, and for constants of i64, bool or text (shapes or choices)."""
    nbytes: int
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class Cost:
    """Work and traffic. Bytes are of ONNX's storage: elements of less than a byte are packed."""

    macs: Expr = ZERO
    """Multiply-adds of sums of products."""
    flops: Expr = ZERO
    """Scalar operations: two for each of `macs`, and those of the table in docs/how-to/profile.md."""
    moved: Expr = ZERO
    """The traffic to memory without caches, in bytes: operands, weights, and results."""
    activations: Expr = ZERO
    """Bytes of written results."""

    def __mul__(self, count: Expr) -> Cost:
        return self if count == ONE else self._each(lambda e: e * count)

    def at(self, sizes: Mapping[str, Expr]) -> Cost:
        """Returns the cost at the given sizes."""
        return self._each(lambda e: e.substitute(sizes))

    def _each(self, change: Callable[[Expr], Expr]) -> Cost:
        return Cost(change(self.macs), change(self.flops), change(self.moved), change(self.activations))

    @property
    def intensity(self) -> float | str | None:
        """FLOPs for each byte moved, as a number or a quotient of expressions; `None` where nothing is moved."""
        flops, moved = self.flops.constant, self.moved.constant
        if moved == 0:
            return None
        if flops is not None and moved is not None:
            return flops / moved
        return f"({self.flops}) / ({self.moved})"


@dataclass(frozen=True)
class NodeProfile:
    """One node; `cost` is the cost of one execution, and `times` the number of executions in a run of the model."""

    name: str
    op: str
    """The qualified op, `com.microsoft.Attention`."""
    modules: tuple[str, ...]
    """The modules around the node, outermost first, each by its whole name."""
    inside: tuple[str, ...]
    """The graphs around the node, outermost first: `decoder.body`."""
    times: Expr
    cost: Cost
    weights: tuple[WeightUse, ...]
    inputs: tuple[Tensor, ...]
    """The non-constant operands."""
    outputs: tuple[Tensor, ...]
    uncounted: str = ""
    """The reason if the arithmetic of the node is unknown; its bytes are counted as far as shapes are known."""

    @property
    def element(self) -> str:
        """The element type of the factors of products: the type of the first non-constant operand."""
        tensors = (*self.inputs, *(w.tensor for w in self.weights), *self.outputs)
        return tensors[0].element if tensors else ""

    @property
    def total(self) -> Cost:
        """The cost of all its executions."""
        return self.cost * self.times


@dataclass(frozen=True)
class Row:
    """One line of a table: a node, or several together."""

    name: str
    op: str
    nodes: int
    cost: Cost
    parameters: int
    weight_bytes: int
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    times: Expr = ONE
    uncounted: str = ""
    sparsity: Sparsity | None = None

    @property
    def memory(self) -> Expr:
        """Bytes of weights and of results."""
        return self.cost.activations + self.weight_bytes

    def to_dict(self) -> dict[str, Any]:
        """Converts the row to JSON values: numbers, and texts for amounts with symbols."""
        found: dict[str, Any] = {
            "name": self.name,
            "op": self.op,
            "nodes": self.nodes,
            "macs": plain(self.cost.macs),
            "flops": plain(self.cost.flops),
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "activation_bytes": plain(self.cost.activations),
            "memory_bytes": plain(self.memory),
            "moved_bytes": plain(self.cost.moved),
            "intensity": self.cost.intensity,
        }
        if self.inputs or self.outputs:
            found["inputs"] = [tensor_dict(t) for t in self.inputs]
            found["outputs"] = [tensor_dict(t) for t in self.outputs]
            found["times"] = plain(self.times)
        if self.uncounted:
            found["uncounted"] = self.uncounted
        if self.sparsity is not None:
            found["sparsity"] = {
                "zeros": self.sparsity.zeros,
                "elements": self.sparsity.elements,
                "subnormal": self.sparsity.subnormal,
                "ratio": self.sparsity.ratio,
                "pattern": self.sparsity.pattern,
                "blocks": self.sparsity.blocks,
            }
        return found


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    tensor: Tensor


@dataclass(frozen=True)
class Profile:
    """The profile of a model. `nodes` run for every input, in the order of the graph."""

    nodes: tuple[NodeProfile, ...]
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    constant_nodes: int = 0
    """Nodes without a dependence on inputs: they are computed once, when a runtime loads the model, and cost nothing
    here."""
    symbols: Mapping[str, str] = field(default_factory=dict[str, str])
    """The meaning of each symbol in the amounts: `dim of input_ids`, `iterations of loop`."""
    aliases: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    """Symbols of the model with their equals in every valid run."""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        total = self.total
        symbols = f", in {', '.join(self.symbols)}" if self.symbols else ""
        return (
            f"<Profile: {total.nodes} nodes, {amount(total.cost.macs)} MACs, {total.parameters:,} parameters{symbols}>"
        )

    def _repr_html_(self) -> str:
        """Returns the table of ops, for notebooks."""
        return profile_html(self)

    # -- tables ------------------------------------------------------------------------------------------------------

    def by_node(self) -> list[Row]:
        """Returns a row for each node, all its executions together."""
        return [
            _row("/".join((*n.inside, n.name)), n.op, (n,), n.inputs, n.outputs, n.times, n.uncounted)
            for n in self.nodes
        ]

    def by_type(self) -> list[Row]:
        """Returns a row for each op, in the order of first occurrence."""
        return [_row(op, op, nodes) for op, nodes in _grouped((n.op, n) for n in self.nodes).items()]

    def by_module(self, depth: int = 0) -> list[Row]:
        """Returns a row for each module, nodes of its parts included, down to `depth` parts; 0 shows all. "" has nodes
        in no module."""
        pairs = ((m, n) for n in self.nodes for m in (n.modules[: depth or None] or ("",)))
        return [_row(name, "", nodes) for name, nodes in _grouped(pairs).items()]

    @property
    def total(self) -> Row:
        """The whole model, each weight once."""
        return _row("Total", "", self.nodes)

    # -- sizes -------------------------------------------------------------------------------------------------------

    def at(self, sizes: Mapping[str, int]) -> Profile:
        """Returns the profile with these sizes of symbols; other symbols stay."""
        if not sizes:
            return self
        found = self._with({name: Expr.of(value) for name, value in sizes.items()})
        left = {name: meaning for name, meaning in self.symbols.items() if name not in sizes}
        return replace(found, symbols=left)

    def _with(self, values: Mapping[str, Expr]) -> Profile:
        # Equal nodes share costs and tensors. These live as long as the profile: each is substituted once.
        costs: dict[int, Cost] = {}
        shapes: dict[int, Tensor] = {}

        def cost_at(cost: Cost) -> Cost:
            return costs.get(id(cost)) or costs.setdefault(id(cost), cost.at(values))

        def put(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple([shapes.get(id(t)) or shapes.setdefault(id(t), t.at(values)) for t in tensors])

        nodes = tuple(
            replace(
                n,
                times=n.times.substitute(values),
                cost=cost_at(n.cost),
                inputs=put(n.inputs),
                outputs=put(n.outputs),
            )
            for n in self.nodes
        )
        ports = [tuple(Port(p.name, p.tensor.at(values)) for p in given) for given in (self.inputs, self.outputs)]
        return replace(self, nodes=nodes, inputs=ports[0], outputs=ports[1])

    def to_dict(self) -> dict[str, Any]:
        """Converts all tables to JSON values."""
        return {
            "total": self.total.to_dict(),
            "nodes": [r.to_dict() for r in self.by_node()],
            "types": [r.to_dict() for r in self.by_type()],
            "modules": [r.to_dict() for r in self.by_module()],
            "constant_nodes": self.constant_nodes,
            "symbols": dict(self.symbols),
            "notes": list(self.notes),
        }


def summed(costs: Iterable[Cost]) -> Cost:
    """Returns the sum, in time linear in the terms."""
    # Equal nodes share their cost: each is visited once.
    alike: dict[int, tuple[Cost, int]] = {}
    for cost in costs:
        alike[id(cost)] = cost, alike[id(cost)][1] + 1 if id(cost) in alike else 1
    sums: tuple[dict[Monomial, int], ...] = ({}, {}, {}, {})
    for cost, count in alike.values():
        for found, e in zip(sums, (cost.macs, cost.flops, cost.moved, cost.activations), strict=True):
            for monomial, c in e.terms:
                found[monomial] = found.get(monomial, 0) + c * count
    return Cost(*(Expr(s) for s in sums))


def plain(e: Expr) -> int | str:
    """Returns a constant's number, or the text of another expression."""
    value = e.constant
    return str(e) if value is None else value


def tensor_dict(tensor: Tensor) -> dict[str, Any]:
    """Returns the JSON values of a tensor."""
    return {
        "element": tensor.element,
        "dims": None if tensor.dims is None else [plain(d) for d in tensor.dims],
    }


def _row(
    name: str,
    op: str,
    listed: Sequence[NodeProfile],
    inputs: tuple[Tensor, ...] = (),
    outputs: tuple[Tensor, ...] = (),
    times: Expr = ONE,
    uncounted: str = "",
) -> Row:
    weights = {w.key: w for n in listed for w in n.weights}
    return Row(
        name,
        op,
        len(listed),
        listed[0].total if len(listed) == 1 else summed(n.total for n in listed),
        sum(w.parameters for w in weights.values()),
        sum(w.nbytes for w in weights.values()),
        inputs,
        outputs,
        times,
        uncounted or "; ".join(dict.fromkeys(n.uncounted for n in listed if n.uncounted)),
        _merged([w.sparsity for w in weights.values() if w.sparsity is not None]),
    )


def _merged(found: list[Sparsity]) -> Sparsity | None:
    """Returns the sparsity of several weights: their total zeros, and the pattern of the weight with the most."""
    if not found:
        return None
    most = max(found, key=lambda s: s.zeros)
    zeros, elements, subnormal = (
        sum(s) for s in zip(*((s.zeros, s.elements, s.subnormal) for s in found), strict=True)
    )
    return Sparsity(zeros, elements, most.pattern, most.blocks, subnormal)


def _grouped(pairs: Iterable[tuple[str, NodeProfile]]) -> dict[str, list[NodeProfile]]:
    groups: dict[str, list[NodeProfile]] = {}
    for key, node in pairs:
        groups.setdefault(key, []).append(node)
    return groups


def _dim(dim: Expr) -> str:
    text = str(dim)
    return text if dim.symbol is not None or dim.constant is not None else f"({text})"
