"""Schedules of a contraction and of a nest with windows of its results, row by row.

    %c = loop.nest "conv" [y: parallel 900, x: parallel 256, o: parallel 64, .. reduction ..] -> .. { .. at [y, x, o] }
    %p = loop.nest "pool" [y: parallel 900, x: parallel 64, o: parallel 64, k: reduction 4] { %c[y, 4*x + k, o] }

A nest whose windows slide along the results of a contraction, or of what is computed on its tiles, cannot work on these
tiles itself. Where both go over the same outer axes, and in the same places, those are common loops: what stands
between the two is a row, which stays in a cache, where the whole result would go to memory and come back. That is what
a pool behind a convolution is, where its windows are one element high.

It is done where the result is larger than the second-level cache, a row takes no more than half of that, and there are
rows enough to share out among threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from igniter.analysis.structured.product_schedules import product_schedules, reads_weights
from igniter.analysis.structured.schedule_author import Choice
from igniter.analysis.structured.schedule_choice import schedule_member
from igniter.analysis.structured.scheduling import Group, Machine
from igniter.analysis.typical_sizes import MEMORY, typical_of
from igniter.dialects.loop import NestOp, element_bytes
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, product

LEAST_ROWS = 8
"""The rows that are worth sharing out among threads."""


@dataclass(frozen=True)
class Rows:
    """A contraction with its epilogue, what reads the results, and the axes that are common: the names that the last
    nest of the group and the reader have for them."""

    group: Group
    reader: NestOp
    common: tuple[tuple[str, str], ...]

    @property
    def last(self) -> NestOp:
        return self.group.members[-1]


def row_choices(groups: Sequence[Group], machine: Machine) -> list[Choice]:
    """The schedules of all such nests among the groups of a kernel."""
    found: list[Choice] = []
    for rows in rows_of(groups, machine):
        choice = _choose(rows, f"w{len(found)}", machine)
        if choice is not None:
            found.append(choice)
    return found


def rows_of(groups: Sequence[Group], machine: Machine) -> Iterator[Rows]:
    """The contractions with a weight whose results are read in windows, and which are worth going row by row."""
    alone = {group.members[0] for group in groups if len(group.members) == 1 and not group.products}
    for group in groups:
        if group.by_rows or len(group.products) != 1 or not reads_weights(group.products[group.members[0]]):
            continue
        if any(nest.schedule is not None or len(nest.outputs) != 1 for nest in group.members):
            continue
        reader = _only_reader(group)
        if reader is None or reader not in alone or reader.schedule is not None:
            continue
        common = _common(group, reader)
        if common and _slides(reader, group.members[-1]) and _pays(group.members[-1], common, machine):
            yield Rows(group, reader, common)


def _only_reader(group: Group) -> NestOp | None:
    """The nest that reads what the last one of a group writes, where nothing else outside of the group reads any."""
    outside = {
        (nest, use.operation.parent_op())
        for nest in group.members
        for use in nest.outputs[0].uses
        if use.operation.parent_op() not in group.members
    }
    if len(outside) != 1:
        return None
    ((nest, reader),) = outside
    return reader if nest is group.members[-1] and isinstance(reader, NestOp) else None


def _slides(reader: NestOp, nest: NestOp) -> bool:
    """Whether windows of a nest go along the results of another."""
    sums = {a.name for a in reader.axes if a.kind == "reduction"}
    reads = [op for op in reader.reads if op.source is nest.outputs[0]]
    return all(any(len(s.symbols) > 1 and s.symbols & sums for s in op.subscripts) for op in reads)


def _common(group: Group, reader: NestOp) -> tuple[tuple[str, str], ...]:
    """The batch axes of a contraction that the reader of a group goes over as well."""
    anchor, last = group.members[0], group.members[-1]
    written = last.yield_op.clauses[0].subscripts
    reads = [op for op in reader.reads if op.source is last.outputs[0]]
    parallel = {a.name: a.extent for a in reader.axes if a.kind == "parallel"}
    found: list[tuple[str, str]] = []
    for of in (names for _, names in group.levels if names[anchor.label] in group.products[anchor].batch):
        name = of[last.label]
        places = [k for k, s in enumerate(written) if name in s.symbols]
        if len(places) != 1 or written[places[0]].symbol != name or any(op.indices for op in reads):
            continue
        theirs = {op.subscripts[places[0]].symbol for op in reads}
        axis = theirs.pop()
        if not theirs and axis is not None and parallel.get(axis) == last.axis(name).extent != ONE:
            found.append((name, axis))
    return tuple(found)


def _pays(nest: NestOp, common: tuple[tuple[str, str], ...], machine: Machine) -> bool:
    """Whether the result is more than the second-level cache holds, and a row little of it; and whether there are rows:
    a batch whose size only a run knows may be one image."""
    if len(common) == 1 and (nest.axis(common[0][0]).extent.constant or 1) < LEAST_ROWS:
        return False
    bytes_each = element_bytes(element_of(nest.outputs[0].type))
    outer = {name for name, _ in common}
    row = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name not in outer)

    def taken(elements: Expr) -> int:
        return typical_of(nest).value(elements, MEMORY) * bytes_each

    return taken(product(dims_of(nest.outputs[0].type))) > machine.l2_bytes and taken(row) <= machine.l2_bytes // 2


def _choose(rows: Rows, label: str, machine: Machine) -> Choice | None:
    """The schedules; None where those of the group have other loops outside."""
    group, last, reader = rows.group, rows.last, rows.reader
    found = product_schedules(group, label, machine)
    names = [mine for mine, _ in rows.common]
    if not _begins_with(found, group, names):
        return None
    levels = [(last.axis(mine).extent, {last.label: mine, reader.label: theirs}) for mine, theirs in rows.common]
    found[reader.label] = schedule_member(reader, Group(levels, [last, reader]), label, machine)
    return Choice(found, f"'{reader.label}' reads each row of '{last.label}' as it is finished")


def _begins_with(found: Mapping[str, ScheduleAttr], group: Group, names: list[str]) -> bool:
    """Whether the outermost loops of all members, but for those of one iteration, are the common ones in order."""
    last = group.members[-1]
    for nest in group.members:
        own = [of[nest.label] for name in names for _, of in group.levels if of[last.label] == name]
        loops = [loop.axis for loop in found[nest.label].loops if nest.axis(loop.axis).extent != ONE]
        if loops[: len(own)] != own:
            return False
    return True
