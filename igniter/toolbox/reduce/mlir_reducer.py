"""`reduce --check-with`: a module of MLIR on which an external pass has a fault, shrunk while it has the same fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.runtime.mlir_tools import find_tools, run_tool
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.checks import Interest, Worker
from igniter.toolbox.reduce.mlir_case import ExternalCheck, MlirCase, outcome_of
from igniter.toolbox.reduce.mlir_edits import REDUCTIONS
from igniter.toolbox.reduce.outcome import CheckRequest, Outcome
from igniter.toolbox.reduce.request import ReduceOptions
from igniter.toolbox.reduce.search import Search, Step
from igniter.verification.external_passes import CheckOptions, Command, check_text
from igniter.verification.mlir.reading import GENERIC, parse_module


def reduce_mlir(
    path: Path,
    output: Path,
    options: ReduceOptions,
    start: Callable[[Outcome, str], None],
    say: Callable[[Step], None],
) -> tuple[Outcome, str, Search, int]:
    """Shrinks a module; the best one so far is always in `output`, in MLIR's own syntax.

    Returns the failure, the size of the input in words, the search, and the number of candidates. Raises `IgniterError`
    if the command has no fault on the input.
    """
    if output.suffix != ".mlir":
        raise IgniterError("what is written is IR: -o names a file *.mlir")
    command = Command.parse(options.check_with)
    text = path.read_text(encoding="utf-8")
    began = time.monotonic()
    checked = check_text(text, command, CheckOptions(seed=options.seed, timeout=options.timeout))
    if checked.finding is None:
        notes = "; ".join(checked.notes)
        raise IgniterError(f"'{options.check_with}' has no fault on {path}: {notes}")
    wanted = outcome_of(checked.finding)
    if options.check and wanted.kind != options.check:
        raise IgniterError(f"the input does not fail by '{options.check}': {wanted}")
    if options.message not in wanted.message:
        raise IgniterError(f"the input fails with another message than '{options.message}': {wanted}")
    tools = find_tools()
    case = MlirCase(parse_module(run_tool(tools.opt, GENERIC, text)), ".mlir")
    # A command that hangs is given up after a multiple of the time that the whole first check took.
    limit = min(options.timeout, max(10.0, 10 * (time.monotonic() - began)))
    check = ExternalCheck(command, CheckOptions(seed=options.seed, timeout=limit)).like(checked.finding)
    interest = Interest(check, wanted, options.message, 1)
    if not interest.holds(case):
        raise IgniterError(f"{path}: the fault is not seen again with fewer arguments; give another --seed")
    start(wanted, case.describe())

    def keep(best: Case) -> None:
        write_whole(output, run_tool(tools.opt, ("--allow-unregistered-dialect",), best.data.decode()).encode())

    keep(case)
    search = Search(interest, Worker(), CheckRequest(""), keep, say, REDUCTIONS)
    search.run(case)
    return wanted, case.describe(), search, interest.tried
