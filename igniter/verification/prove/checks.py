"""Facts about the accesses of a scheduled kernel beyond its results: bounds, single writes, races."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import VectorType

from igniter.analysis.structured.bounds import known_accesses
from igniter.dialects.loop import FuncOp, LoadOp, TileProductOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import INDIRECT, Expr, product, symbols_of
from igniter.verification.prove.integers import Points, Relation, Relations, Sizes
from igniter.verification.prove.matching import empty, union
from igniter.verification.prove.products import refined
from igniter.verification.prove.scheduled import ScheduledValues
from igniter.verification.prove.statements import Event, Place, Root
from igniter.verification.prove.values import Problem


def check_accesses(values: ScheduledValues, func: FuncOp) -> Iterator[Problem]:
    """Yields the facts without a proof for all sizes."""
    yield from _bounds(values)
    yield from _inputs(values, func)
    yield from _views(func)
    roots = list(values.statements.roots.values())
    for root in roots:
        if root.place is None:
            yield from _written_once(root, values.sizes)
        yield from _races(root, values.sizes)


# -- bounds -----------------------------------------------------------------------------------------------------------


def _bounds(values: ScheduledValues) -> Iterator[Problem]:
    """Checks the bounds of every access of a buffer of the kernel."""
    sizes = values.sizes
    for root in values.statements.roots.values():
        names = [f"e{k}" for k in range(len(root.dims))]
        text = f"{root.name}[{', '.join((*root.instance, *names))}]"
        inside = sizes.points(text, _in_dims(sizes, names, root.dims))
        for event in root.events:
            outside = event.access.range().subtract(inside).intersect_params(sizes.context())
            if not outside.is_empty():
                yield Problem("bounds", f"a {event.kind} of '{root.label}' is out of bounds", outside.params())


def _inputs(values: ScheduledValues, func: FuncOp) -> Iterator[Problem]:
    """Checks the bounds of every access of an input."""
    statements, sizes = values.statements, values.sizes
    for op in func.walk():
        if isinstance(op, LoadOp) and any(INDIRECT.fullmatch(n) for n in symbols_of((*op.subscripts, *op.guards))):
            # The verifier asks for guards of a subscript by data, and the prover of bounds for the others.
            yield from _by_data(op, func)
        elif isinstance(op, LoadOp) and (statements.base(op.buffer) in statements.external or op in statements.viewed):
            kind = op.result.type
            width: int = kind.get_shape()[0] if isinstance(kind, VectorType) else 0
            assert op.parent is not None
            space = statements.space(statements.places[op.parent], width)
            env = statements.lane_env(op, space)
            guards = sizes.holds(op.guards, env)
            active = space.domain.intersect(sizes.points(space.text, guards)) if guards else space.domain
            yield from _inside(sizes, active, space.text, op.subscripts, env, tuple(dims_of(op.buffer.type)))
        elif isinstance(op, TileProductOp):
            space = statements.tiles[op]["sum"].space
            for buffer, key, subscripts in op.accesses:
                if key != "c_at" and statements.base(buffer) in statements.external:
                    dims = tuple(dims_of(buffer.type))
                    yield from _inside(sizes, space.domain, space.text, subscripts, space.env, dims)


def _inside(
    sizes: Sizes, active: Points, left: str, subscripts: Sequence[Expr], env: Mapping[str, str], dims: tuple[Expr, ...]
) -> Iterator[Problem]:
    shown = ", ".join(map(str, subscripts))
    dims, subscripts = refined(sizes, dims, subscripts, env, active, left)
    texts = [sizes.text(s, env) for s in subscripts]
    inside = sizes.points(left, _in_dims(sizes, texts, dims)) if dims else active
    outside = active.subtract(inside).intersect_params(sizes.context())
    if not outside.is_empty():
        yield Problem("bounds", f"a load at [{shown}] is out of bounds", outside.params())


def _in_dims(sizes: Sizes, texts: Sequence[str], dims: Sequence[Expr]) -> list[str]:
    return [f"0 <= {t} < {sizes.text(d, {})}" for t, d in zip(texts, dims, strict=True)]


def _by_data(op: LoadOp, func: FuncOp) -> Iterator[Problem]:
    for access in known_accesses(func):
        if access.op is op:
            for _, reason in access.unproven():
                yield Problem("bounds", f"a load by data: {reason}")


def _views(func: FuncOp) -> Iterator[Problem]:
    for op in func.walk():
        if isinstance(op, ViewOp):
            source, target = (product(dims_of(v.type)) for v in (op.source, op.result))
            if source != target:
                yield Problem("bounds", f"a view of {source} elements as {target} is not known to have as many")


# -- single writes ----------------------------------------------------------------------------------------------------


def _written_once(root: Root, sizes: Sizes) -> Iterator[Problem]:
    """Checks for elements of a result with two stores."""
    stores = union([e.access for e in root.events if e.kind == "store"])
    if stores.is_injective():
        return
    twice = stores.apply_range(stores.reverse())
    pairs = twice.subtract(twice.domain().identity()).intersect_params(sizes.context())
    if not pairs.is_empty():
        yield Problem("writes", f"an element of '{root.label}' is stored twice", pairs.params())


# -- races ------------------------------------------------------------------------------------------------------------


def _races(root: Root, sizes: Sizes) -> Iterator[Problem]:
    """Checks for races: two iterations of a loop with threads access one element from outside of the loop, and one of
    them writes."""
    outside = [e for e in root.events if _threaded(e, root)]
    writes = [e for e in outside if e.kind != "load"]
    if not writes:
        return
    by_loop: dict[tuple[str, ...], list[Event]] = {}
    for event in outside:
        by_loop.setdefault(_loop(event.place), []).append(event)
    for events in by_loop.values():
        written = union([_iteration(e, sizes) for e in events if e.kind != "load"])
        touched = union([_iteration(e, sizes) for e in events])
        both = written.reverse().apply_range(touched) if not written.is_empty() else empty()
        both = both.subtract(both.domain().identity()).intersect_params(sizes.context())
        both = both.intersect(_same_outer(events[0], sizes))
        if not both.is_empty():
            reason = f"two iterations of a loop with threads access an element of '{root.label}'"
            yield Problem("threads", reason, both.params())


def _threaded(event: Event, root: Root) -> bool:
    threads = event.place.threads
    return threads is not None and len(root.instance) <= threads[0]


def _loop(place: Place) -> tuple[str, ...]:
    """Returns the identity of the loop with threads: the times before it."""
    assert place.threads is not None
    return place.time[: place.threads[2]]


def _iteration(event: Event, sizes: Sizes) -> Relation:
    """Returns the relation from elements to the iterations of the loop with threads, and the loops around it."""
    threads = event.place.threads
    assert threads is not None
    dims = event.space.ids[: threads[1]]
    to_loop = sizes.relation(event.space.named(event.name), f"T[{', '.join(dims)}]")
    return event.access.reverse().apply_range(to_loop)


def _same_outer(event: Event, sizes: Sizes) -> Relations:
    threads = event.place.threads
    assert threads is not None
    left = [f"a{k}" for k in range(threads[1])]
    right = [*left[: threads[0]], *(f"b{k}" for k in range(threads[0], threads[1]))]
    return sizes.relation(f"T[{', '.join(left)}]", f"T[{', '.join(right)}]").to_union_map()
