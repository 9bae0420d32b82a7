"""Descriptors of tensors (tensor maps): loads and stores of whole blocks by the GPU's copy engine, since sm_90.

A descriptor is an argument of a kernel. The host makes it from the address, the sizes and the strides of a tensor. A
block begins at any element whose last subscript is a multiple of 16 bytes. A load gives 0 beyond the sizes of the
tensor, and a store leaves these elements out, so neither has a mask.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerAttr, TensorType, i8, i32
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.memory import NO_CACHE, NO_EVICTION
from igniter.dialects.triton.types import block_of, block_reason, element_type, shape_of

LEAST_BYTES = 16
"""The least bytes of a block along its last dim, and the unit of its strides and of its last subscript."""
MOST_DIMS = 5

ELEMENT_BYTES: dict[type[Attribute], int] = {Float16Type: 2, BFloat16Type: 2, Float32Type: 4}
"""The floats of a tensor with a descriptor; i8 is the only integer."""


def descriptor_bytes(element: Attribute) -> int | None:
    """Returns the bytes of an element; None if there are no descriptors of its type."""
    return 1 if element == i8 else ELEMENT_BYTES.get(type(element))


def descriptor_reason(element: Attribute, shape: Sequence[int]) -> str | None:
    """Returns the reason why there is no descriptor with such blocks; None if there is."""
    size = descriptor_bytes(element)
    if size is None:
        return f"there is no descriptor of elements of {element}"
    if not 1 <= len(shape) <= MOST_DIMS:
        return f"a descriptor has 1 to {MOST_DIMS} dims, not {len(shape)}"
    if shape[-1] * size < LEAST_BYTES:
        return f"a block of a descriptor has at least {LEAST_BYTES} bytes along its last dim, not {shape[-1] * size}"
    return block_reason(block_of(element, shape))


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """`!tt.tensordesc<128x64xf16>`: a tensor in global memory, accessed in blocks of this shape."""

    name = "tt.tensordesc"
    block: TensorType[Attribute]

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims of a block."""
        return self.block.get_shape()

    @property
    def element(self) -> Attribute:
        """The type of the tensor's elements."""
        return self.block.element_type

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_shape()
            if shape is None:
                parser.raise_error("a descriptor has blocks of known shape")
        return [TensorType(element, shape)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{d}x" for d in self.shape))
            printer.print_attribute(self.element)

    def verify(self) -> None:
        reason = descriptor_reason(self.element, self.shape)
        if reason is not None:
            raise VerifyException(reason)


def _verify_access(op: DescriptorLoadOp | DescriptorStoreOp, block: Attribute) -> None:
    kind = op.desc.type
    if not isinstance(kind, DescriptorType):
        raise VerifyException(f"'{op.name}' needs a descriptor, not {kind}")
    if element_type(block) != kind.element or shape_of(block) != kind.shape:
        raise VerifyException(f"'{op.name}' of {kind} cannot access {block}")
    if len(op.indices) != len(kind.shape) or any(v.type != i32 for v in op.indices):
        raise VerifyException(f"'{op.name}' of {kind} needs {len(kind.shape)} subscripts of i32")


def _parse_access(parser: Parser, values: int) -> list[SSAValue]:
    """Parses `%desc[%i, ..] (, %value)? : type`; returns the descriptor, the value if there is one, and the
    subscripts."""
    place = parser.pos
    names = [parser.parse_unresolved_operand()]
    subscripts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    for _ in range(values):
        parser.parse_punctuation(",")
        names.append(parser.parse_unresolved_operand())
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    if not isinstance(kind, DescriptorType):
        parser.raise_error(f"the access needs a descriptor, not {kind}", place)
    types = [kind, *[kind.block] * values, *[i32] * len(subscripts)]
    return list(parser.resolve_operands([*names, *subscripts], types, place))


def _print_place(printer: Printer, desc: SSAValue, indices: Sequence[SSAValue]) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(desc)
    printer.print_string("[")
    printer.print_list(indices, printer.print_ssa_value)
    printer.print_string("]")


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """A load of the block that begins at some subscripts; 0 beyond the tensor."""

    name = "tt.descriptor_load"
    desc = operand_def()
    indices = var_operand_def()
    cache = prop_def(IntegerAttr)
    evict = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(self, desc: SSAValue, indices: Sequence[SSAValue]):
        kind = desc.type
        assert isinstance(kind, DescriptorType)
        super().__init__(
            operands=[desc, list(indices)],
            properties={"cache": NO_CACHE, "evict": NO_EVICTION},
            result_types=[kind.block],
        )

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:
        desc, *indices = _parse_access(parser, 0)
        return cls(desc, indices)

    def print(self, printer: Printer) -> None:
        _print_place(printer, self.desc, self.indices)
        printer.print_string(" : ")
        printer.print_attribute(self.desc.type)

    def verify_(self) -> None:
        _verify_access(self, self.result.type)


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """A store of the block that begins at some subscripts, without what is beyond the tensor."""

    name = "tt.descriptor_store"
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, desc: SSAValue, indices: Sequence[SSAValue], src: SSAValue):
        super().__init__(operands=[desc, src, list(indices)])

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorStoreOp:
        desc, src, *indices = _parse_access(parser, 1)
        return cls(desc, indices, src)

    def print(self, printer: Printer) -> None:
        _print_place(printer, self.desc, self.indices)
        printer.print_string(", ")
        printer.print_ssa_value(self.src)
        printer.print_string(" : ")
        printer.print_attribute(self.desc.type)

    def verify_(self) -> None:
        _verify_access(self, self.src.type)
