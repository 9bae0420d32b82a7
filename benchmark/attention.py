"""Attention: Igniter on the MatMul, Softmax, MatMul that exporters write, beside ORT on the same and ORT's own op.

    python -m benchmark.attention --threads 1 2 --sequence 32 128 512 [--heads 12x64] [--rounds 15] [--json]

Each system runs in a process of its own, all in turns (`peers/race.py`), ORT twice. `fused` is com.microsoft's
MultiHeadAttention in ORT, which takes the heads side by side as (batch, sequence, heads * size) and so needs no
transposes; the decomposed graph takes the same three tensors, and so has them. The mask is added to the scores, one row
for all. The limit is the rate of multiply-adds in registers: the two products, nothing for the Softmax.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmark.beside_ort import Graph, values
from benchmark.gemm import add_race_options, open_workers
from benchmark.machine import Probes
from benchmark.peers.protocol import Task
from benchmark.peers.race import Entry, Result, Worker, race
from benchmark.table import Column, show

PEERS = ("ort", "igniter", "openvino")
FUSED = "fused"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--sequence", type=int, nargs="+", default=[32, 64, 128, 256, 384, 512, 1024, 2048])
    parser.add_argument("--heads", default="12x64", help="number x size")
    parser.add_argument("--mask", choices=["both", "with", "without"], default="both")
    add_race_options(parser, PEERS)
    chosen = parser.parse_args()
    rows = [row for threads in chosen.threads for row in measure(threads, chosen)]
    if chosen.json:
        print(json.dumps(rows, indent=2))


def measure(threads: int, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    heads, size = map(int, chosen.heads.split("x"))
    masks = {"both": (False, True), "with": (True,), "without": (False,)}[chosen.mask]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="igniter-attention-")))
        workers = open_workers(stack, chosen.peers, threads)
        workers[FUSED] = Worker("ort", threads)
        stack.callback(workers[FUSED].close)
        probes = stack.enter_context(Probes(threads, levels=()))
        columns = [Column("sequence", 14), *(Column(label, 19) for label in workers), Column("limit", 20)]
        show(columns, chosen.json)
        for masked in masks:
            plain, fused = folder / f"plain{masked}.onnx", folder / f"fused{masked}.onnx"
            onnx.save_model(decomposed(heads, size, masked), plain)
            onnx.save_model(multi_head(heads, size, masked), fused)
            for sequence in chosen.sequence:
                task = Task(
                    str(plain), feeds(heads, size, sequence, masked), threads, options={"fusion_passes": chosen.fusion}
                )
                entries = [
                    Entry(label, worker, replace(task, model=str(fused)) if label == FUSED else task)
                    for label, worker in workers.items()
                ]
                results = race(entries, rounds=chosen.rounds, seconds=chosen.seconds, between=probes.sample)
                flops = 4 * heads * sequence * sequence * size
                row = row_of(sequence, masked, threads, results, flops, probes.machine().flops["f32"])
                rows.append(row)
                show(columns, chosen.json, cells(row))
                for result in results:
                    if result.reason:
                        print(f"{result.label}: {result.reason}", file=sys.stderr)
        if not chosen.json:
            print(f"threads {threads}\n")
    return rows


def row_of(sequence: int, masked: bool, threads: int, results: list[Result], flops: int, peak: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sequence": sequence,
        "mask": masked,
        "threads": threads,
        "peak_gflops": peak / 1e9,
        "limit_us": 1e6 * flops / peak,
        "systems": {},
    }
    for result in results:
        found = result.to_dict()
        if not result.reason:
            found |= {"gflops": flops / result.median / 1e9, "share": flops / peak / result.median}
        row["systems"][result.label] = found
    return row


def cells(row: dict[str, Any]) -> list[str]:
    name = f"{row['sequence']}{' mask' if row['mask'] else ''}"
    systems = [
        f"{1e3 * s['median_ms']:.1f}us {s['gflops']:.0f} {s['share']:.0%}" if "gflops" in s else "-"
        for s in row["systems"].values()
    ]
    return [name, *systems, f"{row['limit_us']:.1f}us {row['peak_gflops']:.0f} GFLOP/s"]


def feeds(heads: int, size: int, sequence: int, masked: bool) -> dict[str, np.ndarray]:
    shape = (1, sequence, heads * size)
    made = values(q=shape, k=shape, v=shape)
    if masked:
        hidden = np.arange(sequence) >= max(1, sequence * 3 // 4)
        made["mask"] = np.where(hidden, -10000.0, 0.0).astype(np.float32).reshape(1, 1, 1, sequence)
    return made


def inputs(heads: int, size: int, masked: bool) -> dict[str, list[int | str]]:
    shape: list[int | str] = ["b", "s", heads * size]
    made: dict[str, list[int | str]] = {"q": shape, "k": shape, "v": shape}
    return {**made, "mask": ["b", 1, 1, "s"]} if masked else made


def decomposed(heads: int, size: int, masked: bool) -> onnx.ModelProto:
    """Heads split off and turned to the front, scores scaled and masked, weights, their sums turned back."""
    g = Graph()
    split = g.constant(np.array([0, 0, heads, size]))

    def turned(name: str, perm: list[int]) -> str:
        return g.op("Transpose", g.op("Reshape", name, split), perm=perm)

    scores = g.op("MatMul", turned("q", [0, 2, 1, 3]), turned("k", [0, 2, 3, 1]))
    scores = g.op("Div", scores, g.constant(np.float32(size**0.5)))
    if masked:
        scores = g.op("Add", scores, "mask")
    found = g.op("MatMul", g.op("Softmax", scores, axis=-1), turned("v", [0, 2, 1, 3]))
    y = g.op("Reshape", g.op("Transpose", found, perm=[0, 2, 1, 3]), g.constant(np.array([0, 0, heads * size])))
    return g.model(inputs(heads, size, masked), y, ["b", "s", heads * size])


def multi_head(heads: int, size: int, masked: bool) -> onnx.ModelProto:
    """ORT's own op, the mask given to it as what is added to the scores of every row."""
    g = Graph()
    taken = ["q", "k", "v"]
    if masked:
        # (batch, 1, sequence, sequence): it broadcasts over heads, not over rows.
        rows = g.op("Shape", "q", start=1, end=2)
        one = g.constant(np.array([1]))
        taken += ["", "", g.op("Expand", "mask", g.op("Concat", one, one, rows, rows, axis=0))]
    y = g.op("MultiHeadAttention", *taken, domain="com.microsoft", num_heads=heads)
    return g.model(inputs(heads, size, masked), y, ["b", "s", heads * size])


if __name__ == "__main__":
    main()
