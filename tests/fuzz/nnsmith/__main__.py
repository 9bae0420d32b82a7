"""`python -m tests.fuzz.nnsmith --python PYTHON --count 300`, or `--models FOLDER` for models that are there."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx

from tests.fuzz.wild.run import FUSIONS, Outcome, Wild, run_wild
from tests.isolated import Lost, run_isolated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the Python of an environment with nnsmith in it")
    parser.add_argument("--models", type=Path, help="a folder of FILE.onnx with FILE.npz beside it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=12, help="of each model at most")
    args = parser.parse_args()
    if args.models is not None:
        return compare_all(args.models)
    if args.python is None:
        parser.error("give --python or --models")
    with tempfile.TemporaryDirectory(prefix="igniter-nnsmith-") as folder:
        script = Path(__file__).parent / "make_models.py"
        numbers = [str(n) for n in (args.seed, args.count, args.nodes)]
        subprocess.run([args.python, str(script), folder, *numbers], check=True)
        return compare_all(Path(folder))


def compare_all(folder: Path) -> int:
    """The number of models on which Igniter fails, as an exit code of 0 or 1."""
    files = [str(f) for f in sorted(folder.glob("*.onnx"))]
    counts: Counter[str] = Counter()
    for file, found in run_isolated("tests.fuzz.nnsmith.__main__:run_file", files):
        outcome = Outcome(0, found.status, found.message) if isinstance(found, Lost) else found
        counts[outcome.status] += 1
        if outcome.failed:
            print(f"{file}: {outcome.status}: {outcome.message}", flush=True)
    print(f"{counts.total()} models: " + ", ".join(f"{n} {status}" for status, n in counts.most_common()))
    return int(any(counts[s] for s in counts if s not in ("ok", "invalid", "ort")))


def run_file(file: str) -> Outcome:
    """One model with its inputs, compiled with one of the ways to fuse."""
    path = Path(file)
    number = int(path.stem) if path.stem.isdigit() else len(path.stem)
    with np.load(path.with_suffix(".npz")) as stored:
        feed = {name: stored[name] for name in stored.files}
    fusion = list(FUSIONS)[number % len(FUSIONS)]
    model = onnx.load(file)
    return run_wild(Wild(number, model, model, (feed,), fusion, "native"))


if __name__ == "__main__":
    sys.exit(main())
