"""The `ort` dialect: the contents of an ONNX Runtime custom-op library, one descriptor for each fused op.

    library ::= ort.library @name { op* }
    op      ::= ort.op @name kernel @symbol symbols [sym, ...] (scratch(expr))? (requires [requirement, ...])?
                (checks [check, ...])? ins [port, ...] outs [port, ...]
    port    ::= "name" : type [dim, ...] mode? (reuses i)?
    mode    ::= optional(sym) | variadic(sym, least) | made(@symbol, [integer, ...], bytes, bytes)

    ort.library @encoder {
      ort.op @bias_gelu kernel @kernel_0 symbols [batch, seq] scratch(batch*256)
          ins ["x" : f32 [batch, seq, 768], "bias" : f32 [768]]
          outs ["y" : f32 [batch, seq, 768] reuses 0]
    }

`symbols` are the i64 arguments of the kernel function, in order. Their values come from the dims of the inputs
(`igniter.dialects.sym.bind_symbols`), from an `optional` port, whose symbol is 1 if the value is present and 0
otherwise, or from a `variadic` port, whose symbol is the number of values. Only the last input and the last output can
be variadic; every value has the port's element type and dims. The kernel gets one buffer for every value, inputs first;
the buffer of an absent value is null.

`requires`: facts about the symbols, checked by a call before it computes any size from them. A failing fact raises an
error that names the ONNX node (`igniter.dialects.sym.requirements`).

`checks`: data checks (`DataCheck`). Each is a number in one more buffer of the kernel, after the outputs. A call tests
them after the run and raises an error if one fails.

    values  ::= ort.values @name count n "text"

is the op that makes a carrier (docs/explanation/values.md): it has no kernel, takes i64[n + 1], and gives bool[0, v1,
.., vn], whose dims are the last n elements. `text` is the error message for a negative element.

`made(@k, [4, 64], 73728, 0)`: the input is a constant of the model, and the kernel gets in its place 73,728 bytes that
kernel @k computes from it, once, when a session is created, with the values 4 and 64 of its own symbols and 0 bytes of
scratch memory (`fusion.make`).

`reuses i`: the kernel allows the output to alias input `i`, so ORT may place it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute, Block, Data, Dialect, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import number_attr
from igniter.dialects.onnx.types import STRING, element_type
from igniter.dialects.sym import (
    CheckAttr,
    DimsAttr,
    RequirementAttr,
    checks_attr,
    checks_of,
    parse_checks,
    parse_expr_here,
    parse_exprs,
    parse_requirements,
    print_checks,
    print_requirements,
    requirements_attr,
    requirements_of,
)
from igniter.dialects.sym.bind_symbols import Binding, bind_symbols
from igniter.dialects.sym.expr import ZERO, Expr, ExprLike
from igniter.dialects.sym.requirements import DataCheck, Requirement

STAMPS = "igniter.stamps."
"""The prefix of the extra outputs of a model compiled for a profile: the time stamps of a program, whose name follows.
Comparisons skip them."""


_OP_NAME = re.compile(r"(?=.*_)[A-Za-z_][A-Za-z0-9_]*")
_KERNEL_NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")

REQUIRED, OPTIONAL, VARIADIC = "required", "optional", "variadic"


@dataclass(frozen=True)
class Made:
    """The kernel that computes an input from a constant: see the module's docstring."""

    kernel: str
    symbols: tuple[int, ...]
    bytes: int
    """The size of the result."""
    scratch: int = 0

    def __str__(self) -> str:
        return f"made(@{self.kernel}, [{', '.join(map(str, self.symbols))}], {self.bytes}, {self.scratch})"


@dataclass(frozen=True)
class Port:
    """One formal input or output of an op; the module's docstring defines the fields.

    `symbol` names the presence of an optional port or the count of a variadic one; `least` is the minimum number of
    values of a variadic port; `reuses` is the input whose memory an output may take.
    """

    name: str
    element: Attribute
    dims: tuple[Expr, ...]
    mode: str = REQUIRED
    symbol: str = ""
    least: int = 1
    reuses: int | None = None
    made: Made | None = None

    @property
    def bytes(self) -> int:
        """The size of a static port's value."""
        return prod(d.constant or 0 for d in self.dims) * element_type(self.element).bits // 8

    @property
    def always(self) -> bool:
        """True if the port has a value in every call."""
        return self.mode == REQUIRED or (self.mode == VARIADIC and self.least > 0)

    @property
    def static(self) -> bool:
        """True if every dim is an integer."""
        return all(d.constant is not None for d in self.dims)

    @property
    def shape_text(self) -> str:
        return f"[{', '.join(map(str, self.dims))}]"

    def __str__(self) -> str:
        tail = ""
        if self.mode == OPTIONAL:
            tail = f" optional({Expr.of(self.symbol)})"
        elif self.mode == VARIADIC:
            tail = f" variadic({Expr.of(self.symbol)}, {self.least})"
        if self.made is not None:
            tail += f" {self.made}"
        if self.reuses is not None:
            tail += f" reuses {self.reuses}"
        return f"{self.element} {self.shape_text}{tail}"


def port(
    name: str,
    element: Attribute,
    dims: Iterable[ExprLike],
    *,
    mode: str = REQUIRED,
    symbol: str = "",
    least: int = 1,
    reuses: int | None = None,
) -> Port:
    """Returns a `Port` with dims given as integers, symbol names or expressions."""
    return Port(name, element, tuple(Expr.of(d) for d in dims), mode, symbol, least, reuses)


@irdl_attr_definition
class PortAttr(Data[Port]):
    """`#ort.port<"x" : f32 [batch, 128] optional(has_x)>`"""

    name = "ort.port"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Port:
        with parser.in_angle_brackets():
            return _parse_port(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_port(self, printer)


def _parse_port(parser: AttrParser) -> Port:
    name = parser.parse_str_literal()
    parser.parse_characters(":")
    element = parser.parse_type()
    dims = parse_exprs(parser)
    mode, symbol, least, reuses, made = REQUIRED, "", 1, None, None
    if parser.parse_optional_keyword(OPTIONAL) is not None:
        mode = OPTIONAL
        with parser.in_parens():
            symbol = _parse_symbol(parser)
    elif parser.parse_optional_keyword(VARIADIC) is not None:
        mode = VARIADIC
        with parser.in_parens():
            symbol = _parse_symbol(parser)
            parser.parse_characters(",")
            least = parser.parse_integer()
    elif parser.parse_optional_keyword("made") is not None:
        made = _parse_made(parser)
    if parser.parse_optional_keyword("reuses") is not None:
        reuses = parser.parse_integer()
    return Port(name, element, dims, mode, symbol, least, reuses, made)


def _parse_made(parser: AttrParser) -> Made:
    with parser.in_parens():
        kernel = parser.parse_symbol_name().data
        parser.parse_punctuation(",")
        symbols = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(",")
        size = parser.parse_integer()
        parser.parse_punctuation(",")
        return Made(kernel, tuple(symbols), size, parser.parse_integer())


def _parse_symbol(parser: AttrParser) -> str:
    position = parser.pos
    symbol = parse_expr_here(parser).symbol
    if symbol is None:
        parser.raise_error("expected the name of a symbol", position)
    return symbol


def _print_port(attr: PortAttr, printer: Printer) -> None:
    printer.print_string_literal(attr.data.name)
    printer.print_string(f" : {attr.data}")


@irdl_op_definition
class OpOp(IRDLOperation):
    """One custom op: its schema, its kernel function, and the sources of the kernel's symbols and scratch size."""

    name = "ort.op"
    sym_name = prop_def(StringAttr)
    kernel = prop_def(SymbolRefAttr)
    symbols = prop_def(ArrayAttr[StringAttr])
    scratch_attr = opt_prop_def(DimsAttr, prop_name="scratch")
    requires_attr = opt_prop_def(ArrayAttr[RequirementAttr], prop_name="requires")
    checks_attr = opt_prop_def(ArrayAttr[CheckAttr], prop_name="checks")
    inputs_attr = prop_def(ArrayAttr[PortAttr], prop_name="inputs")
    outputs_attr = prop_def(ArrayAttr[PortAttr], prop_name="outputs")
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        sym_name: str,
        kernel: str,
        symbols: Iterable[str],
        inputs: Iterable[Port],
        outputs: Iterable[Port],
        scratch: ExprLike | None = None,
        requires: Iterable[Requirement] = (),
        checks: Iterable[DataCheck] = (),
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "kernel": SymbolRefAttr(kernel),
                "symbols": ArrayAttr(StringAttr(s) for s in symbols),
                "scratch": None if scratch is None else DimsAttr([scratch]),
                "requires": requirements_attr(requires),
                "checks": checks_attr(checks),
                "inputs": ArrayAttr(PortAttr(p) for p in inputs),
                "outputs": ArrayAttr(PortAttr(p) for p in outputs),
            }
        )

    @property
    def kernel_name(self) -> str:
        return self.kernel.root_reference.data

    @property
    def symbol_names(self) -> tuple[str, ...]:
        return tuple(s.data for s in self.symbols)

    @property
    def inputs(self) -> tuple[Port, ...]:
        return tuple(p.data for p in self.inputs_attr)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(p.data for p in self.outputs_attr)

    @property
    def scratch(self) -> Expr:
        """The size of the kernel's scratch memory, in bytes."""
        return ZERO if self.scratch_attr is None else self.scratch_attr.data[0]

    @property
    def requires(self) -> tuple[Requirement, ...]:
        """The requirements on the symbols that a call checks, in this order."""
        return requirements_of(self.requires_attr)

    @property
    def checks(self) -> tuple[DataCheck, ...]:
        """The data checks, reported after the run by the last buffers of the kernel, which are not outputs."""
        return checks_of(self.checks_attr)

    @property
    def binding(self) -> Binding:
        """The binding of the symbols to the dims of the inputs."""
        known = [p.symbol for p in self.inputs if p.symbol]
        return bind_symbols([(p.dims, p.always) for p in self.inputs], known)

    def verify_(self) -> None:
        # Some graph optimisations of ORT recognise ONNX ops by name alone, and crash on a custom op of the same name.
        if _OP_NAME.fullmatch(self.sym_name.data) is None:
            raise VerifyException(
                f"'{self.sym_name.data}' must be an identifier with an underscore (so that it cannot be the name "
                "of an ONNX op)"
            )
        if _KERNEL_NAME.fullmatch(self.kernel_name) is None:
            raise VerifyException(f"'{self.kernel_name}' is not the name of a function in an object file")
        for what, ports in (("input", self.inputs), ("output", self.outputs)):
            for i, p in enumerate(ports):
                _verify_port(f"{what} {i} ('{p.name}')", p, i == len(ports) - 1)
        if not self.outputs:
            raise VerifyException("an op must have at least one output")
        self._verify_symbols()
        for i, p in enumerate(self.outputs):
            self._verify_reuse(i, p)

    def _verify_symbols(self) -> None:
        if len(set(self.symbol_names)) != len(self.symbols):
            raise VerifyException("a symbol of the kernel is listed twice")
        own = [p.symbol for p in (*self.inputs, *self.outputs) if p.symbol]
        dims = frozenset(s for p in self.inputs for d in p.dims for s in d.symbols)
        twice = sorted({s for s in own if own.count(s) > 1} | (dims & set(own)))
        if twice:
            raise VerifyException(f"symbol '{twice[0]}' counts a port, so it cannot be used for anything else")
        binding = self.binding
        for i, axis in binding.unsolved:
            p = self.inputs[i]
            raise VerifyException(
                f"input {i} ('{p.name}'): dim {axis}, {p.dims[axis]}, has symbols that are not a dim of any input"
            )
        outside = frozenset(p.symbol for p in self.outputs if p.symbol)
        wanted = [("a symbol of the kernel", s, binding.bound | outside) for s in self.symbol_names]
        wanted += [("the scratch size", s, binding.bound) for s in sorted(self.scratch.symbols)]
        wanted += [(f"the check '{c.text}'", s, binding.bound) for c in self.checks for s in sorted(c.symbols)]
        wanted += [(f"the requirement {r}", s, binding.bound) for r in self.requires for s in sorted(r.symbols)]
        for i, p in enumerate(self.outputs):
            names = sorted(frozenset(s for d in p.dims for s in d.symbols))
            wanted += [(f"output {i} ('{p.name}')", s, binding.bound) for s in names]
        for user, symbol, known in wanted:
            if symbol not in known:
                raise VerifyException(f"{user} needs '{symbol}', which is not a dim of any input")

    def _verify_reuse(self, i: int, p: Port) -> None:
        if p.reuses is None:
            return
        if p.mode != REQUIRED or not 0 <= p.reuses < len(self.inputs) or self.inputs[p.reuses].mode != REQUIRED:
            raise VerifyException(f"output {i} ('{p.name}') reuses {p.reuses}, which is not a required input")
        if self.inputs[p.reuses].element != p.element:
            raise VerifyException(f"output {i} ('{p.name}') reuses an input of a different element type")

    @classmethod
    def parse(cls, parser: Parser) -> OpOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("kernel")
        kernel = parser.parse_symbol_name().data
        parser.parse_keyword("symbols")
        symbols = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_symbol(parser))
        scratch = None
        if parser.parse_optional_keyword("scratch") is not None:
            with parser.in_parens():
                scratch = parse_expr_here(parser)
        requires, checks = parse_requirements(parser), parse_checks(parser)
        parser.parse_keyword("ins")
        inputs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_port(parser))
        parser.parse_keyword("outs")
        outputs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_port(parser))
        op = cls(name, kernel, symbols, inputs, outputs, scratch, requires, checks)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        if attributes is not None:
            op.attributes = dict(attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" kernel ")
        printer.print_symbol_name(self.kernel_name)
        printer.print_string(f" symbols [{', '.join(str(Expr.of(s)) for s in self.symbol_names)}]")
        if self.scratch_attr is not None:
            printer.print_string(f" scratch({self.scratch})")
        print_requirements(self.requires_attr, printer)
        print_checks(self.checks_attr, printer)
        with printer.indented():
            for keyword, ports in (("ins", self.inputs_attr), ("outs", self.outputs_attr)):
                printer._print_new_line()
                printer.print_string(f"{keyword} [")
                printer.print_list(ports, lambda p: _print_port(p, printer))
                printer.print_string("]")
        printer.print_op_attributes(self.attributes, print_keyword=True)


def _verify_port(what: str, p: Port, last: bool) -> None:
    if p.mode not in (REQUIRED, OPTIONAL, VARIADIC):
        raise VerifyException(f"{what} is '{p.mode}'; it must be required, optional or variadic")
    if p.mode == VARIADIC and not last:
        raise VerifyException(f"{what} is variadic, so it must be the last")
    if p.mode == VARIADIC and p.least < 0:
        raise VerifyException(f"{what} has the negative minimum {p.least}")
    if (p.mode == REQUIRED) == bool(p.symbol):
        raise VerifyException(f"{what} is {p.mode} and {'has' if p.symbol else 'has no'} symbol")
    if any(d.constant is not None and d.constant < 0 for d in p.dims):
        raise VerifyException(f"{what} has a negative dim in {p.shape_text}")
    try:
        element_type(p.element)
    except ValueError as error:
        raise VerifyException(f"{what}: {error}") from None
    if p.made is not None and not (what.startswith("input") and p.mode == REQUIRED and p.static):
        raise VerifyException(f"{what} is made by @{p.made.kernel}, so it must be a required input with constant dims")
    if p.element == STRING:
        raise VerifyException(f"{what} is a tensor of strings, which kernels do not support")


@irdl_op_definition
class ValuesOp(IRDLOperation):
    """An op that makes a tensor without bytes whose dims are the elements of its input."""

    name = "ort.values"
    sym_name = prop_def(StringAttr)
    count_attr = prop_def(IntegerAttr[I64], prop_name="count")
    text_attr = prop_def(StringAttr, prop_name="text")
    traits = traits_def(SymbolOpInterface())

    def __init__(self, sym_name: str, count: int, text: str):
        properties = {"sym_name": StringAttr(sym_name), "count": number_attr(count), "text": StringAttr(text)}
        super().__init__(properties=properties)

    @property
    def count(self) -> int:
        """The number of values."""
        return self.count_attr.value.data

    @property
    def text(self) -> str:
        """The error message for a negative value, with the node that needs it."""
        return self.text_attr.data

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (port("values", i64, [self.count + 1]),)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return (port("carrier", i1, [0, *(f"v{k}" for k in range(self.count))]),)

    def verify_(self) -> None:
        if _OP_NAME.fullmatch(self.sym_name.data) is None:
            raise VerifyException(
                f"'{self.sym_name.data}' must be an identifier with an underscore (so that it cannot be the name "
                "of an ONNX op)"
            )
        if self.count < 1:
            raise VerifyException("ort.values has no values")

    @classmethod
    def parse(cls, parser: Parser) -> ValuesOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("count")
        count = parser.parse_integer()
        return cls(name, count, parser.parse_str_literal())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" count {self.count} ")
        printer.print_string_literal(self.text)


@irdl_op_definition
class LibraryOp(IRDLOperation):
    """One shared library and the custom ops in it."""

    name = "ort.library"
    sym_name = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), SymbolTable(), NoTerminator())

    def __init__(self, sym_name: str, ops: Sequence[Operation] | Region):
        region = ops if isinstance(ops, Region) else Region(Block(ops))
        super().__init__(properties={"sym_name": StringAttr(sym_name)}, regions=[region])

    @property
    def ops(self) -> tuple[OpOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, OpOp))

    @property
    def values(self) -> tuple[ValuesOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, ValuesOp))

    def verify_(self) -> None:
        for op in self.body.block.ops:
            if not isinstance(op, (OpOp, ValuesOp)):
                raise VerifyException(f"an ort.library can only hold ort.op and ort.values, not {op.name}")

    @classmethod
    def parse(cls, parser: Parser) -> LibraryOp:
        name = parser.parse_symbol_name().data
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls(name, region)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


Ort = Dialect("ort", [LibraryOp, OpOp, ValuesOp], [PortAttr])
