"""The observer of times: a tree of passes, with the nested passes of all kernels added up or one by one.

    times = PassTimes()
    run_passes(ctx, module, passes, observers=(times,))
    print(times.table())

A row is the time of a pass. The rows below it are its nested passes, and count as part of it. Verification
of the IR between passes is a row of its own. The time of a pass with nested passes includes their verification, and
the time of other observers inside of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from igniter.observation import PassWatcher, Unit
from igniter.observation.units import UnitFilter

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

Display: TypeAlias = Literal["tree", "kernels", "list", "json"]
DISPLAYS: tuple[Display, ...] = ("tree", "kernels", "list", "json")
"""`tree`: in order, nested passes added up over all kernels. `kernels`: the same, kernel by kernel. `list`: one row for
each pass, the longest first. `json`: the tree with every kernel, as JSON."""

VERIFY = "(verify)"
"""The name of the row of verification."""


@dataclass
class Step:
    """A row: a pass, a step of a tool, or a kernel with passes of its own."""

    name: str
    seconds: float = 0.0
    runs: int = 1
    """The number of runs added up in this row."""
    unit: Unit | None = None
    """The kernel, for the row of a kernel."""
    steps: list[Step] = field(default_factory=list["Step"])

    @property
    def kind(self) -> str:
        """`pass`, `kernel` or `step`."""
        return "kernel" if self.unit is not None else "step" if self.name.startswith("(") else "pass"

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        found: dict[str, Any] = {"name": self.name, "kind": self.kind, "seconds": round(self.seconds, 6)}
        if self.runs != 1:
            found["runs"] = self.runs
        if self.unit is not None:
            found["op"] = self.unit.kind
        if self.steps:
            found["steps"] = [step.to_dict() for step in self.steps]
        return found


@dataclass
class PassTimes(PassWatcher):
    """The times of passes and of other steps, in the order of the run. `kernels` selects nested runs."""

    kernels: UnitFilter = field(default_factory=UnitFilter)
    root: Step = field(default_factory=lambda: Step("total"))
    _open: list[Step] = field(default_factory=list[Step])
    _started: list[float] = field(default_factory=list[float])

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self._open.append(self._add(Step(this.name)))

    def ran(self, this: ModulePass, seconds: float, verify_seconds: float) -> None:
        self._open.pop().seconds = seconds
        if verify_seconds:
            self._step(VERIFY).seconds += verify_seconds

    def failed(self, this: ModulePass, module: ModuleOp, error: Exception) -> None:
        self._open.pop()

    def enter(self, unit: Unit) -> None:
        self._open.append(self._add(Step(f"@{unit.name}", unit=unit)))
        self._started.append(time.perf_counter())

    def leave(self, unit: Unit) -> None:
        step = self._open.pop()
        step.seconds = time.perf_counter() - self._started.pop()
        if not self.kernels.has(unit.name):
            # The kernel's row is the last of its pass.
            self._inside.pop()

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Times another step; equal names on one level are one row."""
        step = self._step(name)
        self._open.append(step)
        start = time.perf_counter()
        try:
            yield
        finally:
            step.seconds += time.perf_counter() - start
            self._open.pop()

    @property
    def _inside(self) -> list[Step]:
        return self._open[-1].steps if self._open else self.root.steps

    def _add(self, step: Step) -> Step:
        self._inside.append(step)
        return step

    def _step(self, name: str) -> Step:
        return next((s for s in self._inside if s.name == name), None) or self._add(Step(name))

    # -- the report ---------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """The sum of all rows of the first level."""
        return sum(step.seconds for step in self.root.steps)

    def to_dict(self) -> dict[str, Any]:
        """Returns the tree for JSON, in seconds."""
        return {"seconds": round(self.seconds, 6), "steps": [step.to_dict() for step in self.root.steps]}

    def table(self, display: Display = "tree") -> str:
        """Returns the rows as text, with a final newline; shares are of the total."""
        if display == "json":
            return json.dumps(self.to_dict(), indent=2) + "\n"
        steps = self.root.steps
        if display == "list":
            rows = [(0, step) for step in _by_pass(steps)]
        else:
            rows = list(_rows(_merged(steps) if display == "tree" else steps))
        total = Step("total", self.seconds)
        lines = [f"{'ms':>10}  {'%':>5}  step"]
        for depth, step in [*rows, (0, total)]:
            share = 100 * step.seconds / total.seconds if total.seconds else 0.0
            count = f" x {step.runs}" if step.runs != 1 else ""
            lines.append(f"{1000 * step.seconds:>10.2f}  {share:>5.1f}  {'  ' * depth}{step.name}{count}")
        return "\n".join(lines) + "\n"


def _rows(steps: Sequence[Step], depth: int = 0) -> Iterator[tuple[int, Step]]:
    # Verification happens after each pass, so below a row it is the last.
    for step in sorted(steps, key=lambda s: s.name == VERIFY) if depth else steps:
        yield depth, step
        yield from _rows(step.steps, depth + 1)


def _merged(steps: Sequence[Step]) -> list[Step]:
    """Returns the rows with all kernels of a pass as one row, and their passes added up by name and place."""
    kernels = [s for s in steps if s.unit is not None]
    merged = [Step(s.name, s.seconds, s.runs, s.unit, _merged(s.steps)) for s in steps if s.unit is None]
    by_kind: dict[str, list[Step]] = {}
    for each in kernels:
        assert each.unit is not None
        by_kind.setdefault(each.unit.kind, []).append(each)
    for kind, found in by_kind.items():
        total = sum(s.seconds for s in found)
        merged.append(Step(kind, total, len(found), found[0].unit, _added([_merged(s.steps) for s in found])))
    return merged


def _added(lists: Sequence[Sequence[Step]]) -> list[Step]:
    """Adds up the rows of equal pipelines: the first run of a pass to the first runs of the others, and so on."""
    found: dict[tuple[str, int], list[Step]] = {}
    for steps in lists:
        times: dict[str, int] = {}
        for step in steps:
            times[step.name] = times.get(step.name, 0) + 1
            found.setdefault((step.name, times[step.name]), []).append(step)
    return [
        Step(
            name, sum(s.seconds for s in same), sum(s.runs for s in same), same[0].unit, _added([s.steps for s in same])
        )
        for (name, _), same in found.items()
    ]


def _by_pass(steps: Sequence[Step]) -> list[Step]:
    """Returns one row for each pass and step, the longest first. A pass with nested passes keeps only the rest of its
    time, and the rows add up to the total."""
    found: dict[str, Step] = {}

    def visit(these: Sequence[Step]) -> None:
        for step in these:
            visit(step.steps)
            own = step.seconds - sum(s.seconds for s in step.steps)
            name = f"{step.unit.kind} (rest)" if step.unit is not None else step.name
            row = found.setdefault(name, Step(name, 0.0, 0, step.unit))
            row.seconds += max(own, 0.0)
            row.runs += step.runs

    visit(steps)
    return sorted(found.values(), key=lambda row: -row.seconds)
