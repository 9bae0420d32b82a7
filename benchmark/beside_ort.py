"""Small models beside ONNX Runtime, in one interleaved run: what the benchmarks of kernels share.

A case is a small ONNX model as exporters write it. It is timed as Igniter compiles it, as ORT runs it with all its
optimisations, once more as ORT (the A/A control), with ORT's own fused op where there is one, and beside a copy of as
many bytes as the case must read and write. Inputs and outputs are bound beforehand; spinning is off for all, so that
one system's waiting threads do not slow the next. Figures are ratios of medians: `ort` 2.0 means ORT takes twice as
long as Igniter.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import igniter

Feeds = dict[str, np.ndarray]
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """One model at one size; `fused` is the same with an op of ORT's own."""

    name: str
    size: str
    model: onnx.ModelProto
    feeds: Feeds
    bytes: int
    fused: onnx.ModelProto | None = None


@dataclass
class Graph:
    """A model under construction: nodes in order, initializers, dynamic first dims."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def op(self, kind: str, *inputs: str, domain: str = "", outputs: int = 1, **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        names = [name, *(f"{name}_{k}" for k in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attrs))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant((RNG.standard_normal(shape) * 0.5 + 1.0).astype(np.float32))

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def model(
        self, inputs: dict[str, Sequence[int | str]], output: str, shape: Sequence[int | str] | None
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "case",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            self.weights,
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def values(**shapes: Sequence[int]) -> Feeds:
    return {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def options(threads: int) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.intra_op_num_threads = threads
    made.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    made.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return made


def bound(session: ort.InferenceSession, feeds: Feeds) -> tuple[Callable[[], None], Callable[[], np.ndarray]]:
    """A run with its buffers in place, and how to get the result."""
    binding = session.io_binding()
    for item in session.get_inputs():
        binding.bind_ortvalue_input(item.name, ort.OrtValue.ortvalue_from_numpy(feeds[item.name]))
    output = session.get_outputs()[0].name
    # The binding does not keep the memory that it writes to.
    result = np.empty_like(session.run(None, feeds)[0])
    binding.bind_ortvalue_output(output, ort.OrtValue.ortvalue_from_numpy(result))
    return lambda: session.run_with_iobinding(binding), lambda: result


def measure(case: Case, threads: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        artifact = igniter.compile(case.model, f"{folder}/case", verify=False)
        ours = artifact.session(sess_options=options(threads))
        theirs = ort.InferenceSession(case.model.SerializeToString(), options(threads))
        again = ort.InferenceSession(case.model.SerializeToString(), options(threads))
        sessions = [ours, theirs, again]
        if case.fused is not None:
            sessions.append(ort.InferenceSession(case.fused.SerializeToString(), options(threads)))
        runs = [bound(s, case.feeds) for s in sessions]
        for run, _ in runs:
            run()
        want, got = runs[1][1](), runs[0][1]()
        error = float(np.abs(want - got).max() / max(np.abs(want).max(), 1e-30))
        source = np.ones(max(1, case.bytes // 8), np.float32)
        target = np.empty_like(source)
        functions = [*(run for run, _ in runs), lambda: np.copyto(target, source)]
        times = interleave(functions, rounds)
        report = artifact.report
    row: dict[str, Any] = {
        "case": case.name,
        "size": case.size,
        "threads": threads,
        "us": times[0] * 1e6,
        "ort": times[1] / times[0],
        "control": times[2] / times[1],
        "copy": times[-1] / times[0],
        "error": error,
        "regions": report.get("regions"),
        "nodes": report.get("nodes_after"),
    }
    if case.fused is not None:
        row["ort_fused"] = times[3] / times[0]
    return row


def interleave(functions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each, run in turn; short ones several times a turn, long ones in fewer rounds.

    Every round has an order of its own: what runs second finds the inputs in the cache.
    """
    order = np.random.default_rng(0)
    start = time.perf_counter()
    for function in functions:
        function()
    once = (time.perf_counter() - start) / len(functions)
    repeat = max(1, min(200, int(0.002 / max(once, 1e-7))))
    rounds = max(9, min(rounds, int(1.5 / max(once * repeat * len(functions), 1e-7))))
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for k in order.permutation(len(functions)):
            function, found = functions[k], times[k]
            start = time.perf_counter()
            for _ in range(repeat):
                function()
            found.append((time.perf_counter() - start) / repeat)
    return [statistics.median(t) for t in times]


def run(cases: Sequence[Case], description: str | None) -> None:
    """The command line of a benchmark: a row for every case and number of threads."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if not chosen.json:
        print(f"{'case':22} {'size':>12} thr {'us':>10} {'ORT':>6} {'fused':>6} {'A/A':>5} {'copy':>5} {'error':>8}")
    for threads in chosen.threads:
        for case in cases:
            if chosen.only not in case.name:
                continue
            row = measure(case, threads, chosen.rounds)
            rows.append(row)
            if not chosen.json:
                fused = f"{row['ort_fused']:6.2f}" if "ort_fused" in row else " " * 6
                print(
                    f"{row['case']:22} {row['size']:>12} {threads:3} {row['us']:10.1f} {row['ort']:6.2f} {fused} "
                    f"{row['control']:5.2f} {row['copy']:5.2f} {row['error']:8.1e}  regions {row['regions']}"
                    f" nodes {row['nodes']}",
                    flush=True,
                )
    if chosen.json:
        print(json.dumps(rows, indent=2))
