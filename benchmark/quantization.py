"""Igniter's static quantisation beside ONNX Runtime's, on the same samples: trained models that ship inside packages.

    python -m benchmark.quantization [--samples 8] [--cells min-max percentile,i8] [NAME ...]

Both quantise the same ops (Conv, Gemm, MatMul) from the same samples. A cell is a method (`min-max`, `percentile`,
`entropy`, `distribution`; `best` is Igniter's default beside ONNX Runtime's min-max) and what differs from u8
activations, not symmetric, and i8 weights with a scale for each channel: `i8`, `sym`, `tensor`. ONNX Runtime's
quantiser gets the model as its own preprocessing leaves it (`quant_pre_process`: constants folded, normalisations
fused), without which it is worse.

Both results are run in ONNX Runtime, exactly (`session.x64quantprecision`), on the samples and on twice as many others.
The error is the root of the mean square over all samples, relative to that of the output in float; of several outputs
the largest. `--memory` measures the peak memory over growing data instead, and `--latency` both results in turns.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization.shape_inference import quant_pre_process

import igniter
from benchmark.models.packaged import MODELS, Packaged, fetch
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.toolbox.quantize.calibration.errors import output_errors
from igniter.toolbox.quantize.calibration.workbench import open_exactly
from igniter.toolbox.quantize.quantize_model import Style, require_opset

NAMES = (
    "PP-OCR cls",
    "PP-OCRv4 rec",
    "magika",
    "ddddocr",
    "nudenet 320n",
    "orientation",
    "signal pairs",
    "silero-vad openvino",
    "romanizer encoder",
    "SwiftF0",
    "tashkeel",
)
METHODS = {
    "min-max": "MinMax",
    "percentile": "Percentile",
    "entropy": "Entropy",
    "distribution": "Distribution",
    "best": "MinMax",
}
CELLS = ("min-max", "percentile", "entropy", "distribution", "best", "min-max,tensor", "min-max,i8", "min-max,i8,sym")
OPS = ["Conv", "Gemm", "MatMul"]


@dataclass(frozen=True)
class Cell:
    """A method and what is not as usual."""

    method: str
    i8: bool = False
    sym: bool = False
    tensor: bool = False

    @staticmethod
    def of(text: str) -> Cell:
        """`IgniterError` for what there is not."""
        method, *rest = text.split(",")
        if method not in METHODS or set(rest) - {"i8", "sym", "tensor"}:
            raise IgniterError(
                f"'{text}' is no cell: {', '.join(METHODS)}, with any of i8, sym and tensor behind commas"
            )
        return Cell(method, **dict.fromkeys(rest, True))

    def __str__(self) -> str:
        return " ".join([self.method, *(k for k in ("i8", "sym", "tensor") if getattr(self, k))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        peak(asked.one, asked.samples)
        return 0
    if asked.memory:
        memory(asked.names)
        return 0
    cells, won, rows = [Cell.of(text) for text in asked.cells], 0, 0
    behind = ("float, ms", "ORT / float", "Igniter / float") if asked.latency else ()
    print(f"| {' | '.join(('model', 'cell', 'nodes', *COLUMNS, *behind))} |")
    print(f"| {' | '.join(['---'] * (3 + len(COLUMNS) + len(behind)))} |")
    for entry in (e for e in MODELS if e.name in asked.names):
        fetch(entry.package)
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(entry, asked.samples, Path(folder))
            for cell in cells:
                columns, better = bench.row(cell, asked.latency)
                won, rows = won + better, rows + 2
                print(f"| {' | '.join((entry.name, str(cell), *columns))} |", flush=True)
    print(f"\nIgniter's error is no larger in {won} of {rows} comparisons.")
    return 0


def feeds(entry: Packaged, session: Any, first: int, count: int) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Samples by number, made anew each time."""
    for seed in range(first, first + count):
        yield entry.feed(session, seed)


COLUMNS = ("ORT", "Igniter", "ORT, others", "Igniter, others")


class Bench:
    """A model, its samples, and what both quantisers make of it."""

    def __init__(self, entry: Packaged, count: int, folder: Path):
        self.entry, self.count, self.folder = entry, count, folder
        # Scales for each channel are from opset 13: both are given the model in it.
        self.source, self.prepared = folder / "source.onnx", folder / "prepared.onnx"
        module = igniter.load(str(entry.file))
        require_opset(module.ir, Style())
        module.save(self.source)
        quant_pre_process(str(self.source), str(self.prepared), skip_symbolic_shape=True)
        self.reference: Any = make_session(self.source, log_severity_level=3)

    def known(self) -> Iterator[Any]:
        return feeds(self.entry, self.reference, 0, self.count)

    def others(self) -> Iterator[Any]:
        return feeds(self.entry, self.reference, self.count, 2 * self.count)

    def row(self, cell: Cell, latency: bool) -> tuple[list[str], int]:
        """The columns of a cell, and on how many of the two sets of samples Igniter's error is no larger."""
        theirs, ours = self.folder / "theirs.onnx", self.folder / "ours.onnx"
        ort = self.errors(theirs, lambda: self.by_ort(cell, theirs))
        nodes = 0

        def make() -> None:
            nonlocal nodes
            nodes = self.by_igniter(cell, ours)

        own = self.errors(ours, make)
        both = list(zip(ort, own, strict=True))
        better = sum(isinstance(b, float) and (isinstance(a, str) or b <= a) for a, b in both)
        columns = [str(nodes), *(shown(x) for pair in both for x in pair)]
        return columns + (times(self.source, theirs, ours, next(self.known())) if latency else []), better

    def errors(self, path: Path, make: Callable[[], None]) -> list[float | str]:
        """The errors of what `make` writes to `path`, on both sets; what went wrong, where something did."""
        try:
            make()
            session = open_exactly(path)
            return [max(output_errors(self.reference, session, s).values()) for s in (self.known, self.others)]
        except Exception as error:  # ONNX Runtime's quantiser raises what it happens to
            return [f"{type(error).__name__}: {str(error).splitlines()[0][:50]}", ""]

    def by_igniter(self, cell: Cell, path: Path) -> int:
        """Igniter's quantiser; how many nodes it quantises."""
        module = igniter.load(self.source)
        found = module.quantize(
            self.known,
            calibrate=cell.method,  # pyright: ignore[reportArgumentType]
            ops=OPS,
            activations="i8" if cell.i8 else "u8",
            symmetric=cell.sym,
            granularity="tensor" if cell.tensor else "channel",
        )
        module.save(path)
        return len(found.layers)

    def by_ort(self, cell: Cell, path: Path) -> None:
        """ONNX Runtime's own static quantisation, of the prepared model unless that fails."""
        try:
            by_ort(self.prepared, cell, self.known, path)
        except ValueError:
            by_ort(self.source, cell, self.known, path)


def times(source: Path, theirs: Path, ours: Path, feed: Any, rounds: int = 100) -> list[str]:
    """Milliseconds of a run in float on one thread, and the times of both results relative to it, run in turns."""
    sessions = [make_session(p, intra_op_num_threads=1, log_severity_level=3) for p in (source, theirs, ours)]
    best = [float("inf")] * len(sessions)
    for _ in range(rounds):
        for index, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, feed)
            best[index] = min(best[index], time.perf_counter() - start)
    return [f"{1e3 * best[0]:.2f}", *(f"{each / best[0]:.2f}" for each in best[1:])]


def shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2e}"


def by_ort(source: Path, cell: Cell, known: Any, path: Path) -> None:
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
        per_channel=not cell.tensor,
        activation_type=tools.QuantType.QInt8 if cell.i8 else tools.QuantType.QUInt8,
        weight_type=tools.QuantType.QInt8,
        calibrate_method=getattr(tools.CalibrationMethod, METHODS[cell.method]),
        extra_options={"ActivationSymmetric": cell.sym},
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
            by_ort(entry.file, Cell("entropy"), known, Path(folder) / "m.onnx")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{used:.0f} | {time.perf_counter() - start:.0f}")


if __name__ == "__main__":
    sys.exit(main())
