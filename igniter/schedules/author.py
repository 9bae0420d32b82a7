"""Schedule authors: `choose-schedule` asks one for the schedules of each kernel.

    author(kernel, machine) -> [Choice({"max": [i threads, j vector 16], ..}, "vectors of 16 along 'j'"), ..]

An author decides the loops of a kernel and not its results. A nest that already has a schedule keeps it, whatever the
author returns, and a nest without an answer gets plain loops. The answer is checked here, as the verifier checks a
handwritten schedule. `choose-schedule` asks the backend if it supports the directives (`igniter.targets`).

Each backend names its own author; `default` (`default_author.py`) is the CPU's. A package adds one by an entry point of
the group `igniter.schedule_authors`. Its options are the fields of the class, each with a default, like those of a
pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.utils.arg_spec import ArgSpecConvertible

from igniter.analysis.authors import AuthorError, AuthorKind
from igniter.analysis.machine import MachineModel
from igniter.crashes import crash_text
from igniter.dialects.loop import ComputeOp, KernelOp
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.registry import load_schedule_author
from igniter.schedules.size_variants import SizeVariants


@dataclass(frozen=True)
class Choice:
    """A choice for nests with shared loops, or for a procedure."""

    schedules: dict[str, ScheduleAttr]
    """The schedules by label, in program order."""
    what: str
    """A description in words."""


@dataclass(frozen=True)
class ScheduleAuthor(ArgSpecConvertible, ABC):
    """The base of authors: a frozen dataclass with a `name`, whose fields are its options. It keeps no state, and does
    not change the kernel."""

    @abstractmethod
    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        """Returns schedules for the unscheduled nests and procedures of `kernel`, on `machine`."""

    def variants(self, kernel: KernelOp, machine: MachineModel) -> SizeVariants | None:
        """Returns the profitable variants of `kernel`, without a schedule yet, for some of its sizes on `machine`."""
        del kernel, machine
        return None


def make_author(text: str) -> ScheduleAuthor:
    """Returns the author named by `text`, with its options: see `AuthorKind.make`."""
    return AuthorKind("schedule author", ScheduleAuthor, load_schedule_author).make(text)


def choices_of(author: ScheduleAuthor, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
    """Returns an author's choices; raises `AuthorError` if it fails, or returns a schedule unfit for its nest."""
    where = f"the schedule author '{author.name}', asked about kernel @{kernel.sym_name.data},"
    try:
        found = author(kernel, machine)
    except Exception as error:  # a plug-in's code raises anything
        raise AuthorError(f"{where} failed: {crash_text(error)}") from error
    there = {op.label: op for op in kernel.computations}
    said: set[str] = set()
    for choice in found:
        for label, schedule in choice.schedules.items():
            reason = _reason(there.get(label), schedule, label in said)
            if reason is not None:
                raise AuthorError(f"{where} gives a schedule for '{label}': {reason}")
            said.add(label)
    return found


def _reason(op: ComputeOp | None, schedule: ScheduleAttr, again: bool) -> str | None:
    """Returns the error in a schedule of a nest or a procedure."""
    if op is None:
        return "there is no nest of this name"
    if again:
        return "it has already given one"
    return op.schedule_refusal(schedule)
