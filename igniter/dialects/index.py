"""The `index` dialect of MLIR: integer arithmetic on `index`.

%q = index.floordivs %a, %b
%t = index.cmp sle(%a, %b)
%w = index.casts %a : index to i64
%c = index.constant 4
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, i1
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
BINARY = (
    *("add", "sub", "mul", "divs", "divu", "ceildivs", "ceildivu", "floordivs", "rems", "remu"),
    *("maxs", "maxu", "mins", "minu", "and", "or", "xor", "shl", "shrs", "shru"),
)


class BinaryOp(IRDLOperation):
    """The base of the ops on two indices."""

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)
    assembly_format = "$lhs `,` $rhs attr-dict"
    traits = traits_def(Pure())


def _binary(name: str) -> type[IRDLOperation]:
    fields = {"name": f"index.{name}", "__doc__": "A function of two indices."}
    return irdl_op_definition(type(f"Index_{name}", (BinaryOp,), fields))


class CastOp(IRDLOperation):
    """The base of conversions between `index` and integers."""

    input = operand_def(IndexType | IntegerType)
    result = result_def(IndexType | IntegerType)
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class CastSOp(CastOp):
    """A conversion that keeps the sign."""

    name = "index.casts"


@irdl_op_definition
class CastUOp(CastOp):
    """A conversion that adds zeros."""

    name = "index.castu"


@irdl_op_definition
class CmpOp(IRDLOperation):
    """A comparison of two indices."""

    name = "index.cmp"
    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    pred = prop_def(StringAttr)
    result = result_def(i1)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        word = parser.parse_identifier()
        if word not in PREDICATES:
            parser.raise_error(f"unknown predicate '{word}'; known: {', '.join(PREDICATES)}", position)
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        operands = parser.resolve_operands(names, [IndexType()] * 2, position)
        return cls.build(operands=operands, result_types=[i1], properties={"pred": StringAttr(word)})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pred.data}(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant index."""

    name = "index.constant"
    value = prop_def(IntegerAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = IntegerAttr(parser.parse_integer(), IndexType())
        return cls.build(result_types=[IndexType()], properties={"value": value})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.value.value.data}")


Index = Dialect("index", [*map(_binary, BINARY), CastSOp, CastUOp, CmpOp, ConstantOp], [])
