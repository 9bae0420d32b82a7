"""Schedules of a contraction and of a sum over its results, row by row.

    %c = loop.nest "conv" [y: parallel 900, x: parallel 256, o: parallel 64, .. reduction ..] -> .. { .. at [y, x, o] }
    %p = loop.nest "pool" [y: parallel 900, x: parallel 64, o: parallel 64, k: reduction 4] { %c[y, 4*x + k, o] }

A nest whose windows slide along the results of a contraction cannot work on tiles of it, as an epilogue does. Where
both go over the same outer axes, and in the same places, those are common loops: what stands between the two is a row,
which stays in a cache, where the whole result would go to memory and come back. That is what a pool behind a
convolution is, where its windows are one element high.

It is done where the result is larger than the second-level cache, a row takes no more than half of that, and there are
rows enough to share out among threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from igniter.analysis.structured.contractions import Contraction
from igniter.analysis.structured.product_schedules import band_product_schedule, reads_weights, worthwhile_contraction
from igniter.analysis.structured.schedule_author import Choice
from igniter.analysis.structured.schedule_choice import schedule_member
from igniter.analysis.structured.scheduling import Group, Machine
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, typical_of
from igniter.dialects.loop import KernelOp, NestOp, element_bytes
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, product

LEAST_ROWS = 8
"""The rows that are worth sharing out among threads."""


@dataclass(frozen=True)
class Rows:
    """A contraction, what reads it, and the axes of both that are common."""

    nest: NestOp
    contraction: Contraction
    reader: NestOp
    common: tuple[tuple[str, str], ...]


def row_choices(kernel: KernelOp, machine: Machine, taken: Set[str] = frozenset()) -> list[Choice]:
    """The schedules of all such pairs in a kernel, but for nests whose labels are `taken`."""
    return [_choose(rows, f"w{k}", machine) for k, rows in enumerate(rows_of(kernel, machine, taken))]


def rows_of(kernel: KernelOp, machine: Machine, taken: Set[str] = frozenset()) -> Iterator[Rows]:
    """The contractions with a weight whose only reader has windows of them, and which are worth going row by row."""
    typical = typical_of(kernel)
    for nest in kernel.nests:
        contraction = worthwhile_contraction(nest)
        if contraction is None or contraction.rows is None or not reads_weights(contraction):
            continue
        readers = {use.operation.parent_op() for use in nest.outputs[0].uses}
        reader = next(iter(readers), None)
        if len(readers) != 1 or not isinstance(reader, NestOp) or worthwhile_contraction(reader) is not None:
            continue
        if any(n.label in taken or n.schedule is not None for n in (nest, reader)):
            continue
        common = _common(nest, contraction, reader)
        if common and _slides(reader, nest) and _pays(nest, common, typical, machine):
            yield Rows(nest, contraction, reader, common)


def _slides(reader: NestOp, nest: NestOp) -> bool:
    """Whether windows of a nest go along the results of another."""
    sums = {a.name for a in reader.axes if a.kind == "reduction"}
    reads = [op for op in reader.reads if op.source is nest.outputs[0]]
    return all(any(len(s.symbols) > 1 and s.symbols & sums for s in op.subscripts) for op in reads)


def _common(nest: NestOp, contraction: Contraction, reader: NestOp) -> tuple[tuple[str, str], ...]:
    """The batch axes of a contraction that its reader goes over as well, with the reader's names."""
    written = nest.yield_op.clauses[0].subscripts
    reads = [op for op in reader.reads if op.source is nest.outputs[0]]
    parallel = {a.name: a.extent for a in reader.axes if a.kind == "parallel"}
    found: list[tuple[str, str]] = []
    for name in contraction.batch:
        places = [k for k, s in enumerate(written) if name in s.symbols]
        if len(places) != 1 or written[places[0]].symbol != name or any(op.indices for op in reads):
            continue
        theirs = {op.subscripts[places[0]].symbol for op in reads}
        axis = theirs.pop()
        if not theirs and axis is not None and parallel.get(axis) == nest.axis(name).extent != ONE:
            found.append((name, axis))
    return tuple(found)


def _pays(nest: NestOp, common: tuple[tuple[str, str], ...], typical: TypicalSizes, machine: Machine) -> bool:
    """Whether the result is more than the second-level cache holds, and a row little of it; and whether there are rows:
    a batch whose size only a run knows may be one image."""
    if len(common) == 1 and (nest.axis(common[0][0]).extent.constant or 1) < LEAST_ROWS:
        return False
    bytes_each = element_bytes(element_of(nest.outputs[0].type))
    outer = {name for name, _ in common}
    row = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name not in outer)

    def taken(elements: Expr) -> int:
        return typical.value(elements, MEMORY) * bytes_each

    return taken(product(dims_of(nest.outputs[0].type))) > machine.l2_bytes and taken(row) <= machine.l2_bytes // 2


def _choose(rows: Rows, label: str, machine: Machine) -> Choice:
    nest, reader = rows.nest, rows.reader
    levels = [(nest.axis(mine).extent, {nest.label: mine, reader.label: theirs}) for mine, theirs in rows.common]
    group = Group(levels, [nest, reader], {nest: rows.contraction})
    bands = [mine for mine, _ in rows.common]
    found = {
        nest.label: band_product_schedule(nest, rows.contraction, bands, label, machine),
        reader.label: schedule_member(reader, group, label, machine),
    }
    return Choice(found, f"'{reader.label}' reads each row of '{nest.label}' as it is finished")
