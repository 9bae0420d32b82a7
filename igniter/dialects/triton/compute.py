"""Reductions, products and elementwise functions of blocks; the package's docstring defines the ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    BoolAttr,
    IntegerAttr,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    NoTerminator,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.blocks import BlockOp, verify_blocks
from igniter.dialects.triton.types import block_of, element_type, shape_of


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A fold of a dim of blocks with a function of two elements, in any order; several blocks are folded together."""

    name = "tt.reduce"
    srcs = var_operand_def()
    axis = prop_def(IntegerAttr)
    body = region_def("single_block")
    outputs = var_result_def()
    traits = traits_def(Pure(), NoTerminator())

    def __init__(self, srcs: Sequence[SSAValue], axis: int, body: Region):
        results = [block_of(element_type(s.type), _without(shape_of(s.type), axis)) for s in srcs]
        super().__init__(
            operands=[list(srcs)],
            properties={"axis": IntegerAttr(axis, i32)},
            result_types=[results],
            regions=[body],
        )

    def verify_(self) -> None:
        verify_blocks(self)
        axis, last = self.axis.value.data, self.body.block.last_op
        if not self.srcs or len({shape_of(s.type) for s in self.srcs}) > 1:
            raise VerifyException("the operands of tt.reduce must be blocks of one shape")
        if not 0 <= axis < len(shape_of(self.srcs[0].type)):
            raise VerifyException(f"{self.srcs[0].type} has no dim {axis}")
        elements = [element_type(s.type) for s in self.srcs]
        if [a.type for a in self.body.block.args] != [*elements, *elements]:
            raise VerifyException("the body of tt.reduce must take two elements of each block")
        if not isinstance(last, ReduceReturnOp) or [v.type for v in last.operands] != elements:
            raise VerifyException("the body of tt.reduce must return one element for each block")
        wanted = [block_of(element_type(s.type), _without(shape_of(s.type), axis)) for s in self.srcs]
        if [r.type for r in self.outputs] != wanted:
            raise VerifyException(f"tt.reduce along {axis} gives {', '.join(map(str, wanted))}")


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [d for k, d in enumerate(shape) if k != axis]


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """The combination of two elements."""

    name = "tt.reduce.return"
    values = var_operand_def()
    assembly_format = "$values `:` type($values) attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)])


PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""The precisions of f32 products in `tt.dot`, in Triton's order, from 0."""


@irdl_op_definition
class DotOp(BlockOp):
    """A product `a @ b + c` of blocks of two dims."""

    name = "tt.dot"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    input_precision = prop_def(IntegerAttr, prop_name="inputPrecision")
    max_imprecise = prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    result = result_def()

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue, precision: str = "ieee"):
        super().__init__(
            operands=[a, b, c],
            properties={
                "inputPrecision": IntegerAttr(PRECISIONS.index(precision), i32),
                "maxNumImpreciseAcc": IntegerAttr(0, i32),
            },
            result_types=[c.type],
        )

    @property
    def precision(self) -> str:
        """The precision of f32 products."""
        return PRECISIONS[self.input_precision.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> DotOp:
        names = [parser.parse_unresolved_operand() for _ in _separated(parser, 3)]
        precision = "tf32"
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("inputPrecision")
            parser.parse_punctuation("=")
            precision = parser.parse_identifier()
            if precision not in PRECISIONS:
                parser.raise_error(f"unknown precision of tt.dot; known: {', '.join(PRECISIONS)}")
        parser.parse_punctuation(":")
        a = parser.parse_type()
        parser.parse_punctuation("*")
        b = parser.parse_type()
        parser.parse_punctuation("->")
        left, right, added = parser.resolve_operands(names, [a, b, parser.parse_type()], parser.pos)
        return cls(left, right, added, precision)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f", inputPrecision = {self.precision} : ")
        printer.print_attribute(self.a.type)
        printer.print_string(" * ")
        printer.print_attribute(self.b.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.c.type)

    def verify_shapes(self) -> None:
        a, b, c = (shape_of(v.type) for v in self.operands)
        if len(a) != 2 or len(b) != 2 or a[1] != b[0] or c != (a[0], b[1]) or self.result.type != self.c.type:
            raise VerifyException(f"tt.dot of {self.a.type} and {self.b.type} does not give {self.c.type}")
        if element_type(self.a.type) != element_type(self.b.type):
            raise VerifyException("the factors of tt.dot must have the same element type")
        if not 0 <= self.input_precision.value.data < len(PRECISIONS):
            raise VerifyException("unknown precision of tt.dot")


def _separated(parser: Parser, count: int) -> Iterator[int]:
    for k in range(count):
        if k:
            parser.parse_punctuation(",")
        yield k


@irdl_op_definition
class PreciseDivOp(BlockOp):
    """A quotient of f32 rounded to nearest; `arith.divf` has an error of up to two units in the last place."""

    name = "tt.precise_divf"
    T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(T)
    y = operand_def(T)
    result = result_def(T)
    assembly_format = "$x `,` $y attr-dict `:` type($result)"

    def __init__(self, x: SSAValue, y: SSAValue):
        super().__init__(operands=[x, y], result_types=[x.type])


@irdl_op_definition
class PreciseSqrtOp(BlockOp):
    """A square root of f32 rounded to nearest."""

    name = "tt.precise_sqrt"
    T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(T)
    result = result_def(T)
    assembly_format = "$x attr-dict `:` type($result)"

    def __init__(self, x: SSAValue):
        super().__init__(operands=[x], result_types=[x.type])


@irdl_op_definition
class ExternElementwiseOp(BlockOp):
    """A function of CUDA's device library, applied to each element."""

    name = "tt.extern_elementwise"
    srcs = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$srcs attr-dict `:` functional-type($srcs, $result)"

    def __init__(self, symbol: str, srcs: Sequence[SSAValue], result: Attribute):
        super().__init__(
            operands=[list(srcs)],
            properties={
                "libname": StringAttr(""),
                "libpath": StringAttr(""),
                "symbol": StringAttr(symbol),
                "pure": BoolAttr.from_bool(True),
            },
            result_types=[result],
        )

    def verify_shapes(self) -> None:
        if len({shape_of(v.type) for v in (*self.srcs, self.result)}) > 1:
            raise VerifyException(
                f"{self.symbol.data} is elementwise: its operands and its result must have the same shape"
            )
