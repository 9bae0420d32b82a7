"""One kernel on the bench: scheduled in several ways, checked against its semantics, timed in turns.

The interpreter of the structured level (`igniter.verification.interp.structured`) gives the expected results; every
version is compared with them before it is timed. Versions take turns with a loop of multiply-adds in registers and with
one that reads as many bytes as the kernel accesses, so that shares of the core's peak refer to the same minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.machine import TYPICAL as TYPICAL_MACHINE
from igniter.analysis.machine import MachineModel, pass_figures
from igniter.analysis.scheduled.loop_accesses import loop_range, trip_count
from igniter.analysis.structured.nest_counts import count_nest
from igniter.analysis.typical_sizes import WORK, TypicalSizes, typical_of
from igniter.api import load
from igniter.context import IgniterContext
from igniter.dialects.loop import ForOp, FuncOp, IfOp, KernelOp, TileProductOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.requirements import FINE
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.schedules.expected_time import Bound, expected_times
from igniter.schedules.loop_cost import body_cycles, iteration_cycles, tile_cycles
from igniter.targets import backend_for
from igniter.toolbox.roofs import is_passed
from igniter.transforms.scheduled.loop_rewrites import is_version
from igniter.verification.check_inputs import TypedInput, random_arrays, sizes_without_empties
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.structured import bind, run_kernel
from igniter.verification.judgement import compare_output

if TYPE_CHECKING:
    from igniter.targets import CompiledFunc, Listing, Target

    Array: TypeAlias = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 24
"""The limit of elements in a tensor of a kernel without given sizes: several symbols in a product are smaller."""

ATTEMPTS = 3
"""The number of times that a study is taken while the machine is disturbed."""

DISTURBED_NOISE = 0.2
"""The least noise of a disturbed machine. On a quiet one a version differs from itself by a few percent."""

LONG_ENOUGH = 2e-3
"""The least duration of a turn: a kernel of microseconds runs several times in it."""


@dataclass(frozen=True)
class Version:
    """A kernel with one schedule."""

    name: str
    kernel: KernelOp
    """The structured kernel, with the schedules of all nests."""
    func: FuncOp
    listing: Listing


@dataclass(frozen=True)
class VersionResult:
    """The result of a version: `error` is the largest, relative to the largest magnitude of its output."""

    name: str
    error: float
    seconds: float
    """The median of its turns."""
    ratio: float
    """The ratio of its time to the first version's, the median over the rounds."""
    peak_share: float | None
    """Its operations a second relative to multiply-adds in registers in the same rounds."""
    read_share: float
    """Its bytes a second relative to reads of a buffer of the same size."""


@dataclass(frozen=True)
class Study:
    """The results for a kernel."""

    sizes: dict[str, int]
    operations: int
    """The operations on floats; a function counts as one."""
    bytes: int
    """The bytes of inputs and outputs, each once."""
    noise: float
    """The distance of the first version from itself in the same rounds."""
    versions: list[VersionResult]

    def __repr__(self) -> str:
        at = ", ".join(f"{name}={size}" for name, size in self.sizes.items()) or "fixed sizes"
        shown = [f"{v.name} {v.seconds * 1e3:.4g} ms ({v.ratio:.2f}x)" for v in self.versions]
        return f"<Study at {at}: {', '.join(shown)}, noise {self.noise:.1%}>"

    @property
    def is_noisy(self) -> bool:
        """True if the first version differs from itself by more than schedules usually differ."""
        return self.noise > DISTURBED_NOISE

    @property
    def is_disturbed(self) -> bool:
        """True if the clock or the load of the machine changed: a large noise, or a version above its roof."""
        return self.is_noisy or any(is_passed(version.peak_share) for version in self.versions)


# -- finding a kernel -------------------------------------------------------------------------------------------------


def find_kernel(
    model: str | PathLike[str], name: str, machine: MachineModel, *, or_only: bool = False, chosen_by: str = "--kernel"
) -> KernelOp:
    """Returns the kernel called `name` of a model (`.onnx`) or of IR (`.mlir`), structured; with one kernel, ""
    suffices.

    The pipelines of the machine's backend create the kernels of a model, and of IR without kernels. With `or_only`, a
    single kernel is accepted under any name. `IgniterError` lists the kernels if the name is unknown, after the option
    or argument `chosen_by` that takes it.
    """
    _, kernels = kernels_in(model, machine)
    found = kernels.get(name)
    if found is None and len(kernels) == 1 and (or_only or not name):
        (found,) = kernels.values()
    if found is None:
        listed = ", ".join(f"{k} ({_told(kernel)})" for k, kernel in kernels.items())
        raise IgniterError(
            f"{model} has {'no kernel ' + repr(name) if name else 'several kernels'}; {chosen_by}: {listed}"
        )
    found.detach()
    return found


def kernels_in(
    model: str | PathLike[str], machine: MachineModel, sizes: Mapping[str, int] | None = None
) -> tuple[ModuleOp, dict[str, KernelOp]]:
    """Returns a model (`.onnx`) or IR (`.mlir`) with its structured kernels by name, formed for typical `sizes`; raises
    `IgniterError` if it has none."""
    module = load(model)
    try:
        module.ir.verify()
    except VerifyException as error:
        raise IgniterError(f"{model}: {error}") from error
    if any(op.name == "func.func" for op in module.ir.walk()):
        module.run_passes("lower-linalg-to-loop")
    kernels = _kernels(module.ir)
    if not kernels and not any(isinstance(op, FuncOp) for op in module.ir.ops):
        own = backend_for(machine.name).pipelines
        ctx = module.ctx.on(machine, None, sizes)
        _run(ctx, module.ir, f"{own.onnx},{own.fusion},{own.loop}", machine)
        kernels = _kernels(module.ir)
    if not kernels:
        scheduled = any(isinstance(op, FuncOp) for op in module.ir.ops)
        reason = "its kernels are scheduled already: give the structured ones" if scheduled else "no node was fused"
        raise IgniterError(f"{model} has no kernel to schedule: {reason}")
    return module.ir, kernels


def _kernels(module: ModuleOp) -> dict[str, KernelOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


def _told(kernel: KernelOp) -> str:
    labels = [op.label for op in kernel.computations]
    return ", ".join(labels[:4]) + (f" and {len(labels) - 4} more" if len(labels) > 4 else "")


def _run(ctx: IgniterContext, module: ModuleOp, pipeline: str, machine: MachineModel) -> None:
    run_passes(ctx.on(machine), module, parse_passes(pipeline, pass_figures([machine])))


# -- versions ---------------------------------------------------------------------------------------------------------


def schedule(name: str, kernel: KernelOp, target: Target, machine: MachineModel | None = None) -> Version:
    """Schedules a kernel by the backend's pipeline: nests with a schedule keep it, the others get its author's, for
    `machine` (by default the target's own)."""
    backend = backend_for(target.name)
    machine = machine or backend.machine_for(target)
    choosing, behind = backend.around_schedules()
    ctx = IgniterContext()
    module = ModuleOp([kernel.clone()])
    _run(ctx, module, choosing, machine)
    structured = _kernels(module)[kernel.sym_name.data].clone()
    _run(ctx, module, behind, machine)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    return version_of(name, structured, func, target)


def version_of(name: str, kernel: KernelOp, func: FuncOp, target: Target) -> Version:
    """Returns a structured kernel and its scheduled form, with the machine code."""
    return Version(name, kernel, func, backend_for(target.name).listing(func, target))


def expected_seconds(version: Version, sizes: Mapping[str, int], machine: MachineModel) -> tuple[float, Bound] | None:
    """Returns the model's expected seconds of a version on one core, and the bound of the group of nests with most of
    them; `None` for a kernel with procedures, whose steps it does not count."""
    if len(version.kernel.nests) < len(version.kernel.computations):
        return None
    known = TypicalSizes(tuple(sizes.items()))
    found = expected_times(version.kernel, machine, known)
    cycles = [known.value(each.cycles, WORK) for each in found]
    if not cycles:
        return None
    return sum(cycles) / machine.clock_ghz / 1e9, found[cycles.index(max(cycles))].bound


def operations_of(kernel: KernelOp, sizes: Mapping[str, int]) -> int:
    """Counts the operations on floats in the nests; a function counts as one. Each point counts its body's operations,
    and one for its addition to a result. Procedures (recurrences, sorting) are not counted."""
    counts = [count_nest(nest, TypicalSizes(tuple(sizes.items()))) for nest in kernel.nests]
    return sum(count.points.evaluate(sizes) * (count.body.floats + count.folds) for count in counts)


# -- the study --------------------------------------------------------------------------------------------------------


def choose_sizes(kernel: KernelOp, given: Mapping[str, int]) -> dict[str, int]:
    """Returns sizes for the symbols: those given, or typical of the kernel; for the others at most `WORK` if the kernel
    accepts them, otherwise small ones without empty tensors. Raises `IgniterError` for an unknown symbol, or for
    refused sizes."""
    names = kernel.symbol_names
    unknown = sorted(set(given) - set(names))
    if unknown:
        known = ", ".join(names) or "none"
        raise IgniterError(f"kernel @{kernel.sym_name.data} has no symbol '{unknown[0]}'; it has: {known}")
    given, typical = {**dict(typical_of(kernel).given), **given}, WORK
    sizes = {name: given.get(name, typical) for name in names}
    while typical > 2 and _largest(kernel, sizes) > MOST_ELEMENTS:
        typical //= 2
        sizes = {name: given.get(name, typical) for name in names}
    if _holds(kernel, sizes):
        return sizes
    sizes |= sizes_without_empties([a.type for a in kernel.block.args], list(kernel.walk()), kernel.requires, given)
    broken = [r for r in kernel.requires if r.symbols <= set(sizes) and not r.holds(sizes)]
    if broken:
        shown = ", ".join(f"{n}={s}" for n, s in sizes.items())
        raise IgniterError(f"kernel @{kernel.sym_name.data} does not run at {shown}: {broken[0].text}: {broken[0]}")
    return sizes


def _largest(kernel: KernelOp, sizes: Mapping[str, int]) -> int:
    """Returns the elements of the largest tensor; a tensor with dims unknown from `sizes` is ignored."""
    found = [value.type for op in kernel.block.ops for value in (*op.operands, *op.results)]
    dims = [d for d in map(dims_of, found) if all(e.symbols <= sizes.keys() for e in d)]
    return max((product(d).evaluate(dict(sizes)) for d in dims), default=0)


def _holds(kernel: KernelOp, sizes: Mapping[str, int]) -> bool:
    return all(r.holds(sizes) for r in kernel.requires if r.symbols <= set(sizes))


def study(
    kernel: KernelOp,
    versions: Sequence[Version],
    target: Target,
    *,
    sizes: Mapping[str, int] | None = None,
    threads: int = 1,
    rounds: int = 9,
    seed: int = 0,
) -> Study:
    """Runs `versions` of `kernel` on the same random inputs and times them in turns, the first twice.

    A study of a disturbed machine is taken again, and after `ATTEMPTS` the one with the least noise counts. Raises
    `IgniterError` if a version has other inputs or results than the kernel, or computes other values.
    """
    chosen = choose_sizes(kernel, sizes or {})
    inputs = inputs_for(kernel, chosen, seed)
    wanted = run_kernel(kernel, inputs, chosen)
    size = sum(a.nbytes for a in (*inputs, *wanted))
    runs: list[Callable[[], object]] = []
    errors: list[float] = []
    for version in versions:
        run, outputs = _prepared(kernel, version, target, inputs, chosen, threads)
        errors.append(largest_error(version.name, wanted, outputs))
        runs.append(run)
    peak = _peak(kernel)
    turns = [long_enough(run) for run in (*runs, runs[0], _reading(size), *([peak[0]] if peak is not None else []))]
    taken: list[Study] = []
    while not taken or (taken[-1].is_disturbed and len(taken) < ATTEMPTS):
        taken.append(_compared(kernel, versions, errors, turns, peak, rounds, threads, chosen, size))
    return min(taken[::-1], key=lambda found: found.noise) if taken[-1].is_disturbed else taken[-1]


def _compared(
    kernel: KernelOp,
    versions: Sequence[Version],
    errors: Sequence[float],
    turns: Sequence[tuple[Callable[[], float], int]],
    peak: tuple[Callable[[], object], int] | None,
    rounds: int,
    threads: int,
    chosen: dict[str, int],
    size: int,
) -> Study:
    """Times the versions, the first again, and the roofs in turns."""
    times = interleaved([run for run, _ in turns], rounds)
    seconds = [[t / repeats for t in found] for found, (_, repeats) in zip(times, turns, strict=True)]
    operations = operations_of(kernel, chosen)
    count = len(versions)
    first, again, reading = seconds[0], seconds[count], seconds[count + 1]
    results = [
        VersionResult(
            version.name,
            error,
            statistics.median(own),
            median_ratio(own, first),
            None if peak is None else operations / peak[1] / threads / median_ratio(own, seconds[count + 2]),
            1 / median_ratio(own, reading) / threads,
        )
        for version, error, own in zip(versions, errors, seconds, strict=False)
    ]
    return Study(chosen, operations, size, abs(median_ratio(again, first) - 1), results)


def inputs_for(kernel: KernelOp, sizes: Mapping[str, int], seed: int) -> list[Array]:
    """Returns random inputs, reproducible from the seed."""
    specs = [TypedInput(f"input {n}", a.type) for n, a in enumerate(kernel.block.args)]
    return [np.asarray(a, order="C") for a in random_arrays(specs, sizes, seed)]


def median_ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """Returns the median over the rounds of one's time to the other's."""
    return statistics.median(a / b for a, b in zip(times, others, strict=True))


def _prepared(
    kernel: KernelOp, version: Version, target: Target, inputs: Sequence[Array], sizes: Mapping[str, int], threads: int
) -> tuple[Callable[[], object], list[Array]]:
    """Returns a version as a function without arguments, and the results of a first run, over garbage."""
    if len(version.kernel.block.args) != len(inputs):
        taken, given = len(version.kernel.block.args), len(inputs)
        raise IgniterError(f"{version.name} takes {taken} inputs, and @{kernel.sym_name.data} {given}")
    try:
        # By place: another version may have other names of symbols.
        own = bind(version.kernel, inputs, {n: sizes[n] for n in version.kernel.symbol_names if n in sizes})
    except InterpreterError as error:
        raise IgniterError(f"{version.name} does not take the inputs of @{kernel.sym_name.data}: {error}") from error
    compiled, outputs = first_run(version.name, version.func, target, inputs, own, threads)
    symbols = {name: own[name] for name in version.func.symbol_names}
    count = len(outputs) - len(version.func.checks)
    return compiled.prepared([*inputs, *outputs], symbols, threads), outputs[:count]


def first_run(
    name: str, func: FuncOp, target: Target, inputs: Sequence[Array], sizes: Mapping[str, int], threads: int
) -> tuple[CompiledFunc, list[Array]]:
    """Returns a scheduled kernel, and its results over garbage, with the results of its checks last: all passed."""
    outputs: list[Array] = []
    for arg in func.block.args[len(inputs) :]:
        shape = [d.evaluate(dict(sizes)) for d in dims_of(arg.type)]
        outputs.append(np.full(shape, 1, BY_ATTR[element_of(arg.type)].dtype))
    compiled = backend_for(target.name).compile_func(func, target)
    compiled(*inputs, *outputs, threads=threads, **{name: sizes[name] for name in func.symbol_names})
    count = len(outputs) - len(func.checks)
    for check, found in zip(func.checks, outputs[count:], strict=True):
        if found != FINE:
            raise IgniterError(f"{name} refuses inputs that the kernel takes: {check.text}")
    return compiled, outputs


def outputs_of(kernel: KernelOp, func: FuncOp, target: Target, inputs: Sequence[Any], threads: int = 1) -> list[Array]:
    """Returns the results of a scheduled kernel for arrays of its inputs; each is converted to the type of the input.
    Raises `IgniterError` if they do not fit."""
    taken = kernel.block.args
    if len(taken) != len(inputs):
        raise IgniterError(f"kernel @{kernel.sym_name.data} takes {len(taken)} inputs, not {len(inputs)}")
    arrays = [np.asarray(a, BY_ATTR[element_of(t.type)].dtype, order="C") for a, t in zip(inputs, taken, strict=True)]
    try:
        sizes = bind(kernel, arrays, {})
    except InterpreterError as error:
        raise IgniterError(f"kernel @{kernel.sym_name.data} does not take these inputs: {error}") from error
    _, outputs = first_run(f"@{kernel.sym_name.data}", func, target, arrays, sizes, threads)
    return outputs[: len(outputs) - len(func.checks)]


def largest_error(name: str, wanted: Sequence[Array], outputs: Sequence[Array]) -> float:
    """Returns the largest error of the results; raises `IgniterError` for one above rounding."""
    if len(wanted) != len(outputs):
        raise IgniterError(f"{name} has {len(outputs)} results, not {len(wanted)}")
    worst = 0.0
    for index, (want, got) in enumerate(zip(wanted, outputs, strict=True)):
        found = compare_output(f"result {index}", want, got)
        if not found.ok:
            raise IgniterError(f"{name} computes something else: {found.name}: {found.reason}")
        worst = max(worst, found.max_error)
    return worst


# -- timing -----------------------------------------------------------------------------------------------------------


def _peak(kernel: KernelOp) -> tuple[Callable[[], object], int] | None:
    """Returns multiply-adds in registers and their number of operations; `None` for a kernel without sums of f32."""
    if not any(isinstance(r.type, Float32Type) for nest in kernel.nests for op in nest.block.ops for r in op.results):
        return None
    backend = backend_for("native")
    found = backend.rates().peak("f32")
    if found is None:
        return None
    func, operations = found
    return func.prepared([np.zeros(backend.machine_for("native").vector_bytes, np.uint8)], {}), operations


def _reading(size: int) -> Callable[[], object]:
    """Returns a function that reads a buffer of that size once."""
    rounded = max(512, -(-size // 512) * 512)
    buffer = np.full(rounded // 4, 1, np.int32)
    return backend_for("native").rates().reader(rounded).prepared([buffer, np.zeros(64, np.uint8)], {"repeats": 1})


def long_enough(run: Callable[[], object]) -> tuple[Callable[[], float], int]:
    """Returns a turn of `run`, which returns its seconds, and the number of runs in it: enough for the clock's
    resolution. A run on a device has a clock of its own (`seconds`)."""
    run()
    measured: Callable[[int], float] | None = getattr(run, "seconds", None)

    def timed(repeats: int) -> float:
        if measured is not None:
            return measured(repeats)
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        return time.perf_counter() - start

    repeats = max(1, round(LONG_ENOUGH / max(1e-7, timed(1))))
    return lambda: timed(repeats), repeats


def interleaved(turns: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Returns the seconds of every turn of each of `turns`; each round begins with another one."""
    times: list[list[float]] = [[] for _ in turns]
    for turn in range(rounds):
        for k in range(len(turns)):
            place = (k + turn) % len(turns)
            times[place].append(turns[place]())
    return times


# -- the loop tree ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeLoop:
    """A loop of a scheduled kernel: its depth, its text, and its share of the time by `loop_cost`."""

    depth: int
    text: str
    share: float


def loop_tree(func: FuncOp, sizes: Mapping[str, int], machine: MachineModel = TYPICAL_MACHINE) -> list[TreeLoop]:
    """Returns the loops of a scheduled kernel that run at these sizes, outermost first, with their costs on `machine`.

    A bound that depends on an outer loop is evaluated at that loop's start.
    """
    found: list[TreeLoop] = []
    # Only the variant that runs at these sizes.
    versions = [op.block for op in func.block.ops if is_version(op) and isinstance(op, IfOp) and _runs(op, sizes)]
    blocks = versions or [func.block]
    total = max(1, sum(_evaluated(body_cycles(block, machine), sizes) for block in blocks))
    for block in blocks:
        _grow(found, block, 0, 1, total, sizes, machine)
    return found


def _runs(op: IfOp, sizes: Mapping[str, int]) -> bool:
    return all(guard.evaluate(dict(sizes)) >= 0 for guard in op.guards)


def _grow(
    found: list[TreeLoop],
    block: Block,
    depth: int,
    times: int,
    total: int,
    sizes: Mapping[str, int],
    machine: MachineModel,
) -> None:
    for op in block.ops:
        if isinstance(op, ForOp):
            trips = _evaluated(trip_count(op), sizes)
            if trips == 0:
                continue
            cycles = times * trips * _evaluated(iteration_cycles(op, machine), sizes)
            first, end = loop_range(op)
            notes = [f"step {op.step}"] * (op.step != 1) + ["threads"] * (op.grain is not None)
            notes += ["reduction"] * op.is_reduction + ["sequential"] * op.is_sequential
            text = f"{op.axis} = {first} to {end}" + "".join(f", {note}" for note in notes)
            found.append(TreeLoop(depth, text, cycles / total))
            _grow(found, op.block, depth + 1, times * trips, total, sizes, machine)
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _grow(found, inner, depth, times, total, sizes, machine)
            if isinstance(op, TileProductOp):
                cycles = times * _evaluated(tile_cycles(op, machine), sizes)
                found.append(TreeLoop(depth, "micro-kernel", cycles / total))


def _evaluated(expr: Expr, sizes: Mapping[str, int]) -> int:
    return max(0, expr.evaluate({**dict.fromkeys(expr.symbols, 0), **sizes}))
