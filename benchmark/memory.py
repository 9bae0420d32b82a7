"""The memory of activations beside what no plan can go below: `python -m benchmark.memory`.

    python -m benchmark.memory [--models light_resnet50 mobilenet_v2 model.onnx] [--sizes batch=8] [--tell] [--csv]

A model is taken through the passes of a compile with default options as far as `plan-buffers`, which gives every
buffer its place, and no code is made. What passes between kernels is an activation, and what a kernel works in lives
during its call; both are in the one arena of the custom op that calls the kernels. The inputs and outputs of an op are
not: they are ONNX Runtime's.

By default the models are the nine of the package `onnx` whose weights are left out, with random ones. Their batch is
one; where `--sizes` gives a `batch`, it is dynamic. Sizes are put into the finished plan, which holds for all. The
passes that made it were not told them, unless `--tell` says so: then they are what `igniter compile --sizes` gives.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import igniter
from benchmark.models.networks import NETWORKS
from benchmark.table import Column, show
from igniter.analysis.typical_sizes import module_symbols
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_loop, make_onnx, make_scheduled, nodes_left
from igniter.dialects.fusion import ProgramOp
from igniter.dialects.loop import CallOp, FuncOp
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.errors import IgniterError
from igniter.toolbox.output import parse_sizes
from igniter.transforms.scheduled.form_ort_library import describe
from igniter.transforms.scheduled.plan_buffers import BufferPlan, LiveBuffer, live_buffers

LIGHT: dict[str, Path] = {
    path.stem: path
    for path in sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("light_*.onnx"))
}
"""The models of the package `onnx`, by name."""

COLUMNS = [
    Column("model", 18),
    Column("ops", 3),
    Column("left", 4),
    Column("activations", 11),
    Column("native MB", 9),
    Column("live MB", 7),
    Column("in kernels", 10),
    Column("unshared MB", 11),
    Column("plan MB", 7),
    Column("bound MB", 8),
    Column("plan/bound", 10),
    Column("arena MB", 8),
]


@dataclass(frozen=True)
class Memory:
    """What the arenas of one or more custom ops hold, in bytes at given sizes. Of several, all but `arena` is a sum:
    `plan` is `bound` where every one of them is at its bound."""

    ops: int = 0
    activations: int = 0
    """Buffers that hold what passes between kernels."""
    native: int = 0
    """Those side by side, which takes no plan."""
    live: int = 0
    """The most of them at once."""
    in_kernels: int = 0
    """Buffers that kernels work in, one for each call that needs any."""
    unshared: int = 0
    """All buffers of the arena side by side."""
    plan: int = 0
    """The total of `plan-buffers`."""
    bound: int = 0
    """What no plan can go below: the most bytes of the arena's buffers at once."""
    arena: int = 0
    """What an op asks ONNX Runtime for. Ops run one after the other, and each gives it back: of several, the most."""

    def beside(self, other: Memory) -> Memory:
        """Both together."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Memory(**{**sums, "arena": max(self.arena, other.arena)})


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    model: str
    left: int
    """Nodes that ONNX Runtime runs, whose results are its own."""
    memory: Memory
    without_effect: frozenset[str] = frozenset()
    """The sizes that were given of symbols which the model does not have."""

    @property
    def cells(self) -> list[str]:
        m = self.memory
        ratio = f"{m.plan / m.bound:.3f}" if m.bound else ""
        return [
            self.model,
            *(str(n) for n in (m.ops, self.left, m.activations)),
            *(_megabytes(size) for size in (m.native, m.live)),
            str(m.in_kernels),
            *(_megabytes(size) for size in (m.unshared, m.plan, m.bound)),
            ratio,
            _megabytes(m.arena),
        ]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.3f}"


def light_model(name: str, dynamic: bool = False) -> onnx.ModelProto:
    """A model of the package `onnx` with random weights in the place of its `ConstantOfShape`.

    Equal values will not do: of two convolutions of one tensor with equal weights a compiler makes one. All are
    positive, as variances are. With `dynamic` the batch is the symbol `batch`.
    """
    model = onnx.load(LIGHT[name])
    graph, rng = model.graph, np.random.default_rng(0)
    weights = {w.name: w for w in graph.initializer}
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    for node in (n for n in graph.node if n.op_type == "ConstantOfShape"):
        values = rng.random(numpy_helper.to_array(weights[node.input[0]]), np.float32)
        graph.initializer.append(numpy_helper.from_array(0.01 + 0.02 * values, node.output[0]))
    if dynamic:
        for node in (n for n in nodes if n.op_type == "Reshape"):
            shape = numpy_helper.to_array(weights[node.input[1]])
            if shape[0] == 1:
                # A dim of 0 is that of the operand.
                weights[node.input[1]].CopyFrom(numpy_helper.from_array(np.array([0, *shape[1:]]), node.input[1]))
        for value in (v for v in (*graph.input, *graph.output) if v.name not in weights):
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return model


def load(name: str, dynamic: bool = False) -> igniter.Module:
    """The model called `name`, of the package `onnx` or a network that code writes out, or the one in a file."""
    if name in LIGHT:
        return igniter.load(light_model(name, dynamic))
    return igniter.load(NETWORKS[name]() if name in NETWORKS else name)


def measure(name: str, module: igniter.Module, given: Mapping[str, int], tell: bool = False) -> Row:
    """The memory of a model at the sizes that are given for its symbols, and at batch 1; with `tell` the passes know
    these. `IgniterError` where a symbol has no size."""
    sizes, known = {"batch": 1, **given}, module_symbols(module.ir)
    plain = CompileOptions(sizes=tuple((s, n) for s, n in sizes.items() if s in known and tell))
    # A region alone becomes a program too, so that all arenas are in the symbols of the graph; it takes as much.
    programs = f"{plain.pipelines.programs},form-programs{{alone=true}}"
    c = Compilation(module.ir, replace(plain, program_passes=programs), module.ctx)
    make_onnx(c)
    without_effect = frozenset(given) - module_symbols(c.module)
    for stage in (make_fusion, make_loop, make_scheduled):
        stage(c)
    labels = {op.label for op in c.module.walk() if isinstance(op, ProgramOp)}
    funcs = [op for op in c.module.ops if isinstance(op, FuncOp) and op.sym_name.data in labels]
    missing = sorted({symbol for func in funcs for symbol in func.symbol_names} - sizes.keys())
    if missing:
        example = ",".join(f"{symbol}=1" for symbol in missing)
        raise IgniterError(f"{name}: no size is given for {', '.join(missing)}, as --sizes {example} would")
    memory = Memory()
    for func in funcs:
        memory = memory.beside(memory_of(func, sizes))
    return Row(name, len(nodes_left(c)), memory, without_effect)


def memory_of(func: FuncOp, sizes: Mapping[str, int]) -> Memory:
    """What the arena of one planned program holds."""
    buffers = live_buffers(func)
    activations = [b for b in buffers if not _is_in_kernel(b)]
    alone, plan = _plan(activations), _plan(buffers, func.scratch_bytes)
    figures = {
        "native": alone.unshared,
        "live": alone.lower_bound,
        "unshared": plan.unshared,
        "plan": plan.total,
        "bound": plan.lower_bound,
        "arena": describe(func).scratch,
    }
    counts = {"ops": 1, "activations": len(activations), "in_kernels": len(buffers) - len(activations)}
    return Memory(**counts, **{figure: size.evaluate(sizes) for figure, size in figures.items()})


def _plan(buffers: list[LiveBuffer], total: Expr | None = None) -> BufferPlan:
    """The plan that a func has, or without `total` buffers of which only the sums are asked."""
    return BufferPlan(tuple(buffers), tuple(b.alloc.offset or ZERO for b in buffers), total or ZERO)


def _is_in_kernel(buffer: LiveBuffer) -> bool:
    """Whether it is the memory that a kernel works in."""
    value = buffer.alloc.result
    return any(isinstance(use.operation, CallOp) and use.operation.scratch is value for use in value.uses)


def write_csv(rows: list[Row]) -> None:
    """A line for every model, in bytes."""
    writer = csv.writer(sys.stdout)
    writer.writerow(["model", "left", *(f.name for f in fields(Memory))])
    for row in rows:
        writer.writerow([row.model, row.left, *asdict(row.memory).values()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join((*LIGHT, *NETWORKS))
    parser.add_argument("--models", nargs="+", default=list(LIGHT), help=f"files, or {names}")
    parser.add_argument("--sizes", default="", help="of symbols, as in batch=8,seq=128; a batch is 1")
    parser.add_argument("--tell", action="store_true", help="tell the passes the sizes as well")
    parser.add_argument("--csv", action="store_true", help="bytes, for other programs")
    chosen = parser.parse_args()
    for name in chosen.models:
        if name not in LIGHT and name not in NETWORKS and not Path(name).is_file():
            parser.error(f"there is no file and no model called '{name}'; there are {names}")
    try:
        given = parse_sizes(chosen.sizes)
    except IgniterError as error:
        parser.error(str(error))
    show(COLUMNS, chosen.csv)
    rows: list[Row] = []
    for name in chosen.models:
        try:
            row = measure(name, load(name, dynamic="batch" in given), given, chosen.tell)
        except IgniterError as error:
            print(error, file=sys.stderr)
            continue
        rows.append(row)
        show(COLUMNS, chosen.csv, row.cells)
        if row.without_effect:
            print(f"{name} has no symbol {', '.join(sorted(row.without_effect))}", file=sys.stderr)
    if chosen.csv:
        write_csv(rows)
    if len(rows) < len(chosen.models):
        sys.exit(1)


if __name__ == "__main__":
    main()
