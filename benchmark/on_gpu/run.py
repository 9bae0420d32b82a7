"""`python -m benchmark.on_gpu run FOLDER`: every case on the GPU, beside what is expected of it and beside torch.

A case of ONNX's node tests is compared with ONNX's own results, an op that is timed with torch's in f32, and of a model
that is timed only that its results are numbers is looked at. Times are medians by CUDA events, of replays of one CUDA
graph of so many calls that it takes some milliseconds, so that what a launch takes on the host is not in them.
"""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.on_gpu import beside
from benchmark.on_gpu.host import DTYPES, Host, Op, milliseconds

ENOUGH = 2.0
"""Milliseconds of one replay, at least."""


def run(folder: Path, parts: Sequence[str], only: str, table: Path | None, seconds: float) -> None:
    """Runs the cases of a folder that `build` made."""
    torch.backends.cuda.matmul.allow_tf32 = False
    listed = [each for each in json.loads((folder / "cases.json").read_text()) if only in each["name"]]
    built = [each for each in listed if "library" in each]
    begun = time.perf_counter()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, driver by CUDA {torch.version.cuda}", flush=True)
    if "checks" in parts:
        counts: Counter[str] = Counter()
        for case in (each for each in built if each["kind"] == "check"):
            counts[_checked(folder, case)] += 1
        print("node cases:", ", ".join(f"{n} {what}" for what, n in counts.most_common()), flush=True)
    rows: list[dict[str, Any]] = []
    if "ops" in parts or "models" in parts:
        ceilings()
    for case in (each for each in built if each["kind"] == "timed"):
        if ("models" if case["weights"] else "ops") not in parts:
            continue
        if seconds and time.perf_counter() - begun > seconds:
            print(f"{case['name']}: no time left", flush=True)
            continue
        try:
            rows += _timed(folder, case)
        except Exception as error:  # whatever a case fails by, it is told, and the others go on
            print(f"{case['name']}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if table is not None and rows:
            with table.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)


def ceilings() -> None:
    """What the GPU does at most: a copy, and products of f16 and f32."""
    x = torch.empty(1 << 28, dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    ms = graph_milliseconds(partial(y.copy_, x))
    print(f"copy of 1 GiB: {2 * x.nbytes / ms / 1e6:.0f} GB/s read and written", flush=True)
    del x, y
    for dtype in (torch.float16, torch.float32):
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
        ms = graph_milliseconds(partial(torch.matmul, a, b))
        print(f"torch's product 8192^3 {dtype}: {2 * 8192**3 / ms / 1e9:.0f} TFLOP/s", flush=True)


# -- cases ------------------------------------------------------------------------------------------------------------


def _checked(folder: Path, case: Mapping[str, Any]) -> str:
    try:
        data = np.load(folder / case["data"])
        inputs = [_tensor(data[f"in.{k}"], case["types"][k]) if k else None for k in case["inputs"]]
        op = _op(folder, case, inputs)
        found = op(inputs)
        torch.cuda.synchronize()
        op.close()
    except Exception as error:  # whatever a case fails by, it is told, and the others go on
        print(f"{case['name']}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        return "failed"
    for k, result in enumerate(found):
        if f"out.{k}" not in data:
            continue
        why = _differs(result, _tensor(data[f"out.{k}"], case["outputs"][k]), case["rtol"], case["atol"])
        if why:
            print(f"{case['name']}: result {k}: {why}", flush=True)
            return "different"
    return "right"


def _differs(found: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> str:
    """How a result differs from what is expected; empty where it does not. 16-bit floats may be two units off."""
    if found.shape != expected.shape:
        return f"its shape is {tuple(found.shape)}, not {tuple(expected.shape)}"
    if expected.numel() == 0:
        return ""
    unit = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}.get(expected.dtype, 0.0)
    a, b = found.double().cpu(), expected.double().cpu()
    same = torch.isclose(a, b, rtol=max(rtol, 2 * unit), atol=atol, equal_nan=True)
    if bool(same.all()):
        return ""
    worst = (a - b).abs().nan_to_num(nan=float("inf")).max().item()
    return f"{int((~same).sum())} of {same.numel()} elements, by {worst:.3g} at most"


def _timed(folder: Path, case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each size."""
    data = np.load(folder / case["data"])
    weights = {k: _made(shape, case["types"][k], k, data, True) for k, shape in case["weights"].items()}
    rows: list[dict[str, Any]] = []
    for shapes, sizes in zip(case["runs"], case["sizes"], strict=True):
        given = {k: _made(shape, case["types"][k], k, data) for k, shape in shapes.items()}
        rows.append(_row(folder, case, given, weights, sizes))
        print(" | ".join(rows[-1].values()), flush=True)
    return rows


def _row(
    folder: Path,
    case: Mapping[str, Any],
    given: Mapping[str, torch.Tensor],
    weights: Mapping[str, torch.Tensor],
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    torch.backends.cuda.matmul.allow_tf32 = False
    inputs = [weights[k] if k in weights else given[k] for k in case["inputs"]]
    op = _op(folder, case, inputs)
    results = op(inputs)
    torch.cuda.synchronize()
    tensors, error = list(given.values()), ""
    peers: dict[str, Callable[[], Any]] = {}
    if case["beside"]:
        name, *arguments = case["beside"]
        made = beside.FUNCTIONS[name](*arguments, sizes=sizes)
        if made.exact is not None:
            error = f"{_error(results[0], made.exact(*tensors)):.1e}"
        torch.backends.cuda.matmul.allow_tf32 = case["target"].endswith("+tf32")
        peers = {"eager": lambda: made.eager(*tensors), "compiled": lambda: made.compiled(*tensors)}
    if not all(bool(r.isfinite().all()) for r in results if r.is_floating_point()):
        error += " not all numbers"
    own = graph_milliseconds(lambda: op(inputs, results))
    host = _host_milliseconds(lambda: op(inputs, results))
    times: dict[str, float] = {}
    for name, call in peers.items():
        try:
            times[name] = graph_milliseconds(call)
        except Exception as failure:  # what torch cannot do is its own; the row is there without it
            print(f"  torch {name}: {type(failure).__name__}: {str(failure)[:120]}", flush=True)
    # Once more, so that a clock that has changed in between shows.
    again = graph_milliseconds(lambda: op(inputs, results))
    op.close()
    best, moved = min(own, again), sum(t.nbytes for t in (*inputs, *results))
    return {
        "case": case["case"],
        "target": case["target"],
        "sizes": " ".join(f"{k}={v}" for k, v in sizes.items()),
        "ms": f"{best:.4f}",
        "noise": f"{abs(own - again) / best:.1%}",
        "host ms": f"{host:.3f}",
        "torch": f"{times.get('eager', 0):.4f}",
        "torch.compile": f"{times.get('compiled', 0):.4f}",
        "GB/s": f"{moved / best / 1e6:.0f}",
        "TFLOP/s": f"{case['flops'] / best / 1e9:.1f}",
        "error": error,
    }


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference, relative to the largest magnitude."""
    scale = exact.abs().max().item() or 1.0
    return (found.float() - exact.float()).abs().max().item() / scale


HOST = Host()


def _op(folder: Path, case: Mapping[str, Any], inputs: Sequence[torch.Tensor | None]) -> Op:
    ops = HOST.load(folder / case["library"])
    return Op(HOST, ops[case["op"]], inputs, case["outputs"])


def _tensor(array: np.ndarray[Any, Any], code: int) -> torch.Tensor:
    """An array that was written, on the GPU; 16-bit floats that numpy does not know are written as their bits."""
    made = torch.from_numpy(np.ascontiguousarray(array))
    made = made.reshape(array.shape)
    return made.view(DTYPES[code]).cuda() if made.dtype != DTYPES[code] else made.cuda()


def _made(shape: Sequence[int], code: int, name: str, data: Mapping[str, Any], weight: bool = False) -> torch.Tensor:
    """A tensor of a shape: what was written of the name, else random numbers, of weights so small that a product with
    them is about as large as its input, and ones for integers."""
    if f"in.{name}" in data:
        return _tensor(data[f"in.{name}"], code)
    dtype = DTYPES[code]
    if dtype.is_floating_point:
        matrix = len(shape) > 1 and (weight or name == "w")
        scale = max(shape) ** -0.5 if matrix else 1.0
        return (torch.randn(*shape, device="cuda") * scale).to(dtype)
    return torch.ones(*shape, dtype=dtype, device="cuda")


# -- times ------------------------------------------------------------------------------------------------------------


def graph_milliseconds(call: Callable[[], Any]) -> float:
    """Of one call, by replays of a CUDA graph of several."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    count = max(1, min(50, int(ENOUGH / max(start.elapsed_time(end), 1e-3))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    found = milliseconds(graph.replay) / count
    del graph
    return found


def _host_milliseconds(call: Callable[[], Any]) -> float:
    """What a call takes on the host, launches and Python's part of it together."""
    torch.cuda.synchronize()
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        torch.cuda.synchronize()
    return sorted(times)[2] * 1e3
