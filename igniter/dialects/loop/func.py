"""Scheduled kernels: `loop.func`, the statements allowed in one, and its free names."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import INDIRECT_PREFIX, number_attr
from igniter.dialects.loop.bodies import (
    DotBytesOp,
    IndexOp,
)
from igniter.dialects.loop.calls import CallOp, ClockOp, SliceOp
from igniter.dialects.loop.launch import LaunchOp
from igniter.dialects.loop.memory import (
    AccumulateOp,
    LoadOp,
    MemoryOp,
    PrefetchOp,
    ReduceLanesOp,
    StoreOp,
    TransposeOp,
)
from igniter.dialects.loop.scheduled import AllocOp, ForOp, IfOp
from igniter.dialects.loop.sharing import IfSharedOp
from igniter.dialects.loop.structured import ViewOp, symbols_attr
from igniter.dialects.loop.team import Team, TeamAttr, parse_team, print_team
from igniter.dialects.loop.tiles import TileProductOp
from igniter.dialects.loop.typical import SizesAttr, parse_typical, print_typical, verify_typical
from igniter.dialects.sym import (
    CheckAttr,
    DimsAttr,
    RequirementAttr,
    checks_attr,
    checks_of,
    dims_of,
    element_of,
    parse_checks,
    parse_expr_here,
    parse_exprs,
    parse_requirements,
    print_checks,
    print_requirements,
    requirements_attr,
    requirements_of,
    space_of,
    verify_checks,
    verify_requirements,
)
from igniter.dialects.sym.expr import ONE, Expr, ExprLike, symbols_of
from igniter.dialects.sym.requirements import DataCheck, Requirement
from igniter.dialects.walking import Walked

_STATEMENTS = (
    AllocOp,
    ForOp,
    IfOp,
    LoadOp,
    StoreOp,
    AccumulateOp,
    PrefetchOp,
    TileProductOp,
    ReduceLanesOp,
    TransposeOp,
    DotBytesOp,
    IndexOp,
    ViewOp,
)
STATEMENTS = (*_STATEMENTS, CallOp, ClockOp, IfSharedOp, LaunchOp, SliceOp)


def verify_block(block: Block, names: frozenset[str], axes: set[str]) -> None:
    """Checks that a block holds only statements, with `names` in scope; adds the names of loops to `axes`; they must
    differ."""
    for op in block.ops:
        if op.name.partition(".")[0] not in ("arith", "math", "vector") and not isinstance(op, STATEMENTS):
            raise VerifyException(f"'{op.name}' cannot be in a loop.func")
        unknown = _used_names(op) - names
        if unknown:
            raise VerifyException(
                f"'{op.name}' names {sorted(unknown)}, which is neither an enclosing loop nor a symbol"
            )
        if isinstance(op, ForOp):
            if op.axis in axes or op.axis in names:
                raise VerifyException(f"two loops or symbols are named '{op.axis}'")
            axes.add(op.axis)
            verify_block(op.block, names | {op.axis}, axes)
        elif isinstance(op, (IfOp, IfSharedOp)):
            for region in op.regions:
                verify_block(region.block, names, axes)


def free_names(root: Operation) -> frozenset[str]:
    """Returns the free symbols of the statements below `root`: all names except axes and indirect operands."""
    used: set[str] = set()
    axes: set[str] = set()
    for op in root.walk():
        used |= _used_names(op)
        if isinstance(op, ForOp):
            axes.add(op.axis)
        for result in op.results:
            kind: Attribute = result.type
            if kind.name == MemRefType.name:
                used |= symbols_of(dims_of(kind))
    return frozenset(used - axes)


def _used_names(op: Operation) -> frozenset[str]:
    """Returns the axes and symbols in the expressions of an op, without its own indirect operands."""
    if isinstance(op, MemoryOp):
        lane = set[str]() if op.lane is None else {op.lane}
        return symbols_of((*op.subscripts, *op.guards)) - _indirect(op) - lane
    if isinstance(op, PrefetchOp):
        return symbols_of(op.subscripts)
    if isinstance(op, TileProductOp):
        subscripts = (s for _, _, at in op.accesses for s in at)
        fetched = op.next_at.data if op.next_at is not None else ()
        return (symbols_of(subscripts) - set(op.names)) | symbols_of((*fetched, *op.extents_attr.data))
    if isinstance(op, IndexOp):
        return op.value.symbols - {op.lane}
    if isinstance(op, ForOp):
        grain = op.grain or ONE
        return ((op.first.symbols | op.end.symbols) - _indirect(op)) | grain.symbols
    if isinstance(op, IfOp):
        return symbols_of(op.guards) - _indirect(op)
    if isinstance(op, CallOp):
        return symbols_of(op.symbols)
    if isinstance(op, LaunchOp):
        return symbols_of((op.grid, *op.symbols, *op.sizes_attr.data))
    if isinstance(op, SliceOp):
        return symbols_of(op.subscripts)
    if isinstance(op, AllocOp):
        return symbols_of(dims_of(op.result.type))
    return frozenset()


def _indirect(op: MemoryOp | ForOp | IfOp) -> set[str]:
    return {f"{INDIRECT_PREFIX}{k}" for k in range(len(op.indices))}


@irdl_op_definition
class FuncOp(Walked):
    """A scheduled kernel. It writes the last `outputs` buffers and only reads the others."""

    name = "loop.func"
    sym_name = prop_def(StringAttr)
    symbols = prop_def(ArrayAttr[StringAttr])
    outputs_attr = prop_def(IntegerAttr[I64], prop_name="outputs")
    scratch_attr = opt_prop_def(DimsAttr, prop_name="scratch_bytes")
    requires_attr = opt_prop_def(ArrayAttr[RequirementAttr], prop_name="requires")
    checks_attr = opt_prop_def(ArrayAttr[CheckAttr], prop_name="checks")
    typical = opt_prop_def(SizesAttr)
    team_attr = opt_prop_def(TeamAttr, prop_name="team")
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        sym_name: str,
        symbols: Iterable[str],
        outputs: int,
        body: Region,
        scratch_bytes: ExprLike | None = None,
        attributes: dict[str, Attribute] | None = None,
        requires: Iterable[Requirement] = (),
        checks: Iterable[DataCheck] = (),
        typical: SizesAttr | None = None,
        team: TeamAttr | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "symbols": symbols_attr(symbols),
                "outputs": number_attr(outputs),
                "scratch_bytes": None if scratch_bytes is None else DimsAttr([scratch_bytes]),
                "requires": requirements_attr(requires),
                "checks": checks_attr(checks),
                "typical": typical,
                "team": team,
            },
            regions=[body],
            attributes=attributes or {},
        )

    @property
    def symbol_names(self) -> tuple[str, ...]:
        return tuple(s.data for s in self.symbols)

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def output_count(self) -> int:
        return self.outputs_attr.value.data

    @property
    def requires(self) -> tuple[Requirement, ...]:
        """The facts about symbols checked by the caller."""
        return requirements_of(self.requires_attr)

    @property
    def checks(self) -> tuple[DataCheck, ...]:
        """The data checks, reported by the last outputs."""
        return checks_of(self.checks_attr)

    @property
    def scratch_bytes(self) -> Expr | None:
        """The size of the arena in bytes; None before it is planned."""
        return None if self.scratch_attr is None else self.scratch_attr.data[0]

    @scratch_bytes.setter
    def scratch_bytes(self, size: ExprLike) -> None:
        self.scratch_attr = DimsAttr([size])

    @property
    def team(self) -> Team | None:
        """The thread team, shared by all kernels of a program; None if each step enters the pool separately."""
        return None if self.team_attr is None else self.team_attr.data

    @team.setter
    def team(self, team: Team | None) -> None:
        self.team_attr = None if team is None else TeamAttr(team)

    def verify_(self) -> None:
        for arg in self.block.args:
            kind: Attribute = arg.type
            if kind.name != MemRefType.name or space_of(kind):
                raise VerifyException(
                    f"the arguments of a loop.func must be memrefs in the caller's memory, not {arg.type}"
                )
        if self.output_count > len(self.block.args):
            raise VerifyException(f"{self.output_count} outputs, but {len(self.block.args)} buffers")
        verify_requirements(self.requires_attr, self.symbol_names)
        verify_typical(self.typical, self.symbol_names)
        outputs = self.block.args[len(self.block.args) - self.output_count :]
        results = [(element_of(o.type), dims_of(o.type)) for o in outputs]
        verify_checks(self.checks_attr, self.symbol_names, results)
        axes: set[str] = set()
        verify_block(self.block, frozenset(self.symbol_names), axes)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("symbols")
        symbols = [str(e.symbol) for e in parse_exprs(parser)]
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("outputs")
        outputs = parser.parse_integer()
        scratch = None
        if parser.parse_optional_keyword("scratch") is not None:
            parser.parse_characters("(")
            scratch = parse_expr_here(parser)
            parser.parse_characters(")")
        requires, checks, typical = parse_requirements(parser), parse_checks(parser), parse_typical(parser)
        team = parse_team(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(args)
        given = dict(attributes.data) if attributes else None
        return cls(name, symbols, outputs, body, scratch, given, requires, checks, typical, team)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" symbols [{', '.join(str(Expr.of(s)) for s in self.symbol_names)}] (")
        printer.print_list(self.block.args, printer.print_block_argument)
        printer.print_string(f") outputs {self.output_count}")
        if self.scratch_bytes is not None:
            printer.print_string(f" scratch({self.scratch_bytes})")
        print_requirements(self.requires_attr, printer)
        print_checks(self.checks_attr, printer)
        print_typical(self.typical, printer)
        print_team(self.team_attr, printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
