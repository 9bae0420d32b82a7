"""`python -m tests.fuzz --seed 0 --count 5000`: random graphs against ONNX Runtime: of anything,
networks of `--images`, or quantised ops between `--codes`.

`--show SEED` prints a model and runs it, `--shrink SEED` makes one that fails small.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from onnx.printer import to_text

from tests.fuzz.run import Outcome, make_case_of, run_seeds
from tests.fuzz.shrink import shrink


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", action="store_true", help="networks of images, rather than graphs of anything")
    parser.add_argument("--codes", action="store_true", help="quantised ops between codes, which are to be equal")
    parser.add_argument("--gpu", action="store_true", help="compiled for GPUs, and run in Triton's interpreter")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each graph has its own")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no graph after that time; 0: no limit")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the model of a seed and run it")
    parser.add_argument(
        "--shrink", type=int, metavar="SEED", help="make the model of a failing seed as small as it goes"
    )
    parser.add_argument("--save", type=Path, help="with --show or --shrink: where to write the model")
    parser.add_argument("--json", type=Path, help="where to write every outcome")
    args = parser.parse_args()
    kind = "images" if args.images else "codes" if args.codes else "graphs"
    if args.show is not None or args.shrink is not None:
        seed = args.show if args.show is not None else args.shrink
        return _one(kind, seed, args.shrink is not None, args.save, args.gpu)
    print(f"seed {args.seed}", flush=True)
    found = _many(kind, range(args.seed, args.seed + args.count), args.gpu, args.seconds)
    if args.json:
        args.json.write_text(json.dumps([asdict(o) for o in found], indent=2))
    return int(any(o.failed for o in found))


def _one(kind: str, seed: int, smaller: bool, save: Path | None, gpu: bool) -> int:
    case = make_case_of(kind, seed, gpu)
    case = shrink(case) if smaller else case
    print(_without_data(to_text(case.model)))
    print("sizes:", *case.shapes)
    with np.printoptions(threshold=50):
        for feed in case.feeds if smaller else ():
            print(feed)
    if save:
        onnx.save(case.model, str(save))
    if not smaller:
        (outcome,) = run_seeds([seed], kind, gpu)
        print(f"{case.fusion}: {outcome.status} {outcome.message}")
        return int(outcome.failed)
    return 0


def _without_data(text: str) -> str:
    """A model's text with long lists of numbers cut short."""
    return re.sub(r"(\{(?:[^,{}]+,){12})[^{}]+\}", r"\1 ..}", text)


def _many(kind: str, seeds: range, gpu: bool, seconds: float) -> list[Outcome]:
    start = time.monotonic()
    found: list[Outcome] = []
    for outcome in run_seeds(seeds, kind, gpu):
        found.append(outcome)
        if outcome.failed:
            print(f"seed {outcome.seed}: {outcome.status}: {outcome.message}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{len(found)}/{len(seeds)}", end="", file=sys.stderr)
        if seconds and time.monotonic() - start > seconds:
            break
    counts = Counter(o.status for o in found)
    ran = [o for o in found if o.status == "ok"]
    nodes, left = sum(o.nodes for o in ran), sum(o.left for o in ran)
    print(
        f"{len(found)} graphs in {time.monotonic() - start:.0f} s: " + ", ".join(f"{n} {s}" for s, n in counts.items())
    )
    print(f"{nodes} nodes, {left} of them left to ONNX Runtime, {sum(o.kernels for o in ran)} kernels")
    for reason, count in Counter(r for o in found for r in o.dropped).most_common(20):
        print(f"  {count} regions given back: {reason}")
    return found


if __name__ == "__main__":
    sys.exit(main())
