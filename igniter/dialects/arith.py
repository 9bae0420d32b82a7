"""The `arith` dialect, with comparisons and selections of vectors.

xDSL 0.74 types every comparison `i1` and lets `arith.select` choose by one `i1` only; MLIR has them lane by lane. The
three ops here are xDSL's own, widened: `arith.cmpf olt, %a, %b : vector<16xf32>` gives `vector<16xi1>`, and
`arith.select` takes it (with one `i1` it still chooses whole vectors).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import VectorType, i1
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, OpDef, OperandDef, ResultDef
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


def truth_type(compared: Attribute) -> Attribute:
    """What comparing two values of a type gives."""
    return VectorType(i1, compared.get_shape()) if isinstance(compared, VectorType) else i1


@cache
def _widened(base: type[IRDLOperation], field: str) -> OpDef:
    """xDSL's definition of the op, with any type for one operand or result; `verify_` is stricter again."""
    definition = base.get_irdl_definition()
    return replace(
        definition,
        operands=[(n, OperandDef(AnyAttr()) if n == field else d) for n, d in definition.operands],
        results=[(n, ResultDef(AnyAttr()) if n == field else d) for n, d in definition.results],
    )


def _verify_truth(op: Operation, compared: Attribute) -> None:
    if op.results[0].type != truth_type(compared):
        raise VerifyException(f"'{op.name}' of {compared} gives {truth_type(compared)}, not {op.results[0].type}")


class CmpiOp(arith.CmpiOp):
    """`arith.cmpi` of integers or vectors of them."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.CmpiOp, "result")

    def __init__(self, operand1: Operation | SSAValue, operand2: Operation | SSAValue, arg: int | str):
        super().__init__(operand1, operand2, arg)
        self.results[0]._type = truth_type(self.lhs.type)

    def verify_(self) -> None:
        _verify_truth(self, self.lhs.type)


class CmpfOp(arith.CmpfOp):
    """`arith.cmpf` of floats or vectors of them."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.CmpfOp, "result")

    def __init__(
        self,
        operand1: SSAValue | Operation,
        operand2: SSAValue | Operation,
        arg: int | str,
        fastmath: FastMathFlagsAttr | None = None,
    ):
        super().__init__(operand1, operand2, arg, fastmath or FastMathFlagsAttr("none"))
        self.results[0]._type = truth_type(self.lhs.type)

    def verify_(self) -> None:
        _verify_truth(self, self.lhs.type)


class SelectOp(arith.SelectOp):
    """`arith.select` by one bit, or by one bit a lane."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.SelectOp, "cond")

    def verify_(self) -> None:
        if self.cond.type not in (i1, truth_type(self.lhs.type)):
            raise VerifyException(f"'arith.select' of {self.lhs.type} cannot choose by {self.cond.type}")

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        operands = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        chosen = parser.parse_type()
        # The type that is written is that of the choices; the condition's is known from where it is defined.
        known = parser.ssa_values.get(operands[0].operand_name)
        condition = known[operands[0].index].type if known else i1
        op = cls(*parser.resolve_operands(operands, [condition, chosen, chosen], parser.pos))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


_WIDENED: dict[type[Operation], type[Operation]] = {
    arith.CmpiOp: CmpiOp,
    arith.CmpfOp: CmpfOp,
    arith.SelectOp: SelectOp,
}


def vector_class(op: Operation) -> type[Operation]:
    """The class that holds the same op on vectors."""
    return _WIDENED.get(type(op), type(op))


Arith = Dialect(
    "arith",
    [_WIDENED.get(op, op) for op in arith.Arith.operations],
    list(arith.Arith.attributes),
    arith.Arith._interfaces,
)
