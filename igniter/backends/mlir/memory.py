"""Buffers as memrefs, and the accesses to them: `memref.load` and `store` of elements, ops of `vector` for lanes.

| access | as |
| --- | --- |
| an element | `memref.load`, `memref.store`, inside of `scf.if` if guarded |
| contiguous lanes | `vector.load`, `vector.store`; `vector.maskedload`, `vector.maskedstore` if guarded |
| one element for all lanes | a load of the element and a broadcast; an accumulation reduces the lanes first |
| any other lanes | `vector.gather`, `vector.scatter`; an accumulation goes lane by lane |

A boolean is a byte in memory, as everywhere in Igniter; MLIR would pack vectors of `i1` into bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from igniter.backends.mlir.arithmetic import Operand, bits, select, truth, write_combined
from igniter.backends.mlir.kinds import I1, INDEX, Kind, broadcast, constant, kind_of
from igniter.backends.mlir.lanes import Lanes, Scalars, iota
from igniter.backends.mlir.text import Writer
from igniter.dialects.loop import AccumulateOp, Combiner, LoadOp, StoreOp, combiners
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.loop.bodies import as_number
from igniter.dialects.loop.combiners import combining_op
from igniter.dialects.loop.memory import MemoryOp
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, linearize

REDUCTIONS = {
    "addf": "add",
    "addi": "add",
    "mulf": "mul",
    "muli": "mul",
    "andi": "and",
    "ori": "or",
    "xori": "xor",
}
"""The kinds of `vector.reduction`, where they differ from the names of the ops of `arith`."""


@dataclass(frozen=True)
class Buffer:
    """A memref: its name, its type in MLIR and its type on the scheduled level."""

    name: str
    text: str
    type: Attribute

    @property
    def dims(self) -> tuple[Expr, ...]:
        return dims_of(self.type)

    @property
    def stored(self) -> Kind:
        """The type of an element in memory."""
        return stored_kind(self.type)


def stored_kind(shaped: Attribute) -> Kind:
    """Returns the type of an element of a buffer in memory."""
    kind = kind_of(element_of(shaped))
    return Kind("i8") if kind == I1 else kind


def buffer_text(shaped: Attribute) -> str:
    """Returns the type of a dense memref; symbolic dims are dynamic."""
    dims = ("?" if d.constant is None else str(d.constant) for d in dims_of(shaped))
    return f"memref<{'x'.join((*dims, str(stored_kind(shaped))))}>"


class Access:
    """One access: a buffer, subscripts and guards, for one element or for `count` lanes named `lane`."""

    def __init__(
        self,
        scalars: Scalars,
        buffer: Buffer,
        subscripts: Sequence[Expr],
        guards: Sequence[Expr] = (),
        lane: str | None = None,
        count: int = 0,
        vectors: Mapping[str, str] | None = None,
    ):
        self.scalars = scalars
        self.writer: Writer = scalars.writer
        self.buffer = buffer
        self.subscripts = subscripts
        self.guards = guards
        self.count = count
        self.lane = lane
        self.vectors = dict(vectors or {})
        self._mask: str | None = None
        if lane is not None and self._depends_on_lane():
            self.vectors[lane] = iota(self.writer, count)
        self.lanes = Lanes(scalars, self.vectors, count)

    def _depends_on_lane(self) -> bool:
        return any(self.lane in e.symbols for e in (*self.subscripts, *self.guards))

    @property
    def element(self) -> Attribute:
        return element_of(self.buffer.type)

    @property
    def kind(self) -> Kind:
        """The type of the value."""
        return kind_of(self.element).with_lanes(self.count)

    @property
    def stored(self) -> Kind:
        return self.buffer.stored.with_lanes(self.count)

    # -- values and memory --------------------------------------------------------------------------------------------

    def _from_memory(self, value: str) -> str:
        return truth(self.writer, Operand(value, self.stored)) if self.kind.element == "i1" else value

    def _to_memory(self, value: str) -> str:
        return bits(self.writer, Operand(value, self.kind)) if self.kind.element == "i1" else value

    # -- one element --------------------------------------------------------------------------------------------------

    def _at(self, subscripts: Sequence[Expr]) -> str:
        return f"{self.buffer.name}[{self.scalars.values(subscripts)}]"

    def _load_element(self) -> str:
        loaded = self.writer.let("v", f"memref.load {self._at(self.subscripts)} : {self.buffer.text}")
        kind = self.buffer.stored
        if self.kind.element != "i1":
            return loaded
        return truth(self.writer, Operand(loaded, kind))

    def _store_element(self, value: str) -> None:
        if self.kind.element == "i1":
            value = bits(self.writer, Operand(value, I1))
        self.writer.line(f"memref.store {value}, {self._at(self.subscripts)} : {self.buffer.text}")

    def _combine_element(self, combiner: Combiner, value: str) -> None:
        self._store_element(write_combined(self.writer, combiner, self.element, self._load_element(), value, 0))

    def load_scalar(self, otherwise: str | None) -> str:
        if not self.guards:
            return self._load_element()
        other = otherwise or constant(self.writer, self.kind, 0)
        return choose(self.writer, self.scalars.holds(self.guards), self.kind, self._load_element, lambda: other)

    def store_scalar(self, value: str, combiner: Combiner | None) -> None:
        def inside() -> None:
            if combiner is None:
                self._store_element(value)
            else:
                self._combine_element(combiner, value)

        if self.guards:
            when(self.writer, self.scalars.holds(self.guards), inside)
        else:
            inside()

    # -- lanes --------------------------------------------------------------------------------------------------------

    @property
    def _varying(self) -> frozenset[str]:
        return frozenset(self.vectors)

    @property
    def is_uniform(self) -> bool:
        """True if all lanes access one element."""
        return all(self._varying.isdisjoint(e.symbols) for e in self.subscripts)

    @property
    def is_contiguous(self) -> bool:
        """True if the lanes access neighbours, in order."""
        lane = self.lane
        if lane is None or any(self._varying - {lane} & e.symbols for e in self.subscripts) or not self.subscripts:
            return False
        factors = [e.coefficient(lane) for e in self.subscripts]
        return factors[-1] == 1 and all(f == ZERO for f in factors[:-1])

    def mask(self) -> str | None:
        """Returns the lanes that are on; None if all are."""
        if self.guards and self._mask is None:
            self._mask = self.lanes.all_at_least_zero(self.guards)
        return self._mask

    def _full_mask(self) -> str:
        return self.mask() or constant(self.writer, I1.with_lanes(self.count), 1)

    def _first(self) -> str:
        lane = self.lane or ""
        return self._at([e.without(lane) if lane in e.symbols else e for e in self.subscripts])

    def _offsets(self) -> tuple[str, str]:
        """Returns the buffer's first element, and the offsets of the lanes from it."""
        zero = ", ".join([self.writer.index(0)] * len(self.subscripts))
        return f"{self.buffer.name}[{zero}]", self.lanes.value(linearize(self.subscripts, self.buffer.dims))

    def _types(self) -> str:
        return f"{self.buffer.text}, {I1.with_lanes(self.count)}, {self.stored}"

    def load_lanes(self, otherwise: str | None) -> str:
        if self.is_uniform:
            return self._load_uniform(otherwise)
        writer, mask = self.writer, self.mask()
        if self.is_contiguous and mask is None:
            loaded = writer.let("v", f"vector.load {self._first()} : {self.buffer.text}, {self.stored}")
            return self._from_memory(loaded)
        other = constant(writer, self.stored, 0) if otherwise is None else self._to_memory(otherwise)
        if self.is_contiguous:
            loaded = writer.let(
                "v", f"vector.maskedload {self._first()}, {mask}, {other} : {self._types()} into {self.stored}"
            )
        else:
            base, offsets = self._offsets()
            index = INDEX.with_lanes(self.count)
            loaded = writer.let(
                "v",
                f"vector.gather {base} [{offsets}], {self._full_mask()}, {other} : "
                f"{self.buffer.text}, {index}, {I1.with_lanes(self.count)}, {self.stored} into {self.stored}",
            )
        return self._from_memory(loaded)

    def _load_uniform(self, otherwise: str | None) -> str:
        writer, mask, scalar = self.writer, self.mask(), self.kind.scalar
        if mask is None:
            return broadcast(writer, self._load_element(), scalar, self.count)
        zero = constant(writer, scalar, 0)
        value = choose(writer, self._any(mask), scalar, self._load_element, lambda: zero)
        whole = broadcast(writer, value, scalar, self.count)
        other = otherwise or constant(writer, self.kind, 0)
        return select(writer, Operand(mask, I1.with_lanes(self.count)), whole, other, self.kind)

    def _any(self, mask: str) -> str:
        return self.writer.let("any", f"vector.reduction <or>, {mask} : {I1.with_lanes(self.count)} into i1")

    def store_lanes(self, value: str) -> None:
        writer, mask, value = self.writer, self.mask(), self._to_memory(value)
        if not self.is_contiguous:
            base, offsets = self._offsets()
            writer.line(
                f"vector.scatter {base} [{offsets}], {self._full_mask()}, {value} : {self.buffer.text}, "
                f"{INDEX.with_lanes(self.count)}, {I1.with_lanes(self.count)}, {self.stored}"
            )
        elif mask is None:
            writer.line(f"vector.store {value}, {self._first()} : {self.buffer.text}, {self.stored}")
        else:
            writer.line(f"vector.maskedstore {self._first()}, {mask}, {value} : {self._types()}")

    def accumulate_lanes(self, combiner: Combiner, value: str) -> None:
        if self.is_uniform:
            self._accumulate_uniform(combiner, value)
        elif self.is_contiguous:
            old = self.load_lanes(None)
            self.store_lanes(write_combined(self.writer, combiner, self.element, old, value, self.count))
        else:
            self._accumulate_apart(combiner, value)

    def _accumulate_uniform(self, combiner: Combiner, value: str) -> None:
        mask = self.mask()
        if mask is None:
            self._combine_element(combiner, reduce_lanes(self.writer, combiner, self.element, value, self.count))
            return
        number = as_number(combiners.neutral(combiner, self.element).value)
        assert number is not None
        neutral = constant(self.writer, self.kind, number.value.data)
        kept = select(self.writer, Operand(mask, I1.with_lanes(self.count)), value, neutral, self.kind)

        def inside() -> None:
            total = reduce_lanes(self.writer, combiner, self.element, kept, self.count)
            self._combine_element(combiner, total)

        when(self.writer, self._any(mask), inside)

    def _accumulate_apart(self, combiner: Combiner, value: str) -> None:
        """Combines lane by lane: two lanes may access one element."""
        writer, mask = self.writer, self.mask()
        names = {n: v for n, v in self.vectors.items() if n != self.lane}
        for k in range(self.count):
            here = dict(self.scalars.names)
            if self.lane is not None:
                here[self.lane] = writer.index(k)
            index = INDEX.with_lanes(self.count)
            here |= {n: writer.let("at", f"vector.extract {v}[{k}] : index from {index}") for n, v in names.items()}
            one = Access(Scalars(writer, here), self.buffer, self.subscripts)
            part = writer.let("v", f"vector.extract {value}[{k}] : {self.kind.scalar} from {self.kind}")
            if mask is None:
                one._combine_element(combiner, part)
                continue
            on = writer.let("in", f"vector.extract {mask}[{k}] : i1 from {I1.with_lanes(self.count)}")
            when(writer, on, lambda one=one, part=part: one._combine_element(combiner, part))


def when(writer: Writer, holds: str, inside: Callable[[], None]) -> None:
    """Writes a conditional without results."""
    writer.line(f"scf.if {holds} {{")
    with writer.deeper():
        inside()
    writer.line("}")


def choose(writer: Writer, holds: str, kind: Kind, inside: Callable[[], str], outside: Callable[[], str]) -> str:
    """Writes a conditional with one result."""
    name = writer.fresh("v")
    writer.line(f"{name} = scf.if {holds} -> ({kind}) {{")
    with writer.deeper():
        writer.line(f"scf.yield {inside()} : {kind}")
    writer.line("} else {")
    with writer.deeper():
        writer.line(f"scf.yield {outside()} : {kind}")
    writer.line("}")
    return name


def reduce_lanes(writer: Writer, combiner: Combiner, element: Attribute, value: str, lanes: int) -> str:
    """Writes the combination of all lanes of a vector."""
    kind = kind_of(element).with_lanes(lanes)
    op = combining_op(combiner, element).name.partition(".")[2]
    if kind.is_narrow:
        wide = kind.of("f32")
        value = writer.let("v", f"arith.extf {value} : {kind} to {wide}")
        total = writer.let("v", f"vector.reduction <{REDUCTIONS.get(op, op)}>, {value} : {wide} into f32")
        return writer.let("v", f"arith.truncf {total} : f32 to {kind.scalar}")
    return writer.let("v", f"vector.reduction <{REDUCTIONS.get(op, op)}>, {value} : {kind} into {kind.scalar}")


def write_access(
    scalars: Scalars, op: MemoryOp, buffer: Buffer, values: Mapping[SSAValue, Operand]
) -> tuple[Access, Operand | None]:
    """Returns the access of an op, and the value that it stores."""
    value = values[op.value] if isinstance(op, (StoreOp, AccumulateOp)) else None
    made = value.kind if value is not None else kind_of(op.results[0].type)
    writer, names, vectors = scalars.writer, dict(scalars.names), dict[str, str]()
    for k, index in enumerate(op.indices):
        found, name = values[index], f"{INDIRECT_PREFIX}{k}"
        cast = writer.let("at", f"arith.index_cast {found.name} : {found.kind} to {found.kind.of('index')}")
        (vectors if found.kind.lanes else names)[name] = cast
    local = Scalars(writer, names)
    return Access(local, buffer, op.subscripts, op.guards, op.lane, made.lanes, vectors), value


def write_memory_op(scalars: Scalars, op: MemoryOp, buffer: Buffer, values: dict[SSAValue, Operand]) -> None:
    """Writes a load, a store or an accumulation."""
    access, value = write_access(scalars, op, buffer, values)
    if isinstance(op, LoadOp):
        otherwise = None if op.otherwise is None else values[op.otherwise].name
        loaded = access.load_lanes(otherwise) if access.count else access.load_scalar(otherwise)
        values[op.result] = Operand(loaded, access.kind)
        return
    assert value is not None
    combiner = op.combiner if isinstance(op, AccumulateOp) else None
    if not access.count:
        access.store_scalar(value.name, combiner)
    elif combiner is None:
        access.store_lanes(value.name)
    else:
        access.accumulate_lanes(combiner, value.name)
