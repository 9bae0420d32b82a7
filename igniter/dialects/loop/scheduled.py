"""The scheduled level of the `loop` dialect: the implementation of kernels, over memrefs, in program order.

    func ::= loop.func @name symbols [sym, ...] (%buffer : memref, ...) outputs n (scratch(expr))?
             (requires [requirement, ...])? (checks [check, ...])? (typical [sym = size, ...])?
             (team(runs n, looks n))? { stmt* }                               see `typical` and `team`
    stmt ::= %b = loop.alloc "name" (store (at n)? (in memory)?)? : memref<.., "space">
                                                                     space: scratch | local | register
           | loop.for axis = first to end (step n)? (reduction | sequential)? (with ..)? (while %b)?
               (threads(grain))? (schedule [word*])? { stmt* }
           | loop.if [guard, ...] (with ..)? { stmt* }
           | %v = loop.load %b[subs] (lane name)? (with ..)? (if [guards] (else %v)?)? : scalar or vector
           | loop.store %v, %b[subs] (lane name)? (with ..)? (if [guards])?
           | loop.accumulate combiner %v, %b[subs] (lane name)? (with ..)? (if [guards])?
           | loop.tile_product ...                                           see `tiles`
           | %s = loop.reduce_lanes combiner (unsigned)? %v : vector to scalar
           | %v... = loop.transpose %v... : vector                           as many vectors as lanes, a square
           | %v = loop.dot_bytes (%v, %v,)+ %v (most 15)? : i32 | vector          products of four bytes, added
           | %v = loop.index expr (lane name)? : i64 | vector
           | %b = loop.view %b : memref to memref
           | ops of arith, math and vector (vector.broadcast) on scalars and vectors
           | loop.call, loop.slice and loop.clock, of which programs are made: see `calls.py`

Axes and symbols are names in expressions, as on the structured level; all loops in a func have distinct names. The
values of a loop body are local to it: data that crosses iterations or loops passes through a buffer. An accumulator is
a buffer too. In space `register` every access must have constant subscripts once loops are unrolled; the emitter
rejects other accesses, so such a buffer always becomes machine registers.

The bounds of a loop and the guards of an `if` may name values, as subscripts may: `_0` is the first one after `with`,
an i64. Iterations of a `sequential` loop run in order, and no pass may change the order. With `while %b`, where `%b`
holds one integer, the loop ends before the first iteration that finds 0 in it.

A vector access names a `lane` variable, local to the access (not an axis): lane `l` of the vector is the access with
`l` in place of that name, in subscripts and guards alike: `%x[i, j + v] lane v if [n - 1 - j - v]`. A disabled lane of
a load has the value after `else` (zero if absent); a store or an accumulation skips it. Without `lane` an access is
scalar. Likewise, `loop.index j + v lane v` is the vector of the values.

`threads(grain)`: the iterations run on the thread pool, `grain` of them per task. The memory spaces are: "" the
caller's buffers; `scratch` one arena per call, shared by all tasks (with an `offset` in bytes once planned); `local`
private to the enclosing task, or to the call outside a task; `register` machine registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.attrs import as_integer, number_attr
from igniter.dialects.loop.bodies import (
    parse_value,
)
from igniter.dialects.loop.memory import (
    parse_indices,
    print_indices,
    verify_indices,
)
from igniter.dialects.loop.storage import Storage, StorageAttr, parse_storage
from igniter.dialects.loop.words import (
    NO_WORDS,
    LoopWords,
    LoopWordsAttr,
    parse_loop_words,
    word_reasons,
)
from igniter.dialects.sym import (
    DimsAttr,
    dims_of,
    element_of,
    memref_of,
    parse_expr_here,
    parse_exprs,
    space_of,
)
from igniter.dialects.sym.expr import Expr, ExprLike
from igniter.dialects.walking import Walked

SPACES = frozenset(("scratch", "local", "register"))


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer owned by the kernel. `offset` is its place in the arena, in bytes, once planned. `store` is the
    place given by a schedule, until passes have carried it out."""

    name = "loop.alloc"
    label = prop_def(StringAttr)
    offset_attr = opt_prop_def(DimsAttr, prop_name="offset")
    storage_attr = opt_prop_def(StorageAttr, prop_name="store")
    result = result_def(MemRefType)

    def __init__(
        self,
        label: str,
        result_type: Attribute,
        offset: ExprLike | None = None,
        storage: Storage | None = None,
    ):
        super().__init__(
            properties={
                "label": StringAttr(label),
                "offset": None if offset is None else DimsAttr([offset]),
                "store": None if storage is None else StorageAttr(storage),
            },
            result_types=[result_type],
        )

    def like(self, dims: Sequence[ExprLike], space: str | None = None) -> AllocOp:
        """Returns a buffer to replace this one, with other dims and optionally in another space; the name and the
        storage stay the same."""
        made = AllocOp(
            self.label.data,
            memref_of(element_of(self.result.type), dims, space or self.space),
            storage=self.storage,
        )
        made.result.name_hint = self.result.name_hint
        return made

    @property
    def offset(self) -> Expr | None:
        return None if self.offset_attr is None else self.offset_attr.data[0]

    @property
    def space(self) -> str:
        return space_of(self.result.type)

    @property
    def storage(self) -> Storage | None:
        """The place that passes have not carried out yet."""
        return None if self.storage_attr is None else self.storage_attr.data

    def verify_(self) -> None:
        if self.space not in SPACES:
            raise VerifyException(f"unknown memory space '{self.space}'; known: {', '.join(sorted(SPACES))}")
        if self.space == "register" and any(d.constant is None for d in dims_of(self.result.type)):
            raise VerifyException("a register buffer must have constant dims")

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        label = parser.parse_str_literal()
        offset = storage = None
        if parser.parse_optional_keyword("offset") is not None:
            offset = parse_expr_here(parser)
        if parser.parse_optional_keyword("store") is not None:
            storage = parse_storage(parser, f"buffer '{label}'")
        parser.parse_characters(":")
        return cls(label, parser.parse_type(), offset, storage)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.offset is not None:
            printer.print_string(f" offset {self.offset}")
        if self.storage is not None:
            printer.print_string(f" store {self.storage}")
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class ForOp(Walked):
    """A loop over one axis: `first`, `first + step`, ... below `end`.

    `reduction` marks an axis whose iterations accumulate into the same elements; `sequential` marks one whose
    iterations run in order; iterations of other loops are independent. `_0` in a bound is the first of the values after
    `with`. `while` names an element that is tested before every iteration: the loop ends where it is 0. `threads` runs
    iterations on the thread pool. `schedule` has the words that later passes consume (`words.py`).
    """

    name = "loop.for"
    axis_attr = prop_def(StringAttr, prop_name="axis")
    bounds = prop_def(DimsAttr)
    step_attr = prop_def(IntegerAttr[I64], prop_name="step")
    reduction = opt_prop_def(UnitAttr)
    sequential = opt_prop_def(UnitAttr)
    indices = var_operand_def()
    going = opt_operand_def(MemRefType)
    grain_attr = opt_prop_def(DimsAttr, prop_name="grain")
    words_attr = opt_prop_def(LoopWordsAttr, prop_name="schedule")
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        axis: str,
        first: ExprLike,
        end: ExprLike,
        body: Region | Block,
        *,
        step: int = 1,
        reduction: bool = False,
        sequential: bool = False,
        indices: Sequence[SSAValue] = (),
        going: SSAValue | None = None,
        grain: ExprLike | None = None,
        words: LoopWords = NO_WORDS,
    ):
        super().__init__(
            operands=[list(indices), going],
            properties={
                "axis": StringAttr(axis),
                "bounds": DimsAttr([first, end]),
                "step": number_attr(step),
                "reduction": UnitAttr() if reduction else None,
                "sequential": UnitAttr() if sequential else None,
                "grain": None if grain is None else DimsAttr([grain]),
                "schedule": LoopWordsAttr(words) if words != NO_WORDS else None,
            },
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @property
    def axis(self) -> str:
        return self.axis_attr.data

    @property
    def first(self) -> Expr:
        return self.bounds.data[0]

    @property
    def end(self) -> Expr:
        return self.bounds.data[1]

    @property
    def step(self) -> int:
        return self.step_attr.value.data

    @property
    def is_reduction(self) -> bool:
        return self.reduction is not None

    @property
    def is_sequential(self) -> bool:
        """True if the iterations run in order: no pass fuses, splits, reorders or parallelises them."""
        return self.sequential is not None

    @property
    def grain(self) -> Expr | None:
        """The iterations per task of the pool; None for a loop that one thread runs."""
        return None if self.grain_attr is None else self.grain_attr.data[0]

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def words(self) -> LoopWords:
        """The words that passes have not consumed yet."""
        return NO_WORDS if self.words_attr is None else self.words_attr.data

    @words.setter
    def words(self, words: LoopWords) -> None:
        self.words_attr = LoopWordsAttr(words) if words != NO_WORDS else None

    def verify_(self) -> None:
        if self.step < 1:
            raise VerifyException(f"loop '{self.axis}' has step {self.step}; it must be positive")
        if self.grain is not None and self.is_reduction:
            raise VerifyException(
                f"loop '{self.axis}' is a reduction; it cannot have 'threads' (split it with split_reduction first)"
            )
        if self.is_sequential and (self.grain is not None or self.is_reduction or self.words != NO_WORDS):
            raise VerifyException(
                f"loop '{self.axis}' is sequential: it cannot be a reduction or have threads or a schedule"
            )
        if self.grain is not None and self.indices:
            raise VerifyException(
                f"loop '{self.axis}': the bounds of a loop with threads must consist of axes and symbols"
            )
        if self.words_attr is not None:
            reasons = word_reasons(self.words, f"loop '{self.axis}'", reduction=self.is_reduction, blocks=None)
            reason = next(reasons, None)
            if reason is not None:
                raise VerifyException(f"the schedule of {reason}")
        verify_indices(self.indices)
        if self.going is not None:
            if not self.is_sequential:
                raise VerifyException(f"loop '{self.axis}' has a condition, so it must be sequential")
            if as_integer(element_of(self.going.type)) is None or dims_of(self.going.type):
                raise VerifyException(f"the condition of loop '{self.axis}' must be one integer, not {self.going.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        axis = parser.parse_identifier("axis")
        parser.parse_characters("=")
        first = parse_expr_here(parser)
        parser.parse_keyword("to")
        end = parse_expr_here(parser)
        step = parser.parse_integer() if parser.parse_optional_keyword("step") is not None else 1
        reduction = parser.parse_optional_keyword("reduction") is not None
        sequential = not reduction and parser.parse_optional_keyword("sequential") is not None
        indices = parse_indices(parser)
        going = parse_value(parser) if parser.parse_optional_keyword("while") is not None else None
        grain = None
        if parser.parse_optional_keyword("threads") is not None:
            parser.parse_characters("(")
            grain = parse_expr_here(parser)
            parser.parse_characters(")")
        words = NO_WORDS
        if parser.parse_optional_keyword("schedule") is not None:
            words = parse_loop_words(parser, axis)
        body = parser.parse_region()
        return cls(
            axis,
            first,
            end,
            body,
            step=step,
            reduction=reduction,
            sequential=sequential,
            indices=indices,
            going=going,
            grain=grain,
            words=words,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis} = {self.first} to {self.end}")
        if self.step != 1:
            printer.print_string(f" step {self.step}")
        if self.is_reduction:
            printer.print_string(" reduction")
        if self.is_sequential:
            printer.print_string(" sequential")
        print_indices(printer, self.indices)
        if self.going is not None:
            printer.print_string(" while ")
            printer.print_ssa_value(self.going)
        if self.grain is not None:
            printer.print_string(f" threads({self.grain})")
        if self.words != NO_WORDS:
            printer.print_string(f" schedule [{self.words}]")
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class IfOp(IRDLOperation):
    """A conditional: the body runs if every guard is >= 0. `_0` in a guard is the first of the values after `with`, an
    i64."""

    name = "loop.if"
    guards_attr = prop_def(DimsAttr, prop_name="guards")
    indices = var_operand_def()
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, guards: Iterable[ExprLike], body: Region | Block, indices: Sequence[SSAValue] = ()):
        super().__init__(
            operands=[list(indices)],
            properties={"guards": DimsAttr(guards)},
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @property
    def guards(self) -> tuple[Expr, ...]:
        return self.guards_attr.data

    @property
    def block(self) -> Block:
        return self.body.block

    def verify_(self) -> None:
        verify_indices(self.indices)

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        guards, indices = parse_exprs(parser), parse_indices(parser)
        return cls(guards, parser.parse_region(), indices)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" [{', '.join(map(str, self.guards))}]")
        print_indices(printer, self.indices)
        printer.print_string(" ")
        printer.print_region(self.body)
