"""The ops of the `tt` dialect; what each means and how it is written is in the package's docstring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.types import PointerType, block_of, block_reason, element_type, is_block, shape_of

AXES = ("x", "y", "z")
NO_CACHE = NO_EVICTION = IntegerAttr(1, i32)
"""Nothing said of how what is loaded or stored is kept in caches."""


def _verify_blocks(op: Operation) -> None:
    for value in (*op.operands, *op.results):
        reason = block_reason(value.type)
        if reason is not None:
            raise VerifyException(f"'{op.name}': {reason}")


class BlockOp(IRDLOperation):
    """What is computed of blocks, without memory."""

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_blocks(self)
        self.verify_shapes()

    def verify_shapes(self) -> None:
        """What the op asks of the shapes of its blocks."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel: every program of a launch runs it."""

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, inputs: Sequence[Attribute], body: Region | None = None):
        super().__init__(
            properties={"sym_name": StringAttr(name), "function_type": FunctionType.from_lists(list(inputs), [])},
            regions=[body if body is not None else Region(Block(arg_types=list(inputs)))],
        )

    def verify_(self) -> None:
        if [a.type for a in self.body.block.args] != list(self.function_type.inputs):
            raise VerifyException("the arguments of a tt.func are not those of its type")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("the body of a tt.func ends with tt.return")
        for arg in self.body.block.args:
            if is_block(arg.type):
                raise VerifyException(f"a tt.func is given pointers and numbers, not {arg.type}")

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


@irdl_op_definition
class GetProgramIdOp(IRDLOperation):
    """The number of the program along an axis of the grid."""

    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i32)}, result_types=[i32])

    @classmethod
    def parse(cls, parser: Parser) -> GetProgramIdOp:
        place = parser.pos
        name = parser.parse_identifier()
        if name not in AXES:
            parser.raise_error("a grid has the axes x, y and z", place)
        parser.parse_punctuation(":")
        parser.parse_type()
        return cls(AXES.index(name))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {AXES[self.axis.value.data]} : i32")

    def verify_(self) -> None:
        if not 0 <= self.axis.value.data < len(AXES):
            raise VerifyException("a grid has the axes 0, 1 and 2")


@irdl_op_definition
class MakeRangeOp(BlockOp):
    """`start`, `start + 1`, up to `end`."""

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
            raise VerifyException(f"a range of {self.result.type} does not lead from start to end")


class ReshapingOp(BlockOp):
    """The same elements in a block of another shape."""

    src = operand_def()
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        super().verify_()
        if element_type(self.src.type) != element_type(self.result.type):
            raise VerifyException(f"'{self.name}' keeps the type of elements")


@irdl_op_definition
class SplatOp(ReshapingOp):
    """One element in every place."""

    name = "tt.splat"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(src.type, shape)])

    def verify_shapes(self) -> None:
        if is_block(self.src.type) or not is_block(self.result.type):
            raise VerifyException("tt.splat makes a block of a single element")


@irdl_op_definition
class ExpandDimsOp(ReshapingOp):
    """With one more dim, of size one."""

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
    """Dims of size one, repeated."""

    name = "tt.broadcast"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(element_type(src.type), shape)])

    def verify_shapes(self) -> None:
        have, want = shape_of(self.src.type), shape_of(self.result.type)
        if len(have) != len(want) or any(a not in (1, b) for a, b in zip(have, want, strict=True)):
            raise VerifyException(f"{self.src.type} cannot be repeated to {self.result.type}")


@irdl_op_definition
class ReshapeOp(ReshapingOp):
    """The elements in the same order."""

    name = "tt.reshape"

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[block_of(element_type(src.type), shape)])

    def verify_shapes(self) -> None:
        sizes = [1, 1]
        for k, t in enumerate((self.src.type, self.result.type)):
            for d in shape_of(t):
                sizes[k] *= d
        if sizes[0] != sizes[1]:
            raise VerifyException(f"{self.src.type} has other elements than {self.result.type}")


@irdl_op_definition
class TransOp(ReshapingOp):
    """The dims in another order."""

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
        """Which dim of the source each dim is."""
        return tuple(int(k) for k in cast("DenseArrayBase[IntegerType]", self.order).get_values())

    def verify_shapes(self) -> None:
        order, shape = self.permutation, shape_of(self.src.type)
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"{list(order)} is no order of the dims of {self.src.type}")
        if tuple(shape[k] for k in order) != shape_of(self.result.type):
            raise VerifyException(f"{self.src.type} in the order {list(order)} is not {self.result.type}")


# -- memory -----------------------------------------------------------------------------------------------------------


def _verify_pointers(op: Operation, pointers: Attribute, value: Attribute) -> None:
    _verify_blocks(op)
    pointer = element_type(pointers)
    if not isinstance(pointer, PointerType):
        raise VerifyException(f"'{op.name}' takes pointers, not {pointers}")
    if block_of(pointer.pointee, shape_of(pointers)) != value:
        raise VerifyException(f"'{op.name}' of {pointers} has to do with {value}")


def _verify_mask(op: Operation, pointers: Attribute, mask: SSAValue | None) -> None:
    if mask is not None and mask.type != block_of(i1, shape_of(pointers)):
        raise VerifyException(f"'{op.name}' of {pointers} is masked by {mask.type}")


@irdl_op_definition
class AddPtrOp(BlockOp):
    """Pointers, so many elements further."""

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
    """What pointers point to."""

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
            raise VerifyException("the other value of a tt.load is what stands where its mask is off")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a block to where pointers point."""

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
    """Combines a block with what pointers point to, which is given back."""

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
        """The name of what it does."""
        return ATOMICS[self.atomic_rmw_op.value.data - 1]

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        place = parser.pos
        kind = parser.parse_identifier()
        if kind not in ATOMICS:
            parser.raise_error(f"tt.atomic_rmw has the kinds {', '.join(ATOMICS)}", place)
        parser.parse_punctuation(",")
        values, pointers = _parse_access(parser, 3)
        types = [pointers, _value_type(parser, pointers), _mask_type(pointers)]
        return cls(kind, *parser.resolve_operands(values, types[: len(values)], parser.pos))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind},")
        _print_access(printer, self.operands, self.ptr.type)

    def verify_(self) -> None:
        if not 1 <= self.atomic_rmw_op.value.data <= len(ATOMICS):
            raise VerifyException("tt.atomic_rmw has no such kind")
        _verify_pointers(self, self.ptr.type, self.val.type)
        _verify_mask(self, self.ptr.type, self.mask)
        if self.result.type != self.val.type:
            raise VerifyException("tt.atomic_rmw gives what was there")


def _parse_access(parser: Parser, most: int) -> tuple[list[UnresolvedOperand], Attribute]:
    """`%a, %b, .. : pointers`, of `most` operands."""
    place = parser.pos
    values = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(",") is not None:
        values.append(parser.parse_unresolved_operand())
    if len(values) > most:
        parser.raise_error(f"it takes {most} operands at most", place)
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
        parser.raise_error(f"pointers are accessed, not {pointers}")
    return block_of(pointer.pointee, shape_of(pointers))


def _mask_type(pointers: Attribute) -> Attribute:
    return block_of(i1, shape_of(pointers))


# -- computing --------------------------------------------------------------------------------------------------------


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Folds a dim of blocks with a function of two elements, in any order; several blocks are folded together."""

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
        _verify_blocks(self)
        axis, last = self.axis.value.data, self.body.block.last_op
        if not self.srcs or len({shape_of(s.type) for s in self.srcs}) > 1:
            raise VerifyException("tt.reduce folds blocks of one shape")
        if not 0 <= axis < len(shape_of(self.srcs[0].type)):
            raise VerifyException(f"{self.srcs[0].type} has no dim {axis}")
        elements = [element_type(s.type) for s in self.srcs]
        if [a.type for a in self.body.block.args] != [*elements, *elements]:
            raise VerifyException("the body of tt.reduce takes two elements of each block")
        if not isinstance(last, ReduceReturnOp) or [v.type for v in last.operands] != elements:
            raise VerifyException("the body of tt.reduce returns an element of each block")
        wanted = [block_of(element_type(s.type), _without(shape_of(s.type), axis)) for s in self.srcs]
        if [r.type for r in self.outputs] != wanted:
            raise VerifyException(f"tt.reduce along {axis} gives {', '.join(map(str, wanted))}")


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [d for k, d in enumerate(shape) if k != axis]


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """What two elements become."""

    name = "tt.reduce.return"
    values = var_operand_def()
    assembly_format = "$values `:` type($values) attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)])


PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""How `tt.dot` multiplies f32, in Triton's order, from 0."""


@irdl_op_definition
class DotOp(BlockOp):
    """`a @ b + c`, of blocks of two dims."""

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
        """How f32 is multiplied."""
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
                parser.raise_error(f"tt.dot has the precisions {', '.join(PRECISIONS)}")
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
            raise VerifyException("tt.dot multiplies elements of one type")
        if not 0 <= self.input_precision.value.data < len(PRECISIONS):
            raise VerifyException("tt.dot has no such precision")


def _separated(parser: Parser, count: int) -> Iterator[int]:
    for k in range(count):
        if k:
            parser.parse_punctuation(",")
        yield k


@irdl_op_definition
class PreciseDivOp(BlockOp):
    """A quotient of f32 rounded to the nearest; `arith.divf` is off by two units in the last place."""

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
    """A square root of f32 rounded to the nearest."""

    name = "tt.precise_sqrt"
    T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(T)
    result = result_def(T)
    assembly_format = "$x attr-dict `:` type($result)"

    def __init__(self, x: SSAValue):
        super().__init__(operands=[x], result_types=[x.type])


@irdl_op_definition
class ExternElementwiseOp(BlockOp):
    """A function of CUDA's device library, of each element."""

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
            raise VerifyException(f"{self.symbol.data} is computed of each element")
