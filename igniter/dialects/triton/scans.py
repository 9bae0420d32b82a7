"""Scans of blocks; the package's docstring defines the op."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.blocks import verify_blocks
from igniter.dialects.triton.types import element_type, shape_of


@irdl_op_definition
class ScanOp(IRDLOperation):
    """The running combinations along a dim of a block, by an associative function of two elements: each element is
    combined with those before it, or with `reverse`, with those behind it."""

    name = "tt.scan"
    src = operand_def()
    axis = prop_def(IntegerAttr)
    reverse = prop_def(BoolAttr)
    body = region_def("single_block")
    result = result_def()
    traits = traits_def(Pure(), NoTerminator())

    def __init__(self, src: SSAValue, axis: int, body: Region, *, reverse: bool = False):
        super().__init__(
            operands=[src],
            properties={"axis": IntegerAttr(axis, i32), "reverse": BoolAttr.from_bool(reverse)},
            result_types=[src.type],
            regions=[body],
        )

    @property
    def is_reverse(self) -> bool:
        """True if the scan begins at the last element."""
        return bool(self.reverse)

    def verify_(self) -> None:
        verify_blocks(self)
        element, last = element_type(self.src.type), self.body.block.last_op
        if not 0 <= self.axis.value.data < len(shape_of(self.src.type)):
            raise VerifyException(f"{self.src.type} has no dim {self.axis.value.data}")
        if self.result.type != self.src.type:
            raise VerifyException("the result of tt.scan must have the type of its operand")
        if [a.type for a in self.body.block.args] != [element, element]:
            raise VerifyException("the body of tt.scan must take two elements")
        if not isinstance(last, ScanReturnOp) or last.value.type != element:
            raise VerifyException("the body of tt.scan must return an element")


@irdl_op_definition
class ScanReturnOp(IRDLOperation):
    """The combination of two elements."""

    name = "tt.scan.return"
    value = operand_def()
    assembly_format = "$value `:` type($value) attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value])
