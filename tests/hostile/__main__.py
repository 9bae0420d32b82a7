"""`python -m tests.hostile [--flips 300] [--jobs 2] [--only names] [--verbose]`: the table of hostile files."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.hostile.files import HostileFile, hostile_files
from tests.hostile.run import OUTCOMES, Outcome, compile_all


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=300, help="files with flipped bits")
    parser.add_argument("--cuts", type=int, default=60, help="files that are cut off")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files at a time")
    parser.add_argument("--only", default="", help="a part of the kind and name of the files")
    parser.add_argument("--verbose", action="store_true", help="print what is said of every file")
    args = parser.parse_args()
    found: list[tuple[HostileFile, Outcome]] = []
    with tempfile.TemporaryDirectory(prefix="igniter-hostile-") as folder:
        files = [f for f in hostile_files(args.flips, args.cuts) if args.only in f"{f.kind}: {f.name}"]
        for file, outcome in compile_all(files, Path(folder), args.jobs):
            found.append((file, outcome))
            if outcome.failed or args.verbose:
                said = outcome.message[:600]
                print(f"{file.kind}: {file.name}: {outcome.status} ({outcome.seconds:.1f} s): {said!r}", flush=True)
    Console(width=160).print(table(found))
    return int(any(outcome.failed for _, outcome in found))


def table(found: list[tuple[HostileFile, Outcome]]) -> Table:
    """One row a kind of file, one column an outcome that occurs, and the worst time and memory."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for file, outcome in found:
        rows[file.kind].append(outcome)
    totals = Counter(outcome.status for _, outcome in found)
    columns = [s for s in OUTCOMES if totals[s]]
    made = Table("kind", "files", *columns, "slowest", "biggest", title=f"{len(found)} hostile files")
    for kind, outcomes in [*rows.items(), ("all", [o for _, o in found])]:
        counts = Counter(o.status for o in outcomes)
        worst = f"{max((o.seconds for o in outcomes), default=0):.1f} s"
        peak = f"{max((o.peak for o in outcomes), default=0) >> 20} MB"
        made.add_row(kind, str(len(outcomes)), *(str(counts[s] or "") for s in columns), worst, peak)
    return made


if __name__ == "__main__":
    sys.exit(main())
