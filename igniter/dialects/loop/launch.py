"""`loop.launch`: a launch of a device kernel over a grid of programs.

    stmt ::= loop.launch @kernel grid [expr] warps n stages n symbols [expr, ...] (%buffer, ...)
             (maps [[expr, ...], ...])?

The kernel is a func of the backend's dialect in the same module (`tt.func`). Its arguments are the addresses of the
buffers, then the values of the symbols. With `maps`, as many of the last buffers are not addresses but descriptors,
behind the symbols: each has the sizes of its tensor, whose elements lie row after row without gaps. Programs are
numbered along one axis and run in any order or concurrently; an empty grid does nothing. A launch begins after the
previous launches are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from xdsl.dialects.builtin import I64, ArrayAttr, FlatSymbolRefAttrConstr, IntegerAttr, MemRefType, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import number_attr
from igniter.dialects.loop.bodies import parse_value
from igniter.dialects.sym import DimsAttr, parse_exprs
from igniter.dialects.sym.expr import Expr, ExprLike


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """A launch of a kernel on buffers."""

    name = "loop.launch"
    kernel_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="kernel")
    grid_attr = prop_def(DimsAttr, prop_name="grid")
    symbols_attr = prop_def(DimsAttr, prop_name="symbols")
    warps_attr = prop_def(IntegerAttr[I64], prop_name="warps")
    stages_attr = prop_def(IntegerAttr[I64], prop_name="stages")
    sizes_attr = prop_def(DimsAttr, prop_name="sizes")
    """The sizes of all tensors with descriptors, one after the other."""
    ranks_attr = prop_def(ArrayAttr[IntegerAttr[I64]], prop_name="ranks")
    """The numbers of their dims."""
    buffers = var_operand_def(MemRefType)

    def __init__(
        self,
        kernel: str,
        grid: ExprLike,
        buffers: Sequence[SSAValue],
        symbols: Iterable[ExprLike],
        warps: int = 4,
        stages: int = 1,
        maps: Sequence[Sequence[ExprLike]] = (),
    ):
        super().__init__(
            operands=[list(buffers)],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "grid": DimsAttr([grid]),
                "symbols": DimsAttr(symbols),
                "warps": number_attr(warps),
                "stages": number_attr(stages),
                "sizes": DimsAttr(size for sizes in maps for size in sizes),
                "ranks": ArrayAttr(number_attr(len(sizes)) for sizes in maps),
            },
        )

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        return self.kernel_attr.root_reference.data

    @kernel.setter
    def kernel(self, name: str) -> None:
        self.kernel_attr = SymbolRefAttr(name)

    @property
    def grid(self) -> Expr:
        """The number of programs."""
        return self.grid_attr.data[0]

    @property
    def symbols(self) -> tuple[Expr, ...]:
        """The values of the kernel's symbols, in the kernel's order."""
        return self.symbols_attr.data

    @property
    def warps(self) -> int:
        """The warps (of 32 threads) of a program."""
        return self.warps_attr.value.data

    @property
    def stages(self) -> int:
        """The number of loop iterations in flight (pipeline stages)."""
        return self.stages_attr.value.data

    @property
    def maps(self) -> tuple[tuple[Expr, ...], ...]:
        """The sizes of the tensors with descriptors."""
        sizes = iter(self.sizes_attr.data)
        return tuple(tuple(islice(sizes, rank.value.data)) for rank in self.ranks_attr.data)

    @property
    def addressed(self) -> Sequence[SSAValue]:
        """The buffers whose addresses are arguments."""
        return self.buffers[: len(self.buffers) - len(self.maps)]

    @property
    def mapped(self) -> Sequence[SSAValue]:
        """The buffers of the descriptors."""
        return self.buffers[len(self.buffers) - len(self.maps) :]

    def verify_(self) -> None:
        if len(self.grid_attr.data) != 1:
            raise VerifyException(f"loop.launch @{self.kernel}: a grid must be one number of programs")
        if self.warps < 1 or self.warps & (self.warps - 1) or self.stages < 1:
            raise VerifyException(f"loop.launch @{self.kernel}: warps must be a power of two, and stages at least 1")
        if len(self.maps) > len(self.buffers) or [len(m) for m in self.maps] != [
            r.value.data for r in self.ranks_attr.data
        ]:
            raise VerifyException(f"loop.launch @{self.kernel}: maps are the sizes of the last buffers, one list each")

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name().data
        parser.parse_keyword("grid")
        place = parser.pos
        grid = parse_exprs(parser)
        if len(grid) != 1:
            parser.raise_error("a grid must be one number of programs", place)
        parser.parse_keyword("warps")
        warps = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_keyword("stages")
        stages = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_keyword("symbols")
        symbols = parse_exprs(parser)
        buffers = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_value(parser))
        maps: Sequence[Sequence[Expr]] = ()
        if parser.parse_optional_keyword("maps") is not None:
            maps = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_exprs(parser))
        return cls(kernel, grid[0], buffers, symbols, warps, stages, maps)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.kernel)
        printer.print_string(f" grid [{self.grid}] warps {self.warps} stages {self.stages}")
        printer.print_string(f" symbols [{', '.join(map(str, self.symbols))}] (")
        printer.print_list(self.buffers, printer.print_ssa_value)
        printer.print_string(")")
        if self.maps:
            sizes = (", ".join(map(str, each)) for each in self.maps)
            printer.print_string(f" maps [{', '.join(f'[{each}]' for each in sizes)}]")
