"""The `math` dialect: xDSL's, with the tests that it lacks (`math.isnan`, `math.isinf`, `math.isfinite`,
`math.isnormal`) and `math.clampf`."""

from __future__ import annotations

from typing import Self

from xdsl.dialects import math
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from igniter.dialects.arith import truth_type

TESTS = ("isnan", "isinf", "isfinite", "isnormal")


class TestOp(IRDLOperation):
    """The base of the tests of floats."""

    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath") is not None:
            parser.parse_attribute()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        return cls.build(operands=[parser.resolve_operand(operand, kind)], result_types=[truth_type(kind)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)


def _test(name: str) -> type[IRDLOperation]:
    fields = {"name": f"math.{name}", "__doc__": f"True for a value that {name[:2]} {name[2:]}."}
    return irdl_op_definition(type(f"Math_{name}", (TestOp,), fields))


@irdl_op_definition
class ClampOp(IRDLOperation):
    """`minimumf(maximumf(value, min), max)`."""

    name = "math.clampf"
    value = operand_def()
    low = operand_def()
    high = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        position = parser.pos
        low, high = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        operands = parser.resolve_operands([value, low, high], [kind] * 3, position)
        return cls.build(operands=operands, result_types=[kind])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" to [")
        printer.print_list([self.low, self.high], printer.print_ssa_value)
        printer.print_string("] : ")
        printer.print_attribute(self.result.type)


Math = Dialect("math", [*math.Math.operations, *map(_test, TESTS), ClampOp], list(math.Math.attributes))
