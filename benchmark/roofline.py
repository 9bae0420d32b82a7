"""The least time that a model can take on this machine, with the rates that were just measured (`machine.py`).

    python -m benchmark.roofline --models bert-base-uncased mobilebert-uncased --sequence 32 128 --threads 1 2

A model is a list of steps, and a step takes whichever is longer, its arithmetic or its bytes; the steps are summed.
What is assumed:

* A step is a contraction (every op whose spec counts multiply-adds: MatMul, Gemm, Einsum, convolutions, Attention,
  recurrences, the integer and fused forms), and these run at the rate of independent ones in registers. One more step,
  of bytes only, is the rest.
* All else is fused into the contractions and its arithmetic is free: between them nothing is moved but what one writes
  and another reads. A contraction reads each operand once and writes its result once. An operand that is another
  tensor rearranged, repeated or converted is as small as the smallest tensor on the way.
* The rest reads the model's inputs and the weights that no contraction takes, of tables only the rows that are looked
  up, and writes the outputs that no contraction writes.
* Weights are read once a call, from the level that holds all of them together: from memory unless they fit into the
  last cache. Other tensors are read from and written to the level that holds a tensor of their size, at the bandwidth
  of reading.
* In bf16 and int8 all contractions with weights run at that rate and their weights have 2 bytes and 1; in bf16 those
  between activations do too. Activations stay f32 in memory, and what converts them is free.

Steps may overlap on a real machine, as when the next weights are fetched while this step computes, so this is a
yardstick rather than a proof; a system that is well below it makes one of the assumptions wrong.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, Block, Operation, SSAValue

import igniter
from benchmark.machine import Arithmetic, Machine, cpu, describe, measure
from benchmark.table import Column, show
from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from benchmark.models.subjects import Subject

MOVEMENT = frozenset(("Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze"))
"""Ops whose result is the first operand rearranged, repeated or converted."""
LOOK_UPS = frozenset(("Gather", "GatherElements", "GatherND"))
WEIGHT_BYTES: dict[Arithmetic, float] = {"f32": 1.0, "bf16": 0.5, "int8": 0.25}
"""Of the bytes in f32, what weights have in each precision."""


@dataclass(frozen=True)
class Step:
    """Scalar operations of one kind, bytes of weights, and the sizes of the other tensors that are read or written."""

    name: str
    flops: int
    arithmetic: Arithmetic
    weights: float
    tensors: tuple[int, ...]

    def seconds(self, machine: Machine, weight_bandwidth: float) -> float:
        moving = self.weights / weight_bandwidth + sum(machine.seconds(size) for size in self.tensors)
        return max(self.flops / machine.flops[self.arithmetic], moving) if self.flops else moving


@dataclass(frozen=True)
class Roofline:
    """A model's figures at one size on one machine: scalar operations, bytes, seconds."""

    flops: int
    weights: float
    activations: int
    seconds: float
    bound_by_arithmetic: float
    """The share of the seconds spent in steps where the arithmetic takes longer than the bytes."""


def roofline(steps: list[Step], machine: Machine) -> Roofline:
    """The sum over steps of the longer of arithmetic and bytes."""
    weights = sum(step.weights for step in steps)
    bandwidth = machine.bandwidth[machine.level(round(weights))]
    total = arithmetic = 0.0
    for step in steps:
        seconds = step.seconds(machine, bandwidth)
        total += seconds
        if step.flops and seconds <= step.flops / machine.flops[step.arithmetic]:
            arithmetic += seconds
    activations = sum(size for step in steps for size in step.tensors)
    return Roofline(sum(s.flops for s in steps), weights, activations, total, arithmetic / total if total else 0.0)


# -- a model's steps --------------------------------------------------------------------------------------------------


class Graph:
    """A model with its shapes inferred and its constants folded, to ask for its steps at several sizes."""

    def __init__(self, model: Any):
        self.module = igniter.load(model).run_passes("cpu-onnx", verify_each=False)
        self.graph: GraphOp = main_graph(self.module.ir)

    @property
    def symbols(self) -> list[str]:
        """The symbolic dims of the inputs, in order."""
        dims = [d for a in self.graph.body.args for d in dims_of(a.type)]
        return list(dict.fromkeys(symbol for d in dims for symbol in sorted(d.symbols)))

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The symbolic dims, of the shapes of the inputs."""
        found: dict[str, int] = {}
        for name, value in zip(self.graph.input_names, self.graph.body.args, strict=True):
            for dim, size in zip(_dims(value.type), shapes[name], strict=True):
                if dim.constant is None:
                    found[str(dim)] = size
        return found

    def steps(self, dims: Mapping[str, int], precision: Arithmetic = "f32") -> list[Step]:
        """The steps with those sizes; `KeyError` names a symbolic dim that has none, `ValueError` says what is not
        counted."""
        # Exporters write sums as names: "past + 1".
        sizes = {symbol: Expr.parse(symbol).evaluate(dims) for symbol in self.symbols}
        for op in self.graph.body.ops:
            if op.regions:
                raise ValueError(f"what is in {op_name(op)} is not counted")
            for symbol in sorted({s for r in op.results for d in _dims(r.type) for s in d.symbols} - set(sizes)):
                try:
                    sizes[symbol] = Expr.parse(symbol).evaluate(sizes)
                except KeyError:
                    raise ValueError(f"{symbol}, a size of what {op_name(op)} gives, hangs on values") from None
        return list(_steps(self.graph.body, CostModel(typical=sizes), precision))


def graph_of(model: Subject, folder: Path) -> Graph:
    """The graph of a model that goes by name; `folder` is for one with its sizes fixed."""
    from benchmark.peers.systems import fix_sizes

    return Graph(fix_sizes(model.file, model.feed({}), folder) if model.fixed else model.file)


def _dims(shaped: Attribute) -> Sequence[Expr]:
    tensor = as_tensor(shaped)
    return () if tensor is None or not has_dims(tensor) else dims_of(tensor)


def _steps(block: Block, cost: CostModel, precision: Arithmetic) -> Iterator[Step]:
    read: set[SSAValue] = set()
    written: set[SSAValue] = set()
    for op in block.ops:
        flops = contraction_flops(op, cost)
        if flops is None:
            continue
        weights, tensors = 0, []
        for operand in op.operands:
            source = _source(operand, cost)
            if _is_weight(source):
                # A weight that two contractions take is fetched by the first.
                weights += 0 if source in read else cost.bytes(source)
            else:
                tensors.append(cost.bytes(source))
            read.add(source)
        written.update(op.results)
        tensors += [cost.bytes(result) for result in op.results]
        arithmetic = _arithmetic(op, precision, bool(weights) or _has_weight(op, cost))
        yield Step(op_name(op), flops, arithmetic, weights * _shrinkage(op, arithmetic), tuple(tensors))
    yield _rest(block, cost, read, written)


def contraction_flops(op: Operation, cost: CostModel) -> int | None:
    """Scalar operations of a contraction, two for a multiply-add; `None` for any other op."""
    if not isinstance(op, OnnxOp) or (spec := spec_of(op)) is None or spec.macs is None:
        return None
    return cost.estimate(2 * spec.macs(op))


def _arithmetic(op: Operation, precision: Arithmetic, weighted: bool) -> Arithmetic:
    if "Integer" in op_name(op):
        return "int8"
    return precision if weighted or precision == "bf16" else "f32"


def _shrinkage(op: Operation, arithmetic: Arithmetic) -> float:
    return 1.0 if "Integer" in op_name(op) else WEIGHT_BYTES[arithmetic]


def _has_weight(op: Operation, cost: CostModel) -> bool:
    return any(_is_weight(_source(operand, cost)) for operand in op.operands)


def _rest(block: Block, cost: CostModel, read: set[SSAValue], written: set[SSAValue]) -> Step:
    """What no contraction reads or writes: inputs, tables, biases, and outputs that something is done to."""
    weights = 0
    tensors = [cost.bytes(a) for a in block.args if a not in read and a.first_use is not None]
    for op in block.ops:
        if isinstance(op, ReturnOp):
            tensors += [cost.bytes(v) for v in op.operands if v not in written]
        elif contraction_flops(op, cost) is None:
            for k, operand in enumerate(op.operands):
                if not _is_weight(operand) or operand in read:
                    continue
                if op_name(op) in LOOK_UPS and k == 0:
                    weights += min(cost.bytes(operand), cost.bytes(op.results[0]))
                else:
                    weights += cost.bytes(operand)
                    read.add(operand)
    return Step("rest", 0, "f32", weights, tuple(tensors))


def _is_weight(value: SSAValue) -> bool:
    return isinstance(value.owner, OnnxOp) and op_name(value.owner) == "Constant"


def _source(value: SSAValue, cost: CostModel) -> SSAValue:
    """The smallest tensor on the way to `value` through ops that only move data; of equal ones the first."""
    smallest = value
    while isinstance(value.owner, OnnxOp) and op_name(value.owner) in MOVEMENT:
        value = value.owner.operands[0]
        if cost.bytes(value) <= cost.bytes(smallest):
            smallest = value
    return smallest


# -- command line -----------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("model", 28),
    Column("dims", 26),
    Column("thr", 3),
    Column("GFLOP", 9),
    Column("weights MB", 10),
    Column("activ. MB", 10),
    Column("ms", 9),
    Column("arithmetic", 10),
)


def main() -> None:
    from benchmark.models.subjects import Sizes, subject

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["bert-base-uncased"], help="names as peers takes, or files")
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--sequence", type=int, nargs="+", default=[32, 128], help="or the past of a decode step")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--precision", choices=["f32", "bf16", "int8"], default="f32")
    parser.add_argument("--exporter", default="dynamo")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    machines = [measure(threads) for threads in chosen.threads]
    if not chosen.json:
        print(*map(describe, machines), sep="\n", end="\n\n")
    rows: list[dict[str, Any]] = []
    show(COLUMNS, chosen.json)
    for name in chosen.models:
        with tempfile.TemporaryDirectory(prefix="igniter-roofline-") as folder:
            if Path(name).suffix == ".onnx":
                graph, cases = Graph(name), [{"batch": b, "sequence": s} for b in chosen.batch for s in chosen.sequence]
            else:
                model = subject(name, Path(folder), Sizes(chosen.batch, chosen.sequence), chosen.exporter)
                graph, cases = graph_of(model, Path(folder)), list(model.cases)
        for dims in cases:
            steps = graph.steps(dims, chosen.precision)
            for machine in machines:
                found = roofline(steps, machine)
                rows.append({"model": name, **dims, "threads": machine.threads, **asdict(found)})
                show(COLUMNS, chosen.json, _cells(name, dims, machine.threads, found))
    if chosen.json:
        print(json.dumps({"machine": cpu(), "rates": [asdict(m) for m in machines], "rows": rows}, indent=2))


def _cells(name: str, dims: Mapping[str, int], threads: int, found: Roofline) -> list[str]:
    return [
        name,
        " ".join(f"{k} {v}" for k, v in dims.items()),
        str(threads),
        f"{found.flops / 1e9:.3f}",
        f"{found.weights / 1e6:.1f}",
        f"{found.activations / 1e6:.1f}",
        f"{1e3 * found.seconds:.3f}",
        f"{found.bound_by_arithmetic:.0%}",
    ]


if __name__ == "__main__":
    main()
