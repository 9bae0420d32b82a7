"""The ledger of types: every op, schema version and type, in ONNX Runtime as it is and compiled.

    python -m tests.conformance.types                         # every case; stopped and begun again, it goes on
    python -m tests.conformance.types --only Add --fresh
    python -m tests.conformance.types --page docs/reference/types.md    # the page, of the results that are there

Results are lines of JSON in `--ledger`. The exit code is 1 where a case loads only as it is, is wrong, or crashes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from tests.conformance.type_cases import NoCase, TypeCase, all_cases, model_of
from tests.isolated import Lost, run_isolated

LEDGER = Path("types.jsonl")
LOADS, NO_KERNEL = "loads", "no kernel"


@dataclass(frozen=True)
class TypeResult:
    """The outcome of a case."""

    key: str
    op: str
    since: int
    variable: str
    type: str
    original: str
    """In ONNX Runtime as it is: `loads`, `no kernel`, or `refused: ...`; "" where there is no node to try."""
    compiled: str = ""
    """`loads`, or why not."""
    lowered: bool = False
    """True if a kernel computes the node."""
    right: str = ""
    """`right`, `wrong: ...`, or `unknown: ...` where nothing computes the original."""
    reason: str = ""
    """Why there is no node, or why the node is left to ONNX Runtime."""

    @property
    def fault(self) -> str:
        """The error; "" for nothing."""
        if self.original == LOADS and self.compiled != LOADS:
            return "loads only as it is"
        if self.right.startswith("wrong"):
            return "wrong"
        if self.compiled.startswith(("crash", "timeout", "error")):
            return "fails"
        return ""


def run_case(case: TypeCase) -> TypeResult:
    """One case, in this process."""

    def result(original: str, **more: Any) -> TypeResult:
        name = f"{case.domain}.{case.op}" if case.domain else case.op
        return TypeResult(case.key, name, case.since, case.variable, case.type, original, **more)

    try:
        model, feed = model_of(case)
    except NoCase as error:
        return result("", reason=str(error)[:200])
    original, session = _loaded(model)
    compiled, artifact = _compiled(model)
    if artifact is None:
        return result(original, compiled=compiled)
    report = artifact.report
    left = report["left_to_onnxruntime"]
    more = {"lowered": report["regions"] > 0 and not left, "reason": "; ".join(entry["reason"] for entry in left)[:200]}
    return result(original, compiled=LOADS, right=_verdict(model, feed, session, artifact), **more)


def _loaded(model: Any) -> tuple[str, Any]:
    """The original in stock ONNX Runtime."""
    from igniter.runtime.session import SessionError, make_session, said_by_onnxruntime

    try:
        return LOADS, make_session(model.SerializeToString(), intra_op_num_threads=1, log_severity_level=4)
    except SessionError as error:
        if "NOT_IMPLEMENTED" in str(error) or "is not a registered function/op" in str(error):
            return NO_KERNEL, None
        return f"refused: {said_by_onnxruntime(error)[:160]}", None


def _compiled(model: Any) -> tuple[str, Any]:
    import igniter
    from igniter.compiler.loading import NotLoaded
    from igniter.errors import IgniterError

    try:
        return LOADS, igniter.load(model).compile(verify=False)
    except NotLoaded as error:
        return f"not loaded: {error.message.splitlines()[0][:200]}", None
    except IgniterError as error:
        return f"refused: {error.message.splitlines()[0][:200]}", None
    except Exception as error:
        return f"error: {type(error).__name__}: {str(error)[:160]}", None


def _verdict(model: Any, feed: dict[str, Any], session: Any, artifact: Any) -> str:
    """True if the compiled model computes what ONNX Runtime or ONNX's evaluator computes."""
    from igniter.frontend.ort_values import run
    from igniter.verification.stand_in import ReferenceSession

    try:
        actual = run(artifact.session(intra_op_num_threads=1, log_severity_level=4), feed)
    except Exception as error:
        actual, failed = None, str(error).strip().splitlines()[-1][:160]
    else:
        failed = ""
    said: list[str] = []
    for name in ("ONNX Runtime", "the evaluator"):
        try:
            if name == "ONNX Runtime":
                expected = None if session is None else run(session, feed)
            else:
                expected = ReferenceSession(model, "").run(None, feed)
        except Exception as error:
            said.append(f"{name}: {str(error).strip().splitlines()[0][:80]}")
            continue
        if expected is None:
            continue
        if actual is None and said:
            # ONNX Runtime has a kernel that refuses to run, as the original does: GRU of f64.
            return f"unknown: {said[0]}"
        if actual is None:
            return f"wrong: {failed}"
        differs = _differs(expected, actual, _tolerance(feed))
        if not differs:
            return "right"
        said.append(f"differs from {name}: {differs}")
    if any(text.startswith("differs") for text in said):
        return f"wrong: {'; '.join(said)}"
    return f"unknown: {'; '.join(said)}"


def _tolerance(feed: dict[str, Any]) -> float:
    """That of the least precise float among the inputs: steps between are computed in its type, or in a wider one."""
    from igniter.verification.judgement import TOLERANCES, Allowance

    dtypes = [v.dtype for v in feed.values() if isinstance(v, np.ndarray)]
    floats = [d.name for d in dtypes if d.name in TOLERANCES or d.name.startswith("float")]
    return max((Allowance().of(name) for name in floats), default=0.0)


def _differs(expected: Sequence[Any], actual: Sequence[Any], least: float) -> str:
    from igniter.verification.judgement import Allowance, compare_output

    for index, (e, a) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(e, list):
            differs = _differs(e, a, least)
            if differs:
                return differs
            continue
        with np.errstate(all="ignore"):
            rtol = max(least, Allowance().of(np.asarray(e).dtype.name))
            found = compare_output(f"y{index}", np.asarray(e), np.asarray(a), rtol)
        if not found.ok:
            return f"{found.name}: {found.reason}"[:160]
    return ""


# -- the command ------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, default=LEDGER, help="the results, as lines of JSON")
    parser.add_argument("--fresh", action="store_true", help="begin again, for the cases that are chosen")
    parser.add_argument("--only", default="", help="the name of an op, with its domain")
    parser.add_argument("--every", type=int, default=1, help="only each N-th case")
    parser.add_argument("--page", type=Path, help="write the page of the results that are there, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    args = parser.parse_args()
    chosen = [c for c in all_cases() if not args.only or args.only in (c.op, f"{c.domain}.{c.op}")][:: args.every]
    known = read_ledger(args.ledger)
    if args.page:
        from tests.conformance.type_page import page

        args.page.write_text(page(list(known.values())))
        return 0
    missing = [c for c in chosen if args.fresh or c.key not in known]
    found = {**known, **run_cases(missing, args.ledger, args.jobs)}
    results = [found[c.key] for c in chosen if c.key in found]
    print_summary(results)
    return int(any(r.fault for r in results))


def read_ledger(path: Path) -> dict[str, TypeResult]:
    """The results by key; of several for one case, the last."""
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}"))
    return {entry["key"]: TypeResult(**entry) for entry in lines}


def run_cases(cases: Sequence[TypeCase], ledger: Path, jobs: int) -> dict[str, TypeResult]:
    """Runs cases, each safe from crashes of the others, and adds each result to the ledger."""
    found: dict[str, TypeResult] = {}
    lock = Lock()

    def part(own: Sequence[TypeCase]) -> None:
        for case, result in run_isolated("tests.conformance.types:run_case", own, batch=400):
            if isinstance(result, Lost):
                name = f"{case.domain}.{case.op}" if case.domain else case.op
                lost = f"{result.status}: {result.message}"
                result = TypeResult(case.key, name, case.since, case.variable, case.type, lost, compiled=lost)
            with lock, ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")
                found[case.key] = result
                if result.fault:
                    print(f"{result.key}: {result.fault}: {result.compiled}: {result.right}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(part, [cases[k::jobs] for k in range(jobs)]))
    return found


def summary(results: Sequence[TypeResult]) -> dict[str, int]:
    """The number of cases of each kind."""
    tried = [r for r in results if r.original]
    faults = Counter(r.fault for r in tried if r.fault)
    return {
        "cases": len(results),
        "without a node to try": len(results) - len(tried),
        "load as they are": sum(r.original == LOADS for r in tried),
        "load compiled": sum(r.compiled == LOADS for r in tried),
        "load only compiled": sum(r.original != LOADS and r.compiled == LOADS for r in tried),
        "are computed by a kernel": sum(r.lowered for r in tried),
        "right": sum(r.right == "right" for r in tried),
        "not compared": sum(r.right.startswith("unknown") for r in tried),
        **{fault: faults[fault] for fault in ("loads only as it is", "wrong", "fails")},
    }


def print_summary(results: Sequence[TypeResult]) -> None:
    for name, count in summary(results).items():
        print(f"{count:6} {name}")


if __name__ == "__main__":
    sys.exit(main())
