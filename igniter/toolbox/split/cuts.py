"""Splits a model into pipeline stages: costs of its nodes, two orders to cut, and the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from igniter.analysis.onnx.graph_runs import runs_of
from igniter.analysis.onnx.op_counts import flops_or_elements, size_of
from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.analysis.typical_sizes import WORK, TypicalSizes
from igniter.dialects.onnx.base import OnnxOp
from igniter.errors import IgniterError
from igniter.toolbox.edit.shape_conflicts import typed_by, values_noted
from igniter.toolbox.edit.weight_files import tensors_of
from igniter.toolbox.extract.parts import Part, Partition
from igniter.toolbox.split.balance import Cuts, best_cuts

BALANCES = ("flops", "bytes", "time")


@dataclass(frozen=True)
class Stages:
    """The stages of a model, in order. `costs` has for each its flops and bytes, and seconds if measured. `crossing`
    has the bytes sent from one to the next, including bytes only passed on."""

    parts: tuple[Part, ...]
    costs: tuple[dict[str, float], ...]
    crossing: tuple[float, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def dearest(self) -> dict[str, float]:
        """For each kind of cost, the share of the most expensive stage; 1 / stages if they are even."""
        found: dict[str, float] = {}
        for kind in self.costs[0]:
            whole = sum(c[kind] for c in self.costs)
            found[kind] = max(c[kind] for c in self.costs) / whole if whole else 0.0
        return found


def split_stages(
    module: ModuleOp,
    stages: int,
    balance: str = "flops",
    sizes: Mapping[str, int] | None = None,
    slack: float = 0.0,
    seconds: Callable[[Partition], Mapping[Operation, float]] | None = None,
) -> Stages:
    """Cuts a model into `stages` of even cost: operations, bytes of weights and results, or time measured by `seconds`.
    The default size of a symbol is 64. The most expensive stage is as cheap as possible, or up to `slack` (0.05 for 5
    %) more expensive if fewer bytes cross then."""
    if balance not in BALANCES:
        raise IgniterError(f"there is no balance '{balance}': it is one of {', '.join(BALANCES)}")
    if stages < 1:
        raise IgniterError(f"{stages} stages are none: ask for 1 at least")
    partition = Partition(module)
    if stages > len(partition.nodes):
        raise IgniterError(f"the model has {len(partition.nodes)} nodes, which do not make {stages} stages")
    costs = _node_costs(module, partition, TypicalSizes(tuple((sizes or {}).items())))
    if balance == "time":
        if seconds is None:
            raise IgniterError("'time' needs a measurement of the nodes")
        costs["time"] = dict(seconds(partition))
    chosen = costs[balance]
    size = costs.pop("size")
    found = [
        (order, crossing, best_cuts([chosen[op] for op in order], crossing, stages, slack))
        for order in (partition.nodes, late_order(partition))
        for crossing in [_crossing(partition, order, size)]
    ]
    order, crossing, cuts = min(found, key=lambda f: (_rounded(f[2]), f[2].bytes))
    edges = [0, *cuts.positions, len(order)]
    groups = [order[a:b] for a, b in pairwise(edges)]
    place = {op: i for i, op in enumerate(partition.nodes)}
    groups = [sorted(g, key=lambda op: place[op]) for g in groups]
    parts = partition.parts(groups, [f"stage{i}" for i in range(stages)])
    return Stages(
        tuple(parts),
        tuple({kind: sum(table[op] for op in g) for kind, table in costs.items()} for g in groups),
        tuple(crossing[p] for p in cuts.positions),
        tuple(partition.graph.input_names),
        tuple(partition.graph.output_names),
    )


def _rounded(cuts: Cuts) -> float:
    return float(f"{cuts.dearest:.9g}")


def _node_costs(module: ModuleOp, partition: Partition, sizes: TypicalSizes) -> dict[str, dict[Operation, float]]:
    """Returns flops and bytes of every node, and under `size` the total bytes of its results; only crossing values use
    it."""
    weights = _first_readers(partition)
    facts = infer_shapes(module)
    with typed_by(facts), values_noted(facts):
        flops: dict[Operation, float] = {op: _flops(op, sizes) for op in partition.nodes}
        size: dict[Operation, float] = {op: sum(_bytes(r, sizes) for r in op.results) for op in partition.nodes}
    return {"flops": flops, "bytes": {op: size[op] + weights.get(op, 0) for op in size}, "size": size}


def _flops(op: Operation, sizes: TypicalSizes) -> int:
    """Returns the operations of a node, including those of graphs inside it: of an If the more expensive one, of a loop
    times its runs, once where they are not known."""
    if isinstance(op, OnnxOp) and op.regions:
        inside = [sum(_flops(inner, sizes) for inner in region.block.ops) for region in op.regions]
        if op.op_type == "If":
            return max(inside)
        runs = runs_of(op)
        return sum(inside) * (1 if runs is None else max(0, sizes.value(runs, WORK)))
    found = flops_or_elements(op)
    return 0 if found is None else max(0, sizes.value(found, WORK))


def _bytes(value: SSAValue, sizes: TypicalSizes) -> int:
    size = size_of(value)
    return 0 if size is None else max(0, sizes.value(size.nbytes, WORK))


def _first_readers(partition: Partition) -> dict[Operation, int]:
    """Returns the bytes of weights of which each node is the first reader, also through values computed from weights
    alone."""
    seen: set[Operation] = set()
    found: dict[Operation, int] = {}
    for op in partition.nodes:
        pending = [v.owner for v in partition.reads[op] if isinstance(v, OpResult)]
        while pending:
            owner = pending.pop()
            if owner in seen or owner not in partition.shared:
                continue
            seen.add(owner)
            if isinstance(owner, OnnxOp):
                found[op] = found.get(op, 0) + sum(w.nbytes for w in tensors_of(owner).values())
            pending += [v.owner for v in partition.reads[owner] if isinstance(v, OpResult)]
    return found


def _crossing(partition: Partition, order: Sequence[OnnxOp], size: Mapping[Operation, float]) -> list[float]:
    """Returns the bytes that are computed before each position and read at or after it."""
    position: dict[Operation, int] = {op: i for i, op in enumerate(order)}
    last: dict[SSAValue, int] = {}
    for op in order:
        for value in partition.reads[op]:
            if value.owner in position:
                last[value] = max(last.get(value, 0), position[op])
    change = [0.0] * (len(order) + 1)
    for value, end in last.items():
        assert isinstance(value, OpResult)
        owner = value.owner
        # The results of a node with several results are assumed to have equal sizes.
        bytes_ = size[owner] / max(1, len(owner.results))
        change[position[owner] + 1] += bytes_
        change[end + 1] -= bytes_
    found: list[float] = []
    now = 0.0
    for step in change[:-1]:
        now += step
        found.append(now)
    return found


def late_order(partition: Partition) -> list[OnnxOp]:
    """Returns the nodes in the latest possible order, those without readers first: side branches come directly before
    they join."""
    done: set[Operation] = set()
    order: list[OnnxOp] = []
    own: set[Operation] = set(partition.nodes)
    roots: list[Operation] = [v.owner for _, v in partition.outputs if isinstance(v, OpResult)]
    for root in [*(op for op in partition.nodes if not any(r.first_use for r in op.results)), *roots]:
        stack: list[tuple[Operation, bool]] = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if op in done or op not in own:
                continue
            if ready:
                done.add(op)
                assert isinstance(op, OnnxOp)
                order.append(op)
                continue
            stack.append((op, True))
            stack += [(v.owner, False) for v in reversed(partition.reads[op]) if isinstance(v, OpResult)]
    return [*order, *(op for op in partition.nodes if op not in done)]
