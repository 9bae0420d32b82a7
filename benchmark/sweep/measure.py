"""One graph of the sweep: compile it, compare it with ONNX Runtime, time the two in turns."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

import igniter
from benchmark.beside_ort import options
from benchmark.sweep.graph import SYMBOLIC, Feeds, Graph, Made
from igniter.runtime.turns import orders
from igniter.targets import described_machines
from igniter.verification.judgement import Noise, compare_output

Row = dict[str, Any]
FAILED, OK, REFUSED = "FAILED", "ok", "refused"
"""`refused` is a graph that ONNX Runtime itself does not run."""
SYSTEMS = ("igniter", "ort", "again")
"""Igniter, ONNX Runtime, and ONNX Runtime once more: the A/A control."""
KERNELS = "default{points=off}"
"""The fusion author that compiles a region also where measured points leave it to ONNX Runtime."""
FEWEST_ROUNDS = 4
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}


@dataclass(frozen=True)
class Setting:
    """The settings that all graphs of a run share."""

    threads: int = 1
    target: str = "native"
    seed: int = 0
    seconds: float = 0.6
    """The limit of the timed runs of one graph; a graph of which a run takes longer gets `FEWEST_ROUNDS`."""
    clock: str = "wall"
    cache: bool = False
    verify: bool = False
    kernels: bool = False
    """True to compile a region also where measured points leave it to ONNX Runtime."""
    measured: bool = False
    """True for compiles that measure, at the sizes that are timed here."""

    @property
    def author(self) -> str:
        """The fusion author; "" is Igniter's own, with measured points."""
        return KERNELS if self.kernels else ""


def measure(graph: Graph, form: str, setting: Setting) -> Row:
    """Returns the row of a graph; a failure is a row with the status `FAILED` and the reason."""
    row: Row = {
        "name": graph.name, "group": graph.group, "form": form, "seed": setting.seed, "target": setting.target,
        "threads": setting.threads, "clock": setting.clock, "kernels": setting.kernels, "measured": setting.measured,
        "status": FAILED, **origin(),
    }  # fmt: skip
    made = graph.make(form, setting.seed)
    feeds = made.feeds()
    row["shapes"] = {name: list(value.shape) for name, value in feeds.items()}
    try:
        theirs = made_session(made, setting.threads)
        plain = made_session(made, setting.threads, optimised=False)
    except Exception as error:  # ONNX Runtime's errors have no common base
        return row | {"status": REFUSED, "reason": f"ONNX Runtime refuses the graph: {error}"}
    with tempfile.TemporaryDirectory(prefix="igniter-sweep-") as folder:
        begin = time.perf_counter()
        try:
            artifact = igniter.compile(
                made.model,
                Path(folder) / "case",
                target=setting.target,
                cache=setting.cache,
                verify=setting.verify,
                fusion_author=setting.author,
                **measuring(made, form, setting),
            )
            row["compile_seconds"] = round(time.perf_counter() - begin, 3)
            row |= counts(artifact.report)
            ours = artifact.session(sess_options=options(setting.threads))
        except Exception as error:  # whatever stops a compile is what the sweep is to find
            return row | {"reason": f"{type(error).__name__}: {error}"}
        row |= compared(made, form, ours, theirs, plain)
        if row["status"] == OK:
            row |= timed((ours, theirs, made_session(made, setting.threads)), feeds, setting)
    return row


def measuring(made: Made, form: str, setting: Setting) -> dict[str, Any]:
    """The arguments of a compile that measures; none for a plain one."""
    if not setting.measured:
        return {}
    return {"measure": True, "threads": setting.threads, "shapes": [made.sizes] if form == SYMBOLIC else None}


def origin() -> Row:
    """The versions, the CPU and the day of a measurement."""
    return {
        "igniter": igniter.__version__,
        "onnxruntime": ort.__version__,
        "cpu": cpu(),
        "date": datetime.now(UTC).date().isoformat(),
    }


@cache
def cpu() -> str:
    """The name of this machine's CPU."""
    return str(described_machines("native", None)[0].cpu)


def made_session(made: Made, threads: int, optimised: bool = True) -> ort.InferenceSession:
    """Returns ONNX Runtime's session of a graph."""
    chosen = options(threads)
    if not optimised:
        chosen.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(made.model.SerializeToString(), chosen, providers=["CPUExecutionProvider"])


def counts(report: Mapping[str, Any]) -> Row:
    """The number of regions and of nodes that stay with ONNX Runtime."""
    left = report.get("left_to_onnxruntime") or ()
    return {
        "nodes": report.get("nodes_before"),
        "regions": report.get("regions"),
        "left": sum(int(item.get("count", 1)) for item in left),
        "left_ops": sorted({str(item.get("op")) for item in left}),
    }


# -- comparison --------------------------------------------------------------------------------------------------------


def compared(
    made: Made, form: str, ours: ort.InferenceSession, theirs: ort.InferenceSession, plain: ort.InferenceSession
) -> Row:
    """The largest error of the outputs, at the timed sizes and for the symbolic form at others too.

    ONNX Runtime's own noise is allowed for: its results without optimisations (`plain`), and with inputs that differ
    by one rounding.
    """
    names = [output.name for output in theirs.get_outputs()]
    row: Row = {"status": OK, "error": 0.0}
    cases = [made.sizes]
    if form == SYMBOLIC and made.sizes:
        cases.append(made.other_sizes())
    for seed, sizes in enumerate(cases):
        feeds = made.feeds(sizes, seed)
        try:
            want = theirs.run(names, feeds)
            others = [plain.run(names, feeds), plain.run(names, nudged(feeds))]
        except Exception as error:  # ONNX Runtime's errors have no common base
            if seed == 0:
                return {"status": REFUSED, "reason": f"ONNX Runtime does not run the graph: {error}"}
            # The other sizes do not fit this graph (a reshape to constants, for example).
            continue
        try:
            got = ours.run(names, feeds)
        except Exception as error:
            return {"status": FAILED, "reason": f"at {sizes}: {type(error).__name__}: {error}"}
        for k, name in enumerate(names):
            found = compare_output(name, want[k], got[k], noise=Noise([other[k] for other in others]))
            row["error"] = max(row["error"], found.max_error)
            if found.says_nothing:
                row["unclear"] = f"{name} at {sizes}: {found.reason}"
            elif not found.ok:
                return {"status": FAILED, "error": found.max_error, "reason": f"{name} at {sizes}: {found.reason}"}
    return row


def nudged(feeds: Feeds) -> Feeds:
    """Returns inputs whose floats are moved by one unit in the last place."""
    rng = np.random.default_rng(1)
    return {
        name: np.nextafter(v, np.where(rng.random(v.shape) < 0.5, -np.inf, np.inf).astype(v.dtype))
        if v.dtype.kind == "f"
        else v
        for name, v in feeds.items()
    }


# -- time --------------------------------------------------------------------------------------------------------------


def timed(sessions: Sequence[ort.InferenceSession], feeds: Feeds, setting: Setting) -> Row:
    """Medians and minima of the systems in turns, in microseconds, and the ratios to ONNX Runtime's."""
    found = turns([bound(session, feeds) for session in sessions], setting.seconds, CLOCKS[setting.clock])
    times = {name: [1e6 * t for t in runs] for name, runs in zip(SYSTEMS, found, strict=True)}
    middle = {name: statistics.median(runs) for name, runs in times.items()}
    least = {name: min(runs) for name, runs in times.items()}
    return {
        "rounds": len(found[0]),
        "igniter_us": round(middle["igniter"], 2),
        "ort_us": round(middle["ort"], 2),
        "ratio": round(middle["igniter"] / middle["ort"], 4),
        "control": round(middle["again"] / middle["ort"], 4),
        "igniter_least_us": round(least["igniter"], 2),
        "ort_least_us": round(least["ort"], 2),
        "least_ratio": round(least["igniter"] / min(least["ort"], least["again"]), 4),
        "least_control": round(least["again"] / least["ort"], 4),
    }


def bound(session: ort.InferenceSession, feeds: Feeds) -> Callable[[], None]:
    """Returns a run with inputs and outputs in place."""
    binding = session.io_binding()
    # The binding does not keep the memory that it reads and writes.
    kept: list[Any] = [ort.OrtValue.ortvalue_from_numpy(feeds[item.name]) for item in session.get_inputs()]
    for item, value in zip(session.get_inputs(), list(kept), strict=True):
        binding.bind_ortvalue_input(item.name, value)
    for item, result in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        array = np.empty_like(result)
        value = ort.OrtValue.ortvalue_from_numpy(array)
        kept += [array, value]
        binding.bind_ortvalue_output(item.name, value)

    def run(_kept: object = kept) -> None:
        session.run_with_iobinding(binding)

    return run


def turns(
    functions: Sequence[Callable[[], object]], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """The seconds of each, in turns of an order of their own; short ones run several times a turn.

    It ends after `seconds`, but not before `FEWEST_ROUNDS`.
    """
    begin = time.perf_counter()
    for function in functions:
        function()
    once = (time.perf_counter() - begin) / len(functions)
    repeat = max(1, min(100, int(0.001 / max(once, 1e-7))))
    found: list[list[float]] = [[] for _ in functions]
    for order in orders(len(functions)):
        if time.perf_counter() - begin > seconds and min(map(len, found)) >= FEWEST_ROUNDS:
            break
        for k in order:
            start = clock()
            for _ in range(repeat):
                functions[k]()
            took = clock() - start
            if took > 0:  # The clock of a thread may stand still for as long as a tick of the kernel.
                found[k].append(took / repeat)
    return found
