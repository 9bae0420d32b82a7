"""Observers of passes: dumps, times and counts of a run, and of the runs inside its passes.

`run_passes` calls an observer before and after every pass. A pass such as `schedule-kernels` runs further passes, on
one kernel at a time. A `PassWatcher` sees these nested passes too, between `enter` and `leave` of their `Unit`:

    before(schedule-kernels)
      enter(loop.kernel @r0)
        before(canonicalize-loop), ran(..), after(..), before(inline-nests), ...
      leave(loop.kernel @r0)
      ...
    ran(schedule-kernels), after(schedule-kernels)

Here are `PassTimes` (`times`), `IRPrinter` (`printing`), `PassStatistics` (`statistics`), and `UnitFilter` (`units`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass


@dataclass(frozen=True)
class Unit:
    """The op in a nested run of passes: it is alone in the module of this run."""

    kind: str
    """The name of the op: `loop.kernel`."""
    name: str
    """Its symbol, without the `@`."""

    def __str__(self) -> str:
        return f"{self.kind} @{self.name}"


class PassObserver(Protocol):
    """An observer, called before and after every pass of a run. It does not see nested passes: see `PassWatcher`."""

    def before(self, this: ModulePass, module: ModuleOp) -> None: ...

    def after(self, this: ModulePass, module: ModuleOp) -> None: ...


class PassWatcher:
    """An observer of all passes, nested ones included; a subclass overrides the methods of interest."""

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        """Called before a pass."""

    def ran(self, this: ModulePass, seconds: float, verify_seconds: float) -> None:
        """Called after a pass and its verification, before the `after` of all observers, with the time of both."""

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        """Called after a pass."""

    def failed(self, this: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Called instead of `ran` and `after` for a failed pass, or one with invalid IR as its result."""

    def step(self, name: str) -> AbstractContextManager[None]:
        """Returns a context around another step of a tool, with a name in parentheses: `(read)`."""
        del name
        return nullcontext()

    def enter(self, unit: Unit) -> None:
        """Called before a nested run: the passes until `leave` run over a module with only `unit`."""

    def leave(self, unit: Unit) -> None:
        """Called after a nested run, also after a failed one."""


def passes_within(ctx: Context, passes: Iterable[ModulePass]) -> Iterator[ModulePass]:
    """Yields all passes, each followed by its nested passes (`inner_passes`)."""
    for this in passes:
        yield this
        inner = getattr(this, "inner_passes", None)
        if inner is not None:
            found: Sequence[ModulePass] = inner(ctx)
            yield from passes_within(ctx, found)
