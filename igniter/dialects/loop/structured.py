"""The structured level of the `loop` dialect: computations over tensors, without an order.

    kernel ::= loop.kernel @name symbols [sym, ...] (%arg : tensor, ...) -> (tensor, ...) (requires [requirement, ...])?
               (checks [check, ...])? (typical [sym = size, ...])? { op* loop.return }
               (variants { loop.kernel* })?                                  see `variants.py`
    op     ::= %r... = loop.nest "name" [axis: parallel|reduction extent, ...] -> tensors { body loop.yield }
             | %r... = loop.procedure ...                                 see `procedure.py`
             | %r = loop.view %t : tensor to tensor                       reshape; no data moves
    body   ::= %v = loop.read %t[subscript, ...] (with %i, ...)? (if [guard, ...] (else %v)?)? : scalar
             | %v = loop.index expr : i64                                 the value of an expression over axes
             | ops of arith and math on scalars
    yield  ::= loop.yield (combiner %v at [subscript, ...]), ...          one clause a result of the nest

A nest runs its body once for every point of its iteration domain. Axes and symbols are *names* in expressions
(`igniter.dialects.sym.expr`), not SSA values: renaming, tiling or fixing an axis is a substitution in expressions. A
subscript may also name an indirect operand of its own access: `_0` is the first value after `with`, an i64.

A guarded access happens if every guard is >= 0; otherwise the read has the value after `else` (zero if absent). Clause
`none %v at [...]` writes each element at most once, and its subscripts use parallel axes only. Any other combiner folds
all values written to an element, from the combiner's identity, in any order. Every element of a result is written: by
`none`, or with the identity if no point reaches it.

A kernel may rely on its requirements (`igniter.dialects.sym.requirements`), because the op around it checks them first.
The last results may be data checks; the op tests them after the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoMemoryEffect, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import (
    INDIRECT_PREFIX,
    AxesAttr,
    Axis,
    parse_axes,
    render_axes,
    scalar_type,
)
from igniter.dialects.loop.bodies import (
    DotBytesOp,
    IndexOp,
    ReadOp,
    YieldOp,
)
from igniter.dialects.loop.combiners import refusal
from igniter.dialects.loop.schedule import ScheduleAttr, parse_schedule, schedule_reason
from igniter.dialects.loop.typical import SizesAttr, parse_typical, print_typical, verify_typical
from igniter.dialects.loop.variants import parse_when, print_when, verify_variants
from igniter.dialects.sym import (
    CheckAttr,
    DimsAttr,
    RequirementAttr,
    checks_attr,
    checks_of,
    dims_of,
    element_of,
    parse_checks,
    parse_exprs,
    parse_requirements,
    print_checks,
    print_requirements,
    requirements_attr,
    requirements_of,
    verify_checks,
    verify_requirements,
)
from igniter.dialects.sym.expr import Expr, symbols_of
from igniter.dialects.sym.reindexing import is_injective
from igniter.dialects.sym.requirements import DataCheck, Requirement
from igniter.dialects.walking import Walked


def symbols_attr(names: Iterable[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(n) for n in names])


@irdl_op_definition
class KernelOp(Walked):
    """A DAG of nests over tensors: the body of one fusion region."""

    name = "loop.kernel"
    sym_name = prop_def(StringAttr)
    symbols = prop_def(ArrayAttr[StringAttr])
    declared_types = prop_def(ArrayAttr[Attribute], prop_name="declared_types")
    requires_attr = opt_prop_def(ArrayAttr[RequirementAttr], prop_name="requires")
    checks_attr = opt_prop_def(ArrayAttr[CheckAttr], prop_name="checks")
    typical = opt_prop_def(SizesAttr)
    when = opt_prop_def(DimsAttr)
    """The condition of a variant."""
    body = region_def("single_block")
    others = opt_region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        sym_name: str,
        symbols: Iterable[str],
        result_types: Sequence[Attribute],
        body: Region,
        attributes: dict[str, Attribute] | None = None,
        requires: Iterable[Requirement] = (),
        checks: Iterable[DataCheck] = (),
        typical: SizesAttr | None = None,
        when: DimsAttr | None = None,
        variants: Sequence[KernelOp] = (),
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "symbols": symbols_attr(symbols),
                "declared_types": ArrayAttr(result_types),
                "requires": requirements_attr(requires),
                "checks": checks_attr(checks),
                "typical": typical,
                "when": when,
            },
            regions=[body, [Region(Block(variants))] if variants else []],
            attributes=attributes or {},
        )

    @property
    def symbol_names(self) -> tuple[str, ...]:
        return tuple(s.data for s in self.symbols)

    @property
    def requires(self) -> tuple[Requirement, ...]:
        """The requirements on the symbols; `node` is the index of a node in the region, constants not counted."""
        return requirements_of(self.requires_attr)

    @property
    def checks(self) -> tuple[DataCheck, ...]:
        """The data checks, reported by the last results; those are no results of the region."""
        return checks_of(self.checks_attr)

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        return tuple(self.block.ops.last.operands) if self.block.ops.last else ()

    @property
    def variants(self) -> list[KernelOp]:
        """The variants of the kernel, in the order in which their conditions are tested."""
        return [] if self.others is None else [op for op in self.others.block.ops if isinstance(op, KernelOp)]

    def set_variants(self, variants: Sequence[KernelOp]) -> None:
        """Replaces the variants of the kernel."""
        for variant in variants:
            if variant.parent is not None:
                variant.detach()
        if self.others is not None:
            self.detach_region(self.others)
        if variants:
            self.add_region(Region(Block(variants)))

    @property
    def nests(self) -> list[NestOp]:
        return [op for op in self.block.ops if isinstance(op, NestOp)]

    @property
    def computations(self) -> list[ComputeOp]:
        """The nests and the procedures."""
        return [op for op in self.block.ops if isinstance(op, ComputeOp)]

    def verify_(self) -> None:
        terminator = self.block.ops.last
        if not isinstance(terminator, ReturnOp):
            raise VerifyException("a loop.kernel must end with loop.return")
        if tuple(v.type for v in terminator.operands) != tuple(self.declared_types):
            raise VerifyException("the types of loop.return do not match the result types of the kernel")
        verify_requirements(self.requires_attr, self.symbol_names)
        verify_typical(self.typical, self.symbol_names)
        results = [(element_of(t), dims_of(t)) for t in self.declared_types]
        verify_checks(self.checks_attr, self.symbol_names, results)
        verify_variants(self)
        names: set[str] = set()
        for op in self.block.ops:
            if not isinstance(op, (ComputeOp, ViewOp, ReturnOp)):
                raise VerifyException(f"a loop.kernel can only hold nests, procedures and views, not '{op.name}'")
            if isinstance(op, ComputeOp):
                if op.label in names:
                    raise VerifyException(f"two nests are named '{op.label}'")
                names.add(op.label)
                op.verify_names(frozenset(self.symbol_names))
        for value in [*self.block.args, *(r for op in self.block.ops for r in op.results)]:
            kind: Attribute = value.type
            if kind.name != TensorType.name:
                raise VerifyException(f"the operands and results of a loop.kernel must be tensors, not {kind}")
            free = symbols_of(dims_of(kind)) - set(self.symbol_names)
            if free:
                raise VerifyException(f"{value.type} uses symbols that the kernel does not declare: {sorted(free)}")

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("symbols")
        symbols = [str(e.symbol) for e in parse_exprs(parser)]
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_characters("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        requires, checks, typical = parse_requirements(parser), parse_checks(parser), parse_typical(parser)
        when = parse_when(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(args)
        given = dict(attributes.data) if attributes else None
        variants: list[KernelOp] = []
        if parser.parse_optional_keyword("variants") is not None:
            place = parser.pos
            for op in list(parser.parse_region().block.ops):
                if not isinstance(op, KernelOp):
                    parser.raise_error(f"a variant must be a loop.kernel, not '{op.name}'", place)
                op.detach()
                variants.append(op)
        return cls(name, symbols, types, body, given, requires, checks, typical, when, variants)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" symbols [{', '.join(str(Expr.of(s)) for s in self.symbol_names)}] (")
        printer.print_list(self.block.args, printer.print_block_argument)
        printer.print_string(") -> (")
        printer.print_list(self.declared_types, printer.print_attribute)
        printer.print_string(")")
        print_requirements(self.requires_attr, printer)
        print_checks(self.checks_attr, printer)
        print_typical(self.typical, printer)
        print_when(self.when, printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        if self.others is not None:
            printer.print_string(" variants ")
            printer.print_region(self.others)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The results of a kernel."""

    name = "loop.return"
    values = var_operand_def()
    assembly_format = "($values^ `:` type($values))? attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The same elements in row-major order with other dims. On the scheduled level, the same memory."""

    name = "loop.view"
    source = operand_def()
    result = result_def()
    assembly_format = "$source `:` type($source) `to` type($result) attr-dict"
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, result_type: Attribute):
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        if element_of(self.source.type) != element_of(self.result.type):
            raise VerifyException("loop.view cannot change the element type")


class ComputeOp(IRDLOperation):
    """The base of nests and procedures, the ops of a kernel that compute tensors."""

    label_attr = prop_def(StringAttr, prop_name="label")
    axes_attr = prop_def(AxesAttr, prop_name="axes")
    schedule = opt_prop_def(ScheduleAttr)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    @property
    def label(self) -> str:
        """The name used by schedules and remarks; unique in the kernel."""
        return self.label_attr.data

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.axes_attr.data

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def loops_inside(self) -> Sequence[str] | None:
        """The axes of the loops in the body, also allowed in schedules; None for a nest."""
        return None

    def schedule_refusal(self, schedule: ScheduleAttr) -> str | None:
        """Returns the reason why a schedule is invalid for this op; None if it is valid."""
        axes: dict[str, str] = {a.name: a.kind for a in self.axes}
        return schedule_reason(schedule, axes, self.loops_inside)

    def verify_schedule(self) -> None:
        """Checks the schedule."""
        if self.schedule is None:
            return
        reason = self.schedule_refusal(self.schedule)
        if reason is not None:
            raise VerifyException(f"the schedule of nest '{self.label}': {reason}")

    def verify_names(self, symbols: frozenset[str]) -> None:
        """Checks the names in the expressions of the op: each is one of its axes or one of the kernel's `symbols`."""
        shadowed = symbols & {a.name for a in self.axes}
        if shadowed:
            raise VerifyException(f"nest '{self.label}': axes {sorted(shadowed)} shadow symbols of the kernel")
        for axis in self.axes:
            if not axis.extent.symbols <= symbols:
                raise VerifyException(f"nest '{self.label}': the extent of '{axis.name}' must consist of symbols")


@irdl_op_definition
class NestOp(ComputeOp):
    """A perfect loop nest over a rectangular iteration domain."""

    name = "loop.nest"
    traits = traits_def(NoMemoryEffect())

    def __init__(
        self,
        label: str,
        axes: Iterable[Axis],
        result_types: Sequence[Attribute],
        body: Region,
        schedule: ScheduleAttr | None = None,
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={"label": StringAttr(label), "axes": AxesAttr(axes), "schedule": schedule},
            result_types=[result_types],
            regions=[body],
            attributes=attributes or {},
        )

    def axis(self, name: str) -> Axis:
        """Returns the axis called `name`."""
        return next(a for a in self.axes if a.name == name)

    @property
    def yield_op(self) -> YieldOp:
        last = self.block.ops.last
        assert isinstance(last, YieldOp)
        return last

    @property
    def reads(self) -> list[ReadOp]:
        return [op for op in self.block.ops if isinstance(op, ReadOp)]

    def verify_(self) -> None:
        names = [a.name for a in self.axes]
        if len(set(names)) != len(names):
            raise VerifyException("the axes of a nest must have different names")
        last = self.block.ops.last
        if not isinstance(last, YieldOp):
            raise VerifyException("the body of a loop.nest must end with loop.yield")
        if self.block.args:
            raise VerifyException("the body of a loop.nest cannot have block arguments (its axes are names)")
        if len(last.values) != len(self.outputs):
            raise VerifyException(f"{len(self.outputs)} results, but {len(last.values)} yield clauses")
        parallel = {a.name for a in self.axes if a.kind == "parallel"}
        reduction = {a.name for a in self.axes if a.kind == "reduction"}
        for clause, result in zip(last.clauses, self.outputs, strict=True):
            if scalar_type(element_of(result.type)) != clause.value.type:
                raise VerifyException(f"cannot yield {clause.value.type} for elements of {result.type}")
            reason = refusal(clause.combiner, element_of(result.type))
            if reason is not None:
                raise VerifyException(reason)
            if len(clause.subscripts) != len(dims_of(result.type)):
                raise VerifyException(f"{len(clause.subscripts)} subscripts for {result.type}")
            used = symbols_of(clause.subscripts)
            if used & reduction:
                raise VerifyException(f"writes along the reduction axes {sorted(used & reduction)}")
            if clause.combiner == "none" and reduction:
                raise VerifyException(
                    "combiner 'none' in a nest with reduction axes: several iterations would write one element"
                )
            missing = {a.name for a in self.axes if a.kind == "parallel" and a.extent.constant != 1} - used
            if missing:
                raise VerifyException(
                    f"the subscripts of a result do not use the parallel axes {sorted(missing & parallel)}: their "
                    "iterations would write the same element"
                )
            if not is_injective(clause.subscripts, {a.name: a.extent for a in self.axes if a.name in parallel}):
                where = ", ".join(map(str, clause.subscripts))
                raise VerifyException(
                    f"two iterations of the parallel axes may write the same element at [{where}]: the "
                    "subscripts are not known to be injective"
                )
        self.verify_schedule()
        for op in self.block.ops:
            dialect = op.name.partition(".")[0]
            if not (dialect in ("arith", "math") or isinstance(op, (ReadOp, DotBytesOp, IndexOp, YieldOp))):
                raise VerifyException(f"'{op.name}' cannot be in the body of a loop.nest")

    def verify_names(self, symbols: frozenset[str]) -> None:
        super().verify_names(symbols)
        known = symbols | {a.name for a in self.axes}
        for op in self.block.ops:
            if isinstance(op, ReadOp):
                local = {f"{INDIRECT_PREFIX}{k}" for k in range(len(op.indices))}
                used = symbols_of((*op.subscripts, *op.guards))
            elif isinstance(op, IndexOp):
                local, used = set[str](), op.value.symbols
            elif isinstance(op, YieldOp):
                local, used = set[str](), symbols_of(e for c in op.clauses for e in c.subscripts)
            else:
                continue
            unknown = used - known - local
            if unknown:
                raise VerifyException(
                    f"nest '{self.label}': '{op.name}' names {sorted(unknown)}, which is neither an axis nor a symbol"
                )

    @classmethod
    def parse(cls, parser: Parser) -> NestOp:
        label = parser.parse_str_literal("nest label")
        axes = parse_axes(parser)
        schedule = parse_schedule(parser, label)
        parser.parse_characters("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        return cls(label, axes, types, body, schedule, dict(attributes.data) if attributes else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label)
        printer.print_string(f" [{render_axes(self.axes)}]")
        if self.schedule is not None:
            printer.print_string(f" schedule {self.schedule}")
        printer.print_string(" -> ")
        printer.print_list([r.type for r in self.outputs], printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
