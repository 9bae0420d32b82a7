"""One MatMul with a constant right operand: Igniter, ORT, OpenVINO and oneDNN beside the machine's own limits.

    python -m benchmark.gemm --threads 1 2 --m 1 32 128 --kn 768x768 768x3072 [--rounds 15] [--json]

Each system runs in a process of its own, all in turns (`peers/race.py`), ORT twice. The limit of a product of 32 rows
and more is the rate of multiply-adds in registers; of fewer, the bandwidth of reading a buffer of the size of the
weights, which lies in a cache here and in memory in a model. Both are sampled in every round. What a call costs is in
all figures; the first row of a table, a product of 1x8x8, is nothing else.

`--fusion` is the passes with which Igniter forms regions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmark.beside_ort import Graph, values
from benchmark.machine import Probes
from benchmark.peers.protocol import Task
from benchmark.peers.race import Entry, Result, Worker, labelled, race
from benchmark.table import Column, show

SHAPES = ("768x768", "768x3072", "3072x768", "512x128", "128x512", "768x30522", "64x128", "770x333")
PEERS = ("ort", "igniter", "openvino", "torch")
CALL = (1, 8, 8)
"""A product of nothing to speak of: what a call costs."""
ROWS_BOUND_BY_ARITHMETIC = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--m", type=int, nargs="+", default=[1, 8, 32, 128, 384, 1000], help="rows")
    parser.add_argument("--kn", nargs="+", default=list(SHAPES), help="shapes of the constant operand")
    add_race_options(parser, PEERS)
    chosen = parser.parse_args()
    products = [CALL, *((m, *map(int, kn.split("x"))) for kn in chosen.kn for m in chosen.m)]
    rows: list[dict[str, Any]] = []
    for threads in chosen.threads:
        rows += measure(products, threads, chosen)
    if chosen.json:
        print(json.dumps(rows, indent=2))


def add_race_options(parser: argparse.ArgumentParser, peers: tuple[str, ...]) -> None:
    """The options that the benchmarks of single ops share."""
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a turn")
    parser.add_argument("--peers", nargs="+", default=list(peers), help=f"of {', '.join(peers)}; ORT takes part anyway")
    parser.add_argument("--fusion", default="cpu-fusion", help="the passes with which Igniter forms regions")
    parser.add_argument("--json", action="store_true")


def open_workers(stack: ExitStack, peers: list[str], threads: int) -> dict[str, Worker]:
    """A process for each peer and for ORT's control, by the label in the tables; ORT comes first."""
    others = [p for p in peers if p != "ort"]
    workers = {label: Worker(peer, threads) for label, peer in labelled(others).items()}
    for worker in workers.values():
        stack.callback(worker.close)
    return workers


def measure(products: list[tuple[int, int, int]], threads: int, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    said: set[str] = set()
    weights = [4 * k * n for _, k, n in products]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="igniter-gemm-")))
        workers = open_workers(stack, chosen.peers, threads)
        columns = [Column("MxKxN", 16), *(Column(label, 19) for label in workers), Column("limit", 20)]
        show(columns, chosen.json)
        for (m, k, n), size in zip(products, weights, strict=True):
            model = folder / f"{m}x{k}x{n}.onnx"
            onnx.save_model(matmul(k, n), model)
            task = Task(
                str(model),
                values(x=(m, k)),
                threads,
                torch=("benchmark.gemm:torch_linear", str(model), str(m)),
                options={"fusion_passes": chosen.fusion},
            )
            with Probes(threads, levels=(), buffers=[size]) as probes:
                entries = [Entry(label, worker, task) for label, worker in workers.items()]
                results = race(entries, rounds=chosen.rounds, seconds=chosen.seconds, between=probes.sample)
                peak, reading = probes.machine().flops["f32"], probes.reading(size)
            row = row_of((m, k, n), threads, results, peak, reading)
            rows.append(row)
            show_row(columns, row, chosen.json)
            for result in results:
                if result.reason and result.reason not in said:
                    said.add(result.reason)
                    print(f"{result.label}: {result.reason}", file=sys.stderr)
        if not chosen.json:
            print(f"threads {threads}\n")
    return rows


def row_of(
    product: tuple[int, int, int], threads: int, results: list[Result], peak: float, reading: float
) -> dict[str, Any]:
    """Microseconds, the rate and its share of the limit, for every system that ran."""
    m, k, n = product
    flops = 2 * m * k * n
    bound = flops / peak if m >= ROWS_BOUND_BY_ARITHMETIC else 4 * k * n / reading
    row: dict[str, Any] = {
        "product": product,
        "threads": threads,
        "peak_gflops": peak / 1e9,
        "reading_gbytes_s": reading / 1e9,
        "limit_us": 1e6 * bound,
        "systems": {},
    }
    for result in results:
        found = result.to_dict()
        if not result.reason:
            found |= {"gflops": flops / result.median / 1e9, "share": bound / result.median}
        row["systems"][result.label] = found
    return row


def show_row(columns: list[Column], row: dict[str, Any], silent: bool) -> None:
    cells = ["x".join(map(str, row["product"]))]
    for found in row["systems"].values():
        cells.append(
            f"{1e3 * found['median_ms']:.1f}us {found['gflops']:.0f} {found['share']:.0%}" if "gflops" in found else "-"
        )
    m = row["product"][0]
    rate = (
        f"{row['peak_gflops']:.0f} GFLOP/s" if m >= ROWS_BOUND_BY_ARITHMETIC else f"{row['reading_gbytes_s']:.0f} GB/s"
    )
    show(columns, silent, [*cells, f"{row['limit_us']:.1f}us {rate}"])


def matmul(k: int, n: int) -> onnx.ModelProto:
    """`x @ w` with any number of rows."""
    g = Graph()
    return g.model({"x": ["m", k]}, g.op("MatMul", "x", g.weight(k, n)), ["m", n])


def torch_linear(model: str, rows: str) -> Any:
    """The MatMul of the file as oneDNN does it, its weights packed once for that many rows.

    torch's own choice for f32 is MKL, which is slow on some CPUs.
    """
    import torch

    (weight,) = onnx.load(model).graph.initializer
    packed = torch.ops.mkldnn._reorder_linear_weight(
        torch.from_numpy(np.ascontiguousarray(onnx.numpy_helper.to_array(weight).T)), int(rows)
    )
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


if __name__ == "__main__":
    main()
