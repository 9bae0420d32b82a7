"""The values of the structured level: a read of a result is the value of its writing points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.ir import Operation, SSAValue

from igniter.dialects.loop import IndexOp, KernelOp, NestOp, ProcedureOp, ReadOp, ViewOp
from igniter.dialects.loop.bodies import Clause
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import INDIRECT, Expr, symbols_of
from igniter.verification.prove.bodies import body_value, position
from igniter.verification.prove.integers import NotDecided, Relation, Sizes, isl
from igniter.verification.prove.products import Split, refined, split_axis
from igniter.verification.prove.reads import Reader, active_points, by_data, guard_values, guarded, viewed, zero
from igniter.verification.prove.reshapes import reshape
from igniter.verification.prove.scheduled import ScheduledValues
from igniter.verification.prove.statements import Place
from igniter.verification.prove.values import (
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


@dataclass(frozen=True, eq=False)
class Written:
    """A result of a nest, with the writing points of each element."""

    clause: Clause
    space: Space
    dims: tuple[Expr, ...]
    """The dims of the elements, products of sizes as several dims."""
    relation: Relation
    """From the elements, the tuple `E`, to the points."""
    value: Value


class StructuredValues:
    """The values of a `loop.kernel`."""

    def __init__(self, kernel: KernelOp, sizes: Sizes, prefix: str):
        self.sizes = sizes
        self.prefix = prefix
        self.readers: dict[SSAValue, Reader] = {}
        for k, arg in enumerate(kernel.block.args):
            self.readers[arg] = Reader(sizes, k, tuple(dims_of(arg.type)))
        self.spaces: dict[NestOp, Space] = {}
        self.splits: dict[Space, list[Split]] = {}
        self.written: dict[SSAValue, Written] = {}
        self.procedures: dict[ProcedureOp, ScheduledValues] = {}
        self.problems: list[Problem] = []
        self.wholes: dict[tuple[SSAValue, tuple[Expr, ...]], Value] = {}
        self.outputs = 0
        self.cuts: dict[SSAValue, tuple[str, Relation]] = {}
        """The arrays with a name in both programs, and the relations from their elements, the tuple `E`, to it."""
        self.named: dict[SSAValue, tuple[str, Output]] = {}
        self.finals: dict[SSAValue, Output] = {}
        """The results of procedures."""

    # -- elements -----------------------------------------------------------------------------------------------------

    def output(self, value: SSAValue, dims: tuple[Expr, ...], name: str) -> Output:
        """Returns the elements of a result under `dims`, in a space called `name`."""
        ids = tuple(f"e{k}" for k in range(len(dims)))
        bounds = [f"0 <= {i} < {self.sizes.text(d, {})}" for i, d in zip(ids, dims, strict=True)]
        text = f"{name}[{', '.join(ids)}]"
        space = Space(name, ids, {i: i for i in ids}, self.sizes.points(text, bounds))
        source = value
        while isinstance(source.owner, ViewOp) and tuple(dims_of(source.type)) != dims:
            source = source.owner.source
        return Output(dims, self.read(source, dims, [Expr.of(i) for i in ids], space))

    def read(
        self,
        tensor: SSAValue,
        dims: tuple[Expr, ...],
        subscripts: Sequence[Expr],
        space: Space,
        guards: Sequence[Expr] = (),
        data: Mapping[str, Value] | None = None,
        otherwise: Value | None = None,
    ) -> Value:
        """Returns the value of a read of a tensor, under a view with `dims`."""
        while isinstance(tensor.owner, ViewOp):
            tensor = tensor.owner.source
        element = element_of(tensor.type)
        if tensor in self.readers:
            reader = self.readers[tensor]
            return reader.read(dims, subscripts, guards, space, space.env, data or {}, otherwise, element)
        if any(INDIRECT.fullmatch(n) for n in symbols_of((*subscripts, *guards))):
            other = otherwise or Number(space, zero(element))
            whole = self._whole(tensor, dims, space)
            return by_data(self.sizes, ("computed",), [whole], subscripts, guards, space, space.env, data or {}, other)
        active = active_points(self.sizes, space, guards, space.env) if guards else space.domain
        dims, subscripts = refined(self.sizes, dims, subscripts, space.env, active, space.text)
        texts = ", ".join(self.sizes.text(s, space.env) for s in subscripts)
        access = self.sizes.relation(space.text, f"E[{texts}]")
        own = self.own_dims(tensor)
        if own == dims:
            found = self._element(tensor, access.intersect_domain(active), space)
        else:
            try:
                access = access.apply_range(reshape(self.sizes, dims, own, "E", "E"))
                found = self._element(tensor, access.intersect_domain(active), space)
            except NotDecided:
                found = viewed(self.sizes, self._whole(tensor, own, space), dims, subscripts, space, space.env)
        if not guards:
            return found
        pin = Pin(
            _label(tensor), access.set_tuple_name(_out(), "A"), guard_values(self.sizes, space, guards, space.env)
        )
        return guarded(found, active, space, element, otherwise, pin)

    def own_dims(self, tensor: SSAValue) -> tuple[Expr, ...]:
        """Returns the dims of the elements of a computed tensor."""
        return self._written(tensor).dims if isinstance(tensor.owner, NestOp) else tuple(dims_of(tensor.type))

    # -- cuts ---------------------------------------------------------------------------------------------------------

    def elements(self, tensor: SSAValue) -> Output:
        """Returns the elements of a computed tensor."""
        space, access = self._all(tensor)
        return Output(self.own_dims(tensor), self._computed(tensor, access, space))

    def named_elements(self, tensor: SSAValue) -> tuple[str, Output]:
        """Returns the elements of a computed tensor as an array with a name, and the name."""
        if tensor not in self.named:
            key = f"{self.prefix}K{len(self.named)}"
            space, access = self._all(tensor)
            named = access.set_tuple_name(_out(), key)
            value = Named(space, key, named, cache(lambda: self._computed(tensor, access, space)))
            self.named[tensor] = key, Output(self.own_dims(tensor), value)
        return self.named[tensor]

    def cut(self, tensor: SSAValue) -> None:
        """Reads of a tensor are elements of its array with a name from here on."""
        key, output = self.named[tensor]
        names = ", ".join(output.value.space.ids)
        self.cuts[tensor] = key, self.sizes.relation(f"E[{names}]", f"{key}[{names}]")

    def _all(self, tensor: SSAValue) -> tuple[Space, Relation]:
        """Returns the space of the elements of a tensor, and the relation to them."""
        self.outputs += 1
        dims = self.own_dims(tensor)
        ids = tuple(f"e{k}" for k in range(len(dims)))
        bounds = [f"0 <= {i} < {self.sizes.text(d, {})}" for i, d in zip(ids, dims, strict=True)]
        text = f"{self.prefix}T{self.outputs}[{', '.join(ids)}]"
        space = Space(f"{self.prefix}T{self.outputs}", ids, {i: i for i in ids}, self.sizes.points(text, bounds))
        return space, self.sizes.relation(text, f"E[{', '.join(ids)}]").intersect_domain(space.domain)

    def _whole(self, tensor: SSAValue, dims: tuple[Expr, ...], space: Space) -> Whole:
        """Returns all elements of a tensor, under `dims`."""
        key = tensor, dims
        if key not in self.wholes:
            self.outputs += 1
            self.wholes[key] = self.output(tensor, dims, f"{self.prefix}W{self.outputs}").value
        value = self.wholes[key]
        elements = isl().Map.from_domain_and_range(space.domain, value.space.domain)
        subscripts = self.sizes.relation(value.space.text, f"E[{', '.join(value.space.ids)}]")
        return Whole(space, dims, elements, subscripts, value)

    def _element(self, tensor: SSAValue, access: Relation, space: Space) -> Value:
        """Returns the value of the elements behind `access`."""
        if tensor not in self.cuts:
            return self._computed(tensor, access, space)
        key, relation = self.cuts[tensor]
        return Named(space, key, access.apply_range(relation), cache(lambda: self._computed(tensor, access, space)))

    def _computed(self, tensor: SSAValue, access: Relation, space: Space) -> Value:
        """Returns the value of the elements behind `access` as a function of other values."""
        if isinstance(tensor.owner, ProcedureOp):
            return self._procedure(tensor.owner, tensor, access, space)
        written = self._written(tensor)
        relation = access.apply_range(written.relation)
        case = Case(f"{written.space.name}w{tensor.index}", relation, written.value)  # pyright: ignore
        if written.clause.combiner != "none":
            return Fold(space, written.clause.combiner, element_of(tensor.type), (case,))
        cases = [case]
        if written.clause.otherwise is not None:
            rest = access.domain().subtract(relation.domain())
            cases.append(Case("else", rest.identity(), Number(space, written.clause.otherwise)))
        return Pick(space, tuple(cases))

    def _written(self, tensor: SSAValue) -> Written:
        if tensor not in self.written:
            nest = tensor.owner
            assert isinstance(nest, NestOp)
            clause = nest.yield_op.clauses[list(nest.outputs).index(tensor)]  # pyright: ignore
            space = self._space(nest)
            at = [self.split(s, space) for s in clause.subscripts]
            dims, at = refined(self.sizes, tuple(dims_of(tensor.type)), at, space.env, space.domain, space.text)
            texts = ", ".join(self.sizes.text(s, space.env) for s in at)
            writes = self.sizes.relation(space.text, f"E[{texts}]").intersect_domain(space.domain)
            self.written[tensor] = Written(
                clause, space, dims, writes.reverse(), _Body(self, space).value(clause.value)
            )
        return self.written[tensor]

    def _space(self, nest: NestOp) -> Space:
        if nest not in self.spaces:
            splits, axes = list[Split](), list[tuple[str, Expr]]()
            for axis in nest.axes:
                more, pair = split_axis(axis.name, axis.extent, self.sizes)
                splits, axes = [*splits, *more], [*axes, *pair]
            ids = tuple(f"x{k}" for k in range(len(axes)))
            bounds = [f"0 <= {i} < {self.sizes.text(extent, {})}" for i, (_, extent) in zip(ids, axes, strict=True)]
            name = f"{self.prefix}N{len(self.spaces)}"
            env = {a: i for i, (a, _) in zip(ids, axes, strict=True)}
            domain = self.sizes.points(f"{name}[{', '.join(ids)}]", bounds)
            self.spaces[nest] = Space(name, ids, env, domain)
            self.splits[self.spaces[nest]] = splits
        return self.spaces[nest]

    def split(self, e: Expr, space: Space) -> Expr:
        """Returns an expression with the axes of a nest split."""
        for split in self.splits.get(space, ()):
            e = split.apply(e)
        return e

    # -- procedures ---------------------------------------------------------------------------------------------------

    def _procedure(self, op: ProcedureOp, tensor: SSAValue, access: Relation, space: Space) -> Value:
        """Returns the final elements of a procedure's result."""
        if op not in self.procedures:
            readers: dict[SSAValue, Reader] = {}
            for buffer, source in zip(op.read_buffers, op.inputs, strict=True):
                readers[buffer] = TensorReader(self.sizes, 0, tuple(dims_of(source.type)), self, source)
            values = ScheduledValues(self.sizes, f"{self.prefix}P{len(self.procedures)}", readers)
            values.statements.survey(op.block)
            for k, buffer in enumerate(op.written_buffers):
                values.statements.add_root(buffer, f"{op.label} {k}", None)
            place = Place((), {}, (), ())
            for axis in op.axes:
                name = f"x{len(place.axes)}"
                inner = place.within(axis.name, [f"0 <= {name} < {self.sizes.text(axis.extent, {})}"], name)
                place = Place(inner.axes, inner.env, inner.constraints, (*place.time, "0", name))
            values.statements.walk(op.block, place)
            self.procedures[op] = values
        values = self.procedures[op]
        index = list(op.outputs).index(tensor)  # pyright: ignore
        root = values.statements.roots[op.written_buffers[index]]
        if tensor not in self.finals:
            self.finals[tensor] = values.final(root, f"{values.statements.prefix}E{index}")
        found = self.finals[tensor]
        own = tuple(dims_of(tensor.type))
        if root.dims != own:
            access = access.apply_range(reshape(self.sizes, own, root.dims, "E", "E"))
        relation = access.set_tuple_name(_out(), found.value.space.name)
        self.problems += values.problems
        return Pick(space, (Case(found.value.space.name, relation, found.value),))


@dataclass(frozen=True, eq=False)
class TensorReader(Reader):
    """An input of a procedure."""

    values: StructuredValues
    tensor: SSAValue

    def read(
        self,
        dims: tuple[Expr, ...],
        subscripts: Sequence[Expr],
        guards: Sequence[Expr],
        space: Space,
        env: Mapping[str, str],
        data: Mapping[str, Value],
        otherwise: Value | None,
        element: object,
    ) -> Value:
        """Returns the value of the read element of the tensor."""
        here = Space(space.name, space.ids, dict(env), space.domain, space.lane)
        return self.values.read(self.tensor, dims, subscripts, here, guards, data, otherwise)


class _Body:
    """The values of the body of one nest."""

    def __init__(self, values: StructuredValues, space: Space):
        self.values = values
        self.space = space
        self.found: dict[SSAValue, Value] = {}

    def value(self, ssa: SSAValue) -> Value:
        if ssa not in self.found:
            self.found[ssa] = self._value(ssa)
        return self.found[ssa]

    def _value(self, ssa: SSAValue) -> Value:
        op = ssa.owner
        assert isinstance(op, Operation)
        if isinstance(op, IndexOp):
            return position(self.values.split(op.value, self.space), self.space, self.values.sizes)
        if isinstance(op, ReadOp):
            data = {f"_{k}": self.value(v) for k, v in enumerate(op.indices)}
            otherwise = None if op.otherwise is None else self.value(op.otherwise)
            dims = tuple(dims_of(op.source.type))
            at, guards = ([self.values.split(e, self.space) for e in each] for each in (op.subscripts, op.guards))
            return self.values.read(op.source, dims, at, self.space, guards, data, otherwise)
        return body_value(op, self.space, self.value)


def _label(tensor: SSAValue) -> str:
    owner = tensor.owner
    return owner.label if isinstance(owner, (NestOp, ProcedureOp)) else ""


def _out() -> object:
    return isl().dim_type.out


def program_of(values: StructuredValues, kernel: KernelOp, dims: Sequence[tuple[Expr, ...]] | None = None) -> Program:
    """Returns the results of a structured kernel as values, under `dims` (default: their own)."""
    shapes = dims or [tuple(dims_of(v.type)) for v in kernel.returned]
    outputs = [values.output(v, d, f"O{k}") for k, (v, d) in enumerate(zip(kernel.returned, shapes, strict=True))]
    return Program(outputs, values.problems)
