"""The ops of programs on the scheduled level: calls of kernels, slices of buffers, and the clock.

    stmt ::= loop.call @kernel symbols [expr, ...] (%input, ...) -> (%output, ...) (scratch %arena)?
           | %s = loop.slice %b[expr, ...] : memref to memref
           | %t = loop.clock : i64

A call runs a `loop.func`, possibly of another module (each kernel is compiled on its own). It passes the values of the
symbols and the buffers; `scratch` is the kernel's arena, at least as large as it requires. Outputs alias nothing else.
A call stands in the body of a func or of `sequential` loops in it, because kernels have threads of their own.

`loop.slice` fixes the first subscripts of a buffer and gives the rest, which is contiguous, as a buffer.

`loop.clock` reads the CPU's time stamp counter, in ticks of unspecified length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, MemRefType, ModuleOp, SymbolRefAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import stored_bytes
from igniter.dialects.loop.bodies import parse_value
from igniter.dialects.sym import DimsAttr, dims_of, element_of, memref_of, parse_exprs
from igniter.dialects.sym.expr import Expr, ExprLike, product


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a scheduled kernel on buffers of the caller."""

    name = "loop.call"
    callee_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="callee")
    symbols_attr = prop_def(DimsAttr, prop_name="symbols")
    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)
    scratch = opt_operand_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        callee: str,
        symbols: Iterable[ExprLike],
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        scratch: SSAValue | None = None,
    ):
        super().__init__(
            operands=[inputs, outputs, scratch],
            properties={"callee": SymbolRefAttr(callee), "symbols": DimsAttr(symbols)},
        )

    @property
    def callee(self) -> str:
        """The name of the kernel."""
        return self.callee_attr.root_reference.data

    @callee.setter
    def callee(self, name: str) -> None:
        self.callee_attr = SymbolRefAttr(name)

    @property
    def symbols(self) -> tuple[Expr, ...]:
        """The values of the kernel's symbols, in the kernel's order."""
        return self.symbols_attr.data

    @property
    def buffers(self) -> tuple[SSAValue, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    def verify_(self) -> None:
        from igniter.dialects.loop.func import FuncOp
        from igniter.dialects.loop.scheduled import ForOp

        parent = self.parent_op()
        while isinstance(parent, ForOp) and parent.is_sequential:
            parent = parent.parent_op()
        if parent is not None and not isinstance(parent, FuncOp):
            raise VerifyException(
                f"loop.call @{self.callee} must be in the body of a loop.func or of sequential loops in it"
            )
        written = set(self.outputs)
        if len(written) != len(self.outputs) or written & {*self.inputs}:
            raise VerifyException(f"loop.call @{self.callee}: an output is also another buffer of the call")
        callee = self.find_callee()
        if callee is not None:
            self._verify_signature(callee)

    def _verify_signature(self, callee: object) -> None:
        from igniter.dialects.loop.func import FuncOp

        assert isinstance(callee, FuncOp)
        name = f"loop.call @{self.callee}"
        args = callee.block.args
        given, wanted = len(self.inputs), len(args) - callee.output_count
        if given != wanted or len(self.outputs) != callee.output_count:
            raise VerifyException(
                f"{name} has {given} inputs and {len(self.outputs)} outputs, the kernel {wanted} and "
                f"{callee.output_count}"
            )
        if len(self.symbols) != len(callee.symbol_names):
            raise VerifyException(f"{name} has {len(self.symbols)} symbols, the kernel {len(callee.symbol_names)}")
        values = dict(zip(callee.symbol_names, self.symbols, strict=True))
        for k, (buffer, arg) in enumerate(zip(self.buffers, args, strict=True)):
            dims = tuple(d.substitute(values) for d in dims_of(arg.type))
            if element_of(buffer.type) != element_of(arg.type) or dims_of(buffer.type) != dims:
                raise VerifyException(f"{name}: buffer {k} is a {buffer.type}, the kernel takes {arg.type}")
        self._verify_scratch(name, callee.scratch_bytes, values)

    def _verify_scratch(self, name: str, needed: Expr | None, values: dict[str, Expr]) -> None:
        if needed is None or needed == Expr.of(0):
            return
        if self.scratch is None:
            raise VerifyException(f"{name} has no scratch memory, but the kernel needs {needed} bytes")
        size = stored_bytes(self.scratch.type)
        missing = (needed.substitute(values) - size).constant
        if missing is not None and missing > 0:
            raise VerifyException(f"{name} needs {missing} more bytes of scratch memory for the kernel")

    def find_callee(self) -> IRDLOperation | None:
        """Returns the `loop.func` of that name in this module; None if the kernel is in another module."""
        from igniter.dialects.loop.func import FuncOp

        module = self.parent_op()
        while module is not None and not isinstance(module, ModuleOp):
            module = module.parent_op()
        if module is None:
            return None
        name = self.callee
        return next((op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name), None)

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = parser.parse_symbol_name().data
        parser.parse_keyword("symbols")
        symbols = parse_exprs(parser)
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_value(parser))
        parser.parse_characters("->")
        outputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_value(parser))
        scratch = parse_value(parser) if parser.parse_optional_keyword("scratch") is not None else None
        return cls(callee, symbols, inputs, outputs, scratch)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee)
        printer.print_string(f" symbols [{', '.join(map(str, self.symbols))}] (")
        printer.print_list(self.inputs, printer.print_ssa_value)
        printer.print_string(") -> (")
        printer.print_list(self.outputs, printer.print_ssa_value)
        printer.print_string(")")
        if self.scratch is not None:
            printer.print_string(" scratch ")
            printer.print_ssa_value(self.scratch)


@irdl_op_definition
class SliceOp(IRDLOperation):
    """The subbuffer at fixed first subscripts: the same memory from there on, with the remaining dims."""

    name = "loop.slice"
    source = operand_def(MemRefType)
    subscripts_attr = prop_def(DimsAttr, prop_name="subscripts")
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, subscripts: Iterable[ExprLike], result_type: Attribute | None = None):
        at = DimsAttr(subscripts)
        kept = dims_of(source.type)[len(at.data) :]
        super().__init__(
            operands=[source],
            properties={"subscripts": at},
            result_types=[result_type or memref_of(element_of(source.type), kept)],
        )

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """The subscripts of the first dims."""
        return self.subscripts_attr.data

    @property
    def offset(self) -> Expr:
        """The number of elements before the slice."""
        dims = dims_of(self.source.type)
        return sum((at * product(dims[k + 1 :]) for k, at in enumerate(self.subscripts)), Expr.of(0))

    def verify_(self) -> None:
        dims, count = dims_of(self.source.type), len(self.subscripts)
        if count > len(dims):
            raise VerifyException(f"loop.slice has {count} subscripts for {self.source.type}")
        if element_of(self.source.type) != element_of(self.result.type) or dims_of(self.result.type) != dims[count:]:
            raise VerifyException(f"a slice of {self.source.type} at {count} subscripts is not a {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        source = parse_value(parser)
        subscripts = parse_exprs(parser)
        parser.parse_characters(":")
        parser.parse_type()
        parser.parse_keyword("to")
        return cls(source, subscripts, parser.parse_type())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f"[{', '.join(map(str, self.subscripts))}] : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class ClockOp(IRDLOperation):
    """The time stamp counter, for profiles: monotonic on one machine, in ticks of unspecified length."""

    name = "loop.clock"
    result = result_def(i64)
    assembly_format = "`:` type($result) attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i64])
