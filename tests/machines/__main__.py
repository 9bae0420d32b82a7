"""Runs the suite as if on other machines: `make test-machines`, or `python -m tests.machines --help`.

On the first machine all quick tests run, and the record of `Reach` is made; on the others, the files of that record.
Then the same files compile for targets whose code this machine may not run, as far as nothing is run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.machines import MACHINES, ROOT

TARGETS = ("sapphirerapids", "znver4", "haswell", "neoverse-n1")
"""The targets that `native` stands for where tests only compile."""

RECORD = ROOT / "build" / "machines" / "reach.txt"
NO_TESTS = 5
"""pytest's status where every test was left out."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--on", action="append", metavar="MACHINE", help="only on this one (several times: on these)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--reached", action="store_true", help="take the record of the last call; do not make it anew")
    parser.add_argument("tests", nargs="*", help="these files or folders, not those of the record")
    given = parser.parse_args(arguments)
    chosen = given.on or [*MACHINES, *TARGETS]
    unknown = [name for name in chosen if name not in (*MACHINES, *TARGETS)]
    if unknown:
        parser.error(f"no machine {unknown[0]}: there are {', '.join((*MACHINES, *TARGETS))}")
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    recorded = given.reached or bool(given.tests)
    results: list[tuple[str, float, int]] = []
    for name in chosen:
        start = time.monotonic()
        environment = {**os.environ, "IGNITER_NATIVE": name}
        if not recorded:
            RECORD.unlink(missing_ok=True)
            environment["IGNITER_REACH"] = str(RECORD)
        tests = given.tests or (_read(RECORD) if recorded else ["tests"])
        print(f"== {name}: {'all tests' if tests == ['tests'] else f'{len(tests)} files or folders'}", flush=True)
        status = _pytest(tests, environment, given.jobs)
        if name in MACHINES and not given.tests:
            status = status or _lit(environment, given.jobs)
        recorded = True
        results.append((name, time.monotonic() - start, status))
    for name, seconds, status in results:
        print(f"{name:16} {seconds:6.0f} s  {'passed' if status == 0 else f'failed (status {status})'}")
    return int(any(status for _, _, status in results))


def _read(record: Path) -> list[str]:
    if not record.exists():
        raise SystemExit(f"{record} is missing: leave --reached out, which makes it")
    return [name for name in sorted(set(record.read_text().split())) if (ROOT / name).exists()]


def _pytest(tests: Sequence[str], environment: dict[str, str], jobs: int) -> int:
    spread = ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else ["-n", "0"]
    command = [sys.executable, "-m", "pytest", *spread, "-m", "not full", *tests]
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    return 0 if status == NO_TESTS else status


def _lit(environment: dict[str, str], jobs: int) -> int:
    command = [sys.executable, "-m", "lit.main", "-j", str(jobs), "-q", "lit_tests"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
