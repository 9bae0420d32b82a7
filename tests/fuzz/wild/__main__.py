"""`python -m tests.fuzz.wild --seed 0 --count 1000`; `--show` prints a model, `--save DIR` keeps what fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from onnx.printer import to_text

from tests.fuzz.wild.run import is_sanitized, make_wild, run_seeds
from tests.fuzz.wild.shrink import describe, shrink
from tests.isolated import run_isolated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each graph has its own")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print the model of --seed and its feeds, and run it")
    parser.add_argument(
        "--shrink", action="store_true", help="make the model of --seed as small as it fails, and print"
    )
    parser.add_argument("--save", type=Path, help="a folder for the models that fail, and their feeds")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a graph; more on a busy machine")
    args = parser.parse_args()
    if args.show:
        case = make_wild(args.seed)
        print("nothing" if case is None else f"{to_text(case.model)}\n{case.fusion} {case.target}")
        args.count = 1
    if args.shrink:
        return _shrink(args.seed)
    start, counts = time.monotonic(), Counter[str]()
    runs = refusals = left = sanitized = 0

    def report() -> None:
        done = ", ".join(f"{n} {status}" for status, n in counts.most_common())
        print(
            f"{counts.total()} graphs ({sanitized} sanitized) in {time.monotonic() - start:.0f} s: {done}", flush=True
        )

    for outcome in run_seeds(range(args.seed, args.seed + args.count), args.timeout):
        counts[outcome.status] += 1
        sanitized += is_sanitized(outcome.seed)
        runs, refusals, left = runs + outcome.runs, refusals + outcome.refusals, left + outcome.left
        if outcome.failed:
            print(f"seed {outcome.seed}: {outcome.status}: {outcome.message}", flush=True)
            if args.save:
                # Making a model runs its nodes, which may be what crashes.
                list(run_isolated("tests.fuzz.wild.run:save_seed", [(outcome.seed, str(args.save))]))
        if counts.total() % 100 == 0:
            report()
    report()
    print(f"{runs} runs compared, {refusals} refused by both, {left} nodes left to ONNX Runtime")
    return int(any(counts[s] for s in counts if s not in ("ok", "invalid", "ort")))


def _shrink(seed: int) -> int:
    case = make_wild(seed)
    if case is None:
        return 0
    small, outcome = shrink(case)
    print(to_text(small.model), f"{small.fusion} {small.target} sanitized={small.sanitize} shipped={small.shipped}")
    for name, array in small.feeds[0].items():
        print(name, array.shape, array.dtype, *([array.tolist()] if array.size < 40 else []))
    print(f"seed {seed}: {describe(small)}: {outcome.status}: {outcome.message}")
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
