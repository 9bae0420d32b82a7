"""`reduce`: reads the input, determines its failure, and runs the search."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.structure import GraphOp
from igniter.errors import IgniterError
from igniter.passes import flat_passes, parse_passes
from igniter.reproducers import Reproducer
from igniter.rewrite_budget import what_counts
from igniter.runtime.files import write_whole
from igniter.targets import backend_for
from igniter.toolbox.reduce.bisect import FirstRewrite, first_rewrite
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.checks import BuiltInCheck, Check, CommandCheck, Interest, Worker
from igniter.toolbox.reduce.judge import read
from igniter.toolbox.reduce.mlir_reducer import reduce_mlir
from igniter.toolbox.reduce.outcome import COMMAND, FAILURES, INVALID, PASSED, REFUTED, WRONG, CheckRequest, Outcome
from igniter.toolbox.reduce.request import ReduceOptions
from igniter.toolbox.reduce.search import Search, Step
from igniter.toolbox.reproducing import read_reproducer, run_of
from igniter.verification.prove.integers import isl

LEAST_LIMIT, TIMES_FIRST = 10.0, 10.0
"""The time limit of a candidate: seconds, or a multiple of the input's time, within the overall time limit."""


@dataclass(frozen=True)
class Reduced:
    """The outcome of a reduction."""

    outcome: Outcome
    """The failure of the input, and of the smallest case."""
    before: str
    """The size of the input in words."""
    case: Case
    after: str
    steps: tuple[Step, ...]
    tried: int
    seconds: float
    interrupted: bool
    rewrite: FirstRewrite | None


def reduce(
    path: str | Path,
    output: str | Path,
    options: ReduceOptions,
    *,
    worker: Worker | None = None,
    start: Callable[[Outcome, str], None] = lambda _outcome, _size: None,
    say: Callable[[Step], None] = lambda _: None,
) -> Reduced:
    """Shrinks the model or IR at `path` while it still fails in the same way; the best case so far is always in
    `output`.

    `start` gets the outcome and the size of the input, `say` every step. `worker` is a running server. Raises
    `IgniterError` if the input does not fail.
    """
    facts = _facts(Path(path), options)
    if facts is not None:
        options = replace(options, passes=facts.pipeline, seed=run_of(facts).seed)
    require_possible(options)
    began = time.monotonic()
    if options.check_with:
        if not Path(path).is_file():
            raise IgniterError(f"there is no file {path}")
        found, before, search, tried = reduce_mlir(Path(path), Path(output), options, start, say)
        seconds = time.monotonic() - began
        best, steps = search.best, tuple(search.steps)
        return Reduced(found, before, best, best.describe(), steps, tried, seconds, search.interrupted, None)
    case = replace(read_case(Path(path), options), reproducer=facts)
    _check_output(Path(output), case, options)
    with Worker() if worker is None else nullcontext(worker) as worker:
        request = CheckRequest(
            "", timeout=options.timeout, seed=options.seed, target=options.target, strict=options.strict
        )
        check, found, request = _first_run(worker, case, request, options)
        interest = Interest(check, found, options.message, 1)
        start(found, case.describe())
        search = Search(interest, worker, request, lambda best: write_whole(output, best.data), say)
        write_whole(output, case.data)
        lower = search.go_to_pass(case) if options.at_pass else case
        if options.at_pass and lower is case:
            raise IgniterError(f"{path}: the IR in front of the pass '{found.where}' does not fail alike by itself")
        best = search.run(lower)
        rewrite = first_rewrite(interest, best) if options.bisect and not search.interrupted else None
    seconds = time.monotonic() - began
    return Reduced(
        found,
        case.describe(),
        best,
        best.describe(),
        tuple(search.steps),
        interest.tried,
        seconds,
        search.interrupted,
        rewrite,
    )


def _facts(path: Path, options: ReduceOptions) -> Reproducer | None:
    """Returns the facts of a reproducer, unless the options say what to run."""
    said = options.passes is not None or options.command or options.check_with
    return None if said or not path.is_file() else read_reproducer(path)


def require_possible(options: ReduceOptions) -> None:
    """Raises `IgniterError` for incompatible options."""
    if options.check and options.check not in FAILURES:
        raise IgniterError(f"a check is one of {', '.join(FAILURES)}, not '{options.check}'")
    if options.command and (
        options.check or options.message or options.passes is not None or options.strict or options.target
    ):
        raise IgniterError("--check-command is the whole check: what it runs is said in the command")
    if options.check_with and (options.command or options.passes is not None or options.strict or options.target):
        raise IgniterError("--check-with is the whole check: leave out --check-command, --passes, --strict, --target")
    if options.passes is None and (options.at_pass or options.bisect):
        raise IgniterError("--at-pass and --bisect are about the passes of a pipeline: name it with --passes")
    if options.passes is not None and options.strict:
        raise IgniterError("--strict is for whole compiles: leave out --passes")
    if not options.timeout > 0:
        raise IgniterError(f"--timeout is {options.timeout:g} s: it is more than 0")
    passes = parse_passes(options.passes or "")
    if options.bisect and not any(map(what_counts, passes)):
        raise IgniterError("--bisect counts rewrites, and no pass of the pipeline makes any that count")


def read_case(path: Path, options: ReduceOptions) -> Case:
    """Reads the input. For kernels alone, the default pipeline is the one that schedules them."""
    suffix = ".mlir" if path.suffix == ".mlir" else ".onnx"
    if not path.is_file():
        raise IgniterError(f"there is no file {path}")
    try:
        module = read(str(path), IgniterContext())
    except IgniterError:
        raise
    except Exception as error:  # the parser's errors, and the importer's
        raise IgniterError(f"{path}: {error}") from error
    passes = options.passes
    if passes is None and not options.command and not _has(module, GraphOp):
        if not _has(module, KernelOp):
            raise IgniterError(f"{path} has no graph to compile: say with --passes what is to run")
        passes = backend_for(options.target).pipelines.schedule
    return Case(module, suffix, None if passes is None else flat_passes(passes))


def _has(module: ModuleOp, kind: type[GraphOp] | type[KernelOp] | type[FuncOp]) -> bool:
    return any(isinstance(op, kind) for op in module.ops)


def _check_output(output: Path, case: Case, options: ReduceOptions) -> None:
    wanted = ".mlir" if options.at_pass else case.suffix
    if output.suffix != wanted:
        raise IgniterError(f"what is written is {'IR' if wanted == '.mlir' else 'a model'}: -o names a file *{wanted}")


def _first_run(
    worker: Worker, case: Case, request: CheckRequest, options: ReduceOptions
) -> tuple[Check, Outcome, CheckRequest]:
    """Returns the check, and the failure of the input under it; raises `IgniterError` if it does not fail."""
    if _has(case.module, GraphOp):
        # Candidates must be valid models only if the input is one.
        valid = worker.ask(replace(request, path=str(worker.write(case)), task="validate"))
        request = replace(request, validate=valid.kind == PASSED)
    if options.command:
        check: Check = CommandCheck(worker, options.command, request)
        found = check.run(case)
        if found.kind != COMMAND:
            raise IgniterError(f"the command does not exit with 0 on the input itself: {found}")
        return check, found, request
    if options.check == REFUTED:
        if case.passes is None:
            raise IgniterError("--check=refuted proves the passes of a pipeline: name it with --passes")
        isl()
        request = replace(request, prove=True)
    # Running the IR around every pass is slow, so it is done only if necessary.
    modes = [options.check == WRONG] if options.check or case.passes is None else [False, True]
    check, found = _run_modes(worker, case, request, modes)
    if found.kind in (PASSED, INVALID) or (options.check and found.kind != options.check):
        wanted = f"fail by '{options.check}'" if options.check else "fail"
        raise IgniterError(f"the input does not {wanted}: {found}")
    if options.message not in found.message:
        raise IgniterError(f"the input fails with another message than '{options.message}': {found}")
    return check, found, check.request


def _run_modes(worker: Worker, case: Case, request: CheckRequest, modes: list[bool]) -> tuple[BuiltInCheck, Outcome]:
    """Returns the first failing run, without and with running the IR, and a check with the same options."""
    check, found = BuiltInCheck(worker, request), Outcome(PASSED)
    for check_results in modes:
        began = time.monotonic()
        check = BuiltInCheck(worker, replace(request, check_results=check_results))
        found = check.run(case)
        limit = max(LEAST_LIMIT, TIMES_FIRST * (time.monotonic() - began))
        if found.kind not in (PASSED, INVALID):
            return replace(check, request=replace(check.request, timeout=min(request.timeout, limit))), found
    return check, found
