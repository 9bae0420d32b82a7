"""ONNX's node cases compiled for aarch64 and run by stock ONNX Runtime for aarch64 under qemu, in static mode.

    python -m tests.platforms.aarch64_cases [--target aarch64+dotprod+i8mm+bf16] [--only relu] [--first 300 --count 100]

The judge is that of the node cases on this machine (`tests.conformance.node_cases`): what a case expects, and what
ONNX Runtime computes here, on x86-64. Cases without a region have no code of Igniter's and are not run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from tests.conformance.node_cases import (
    BOUND,
    EVERYTHING,
    FAILURES,
    CaseResult,
    CompiledCase,
    compiled_case,
    fed,
    node_cases,
    prepared,
)
from tests.isolated import Lost, run_isolated
from tests.platforms.arm64 import Guest, GuestError
from tests.platforms.arm64_root import missing

ALL = "aarch64+dotprod+i8mm+bf16"
WITHOUT_REGIONS = ("fallback", "folded", "skipped")


@dataclass(frozen=True)
class Job:
    """A case, its target, and the folder for its result."""

    name: str
    target: str
    folder: str


def run_cases(names: Sequence[str], target: str, cpu: str = "max") -> Iterator[CaseResult]:
    """The results of cases: compiled in a process of their own each, run in one guest."""
    with tempfile.TemporaryDirectory(prefix="igniter-aarch64-") as folder, Guest(cpu) as guest:
        jobs = [Job(name, target, str(Path(folder) / name)) for name in names]
        for job, found in run_isolated("tests.platforms.aarch64_cases:compile_job", jobs):
            if isinstance(found, Lost):
                yield CaseResult(job.name, "static", "?", found.status, found.message)
            elif isinstance(found, CaseResult):
                yield found
            else:
                yield run_compiled(rebuilt(job.name, *found), Path(job.folder), guest)
            shutil.rmtree(job.folder, ignore_errors=True)


def compile_job(job: Job) -> CaseResult | tuple[str, str, int]:
    """Compiles a case to its folder; returns its status, the reason and the number of nodes left, or its result."""
    case = node_cases()[job.name]
    compiled = compile_case(job.name, job.target, Path(job.folder))
    if isinstance(compiled, CaseResult):
        return compiled
    if compiled.status in WITHOUT_REGIONS:
        return CaseResult(case.name, "static", compiled.op, compiled.status, compiled.reason)
    return compiled.status, compiled.reason, compiled.left


def compile_case(name: str, target: str, folder: Path) -> CaseResult | CompiledCase:
    """Compiles a case for a target to a folder."""
    import igniter

    case, op, model, feed, expected = _parts(name)
    options = igniter.CompileOptions(target=target, onnx_passes=BOUND, fusion_passes=EVERYTHING)
    try:
        module = igniter.load(model)
        artifact = module.compile(folder, options=options, verify=False, load=False)
    except Exception as error:
        return CaseResult(name, "static", op, "error", f"{type(error).__name__}: {error}"[:600])
    return compiled_case(case, "static", op, model, feed, expected, (module, artifact))


def rebuilt(name: str, status: str, reason: str, left: int) -> CompiledCase:
    """The case that another process has compiled."""
    case, op, model, feed, expected = _parts(name)
    return CompiledCase(case, "static", op, model, feed, expected, status, reason, left)


def _parts(name: str) -> tuple[Any, str, onnx.ModelProto, dict[str, Any], list[Any]]:
    case = node_cases()[name]
    nodes = case.model.graph.node
    inputs, expected = case.data_sets[0]
    model, feed = prepared(case.model, list(inputs), "static")
    assert model is not None
    op = nodes[0].op_type if len(nodes) == 1 else "(function body)"
    return case, op, model, feed, [fed(e) for e in expected]


def run_compiled(compiled: CompiledCase, folder: Path, guest: Guest) -> CaseResult:
    """Runs a compiled case in the guest and judges it."""
    try:
        found = guest.run(folder, compiled.feed, output_types(folder / "model.onnx"))
    except GuestError as error:
        if str(error).startswith("crash"):
            return CaseResult(compiled.case.name, "static", compiled.op, "crash", str(error))
        return compiled.failed(error)
    return compiled.judged(found)


def output_types(path: Path) -> dict[str, str]:
    """The outputs of a model with their types, as ONNX Runtime writes these."""
    graph = onnx.load(str(path), load_external_data=False).graph
    return {o.name: _type_text(o.type) for o in graph.output}


def _type_text(kind: onnx.TypeProto) -> str:
    if not kind.HasField("tensor_type"):
        return "other"
    name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    return f"tensor({name})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=ALL)
    parser.add_argument("--cpu", default="max", help="qemu's CPU")
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument(
        "--first", type=int, default=0, help="the number of the first case, in the order of their names"
    )
    parser.add_argument("--count", type=int, help="the number of cases to run; all of them by default")
    args = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"skipped: {reason}")
        return 0
    counts: Counter[str] = Counter()
    names = [n for n in node_cases() if args.only in n][args.first :][: args.count]
    for result in run_cases(names, args.target, args.cpu):
        counts[result.status] += 1
        if result.status in FAILURES:
            print(f"{result.name}: {result.status}: {result.reason}", flush=True)
    print(f"{args.target}: {counts.total()} cases: {', '.join(f'{n} {s}' for s, n in counts.most_common())}")
    return int(any(counts[s] for s in FAILURES))


if __name__ == "__main__":
    sys.exit(main())
