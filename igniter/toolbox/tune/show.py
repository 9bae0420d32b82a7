"""`igniter tune`: faster schedules for the kernels of a model, found by measuring."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.targets import backend_for
from igniter.toolbox.output import console, parse_sizes, print_json, progress
from igniter.toolbox.tune.executors import LocalExecutor, RayExecutor
from igniter.toolbox.tune.learned import learned_from
from igniter.toolbox.tune.models import kernels_of
from igniter.toolbox.tune.ranking import show_ranking
from igniter.toolbox.tune.search import Limits, Tuner
from igniter.toolbox.tune.store import database_path
from igniter.transforms.structured.schedule_database import opened

if TYPE_CHECKING:
    from igniter.toolbox.tune.executors import Executor
    from igniter.toolbox.tune.models import KernelUse
    from igniter.toolbox.tune.request import TuneRequest
    from igniter.toolbox.tune.search import Tuned
    from igniter.transforms.structured.schedule_database import ScheduleDatabase

INTERRUPTED = 130
"""The usual status of a command ended by Ctrl-C."""

LEAST_SECONDS = 5.0
"""The least part of the budget in seconds for starting on a kernel, while other kernels have more."""


@dataclass(frozen=True)
class Row:
    """The outcome for one kernel."""

    use: KernelUse
    tuned: Tuned | None
    reason: str = ""
    """The reason why it was not tuned."""


def run(request: TuneRequest) -> int:
    """Tunes and prints; returns the exit status: `INTERRUPTED` if Ctrl-C ended it."""

    if find_spec("optuna") is None:
        raise IgniterError(f"tuning needs Optuna: {install_command('tune')}")
    start = time.monotonic()
    backend = backend_for(request.target)
    if "tuned" in backend.lacking:
        raise IgniterError(f"the backend '{backend.name}' does not have tuning: its kernels run nowhere here")
    target = backend.target_of(request.target)
    if request.learned and backend.provider:
        raise IgniterError("--learned orders candidates for a CPU; those for a GPU are ordered by expected times")
    if request.estimate:
        return show_ranking(request, backend, target)
    device = backend.timed_on(target)
    path = database_path(request.db)
    given = parse_sizes(request.sizes)
    with opened(path, create=True) as database, closing(_executor(request)) as executor:
        if request.learned:
            learned_from(database, target)
        with progress("timing the kernels", request.json) as step:
            uses = kernels_of(
                request.model,
                target,
                LocalExecutor(),
                kernel=request.name,
                sizes=given,
                threads=request.threads,
                device=device,
                limit=request.limit,
                progress=step,
            )
        rows = _tune_all(request, uses, executor, database, start)
    interrupted = any(row.tuned is not None and row.tuned.interrupted for row in rows)
    if request.json:
        print_json(_described(rows, str(path), target.key, time.monotonic() - start, interrupted, device))
    else:
        where = f"{target.key} ({device})" if device else target.key
        _print(rows, str(path), where, time.monotonic() - start)
    return INTERRUPTED if interrupted else 0


def _executor(request: TuneRequest) -> Executor:
    return LocalExecutor() if request.ray is None else RayExecutor("" if request.ray == "local" else request.ray)


def _tune_all(
    request: TuneRequest, uses: list[KernelUse], executor: Executor, database: ScheduleDatabase, start: float
) -> list[Row]:
    """Tunes each kernel within its share of the remaining time, in proportion to the remaining run time; unused time is
    left to the others."""
    rows: list[Row] = []
    for k, use in enumerate(uses):
        left = request.seconds - (time.monotonic() - start)
        rest = sum(u.seconds for u in uses[k:])
        part = left * use.seconds / rest if rest else 0.0
        if use.reason:
            rows.append(Row(use, None, use.reason))
            continue
        if left <= 0 or (k > 0 and part < LEAST_SECONDS):
            rows.append(Row(use, None, "no time was left for it"))
            continue
        limits = Limits(part, request.trials, request.patience, request.limit)
        with progress(f"@{use.what.name}", request.json) as step:
            try:
                # Fitted again for each kernel: the trials of the kernels before it count.
                learned = learned_from(database, use.what.target, request.seed) if request.learned else None
                tuner = Tuner(
                    use.what,
                    database,
                    limits,
                    executor,
                    learned=learned,
                    rounds=request.rounds,
                    seed=request.seed,
                    progress=step,
                )
                rows.append(Row(use, tuner.run()))
            except IgniterError as error:
                rows.append(Row(use, None, error.message))
        done = rows[-1].tuned
        if done is not None and done.interrupted:
            rows += [Row(u, None, "interrupted before it") for u in uses[k + 1 :]]
            break
    return rows


def _whole_gain(rows: list[Row]) -> float:
    """Returns the speedup of all kernels together, each weighted with its share."""
    after = sum(r.use.share * (1.0 if r.tuned is None else r.tuned.ratio) for r in rows)
    return 1 / after if after else 1.0


def _described(rows: list[Row], db: str, target: str, took: float, interrupted: bool, device: str) -> dict[str, Any]:
    kernels: list[dict[str, Any]] = []
    for row in rows:
        use = row.use
        facts: dict[str, Any] = {"kernel": use.what.name, "calls": use.calls, "share": use.share}
        facts["sizes"] = use.what.sizes
        found = {"stopped": row.reason} if row.tuned is None else {**asdict(row.tuned), "gain": row.tuned.gain}
        kernels.append({**facts, **found})
    whole: dict[str, Any] = {
        "db": db,
        "target": target,
        **({"gpu": device} if device else {}),
        "seconds": took,
        "interrupted": interrupted,
        "gain": _whole_gain(rows),
    }
    return {**whole, "kernels": kernels}


def _print(rows: list[Row], db: str, target: str, took: float) -> None:
    out = console()
    table = Table("kernel", "share", "default us", "best us", "gain", "noise", "tried", "outcomes", "stopped because")
    for row in rows:
        name, share = escape(row.use.what.name), f"{row.use.share:.0%}"
        done = row.tuned
        if done is None:
            default = f"{row.use.seconds / row.use.calls * 1e6:.4g}" if row.use.seconds else ""
            table.add_row(name, share, default, "", "", "", "", "", escape(row.reason))
            continue
        outcomes = ", ".join(f"{n} {o}" for o, n in sorted(done.outcomes.items(), key=lambda x: -x[1]))
        table.add_row(
            name,
            share,
            f"{done.default_seconds * 1e6:.4g}",
            f"{done.seconds * 1e6:.4g}",
            f"{done.gain:.2f}x" if done.ratio < 1 else "none",
            f"{done.noise:.1%}",
            f"{done.trials}" + (f" + {done.earlier}" if done.earlier else ""),
            outcomes,
            escape(done.stopped),
        )
    out.print(table)
    for order in dict.fromkeys(row.tuned.order for row in rows if row.tuned is not None):
        out.print(f"candidates were ordered by {order}", markup=False)
    for row in rows:
        if row.tuned is not None and row.tuned.schedules:
            out.print(f"@{escape(row.use.what.name)}", markup=False)
            for label, schedule in row.tuned.schedules.items():
                out.print(f"  {label}: {schedule}", markup=False)
    out.print(
        f"{took:.0f} seconds; the kernels together are {_whole_gain(rows):.2f} times as fast on {target}", markup=False
    )
    out.print(f"`igniter compile --tuned` takes the schedules from {db}", markup=False)
