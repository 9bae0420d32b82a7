"""Loads, stores and atomic operations on blocks of pointers; the package's docstring defines the ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    IntegerAttr,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    MemoryReadEffect,
    MemoryWriteEffect,
)
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.blocks import BlockOp, verify_blocks
from igniter.dialects.triton.types import PointerType, block_of, element_type, shape_of

NO_CACHE = NO_EVICTION = IntegerAttr(1, i32)
"""The default cache and eviction policies of loads and stores."""


def _verify_pointers(op: Operation, pointers: Attribute, value: Attribute) -> None:
    verify_blocks(op)
    pointer = element_type(pointers)
    if not isinstance(pointer, PointerType):
        raise VerifyException(f"'{op.name}' needs pointers, not {pointers}")
    if block_of(pointer.pointee, shape_of(pointers)) != value:
        raise VerifyException(f"'{op.name}' of {pointers} cannot access {value}")


def _verify_mask(op: Operation, pointers: Attribute, mask: SSAValue | None) -> None:
    if mask is not None and mask.type != block_of(i1, shape_of(pointers)):
        raise VerifyException(f"'{op.name}' of {pointers} cannot have a mask of {mask.type}")


@irdl_op_definition
class AddPtrOp(BlockOp):
    """Pointers advanced by offsets, in elements."""

    name = "tt.addptr"
    ptr = operand_def()
    offset = operand_def()
    result = result_def()

    def __init__(self, ptr: SSAValue, offset: SSAValue):
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])

    @classmethod
    def parse(cls, parser: Parser) -> AddPtrOp:
        names = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(*parser.resolve_operands(names, types, parser.pos))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([v.type for v in self.operands], printer.print_attribute)

    def verify_shapes(self) -> None:
        if self.ptr.type != self.result.type or shape_of(self.ptr.type) != shape_of(self.offset.type):
            raise VerifyException(f"{self.offset.type} cannot be added to {self.ptr.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A load of the elements at pointers."""

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    cache = prop_def(IntegerAttr)
    evict = prop_def(IntegerAttr)
    is_volatile = prop_def(BoolAttr, prop_name="isVolatile")
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def __init__(self, ptr: SSAValue, mask: SSAValue | None = None, other: SSAValue | None = None):
        pointer = element_type(ptr.type)
        assert isinstance(pointer, PointerType)
        super().__init__(
            operands=[ptr, mask, other],
            properties={"cache": NO_CACHE, "evict": NO_EVICTION, "isVolatile": BoolAttr.from_bool(False)},
            result_types=[block_of(pointer.pointee, shape_of(ptr.type))],
        )

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        values, pointers = _parse_access(parser, 3)
        types = [pointers, _mask_type(pointers), _value_type(parser, pointers)]
        return cls(*parser.resolve_operands(values, types[: len(values)], parser.pos))

    def print(self, printer: Printer) -> None:
        _print_access(printer, self.operands, self.ptr.type)

    def verify_(self) -> None:
        _verify_pointers(self, self.ptr.type, self.result.type)
        _verify_mask(self, self.ptr.type, self.mask)
        if self.other is not None and (self.mask is None or self.other.type != self.result.type):
            raise VerifyException("the 'other' value of a tt.load needs a mask and must have the type of its result")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """A store of a block to the elements at pointers."""

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    cache = prop_def(IntegerAttr)
    evict = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, ptr: SSAValue, value: SSAValue, mask: SSAValue | None = None):
        super().__init__(operands=[ptr, value, mask], properties={"cache": NO_CACHE, "evict": NO_EVICTION})

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        values, pointers = _parse_access(parser, 3)
        types = [pointers, _value_type(parser, pointers), _mask_type(pointers)]
        return cls(*parser.resolve_operands(values, types[: len(values)], parser.pos))

    def print(self, printer: Printer) -> None:
        _print_access(printer, self.operands, self.ptr.type)

    def verify_(self) -> None:
        _verify_pointers(self, self.ptr.type, self.value.type)
        _verify_mask(self, self.ptr.type, self.mask)


ATOMICS = ("and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "xchg")
"""The kinds of `tt.atomic_rmw`, in Triton's order, from 1."""

RELAXED, GPU_SCOPE = IntegerAttr(1, i32), IntegerAttr(1, i32)


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """An atomic combination of a block with the elements at pointers; gives their old values."""

    name = "tt.atomic_rmw"
    atomic_rmw_op = prop_def(IntegerAttr)
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    ptr = operand_def()
    val = operand_def()
    mask = opt_operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kind: str, ptr: SSAValue, val: SSAValue, mask: SSAValue | None = None):
        super().__init__(
            operands=[ptr, val, mask],
            properties={
                "atomic_rmw_op": IntegerAttr(ATOMICS.index(kind) + 1, i32),
                "sem": RELAXED,
                "scope": GPU_SCOPE,
            },
            result_types=[val.type],
        )

    @property
    def kind(self) -> str:
        """The name of the operation."""
        return ATOMICS[self.atomic_rmw_op.value.data - 1]

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        place = parser.pos
        kind = parser.parse_identifier()
        if kind not in ATOMICS:
            parser.raise_error(f"unknown kind of tt.atomic_rmw; known: {', '.join(ATOMICS)}", place)
        parser.parse_punctuation(",")
        values, pointers = _parse_access(parser, 3)
        types = [pointers, _value_type(parser, pointers), _mask_type(pointers)]
        return cls(kind, *parser.resolve_operands(values, types[: len(values)], parser.pos))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind},")
        _print_access(printer, self.operands, self.ptr.type)

    def verify_(self) -> None:
        if not 1 <= self.atomic_rmw_op.value.data <= len(ATOMICS):
            raise VerifyException("unknown kind of tt.atomic_rmw")
        _verify_pointers(self, self.ptr.type, self.val.type)
        _verify_mask(self, self.ptr.type, self.mask)
        if self.result.type != self.val.type:
            raise VerifyException("the result of tt.atomic_rmw is the old value; its type must be that of the operand")


def _parse_access(parser: Parser, most: int) -> tuple[list[UnresolvedOperand], Attribute]:
    """Parses `%a, %b, .. : pointers`, with at most `most` operands."""
    place = parser.pos
    values = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(",") is not None:
        values.append(parser.parse_unresolved_operand())
    if len(values) > most:
        parser.raise_error(f"it takes at most {most} operands", place)
    parser.parse_punctuation(":")
    return values, parser.parse_type()


def _print_access(printer: Printer, operands: Sequence[SSAValue], pointers: Attribute) -> None:
    printer.print_string(" ")
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_attribute(pointers)


def _value_type(parser: Parser, pointers: Attribute) -> Attribute:
    pointer = element_type(pointers)
    if not isinstance(pointer, PointerType):
        parser.raise_error(f"an access needs pointers, not {pointers}")
    return block_of(pointer.pointee, shape_of(pointers))


def _mask_type(pointers: Attribute) -> Attribute:
    return block_of(i1, shape_of(pointers))
