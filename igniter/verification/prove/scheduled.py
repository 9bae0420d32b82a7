"""The values of the scheduled level: the final elements of a `loop.func`, by dataflow analysis.

The source of a load is the last store to its element before it, and the accumulations since: isl computes
both for all sizes (Feautrier, "Dataflow analysis of array and scalar references", 1991; `isl_union_access_info`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from igniter.dialects.loop import (
    AccumulateOp,
    FuncOp,
    IndexOp,
    LoadOp,
    ReadOp,
    ReduceLanesOp,
    StoreOp,
    TileProductOp,
    TransposeOp,
    YieldOp,
)
from igniter.dialects.loop.combiners import identity
from igniter.dialects.sym import dims_of, element_of
from igniter.verification.prove.bodies import body_value, expression_value, position
from igniter.verification.prove.flow import apart, flow, flow_once
from igniter.verification.prove.integers import NotDecided, Points, Relation, Sizes, coalesced, isl
from igniter.verification.prove.products import refined
from igniter.verification.prove.reads import Reader, active_points, by_data, guard_values, guarded, viewed, zero
from igniter.verification.prove.statements import Event, Place, Root, Statements
from igniter.verification.prove.values import (
    Apply,
    Case,
    Fold,
    Named,
    Number,
    Output,
    Pick,
    Pin,
    Problem,
    Program,
    Space,
    Value,
    Whole,
)

OUTSIDE = Place((), {}, (), ())

LAST = (str(1 << 30),)
"""The time of the loads of results, after all statements."""


class ScheduledValues:
    """The values of the statements of a block, with `readers` for its inputs."""

    def __init__(self, sizes: Sizes, prefix: str, readers: Mapping[SSAValue, Reader]):
        self.sizes = sizes
        self.statements = Statements(sizes, prefix)
        self.statements.external = set(readers)
        self.readers = readers
        self.values: dict[tuple[SSAValue, Space], Value] = {}
        self.flows: dict[Root, dict[str, list[tuple[Event, Relation]]]] = {}
        self.resolved: dict[Event, Value] = {}
        self.problems: list[Problem] = []
        self.func: FuncOp | None = None
        """The kernel; None for the statements of a procedure."""
        self.results: list[Root] = []
        """The memory of the kernel's results."""
        self.cuts: dict[Root, tuple[str, Relation]] = {}
        """The buffers with the elements of an array with a name, and the relations from their elements to it."""

    # -- results ------------------------------------------------------------------------------------------------------

    def final(self, root: Root, name: str) -> Output:
        """Adds a load of every element of a root after all statements, in a space called `name`."""
        ids = tuple(f"e{k}" for k in range(len(root.dims)))
        bounds = [f"0 <= {i} < {self.sizes.text(d, {})}" for i, d in zip(ids, root.dims, strict=True)]
        place = Place(ids, {i: i for i in ids}, tuple(bounds), ())
        text = f"{name}[{', '.join(ids)}]"
        space = Space(name, ids, dict(place.env), self.sizes.points(text, bounds))
        event_name = f"{self.statements.prefix}F{name}"
        access = self.sizes.relation(space.named(event_name), f"{root.name}[{', '.join(ids)}]", bounds)
        event = Event("load", event_name, root.value.owner, space, place, root, space.domain, access, LAST)  # pyright: ignore
        root.events.append(event)
        return Output(root.dims, self.resolve(event))

    # -- scalars ------------------------------------------------------------------------------------------------------

    def value(self, ssa: SSAValue, space: Space) -> Value:
        """Returns the value of an SSA value at the instances of a space: of its own block, or of one inside."""
        key = ssa, space
        if key not in self.values:
            self.values[key] = self._value(ssa, space)
        return self.values[key]

    def _value(self, ssa: SSAValue, space: Space) -> Value:
        op = ssa.owner
        if not isinstance(op, Operation):
            raise NotDecided("a block argument that is no buffer")
        if isinstance(op, IndexOp):
            env = {**space.env, op.lane: space.lane} if op.lane is not None and space.lane is not None else space.env
            return position(op.value, Space(space.name, space.ids, dict(env), space.domain, space.lane), self.sizes)
        if isinstance(op, LoadOp):
            return self._load(op, space)
        if isinstance(op, ReduceLanesOp):
            return self._lanes(op, space)
        if isinstance(op, TransposeOp):
            return self._transposed(op, ssa, space)
        return body_value(op, space, lambda v: self.value(v, space))

    def _own_space(self, op: Operation, value: SSAValue) -> Space:
        """Returns the space of a value in its own block."""
        place = self.statements.places[self._block(op)]
        width: int = value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0
        return self.statements.space(place, width)

    def _block(self, op: Operation) -> Block:
        assert op.parent is not None
        return op.parent

    def _lift(self, value: Value, space: Space, key: str) -> Value:
        """Returns a value of an outer space in an inner one."""
        own = value.space
        if own is space:
            return value
        ids = [i if i != own.lane else space.lane or own.lane or i for i in own.ids]
        relation = self.sizes.relation(space.text, f"{own.name}[{', '.join(ids)}]")
        return Pick(space, (Case(key, relation, value),))

    def _load(self, op: LoadOp, space: Space) -> Value:
        own = self._own_space(op, op.result)
        reader = self.readers.get(self.statements.base(op.buffer))
        if reader is not None:
            env = self.statements.lane_env(op, space)
            data = {f"_{k}": self.value(v, space) for k, v in enumerate(op.indices)}
            otherwise = None if op.otherwise is None else self.value(op.otherwise, space)
            dims = tuple(dims_of(op.buffer.type))
            return reader.read(dims, op.subscripts, op.guards, space, env, data, otherwise, element_of(op.buffer.type))
        event = self.statements.loads[op]
        if op in self.statements.viewed:
            return self._load_viewed(op, event, space)
        if event.space.lane is None and len(event.space.ids) > len(own.ids) - bool(own.lane):
            return self._load_by_data(op, event, space)
        return self._lift(self._guarded_load(op, event, own), space, event.name)

    def _load_by_data(self, op: LoadOp, event: Event, space: Space) -> Value:
        root = event.root
        if tuple(dims_of(op.buffer.type)) != root.dims:
            raise NotDecided("a read at a subscript by data, under a view")
        whole = self._whole(event, space)
        env = self.statements.lane_env(op, space)
        data = {f"_{k}": self.value(v, space) for k, v in enumerate(op.indices)}
        other = self.value(op.otherwise, space) if op.otherwise is not None else None
        other = other or Number(space, zero(element_of(op.buffer.type)))
        return by_data(self.sizes, ("computed",), [whole], op.subscripts, op.guards, space, env, data, other)

    def _load_viewed(self, op: LoadOp, event: Event, space: Space) -> Value:
        dims, env = tuple(dims_of(op.buffer.type)), self.statements.lane_env(op, space)
        active = active_points(self.sizes, space, op.guards, env) if op.guards else space.domain
        dims, subscripts = refined(self.sizes, dims, op.subscripts, env, active, space.text)
        found = viewed(self.sizes, self._whole(event, space), dims, subscripts, space, env)
        if not op.guards:
            return found
        texts = ", ".join(self.sizes.text(s, env) for s in subscripts)
        access = self.sizes.relation(space.text, f"A[{texts}]")
        pin = Pin(event.root.label, access, guard_values(self.sizes, space, op.guards, env))
        otherwise = None if op.otherwise is None else self.value(op.otherwise, space)
        return guarded(found, active, space, element_of(op.buffer.type), otherwise, pin)

    def _whole(self, event: Event, space: Space) -> Whole:
        """Returns all elements of a buffer at the time of a load."""
        root = event.root
        names = event.space.ids[len(event.space.ids) - len(root.dims) :]
        elements = self.sizes.relation(space.text, event.space.text).intersect_range(event.space.domain)
        subscripts = self.sizes.relation(event.space.text, f"E[{', '.join(names)}]")
        return Whole(space, root.dims, elements, subscripts, self.resolve(event))

    def _guarded_load(self, op: LoadOp, event: Event, own: Space) -> Value:
        if event in self.resolved:
            return self.resolved[event]
        found = self._sources(event)
        if op.guards:
            otherwise = None if op.otherwise is None else self.value(op.otherwise, own)
            env = self.statements.lane_env(op, own)
            access = event.access.set_tuple_name(isl().dim_type.in_, own.name).set_tuple_name(isl().dim_type.out, "A")
            if not event.root.instance and tuple(dims_of(op.buffer.type)) == event.root.dims:
                # The accesses of masked points, too, although they are none.
                texts = ", ".join(self.sizes.text(s, env) for s in op.subscripts)
                access = self.sizes.relation(own.text, f"A[{texts}]")
            pin = Pin(event.root.label, access, guard_values(self.sizes, own, op.guards, env))
            found = guarded(found, event.active, own, element_of(op.buffer.type), otherwise, pin)
        self.resolved[event] = found
        return found

    def resolve(self, event: Event) -> Value:
        """Returns the value of a load without guards."""
        if event not in self.resolved:
            self.resolved[event] = self._sources(event)
        return self.resolved[event]

    def _lanes(self, op: ReduceLanesOp, space: Space) -> Value:
        wide = self._own_space(op, op.vector)
        assert wide.lane is not None
        relation = self.sizes.relation(space.text, wide.text, [f"0 <= {wide.lane} < {wide.lane[1:]}"])
        case = Case(f"{wide.name}r{id(op)}", relation, self.value(op.vector, wide))
        return Fold(space, op.combiner, op.element, (case,))

    def _transposed(self, op: TransposeOp, ssa: SSAValue, space: Space) -> Value:
        """Returns a column: element `at` of the results is element `(at mod rows, at floordiv rows)` of the matrix."""
        place = next(k for k, column in enumerate(op.columns) if column is ssa)
        rows, lanes = op.rows, op.lanes
        columns = len(op.vectors) * lanes // rows
        lane = space.lane
        cases: list[Case] = []
        for k, vector in enumerate(op.vectors):
            # Results in order hold the transpose in row-major order: at = c*rows + r of element r*columns + c.
            at, source = f"({place * lanes} + {lane})", f"({k * lanes} + m)"
            constraints = [
                f"{source} = ({at} mod {rows})*{columns} + floor({at}/{rows})",
                f"0 <= m < {lanes}",
            ]
            ids = ["m" if i == lane else i for i in space.ids]
            relation = self.sizes.relation(space.text, f"{space.name}[{', '.join(ids)}]", constraints)
            cases.append(Case(f"{space.name}t{id(op)}_{k}", relation, self.value(vector, space)))
        return Pick(space, tuple(cases))

    # -- memory -------------------------------------------------------------------------------------------------------

    def _sources(self, event: Event) -> Value:
        if event.root not in self.cuts:
            return self._stored(event)
        key, relation = self.cuts[event.root]
        kinds = isl().dim_type
        access = event.access.set_tuple_name(kinds.in_, event.space.name)
        access = access.set_tuple_name(kinds.out, relation.get_tuple_name(kinds.in_)).apply_range(relation)
        return Named(event.space, key, access, cache(lambda: self._stored(event)))

    def elements(self, root: Root) -> Output | None:
        """Returns the elements of a buffer that is written once, before it is read: every loaded element, or every
        element of a result; None for other buffers."""
        stores, sums, loads = ([e for e in root.events if e.kind == k] for k in ("store", "accumulate", "load"))
        combiners = {e.combiner for e in sums if e.combiner is not None}
        if not stores or len(combiners) > 1 or not all(map(self._is_once, apart(root.events))):
            return None
        names = tuple(f"e{k}" for k in range(len(root.dims)))
        ids = (*root.instance, *names)
        text = f"{root.name}[{', '.join(ids)}]"
        if root.place is None:
            domain = self.sizes.points(
                text, [f"0 <= {n} < {self.sizes.text(d, {})}" for n, d in zip(names, root.dims, strict=True)]
            )
        else:
            domain = _united([e.access.range() for e in loads])
        written = _united([e.access.range() for e in stores])
        if domain is None or not domain.intersect_params(self.sizes.context()).is_subset(written):
            return None
        space = Space(f"{root.name}e", ids, {i: i for i in ids}, domain.set_tuple_name(f"{root.name}e"))
        cases = tuple(self._case(e, e.access.intersect_range(domain).reverse(), space) for e in (*stores, *sums))
        combiner = sums[0].combiner if sums else None
        if combiner is None:
            return Output(root.dims, Pick(space, cases))
        return Output(root.dims, Fold(space, combiner, element_of(root.value.type), cases))

    def _is_once(self, events: Sequence[Event]) -> bool:
        return flow_once(events, self.sizes) is not None

    def _stored(self, event: Event) -> Value:
        flow = self._flow(event.root)[event.name]
        stores = [(e, r) for e, r in flow if e.kind == "store"]
        sums = [(e, r) for e, r in flow if e.kind == "accumulate"]
        self._check_written(event, [r for _, r in stores])
        cases = [self._case(e, r, event.space) for e, r in (*stores, *sums)]
        if not sums:
            return Pick(event.space, tuple(cases))
        combiner = sums[0][0].combiner
        if combiner is None or any(e.combiner != combiner for e, _ in sums):
            raise NotDecided(f"buffer '{event.root.label}' is accumulated with several combiners")
        return Fold(event.space, combiner, element_of(event.root.value.type), tuple(cases))

    def _case(self, source: Event, relation: Relation, user: Space) -> Case:
        kinds = isl().dim_type
        renamed = relation.set_tuple_name(kinds.in_, user.name).set_tuple_name(kinds.out, source.space.name)
        return Case(source.name, renamed, self._written(source))

    def _written(self, event: Event) -> Value:
        """Returns the stored or accumulated value of an event."""
        op = event.op
        if isinstance(op, TileProductOp):
            if event.kind == "store":
                assert op.kernel is not None
                number = identity(op.kernel.facts.combiner, op.kernel.facts.elements[2])
                return Number(event.space, number.value)
            return self._meaning(op, event)
        assert isinstance(op, (StoreOp, AccumulateOp))
        written = self.value(op.value, event.space)
        earlier = self.statements.earlier.get(op) if isinstance(op, StoreOp) else None
        return written if earlier is None else self._conditional(event, written, self.resolve(earlier))

    def _conditional(self, event: Event, written: Value, earlier: Value) -> Value:
        """Returns the value of an element after a store under conditions by data."""
        space = event.space
        for op in reversed(self.statements.conditions(event.root, event.place)):
            data = {f"_{k}": self.value(v, space) for k, v in enumerate(op.indices)}
            guards = [expression_value(g, space, self.sizes, data) for g in op.guards]
            written = Apply(space, ("if", len(guards)), (*guards, written, earlier))
        return written

    def _meaning(self, op: TileProductOp, event: Event) -> Value:
        """Returns the body of a micro-kernel's meaning at one step."""
        assert op.kernel is not None
        facts, space = op.kernel.facts, event.space
        events = self.statements.tiles[op]
        found: dict[SSAValue, Value] = {}
        for key, read, buffer, at in (
            ("a", facts.a, op.a, op.a_at.data),
            ("b", facts.b, op.b, op.b_at.data),
        ):
            reader = self.readers.get(self.statements.base(buffer))
            if reader is not None:
                dims, element = tuple(dims_of(buffer.type)), element_of(buffer.type)
                found[read.result] = reader.read(dims, at, (), space, space.env, {}, None, element)
            else:
                found[read.result] = self.resolve(events[key])

        def operand(v: SSAValue) -> Value:
            if v not in found:
                assert isinstance(v.owner, Operation) and not isinstance(v.owner, (ReadOp, YieldOp))
                found[v] = body_value(v.owner, space, operand)
            return found[v]

        return operand(facts.nest.yield_op.clauses[0].value)

    def _check_written(self, event: Event, stores: Sequence[Relation]) -> None:
        """Notes loads of elements without a store before."""
        kinds = isl().dim_type
        missing = event.active.set_tuple_name(event.name)
        for relation in stores:
            missing = missing.subtract(relation.set_tuple_name(kinds.in_, event.name).domain())
        missing = missing.intersect_params(self.sizes.context())
        if not missing.is_empty():
            what = "never written" if event.time == LAST else "read before it is written"
            reason = f"an element of '{event.root.label}' is {what}"
            self.problems.append(Problem("coverage", reason, missing.params()))

    def _flow(self, root: Root) -> dict[str, list[tuple[Event, Relation]]]:
        """Returns the sources of every load of a root, by the name of the load, each from the load to the source."""
        loads = [e for e in root.events if e.kind == "load"]
        if root in self.flows and all(e.name in self.flows[root] for e in loads):
            return self.flows[root]
        found: dict[str, list[tuple[Event, Relation]]] = {e.name: [] for e in loads}
        for events in apart(root.events):
            sources = flow_once(events, self.sizes) or flow(events, self.sizes)
            for name, source, relation in sources:
                found[name].append((source, relation))
        for each in found.values():
            each.sort(key=lambda s: s[0].name)
        self.flows[root] = found
        return found


def _united(sets: Sequence[Points]) -> Points | None:
    found: Points | None = None
    for each in sets:
        found = each if found is None else found.union(each)
    return None if found is None else coalesced(found)


def values_of(func: FuncOp, sizes: Sizes, prefix: str) -> ScheduledValues:
    """Returns the statements of a scheduled kernel, with its inputs as readers."""
    sizes.require(func.requires)
    args = list(func.block.args)
    count = len(args) - func.output_count
    readers: dict[SSAValue, Reader] = {
        arg: Reader(sizes, k, tuple(dims_of(arg.type))) for k, arg in enumerate(args[:count])
    }
    values = ScheduledValues(sizes, prefix, readers)
    values.func = func
    statements = values.statements
    statements.survey(func.block)
    values.results = [statements.add_root(arg, f"result {k}", None) for k, arg in enumerate(args[count:])]
    statements.walk(func.block, OUTSIDE)
    return values


def program_of(values: ScheduledValues) -> Program:
    """Returns the results of a scheduled kernel as values."""
    found = [values.final(root, f"O{k}") for k, root in enumerate(values.results)]
    return Program(found, values.problems)
