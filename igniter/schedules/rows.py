"""Schedules of nests that read each other row by row: contractions, and windows sliding along their results.

    %e = loop.nest "expand" [y: parallel 56, x: .., o: parallel 144, k: reduction ..] { .. at [y + 1, x + 1, o] else 0 }
    %d = loop.nest "window" [y: parallel 56, x: .., c: parallel 144, r: reduction 3, k: ..] { %e[y + r, x + k, c] .. }
    %p = loop.nest "project" [y: parallel 56, x: .., o: parallel 24, c: reduction 144] { %d[y, x, c] .. }

This is an inverted residual: the intermediates are six times as large as its input and output. Nests that read a result
in the same rows share the loop over rows (`fuse`), so an intermediate is one row. A nest whose windows are several rows
high slides along those rows (`slide`): each row is computed when the first window needs it, and kept until the last one
has read it. A chain of such nests then passes over an image once, and its intermediates stay in the second-level cache
instead of memory. A pool behind a convolution is the same with two nests, and so is a depthwise convolution before a
pointwise one.

Rows of sliding windows are computed in bands, and the bands are distributed over threads. The first row of a band
computes all rows of its window, and some of these are also computed by the band before.

The schedule is chosen where a result exceeds the second-level cache and a window of it fits, where there are enough
rows to distribute, and where no large weights would be read again for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import BlockArgument, SSAValue

from igniter.analysis.structured.contractions import contraction_of
from igniter.analysis.structured.nest_bodies import is_contraction, tensor_behind
from igniter.analysis.typical_sizes import MEMORY, typical_of
from igniter.dialects.loop import KernelOp, NestOp, ReadOp, element_bytes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr, Step
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, product
from igniter.schedules.author import Choice
from igniter.schedules.choice import schedules_of
from igniter.schedules.products import product_schedules, weight_bytes
from igniter.schedules.scheduling import Group, Machine

LEAST_ROWS = 8
"""The fewest rows worth distributing over threads."""

NEW_ROWS = 14
"""The new rows of a band for each row computed in two bands: an extra thread then costs 7% of the work on those rows,
and less of the total."""

FEW_NEW_ROWS = 4
"""The same, where there would be fewer bands than cores otherwise."""


WAITING = 2
"""The inverse of the largest share of the multiplication's time for concurrent reads."""


@dataclass(frozen=True)
class Link:
    """The edge from one group to the next: the reading nest, its axes over the rows, and its windows."""

    reader: NestOp
    common: tuple[tuple[str, str], ...]
    """Axes iterated over by both in the same places, as pairs of the names in the last nest before and in the reader,
    outermost first."""
    window: Window | None = None
    """Without a window, rows are among the common axes."""


@dataclass(frozen=True)
class Window:
    """Rows of windows: the axis of the producer, and the axis of the reader."""

    made: str
    read: str
    step: int
    height: int

    @property
    def shared(self) -> int:
        """The rows of a window shared with the one before."""
        return max(0, self.height - self.step)


@dataclass(frozen=True)
class Chain:
    """Groups that read each other, in order, with the links between them."""

    groups: tuple[Group, ...]
    links: tuple[Link, ...]


def row_choices(groups: Sequence[Group], machine: Machine) -> list[Choice]:
    """Returns the schedules of all such chains among the groups of a kernel."""
    found: list[Choice] = []
    taken: set[NestOp] = set()
    for group in groups:
        if group.members[0] in taken:
            continue
        for chain in _chains(group, groups, machine):
            choice = _choose(chain, f"w{len(found)}", machine)
            if choice is not None:
                found.append(choice)
                taken.update(nest for member in chain.groups for nest in member.members)
                break
    return found


def _chains(group: Group, groups: Sequence[Group], machine: Machine) -> Iterator[Chain]:
    """Yields the chains from a group on, the longest first."""
    chain = Chain((group,), ())
    while (link := _link(chain, groups, machine)) is not None:
        follows = next(g for g in groups if g.members[0] is link.reader)
        chain = Chain((*chain.groups, follows), (*chain.links, link))
    while chain.links:
        yield chain
        chain = Chain(chain.groups[:-1], chain.links[:-1])


def _link(chain: Chain, groups: Sequence[Group], machine: Machine) -> Link | None:
    """Returns the link from the last group of a chain to the next."""
    group = chain.groups[-1]
    if not _is_scheduled_here(group):
        return None
    reader = _only_reader(group)
    follows = None if reader is None else next((g for g in groups if g.members[0] is reader), None)
    if reader is None or follows is None or follows in chain.groups or not _is_scheduled_here(follows):
        return None
    last = group.members[-1]
    outer = _outer(group, machine) if not chain.links else [mine for _, mine in _axes_through(chain)]
    common = _common(last, reader, outer)
    window = None if chain.links else _window(last, reader, common, outer)
    if window is not None:
        return Link(reader, common, window) if _pays(last, common, window, machine) else None
    if not common or (chain.links and len(common) < len(outer)):
        return None
    # Two contractions are faster tile by tile, and so is a reader of one's tiles.
    if bool(group.products) == bool(follows.products) or (group.products and not _slides(reader, last)):
        return None
    return Link(reader, common) if chain.links or _pays(last, common, None, machine) else None


def _is_scheduled_here(group: Group) -> bool:
    """True if a group has no schedule yet, and is a contraction with a weight and its epilogue, or sums of windows."""
    if group.by_rows or any(n.schedule is not None or len(n.outputs) != 1 for n in group.members):
        return False
    if group.products:
        contraction = group.products[group.members[0]]
        return len(group.products) == 1 and isinstance(tensor_behind(contraction.b.source), BlockArgument)
    return any(a.kind == "reduction" for a in group.members[0].axes)


def _axes_through(chain: Chain) -> list[tuple[str, str]]:
    """Returns the axes shared by the last group of a chain and the groups before it, as pairs of the names in the nest
    before and in its own last nest."""
    link, group = chain.links[-1], chain.groups[-1]
    rows = () if link.window is None else ((link.window.made, link.window.read),)
    return [(mine, _renamed(group, theirs)) for mine, theirs in (*link.common, *rows)]


def _only_reader(group: Group) -> NestOp | None:
    """Returns the only nest that reads the result of a group's last nest, if no other result is read outside the
    group."""
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
    """True if windows of a nest slide along the results of another."""
    sums = {a.name for a in reader.axes if a.kind == "reduction"}
    reads = [op for op in reader.reads if op.source is nest.outputs[0]]
    return all(any(len(s.symbols) > 1 and s.symbols & sums for s in op.subscripts) for op in reads)


def _common(last: NestOp, reader: NestOp, outer: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Returns the outer axes of a nest shared, in the same places, by the reader of its results."""
    written = last.yield_op.clauses[0].subscripts
    reads = [op for op in reader.reads if op.source is last.outputs[0]]
    parallel = {a.name: a.extent for a in reader.axes if a.kind == "parallel"}
    found: list[tuple[str, str]] = []
    for name in outer:
        places = [k for k, s in enumerate(written) if name in s.symbols]
        if len(places) != 1 or written[places[0]].symbol != name or any(op.indices for op in reads):
            continue
        theirs = {op.subscripts[places[0]].symbol for op in reads}
        axis = theirs.pop()
        if not theirs and axis is not None and parallel.get(axis) == last.axis(name).extent != ONE:
            found.append((name, axis))
    return tuple(found)


def _outer(group: Group, machine: Machine) -> list[str]:
    """Returns the axes of the last nest's plain loops around all others, outermost first."""
    last = group.members[-1]
    found: list[str] = []
    for loop in _plain(group, "", machine)[last.label].loops:
        if last.axis(loop.axis).extent == ONE:
            continue
        if loop.by != 1 or loop.vector or loop.unroll is not None or last.axis(loop.axis).kind != "parallel":
            break
        found.append(loop.axis)
    return found


def _plain(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr]:
    """Returns the schedules of a group's nests outside of a chain."""
    copy = Group([(e, dict(names)) for e, names in group.levels], list(group.members), dict(group.products))
    return product_schedules(copy, label, machine) if group.products else schedules_of(copy, label, machine)


def _window(nest: NestOp, reader: NestOp, common: Sequence[tuple[str, str]], outer: Sequence[str]) -> Window | None:
    """Returns a reader's windows of several rows along the results of a nest. The nest's loop over rows is inside the
    common ones."""
    made = outer[len(common)] if len(outer) > len(common) else ""
    (clause,) = nest.yield_op.clauses
    reads = [op for op in reader.reads if op.source is nest.outputs[0]]
    names = {theirs for _, theirs in common}
    parallel = [a.name for a in reader.axes if a.kind == "parallel" and a.extent != ONE and a.name not in names]
    places = [k for k, s in enumerate(clause.subscripts) if made in s.symbols]
    if len(places) != 1 or (clause.subscripts[places[0]] - Expr.of(made)).constant is None:
        return None
    found = {_moves(op, places[0], parallel, reader) for op in reads}
    window = found.pop()
    if found or window is None or window[1] == window[2] == 1:
        return None
    return Window(made, *window)


def _moves(read: ReadOp, dim: int, parallel: Sequence[str], reader: NestOp) -> tuple[str, int, int] | None:
    """Returns the axis that moves a read's windows along a dim, the step, and their height."""
    row = read.subscripts[dim]
    axes = [n for n in parallel if n in row.symbols]
    if len(axes) != 1 or read.indices:
        return None
    step, rest, height = row.coefficient(axes[0]), row.without(axes[0]), 1
    for axis in [a for a in reader.axes if a.kind == "reduction" and a.name in rest.symbols]:
        factor, extent = rest.coefficient(axis.name), axis.extent.constant
        if factor is None or factor.constant is None or factor.constant < 1 or not extent:
            return None
        rest, height = rest.without(axis.name), height + factor.constant * (extent - 1)
    if step is None or step.constant is None or step.constant < 1 or rest.constant is None:
        return None
    return axes[0], step.constant, height


def _pays(nest: NestOp, common: Sequence[tuple[str, str]], window: Window | None, machine: Machine) -> bool:
    """True if the results of an image exceed the second-level cache, a window of them takes a small part of it, and
    there are enough rows. A batch whose size is known only at run time may be one image."""
    outer = [name for name, _ in common]
    batch, row = (outer, window.made) if window is not None else (outer[:-1], outer[-1])
    rows = nest.axis(row).extent.constant
    if (window is not None or not batch) and (rows or (1 if window is None else LEAST_ROWS)) < LEAST_ROWS:
        return False
    bytes_each = element_bytes(element_of(nest.outputs[0].type))

    def taken(without: Sequence[str]) -> int:
        inside = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name not in without)
        return typical_of(nest).value(inside, MEMORY) * bytes_each

    height = 1 if window is None else window.height
    whole, window_bytes = taken(batch), taken([*batch, row]) * height
    if window_bytes <= machine.l2_bytes // 4 * 3:
        return whole > machine.l2_bytes
    # An image larger than the second-level cache comes from the third at best.
    share = machine.l3_bytes // max(1, machine.l3_cores)
    return whole > share and window_bytes <= share // 4


# -- separate loops over rows -----------------------------------------------------------------------------------------


def rows_apart(kernel: KernelOp, machine: Machine) -> dict[NestOp, frozenset[str]]:
    """Returns the nests on both sides of windows that slide along a large image: contractions over single places of
    windowed sums, and the producers of the images under windows. The value is the axes over batches and rows; these
    must be loops of their own if the two are to share them. For `collapse-axes`, before groups are formed."""
    found: dict[NestOp, frozenset[str]] = {}
    for nest in kernel.nests:
        for read in nest.reads:
            maker = read.source.owner
            if nest.schedule is not None or not isinstance(maker, NestOp) or not _is_large(nest, read.source, machine):
                continue
            if is_contraction(nest) and not _is_window(nest) and _is_window(maker):
                found[nest] = _rows(read.subscripts)
            elif _is_window(nest) and any(a.kind == "reduction" for a in nest.axes):
                found[maker] = _rows(maker.yield_op.clauses[maker.outputs.index(read.source)].subscripts)  # pyright: ignore[reportArgumentType]
    return found


def _rows(subscripts: Sequence[Expr]) -> frozenset[str]:
    """Returns the axes along all dims but the places of a row and their channels."""
    return frozenset(name for s in subscripts[:-2] for name in s.symbols)


def _is_large(nest: NestOp, value: SSAValue, machine: Machine) -> bool:
    """True if an image exceeds the second-level cache."""
    elements = typical_of(nest).value(product(dims_of(value.type)[1:]), MEMORY)
    return elements * element_bytes(element_of(value.type)) > machine.l2_bytes


def _is_window(nest: NestOp) -> bool:
    """True if a nest sums windows of its input and is no product for a micro-kernel, or works on such sums
    elementwise."""
    sums = {a.name for a in nest.axes if a.kind == "reduction"}
    if sums:
        slides = any(len(s.symbols) > 1 and s.symbols & sums for op in nest.reads for s in op.subscripts)
        return slides and isinstance(contraction_of(nest), str)
    makers = {tensor_behind(op.source).owner for op in nest.reads}
    return any(isinstance(maker, NestOp) and _is_window(maker) for maker in makers)


# -- schedules --------------------------------------------------------------------------------------------------------


def _choose(chain: Chain, label: str, machine: Machine) -> Choice | None:
    """Returns the schedules; `None` where a group has other outer loops, or bands would be too few."""
    found: dict[str, ScheduleAttr] = {}
    window = next((link.window for link in chain.links if link.window is not None), None)
    at = next((k for k, link in enumerate(chain.links) if link.window is not None), len(chain.links))
    band = 0 if window is None else _band(chain.links[at].reader, window, machine)
    if band is None or not _weights_keep_up(chain, machine):
        return None
    for k, group in enumerate(chain.groups):
        outer = _shared(chain, k)
        plain = _plain(group, f"{label}.{k}", machine)
        for nest in group.members:
            names = [_name(group, nest, name) for name in outer]
            schedule = _with_outer(nest, plain[nest.label], names)
            if schedule is None:
                return None
            found[nest.label] = _marked(schedule, names, label, window is not None, band if k > at else 0)
    return Choice(found, _told(chain, window))


def _weights_keep_up(chain: Chain, machine: Machine) -> bool:
    """True if weights that exceed half of the second-level cache arrive as fast as a row is multiplied with them: each
    element is used for every place of the row, and read again for the next row."""
    for group in chain.groups:
        for nest, contraction in group.products.items():
            size = weight_bytes(nest, contraction)
            if size <= machine.l2_bytes // 2:
                continue
            places = ONE if contraction.rows is None else nest.axis(contraction.rows).extent
            element = element_bytes(element_of(contraction.b.source.type))
            near = size <= machine.l3_bytes // max(1, machine.l3_cores)
            rate = machine.l3_bytes_cycle if near else machine.memory_bytes_us / (1000 * machine.clock_ghz)
            if typical_of(nest).value(places, MEMORY) / machine.products_a_cycle < WAITING * element / rate:
                return False
    return True


def _shared(chain: Chain, k: int) -> list[str]:
    """Returns the loops of a chain's group shared with the others, by the names of its last nest."""
    if k:
        return [mine for _, mine in _axes_through(Chain(chain.groups[: k + 1], chain.links[:k]))]
    link = chain.links[0]
    return [mine for mine, _ in link.common] + ([] if link.window is None else [link.window.made])


def _renamed(group: Group, name: str) -> str:
    """Returns the last nest's name for an axis of the first."""
    first, last = group.members[0], group.members[-1]
    return next((of[last.label] for _, of in group.levels if of[first.label] == name), name)


def _name(group: Group, nest: NestOp, name: str) -> str:
    """Returns a nest's name for an axis of the group's last nest."""
    last = group.members[-1]
    return next((of[nest.label] for _, of in group.levels if of[last.label] == name), name)


def _band(reader: NestOp, window: Window, machine: Machine) -> int | None:
    """Returns the rows of a band. There are enough bands to keep the threads busy, and enough rows in each to make up
    for those computed twice. `None` where there are too few rows for both."""
    rows = typical_of(reader).value(reader.axis(window.read).extent, MEMORY)

    def least(new: int) -> int:
        return max(1, -(-new * window.shared // window.step))

    enough = min(least(NEW_ROWS), -(-rows // machine.cores))
    band = max(2, -(-rows // (2 * machine.cores)), enough)
    return band if band >= least(FEW_NEW_ROWS) or machine.cores == 1 else None


def _with_outer(nest: NestOp, schedule: ScheduleAttr, names: Sequence[str]) -> ScheduleAttr | None:
    """Returns the schedule with the loops of `names` outermost, apart from loops of one iteration; `None` where other
    loops are outside."""
    steps = list(schedule.data)
    ones = [s for s in steps if isinstance(s, Loop) and nest.axis(s.axis).extent == ONE]
    rest = [s for s in steps if s not in ones]
    for k, name in enumerate(names):
        step = rest[k] if k < len(rest) else None
        if not isinstance(step, Loop) or step.axis != name or step.by != 1 or step.vector:
            return None
    return ScheduleAttr([*ones, *rest])


def _marked(schedule: ScheduleAttr, names: Sequence[str], label: str, slides: bool, band: int) -> ScheduleAttr:
    """Returns the schedule with the directives of its common loops. They are shared by all groups; the last is over the
    rows of sliding windows, in bands of `band` rows for the groups behind the windows."""
    steps: list[Step] = []
    threads = next((k for k, s in enumerate(schedule.data) if isinstance(s, Loop) and s.axis in names), None)
    for k, step in enumerate(schedule.data):
        if not isinstance(step, Loop) or step.axis not in names:
            steps.append(step)
            continue
        loop = Loop(step.axis, fuse=label, threads=0 if k == threads else None)
        if not slides or step.axis != names[-1]:
            steps.append(loop)
        elif band:
            steps += [replace(loop, by=band), Loop(step.axis, slide=label)]
        else:
            steps.append(replace(loop, fuse=f"{label}.rows", slide=label))
    return ScheduleAttr(steps)


def _told(chain: Chain, window: Window | None) -> str:
    first, last = chain.groups[0].members[-1], chain.groups[-1].members[-1]
    if window is None:
        return f"'{chain.links[-1].reader.label}' reads each row of '{first.label}' as soon as it is finished"
    return f"from '{first.label}' to '{last.label}' row by row, keeping as many rows as a window has"
