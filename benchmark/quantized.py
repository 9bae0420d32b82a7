"""Quantised models and models in f16 beside ONNX Runtime and, where it is installed, OpenVINO:

    python -m benchmark.quantized [--models bert-dynamic resnet-qdq ...] [--layers 12] [--threads 1] [--runs 15]

Runs alternate, so that what else the machine does falls on all; ratios are medians over the rounds. `A/A` is the ratio
of ONNX Runtime to itself, run once more in each round: what is nearer to 1 than that means nothing. `left` counts nodes
that Igniter leaves to ONNX Runtime, and `error` is the largest difference between the two, relative to the largest
value. `--clock cpu` counts the time that the calling thread has the CPU: with one thread that is what a run costs,
whatever else the machine does. OpenVINO runs in threads of its own, which it does not see, and is left out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import QuantFormat

import igniter
from benchmark.models.half import bert, to_half
from benchmark.models.quantized import dynamic, static
from benchmark.models.vision import mobilenet_v2, resnet50
from benchmark.table import Column, show
from igniter.runtime.session import make_session

SIZE = 224
"""The sides of an image."""

Clock = Callable[[], float]

CLOCKS: Mapping[str, Clock] = {"wall": time.perf_counter, "cpu": time.thread_time}

COLUMNS = [
    Column(*c)
    for c in (
        ("model", 20),
        ("threads", 7),
        ("ORT ms", 9),
        ("Igniter ms", 10),
        ("ratio", 6),
        ("A/A", 5),
        ("OpenVINO ms", 13),
        ("left", 5),
        ("error", 8),
    )
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--layers", type=int, default=12, help="of BERT")
    parser.add_argument("--length", type=int, default=128, help="of BERT's sequences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    args = parser.parse_args()
    if args.clock == "cpu" and args.threads != 1:
        parser.error("--clock cpu sees one thread only")
    show(COLUMNS, False)
    for name in args.models:
        compare(name, MODELS[name](args), feed_of(name, args), args.threads, args.runs, CLOCKS[args.clock])


MODELS: Mapping[str, Callable[[argparse.Namespace], onnx.ModelProto]] = {
    "bert-dynamic": lambda args: dynamic(bert(args.layers)),
    "resnet-qdq": lambda _: static(resnet50(SIZE), QuantFormat.QDQ, SIZE),
    "resnet-qoperator": lambda _: static(resnet50(SIZE), QuantFormat.QOperator, SIZE),
    "mobilenet-qdq": lambda _: static(mobilenet_v2(SIZE), QuantFormat.QDQ, SIZE),
    "mobilenet-qoperator": lambda _: static(mobilenet_v2(SIZE), QuantFormat.QOperator, SIZE),
    "bert-f16": lambda args: to_half(bert(args.layers)),
    "mobilenet-f16": lambda _: to_half(mobilenet_v2(SIZE)),
}


def feed_of(name: str, args: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    if name.startswith("bert"):
        ids = rng.integers(0, 2048, (1, args.length))
        return {"ids": ids, "mask": np.ones_like(ids)}
    kind = np.float16 if name.endswith("f16") else np.float32
    return {"x": rng.standard_normal((1, 3, SIZE, SIZE)).astype(kind)}


def compare(name: str, model: onnx.ModelProto, feed: dict[str, Any], threads: int, runs: int, clock: Clock) -> None:
    """Prints the row of one model."""
    artifact = igniter.compile(model, verify=False)
    ours = artifact.session(intra_op_num_threads=threads)
    theirs, again = (make_session(model.SerializeToString(), intra_op_num_threads=threads) for _ in range(2))
    systems = {name: (lambda s=s: s.run(None, feed)) for name, s in (("ort", theirs), ("ours", ours), ("again", again))}
    other = openvino_of(model, feed, threads) if clock is CLOCKS["wall"] else "not timed"
    if not isinstance(other, str):
        systems["openvino"] = other
    (got,), (wanted,) = ours.run(None, feed), theirs.run(None, feed)
    error = float(np.abs(got.astype(np.float32) - wanted.astype(np.float32)).max() / np.abs(wanted).max())
    times = in_turn(systems, runs, clock)
    ms = {n: f"{1000 * statistics.median(t):.1f}" for n, t in times.items()}
    ratio, control = (
        statistics.median(a / b for a, b in zip(times[n], times["ort"], strict=True)) for n in ("ours", "again")
    )
    left = str(len(artifact.report["left_to_onnxruntime"]))
    cells = [ms["ort"], ms["ours"], f"{ratio:.2f}", f"{control:.2f}", ms.get("openvino", str(other)), left]
    show(COLUMNS, False, [name, str(threads), *cells, f"{error:.1e}"])


def in_turn(systems: Mapping[str, Callable[[], Any]], runs: int, clock: Clock) -> dict[str, list[float]]:
    """The seconds of each system's runs, all of them in every round, in an order that turns; the first two rounds warm
    them up."""
    found: dict[str, list[float]] = {n: [] for n in systems}
    order = list(systems)
    for k in range(runs + 2):
        for name in order[k % len(order) :] + order[: k % len(order)]:
            start = clock()
            systems[name]()
            if k >= 2:
                found[name].append(clock() - start)
    return found


def openvino_of(model: onnx.ModelProto, feed: dict[str, Any], threads: int) -> Callable[[], Any] | str:
    """What runs a model in OpenVINO, with its sizes fixed; in words, why it does not."""
    try:
        import openvino
    except ImportError:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        core = openvino.Core()
        try:
            read = core.read_model(str(path))
            read.reshape({port.any_name: list(feed[port.any_name].shape) for port in read.inputs})
            settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads}
            request = core.compile_model(read, "CPU", settings).create_infer_request()
        except RuntimeError as error:
            return f"refused: {str(error).splitlines()[0][:40]}"
    for name, value in feed.items():
        request.set_tensor(name, openvino.Tensor(np.ascontiguousarray(value), shared_memory=True))
    return request.infer


if __name__ == "__main__":
    main()
