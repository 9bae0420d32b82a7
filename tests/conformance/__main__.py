"""`python -m tests.conformance [--modes static,dynamic] [--only relu] [--gpu] [--json FILE] [--ledger FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.conformance.node_cases import FAILURES, MODES, CaseResult, node_cases
from tests.isolated import Lost, run_isolated

ORDER = ("native", "folded", "partly", "fallback", "no-ort", "skipped", *FAILURES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", default="static", help=f"comma-separated, of {', '.join(MODES)}")
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument("--json", type=Path, help="where to write the result of every case")
    parser.add_argument("--ledger", type=Path, help="where to write what became of every op, as Markdown")
    parser.add_argument("--reasons", action="store_true", help="why nodes are left to ONNX Runtime, by count")
    parser.add_argument("--gpu", action="store_true", help="compiled for GPUs, and run in Triton's interpreter")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    args = parser.parse_args()
    names = [name for name in node_cases() if args.only in name]
    found: list[CaseResult] = []
    for mode in args.modes.split(","):
        results = run_cases(names, mode, args.jobs, args.gpu)
        print_table(results, mode)
        if args.reasons:
            print_reasons(results)
        found += results
    if args.json:
        args.json.write_text(json.dumps([asdict(r) for r in found], indent=2))
    if args.ledger:
        from tests.conformance.ledger import ledger

        args.ledger.write_text(ledger(found))
    return int(any(r.status in FAILURES for r in found))


def run_cases(names: Sequence[str], mode: str, jobs: int = 1, gpu: bool = False) -> list[CaseResult]:
    """The results of cases, each safe from crashes of the others, in the order of the names."""
    with ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda k: _run_part(names[k::jobs], mode, gpu), range(jobs))
        found = {result.name: result for part in parts for result in part}
    return [found[name] for name in names]


def _run_part(names: Sequence[str], mode: str, gpu: bool) -> list[CaseResult]:
    found: list[CaseResult] = []
    keys = [(name, mode, gpu) for name in names]
    for (name, *_), result in run_isolated("tests.conformance.node_cases:run_named", keys, batch=2000):
        lost = isinstance(result, Lost)
        found.append(CaseResult(name, mode, "?", result.status, result.message) if lost else result)
        if found[-1].status in FAILURES:
            print(f"{name} ({mode}): {found[-1].status}: {found[-1].reason}", flush=True)
    return found


def print_table(results: Sequence[CaseResult], mode: str) -> None:
    """One row an op, one column a status that occurs."""
    totals = Counter(r.status for r in results)
    columns = [s for s in ORDER if totals[s]]
    table = Table("op", "cases", *columns, title=f"{len(results)} node cases, {mode}")
    by_op: dict[str, Counter[str]] = defaultdict(Counter)
    for r in results:
        by_op[r.op][r.status] += 1
    for op, counts in sorted(by_op.items()):
        table.add_row(op, str(counts.total()), *(str(counts[s] or "") for s in columns))
    table.add_section()
    table.add_row("all", str(len(results)), *(str(totals[s]) for s in columns))
    Console(width=140).print(table)


def print_reasons(results: Sequence[CaseResult]) -> None:
    for reason, count in Counter(r.reason for r in results if r.reason).most_common(60):
        print(f"{count:5} {reason}")


if __name__ == "__main__":
    sys.exit(main())
