"""`igniter tune --estimate`: the schedules of a kernel for a GPU by their expected time, without one.

Nothing is run and nothing is stored: an expected time is no measurement. `python -m benchmark.gpu_ranks` has how well
the order of expected times agrees with measured ones.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.errors import IgniterError
from igniter.schedules.space import AUTHOR
from igniter.toolbox.output import console, parse_sizes, print_json, progress
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.toolbox.tune.measure import Job
from igniter.toolbox.tune.models import kernels_of
from igniter.toolbox.tune.search import RANKED, cost_of, space_of, with_schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    from igniter.targets import Backend, Target
    from igniter.toolbox.tune.models import KernelUse
    from igniter.toolbox.tune.request import TuneRequest

SHOWN = 5
"""The candidates shown of each kernel."""


@dataclass(frozen=True)
class Ranked:
    """A kernel's candidates, the ones with the least expected time first."""

    use: KernelUse
    default: float
    """The expected seconds of the author's schedule."""
    candidates: list[tuple[float, dict[str, str]]]
    """Expected seconds, and the changes of the author's schedule."""
    refused: int


def show_ranking(request: TuneRequest, backend: Backend, target: Target) -> int:
    """Ranks and prints; returns the exit status."""
    if not backend.provider:
        raise IgniterError("--estimate orders candidates for a GPU; on a CPU the search itself begins with an estimate")
    given = parse_sizes(request.sizes)
    with closing(LocalExecutor()) as executor, progress("estimating the kernels", request.json) as step:
        uses = kernels_of(
            request.model, target, executor, kernel=request.name, sizes=given, estimated=True, progress=step
        )
        found = [_ranked(use, request, executor, step) for use in uses if not use.reason]
    failed = [use for use in uses if use.reason]
    if request.json:
        print_json({"target": target.key, "expected": True, "kernels": [_described(each) for each in found]})
    else:
        _print(found, failed, target.key)
    return 0


def _ranked(use: KernelUse, request: TuneRequest, executor: LocalExecutor, step: Callable[[str], None]) -> Ranked:
    what, space = use.what, space_of(use.what)
    points = list(islice(space.points(request.seed), request.trials or RANKED))
    where = what.target.name, what.target.key
    times: list[tuple[float, dict[str, str]]] = []
    for k, point in enumerate(points):
        step(f"@{what.name}: {k + 1} of {len(points)}")
        text = with_schedules(what.kernel, space.schedules(point))
        (found,) = executor.run([Job(text, "", *where, what.sizes, limit=request.limit)])
        if found.outcome == "ranked":
            times.append((cost_of(space, point, found), {n: v for n, v in point.items() if v != AUTHOR}))
    default = next((seconds for seconds, changes in times if not changes), use.seconds / use.calls)
    return Ranked(use, default, sorted(times, key=lambda each: each[0]), len(points) - len(times))


def _described(found: Ranked) -> dict[str, Any]:
    candidates = [{"seconds": seconds, "changes": changes} for seconds, changes in found.candidates]
    return {
        "kernel": found.use.what.name,
        "calls": found.use.calls,
        "share": found.use.share,
        "sizes": found.use.what.sizes,
        "default_seconds": found.default,
        "refused": found.refused,
        "candidates": candidates,
    }


def _print(found: list[Ranked], failed: list[KernelUse], target: str) -> None:
    out = console()
    table = Table("kernel", "share", "expected us", "of the default", "changes of the author's schedule")
    for each in found:
        name, share = escape(each.use.what.name), f"{each.use.share:.0%}"
        table.add_row(name, share, f"{each.default * 1e6:.4g}", "1", "none")
        for seconds, changes in [c for c in each.candidates if c[1]][:SHOWN]:
            said = ", ".join(f"{n}={v}" for n, v in changes.items())
            ratio = seconds / each.default if each.default else 1.0
            table.add_row("", "", f"{seconds * 1e6:.4g}", f"{ratio:.2f}", escape(said))
    out.print(table)
    for use in failed:
        out.print(f"@{use.what.name}: {use.reason}", markup=False)
    out.print(f"times are expected on {target}: nothing was run, and nothing is stored", markup=False)
