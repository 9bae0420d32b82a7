"""Trained models compiled on this machine for aarch64 and run by stock ONNX Runtime for aarch64 under qemu.

    python -m tests.platforms.aarch64_models [--target aarch64+dotprod+i8mm+bf16] [--threads 1 2 4] [--only silero]

Each model runs at the realistic sizes of `benchmark/models/packaged.py`. The results are compared with those of the
same model compiled for x86-64 and run here. `error` is the largest difference relative to the output's largest
magnitude; `ort` is the same between ONNX Runtime on aarch64 and on x86-64, which is what the model itself leaves open.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from benchmark.models.packaged import MODELS, Packaged, fetch
from tests.platforms.aarch64_cases import ALL, output_types
from tests.platforms.arm64 import Guest
from tests.platforms.arm64_root import missing

NAMES = (
    *("PP-OCR cls", "silero-vad", "silero-vad sequence", "magika", "captcha CRNN", "romanizer encoder"),
    *("romanizer decoder", "ddddocr int8", "MiniLM int8", "nakdimon", "tashkeel", "SwiftF0"),
)
"""Models that are small enough for an emulator."""
LIMIT = 1e-4


@dataclass(frozen=True)
class Row:
    """The errors of one model: compiled, by number of threads, and of ONNX Runtime itself."""

    model: str
    target: str
    compiled: int
    """The nodes of the compiled model that are Igniter's."""
    errors: dict[int, float]
    ort: float

    @property
    def is_right(self) -> bool:
        """True if the compiled model is as near as ONNX Runtime itself, within a factor of 2, or within `LIMIT`."""
        return max(self.errors.values()) <= max(LIMIT, 2 * self.ort)

    def __str__(self) -> str:
        errors = " ".join(f"{threads}: {error:.1e}" for threads, error in self.errors.items())
        return f"{self.model:<20} {self.target:<28} {self.compiled:>3} ops  ort {self.ort:.1e}  by threads {errors}"


def rows(names: Sequence[str], target: str, threads: Sequence[int], cpu: str = "max") -> Iterator[Row]:
    """Compiles, runs and compares models."""
    chosen = [m for m in MODELS if m.name in names]
    assert len(chosen) == len(set(names)), set(names) - {m.name for m in MODELS}
    with tempfile.TemporaryDirectory(prefix="igniter-aarch64-") as folder, Guest(cpu) as guest:
        for k, entry in enumerate(chosen):
            yield _row(entry, Path(folder) / str(k), target, threads, guest)


def _row(entry: Packaged, folder: Path, target: str, threads: Sequence[int], guest: Guest) -> Row:
    import igniter

    fetch(entry.package)
    module = igniter.load(entry.file)
    here = module.compile(folder / "here", target="native", verify=False)
    there = igniter.load(entry.file).compile(folder / "there", target=target, verify=False, load=False)
    session = ort.InferenceSession(str(entry.file), providers=["CPUExecutionProvider"])
    feed = entry.feed(session)
    expected = here.session(intra_op_num_threads=1).run(None, feed)
    own = session.run(None, feed)
    # The model itself, in a folder without a library.
    plain = folder / "plain"
    plain.mkdir(parents=True)
    (plain / "model.onnx").symlink_to(entry.file)
    types = output_types(folder / "there" / "model.onnx")
    control = max_error(own, guest.run(plain, feed, types))
    # A second run in a session finds the team of threads that the first one made.
    errors = {n: max_error(expected, guest.run(folder / "there", feed, types, n, runs=2)) for n in threads}
    return Row(entry.name, target, there.report["regions"], errors, control)


def max_error(expected: Sequence[Any], found: Sequence[Any]) -> float:
    """The largest difference relative to the output's largest magnitude; infinite for other shapes, types, integers or
    texts."""
    return max((_error(np.asarray(e), np.asarray(f)) for e, f in zip(expected, found, strict=True)), default=0.0)


def _error(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(expected, found) else float("inf")
    if not np.array_equal(np.isfinite(expected), np.isfinite(found)):
        return float("inf")
    finite = np.isfinite(expected)
    scale = float(np.abs(expected[finite]).max(initial=0.0))
    return float(np.abs(expected[finite] - found[finite]).max(initial=0.0)) / (scale or 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=ALL)
    parser.add_argument("--cpu", default="max", help="qemu's CPU")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--only", nargs="+", default=[""], help="models with one of these in their names")
    args = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"skipped: {reason}")
        return 0
    wrong = 0
    for row in rows([n for n in NAMES if any(o in n for o in args.only)], args.target, args.threads, args.cpu):
        wrong += not row.is_right
        print(f"{row}{'' if row.is_right else '  DIFFERS'}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
