"""The `sym` dialect: symbolic dims as an attribute, shared by every level.

    #sym.dims<batch, 128, batch*seq + 1>

The attribute is the encoding of a `tensor` type (`tensor<?x128xf32, #sym.dims<batch, 128>>`) and the layout of a
`memref` type, which means a dense row-major buffer. A tensor of constant dims needs no attribute. The grammar of
expressions is in `igniter.dialects.sym.expr`.

Kernels and custom ops also have requirements, facts about symbols, checked by a call before it computes any size from
them: `requires [16*n == 64*(16*n floordiv 64) "the input cannot be reshaped" node 2]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    MemRefLayoutAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Data, Dialect
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from igniter.dialects.sym.expr import Expr, ExprLike
from igniter.dialects.sym.expr_text import parse_expr
from igniter.dialects.sym.ranges import Ranges
from igniter.dialects.sym.requirements import DataCheck, Relation, Requirement

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
        """Returns the identity map: this attribute adds dims to a memref, not a layout."""
        return AffineMap.identity(len(self.data))

    def as_affine_map_attr(self) -> AffineMapAttr:
        return AffineMapAttr(self.get_affine_map())

    def substitute(self, values: dict[str, Expr]) -> DimsAttr:
        return DimsAttr(d.substitute(values) for d in self.data)

    def __len__(self) -> int:
        return len(self.data)


class ParserTokens:
    """An adapter from an xDSL parser to the token stream of `parse_expr`."""

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
    """Parses one expression at the parser's position."""
    position = parser.pos
    try:
        return parse_expr(ParserTokens(parser))
    except ValueError as error:
        parser.raise_error(str(error), position)


def parse_exprs(parser: AttrParser, opening: str = "[", closing: str = "]") -> tuple[Expr, ...]:
    """Parses a bracketed, comma-separated list of expressions."""
    parser.parse_characters(opening)
    exprs: list[Expr] = []
    if parser.parse_optional_characters(closing) is None:
        exprs.append(parse_expr_here(parser))
        while parser.parse_optional_characters(",") is not None:
            exprs.append(parse_expr_here(parser))
        parser.parse_characters(closing)
    return tuple(exprs)


@irdl_attr_definition
class RequirementAttr(Data[Requirement]):
    """A fact checked by a run before it is used: `#sym.requirement<n mod 4 == 0 "it does not divide" node 2>`."""

    name = "sym.requirement"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Requirement:
        with parser.in_angle_brackets():
            return _parse_requirement(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            # MLIR counts brackets in an attribute of another dialect, so that `<=` would open one.
            _print_requirement(self, printer, at_most="le")

    def substitute(self, values: Mapping[str, Expr]) -> RequirementAttr:
        return RequirementAttr(self.data.substitute(values))


def _parse_requirement(parser: AttrParser) -> Requirement:
    left = parse_expr_here(parser)
    relation = _parse_relation(parser)
    right = parse_expr_here(parser)
    text = parser.parse_str_literal()
    return Requirement(left, relation, right, text, _parse_node(parser))


def _parse_relation(parser: AttrParser) -> Relation:
    """Parses `==`, `<=`, or `le`, its form in an attribute."""
    if parser.parse_optional_keyword("le") is not None:
        return "<="
    relation: Relation = "<=" if parser.parse_optional_punctuation("<") is not None else "=="
    if relation == "==":
        parser.parse_punctuation("=")
    parser.parse_punctuation("=")
    return relation


def _print_requirement(attr: RequirementAttr, printer: Printer, at_most: str = "<=") -> None:
    relation = at_most if attr.data.relation == "<=" else attr.data.relation
    printer.print_string(f"{attr.data.left} {relation} {attr.data.right} ")
    printer.print_string_literal(attr.data.text)
    _print_node(attr.data.node, printer)


def _parse_node(parser: AttrParser) -> int | str | None:
    """Parses `(node number | node "name")?`."""
    if parser.parse_optional_keyword("node") is None:
        return None
    name = parser.parse_optional_str_literal()
    return parser.parse_integer() if name is None else name


def _print_node(node: int | str | None, printer: Printer) -> None:
    if isinstance(node, int):
        printer.print_string(f" node {node}")
    elif node is not None:
        printer.print_string(" node ")
        printer.print_string_literal(node)


@irdl_attr_definition
class CheckAttr(Data[DataCheck]):
    """A check on data, reported by a result of a kernel: `#sym.check<"an index is out of range" in [-n, n - 1] node
    2>`."""

    name = "sym.check"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DataCheck:
        with parser.in_angle_brackets():
            return _parse_check(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_check(self, printer)


def _parse_check(parser: AttrParser) -> DataCheck:
    text = parser.parse_str_literal()
    bounds: tuple[Expr, Expr] | None = None
    if parser.parse_optional_keyword("in") is not None:
        low, high = parse_exprs(parser)
        bounds = (low, high)
    return DataCheck(text, bounds, _parse_node(parser))


def _print_check(attr: CheckAttr, printer: Printer) -> None:
    check = attr.data
    printer.print_string_literal(check.text)
    if check.bounds is not None:
        printer.print_string(f" in [{check.bounds[0]}, {check.bounds[1]}]")
    _print_node(check.node, printer)


def checks_attr(checks: Iterable[DataCheck]) -> ArrayAttr[CheckAttr] | None:
    """Returns the property for the checks of a kernel; `None` if there are no checks."""
    found = [CheckAttr(c) for c in checks]
    return ArrayAttr(found) if found else None


def checks_of(attr: ArrayAttr[CheckAttr] | None) -> tuple[DataCheck, ...]:
    """Returns the checks in a property of `checks_attr`."""
    return () if attr is None else tuple(a.data for a in attr)


def parse_checks(parser: AttrParser) -> tuple[DataCheck, ...]:
    """Parses `(checks [check, ...])?`."""
    if parser.parse_optional_keyword("checks") is None:
        return ()
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_check(parser)))


def print_checks(attr: ArrayAttr[CheckAttr] | None, printer: Printer) -> None:
    """Prints the inverse of `parse_checks`, one check per line."""
    if attr is not None:
        _print_lines("checks", [lambda a=a: _print_check(a, printer) for a in attr], printer)


def verify_checks(
    attr: ArrayAttr[CheckAttr] | None, symbols: Iterable[str], results: Sequence[tuple[Attribute, Sequence[Expr]]]
) -> None:
    """Checks the last `results`, given as element types and dims: each check needs a single i64 number; raises
    `VerifyException` otherwise."""
    checks, known = checks_of(attr), frozenset(symbols)
    for check in checks:
        if free := sorted(check.symbols - known):
            raise VerifyException(f"the check '{check.text}' names '{free[0]}', which is not a symbol here")
    last = results[len(results) - len(checks) :] if checks else ()
    if len(last) < len(checks) or any(element != i64 or len(dims) for element, dims in last):
        raise VerifyException(f"the last {len(checks)} results are checks; each must be a single i64")


def requirements_attr(requirements: Iterable[Requirement]) -> ArrayAttr[RequirementAttr] | None:
    """Returns the property for requirements; `None` if there are no requirements."""
    found = [RequirementAttr(r) for r in requirements]
    return ArrayAttr(found) if found else None


def requirements_of(attr: ArrayAttr[RequirementAttr] | None) -> tuple[Requirement, ...]:
    """Returns the requirements in a property of `requirements_attr`."""
    return () if attr is None else tuple(a.data for a in attr)


def parse_requirements(parser: AttrParser) -> tuple[Requirement, ...]:
    """Parses `(requires [requirement, ...])?`."""
    if parser.parse_optional_keyword("requires") is None:
        return ()
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_requirement(parser)))


def print_requirements(attr: ArrayAttr[RequirementAttr] | None, printer: Printer) -> None:
    """Prints the inverse of `parse_requirements`, one requirement per line."""
    if attr is not None:
        _print_lines("requires", [lambda a=a: _print_requirement(a, printer) for a in attr], printer)


def _print_lines(keyword: str, items: Sequence[Callable[[], None]], printer: Printer) -> None:
    printer.print_string(f" {keyword} [")
    with printer.indented():
        for k, item in enumerate(items):
            printer.print_string("," if k else "")
            printer._print_new_line()
            item()
    printer.print_string("]")


def verify_requirements(attr: ArrayAttr[RequirementAttr] | None, symbols: Iterable[str]) -> None:
    """Checks the symbols in requirements against `symbols`; raises `VerifyException` for others."""
    known = frozenset(symbols)
    for requirement in requirements_of(attr):
        if free := sorted(requirement.symbols - known):
            raise VerifyException(f"the requirement {requirement} names '{free[0]}', which is not a symbol here")


def _static(dims: Sequence[Expr]) -> list[int]:
    return [DYNAMIC if d.constant is None else d.constant for d in dims]


def tensor_of(element: Attribute, dims: Iterable[ExprLike]) -> TensorType[Attribute]:
    """Returns a `tensor` type with symbolic dims; without an encoding if every dim is an integer."""
    return _tensor(element, tuple([Expr.of(d) for d in dims]))


@lru_cache(maxsize=1 << 14)
def _tensor(element: Attribute, dims: tuple[Expr, ...]) -> TensorType[Attribute]:
    """Returns the cached type. A model has few distinct types, and the verification of a new one dominates the cost of
    a value."""
    shape = _static(dims)
    return TensorType(element, shape, DimsAttr(dims) if DYNAMIC in shape else NoneAttr())


def memref_of(element: Attribute, dims: Iterable[ExprLike], space: str | None = None) -> MemRefType[Attribute]:
    """Returns a dense row-major `memref` type with symbolic dims, in the memory space called `space`."""
    exprs = tuple(Expr.of(d) for d in dims)
    shape = _static(exprs)
    layout = DimsAttr(exprs) if DYNAMIC in shape else NoneAttr()
    return MemRefType(element, shape, layout, NoneAttr() if space is None else StringAttr(space))


def dims_of(shaped: object) -> tuple[Expr, ...]:
    """Returns the dims of a ranked tensor or memref; raises `ValueError` if a dynamic dim has no expression."""
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
    """Returns the element type of a tensor or memref."""
    if isinstance(shaped, (TensorType, MemRefType)):
        return cast("TensorType[Attribute]", shaped).element_type
    raise ValueError(f"{shaped} has no element type")


def space_of(memref: Attribute) -> str:
    """Returns the memory space of a memref; "" for the caller's own buffers."""
    space = memref.memory_space if isinstance(memref, MemRefType) else None
    return space.data if isinstance(space, StringAttr) else ""


def axis_ranges(axes: Iterable[tuple[str, ExprLike]]) -> Ranges:
    """Returns the ranges of axes from 0 to their extents."""
    return Ranges({name: (Expr.of(0), Expr.of(extent)) for name, extent in axes})


Sym = Dialect("sym", [], [CheckAttr, DimsAttr, RequirementAttr])
