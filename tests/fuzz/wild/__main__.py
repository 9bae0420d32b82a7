"""`python -m tests.fuzz.wild --seed 0 --count 1000`; `--show` prints a model, `--save DIR` keeps what fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx.printer import to_text

from tests.fuzz.wild.run import make_wild, run_seeds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each graph has its own")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print the model of --seed and its feeds, and run it")
    parser.add_argument("--save", type=Path, help="a folder for the models that fail, and their feeds")
    args = parser.parse_args()
    if args.show:
        case = make_wild(args.seed)
        print("nothing" if case is None else f"{to_text(case.model)}\n{case.fusion} {case.target}")
        args.count = 1
    start, counts = time.monotonic(), Counter[str]()
    runs = refusals = left = 0
    for outcome in run_seeds(range(args.seed, args.seed + args.count)):
        counts[outcome.status] += 1
        runs, refusals, left = runs + outcome.runs, refusals + outcome.refusals, left + outcome.left
        if outcome.failed:
            print(f"seed {outcome.seed}: {outcome.status}: {outcome.message}", flush=True)
            if args.save:
                _save(args.save, outcome.seed)
    done = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    print(f"{counts.total()} graphs in {time.monotonic() - start:.0f} s: {done}")
    print(f"{runs} runs compared, {refusals} refused by both, {left} nodes left to ONNX Runtime")
    return int(any(counts[s] for s in counts if s not in ("ok", "invalid", "ort")))


def _save(folder: Path, seed: int) -> None:
    case = make_wild(seed)
    if case is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, str(folder / f"{seed}_{case.fusion}_{case.target}.onnx"))
    flat = {f"{k}|{n}": a for k, feed in enumerate(case.feeds) for n, a in feed.items()}
    np.savez(folder / f"{seed}_{case.fusion}_{case.target}.npz", **flat)  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    sys.exit(main())
