"""Schedules out of a database into IR, and back into the database of another machine.

A file is IR: structured kernels in the form in which schedules are chosen, with a schedule on every nest and a citation
(`igniter/schedules/citation.py`). So a file is read by people, checked by the verifier, and taken by `igniter kernel`
and `igniter-opt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.schedules.citation import ATTRIBUTE, Citation, cite_schedule, name_schedule, schedule_texts, structure_hash
from igniter.targets import backend_for
from igniter.toolbox.ir_text import module_text
from igniter.toolbox.kernel.workbench import kernels_in
from igniter.toolbox.tune.measure import Job, Measurement, parsed
from igniter.toolbox.tune.search import Tunable, tunable
from igniter.transforms.structured.apply_tuned_schedules import set_schedules
from igniter.transforms.structured.schedule_database import Entry

if TYPE_CHECKING:
    from igniter.targets import Target
    from igniter.toolbox.tune.executors import Executor
    from igniter.transforms.structured.schedule_database import ScheduleDatabase


@dataclass(frozen=True)
class Exported:
    """A kernel in an exported file."""

    kernel: str
    citation: Citation
    origin: str
    """Where the schedules come from, in words."""


@dataclass(frozen=True)
class Imported:
    """A kernel of an imported file."""

    kernel: str
    citation: Citation
    entry: Entry | None
    """The entry in the database; `None` for a kernel that was refused."""
    reason: str = ""
    """The reason of the refusal."""


def found_kernels(
    path: str | PathLike[str], target: Target, sizes: Mapping[str, int], kernel: str = ""
) -> dict[str, KernelOp]:
    """Returns the structured kernels of a file by name, or only `kernel`; raises `IgniterError` if it is missing."""
    backend = backend_for(target.name)
    _, kernels = kernels_in(path, backend.machine_for(target), sizes if backend.provider else None)
    if kernel and kernel not in kernels:
        raise IgniterError(f"{path} has no kernel '{kernel}'; it has: {', '.join(kernels)}")
    chosen = {kernel: kernels[kernel]} if kernel else kernels
    for op in chosen.values():
        op.detach()
    return chosen


def export_schedules(
    path: str | PathLike[str],
    output: str | PathLike[str],
    target: Target,
    database: ScheduleDatabase | None,
    *,
    sizes: Mapping[str, int] | None = None,
    kernel: str = "",
    author: bool = False,
    citation: tuple[str, str, str] = ("", "", ""),
) -> list[Exported]:
    """Writes the kernels of a model with their schedules from `database`, and returns them.

    A kernel of IR keeps its own schedules. With `author`, kernels without any get the default author's. `citation` is
    the name, the version and the source to cite the schedules by. Raises `IgniterError` if no kernel has a schedule.
    """
    found: list[Exported] = []
    ops: list[KernelOp] = []
    for name, op in found_kernels(path, target, sizes or {}, kernel).items():
        own = op.computations and all(each.schedule is not None for each in op.computations)
        said = op.attributes.get(ATTRIBUTE)
        what = tunable(name, op, target, {n: s for n, s in (sizes or {}).items() if n in op.symbol_names})
        made = _kernel_of(what.default) if own else what.kernel.clone()
        origin = "its own" if own else _take(made, what, database)
        if not origin and not author:
            continue
        if citation[0]:
            name_schedule(made, *citation)
        elif said is not None:
            made.attributes[ATTRIBUTE] = said
        ops.append(made)
        found.append(Exported(name, cite_schedule(made), origin or "the default author"))
    if not ops:
        where = "no database was given" if database is None else f"{database.path} has none for {target.key}"
        raise IgniterError(f"no kernel of {path} has a schedule to export: {where}; --author takes the default ones")
    write_whole(str(output), module_text(ModuleOp(list(ops))))
    return found


def _take(kernel: KernelOp, what: Tunable, database: ScheduleDatabase | None) -> str:
    """Gives a kernel its newest schedule in the database; returns the origin in words, "" for none."""
    entries = [] if database is None else database.entries(what.subject.kernel, what.target.key)
    if not entries:
        return ""
    reason = set_schedules(IgniterContext(), kernel, entries[0].schedules)
    if reason is not None:
        raise IgniterError(f"the schedule of kernel @{what.name} in the database is stale: {reason}; tune it again")
    gain = "" if not entries[0].is_timed else f", {1 / entries[0].ratio:.2f} times as fast as the default"
    if entries[0].citation:
        return f"imported, {entries[0].citation}"
    return f"tuned for {what.target.key} at {entries[0].subject.bucket}{gain}"


def import_schedules(
    path: str | PathLike[str],
    target: Target,
    database: ScheduleDatabase,
    *,
    sizes: Mapping[str, int] | None = None,
    kernel: str = "",
    threads: int = 1,
    executor: Executor | None = None,
) -> list[Imported]:
    """Adds the schedules of a file to `database`, and returns the kernels.

    With an `executor`, each kernel is run on random inputs, compared with the default schedule's results and timed
    beside it; one that is refused, wrong or crashes is not added. Without one the entry has no time. A later compile
    takes the newest entry of a kernel, whatever its time: an import is a decision.
    """
    device = backend_for(target.name).timed_on(target) if executor is not None else ""
    found: list[Imported] = []
    for name, op in found_kernels(path, target, sizes or {}, kernel).items():
        missing = [each.label for each in op.computations if each.schedule is None]
        if missing:
            raise IgniterError(
                f"{path}: nest '{missing[0]}' of kernel @{name} has no schedule; import takes whole ones"
            )
        citation = cite_schedule(op)
        own = {n: s for n, s in (sizes or {}).items() if n in op.symbol_names}
        what = tunable(name, op, target, own, threads, device)
        made = _kernel_of(what.default)
        if structure_hash(made) != what.subject.kernel:
            raise IgniterError(
                f"{path}: the passes before choose-schedule change kernel @{name}; schedule it in the form that "
                "`igniter schedule export` writes"
            )
        timed = None if executor is None else executor.run([_job(what)])[0]
        if timed is not None and timed.outcome not in ("timed", "same"):
            found.append(Imported(name, citation, None, f"{timed.outcome}: {timed.reason}"))
            continue
        entry = _entry(what, schedule_texts(made), timed, str(citation))
        database.record(entry)
        found.append(Imported(name, citation, entry))
    return found


def _job(what: Tunable) -> Job:
    default = str(ModuleOp([what.kernel.clone()]))
    return Job(what.default, default, what.target.name, what.target.key, what.sizes, what.threads, device=what.device)


def _entry(what: Tunable, schedules: Sequence[str], timed: Measurement | None, citation: str) -> Entry:
    if timed is None:
        return Entry(what.subject, tuple(schedules), 0.0, 0.0, 1.0, 0.0, 0, citation=citation)
    times = (timed.seconds, timed.baseline_seconds, timed.ratio, timed.noise)
    return Entry(what.subject, tuple(schedules), *times, 0, citation=citation)


def _kernel_of(text: str) -> KernelOp:
    kernel = next(op for op in parsed(text).ops if isinstance(op, KernelOp))
    kernel.detach()
    return kernel
