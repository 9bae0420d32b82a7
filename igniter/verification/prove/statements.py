"""The statements of the scheduled level: iteration domains, times and accesses as relations.

A statement instance runs at a time `[position, axis, position, axis, ...]`: the order of program text and loops. Every
instance of an allocation is a buffer of its own, so an element of it has the values of the loops around the allocation
as its first subscripts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    ForOp,
    IfOp,
    IfSharedOp,
    LoadOp,
    MemoryOp,
    StoreOp,
    TileProductOp,
    ViewOp,
)
from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import INDIRECT, ZERO, Expr, product
from igniter.verification.prove.integers import NotDecided, Points, Relation, Sizes, least
from igniter.verification.prove.joined_loops import JOINED
from igniter.verification.prove.products import refined
from igniter.verification.prove.reshapes import NoReshape, reshape
from igniter.verification.prove.values import Space


@dataclass(frozen=True, eq=False)
class Place:
    """A block of statements: the loops around it as a space, and the start of its times."""

    axes: tuple[str, ...]
    """The loops around, in relations."""
    env: Mapping[str, str]
    constraints: tuple[str, ...]
    time: tuple[str, ...]
    given: tuple[IfOp, ...] = ()
    """The conditions by data around."""
    threads: tuple[int, int, int] | None = None
    """Of the loop with threads around: the number of loops outside of it, with it, and of times before it."""

    def within(self, axis: str, text: Sequence[str], name: str, value: str = "") -> Place:
        """Returns the place with one more dim, `name`; `value` is the text of `axis` if it is another."""
        return replace(
            self,
            axes=(*self.axes, name),
            env={**self.env, axis: value or name},
            constraints=(*self.constraints, *text),
        )


@dataclass(eq=False)
class Root:
    """The memory behind an argument or an allocation."""

    name: str
    """The tuple of its elements."""
    label: str
    value: SSAValue
    dims: tuple[Expr, ...]
    """The dims of all accesses, or of the buffer itself if they differ."""
    place: Place | None
    """The place of the allocation; None for an argument."""
    events: list[Event] = field(default_factory=list["Event"])

    @property
    def instance(self) -> tuple[str, ...]:
        """The dims before the subscripts: the loops around the allocation."""
        return () if self.place is None else self.place.axes


@dataclass(eq=False)
class Event:
    """An access of a statement to one root."""

    kind: str
    """'load', 'store' or 'accumulate'."""
    name: str
    op: Operation
    space: Space
    place: Place
    root: Root
    active: Points
    """The instances with an access, under the name of the space."""
    access: Relation
    """From these to the elements, under the name of the event."""
    time: tuple[str, ...]
    combiner: Combiner | None = None


class Statements:
    """The events of a block and of the loops in it."""

    def __init__(self, sizes: Sizes, prefix: str = ""):
        self.sizes = sizes
        self.prefix = prefix
        self.roots: dict[SSAValue, Root] = {}
        self.views: dict[SSAValue, SSAValue] = {}
        self.loads: dict[Operation, Event] = {}
        self.tiles: dict[TileProductOp, dict[str, Event]] = {}
        self.events: list[Event] = []
        self.places: dict[Block, Place] = {}
        self.spaces: dict[tuple[object, ...], Space] = {}
        self.used: dict[SSAValue, list[tuple[Expr, ...]]] = {}
        self.external: set[SSAValue] = set()
        self.earlier: dict[StoreOp, Event] = {}
        """The loads of the elements before stores under conditions by data."""
        self.viewed: set[LoadOp] = set()
        """The loads under a view whose strides are sizes: each is modelled as a load of every element."""

    # -- roots --------------------------------------------------------------------------------------------------------

    def survey(self, block: Block) -> None:
        """Notes the views, and the accessed dims of every root."""
        for op in block.walk():
            if isinstance(op, ViewOp):
                self.views[op.result] = op.source
            elif isinstance(op, (LoadOp, StoreOp, AccumulateOp)):
                self._use(op.accessed)
            elif isinstance(op, TileProductOp):
                for buffer, _, _ in op.accesses:
                    self._use(buffer)

    def _use(self, buffer: SSAValue) -> None:
        known = self.used.setdefault(self.base(buffer), [])
        dims = tuple(dims_of(buffer.type))
        if dims not in known:
            known.append(dims)

    def base(self, buffer: SSAValue) -> SSAValue:
        """Returns the root behind the views."""
        while buffer in self.views:
            buffer = self.views[buffer]
        return buffer

    def add_root(self, value: SSAValue, label: str, place: Place | None) -> Root:
        """Adds an argument or an allocation."""
        used = self.used.get(value, [])
        dims = used[0] if len(used) == 1 else tuple(dims_of(value.type))
        root = Root(f"{self.prefix}A{len(self.roots)}", label, value, dims, place)
        self.roots[value] = root
        return root

    # -- spaces -------------------------------------------------------------------------------------------------------

    def space(self, place: Place, width: int = 0) -> Space:
        """Returns the space of the scalars of a place, or of the lanes of its vectors of `width`."""
        key = (place, width)
        if key not in self.spaces:
            ids, constraints = place.axes, place.constraints
            lane = None
            if width:
                lane = f"l{width}"
                ids, constraints = (*ids, lane), (*constraints, f"0 <= {lane} < {width}")
            name = f"{self.prefix}C{len(self.spaces)}"
            domain = self.sizes.points(f"{name}[{', '.join(ids)}]", constraints)
            self.spaces[key] = Space(name, ids, dict(place.env), domain, lane)
        return self.spaces[key]

    # -- the walk -----------------------------------------------------------------------------------------------------

    def walk(self, block: Block, place: Place) -> None:
        """Adds the events of a block."""
        self.places[block] = place
        for position, op in enumerate(block.ops):
            time = (*place.time, str(position))
            if isinstance(op, AllocOp):
                self.add_root(op.result, op.label.data, place)
            elif isinstance(op, ForOp):
                self.walk(op.block, self._loop(op, place, time))
            elif isinstance(op, IfOp):
                self.walk(op.block, self._condition(op, place, time))
            elif isinstance(op, IfSharedOp):
                # A structured kernel has no buffers, so a proof is about buffers that are apart.
                self.walk(op.apart.block, replace(place, time=(*time, "0")))
            elif isinstance(op, (LoadOp, StoreOp, AccumulateOp)):
                self._memory(op, place, time)
            elif isinstance(op, TileProductOp):
                self._tile(op, place, time)
            elif op.regions or op.name in ("loop.call", "loop.launch", "loop.slice"):
                raise NotDecided(f"'{op.name}' is not modelled")

    def _loop(self, op: ForOp, place: Place, time: tuple[str, ...]) -> Place:
        if op.indices or op.going is not None:
            raise NotDecided(f"the iterations of loop '{op.axis}' depend on data")
        name = f"x{len(place.axes)}"
        # The dim counts iterations: without remainders, relations stay small.
        first = self.sizes.text(op.first, place.env)
        value = name if op.first == ZERO and op.step == 1 else f"({first} + {op.step}*{name})"
        ends = [f"{value} < {self.sizes.text(e, place.env)}" for e in least(op.end)]
        inner = place.within(op.axis, [f"0 <= {name}", *ends], name, value)
        threads = place.threads
        if op.grain is not None:
            depth = len(place.axes)
            if threads is None:
                threads = depth, depth + 1, len(time)
            elif JOINED in op.attributes and threads[1] == depth:
                threads = threads[0], depth + 1, threads[2]
        return replace(inner, time=(*time, name), threads=threads)

    def _below(self, name: str, extent: Expr, env: Mapping[str, str]) -> list[str]:
        return [f"0 <= {name}", *(f"{name} < {self.sizes.text(e, env)}" for e in least(extent))]

    def _condition(self, op: IfOp, place: Place, time: tuple[str, ...]) -> Place:
        given = (*place.given, op) if op.indices else place.given
        guards = self.sizes.holds([g for g in op.guards if not _is_data(g)], place.env)
        return replace(place, constraints=(*place.constraints, *guards), given=given, time=(*time, "0"))

    def _memory(self, op: LoadOp | StoreOp | AccumulateOp, place: Place, time: tuple[str, ...]) -> None:
        value = op.result if isinstance(op, LoadOp) else op.value
        space = self.space(place, _width(value))
        env = self.lane_env(op, space)
        if self.base(op.accessed) in self.external and isinstance(op, LoadOp):
            return
        if any(map(_is_data, (*op.subscripts, *op.guards))):
            if not isinstance(op, LoadOp):
                raise NotDecided("a store depends on data")
            self._load_whole(op, place, time)
            return
        kind = {LoadOp: "load", StoreOp: "store", AccumulateOp: "accumulate"}[type(op)]
        if not isinstance(op, LoadOp) and self.conditions(self.roots[self.base(op.accessed)], place):
            self._store_by_data(op, place, time)
            return
        combiner = op.combiner if isinstance(op, AccumulateOp) else None
        try:
            event = self.event(
                kind, op, op.accessed, op.subscripts, op.guards, space, env, place, (*time, "0"), combiner
            )
        except NoReshape:
            if not isinstance(op, LoadOp):
                raise
            self.viewed.add(op)
            self._load_whole(op, place, time)
            return
        if isinstance(op, LoadOp):
            self.loads[op] = event

    def conditions(self, root: Root, place: Place) -> tuple[IfOp, ...]:
        """Returns the conditions by data around a store to memory from outside of them."""
        return place.given[0 if root.place is None else len(root.place.given) :]

    def _store_by_data(self, op: StoreOp | AccumulateOp, place: Place, time: tuple[str, ...]) -> None:
        """Adds a store under a condition by data: a store of the stored value or of the element as it was."""
        if not isinstance(op, StoreOp):
            raise NotDecided("an accumulation depends on data")
        space = self.space(place, _width(op.value))
        env = self.lane_env(op, space)
        for k, kind in enumerate(("load", "store")):
            event = self.event(kind, op, op.accessed, op.subscripts, op.guards, space, env, place, (*time, str(k)))
            if kind == "load":
                self.earlier[op] = event

    def _load_whole(self, op: LoadOp, place: Place, time: tuple[str, ...]) -> None:
        """Adds a load of every element of a buffer: the one that is read depends on data, or has no relation."""
        root = self.roots[self.base(op.buffer)]
        names = [f"e{k}" for k in range(len(root.dims))]
        inner = place
        for name, dim in zip(names, root.dims, strict=True):
            inner = inner.within(name, [f"0 <= {name} < {self.sizes.text(dim, {})}"], name)
        space = self.space(inner)
        subscripts = [Expr.of(n) for n in names]
        self.loads[op] = self.event(
            "load", op, root.value, subscripts, (), space, space.env, inner, (*time, "0"), of=root.dims
        )

    def lane_env(self, op: MemoryOp, space: Space) -> Mapping[str, str]:
        """Returns the texts of the axes in an access, with its lane."""
        return {**space.env, op.lane: space.lane} if op.lane is not None and space.lane is not None else space.env

    def event(
        self,
        kind: str,
        op: Operation,
        buffer: SSAValue,
        subscripts: Sequence[Expr],
        guards: Sequence[Expr],
        space: Space,
        env: Mapping[str, str],
        place: Place,
        time: tuple[str, ...],
        combiner: Combiner | None = None,
        of: tuple[Expr, ...] | None = None,
    ) -> Event:
        """Adds an access, under the dims `of` (default: those of the buffer)."""
        root = self.roots[self.base(buffer)]
        name = f"{self.prefix}S{len(self.events)}"
        conditions = self.sizes.holds(guards, env)
        active = space.domain
        if conditions:
            active = active.intersect(self.sizes.points(space.text, conditions))
        dims = tuple(dims_of(buffer.type)) if of is None else of
        named = active.set_tuple_name(name)
        dims, subscripts = refined(self.sizes, dims, subscripts, env, named, space.named(name))
        if not root.events and product(dims) == product(root.dims) and len(dims) > len(root.dims):
            # The first access names the dims behind a product of sizes.
            root.dims = dims
        access = self.access(root, dims, subscripts, space.named(name), env)
        access = access.intersect_domain(named)
        found = Event(kind, name, op, space, place, root, active, access, time, combiner)
        self.events.append(found)
        root.events.append(found)
        return found

    def access(
        self, root: Root, dims: tuple[Expr, ...], subscripts: Sequence[Expr], left: str, env: Mapping[str, str]
    ) -> Relation:
        """Returns the relation from instances to elements of a root."""
        texts = [self.sizes.text(s, env) for s in subscripts]
        if dims == root.dims:
            return self.sizes.relation(left, f"{root.name}[{', '.join((*root.instance, *texts))}]")
        if root.instance:
            raise NotDecided(f"buffer '{root.label}' has a view inside of a loop")
        plain = self.sizes.relation(left, f"V[{', '.join(texts)}]")
        return plain.apply_range(reshape(self.sizes, dims, root.dims, "V", root.name))

    def _tile(self, op: TileProductOp, place: Place, time: tuple[str, ...]) -> None:
        """Adds the events of a micro-kernel by its meaning: sums start from the identity, then each step is added."""
        if op.kernel is None:
            raise NotDecided("there is no micro-kernel for these element types")
        names = {n: f"x{len(place.axes) + k}" for k, n in enumerate(op.names)}
        whole = place
        for name, extent in op.extents.items():
            inner = names[name]
            whole = whole.within(name, self._below(inner, extent, whole.env), inner)
        element = place
        for name in op.names[:3]:
            element = element.within(name, self._below(names[name], op.extents[name], place.env), names[name])
        found: dict[str, Event] = {}
        combiner = op.kernel.facts.combiner
        if not op.adds:
            space = self.space(element)
            found["first"] = self.event("store", op, op.c, op.c_at.data, (), space, space.env, element, (*time, "0"))
        space = self.space(whole)
        for key, buffer, at in (("a", op.a, op.a_at.data), ("b", op.b, op.b_at.data)):
            if self.base(buffer) not in self.external:
                found[key] = self.event("load", op, buffer, at, (), space, space.env, whole, (*time, "1"))
        found["sum"] = self.event(
            "accumulate", op, op.c, op.c_at.data, (), space, space.env, whole, (*time, "2"), combiner
        )
        self.tiles[op] = found


def _is_data(e: Expr) -> bool:
    return any(INDIRECT.fullmatch(n) for n in e.symbols)


def _width(value: SSAValue) -> int:
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0
