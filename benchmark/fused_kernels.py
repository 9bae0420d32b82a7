"""Memory-bound kernels beside ONNX Runtime, on the same inputs in one interleaved run.

    python -m benchmark.fused_kernels [--threads 1 2] [--rounds 60] [--only NAME] [--json]

Every case is a small ONNX model as exporters write it. It is timed as Igniter compiles it, as ORT runs it with all its
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

    def model(self, inputs: dict[str, Sequence[int | str]], output: str, shape: Sequence[int | str]) -> onnx.ModelProto:
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


def bias_gelu(rows: int, width: int) -> Case:
    def build(fused: bool) -> onnx.ModelProto:
        g = Graph()
        if fused:
            y = g.op("BiasGelu", "x", g.weight(width), domain="com.microsoft")
        else:
            s = g.op("Add", "x", g.weight(width))
            e = g.op("Erf", g.op("Div", s, g.constant(np.float32(2**0.5))))
            y = g.op("Mul", g.op("Mul", s, g.op("Add", e, g.constant(np.float32(1)))), g.constant(np.float32(0.5)))
        return g.model({"x": ["n", width]}, y, ["n", width])

    return Case("bias + Gelu", f"{rows}x{width}", build(False), values(x=(rows, width)), 8 * rows * width, build(True))


def residual_layernorm(rows: int, width: int) -> Case:
    def build(fused: bool) -> onnx.ModelProto:
        g = Graph()
        if fused:
            y = g.op(
                "SkipLayerNormalization", "x", "r", g.weight(width), g.weight(width), domain="com.microsoft",
                epsilon=1e-5,
            )  # fmt: skip
        else:
            y = g.op("LayerNormalization", g.op("Add", "x", "r"), g.weight(width), g.weight(width))
        return g.model({"x": ["b", "n", width], "r": ["b", "n", width]}, y, ["b", "n", width])

    feeds = values(x=(1, rows, width), r=(1, rows, width))
    return Case("residual + LayerNorm", f"{rows}x{width}", build(False), feeds, 12 * rows * width, build(True))


def mask_softmax(heads: int, length: int) -> Case:
    g = Graph()
    s = g.op("Div", "x", g.constant(np.float32(8)))
    y = g.op("Softmax", g.op("Add", s, "mask"), axis=-1)
    model = g.model({"x": ["b", heads, "s", "t"], "mask": ["b", 1, 1, "t"]}, y, ["b", heads, "s", "t"])
    feeds = values(x=(1, heads, length, length), mask=(1, 1, 1, length))
    return Case("mask + softmax", f"{heads}x{length}x{length}", model, feeds, 8 * heads * length * length)


def rmsnorm_swiglu(rows: int, width: int) -> Case:
    g = Graph()
    square = g.op("Mul", "x", "x")
    mean = g.op("ReduceMean", square, g.constant(np.array([-1])), keepdims=1)
    root = g.op("Sqrt", g.op("Add", mean, g.constant(np.float32(1e-6))))
    normal = g.op("Mul", g.op("Div", "x", root), g.weight(width))
    y = g.op("Mul", g.op("Mul", normal, g.op("Sigmoid", normal)), "u")
    model = g.model({"x": ["n", width], "u": ["n", width]}, y, ["n", width])
    return Case(
        "RMSNorm + SwiGLU", f"{rows}x{width}", model, values(x=(rows, width), u=(rows, width)), 12 * rows * width
    )


def chain(length: int, elements: int) -> Case:
    g = Graph()
    v = "x"
    for k in range(length):
        kind = ("Add", "Mul", "Sub", "Max", "Relu")[k % 5]
        v = g.op(kind, v) if kind == "Relu" else g.op(kind, v, g.weight(1))
    return Case(
        f"chain of {length}", f"{elements}", g.model({"x": ["n"]}, v, ["n"]), values(x=(elements,)), 8 * elements
    )


def transpose_add(rows: int, columns: int) -> Case:
    g = Graph()
    y = g.op("Add", g.op("Transpose", "x", perm=[1, 0]), "y")
    model = g.model({"x": ["n", "m"], "y": ["m", "n"]}, y, ["m", "n"])
    feeds = values(x=(rows, columns), y=(columns, rows))
    return Case("transpose + add", f"{rows}x{columns}", model, feeds, 12 * rows * columns)


def column_sum(rows: int, columns: int) -> Case:
    g = Graph()
    y = g.op("ReduceSum", "x", g.constant(np.array([0])), keepdims=0)
    return Case(
        "column sum", f"{rows}x{columns}", g.model({"x": ["n", "m"]}, y, ["m"]), values(x=(rows, columns)),
        4 * rows * columns,
    )  # fmt: skip


def channels_layernorm(channels: int, length: int, back: bool) -> Case:
    """A normalisation of what a convolution leaves, where the channels are not the last axis."""
    g = Graph()
    rows = g.op("Transpose", g.op("Add", "x", "r"), perm=[0, 2, 1])
    y = g.op("LayerNormalization", rows, g.weight(channels), g.weight(channels))
    if back:
        y = g.op("Transpose", y, perm=[0, 2, 1])
    shape = ["b", channels, "n"]
    model = g.model({"x": shape, "r": shape}, y, shape if back else ["b", "n", channels])
    feeds = values(x=(1, channels, length), r=(1, channels, length))
    name = "LayerNorm, channels" if back else "LayerNorm, to rows"
    return Case(name, f"{channels}x{length}", model, feeds, 12 * channels * length)


def channels_softmax(channels: int, length: int) -> Case:
    g = Graph()
    shape = ["b", channels, "n"]
    model = g.model({"x": shape}, g.op("Softmax", "x", axis=1), shape)
    feeds = values(x=(1, channels, length))
    return Case("softmax, channels", f"{channels}x{length}", model, feeds, 8 * channels * length)


def cases() -> list[Case]:
    found: list[Case] = []
    for rows, width in ((8, 512), (128, 768), (128, 3072), (2048, 3072)):
        found.append(bias_gelu(rows, width))
    for rows, width in ((8, 512), (128, 768), (1024, 768), (4096, 1024)):
        found += [residual_layernorm(rows, width), rmsnorm_swiglu(rows, width)]
    found += [mask_softmax(heads, length) for heads, length in ((4, 32), (12, 128), (12, 200), (12, 512))]
    found += [chain(n, size) for n in (1, 5, 10, 25, 50, 100) for size in (4096, 98304, 1 << 22)]
    found += [transpose_add(n, m) for n, m in ((128, 64), (512, 512), (1000, 3000))]
    for channels, length in ((768, 32), (768, 128), (96, 3136), (768, 1024)):
        found += [channels_layernorm(channels, length, back) for back in (True, False)]
        found.append(channels_softmax(channels, length))
    found += [column_sum(n, m) for n, m in ((128, 768), (1024, 1024), (4096, 3000))]
    return found


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
    expected = session.run(None, feeds)[0]
    binding.bind_ortvalue_output(output, ort.OrtValue.ortvalue_from_numpy(np.empty_like(expected)))
    return lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]


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
    """The median seconds of each, run in turn; short ones several times a turn, long ones in fewer rounds."""
    start = time.perf_counter()
    for function in functions:
        function()
    once = (time.perf_counter() - start) / len(functions)
    repeat = max(1, min(200, int(0.002 / max(once, 1e-7))))
    rounds = max(9, min(rounds, int(1.5 / max(once * repeat * len(functions), 1e-7))))
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, times, strict=True):
            start = time.perf_counter()
            for _ in range(repeat):
                function()
            found.append((time.perf_counter() - start) / repeat)
    return [statistics.median(t) for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if not chosen.json:
        print(f"{'case':22} {'size':>12} thr {'us':>10} {'ORT':>6} {'fused':>6} {'A/A':>5} {'copy':>5} {'error':>8}")
    for threads in chosen.threads:
        for case in cases():
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


if __name__ == "__main__":
    main()
