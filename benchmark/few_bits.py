"""Products with weights of few bits (MatMulNBits) in sequence: Igniter and ONNX Runtime beside the read bandwidth.

    python -m benchmark.few_bits [--kn 512x1376] [--pairs 8] [--rows 1 16 128 512] [--threads 1 2] [--block 32]
        [--bits 4] [--levels 0 4] [--zeros] [--symbol] [--rounds 15] [--json]

A model is `--pairs` pairs of products, K to N columns and back. ONNX Runtime runs it in f32 and with codes at each
accuracy level, and Igniter the latter, all in turns in one process; a figure is the least of its rounds. Beside it is
the speed over ONNX Runtime's f32, and for few rows the bytes of codes, scales and zero points read a second, also as a
share of the rate at which a loop of loads reads a buffer of that size. `--symbol` compiles for any number of rows, as a
language model is; otherwise for the number that runs. The defaults are the feed-forward products of a Llama 512 wide.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import igniter
from benchmark.machine import Probes
from benchmark.table import Column, show
from igniter.runtime.session import make_session

FEW_ROWS = 4
"""The most rows whose time is that of reading the weights."""
WARM_ROUNDS = 2
CONTRIB = "com.microsoft"
COLUMNS = [
    Column("product", 12),
    *(Column(name, 8) for name in ("rows", "threads", "level")),
    *(Column(name, 10) for name in ("f32, ms", "ORT, ms", "ms", "ORT/f32", "f32/own", "GB/s", "bandwidth")),
]


@dataclass(frozen=True)
class Codes:
    """The form of the weights."""

    bits: int
    block: int
    zeros: bool

    def operands(self, depth: int, columns: int, rng: np.random.Generator) -> list[np.ndarray | None]:
        """Random codes, scales and zero points of a matrix."""
        blocks = -(-depth // self.block)
        codes = rng.integers(0, 256, (columns, blocks, self.block * self.bits // 8), dtype=np.uint8)
        scales = (rng.uniform(0.5, 1.5, (columns, blocks)) / (2**self.bits * depth**0.5)).astype(np.float32)
        packed = (columns, -(-blocks * self.bits // 8))
        return [codes, scales, rng.integers(0, 256, packed, dtype=np.uint8) if self.zeros else None]

    def bytes(self, depth: int, columns: int) -> int:
        """The bytes of a matrix."""
        return sum(a.nbytes for a in self.operands(depth, columns, np.random.default_rng(0)) if a is not None)


@dataclass(frozen=True)
class Row:
    """The times of one setting, in milliseconds."""

    product: str
    rows: int
    threads: int
    level: int
    f32: float
    ort: float
    own: float
    rate: float
    """Bytes of weights a second."""
    bandwidth: float
    """Bytes that a loop of loads reads a second."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kn", nargs="+", default=["512x1376"])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 128, 512])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--bits", type=int, default=4, choices=(2, 4, 8))
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 4], help="accuracy levels")
    parser.add_argument("--zeros", action="store_true", help="packed zero points")
    parser.add_argument("--symbol", action="store_true", help="compile for any number of rows")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: list[Row] = []
    show(COLUMNS, asked.json)
    for kn in asked.kn:
        depth, columns = map(int, kn.split("x"))
        for rows in asked.rows:
            found += measure((depth, columns), rows, Codes(asked.bits, asked.block, asked.zeros), asked)
    if asked.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
    return 0


def measure(size: tuple[int, int], rows: int, codes: Codes, asked: argparse.Namespace) -> list[Row]:
    """Runs all systems in turns at one number of rows; prints and returns a row for each level and thread count."""
    dim = "rows" if asked.symbol else rows
    plain = model(size, asked.pairs, dim, None).SerializeToString()
    coded = {level: model(size, asked.pairs, dim, codes, level) for level in asked.levels}
    x = np.random.default_rng(1).standard_normal((rows, size[0])).astype(np.float32)
    total = asked.pairs * (codes.bytes(*size) + codes.bytes(*size[::-1]))
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="igniter-few-bits-") as folder:
        compiled = {level: igniter.compile(m, f"{folder}/{level}", verify=False) for level, m in coded.items()}
        for threads in asked.threads:
            sessions = {"f32": make_session(plain, intra_op_num_threads=threads)}
            for level, each in coded.items():
                sessions[f"ort {level}"] = make_session(each.SerializeToString(), intra_op_num_threads=threads)
                sessions[f"own {level}"] = compiled[level].session(intra_op_num_threads=threads)
            with Probes(threads, (), [total]) as probes:
                times = in_turns(
                    {k: lambda s=s: s.run(None, {"x": x}) for k, s in sessions.items()}, asked.rounds, probes
                )
                bandwidth = probes.reading(total)
            for level in asked.levels:
                own = times[f"own {level}"]
                label = f"{size[0]}x{size[1]}"
                ms = (1e3 * t for t in (times["f32"], times[f"ort {level}"], own))
                found.append(Row(label, rows, threads, level, *ms, total / own, bandwidth))
                show(COLUMNS, asked.json, cells(found[-1]))
    return found


def in_turns(runs: Mapping[str, Callable[[], Any]], rounds: int, probes: Probes) -> dict[str, float]:
    """The least seconds of each; a sample of the bandwidth between rounds. A first run in each turn brings the weights
    back to the caches, as far as these hold them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for k in range(rounds + WARM_ROUNDS):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            if k >= WARM_ROUNDS:
                times[name].append(time.perf_counter() - start)
        probes.sample()
    return {name: min(each) for name, each in times.items()}


def cells(row: Row) -> list[str]:
    """A row of the table."""
    ms = [f"{t:.3g}" for t in (row.f32, row.ort, row.own)]
    speeds = [f"{row.f32 / row.ort:.2f}", f"{row.f32 / row.own:.2f}"]
    read = [f"{row.rate / 1e9:.1f}", f"{row.rate / row.bandwidth:.0%}"] if row.rows <= FEW_ROWS else ["", ""]
    return [row.product, str(row.rows), str(row.threads), str(row.level), *ms, *speeds, *read]


def model(size: tuple[int, int], pairs: int, rows: int | str, codes: Codes | None, level: int = 0) -> onnx.ModelProto:
    """Products in sequence, there and back; of f32 without `codes`."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for k in range(2 * pairs):
        depth, columns = size if k % 2 == 0 else size[::-1]
        if codes is None:
            matrix = (rng.standard_normal((depth, columns)) / depth**0.5).astype(np.float32)
            weights.append(numpy_helper.from_array(matrix, f"weight{k}"))
            nodes.append(helper.make_node("MatMul", [value, f"weight{k}"], [f"product{k}"]))
        else:
            names = [value]
            for part, operand in zip(("codes", "scales", "zeros"), codes.operands(depth, columns, rng), strict=True):
                if operand is not None:
                    names.append(f"{part}{k}")
                    weights.append(numpy_helper.from_array(operand, names[-1]))
            attrs = {"K": depth, "N": columns, "bits": codes.bits, "block_size": codes.block, "accuracy_level": level}
            nodes.append(helper.make_node("MatMulNBits", names, [f"product{k}"], domain=CONTRIB, **attrs))
        value = f"product{k}"
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, size[0]])
    result = helper.make_tensor_value_info(value, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "products", [given], [result], weights)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


if __name__ == "__main__":
    sys.exit(main())
