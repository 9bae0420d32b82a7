"""Kernels, the programs that run them, and changes of shape; the package's docstring defines the ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
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
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.loops import verify_hints
from igniter.dialects.triton.types import PointerType, block_of, block_reason, element_type, is_block, shape_of

AXES = ("x", "y", "z")


def verify_blocks(op: Operation) -> None:
    """Checks that all operands and results of an op are valid Triton blocks or scalars."""
    for value in (*op.operands, *op.results):
        reason = block_reason(value.type)
        if reason is not None:
            raise VerifyException(f"'{op.name}': {reason}")


class BlockOp(IRDLOperation):
    """A computation on blocks, without memory access."""

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_blocks(self)
        self.verify_shapes()

    def verify_shapes(self) -> None:
        """Checks the shapes of the blocks."""


ALIGNMENT = 16
"""The alignment in bytes of every address passed to a kernel: the widest load of a thread."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel, run by every program of a launch. Its pointer arguments are multiples of `ALIGNMENT`."""

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    arg_attrs = prop_def(ArrayAttr[DictionaryAttr])
    """The attributes of the arguments for Triton, derived from their types."""
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, inputs: Sequence[Attribute], body: Region | None = None):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(list(inputs), []),
                "arg_attrs": ArrayAttr(
                    DictionaryAttr(
                        {"tt.divisibility": IntegerAttr(ALIGNMENT, i32)} if isinstance(t, PointerType) else {}
                    )
                    for t in inputs
                ),
            },
            regions=[body if body is not None else Region(Block(arg_types=list(inputs)))],
        )

    def verify_(self) -> None:
        if [a.type for a in self.body.block.args] != list(self.function_type.inputs):
            raise VerifyException("the arguments of a tt.func do not match its type")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("the body of a tt.func must end with tt.return")
        verify_hints(self)
        for arg in self.body.block.args:
            if is_block(arg.type):
                raise VerifyException(f"the arguments of a tt.func must be pointers and numbers, not {arg.type}")

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name().data
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        return cls(name, [a.type for a in args], parser.parse_region(args))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a kernel."""

    name = "tt.return"
    assembly_format = "attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self):
        super().__init__()


class GridOp(IRDLOperation):
    """A number along an axis of the grid."""

    axis = prop_def(IntegerAttr)
    result = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i32)}, result_types=[i32])

    @classmethod
    def parse(cls, parser: Parser) -> GridOp:
        place = parser.pos
        name = parser.parse_identifier()
        if name not in AXES:
            parser.raise_error("the axis of a grid must be x, y or z", place)
        parser.parse_punctuation(":")
        parser.parse_type()
        return cls(AXES.index(name))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {AXES[self.axis.value.data]} : i32")

    def verify_(self) -> None:
        if not 0 <= self.axis.value.data < len(AXES):
            raise VerifyException("the axis of a grid must be 0, 1 or 2")


@irdl_op_definition
class GetProgramIdOp(GridOp):
    """The index of the program along an axis of the grid."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(GridOp):
    """The number of programs along an axis of the grid."""

    name = "tt.get_num_programs"


@irdl_op_definition
class MakeRangeOp(BlockOp):
    """The range `start`, `start + 1`, ... below `end`."""

    name = "tt.make_range"
    start = prop_def(IntegerAttr)
    end = prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, start: int, end: int):
        super().__init__(
            properties={"start": IntegerAttr(start, i32), "end": IntegerAttr(end, i32)},
            result_types=[block_of(i32, [end - start])],
        )

    def verify_shapes(self) -> None:
        if shape_of(self.result.type) != (self.end.value.data - self.start.value.data,):
            raise VerifyException(f"the length of {self.result.type} is not end - start")


class ReshapingOp(BlockOp):
    """A block of another shape with the same elements."""

    src = operand_def()
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        super().verify_()
        if element_type(self.src.type) != element_type(self.result.type):
            raise VerifyException(f"'{self.name}' cannot change the element type")


@irdl_op_definition
class SplatOp(ReshapingOp):
    """A block with one element repeated everywhere."""

    name = "tt.splat"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(src.type, shape)])

    def verify_shapes(self) -> None:
        if is_block(self.src.type) or not is_block(self.result.type):
            raise VerifyException("the operand of tt.splat must be a single element, and its result a block")


@irdl_op_definition
class ExpandDimsOp(ReshapingOp):
    """A block with one more dim, of size one."""

    name = "tt.expand_dims"
    axis = prop_def(IntegerAttr)

    def __init__(self, src: SSAValue, axis: int):
        shape = list(shape_of(src.type))
        shape.insert(axis, 1)
        super().__init__(
            operands=[src],
            properties={"axis": IntegerAttr(axis, i32)},
            result_types=[block_of(element_type(src.type), shape)],
        )

    def verify_shapes(self) -> None:
        shape = list(shape_of(self.src.type))
        shape.insert(self.axis.value.data, 1)
        if tuple(shape) != shape_of(self.result.type):
            raise VerifyException(f"{self.src.type} with one more dim {self.axis.value.data} is not {self.result.type}")


@irdl_op_definition
class BroadcastOp(ReshapingOp):
    """A block with its dims of size one repeated."""

    name = "tt.broadcast"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(element_type(src.type), shape)])

    def verify_shapes(self) -> None:
        have, want = shape_of(self.src.type), shape_of(self.result.type)
        if len(have) != len(want) or any(a not in (1, b) for a, b in zip(have, want, strict=True)):
            raise VerifyException(f"{self.src.type} cannot be repeated to {self.result.type}")


@irdl_op_definition
class ReshapeOp(ReshapingOp):
    """A block of another shape with the elements in the same order."""

    name = "tt.reshape"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(element_type(src.type), shape)])

    def verify_shapes(self) -> None:
        sizes = [1, 1]
        for k, t in enumerate((self.src.type, self.result.type)):
            for d in shape_of(t):
                sizes[k] *= d
        if sizes[0] != sizes[1]:
            raise VerifyException(f"{self.src.type} has a different number of elements than {self.result.type}")


@irdl_op_definition
class TransOp(ReshapingOp):
    """A block with its dims permuted."""

    name = "tt.trans"
    order = prop_def(DenseArrayBase)

    def __init__(self, src: SSAValue, order: Sequence[int]):
        shape = shape_of(src.type)
        super().__init__(
            operands=[src],
            properties={"order": DenseArrayBase.from_list(i32, list(order))},
            result_types=[block_of(element_type(src.type), [shape[k] for k in order])],
        )

    @property
    def permutation(self) -> tuple[int, ...]:
        """For each dim of the result, its dim in the source."""
        return tuple(int(k) for k in cast("DenseArrayBase[IntegerType]", self.order).get_values())

    def verify_shapes(self) -> None:
        order, shape = self.permutation, shape_of(self.src.type)
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"{list(order)} is not a permutation of the dims of {self.src.type}")
        if tuple(shape[k] for k in order) != shape_of(self.result.type):
            raise VerifyException(f"{self.src.type} in the order {list(order)} is not {self.result.type}")


@irdl_op_definition
class JoinOp(BlockOp):
    """Two blocks side by side along a new last dim of two."""

    name = "tt.join"
    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        result = block_of(element_type(lhs.type), [*shape_of(lhs.type), 2])
        super().__init__(operands=[lhs, rhs], result_types=[result])

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def verify_shapes(self) -> None:
        if self.result.type != block_of(element_type(self.lhs.type), [*shape_of(self.lhs.type), 2]):
            raise VerifyException(f"tt.join of {self.lhs.type} does not give {self.result.type}")


@irdl_op_definition
class SplitOp(BlockOp):
    """The two blocks that a block has along its last dim of two."""

    name = "tt.split"
    T: ClassVar = VarConstraint("T", AnyAttr())
    src = operand_def()
    lhs = result_def(T)
    rhs = result_def(T)

    def __init__(self, src: SSAValue):
        half = block_of(element_type(src.type), shape_of(src.type)[:-1])
        super().__init__(operands=[src], result_types=[half, half])

    assembly_format = "$src attr-dict `:` type($src) `->` type($lhs)"

    def verify_shapes(self) -> None:
        *shape, last = shape_of(self.src.type) or (0,)
        if last != 2:
            raise VerifyException(f"tt.split needs a last dim of two, which {self.src.type} does not have")
        half = block_of(element_type(self.src.type), shape)
        if self.lhs.type != half:
            raise VerifyException(f"tt.split of {self.src.type} gives two blocks of {half}")
