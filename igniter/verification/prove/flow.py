"""Dataflow in one buffer: the last store to a loaded element, and the accumulations since.

Most buffers are written once: then the source of a load is the store to its element, if it runs before. `flow_once`
checks just that. For other buffers, `flow` has isl find the last store before each load. Accesses to disjoint parts of
a buffer, such as the registers of an unrolled tile, are `apart`: each part is a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from igniter.dialects.loop import AccumulateOp, LoadOp, StoreOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import INDIRECT, Expr, symbols_of
from igniter.verification.prove.integers import Relation, Sizes, coalesced, isl
from igniter.verification.prove.matching import maps, union
from igniter.verification.prove.statements import Event

Interval = tuple[int, int] | None
"""The first and the last value of a subscript; None if they are not constant."""
Source = tuple[str, Event, Relation]
"""The name of a load, a source, and the relation from the load to the source."""


def flow_once(events: Sequence[Event], sizes: Sizes) -> list[Source] | None:
    """Returns the sources of the loads of a buffer if each element is stored once, before its accumulations, and loaded
    after them; None otherwise."""
    loads, stores, sums = ([e for e in events if e.kind == k] for k in ("load", "store", "accumulate"))
    if not union([e.access for e in stores]).is_injective():
        return None
    for each in sums:
        if any(_late(each, store, _pairs(each, store), sizes) for store in stores):
            return None
    found: list[Source] = []
    for load in loads:
        for source in (*stores, *sums):
            pairs = _pairs(load, source)
            if pairs.is_empty():
                continue
            if _late(load, source, pairs, sizes):
                return None
            found.append((load.name, source, pairs))
    return found


def _pairs(user: Event, source: Event) -> Relation:
    return user.access.apply_range(source.access.reverse())


def _late(user: Event, source: Event, pairs: Relation, sizes: Sizes) -> bool:
    """True if some instance of `source` does not run before the instance of `user` for one element."""
    depth = max(len(user.time), len(source.time))
    shared = 1 + 2 * len(user.root.instance)
    # Both are in the same iterations of the loops around the allocation.
    for k, (a, b) in enumerate(zip(user.time, source.time, strict=False)):
        if a == b and (k < shared or not a.startswith("x")):
            continue
        if a.isdecimal() and b.isdecimal() and a != b:
            return int(b) > int(a) and not pairs.is_empty()
        break
    late = _time(user, depth, sizes).lex_le_map(_time(source, depth, sizes))
    return not pairs.intersect(late).is_empty()


def flow(events: Sequence[Event], sizes: Sizes) -> list[Source]:
    """Returns the sources of the loads of a buffer: the last store before, and the accumulations since."""
    kinds = {k: [e for e in events if e.kind == k] for k in ("load", "store", "accumulate")}
    depth = max(len(e.time) for e in events)
    schedule = union([_time(e, depth, sizes) for e in events])
    accesses = {k: union([e.access for e in v]) for k, v in kinds.items()}
    info = isl().UnionAccessInfo.from_sink(accesses["load"])
    info = info.set_must_source(accesses["store"]).set_may_source(accesses["accumulate"])
    found = info.set_schedule_map(schedule).compute_flow()
    by_name = {e.name: e for e in events}
    sources: list[Source] = []
    for relation in maps(found.get_may_dependence().union(found.get_must_dependence())):
        source = by_name[relation.get_tuple_name(isl().dim_type.in_)]
        sources.append((relation.get_tuple_name(isl().dim_type.out), source, coalesced(relation.reverse())))
    return sources


def _time(event: Event, depth: int, sizes: Sizes) -> Relation:
    padded = [*event.time, *("0",) * (depth - len(event.time))]
    return sizes.relation(event.space.named(event.name), f"T[{', '.join(padded)}]")


def apart(events: Sequence[Event]) -> list[list[Event]]:
    """Returns the events in groups whose elements are disjoint."""
    groups: list[tuple[list[list[Interval]], list[Event]]] = []
    for event in events:
        box = _box(event)
        boxes, members, rest = [box], [event], []
        for group in groups:
            if any(_meet(box, other) for other in group[0]):
                boxes += group[0]
                members += group[1]
            else:
                rest.append(group)
        groups = [*rest, (boxes, members)]
    order = {e: k for k, e in enumerate(events)}
    return [sorted(members, key=lambda e: order[e]) for _, members in groups]


def _meet(a: Sequence[Interval], b: Sequence[Interval]) -> bool:
    return all(x is None or y is None or (x[0] <= y[1] and y[0] <= x[1]) for x, y in zip(a, b, strict=True))


def _box(event: Event) -> list[Interval]:
    """Returns the intervals of the subscripts of an access."""
    op = event.op
    whole: list[Interval] = [None] * len(event.root.dims)
    if not isinstance(op, (LoadOp, StoreOp, AccumulateOp)) or event.root.value is op:
        return whole
    if tuple(dims_of(op.accessed.type)) != event.root.dims or (event.space.lane is None and op.lane is not None):
        return whole
    if any(INDIRECT.fullmatch(n) for n in symbols_of(op.subscripts)):
        return whole
    return [_interval(s, op.lane, _width(op)) for s in op.subscripts]


def _interval(subscript: Expr, lane: str | None, width: int) -> Interval:
    ends: list[int] = []
    for value in (0, max(width - 1, 0)):
        end = subscript.substitute({lane: Expr.of(value)}) if lane is not None else subscript
        if end.constant is None:
            return None
        ends.append(end.constant)
    return min(ends), max(ends)


def _width(op: Operation) -> int:
    value = op.results[0] if isinstance(op, LoadOp) else op.operands[0]
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0
