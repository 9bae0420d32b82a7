"""Tables of kernels run by stock MLIR: `python -m tests.backends.mlir cases|examples|models [WORD...]`.

WORD is the name of a case or of a model, a form (`linalg`, the default, of structured kernels; `scf` of scheduled),
a mode of cases (`static`, the default; `dynamic`, `parameters`, `constant`), a step (`5`: every fifth case), or a slice
(`400:800`: the cases at these places).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.backends.mlir.kernel_runs import FORMS, KernelRun, run_examples, run_model
from tests.backends.mlir.models import MODELS, model
from tests.conformance.node_cases import MODES, node_cases, prepared
from tests.isolated import Lost, run_isolated


def run_case(key: tuple[str, str, str]) -> list[KernelRun]:
    """The kernels of one of ONNX's node cases, in a mode of `tests.conformance` and a form."""
    name, mode, form = key
    case = node_cases()[name]
    model, feed = prepared(case.model, list(case.data_sets[0][0]), mode)
    return [] if model is None else run_model(f"{name} ({mode})", model.SerializeToString(), feed, FORMS[form])


def run_cases(names: Iterable[str], modes: Sequence[str], form: str = "linalg") -> Iterator[KernelRun]:
    """The kernels of cases, computed in another process."""
    keys = [(n, m, form) for m in modes for n in names]
    for number, (key, found) in enumerate(run_isolated("tests.backends.mlir.__main__:run_case", keys)):
        if number % 100 == 0:
            print(f"{number} of {len(keys)}", file=sys.stderr, flush=True)
        if isinstance(found, Lost):
            yield KernelRun(f"{key[0]} ({key[1]})", "", found.status, found.message)
        elif not found:
            yield KernelRun(f"{key[0]} ({key[1]})", "", "no kernel", "the mode does not apply, or no node has a kernel")
        else:
            yield from found


def print_table(runs: Iterable[KernelRun]) -> int:
    """Prints the count of every status and why a kernel is not equal; returns the number of these."""
    counts: Counter[str] = Counter()
    no_values: Counter[str] = Counter()
    sources: set[str] = set()
    bad = 0
    for run in runs:
        counts[run.status] += 1
        sources.add(run.source)
        if run.status == "interpreter" and run.reason:
            no_values[run.reason[:150]] += 1
        if run.status not in ("ort", "evaluator", "interpreter", "no kernel"):
            bad += run.status not in ("not run", "not as ort")
            print(f"{run.status}: {run.source} @{run.kernel}: {run.reason}", flush=True)
    kernels = sum(counts.values()) - counts["no kernel"]
    for reason, count in no_values.most_common():
        print(f"{count:>6} kernels on random inputs: {reason}")
    print(f"{len(sources)} models, {counts['no kernel']} of them without kernels; {kernels} kernels")
    for status, count in counts.most_common():
        print(f"{count:>6}  {status}")
    return bad


def chosen_cases(words: Sequence[str]) -> list[str]:
    """The cases that the words name: single ones, or of all of them a slice and a step."""
    names = list(node_cases())
    first, last, step = 0, len(names), 1
    for word in words:
        start, colon, end = word.partition(":")
        if colon and start.isdecimal() and end.isdecimal():
            first, last = int(start), int(end)
        elif word.isdecimal():
            step = int(word)
    return [w for w in words if w in node_cases()] or names[first:last][::step]


def main(arguments: Sequence[str]) -> int:
    what, *words = arguments
    form = next((w for w in words if w in FORMS), "linalg")
    if what == "cases":
        modes = [w for w in words if w in MODES] or ["static"]
        return print_table(run_cases(chosen_cases(words), modes, form))
    if what == "examples":
        return print_table(run_examples(form=form))
    if what == "models":
        names = [w for w in words if w not in FORMS] or MODELS
        with tempfile.TemporaryDirectory() as folder:
            return print_table(r for n in names for r in run_model(n, *model(n, Path(folder)), FORMS[form]))
    raise SystemExit(f"'{what}' is unknown: cases, examples or models")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
