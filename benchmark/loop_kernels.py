"""Kernels written by hand on the loop level, timed beside the FMA peak of the same core in the same run.

    python -m benchmark.loop_kernels            GEMM, softmax, convolution and attention of lit_tests/examples
    python -m benchmark.loop_kernels --json     the same as JSON

Each kernel and the peak are run in turn, `--rounds` times; the medians are compared. One thread. For softmax, which is
not limited by arithmetic, the copy bandwidth over the same bytes is the measure.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.parser import Parser

from igniter.backends.cpu.jit import compile_func
from igniter.backends.cpu.rates import peak
from igniter.backends.cpu.target import target_of
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.sym import dims_of
from igniter.registry import load_pass

EXAMPLES = Path(__file__).parent.parent / "lit_tests" / "examples"
PASSES = (
    "choose-schedule",
    "form-fma",
    "lower-to-loops",
    "fuse-loops",
    "promote-buffers",
    "tile-loops",
    "sink-loops",
    "parallelize-loops",
    "vectorize-loops",
    "unroll-loops",
    "plan-buffers",
)


@dataclass(frozen=True)
class Case:
    """One measurement: a kernel, the values of its symbols, and the work it does."""

    name: str
    file: str
    symbols: dict[str, int]
    flops: int = 0
    bytes: int = 0


CASES = (
    Case("gemm 128x768x3072, packed, bias, Gelu", "gemm", {}, flops=2 * 128 * 768 * 3072),
    Case("convolution 3x3 56x56x64, ReLU", "convolution", {}, flops=2 * 56 * 56 * 64 * 64 * 9),
    Case("attention, one head of 64, 128", "attention", {"s": 128, "t": 128}, flops=4 * 128 * 128 * 64),
    Case("attention, one head of 64, 512", "attention", {"s": 512, "t": 512}, flops=4 * 512 * 512 * 64),
    Case("softmax 1536x128", "softmax", {"n": 1536, "m": 128}, bytes=2 * 4 * 1536 * 128),
    Case("softmax 1536x512", "softmax", {"n": 1536, "m": 512}, bytes=2 * 4 * 1536 * 512),
)


def load(case: Case) -> tuple[FuncOp, list[np.ndarray]]:
    """The scheduled kernel and its buffers, inputs random."""
    module = Parser(IgniterContext(), (EXAMPLES / f"{case.file}.mlir").read_text()).parse_module()
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    rng = np.random.default_rng(0)
    buffers = [
        rng.standard_normal([d.evaluate(case.symbols) for d in dims_of(t)]).astype(np.float32)
        for t in [*(a.type for a in kernel.block.args), *kernel.declared_types]
    ]
    for name in PASSES:
        load_pass(name)().apply(IgniterContext(), module)
    return next(op for op in module.ops if isinstance(op, FuncOp)), buffers


def measure(rounds: int) -> list[dict[str, Any]]:
    """One row a case: medians of interleaved runs."""
    target = target_of("native")
    found = peak()
    assert found is not None
    multiply_adds, peak_flops = found
    scratch = np.zeros(target.vector_bytes // 4, np.float32)
    run_peak = multiply_adds.prepared([scratch], {})
    rows: list[dict[str, Any]] = []
    for case in CASES:
        func, buffers = load(case)
        run = compile_func(func).prepared(buffers, case.symbols)
        source = np.ones(max(1, case.bytes // 8), np.float32)
        copy = np.empty_like(source)
        times = interleave([run, run_peak, lambda s=source, c=copy: np.copyto(c, s)], rounds)
        row: dict[str, Any] = {"kernel": case.name, "us": times[0] * 1e6}
        if case.flops:
            row |= {
                "gflops": case.flops / times[0] / 1e9,
                "peak_gflops": peak_flops / times[1] / 1e9,
                "share": (case.flops / times[0]) / (peak_flops / times[1]),
            }
        else:
            row |= {
                "gbytes_s": case.bytes / times[0] / 1e9,
                "copy_gbytes_s": case.bytes / times[2] / 1e9,
                "share": times[2] / times[0],
            }
        rows.append(row)
    return rows


def interleave(functions: list[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each function, run in turn."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(rounds):
        for function, found in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            found.append(time.perf_counter() - start)
    return [statistics.median(t) for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.rounds)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        if "gflops" in row:
            detail = f"{row['gflops']:7.1f} GFLOP/s of {row['peak_gflops']:.1f}"
        else:
            detail = f"{row['gbytes_s']:7.1f} GB/s, copy {row['copy_gbytes_s']:.1f}"
        print(f"{row['kernel']:40} {row['us']:9.1f} us {detail:28} {row['share']:6.1%}")


if __name__ == "__main__":
    main()
