"""The `sym` dialect: symbolic dims as an attribute, shared by every level.

    #sym.dims<batch, 128, batch*seq + 1>

It is the encoding of a `tensor` type (`tensor<?x128xf32, #sym.dims<batch, 128>>`) and the layout of a `memref` type,
where it means a dense row-major buffer of those dims. A tensor whose dims are all integers needs none.
The grammar of an expression is that of `igniter.analysis.expr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    MemRefLayoutAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Data, Dialect
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from igniter.analysis.expr import Expr, ExprLike, Ranges, parse_expr

DYNAMIC = DYNAMIC_INDEX


@irdl_attr_definition
class DimsAttr(Data[tuple[Expr, ...]], MemRefLayoutAttr):
    """A list of symbolic integer expressions."""

    name = "sym.dims"

    def __init__(self, dims: Iterable[ExprLike]):
        super().__init__(tuple(Expr.of(d) for d in dims))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        return parse_exprs(parser, "<", ">")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(map(str, self.data))}>")

    def get_affine_map(self) -> AffineMap:
        """The identity: the dims, not the layout, are what this attribute adds to a memref."""
        return AffineMap.identity(len(self.data))

    def as_affine_map_attr(self) -> AffineMapAttr:
        return AffineMapAttr(self.get_affine_map())

    def substitute(self, values: dict[str, Expr]) -> DimsAttr:
        return DimsAttr(d.substitute(values) for d in self.data)

    def __len__(self) -> int:
        return len(self.data)


class ParserTokens:
    """Adapts an xDSL parser to the token stream that `parse_expr` reads."""

    def __init__(self, parser: AttrParser):
        self._parser = parser

    def peek(self) -> str:
        token = self._parser._current_token
        return "" if token.kind == MLIRTokenKind.EOF else token.text

    def next(self) -> str:
        text = self.peek()
        self._parser._consume_token()
        return text


def parse_expr_here(parser: AttrParser) -> Expr:
    """One expression at the parser's position."""
    position = parser.pos
    try:
        return parse_expr(ParserTokens(parser))
    except ValueError as error:
        parser.raise_error(str(error), position)


def parse_exprs(parser: AttrParser, opening: str = "[", closing: str = "]") -> tuple[Expr, ...]:
    """A bracketed, comma-separated list of expressions."""
    parser.parse_characters(opening)
    exprs: list[Expr] = []
    if parser.parse_optional_characters(closing) is None:
        exprs.append(parse_expr_here(parser))
        while parser.parse_optional_characters(",") is not None:
            exprs.append(parse_expr_here(parser))
        parser.parse_characters(closing)
    return tuple(exprs)


def _static(dims: Sequence[Expr]) -> list[int]:
    return [DYNAMIC if d.constant is None else d.constant for d in dims]


def tensor_of(element: Attribute, dims: Iterable[ExprLike]) -> TensorType[Attribute]:
    """`tensor` with symbolic dims; the encoding is left out when every dim is an integer."""
    exprs = tuple(Expr.of(d) for d in dims)
    shape = _static(exprs)
    return TensorType(element, shape, DimsAttr(exprs) if DYNAMIC in shape else NoneAttr())


def memref_of(element: Attribute, dims: Iterable[ExprLike], space: str | None = None) -> MemRefType[Attribute]:
    """`memref` with symbolic dims, dense row-major, in the memory space called `space`."""
    exprs = tuple(Expr.of(d) for d in dims)
    shape = _static(exprs)
    layout = DimsAttr(exprs) if DYNAMIC in shape else NoneAttr()
    return MemRefType(element, shape, layout, NoneAttr() if space is None else StringAttr(space))


def dims_of(shaped: object) -> tuple[Expr, ...]:
    """The dims of a ranked tensor or memref; `ValueError` where a dynamic dim has no expression."""
    if isinstance(shaped, TensorType):
        symbolic = shaped.encoding
        shape = shaped.get_shape()
    elif isinstance(shaped, MemRefType):
        symbolic = shaped.layout
        shape = shaped.get_shape()
    else:
        raise ValueError(f"{shaped} is neither a ranked tensor nor a memref")
    if isinstance(symbolic, DimsAttr):
        return symbolic.data
    if DYNAMIC in shape:
        raise ValueError(f"{shaped} has dynamic dims without #sym.dims; run infer-shapes first")
    return tuple(Expr.of(d) for d in shape)


def element_of(shaped: Attribute) -> Attribute:
    """The element type of a tensor or memref."""
    if isinstance(shaped, (TensorType, MemRefType)):
        return cast("TensorType[Attribute]", shaped).element_type
    raise ValueError(f"{shaped} has no element type")


def space_of(memref: Attribute) -> str:
    """The memory space of a memref; "" for the caller's own buffers."""
    space = memref.memory_space if isinstance(memref, MemRefType) else None
    return space.data if isinstance(space, StringAttr) else ""


def axis_ranges(axes: Iterable[tuple[str, ExprLike]]) -> Ranges:
    """The ranges of axes that run from 0 to their extents."""
    return Ranges({name: (Expr.of(0), Expr.of(extent)) for name, extent in axes})


Sym = Dialect("sym", [], [DimsAttr])
