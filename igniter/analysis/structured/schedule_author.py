"""Who writes schedules: a *schedule author*, which `choose-schedule` asks for each kernel.

    author(kernel, machine) -> [Choice({"max": [i threads, j vector 16], ..}, "vectors of 16 along 'j'"), ..]

An author decides how a kernel runs and not what it computes: a nest that has a schedule keeps it, whatever the author
says of it, and one that the author leaves out gets plain loops. What it says is checked here as the verifier checks
what a person writes; whether the backend has those words, `choose-schedule` asks the backend (`igniter.targets`).

Each backend names its own author; `default` (`default_author.py`) is that of the CPU's. A package adds one by an entry
point of the group `igniter.schedule_authors`; its options are the fields of the class, each with a default, as those of
a pass are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.utils.arg_spec import ArgSpecConvertible

from igniter.analysis.authors import AuthorError, AuthorKind
from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import ComputeOp, KernelOp
from igniter.dialects.loop.schedule import ScheduleAttr, schedule_reason
from igniter.registry import load_schedule_author


@dataclass(frozen=True)
class Choice:
    """What was chosen for nests that share loops, or for a procedure."""

    schedules: dict[str, ScheduleAttr]
    """By label, in program order."""
    what: str
    """In words."""


@dataclass(frozen=True)
class ScheduleAuthor(ArgSpecConvertible, ABC):
    """The base of authors: a frozen dataclass with a `name`, whose fields are its options. It keeps no state, and
    changes nothing of the kernel."""

    @abstractmethod
    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        """Schedules for the nests and procedures of `kernel` on `machine`, as far as they have none."""


def make_author(text: str) -> ScheduleAuthor:
    """The author that `text` names, with its options: see `AuthorKind.make`."""
    return AuthorKind("schedule author", ScheduleAuthor, load_schedule_author).make(text)


def choices_of(author: ScheduleAuthor, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
    """What an author chooses; `AuthorError` where it fails, or says what is no schedule of a nest of the kernel."""
    where = f"the schedule author '{author.name}', asked about kernel @{kernel.sym_name.data},"
    try:
        found = author(kernel, machine)
    except Exception as error:
        raise AuthorError(f"{where} failed: {type(error).__name__}: {error}") from error
    there = {op.label: op for op in kernel.computations}
    said: set[str] = set()
    for choice in found:
        for label, schedule in choice.schedules.items():
            reason = _reason(there.get(label), schedule, label in said)
            if reason is not None:
                raise AuthorError(f"{where} gives a schedule of '{label}', and {reason}")
            said.add(label)
    return found


def _reason(op: ComputeOp | None, schedule: ScheduleAttr, again: bool) -> str | None:
    """What is wrong with a schedule of a nest or a procedure."""
    if op is None:
        return "there is no such nest"
    if again:
        return "it gave one before"
    return schedule_reason(schedule, {a.name: a.kind for a in op.axes}, op.loops_inside)
