"""`typical [n = 128, m = 1]`: the typical sizes of a kernel's symbols, if known.

The sizes do not change the meaning of a kernel; it is correct for all sizes. Schedule authors use them as estimates
(`igniter.analysis.typical_sizes`). They are part of the kernel's text, so also of its cache key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.sym import parse_expr_here
from igniter.dialects.sym.expr import Expr

Sizes = tuple[tuple[str, int], ...]


@irdl_attr_definition
class SizesAttr(Data[Sizes]):
    """The sizes of symbols: `#loop.sizes<[n = 128, m = 1]>`."""

    name = "loop.sizes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sizes:
        parser.parse_characters("<")
        found = _parse(parser)
        parser.parse_characters(">")
        return found

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self}>")

    def renamed(self, names: Mapping[str, Expr]) -> SizesAttr:
        """Returns the sizes with the symbols renamed."""
        return SizesAttr(tuple((str(names[n].symbol) if n in names else n, size) for n, size in self.data))

    def __str__(self) -> str:
        return f"[{', '.join(f'{Expr.of(name)} = {size}' for name, size in self.data)}]"


def sizes_attr(sizes: Mapping[str, int]) -> SizesAttr | None:
    """Returns the property for sizes; `None` if `sizes` is empty."""
    return SizesAttr(tuple(sizes.items())) if sizes else None


def parse_typical(parser: AttrParser) -> SizesAttr | None:
    """Parses `(typical [symbol = size, ...])?`."""
    return SizesAttr(_parse(parser)) if parser.parse_optional_keyword("typical") is not None else None


def print_typical(attr: SizesAttr | None, printer: Printer) -> None:
    """Prints the inverse of `parse_typical`."""
    if attr is not None:
        printer.print_string(f" typical {attr}")


def verify_typical(attr: SizesAttr | None, symbols: Iterable[str]) -> None:
    """Checks the sizes; raises `VerifyException` if one is not of `symbols`, not unique, or not positive."""
    if attr is None:
        return
    known = list(symbols)
    names = [name for name, _ in attr.data]
    for name, size in attr.data:
        if name not in known:
            raise VerifyException(
                f"typical: '{name}' is not a symbol of the kernel; known: {', '.join(known) or 'none'}"
            )
        if names.count(name) > 1:
            raise VerifyException(f"typical: '{name}' is given twice")
        if size < 1:
            raise VerifyException(f"typical: the size of '{name}' is {size}; it must be positive")


def _parse(parser: AttrParser) -> Sizes:
    def size() -> tuple[str, int]:
        place = parser.pos
        symbol = parse_expr_here(parser).symbol
        if symbol is None:
            parser.raise_error("a typical size needs the name of a symbol, as in n = 128", place)
        parser.parse_characters("=")
        return symbol, parser.parse_integer()

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, size))
