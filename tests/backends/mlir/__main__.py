"""Tables of kernels run by stock MLIR: `python -m tests.backends.mlir cases|examples|models [NAME...]`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.backends.mlir.kernel_runs import KernelRun, run_examples, run_model
from tests.backends.mlir.models import MODELS, model
from tests.conformance.node_cases import MODES, _prepared, node_cases
from tests.isolated import Lost, run_isolated


def run_case(key: tuple[str, str]) -> list[KernelRun]:
    """The kernels of one of ONNX's node cases, in a mode of `tests.conformance`."""
    name, mode = key
    case = node_cases()[name]
    model, feed = _prepared(case.model, list(case.data_sets[0][0]), mode)
    return [] if model is None else run_model(f"{name} ({mode})", model.SerializeToString(), feed)


def run_cases(names: Iterable[str], modes: Sequence[str]) -> Iterator[KernelRun]:
    """The kernels of cases, computed in another process."""
    keys = [(n, m) for m in modes for n in names]
    for key, found in run_isolated("tests.backends.mlir.__main__:run_case", keys):
        if isinstance(found, Lost):
            yield KernelRun(f"{key[0]} ({key[1]})", "", found.status, found.message)
        else:
            yield from found


def print_table(runs: Iterable[KernelRun]) -> int:
    """Prints the count of every status and why a kernel is not equal; returns the number of these."""
    counts: Counter[str] = Counter()
    sources: set[str] = set()
    bad = 0
    for run in runs:
        counts[run.status] += 1
        sources.add(run.source)
        if run.status not in ("ort", "interpreter"):
            bad += run.status not in ("not run", "not as ort")
            print(f"{run.status}: {run.source} @{run.kernel}: {run.reason}", flush=True)
    print(f"{len(sources)} models, {sum(counts.values())} kernels")
    for status, count in counts.most_common():
        print(f"{count:>6}  {status}")
    return bad


def main(arguments: Sequence[str]) -> int:
    what, *names = arguments
    if what == "cases":
        modes = [n for n in names if n in MODES] or ["static"]
        step = next((int(n) for n in names if n.isdecimal()), 1)
        chosen = [n for n in names if n in node_cases()] or list(node_cases())[::step]
        return print_table(run_cases(chosen, modes))
    if what == "examples":
        return print_table(run_examples())
    if what == "models":
        with tempfile.TemporaryDirectory() as folder:
            return print_table(r for n in names or MODELS for r in run_model(n, *model(n, Path(folder))))
    raise SystemExit(f"'{what}' is unknown: cases, examples or models")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
