"""Schedules: the loops of a nest, outermost first, and what happens to each.

    schedule ::= `[` step (`,` step)* `]`
    step     ::= loop | product | store | launch
    loop     ::= axis word*                                                            the words are in `words.py`
    product  ::= `product` `(` (rows `,`)? columns `,` depth `)` `tile` `[` rows `,` panels `]` (`by` "micro-kernel")?
    store    ::= `store` (`in` (`registers` | `stack` | `arena`))?
    launch   ::= `launch` `warps` count `stages` count [`tf32` | `tf32x3`] [`group` count]

    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] schedule [
      j by 48 threads fuse "g0", i by 8 fuse "g0", product(i, j, k) tile [8, 3], i, j vector 16 unroll] -> ...

A loop iterates over an axis, or over blocks of `size` iterations of it; inner loops over the same axis run inside a
block. An axis may have several loops: each block size is a multiple of the next inner one, and the last loop has no
`by`. The order is free. A parallel loop inside a reduction keeps its sums in a buffer, one buffer for each iteration of
the loops around the reduction; with `into result` it keeps them in the result itself. A `product` computes the
remaining iterations of its axes with a micro-kernel: the named one, or the one chosen for the element types
(`instructions.py`). The loops over its rows and columns after it copy the tile to the result. A `store` gives the
memory and the lifetime of the result: each iteration of the loops before it has its own buffer, in the named memory, as
large as the elements written by the iteration.

`schedule_reason` checks a schedule independently of the backend. A pass rejects legal schedules beyond its abilities
(dependent lanes, `unroll` without a constant extent); a backend rejects its missing directives (`words_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from igniter.dialects.loop.storage import MEMORIES, Memory, parse_memory
from igniter.dialects.loop.words import (
    LAUNCHES,
    TABLE,
    Row,
    Words,
    near,
    parse_words,
    said,
    word_reasons,
    words_in,
)


@dataclass(frozen=True)
class Loop(Words):
    """One loop of a nest, with its words."""

    axis: str

    def __str__(self) -> str:
        return " ".join((self.axis, *said(self)))


@dataclass(frozen=True)
class Product:
    """A micro-kernel in place of the loops over the remaining iterations of its axes; `rows` is empty for a product
    without rows."""

    rows: str
    columns: str
    depth: str
    tile: tuple[int, int]
    """The maximum number of rows and panels of a tile."""
    kernel: str = ""
    """The named micro-kernel; empty selects the one for the element types."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes, rows first."""
        return tuple(n for n in (self.rows, self.columns, self.depth) if n)

    def __str__(self) -> str:
        by = f' by "{self.kernel}"' if self.kernel else ""
        return f"product({', '.join(self.axes)}) tile [{self.tile[0]}, {self.tile[1]}]{by}"


@dataclass(frozen=True)
class Store:
    """The memory of the result: one buffer for each iteration of the loops before this step."""

    memory: Memory = ""
    """The memory of the buffer; empty lets the passes choose."""

    def __str__(self) -> str:
        return f"store in {self.memory}" if self.memory else "store"


@dataclass(frozen=True)
class Launch:
    """The launch parameters of programs."""

    warps: int
    """The warps (of 32 threads) of one program."""
    stages: int = 1
    """The number of loop iterations in flight (pipeline stages)."""
    products: str = ""
    """The precision of f32 products of blocks, one of `PRODUCTS`; empty means IEEE f32."""
    group: int = 1
    """The blocks of the grid's second last dim that consecutive programs cover for one block of its last dim."""
    descriptors: bool = False
    """True if the factors of products and the results are accessed by descriptors."""
    specialized: bool = False
    """True if other warps load the blocks of factors; it needs descriptors."""
    persistent: int = 0
    """The most programs, each of which computes blocks of the grid in sequence; 0: one program for each block."""

    def __str__(self) -> str:
        said = f"launch warps {self.warps} stages {self.stages}" + (f" {self.products}" if self.products else "")
        said += f" group {self.group}" if self.group > 1 else ""
        said += " descriptors" * self.descriptors + " specialized" * self.specialized
        return said + (f" persistent {self.persistent}" if self.persistent else "")


PRODUCTS = ("tf32", "tf32x3")
"""The tensor-core modes: factors rounded to 10 mantissa bits, or three such products, about as accurate as f32."""


Step: TypeAlias = "Loop | Product | Store | Launch"

STEPS: Mapping[str, Row] = {
    "product": Row(
        "step",
        ("lower-to-loops",),
        "a micro-kernel for the remaining iterations of its axes; the loops after it copy the tile to the result; "
        '`by "name"` selects a micro-kernel',
        "product(i, j, k) tile [8, 3]",
    ),
    "store": Row(
        "step",
        ("promote-buffers", "plan-buffers"),
        "the memory and the lifetime of the result",
        "store in stack",
        choices=MEMORIES,
    ),
    "launch": Row(
        "step",
        (LAUNCHES,),
        "on a GPU: the warps (32 threads) of a program, and the number of loop iterations in flight; an optional "
        "`tf32` or `tf32x3` is the precision of f32 products of blocks; with `group 8`, consecutive programs cover 8 "
        "blocks of the grid's second last dim before the next block of its last; with `descriptors`, since sm_90, the "
        "copy engine loads the factors of products and stores results of 16 bits, by tensor maps that the host makes; "
        "with `descriptors specialized`, since sm_100, warps of their own wait for these copies and start them; "
        "with `persistent 132`, at most 132 programs each compute several blocks of the grid, in the order of programs",
        "launch warps 4 stages 1",
    ),
}
"""The steps of a schedule that are no loops, by their first word."""

VOCABULARY: Mapping[str, Row] = {**TABLE, **STEPS}
"""Every word of a schedule."""


def vocabulary_of(passes: Set[str]) -> frozenset[str]:
    """Returns the words that a pipeline carries out: those of which it has a consumer."""
    return frozenset(name for name, row in VOCABULARY.items() if passes & set(row.consumers))


def words_of(step: Step) -> tuple[str, ...]:
    """Returns the words of a step, in textual order."""
    if isinstance(step, Loop):
        return tuple(row.name for row in words_in(step))
    return ("product",) if isinstance(step, Product) else ("store",) if isinstance(step, Store) else ("launch",)


@irdl_attr_definition
class ScheduleAttr(Data["tuple[Step, ...]"]):
    """The schedule of a nest: `#loop.schedule<[i by 8 threads, j vector 16, i unroll]>`."""

    name = "loop.schedule"

    def __init__(self, steps: Sequence[Step]):
        super().__init__(tuple(steps))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops, outermost first."""
        return tuple(s for s in self.data if isinstance(s, Loop))

    @property
    def product(self) -> Product | None:
        """The micro-kernel; None if the schedule has no product."""
        return next((s for s in self.data if isinstance(s, Product)), None)

    @property
    def launch(self) -> Launch | None:
        """The launch parameters; None if the schedule has no `launch`."""
        return next((s for s in self.data if isinstance(s, Launch)), None)

    @property
    def store(self) -> tuple[Store, int] | None:
        """The `store` step and the number of loops around it; None if the schedule has no `store`."""
        for k, step in enumerate(self.data):
            if isinstance(step, Store):
                return step, sum(isinstance(s, Loop) for s in self.data[:k])
        return None

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Step, ...]:
        with parser.in_angle_brackets():
            return parse_steps(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.data))}]"


# -- text -------------------------------------------------------------------------------------------------------------


def parse_schedule(parser: AttrParser, label: str) -> ScheduleAttr | None:
    """Parses `schedule [..]` of the nest called `label`; None if it is absent."""
    if parser.parse_optional_keyword("schedule") is None:
        return None
    return ScheduleAttr(parse_steps(parser, f"the schedule of nest '{label}': "))


def parse_steps(parser: AttrParser, where: str = "") -> tuple[Step, ...]:
    """Parses `[loop, ..]`; errors begin with `where` and name the loop."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_step(parser, where)))


def _parse_step(parser: AttrParser, where: str) -> Step:
    axis = parser.parse_identifier("the axis of a loop")
    if axis == "product" and parser.parse_optional_punctuation("(") is not None:
        return _parse_product(parser, where)
    if axis == "store":
        return _parse_store(parser, where)
    if axis == "launch" and parser.parse_optional_keyword("warps") is not None:
        return _parse_launch(parser)
    return parse_words(parser, Loop(axis), f"{where}loop '{axis}'")


def _parse_product(parser: AttrParser, where: str) -> Product:
    names = [parser.parse_identifier("an axis")]
    while parser.parse_optional_punctuation(",") is not None:
        names.append(parser.parse_identifier("an axis"))
    parser.parse_punctuation(")")
    if len(names) not in (2, 3):
        parser.raise_error(f"{where}a product has the axes (rows, columns, depth) or (columns, depth)")
    if parser.parse_optional_keyword("tile") is None:
        parser.raise_error(f"{where}a product needs a tile: product(..) tile [rows, panels]")
    tile = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False, allow_negative=False)
    )
    if len(tile) != 2 or min(tile) < 1:
        parser.raise_error(f"{where}the tile of a product must be [rows, panels], two positive counts")
    kernel = ""
    if parser.parse_optional_keyword("by") is not None:
        kernel = parser.parse_optional_str_literal() or ""
        if not kernel:
            parser.raise_error(f"{where}'by' of a product needs the name of a micro-kernel, in quotes")
    return Product(names[-3] if len(names) == 3 else "", names[-2], names[-1], (tile[0], tile[1]), kernel)


def _parse_store(parser: AttrParser, where: str) -> Store:
    if parser.parse_optional_keyword("in") is None:
        return Store()
    return Store(parse_memory(parser, f"{where}a result"))


def _parse_launch(parser: AttrParser) -> Launch:
    warps = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_keyword("stages")
    stages = parser.parse_integer(allow_boolean=False, allow_negative=False)
    products = next((name for name in PRODUCTS if parser.parse_optional_keyword(name) is not None), "")
    group = 1
    if parser.parse_optional_keyword("group") is not None:
        group = parser.parse_integer(allow_boolean=False, allow_negative=False)
    descriptors = parser.parse_optional_keyword("descriptors") is not None
    specialized = parser.parse_optional_keyword("specialized") is not None
    persistent = 0
    if parser.parse_optional_keyword("persistent") is not None:
        persistent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        if not persistent:
            parser.raise_error("'persistent' takes a positive number of programs")
    return Launch(warps, stages, products, group, descriptors, specialized, persistent)


# -- verification -----------------------------------------------------------------------------------------------------


def schedule_reason(schedule: ScheduleAttr, axes: Mapping[str, str], inside: Sequence[str] | None = None) -> str | None:
    """Returns the reason why a schedule is invalid; None if every axis has its loops and every directive is in a legal
    place. `axes` maps the axes of the nest to their kinds; `inside` names the loops in the body of a procedure."""
    return next(_reasons(schedule, axes, inside), None)


def _reasons(schedule: ScheduleAttr, axes: Mapping[str, str], inside: Sequence[str] | None) -> Iterator[str]:
    known = (*axes, *(inside or ()))
    for loop in schedule.loops:
        if loop.axis not in known:
            yield f"unknown axis '{loop.axis}'{near(loop.axis, known)}"
        reduction = axes.get(loop.axis) == "reduction"
        where, inside_body = f"loop '{loop.axis}'", loop.axis not in axes
        yield from word_reasons(loop, where, reduction=reduction, blocks=loop.by > 1, inside=inside_body)
    products = [s for s in schedule.data if isinstance(s, Product)]
    if products and (inside is not None or len(products) > 1):
        yield "a procedure cannot have a product" if inside is not None else "it has more than one product"
    for product in products:
        yield from _product_reasons(product, schedule, axes)
    for axis in axes:
        yield from _axis_reasons(axis, schedule)
    yield from _store_reasons(schedule, axes, inside is not None)
    if inside is not None:
        names = [s.axis for s in schedule.loops if s.axis not in axes]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            yield f"loop '{twice}' of the body appears twice"
    launches = [s for s in schedule.data if isinstance(s, Launch)]
    if len(launches) > 1:
        yield "it has 'launch' twice"
    for launch in launches:
        if launch.warps < 1 or launch.warps & (launch.warps - 1) or launch.stages < 1:
            yield f"'{launch}': the number of warps must be a power of two, that of stages at least 1"
        if launch.group < 1:
            yield f"'launch' has 'group {launch.group}'; a group has at least 1 block"
        if launch.specialized and not launch.descriptors:
            yield "'launch' has 'specialized' without 'descriptors': the warps for loads copy by descriptors"
    if sum(loop.into_result for loop in schedule.loops) > 1:
        yield "only one loop, the outermost reduction, may have 'into result'"


def _axis_reasons(axis: str, schedule: ScheduleAttr) -> Iterator[str]:
    """Checks the loops of one axis: each block size divides the next, and the last loop is over single iterations
    unless a product follows."""
    product = schedule.product
    sizes = [loop.by for loop in schedule.loops if loop.axis == axis]
    is_depth = product is not None and axis == product.depth
    if not sizes and not is_depth:
        yield f"axis '{axis}' has no loop"
    for outer, inner in pairwise(sizes):
        if outer % inner or outer == inner:
            yield f"axis '{axis}': blocks of {outer} are not a multiple of the blocks of {inner} inside them"
    if is_depth:
        if sizes and sizes[-1] == 1:
            yield f"the product reduces over '{axis}', which also has a loop over single iterations"
    elif sizes and sizes[-1] != 1:
        yield f"axis '{axis}' has no loop inside its blocks of {sizes[-1]}"


def _product_reasons(product: Product, schedule: ScheduleAttr, axes: Mapping[str, str]) -> Iterator[str]:
    for name in product.axes:
        if name not in axes:
            yield f"the product has the unknown axis '{name}'{near(name, tuple(axes))}"
    if len(set(product.axes)) < len(product.axes):
        yield "the axes of a product must differ"
    if min(product.tile) < 1:
        yield "the tile of a product must be [rows, panels], two positive counts"
    if product.kernel:
        # Imported here: micro-kernels are declared as kernels, whose nests have schedules.
        from igniter.dialects.loop.instructions import micro_kernel_reason

        reason = micro_kernel_reason(product.kernel)
        if reason is not None:
            yield reason
    place = schedule.data.index(product)
    for k, step in enumerate(schedule.data):
        if isinstance(step, Loop):
            moves = step.axis in (product.rows, product.columns) and step.by == 1
            if k > place and not moves:
                yield f"loop '{step.axis}' is behind the product; only single rows and columns of its tile may be"
            if k < place and moves:
                yield f"loop '{step.axis}' iterates over single elements of the tile; it must be behind the product"
            if step.axis in product.axes and step.tail:
                yield f"loop '{step.axis}' of a product cannot have 'tail' (micro-kernels handle partial tiles)"


def _store_reasons(schedule: ScheduleAttr, axes: Mapping[str, str], procedure: bool) -> Iterator[str]:
    stores = [k for k, s in enumerate(schedule.data) if isinstance(s, Store)]
    if len(stores) > 1 or (stores and procedure):
        yield "a procedure cannot have 'store'" if procedure else "it has 'store' twice"
    for place in stores:
        for step in schedule.data[:place]:
            if isinstance(step, Product):
                yield "'store' is behind the product, which writes the result; it must be before it"
            elif isinstance(step, Loop) and axes.get(step.axis) == "reduction":
                yield f"'store' is inside loop '{step.axis}', a reduction whose iterations all write the result"
            elif isinstance(step, Loop) and not step.fuse:
                yield (
                    f"'store' is inside loop '{step.axis}', which the readers of the result do not share (add 'fuse' "
                    "to the loops of both nests)"
                )
            elif isinstance(step, Loop) and (step.tail or step.vector):
                word = "tail" if step.tail else "vector"
                yield f"'store' is inside loop '{step.axis}' with '{word}', which a later pass transforms"
