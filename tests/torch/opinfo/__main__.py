"""Runs the op database beside eager, and prints the ledger: `python -m tests.torch.opinfo --minutes 30`.

Tasks (an op and an element type) run in a random order of the seed, so that what has run at any time is a fair sample.
Results are lines of JSON; a task that the file has is not run again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.isolated import Lost, run_isolated

SILENT = ("value", "zero", "type", "memory", "error", "crash")
"""Kinds of differences that count; strides of results that have other ones are told apart."""


def main() -> int:
    options = _arguments()
    ledger = Path(options.ledger)
    rows = read(ledger)
    if not options.show:
        _run(options, ledger, {(row["op"], row["dtype"]) for row in rows})
        rows = read(ledger)
    print(summary(rows, options.verbose))
    return 1 if any(silent(row) for row in rows) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torch.opinfo", description=__doc__)
    parser.add_argument("--ledger", default="opinfo.jsonl", help="the file of results, which is resumed (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="order of the tasks, and values")
    parser.add_argument("--minutes", type=float, default=0, help="start no task after these; 0: until all have run")
    parser.add_argument("--tasks", type=int, default=0, help="at most so many; 0: all")
    parser.add_argument("--only", nargs="*", default=[], help="names of ops")
    parser.add_argument("--dtypes", nargs="*", default=[], help="element types, such as int32")
    parser.add_argument("--structures", type=int, default=2, help="calls that differ in more than sizes; 0: all")
    parser.add_argument("--samples", type=int, default=3, help="further samples of each; 0: all")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for a task")
    parser.add_argument("--translation", action="store_true", help="the exporter's models in ONNX Runtime as they are")
    parser.add_argument("--show", action="store_true", help="print the ledger of the file, and run nothing")
    parser.add_argument("--verbose", action="store_true", help="a line for each op")
    return parser.parse_args()


def _run(options: argparse.Namespace, ledger: Path, known: set[tuple[str, str]]) -> None:
    from tests.torch.opinfo.tasks import Task, dtypes_of, names

    every = [
        (op, dtype)
        for op in names()
        if not options.only or op in options.only
        for dtype in dtypes_of(op)
        if not options.dtypes or dtype in options.dtypes
    ]
    random.Random(options.seed).shuffle(every)
    every = [pair for pair in every if pair not in known][: options.tasks or None]
    phase = Path(tempfile.mkdtemp(prefix="opinfo-")) / "phase"
    chosen = options.seed, options.structures, options.samples, options.translation
    tasks = [Task(*pair, *chosen, str(phase)) for pair in every]
    end = time.monotonic() + options.minutes * 60
    with ledger.open("a") as file:
        for task, found in run_isolated("tests.torch.opinfo.tasks:run_task", tasks, options.timeout, batch=100):
            row: dict[str, Any] = found
            if isinstance(found, Lost):
                at = phase.read_text() if phase.exists() else ""
                row = {"op": task.op, "dtype": task.dtype, "lost": found.status, "at": at, "message": found.message}
            file.write(json.dumps(row) + "\n")
            file.flush()
            if silent(row):
                print(f"{task.op} {task.dtype}: {silent(row)[0]}", file=sys.stderr, flush=True)
            if options.minutes and time.monotonic() > end:
                return


def read(ledger: Path) -> list[dict[str, Any]]:
    if not ledger.exists():
        return []
    lines = ledger.read_text().splitlines()
    # The last line may have been cut off.
    return [json.loads(line) for line in lines if line.endswith("}")]


def silent(row: dict[str, Any]) -> list[str]:
    """The differences of a row that nothing has told of."""
    if "lost" in row:
        # Time that is up is no result, and eager's crashes are its own.
        crashed = row["lost"] == "crash" and not row["at"].endswith("eager")
        return [f"{row['message']} at '{row['at']}'"] if crashed else []
    return [f"{d['call']}: {d['kind']}: {d['what']}" for d in row["different"] if d["kind"] in SILENT]


def summary(rows: list[dict[str, Any]], verbose: bool) -> str:
    """The ledger: ops by status, reasons, and all that differs."""
    by_op: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_op.setdefault(row["op"], []).append(row)
    statuses = {op: _status(mine) for op, mine in by_op.items()}
    counts = Counter(status for status, _ in statuses.values())
    calls = sum(row.get("calls", 0) for row in rows)
    compiled = sum(row.get("compiled", 0) for row in rows)
    lines = [
        f"{len(rows)} tasks of {len(by_op)} ops: {calls} calls compared, {compiled} of them compiled",
        "ops: " + ", ".join(f"{count} {status}" for status, count in counts.most_common()),
        f"lost: {dict(Counter(row['lost'] for row in rows if 'lost' in row))}",
    ]
    if verbose:
        lines += [f"  {op:45} {status:20} {why}" for op, (status, why) in sorted(statuses.items())]
    reasons = Counter(reason for row in rows for reason in row.get("eager", {}))
    lines += ["eager, by the number of tasks:"]
    lines += [f"  {count:5} {reason[:150]}" for reason, count in reasons.most_common(None if verbose else 15)]
    wrong = [(row, each) for row in rows for each in silent(row)]
    lines += [f"silently different: {len({(row['op'], row['dtype']) for row, _ in wrong})} tasks"]
    lines += [f"  {row['op']} {row['dtype']}: {each}" for row, each in wrong]
    return "\n".join(lines)


def _status(rows: list[dict[str, Any]]) -> tuple[str, str]:
    if any(silent(row) for row in rows):
        return "silently different", next(silent(row)[0] for row in rows if silent(row))
    compiled, calls = sum(row.get("compiled", 0) for row in rows), sum(row.get("calls", 0) for row in rows)
    reasons = [reason for row in rows for reason in row.get("eager", {})]
    if not calls:
        return "not compared", next((why for row in rows for why in row.get("skipped", {})), "lost")
    if not compiled:
        return "eager", reasons[0] if reasons else ""
    return ("compiled", "") if not reasons else ("compiled and eager", reasons[0])


if __name__ == "__main__":
    sys.exit(main())
