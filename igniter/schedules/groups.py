"""Groups of nests with shared outer loops: the first half of choosing a schedule.

Nests are taken in order. A nest joins the group of its latest producer if its axes correspond to the group's common
axes: an axis of the consumer corresponds to a group axis if every read of the group's results uses it, bare, in the dim
where the producer wrote the group axis. The axes lost by joining (no longer common) must be a row that fits the cache,
or a single axis. A contraction for micro-kernels starts a group of its own. Nests over the same axes join it as its
epilogue, or nests over its rows and further contractions as attention (`products.py`). A nest that transposes what the
group computes stays outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from igniter.analysis.structured.contractions import Contraction
from igniter.analysis.structured.packing import has_few_rows, packs_pairs
from igniter.analysis.structured.updates import updates_argument
from igniter.dialects.loop import Clause, KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, Expr, delinearize, linearize, product, symbols_of
from igniter.dialects.sym.ranges import simplify
from igniter.schedules.code_products import coded_schedule
from igniter.schedules.products import bytes_of, reads_weights, worthwhile_contraction
from igniter.schedules.scheduling import Group, Machine
from igniter.schedules.tiles import is_reused


@dataclass(frozen=True)
class Read:
    """A read of the value behind the views, with subscripts of this value."""

    op: ReadOp
    base: SSAValue
    subscripts: tuple[Expr, ...]


def form_groups(kernel: KernelOp, machine: Machine, taken: Set[str] = frozenset()) -> list[Group]:
    """Groups the nests of a kernel around common outer axes, except nests whose labels are in `taken`."""
    groups: list[Group] = []
    home: dict[NestOp, int] = {}
    for nest in (each for each in kernel.nests if each.label not in taken):
        own = packs_pairs(nest) or updates_argument(nest) or coded_schedule(nest, machine) is not None
        if own or has_few_rows(nest, machine):
            # The rows of such a matrix are read contiguously, as stored, rather than in shareable tiles. Pairs of steps
            # and products with codes have schedules of their own. An update in place has the loops of its new rows.
            home[nest] = len(groups)
            groups.append(lone_group(nest))
            continue
        contraction = worthwhile_contraction(nest)
        reads = list(reads_of(nest))
        producers = {r.base.owner for r in reads if isinstance(r.base.owner, NestOp)}
        latest = max((home[p] for p in producers if p in home), default=-1)
        candidates = _candidates(groups, latest, producers)
        joined = next((g for g in candidates if _join(groups[g], nest, reads, contraction, machine)), None)
        if joined is None:
            products = {} if contraction is None else {nest: contraction}
            groups.append(Group(_own_levels(nest), [nest], products))
            joined = len(groups) - 1
        home[nest] = joined
    return groups


def keeps_tiles(group: Group) -> bool:
    """True if a group is a sum whose tiles stay in registers. A nest over only a part of its axes comes after the group
    instead of breaking the tiles up."""
    anchor = group.members[0]
    if group.products or anchor in group.products:
        return False
    sums = [a for a in anchor.axes if a.kind == "reduction"]
    common = [names[anchor.label] for _, names in group.levels]
    return bool(sums) and any(is_reused(anchor, row, lane) for row in common for lane in common if row != lane)


def lone_group(nest: NestOp) -> Group:
    """Returns a group for a nest without shared loops."""
    return Group(_own_levels(nest), [nest], {}, alone=True)


def _own_levels(nest: NestOp) -> list[tuple[Expr, dict[str, str]]]:
    return [(a.extent, {nest.label: a.name}) for a in nest.axes if a.kind == "parallel" and a.extent != ONE]


def _candidates(groups: list[Group], latest: int, producers: set[NestOp]) -> Iterator[int]:
    if latest >= 0:
        yield latest
    elif groups and not producers and not groups[-1].products:
        yield len(groups) - 1


def _join(group: Group, nest: NestOp, reads: list[Read], contraction: Contraction | None, machine: Machine) -> bool:
    """Adds `nest` to `group` if enough of its axes are the group's; returns False without change otherwise."""
    if group.alone:
        return False
    matched = [_match(extent, names, group, nest, reads) for extent, names in group.levels]
    kept = [k for k, axis in enumerate(matched) if axis is not None]
    chosen = [matched[k] for k in kept]
    if not kept or len(set(chosen)) != len(chosen):
        return False
    dropped = [group.levels[k][0] for k in range(len(group.levels)) if k not in kept]
    extra = [a.extent for a in nest.axes if a.kind == "parallel" and a.name not in chosen and a.extent != ONE]
    if dropped and group.members and keeps_tiles(group):
        return False
    if _reads_again(reads, {name for name in chosen if name is not None}, nest, machine):
        return False
    whole = not dropped and not extra and all(a.kind == "parallel" for a in nest.axes)
    if whole and contraction is None and _turns(group, nest, matched, reads):
        return False
    if group.products:
        if (not whole or contraction is not None) and not _joins_rows(group, nest, kept, matched, contraction):
            return False
    elif (
        contraction is not None
        or not (_is_row(dropped, machine) and _is_row(extra, machine))
        or (_is_parallel([e for e, _ in group.levels]) and not _is_parallel([group.levels[k][0] for k in kept]))
    ):
        return False
    if group.products and not group.by_rows and dropped:
        group.by_rows = True
        rows = next(iter(group.products.values())).rows
        first = group.members[0].label
        group.levels = sorted((group.levels[k] for k in kept), key=lambda level: level[1][first] == rows)
        matched = [_match(extent, names, group, nest, reads) for extent, names in group.levels]
    else:
        group.levels = [group.levels[k] for k in kept]
        matched = [matched[k] for k in kept]
    for (_, names), axis in zip(group.levels, matched, strict=True):
        assert axis is not None
        names[nest.label] = axis
    group.members.append(nest)
    if contraction is not None:
        group.products[nest] = contraction
    return True


def _turns(group: Group, nest: NestOp, matched: list[str | None], reads: list[Read]) -> bool:
    """True if a nest over all axes of a group reads the group's results contiguously along their vector, the columns of
    a product or the last axis, and writes with the elements of this axis apart. In the loops of the group it would
    store element by element; alone it moves squares through registers. A convolution of 4 to 32 channels and a
    transposition of its results took twice as long in one loop (one thread of a Zen 3)."""
    anchor = group.members[0]
    columns = group.products[anchor].columns if anchor in group.products else None
    for read in reads:
        producer = read.base.owner
        if not isinstance(producer, NestOp) or producer not in group.members or not read.subscripts:
            continue
        lanes = read.subscripts[-1].symbol
        if lanes is None or lanes not in matched or nest.axis(lanes).extent == ONE:
            continue
        if columns is not None and group.levels[matched.index(lanes)][1][anchor.label] != columns:
            continue
        return all(
            _is_apart(clause, result, lanes) for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True)
        )
    return False


def _is_apart(clause: Clause, result: SSAValue, axis: str) -> bool:
    """True if the elements written along an axis do not lie side by side."""
    place = next((k for k, s in enumerate(clause.subscripts) if s.symbol == axis), None)
    return place is not None and any(d != ONE for d in dims_of(result.type)[place + 1 :])


def _reads_again(reads: list[Read], common: Set[str], nest: NestOp, machine: Machine) -> bool:
    """True if a sum would read a whole tensor again for each step of common loops, and the tensor exceeds the cache."""
    if all(a.kind == "parallel" for a in nest.axes):
        return False
    return any(
        isinstance(read.base, BlockArgument)
        and not common & symbols_of(read.subscripts)
        and bytes_of(nest, read.base) > machine.l2_budget
        for read in reads
    )


def _joins_rows(
    group: Group, nest: NestOp, kept: list[int], matched: list[str | None], contraction: Contraction | None
) -> bool:
    """True if a nest runs over the batch axes and rows of a contraction, but not over all of its axes. The members then
    run in sequence over a block of rows. They must not read too much again for every block."""
    anchor = group.members[0]
    first = group.products[anchor]
    if first.rows is None or reads_weights(first) or (contraction is not None and reads_weights(contraction)):
        return False
    common = {*first.batch, first.rows}
    if {group.levels[k][1][anchor.label] for k in kept} != common:
        return False
    if contraction is None:
        return True
    row = next(k for k in kept if group.levels[k][1][anchor.label] == first.rows)
    return matched[row] == contraction.rows and len(contraction.batch) == len(first.batch)


def _is_row(extents: list[Expr], machine: Machine) -> bool:
    """True if axes are a row worth keeping in the cache between the nests of a group."""
    if len(extents) <= 1:
        return True
    total = product(extents).constant
    return total is not None and total <= machine.row_elements


def _is_parallel(extents: list[Expr]) -> bool:
    """True if there is enough work to distribute over threads."""
    total = product(extents).constant
    return total is None or total >= 8


def _match(extent: Expr, names: Mapping[str, str], group: Group, nest: NestOp, reads: list[Read]) -> str | None:
    """Returns the parallel axis of `nest` for one axis of the group."""
    found: set[str] = set()
    parallel = {a.name: a.extent for a in nest.axes if a.kind == "parallel"}
    for read in reads:
        producer = read.base.owner
        if isinstance(producer, NestOp) and producer in group.members:
            axis = names[producer.label]
            clause = producer.yield_op.clauses[producer.outputs.index(read.base)]  # pyright: ignore[reportArgumentType]
            place = [k for k, s in enumerate(clause.subscripts) if s.symbol == axis]
            if len(place) != 1:
                return None
            name = read.subscripts[place[0]].symbol
            if name is None or parallel.get(name) != extent or read.op.indices:
                return None
            found.add(name)
    if not found:
        found = _shared_input(extent, names, group, parallel, reads)
    return found.pop() if len(found) == 1 else None


def _shared_input(
    extent: Expr, names: Mapping[str, str], group: Group, parallel: Mapping[str, Expr], reads: list[Read]
) -> set[str]:
    """Returns the axis that indexes a common input as the group's axis does, for a nest without reads of the group's
    results."""
    for member in group.members:
        for theirs in reads_of(member):
            for ours in reads:
                if ours.base is not theirs.base:
                    continue
                for mine, other in zip(ours.subscripts, theirs.subscripts, strict=True):
                    if other.symbol == names.get(member.label) and mine.symbol and parallel.get(mine.symbol) == extent:
                        return {mine.symbol}
    return set()


def reads_of(nest: NestOp) -> Iterator[Read]:
    """Yields the reads of a nest, traced through the views."""
    for op in nest.reads:
        base, subscripts = op.source, op.subscripts
        ranges = nest.axes_attr.ranges
        while isinstance(base.owner, ViewOp):
            source = base.owner.source
            offset = linearize(subscripts, dims_of(base.type))
            subscripts = tuple(simplify(e, ranges) for e in delinearize(offset, dims_of(source.type)))
            base = source
        yield Read(op, base, subscripts)
