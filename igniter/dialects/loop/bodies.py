"""The ops of bodies: accesses with subscripts and guards, indices, and the yields of nests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    I64,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import (
    COMBINERS,
    Combiner,
    number_attr,
    scalar_type,
)
from igniter.dialects.sym import (
    DimsAttr,
    dims_of,
    element_of,
    parse_expr_here,
    parse_exprs,
)
from igniter.dialects.sym.expr import Expr, ExprLike

Number: TypeAlias = "FloatAttr[AnyFloat] | IntegerAttr[IntegerType]"


def vector_element(value_type: Attribute) -> Attribute | None:
    """Returns the element type of a vector; None for any other type."""
    return cast("VectorType[Attribute]", value_type).element_type if isinstance(value_type, VectorType) else None


class AccessOp(IRDLOperation):
    """The base of reads, loads, stores and accumulations: subscripts, indirect operands and guards."""

    indices = var_operand_def()
    subscripts_attr = prop_def(DimsAttr, prop_name="subscripts")
    guards_attr = opt_prop_def(DimsAttr, prop_name="guards")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        return self.subscripts_attr.data

    @property
    def guards(self) -> tuple[Expr, ...]:
        """The guards; the access happens if all are >= 0."""
        return () if self.guards_attr is None else self.guards_attr.data

    @property
    def accessed(self) -> SSAValue:
        """The accessed tensor or memref."""
        raise NotImplementedError

    def verify_access(self) -> None:
        if len(self.subscripts) != len(dims_of(self.accessed.type)):
            raise VerifyException(f"{len(self.subscripts)} subscripts for {self.accessed.type}")
        for index in self.indices:
            if i64 not in (index.type, vector_element(index.type)):
                raise VerifyException(f"an indirect subscript must be an i64, not {index.type}")


@irdl_op_definition
class ReadOp(AccessOp):
    """A read of one element of a tensor."""

    name = "loop.read"
    source = operand_def(TensorType)
    otherwise = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue,
        subscripts: Iterable[ExprLike],
        indices: Sequence[SSAValue] = (),
        guards: Iterable[ExprLike] = (),
        otherwise: SSAValue | None = None,
    ):
        conditions = DimsAttr(guards)
        super().__init__(
            operands=[source, otherwise, list(indices)],
            properties={
                "subscripts": DimsAttr(subscripts),
                "guards": conditions if len(conditions) else None,
            },
            result_types=[scalar_type(element_of(source.type))],
        )

    @property
    def accessed(self) -> SSAValue:
        return self.source

    def verify_(self) -> None:
        self.verify_access()
        if self.otherwise is not None and self.otherwise.type != self.result.type:
            raise VerifyException(f"the value after 'else' is {self.otherwise.type}, not {self.result.type}")
        if self.result.type != scalar_type(element_of(self.source.type)):
            raise VerifyException(f"cannot read {self.result.type} from {self.source.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        source = parse_value(parser)
        access = parse_access_tail(parser)
        parser.parse_characters(":")
        parser.parse_type()
        return cls(source, access.subscripts, access.indices, access.guards, access.otherwise)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_access_tail(printer, self, self.otherwise)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


def parse_value(parser: Parser) -> SSAValue:
    """Parses a use of a defined value; uses have no type in the text."""
    position = parser.pos
    operand = parser.parse_unresolved_operand()
    found = parser.ssa_values.get(operand.operand_name)
    if found is None:
        parser.raise_error(f"%{operand.operand_name} is not defined before this use", position)
    return found[operand.index]


class AccessTail:
    """The parts of an access parsed by `parse_access_tail`."""

    def __init__(self) -> None:
        self.subscripts: tuple[Expr, ...] = ()
        self.lane: str | None = None
        self.indices: list[SSAValue] = []
        self.guards: tuple[Expr, ...] = ()
        self.otherwise: SSAValue | None = None


def parse_access_tail(parser: Parser) -> AccessTail:
    """Parses `[subscripts] (lane axis)? (with %i, ...)? (if [guards] (else %v)?)?`."""
    tail = AccessTail()
    tail.subscripts = parse_exprs(parser)
    if parser.parse_optional_keyword("lane") is not None:
        tail.lane = parser.parse_identifier()
    if parser.parse_optional_keyword("with") is not None:
        tail.indices = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))
    if parser.parse_optional_keyword("if") is not None:
        tail.guards = parse_exprs(parser)
        if parser.parse_optional_keyword("else") is not None:
            tail.otherwise = parse_value(parser)
    return tail


def print_access_tail(
    printer: Printer, op: AccessOp, otherwise: SSAValue | None = None, lane: str | None = None
) -> None:
    printer.print_string(f"[{', '.join(map(str, op.subscripts))}]")
    if lane is not None:
        printer.print_string(f" lane {lane}")
    if op.indices:
        printer.print_string(" with ")
        printer.print_list(op.indices, printer.print_ssa_value)
    if op.guards:
        printer.print_string(f" if [{', '.join(map(str, op.guards))}]")
        if otherwise is not None:
            printer.print_string(" else ")
            printer.print_ssa_value(otherwise)


MOST_BYTE = 127
"""The largest unsigned byte of `loop.dot_bytes` by default."""
ANY_BYTE = 255
"""The largest number in a byte."""


@irdl_op_definition
class DotBytesOp(IRDLOperation):
    """`total` plus dot products of four unsigned and four signed bytes, packed in an i32 each, or lane by lane in
    vectors: `loop.dot_bytes %u0, %s0, %u1, %s1, .., %total (most 15)?`.

    The unsigned bytes are at most `most` (127 by default), as low-bit codes are. Instructions with 16-bit sums of two
    byte products then cannot saturate, and the result is exact (it wraps as i32 does). The smaller they are, the more
    pairs can be added in 16 bits. Above 127, targets with such instructions multiply each byte in two halves.
    """

    name = "loop.dot_bytes"
    factors = var_operand_def()
    """The pairs, unsigned bytes first, and the total."""
    most_attr = opt_prop_def(IntegerAttr[I64], prop_name="most")
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, pairs: Sequence[tuple[SSAValue, SSAValue]], total: SSAValue, most: int = MOST_BYTE):
        super().__init__(
            operands=[[*(v for pair in pairs for v in pair), total]],
            properties={} if most == MOST_BYTE else {"most": number_attr(most)},
            result_types=[total.type],
        )

    @property
    def most(self) -> int:
        """The largest unsigned byte."""
        return MOST_BYTE if self.most_attr is None else self.most_attr.value.data

    def verify_(self) -> None:
        if len(self.operands) < 3 or len(self.operands) % 2 == 0:
            raise VerifyException(f"it has {len(self.operands)} operands; they must be pairs and a total")
        if any(v.type != self.result.type for v in self.operands):
            raise VerifyException(f"the operands are {[str(v.type) for v in self.operands]}, not {self.result.type}")
        if i32 not in (self.result.type, vector_element(self.result.type)):
            raise VerifyException(f"a sum of byte products needs elements of i32, not {self.result.type}")
        if not 1 <= self.most <= ANY_BYTE:
            raise VerifyException(f"the largest unsigned byte is {self.most}; it must be from 1 to {ANY_BYTE}")

    @classmethod
    def parse(cls, parser: Parser) -> DotBytesOp:
        *given, total = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))
        if not given or len(given) % 2:
            parser.raise_error("products of bytes need pairs of operands and a total")
        most = MOST_BYTE if parser.parse_optional_keyword("most") is None else parser.parse_integer()
        parser.parse_characters(":")
        parser.parse_type()
        return cls(list(zip(given[::2], given[1::2], strict=True)), total, most)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if self.most != MOST_BYTE:
            printer.print_string(f" most {self.most}")
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of an integer expression over axes and symbols, as an i64; a vector of i64 if it names a `lane`."""

    name = "loop.index"
    value_attr = prop_def(DimsAttr, prop_name="value")
    lane_attr = opt_prop_def(StringAttr, prop_name="lane")
    result = result_def(IntegerType | VectorType)
    traits = traits_def(Pure())

    def __init__(self, value: ExprLike, lane: str | None = None, result_type: Attribute = i64):
        super().__init__(
            properties={
                "value": DimsAttr([value]),
                "lane": None if lane is None else StringAttr(lane),
            },
            result_types=[result_type],
        )

    @property
    def value(self) -> Expr:
        return self.value_attr.data[0]

    @property
    def lane(self) -> str | None:
        return None if self.lane_attr is None else self.lane_attr.data

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        value = parse_expr_here(parser)
        lane = parser.parse_identifier() if parser.parse_optional_keyword("lane") is not None else None
        parser.parse_characters(":")
        return cls(value, lane, parser.parse_type())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.value}")
        if self.lane is not None:
            printer.print_string(f" lane {self.lane}")
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


class Clause:
    """One result of a nest: the value, its combiner, its access map, and the value of unwritten elements."""

    __slots__ = ("combiner", "otherwise", "subscripts", "value")

    def __init__(
        self,
        combiner: Combiner,
        value: SSAValue,
        subscripts: Iterable[ExprLike],
        otherwise: Number | None = None,
    ):
        self.combiner: Combiner = combiner
        self.value = value
        self.subscripts: tuple[Expr, ...] = tuple(Expr.of(s) for s in subscripts)
        self.otherwise = otherwise
        """The value of unwritten elements; None if every element is written."""

    def at(self, subscripts: Iterable[ExprLike]) -> Clause:
        """Returns the clause with other subscripts."""
        return Clause(self.combiner, self.value, subscripts, self.otherwise)

    def of(self, value: SSAValue) -> Clause:
        """Returns the clause with another value."""
        return Clause(self.combiner, value, self.subscripts, self.otherwise)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values of one point of the domain, with their elements."""

    name = "loop.yield"
    values = var_operand_def()
    combiners = prop_def(ArrayAttr[StringAttr])
    subscripts = prop_def(ArrayAttr[DimsAttr])
    others = opt_prop_def(ArrayAttr)
    """For each clause, the value of unwritten elements: a number, or a unit if every element is written."""
    traits = traits_def(IsTerminator())

    def __init__(self, clauses: Iterable[Clause]):
        clauses = list(clauses)
        others = [UnitAttr() if c.otherwise is None else c.otherwise for c in clauses]
        super().__init__(
            operands=[[c.value for c in clauses]],
            properties={
                "combiners": ArrayAttr([StringAttr(c.combiner) for c in clauses]),
                "subscripts": ArrayAttr([DimsAttr(c.subscripts) for c in clauses]),
                "others": ArrayAttr(others) if any(c.otherwise is not None for c in clauses) else None,
            },
        )

    @property
    def clauses(self) -> list[Clause]:
        others = [None] * len(self.combiners) if self.others is None else list(self.others)
        return [
            Clause(as_combiner(c.data), v, s.data, as_number(o))
            for c, v, s, o in zip(self.combiners, self.values, self.subscripts, others, strict=True)
        ]

    def verify_(self) -> None:
        for clause in self.clauses:
            if clause.combiner not in COMBINERS:
                raise VerifyException(f"unknown combiner '{clause.combiner}'; known: {', '.join(sorted(COMBINERS))}")
            if clause.otherwise is None:
                continue
            if clause.otherwise.type != clause.value.type:
                raise VerifyException(
                    f"the value after 'else' is {clause.otherwise.type}, but the written value is {clause.value.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        def clause() -> Clause:
            combiner = as_combiner(parser.parse_identifier("combiner"))
            value = parse_value(parser)
            parser.parse_keyword("at")
            subscripts = parse_exprs(parser)
            if parser.parse_optional_keyword("else") is None:
                return Clause(combiner, value, subscripts)
            found = parser.parse_attribute()
            number = as_number(found)
            if number is None:
                parser.raise_error(f"the value after 'else' must be a number, not {found}")
            return Clause(combiner, value, subscripts, number)

        return cls(parser.parse_comma_separated_list(parser.Delimiter.NONE, clause))

    def print(self, printer: Printer) -> None:
        def clause(c: Clause) -> None:
            printer.print_string(f"{c.combiner} ")
            printer.print_ssa_value(c.value)
            printer.print_string(f" at [{', '.join(map(str, c.subscripts))}]")
            if c.otherwise is not None:
                printer.print_string(" else ")
                printer.print_attribute(c.otherwise)

        printer.print_string(" ")
        printer.print_list(self.clauses, clause)


def as_number(attr: Attribute | None) -> Number | None:
    """Returns `attr` if it is a number; else None."""
    return cast("Number", attr) if isinstance(attr, (FloatAttr, IntegerAttr)) else None


def as_combiner(name: str) -> Combiner:
    """Returns `name`, typed; the verifier rejects an unknown one."""
    return name  # pyright: ignore[reportReturnType]
