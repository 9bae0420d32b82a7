"""`loop.if_shared`: a choice by the addresses of two buffers of the caller.

    stmt ::= loop.if_shared %past, %present { stmt* } else { stmt* }

The first block runs if both buffers begin at one address and have the same dims, otherwise the second one. So a caller
who passes one buffer as an input and as a result gets an update in place. A func with this op has the attribute
`igniter.in_place`: its inputs and outputs may alias. In all other respects a func may rely on distinct buffers.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.bodies import parse_value
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr

IN_PLACE = "igniter.in_place"
"""The attribute of a func whose inputs and outputs may alias."""


@irdl_op_definition
class IfSharedOp(IRDLOperation):
    """A choice by whether two buffers are one."""

    name = "loop.if_shared"
    first = operand_def(MemRefType)
    second = operand_def(MemRefType)
    shared = region_def("single_block")
    apart = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, first: SSAValue, second: SSAValue, shared: Region | Block, apart: Region | Block):
        regions = [each if isinstance(each, Region) else Region(each) for each in (shared, apart)]
        super().__init__(operands=[first, second], regions=regions)

    @property
    def differences(self) -> list[Expr]:
        """The differences of the dims that are not known to be equal: the buffers are one only if all are 0."""
        pairs = zip(dims_of(self.first.type), dims_of(self.second.type), strict=True)
        return [a - b for a, b in pairs if a != b]

    def verify_(self) -> None:
        ranks = {len(dims_of(each.type)) for each in (self.first, self.second)}
        if element_of(self.first.type) != element_of(self.second.type) or len(ranks) > 1:
            raise VerifyException(f"a {self.first.type} and a {self.second.type} are never one buffer")

    @classmethod
    def parse(cls, parser: Parser) -> IfSharedOp:
        first = parse_value(parser)
        parser.parse_punctuation(",")
        second = parse_value(parser)
        shared = parser.parse_region()
        parser.parse_keyword("else")
        return cls(first, second, shared, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.first, self.second), printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.shared)
        printer.print_string(" else ")
        printer.print_region(self.apart)
