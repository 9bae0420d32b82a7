"""The `tensor` dialect: xDSL's, with the ops that it lacks and with reshapes of dynamic dims.

%n = tensor.rank %t : tensor<?x4xf32>
%g = tensor.generate %m { ^bb0(%i: index, %j: index): ... tensor.yield %v : f32 } : tensor<?x4xf32>
%r = tensor.gather %source[%indices] gather_dims([0]) unique? : (tensor<..>, tensor<..>) -> tensor<..>
"""

from __future__ import annotations

from typing import Self, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


class ReshapeOp(tensor.ReshapeOp):
    """`tensor.reshape`; the numbers of elements are compared only if all dims are static."""

    def verify_(self) -> None:
        source, target = (cast("TensorType[Attribute]", v.type) for v in (self.source, self.result))
        shape = cast("TensorType[Attribute]", self.shape.type).get_shape()
        if source.element_type != target.element_type:
            raise VerifyException(f"tensor.reshape of {source} cannot give elements of {target}")
        if len(shape) != 1 or shape[0] not in (DYNAMIC_INDEX, len(target.get_shape())):
            raise VerifyException(f"tensor.reshape to {target} needs a shape of {len(target.get_shape())} elements")
        if source.has_static_shape() and target.has_static_shape():
            super().verify_()


@irdl_op_definition
class RankOp(IRDLOperation):
    """The number of dims of a tensor."""

    name = "tensor.rank"
    source = operand_def(TensorType)
    result = result_def(IndexType)
    assembly_format = "$source attr-dict `:` type($source)"
    traits = traits_def(Pure())


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """A tensor whose elements a body computes from their indices."""

    name = "tensor.generate"
    sizes = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        names = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        sizes = parser.resolve_operands(names or [], [IndexType()] * len(names or []), position)
        body = parser.parse_region()
        given = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(operands=[sizes], regions=[body], result_types=[parser.parse_type()], attributes=given)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.sizes, printer.print_ssa_value)
        printer.print_string(" " if self.sizes else "")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """The slices of a tensor at the coordinates in the last dim of `indices`."""

    name = "tensor.gather"
    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            indices = parser.parse_unresolved_operand()
        parser.parse_keyword("gather_dims")
        with parser.in_parens():
            dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        unique = UnitAttr() if parser.parse_optional_keyword("unique") is not None else None
        given = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.build(
            operands=parser.resolve_operands([source, indices], types, position),
            result_types=[result],
            properties={"gather_dims": DenseArrayBase.from_list(i64, dims), "unique": unique},
            attributes=given,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string("[")
        printer.print_ssa_value(self.indices)
        numbers = ", ".join(str(k) for k in self.gather_dims.get_values())
        printer.print_string(f"] gather_dims([{numbers}])" + (" unique" if self.unique is not None else ""))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : (")
        operands: list[SSAValue] = [self.source, self.indices]
        printer.print_list([v.type for v in operands], printer.print_attribute)
        printer.print_string(") -> ")
        printer.print_attribute(self.result.type)


_OWN = {tensor.ReshapeOp: ReshapeOp}

Tensor = Dialect(
    "tensor",
    [*(_OWN.get(op, op) for op in tensor.Tensor.operations), RankOp, GenerateOp, GatherOp],  # pyright: ignore
    list(tensor.Tensor.attributes),
)
