"""Scalar and vector accesses to buffers, the memory ops of the scheduled level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    StringAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import Combiner, as_integer, scalar_type
from igniter.dialects.loop.bodies import (
    AccessOp,
    as_combiner,
    parse_access_tail,
    parse_value,
    print_access_tail,
    vector_element,
)
from igniter.dialects.loop.combiners import refusal
from igniter.dialects.sym import (
    DimsAttr,
    element_of,
)
from igniter.dialects.sym.expr import ExprLike


def parse_indices(parser: Parser) -> list[SSAValue]:
    """Parses `(with %i, ...)?`."""
    if parser.parse_optional_keyword("with") is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))


def print_indices(printer: Printer, indices: Sequence[SSAValue]) -> None:
    if indices:
        printer.print_string(" with ")
        printer.print_list(indices, printer.print_ssa_value)


def verify_indices(indices: Sequence[SSAValue]) -> None:
    for index in indices:
        if index.type != i64:
            raise VerifyException(f"a value in a bound or a guard must be an i64, not {index.type}")


class MemoryOp(AccessOp):
    """An access to a memref, scalar or along a lane axis."""

    lane_attr = opt_prop_def(StringAttr, prop_name="lane")

    @property
    def lane(self) -> str | None:
        return None if self.lane_attr is None else self.lane_attr.data

    def verify_value(self, value: SSAValue) -> None:
        self.verify_access()
        element = scalar_type(element_of(self.accessed.type))
        found = vector_element(value.type)
        if found is not None:
            if self.lane is None:
                raise VerifyException("a vector access must name a lane variable")
        else:
            if self.lane is not None:
                raise VerifyException(f"a scalar access cannot name the lane variable '{self.lane}'")
            found = value.type
        if found != element:
            raise VerifyException(f"cannot access {value.type} in {self.accessed.type}")


def _access_properties(
    subscripts: Iterable[ExprLike], guards: Iterable[ExprLike], lane: str | None
) -> dict[str, Attribute | None]:
    conditions = DimsAttr(guards)
    return {
        "subscripts": DimsAttr(subscripts),
        "guards": conditions if len(conditions) else None,
        "lane": None if lane is None else StringAttr(lane),
    }


@irdl_op_definition
class LoadOp(MemoryOp):
    """A load of one element of a buffer, or of a vector of elements."""

    name = "loop.load"
    buffer = operand_def(MemRefType)
    otherwise = opt_operand_def()
    result = result_def()

    def __init__(
        self,
        buffer: SSAValue,
        subscripts: Iterable[ExprLike],
        result_type: Attribute | None = None,
        *,
        indices: Sequence[SSAValue] = (),
        guards: Iterable[ExprLike] = (),
        otherwise: SSAValue | None = None,
        lane: str | None = None,
    ):
        super().__init__(
            operands=[buffer, otherwise, list(indices)],
            properties=_access_properties(subscripts, guards, lane),
            result_types=[result_type or scalar_type(element_of(buffer.type))],
        )

    @property
    def accessed(self) -> SSAValue:
        # The buffer, without a look at the sizes of segments: passes ask for it most of all.
        return self.operands[0]

    def verify_(self) -> None:
        self.verify_value(self.result)
        if self.otherwise is not None and self.otherwise.type != self.result.type:
            raise VerifyException(f"the value after 'else' is {self.otherwise.type}, not {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer = parse_value(parser)
        tail = parse_access_tail(parser)
        parser.parse_characters(":")
        return cls(
            buffer,
            tail.subscripts,
            parser.parse_type(),
            indices=tail.indices,
            guards=tail.guards,
            otherwise=tail.otherwise,
            lane=tail.lane,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        print_access_tail(printer, self, self.otherwise, self.lane)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class StoreOp(MemoryOp):
    """A store of one element of a buffer, or of a vector of elements."""

    name = "loop.store"
    value = operand_def()
    buffer = operand_def(MemRefType)

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        subscripts: Iterable[ExprLike],
        *,
        indices: Sequence[SSAValue] = (),
        guards: Iterable[ExprLike] = (),
        lane: str | None = None,
    ):
        super().__init__(
            operands=[value, buffer, list(indices)], properties=_access_properties(subscripts, guards, lane)
        )

    @property
    def accessed(self) -> SSAValue:
        return self.operands[1]

    def verify_(self) -> None:
        self.verify_value(self.value)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parse_value(parser)
        parser.parse_characters(",")
        buffer = parse_value(parser)
        tail = parse_access_tail(parser)
        return cls(value, buffer, tail.subscripts, indices=tail.indices, guards=tail.guards, lane=tail.lane)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.buffer)
        print_access_tail(printer, self, lane=self.lane)


@irdl_op_definition
class AccumulateOp(MemoryOp):
    """A combination of a value into an element of a buffer; with `lane`, of a vector into a vector of elements, lane by
    lane."""

    name = "loop.accumulate"
    value = operand_def()
    buffer = operand_def(MemRefType)
    combiner_attr = prop_def(StringAttr, prop_name="combiner")

    def __init__(
        self,
        combiner: Combiner,
        value: SSAValue,
        buffer: SSAValue,
        subscripts: Iterable[ExprLike],
        *,
        indices: Sequence[SSAValue] = (),
        guards: Iterable[ExprLike] = (),
        lane: str | None = None,
    ):
        super().__init__(
            operands=[value, buffer, list(indices)],
            properties={**_access_properties(subscripts, guards, lane), "combiner": StringAttr(combiner)},
        )

    @property
    def accessed(self) -> SSAValue:
        return self.operands[1]

    @property
    def combiner(self) -> Combiner:
        return as_combiner(self.combiner_attr.data)

    def verify_(self) -> None:
        self.verify_value(self.value)
        element = element_of(self.buffer.type)
        reason = "it does not combine values" if self.combiner == "none" else refusal(self.combiner, element)
        if reason is not None:
            raise VerifyException(f"cannot accumulate with '{self.combiner}': {reason}")

    @classmethod
    def parse(cls, parser: Parser) -> AccumulateOp:
        combiner = as_combiner(parser.parse_identifier("combiner"))
        value = parse_value(parser)
        parser.parse_characters(",")
        buffer = parse_value(parser)
        tail = parse_access_tail(parser)
        return cls(combiner, value, buffer, tail.subscripts, indices=tail.indices, guards=tail.guards, lane=tail.lane)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combiner} ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.buffer)
        print_access_tail(printer, self, lane=self.lane)


@irdl_op_definition
class PrefetchOp(AccessOp):
    """A prefetch of the cache line of one element before it is read or written. The element may lie
    outside the buffer."""

    name = "loop.prefetch"
    buffer = operand_def(MemRefType)
    writes_attr = opt_prop_def(UnitAttr, prop_name="writes")

    def __init__(self, buffer: SSAValue, subscripts: Iterable[ExprLike], *, writes: bool = False):
        super().__init__(
            operands=[buffer, []],
            properties={"subscripts": DimsAttr(subscripts), "writes": UnitAttr() if writes else None},
        )

    @property
    def accessed(self) -> SSAValue:
        return self.buffer

    @property
    def writes(self) -> bool:
        return self.writes_attr is not None

    def verify_(self) -> None:
        self.verify_access()
        if self.indices or self.guards:
            raise VerifyException("a prefetch cannot have guards or indirect subscripts")

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parse_value(parser)
        tail = parse_access_tail(parser)
        return cls(buffer, tail.subscripts, writes=parser.parse_optional_keyword("write") is not None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        print_access_tail(printer, self)
        if self.writes:
            printer.print_string(" write")


@irdl_op_definition
class ReduceLanesOp(IRDLOperation):
    """A reduction of all lanes of a vector to one scalar, in any order; `unsigned` marks unsigned integers."""

    name = "loop.reduce_lanes"
    vector = operand_def(VectorType)
    combiner_attr = prop_def(StringAttr, prop_name="combiner")
    unsigned_attr = opt_prop_def(UnitAttr, prop_name="unsigned")
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, combiner: Combiner, vector: SSAValue, unsigned: bool = False):
        super().__init__(
            operands=[vector],
            properties={"combiner": StringAttr(combiner), "unsigned": UnitAttr() if unsigned else None},
            result_types=[vector_element(vector.type) or vector.type],
        )

    @property
    def combiner(self) -> Combiner:
        return as_combiner(self.combiner_attr.data)

    @property
    def unsigned(self) -> bool:
        """True if the lanes are unsigned integers; the type of a vector does not say."""
        return self.unsigned_attr is not None

    @property
    def element(self) -> Attribute:
        """The element type of a tensor with these lanes."""
        integer = as_integer(self.result.type)
        if integer is None or not self.unsigned:
            return self.result.type
        return IntegerType(integer.width.data, Signedness.UNSIGNED)

    def verify_(self) -> None:
        reason = "it does not combine values" if self.combiner == "none" else refusal(self.combiner, self.element)
        if reason is not None:
            raise VerifyException(f"cannot reduce with '{self.combiner}': {reason}")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceLanesOp:
        combiner = as_combiner(parser.parse_identifier("combiner"))
        unsigned = parser.parse_optional_keyword("unsigned") is not None
        vector = parse_value(parser)
        parser.parse_characters(":")
        parser.parse_type()
        parser.parse_keyword("to")
        parser.parse_type()
        return cls(combiner, vector, unsigned)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combiner} unsigned " if self.unsigned else f" {self.combiner} ")
        printer.print_ssa_value(self.vector)
        printer.print_string(" : ")
        printer.print_attribute(self.vector.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """A transposition of a matrix in registers. The operands hold its elements in row-major order, one after another;
    the results hold those of the transpose. The matrix has one row per operand unless `rows` is given."""

    name = "loop.transpose"
    vectors = var_operand_def(VectorType)
    height = opt_prop_def(IntegerAttr[I64], prop_name="rows")
    columns = var_result_def(VectorType)
    assembly_format = "$vectors `:` type($vectors) `to` type($columns) (`rows` $rows^)? attr-dict"
    traits = traits_def(Pure())

    def __init__(self, vectors: Sequence[SSAValue], rows: int | None = None):
        super().__init__(
            operands=[list(vectors)],
            result_types=[[v.type for v in vectors]],
            properties={"rows": None if rows in (None, len(vectors)) else IntegerAttr(rows or 0, i64)},
        )

    @property
    def rows(self) -> int:
        return len(self.vectors) if self.height is None else self.height.value.data

    @property
    def lanes(self) -> int:
        lanes: int = cast("VectorType[Attribute]", self.vectors[0].type).get_shape()[0]
        return lanes

    def verify_(self) -> None:
        if not self.vectors or len(self.vectors) != len(self.columns):
            raise VerifyException(f"{len(self.vectors)} transposed vectors cannot give {len(self.columns)}")
        if any(v.type != self.vectors[0].type for v in (*self.vectors, *self.columns)):
            raise VerifyException("all vectors of a transposed matrix must have the same type")
        elements = len(self.vectors) * self.lanes
        if self.rows < 1 or elements % self.rows:
            raise VerifyException(f"a matrix of {elements} elements cannot have {self.rows} rows")
