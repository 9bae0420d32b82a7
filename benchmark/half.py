"""Models in f16 beside ONNX Runtime: `python -m benchmark.half [--models bert mobilenet] [--layers 12] [--threads 1]`.

Runs alternate, A, B, A, B, so that what else the machine does falls on both; figures are medians of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

import igniter
from benchmark.models.half import bert, to_half
from benchmark.models.vision import mobilenet_v2
from benchmark.table import Column, show
from igniter.runtime.session import make_session

COLUMNS = [
    Column(*c)
    for c in (
        ("model", 16),
        ("threads", 7),
        ("ORT ms", 9),
        ("Igniter ms", 10),
        ("ratio", 6),
        ("nodes", 6),
        ("error", 8),
        ("ORT's error", 11),
    )
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["bert", "mobilenet"], choices=["bert", "mobilenet"])
    parser.add_argument("--layers", type=int, default=12, help="of BERT")
    parser.add_argument("--length", type=int, default=128, help="of BERT's sequences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    show(COLUMNS, False)
    rng = np.random.default_rng(0)
    for name in args.models:
        single = bert(args.layers) if name == "bert" else mobilenet_v2()
        model = to_half(single)
        if name == "bert":
            ids = rng.integers(0, 2048, (1, args.length))
            feed: dict[str, Any] = {"ids": ids, "mask": np.ones_like(ids)}
        else:
            feed = {"x": rng.standard_normal((1, 3, 224, 224)).astype(np.float16)}
        compare(f"{name} f16", model, single, feed, args.threads, args.runs)


def compare(
    name: str, model: onnx.ModelProto, single: onnx.ModelProto, feed: dict[str, Any], threads: int, runs: int
) -> None:
    """Prints the times of both on `feed`, and the largest error of each against the model in f32."""
    artifact = igniter.compile(model, verify=False)
    ours = artifact.session(intra_op_num_threads=threads)
    theirs = make_session(model.SerializeToString(), intra_op_num_threads=threads)
    wide = {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in feed.items()}
    (exact,) = make_session(single.SerializeToString(), intra_op_num_threads=threads).run(None, wide)
    scale = float(np.abs(exact).max())
    errors = [float(np.abs(s.run(None, feed)[0].astype(np.float32) - exact).max()) / scale for s in (ours, theirs)]
    pairs = alternate(lambda: ours.run(None, feed), lambda: theirs.run(None, feed), runs)
    ratio = statistics.median(b / a for a, b in pairs)
    ms = [f"{1000 * statistics.median(p[k] for p in pairs):.1f}" for k in (1, 0)]
    left = str(artifact.report["nodes_after"])
    show(COLUMNS, False, [name, str(threads), *ms, f"{ratio:.2f}", left, *(f"{e:.1e}" for e in errors)])


def alternate(first: Callable[[], Any], second: Callable[[], Any], runs: int) -> list[tuple[float, float]]:
    """The seconds of both, taken in turn."""
    found: list[tuple[float, float]] = []
    for k in range(runs + 2):
        times: list[float] = []
        for run in (first, second):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        if k >= 2:
            found.append((times[0], times[1]))
    return found


if __name__ == "__main__":
    main()
