"""`loop.tile_product`: a tile of a contraction, on the scheduled level of the `loop` dialect.

    stmt  ::= loop.tile_product %c[subs] (+)?= %a[subs] * %b[subs] over names tile [n, m] (fetch [subs])?
              (kernel "name")?
    names ::= r = expr, p = expr, l = n, k = expr (, s = expr)?

It is a micro-kernel: the sum over `k` of products, for a few rows `r`, panels `p` of columns and lanes `l` of a panel.
An optional fifth name `s` is a second reduction, outside `k`, with the sums still in registers: the rows of a window,
each with contiguous terms. The names are local to the op. `tile` is the maximum number of rows and panels; edges may
have fewer. The sums are f32, f64 or i32; narrower operands are stored in groups of steps of `k`, with subscripts such
as `k floordiv 2` (`igniter.backends.cpu.tile_kernels`). `fetch` is the place in `b` to prefetch; it may lie outside
`b`. `kernel` names a micro-kernel (`instructions.py`) other than the default for the elements: it folds its own
function of an element of `a` and one of `b` over `k`, and `+=` folds in the value of `c` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, MemRefType, StringAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import number_attr
from igniter.dialects.loop.bodies import parse_value
from igniter.dialects.loop.instructions import MicroKernel, element_name, micro_kernel, micro_kernel_reason
from igniter.dialects.loop.panels import kind_of
from igniter.dialects.loop.structured import symbols_attr
from igniter.dialects.sym import DimsAttr, dims_of, element_of, parse_expr_here, parse_exprs
from igniter.dialects.sym.expr import Expr, ExprLike, symbols_of


@irdl_op_definition
class TileProductOp(IRDLOperation):
    """A tile of a contraction: rows of `a` times panels of columns of `b`, summed over the depth into `c`."""

    name = "loop.tile_product"
    c = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    names_attr = prop_def(ArrayAttr[StringAttr], prop_name="names")
    extents_attr = prop_def(DimsAttr, prop_name="extents")
    c_at = prop_def(DimsAttr)
    a_at = prop_def(DimsAttr)
    b_at = prop_def(DimsAttr)
    tile_attr = prop_def(ArrayAttr[IntegerAttr[I64]], prop_name="tile")
    next_at = opt_prop_def(DimsAttr)
    """The subscripts in `b` of the panels to prefetch."""
    add_attr = opt_prop_def(UnitAttr, prop_name="add")
    kernel_attr = opt_prop_def(StringAttr, prop_name="kernel")

    def __init__(
        self,
        operands: Sequence[SSAValue],
        subscripts: Sequence[Iterable[ExprLike]],
        names: Sequence[str],
        extents: Sequence[ExprLike],
        tile: tuple[int, int],
        *,
        add: bool = False,
        fetch: Iterable[ExprLike] | None = None,
        kernel: str = "",
    ):
        c_at, a_at, b_at = (DimsAttr(s) for s in subscripts)
        super().__init__(
            operands=list(operands),
            properties={
                "names": symbols_attr(names),
                "extents": DimsAttr(extents),
                "c_at": c_at,
                "a_at": a_at,
                "b_at": b_at,
                "tile": ArrayAttr([number_attr(n) for n in tile]),
                "add": UnitAttr() if add else None,
                "next_at": None if fetch is None else DimsAttr(fetch),
                "kernel": StringAttr(kernel) if kernel else None,
            },
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the row, the panel, the lane and the step of depth in subscripts, and of the
        round if present."""
        return tuple(n.data for n in self.names_attr)

    @property
    def round(self) -> str | None:
        """The name of the outer reduction in subscripts; None if absent."""
        return self.names[4] if len(self.names) > 4 else None

    @property
    def extents(self) -> dict[str, Expr]:
        """The extents, by name."""
        return dict(zip(self.names, self.extents_attr.data, strict=True))

    @property
    def tile(self) -> tuple[int, int]:
        """The maximum number of rows and panels."""
        rows, panels = (n.value.data for n in self.tile_attr)
        return rows, panels

    @property
    def adds(self) -> bool:
        """True if the products are added to the value of `c`; otherwise they replace it."""
        return self.add_attr is not None

    @property
    def kernel(self) -> MicroKernel | None:
        """The named micro-kernel, or the default for the elements; None if the elements have no default."""
        if self.kernel_attr is not None:
            return micro_kernel(self.kernel_attr.data)
        kind = kind_of(*(element_of(v.type) for v in (self.a, self.b, self.c)))
        return None if kind is None else micro_kernel(kind)

    @property
    def accesses(self) -> tuple[tuple[SSAValue, str, tuple[Expr, ...]], ...]:
        """The buffers, each with the name of the property of its subscripts and the subscripts; the written buffer is
        first."""
        return ((self.c, "c_at", self.c_at.data), (self.a, "a_at", self.a_at.data), (self.b, "b_at", self.b_at.data))

    def verify_(self) -> None:
        count = len(self.names)
        if count not in (4, 5) or len(set(self.names)) != count or len(self.extents_attr.data) != count:
            raise VerifyException(
                "a tile needs four different axes (row, panel, lane, depth), or five with another reduction "
                "axis, and an extent for each"
            )
        rows, panels, lanes = self.extents_attr.data[:3]
        if lanes.constant is None:
            raise VerifyException(f"the lanes of a panel must be a constant, not {lanes}")
        for what, extent, most in (("rows", rows, self.tile[0]), ("panels", panels, self.tile[1])):
            if extent.constant is not None and extent.constant > most:
                raise VerifyException(f"{extent} {what} exceed the {most} of the tile")
        self._verify_kernel()
        row, panel, lane, *sums = self.names
        allowed = ((row, panel, lane), (row, *sums), (panel, lane, *sums))
        for (buffer, key, subscripts), names in zip(self.accesses, allowed, strict=True):
            if len(subscripts) != len(dims_of(buffer.type)):
                raise VerifyException(f"{len(subscripts)} subscripts of {buffer.type}")
            wrong = (symbols_of(subscripts) & set(self.names)) - set(names)
            if wrong:
                raise VerifyException(
                    f"the subscripts of {key[0]} name {sorted(wrong)[0]}, which is not one of its axes"
                )
        if self.next_at is not None and len(self.next_at.data) != len(dims_of(self.b.type)):
            raise VerifyException(f"{len(self.next_at.data)} subscripts of {self.b.type}")

    def _verify_kernel(self) -> None:
        if self.kernel_attr is None:
            return
        reason = micro_kernel_reason(self.kernel_attr.data)
        if reason is not None:
            raise VerifyException(reason)
        kernel = micro_kernel(self.kernel_attr.data)
        elements = [element_of(v.type) for v in (self.a, self.b, self.c)]
        if not kernel.takes(*elements):
            wanted, found = kernel.element_names, [element_name(e) for e in elements]
            raise VerifyException(
                f"micro-kernel '{self.kernel_attr.data}' takes elements of {wanted[0]} and {wanted[1]} and folds "
                f"{wanted[2]}, not {', '.join(found)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> TileProductOp:
        c = parse_value(parser)
        c_at = parse_exprs(parser)
        add = parser.parse_optional_punctuation("+") is not None
        parser.parse_characters("=")
        a = parse_value(parser)
        a_at = parse_exprs(parser)
        parser.parse_characters("*")
        b = parse_value(parser)
        b_at = parse_exprs(parser)
        parser.parse_keyword("over")
        names: list[str] = []
        extents: list[Expr] = []
        for k in range(5):
            if k == 4 and parser.parse_optional_punctuation(",") is None:
                break
            if 0 < k < 4:
                parser.parse_characters(",")
            names.append(parser.parse_identifier("name"))
            parser.parse_characters("=")
            extents.append(parse_expr_here(parser))
        parser.parse_keyword("tile")
        parser.parse_characters("[")
        rows = parser.parse_integer()
        parser.parse_characters(",")
        panels = parser.parse_integer()
        parser.parse_characters("]")
        fetch = parse_exprs(parser) if parser.parse_optional_keyword("fetch") is not None else None
        kernel = parser.parse_str_literal() if parser.parse_optional_keyword("kernel") is not None else ""
        return cls([c, a, b], [c_at, a_at, b_at], names, extents, (rows, panels), add=add, fetch=fetch, kernel=kernel)

    def print(self, printer: Printer) -> None:
        def access(buffer: SSAValue, subscripts: Iterable[Expr]) -> None:
            printer.print_ssa_value(buffer)
            printer.print_string(f"[{', '.join(map(str, subscripts))}]")

        printer.print_string(" ")
        access(self.c, self.c_at.data)
        printer.print_string(" += " if self.adds else " = ")
        access(self.a, self.a_at.data)
        printer.print_string(" * ")
        access(self.b, self.b_at.data)
        over = ", ".join(f"{n} = {e}" for n, e in self.extents.items())
        printer.print_string(f" over {over} tile [{self.tile[0]}, {self.tile[1]}]")
        if self.next_at is not None:
            printer.print_string(f" fetch [{', '.join(map(str, self.next_at.data))}]")
        if self.kernel_attr is not None:
            printer.print_string(" kernel ")
            printer.print_string_literal(self.kernel_attr.data)
