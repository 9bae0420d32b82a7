"""The `arith` dialect, with comparisons, selections and conversions of vectors and blocks.

xDSL 0.74 types every comparison as `i1`, restricts `arith.select` to one `i1`, and converts scalars only; MLIR does all
of these lane by lane. The ops here are xDSL's own, widened: `arith.cmpf olt, %a, %b : vector<16xf32>` gives
`vector<16xi1>`, and `arith.select` takes it (with one `i1` it still selects whole vectors). The same holds for
`tensor<16xf32>`, a block of the `tt` dialect.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import IntegerType, TensorType, VectorType, i1
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, OpDef, OperandDef, ResultDef
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


def truth_type(compared: Attribute) -> Attribute:
    """Returns the type of a comparison of two values of a type."""
    return replace_element(compared, i1)


NONPOSITIVE, SATURATING = "nonpositive", "saturating"
"""The attributes of a `math.exp` for which backends may use a shorter formula: the argument is never above 0 but for
rounding, as in a softmax; or results near the largest number may be infinite, as in a sigmoid. Both may have 0 in the
place of subnormal results."""


CONTRACT = FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
"""The flag of a product that may fuse with a sum although it has a converted integer."""


def is_dequantized(op: Operation) -> bool:
    """True for a product with a converted integer, a dequantised code times its scale. It is rounded before an
    addition, as the result of ONNX's DequantizeLinear is: fused into one rounding with the sum, a sum halfway between
    two codes would round to the other one. A product with `fastmath<contract>` may fuse: its integer is no code, or its
    other factor no scale."""
    if not isinstance(op, arith.MulfOp) or FastMathFlag.ALLOW_CONTRACT in op.fastmath.data:
        return False
    factors = [op.operands[0].owner, op.operands[1].owner]
    return any(isinstance(factor, (arith.SIToFPOp, arith.UIToFPOp)) for factor in factors)


@cache
def _widened(base: type[IRDLOperation], *fields: str) -> OpDef:
    """Returns xDSL's definition of the op with the listed operands and results of any type; `verify_` restores
    strictness."""
    definition = base.get_irdl_definition()
    return replace(
        definition,
        operands=[(n, OperandDef(AnyAttr()) if n in fields else d) for n, d in definition.operands],
        results=[(n, ResultDef(AnyAttr()) if n in fields else d) for n, d in definition.results],
    )


def _verify_truth(op: Operation, compared: Attribute) -> None:
    if op.results[0].type != truth_type(compared):
        raise VerifyException(f"'{op.name}' of {compared} gives {truth_type(compared)}, not {op.results[0].type}")


class CmpiOp(arith.CmpiOp):
    """`arith.cmpi` of integers or vectors of integers."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.CmpiOp, "result")

    def __init__(self, operand1: Operation | SSAValue, operand2: Operation | SSAValue, arg: int | str):
        super().__init__(operand1, operand2, arg)
        self.results[0]._type = truth_type(self.lhs.type)

    def verify_(self) -> None:
        _verify_truth(self, self.lhs.type)


class CmpfOp(arith.CmpfOp):
    """`arith.cmpf` of floats or vectors of floats."""

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
    """`arith.select` by one bit, or by one bit per lane."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.SelectOp, "cond")

    def verify_(self) -> None:
        if self.cond.type not in (i1, truth_type(self.lhs.type)):
            raise VerifyException(f"'arith.select' of {self.lhs.type} cannot take a condition of type {self.cond.type}")

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        operands = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        chosen = parser.parse_type()
        # The text has the type of the choices; the definition of the condition gives its type.
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


def _verify_cast(op: Operation, change: int = 0) -> None:
    """Checks a conversion; `change` is 1 if an integer must get wider, -1 if narrower."""
    source, result = op.operands[0].type, op.results[0].type
    have, want = element_type(source), element_type(result)
    if replace_element(source, want) != result:
        raise VerifyException(f"'{op.name}' of {source} cannot give {result}")
    widths: list[int] = [t.width.data if isinstance(t, IntegerType) else 0 for t in (have, want)]
    if change and (widths[1] - widths[0]) * change <= 0:
        raise VerifyException(f"'{op.name}' of {source} to {result}: not {'wider' if change > 0 else 'narrower'}")


def element_type(t: Attribute) -> Attribute:
    """Returns the type of a lane; for a scalar, its own type."""
    if isinstance(t, (VectorType, TensorType)):
        return cast("VectorType[Attribute] | TensorType[Attribute]", t).element_type
    return t


def replace_element(shaped: Attribute, element: Attribute) -> Attribute:
    """Returns the same vector or block type with another element type; for a scalar, that element type."""
    if isinstance(shaped, VectorType):
        return VectorType(element, shaped.get_shape())
    return TensorType(element, shaped.get_shape()) if isinstance(shaped, TensorType) else element


class FPToSIOp(arith.FPToSIOp):
    """`arith.fptosi`: floats to signed integers, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.FPToSIOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self)


class FPToUIOp(arith.FPToUIOp):
    """`arith.fptoui`: floats to unsigned integers, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.FPToUIOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self)


class SIToFPOp(arith.SIToFPOp):
    """`arith.sitofp`: signed integers to floats, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.SIToFPOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self)


class UIToFPOp(arith.UIToFPOp):
    """`arith.uitofp`: unsigned integers to floats, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.UIToFPOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self)


class TruncIOp(arith.TruncIOp):
    """`arith.trunci`: integers to narrower integers, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.TruncIOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self, -1)


class ExtSIOp(arith.ExtSIOp):
    """`arith.extsi`: signed integers to wider integers, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.ExtSIOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self, 1)


class ExtUIOp(arith.ExtUIOp):
    """`arith.extui`: unsigned integers to wider integers, scalar or vector."""

    @classmethod
    def get_irdl_definition(cls) -> OpDef:
        return _widened(arith.ExtUIOp, "input", "result")

    def verify_(self) -> None:
        _verify_cast(self, 1)


_WIDENED: dict[type[Operation], type[Operation]] = {
    arith.CmpiOp: CmpiOp,
    arith.CmpfOp: CmpfOp,
    arith.SelectOp: SelectOp,
    arith.FPToSIOp: FPToSIOp,
    arith.FPToUIOp: FPToUIOp,
    arith.SIToFPOp: SIToFPOp,
    arith.UIToFPOp: UIToFPOp,
    arith.TruncIOp: TruncIOp,
    arith.ExtSIOp: ExtSIOp,
    arith.ExtUIOp: ExtUIOp,
}


def vector_class(op: Operation) -> type[Operation]:
    """Returns the class of the same op for vectors."""
    return _WIDENED.get(type(op), type(op))


Arith = Dialect(
    "arith",
    [_WIDENED.get(op, op) for op in arith.Arith.operations],
    list(arith.Arith.attributes),
    arith.Arith._interfaces,
)
