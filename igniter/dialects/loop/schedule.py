"""Schedules: the loops of a nest, outermost first, and what happens to each.

    schedule ::= `[` step (`,` step)* `]`
    step     ::= loop | product | store | launch
    loop     ::= axis (`by` size)? word*
    word     ::= `tail` (`mask` | `peel` | `rest`) | `into` `result` | `threads` grain? | `grid` | `fuse` "label"
               | `slide` "label" | `vector` lanes | `accumulators` count | `unroll` count?
    product  ::= `product` `(` (rows `,`)? columns `,` depth `)` `tile` `[` rows `,` panels `]` (`by` "micro-kernel")?
    store    ::= `store` (`in` (`registers` | `stack` | `arena`))?
    launch   ::= `launch` `warps` count `stages` count [`tf32` | `tf32x3`]

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from igniter.dialects.loop.hints import near

Tail = Literal["", "mask", "peel", "rest"]

TAILS = tuple(t for t in get_args(Tail) if t)


@dataclass(frozen=True)
class Loop:
    """One loop of a nest."""

    axis: str
    by: int = 1
    """The block size, in iterations of the axis."""
    tail: Tail = ""
    """The tail strategy for a partial last block: bounds on the inner loops (`mask`, the default), a copy of the inner
    loops, split again (`peel`), or a scalar loop (`rest`). With a tail, blocks are formed after the nests of the group
    are fused, for all of them."""
    into_result: bool = False
    """True for a reduction around parallel loops that adds the sum of each iteration to the result in memory."""
    threads: int | None = None
    """The iterations per task of the thread pool; 0 lets the compiler choose a profitable grain. None: no threads."""
    grid: bool = False
    """True if each iteration is a separate program."""
    fuse: str = ""
    """The fusion label: loops of other nests with the same label become one loop with this one."""
    slide: str = ""
    """The label of a sliding group. The last loop with this label iterates over windows; the loops before it produce
    the rows of these windows. Each row is produced when the first window needs it, and kept until the last window has
    read it."""
    vector: int = 0
    """The number of vector lanes; the iterations of the loop are the lanes."""
    accumulators: int = 0
    """The number of vectors of partial sums, used in turn."""
    unroll: int | None = None
    """The unroll factor; 0 unrolls fully."""
    prefetch: bool = False
    """True if the cache lines accessed by the iterations are prefetched at the start of the enclosing body."""

    def __str__(self) -> str:
        said = [self.axis]
        said += [f"by {self.by}"] if self.by != 1 else []
        said += [f"tail {self.tail}"] if self.tail else []
        said += ["into result"] if self.into_result else []
        said += [f"threads {self.threads}" if self.threads else "threads"] if self.threads is not None else []
        said += ["grid"] if self.grid else []
        said += [f'fuse "{self.fuse}"'] if self.fuse else []
        said += [f'slide "{self.slide}"'] if self.slide else []
        said += [f"vector {self.vector}"] if self.vector else []
        said += [f"accumulators {self.accumulators}"] if self.accumulators else []
        said += [f"unroll {self.unroll}" if self.unroll else "unroll"] if self.unroll is not None else []
        said += ["prefetch"] if self.prefetch else []
        return " ".join(said)


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


Memory = Literal["", "registers", "stack", "arena"]

MEMORIES = tuple(m for m in get_args(Memory) if m)


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

    def __str__(self) -> str:
        return f"launch warps {self.warps} stages {self.stages}" + (f" {self.products}" if self.products else "")


PRODUCTS = ("tf32", "tf32x3")
"""The tensor-core modes: factors rounded to 10 mantissa bits, or three such products, about as accurate as f32."""


Step: TypeAlias = "Loop | Product | Store | Launch"

WORDS = ("by", "tail", "into", "threads", "grid", "fuse", "slide", "vector", "accumulators", "unroll", "prefetch")

VOCABULARY = frozenset((*WORDS, *TAILS, "product", "store", *MEMORIES, "launch"))
"""The vocabulary of steps: directives of loops, tail strategies, `product`, `store` with its memories, and `launch`."""


def words_of(step: Step) -> tuple[str, ...]:
    """Returns the directives of a step, as words of `VOCABULARY`, in textual order."""
    if isinstance(step, Product):
        return ("product",)
    if isinstance(step, Store):
        return ("store", step.memory) if step.memory else ("store",)
    if isinstance(step, Launch):
        return ("launch",)
    said = {
        "by": step.by != 1,
        "tail": bool(step.tail),
        step.tail: bool(step.tail),
        "into": step.into_result,
        "threads": step.threads is not None,
        "grid": step.grid,
        "fuse": bool(step.fuse),
        "slide": bool(step.slide),
        "vector": bool(step.vector),
        "accumulators": bool(step.accumulators),
        "unroll": step.unroll is not None,
        "prefetch": step.prefetch,
    }
    return tuple(word for word, is_said in said.items() if is_said)


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
    where += f"loop '{axis}'"
    loop = Loop(axis)
    said: set[str] = set()
    while (word := parser.parse_optional_identifier()) is not None:
        if word not in WORDS:
            parser.raise_error(
                f"{where}: '{word}' is no word that it has{near(word, WORDS) or ': ' + ', '.join(WORDS)}"
            )
        if word in said:
            parser.raise_error(f"{where} says '{word}' twice")
        said.add(word)
        loop = _parse_word(parser, word, loop, where)
    return loop


def _parse_word(parser: AttrParser, word: str, loop: Loop, where: str) -> Loop:
    if word == "tail":
        tail = parser.parse_identifier("mask, peel or rest")
        for known in ("mask", "peel", "rest"):
            if tail == known:
                return replace(loop, tail=known)
        parser.raise_error(f"{where}: its tail is {', '.join(TAILS)}, not '{tail}'")
    if word == "into":
        parser.parse_keyword("result")
        return replace(loop, into_result=True)
    if word == "prefetch":
        return replace(loop, prefetch=True)
    if word == "grid":
        return replace(loop, grid=True)
    if word in ("fuse", "slide"):
        label = parser.parse_optional_str_literal()
        if not label:
            parser.raise_error(f"{where}: '{word}' is said with the label of a group, in quotes")
        return replace(loop, **{word: label})
    count = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if word in ("threads", "unroll"):
        least = 1 if word == "threads" else 2
        if count is not None and count < least:
            parser.raise_error(f"{where}: '{word}' is said alone, or a count of at least {least}, not {count}")
        return replace(loop, **{word: count or 0})
    if not count:
        parser.raise_error(f"{where}: '{word}' is said with a positive count{'' if count is None else ', not 0'}")
    return replace(loop, **{word: count})


def _parse_product(parser: AttrParser, where: str) -> Product:
    names = [parser.parse_identifier("an axis")]
    while parser.parse_optional_punctuation(",") is not None:
        names.append(parser.parse_identifier("an axis"))
    parser.parse_punctuation(")")
    if len(names) not in (2, 3):
        parser.raise_error(f"{where}a product is of rows, columns and depth, or of columns and depth")
    if parser.parse_optional_keyword("tile") is None:
        parser.raise_error(f"{where}a product is said with its tile: product(..) tile [rows, panels]")
    tile = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False, allow_negative=False)
    )
    if len(tile) != 2 or min(tile) < 1:
        parser.raise_error(f"{where}the tile of a product is [rows, panels], two positive counts")
    kernel = ""
    if parser.parse_optional_keyword("by") is not None:
        kernel = parser.parse_optional_str_literal() or ""
        if not kernel:
            parser.raise_error(f"{where}the micro-kernel of a product is a name in quotes")
    return Product(names[-3] if len(names) == 3 else "", names[-2], names[-1], (tile[0], tile[1]), kernel)


def _parse_store(parser: AttrParser, where: str) -> Store:
    if parser.parse_optional_keyword("in") is None:
        return Store()
    memory = parser.parse_identifier(" or ".join(MEMORIES))
    for known in ("registers", "stack", "arena"):
        if memory == known:
            return Store(known)
    parser.raise_error(f"{where}a result is stored in {', '.join(MEMORIES)}, not in '{memory}'{near(memory, MEMORIES)}")


def _parse_launch(parser: AttrParser) -> Launch:
    warps = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_keyword("stages")
    stages = parser.parse_integer(allow_boolean=False, allow_negative=False)
    products = next((name for name in PRODUCTS if parser.parse_optional_keyword(name) is not None), "")
    return Launch(warps, stages, products)


# -- verification -----------------------------------------------------------------------------------------------------


def schedule_reason(schedule: ScheduleAttr, axes: Mapping[str, str], inside: Sequence[str] | None = None) -> str | None:
    """Returns the reason why a schedule is invalid; None if every axis has its loops and every directive is in a legal
    place. `axes` maps the axes of the nest to their kinds; `inside` names the loops in the body of a procedure."""
    return next(_reasons(schedule, axes, inside), None)


def _reasons(schedule: ScheduleAttr, axes: Mapping[str, str], inside: Sequence[str] | None) -> Iterator[str]:
    known = (*axes, *(inside or ()))
    for loop in schedule.loops:
        if loop.axis not in known:
            yield f"it names '{loop.axis}', which is no axis{near(loop.axis, known)}"
        yield from _loop_reasons(loop, axes.get(loop.axis) == "reduction", loop.axis not in axes)
    products = [s for s in schedule.data if isinstance(s, Product)]
    if products and (inside is not None or len(products) > 1):
        yield "a procedure has no product" if inside is not None else "it has more than one product"
    for product in products:
        yield from _product_reasons(product, schedule, axes)
    for axis in axes:
        yield from _axis_reasons(axis, schedule)
    yield from _store_reasons(schedule, axes, inside is not None)
    if inside is not None:
        names = [s.axis for s in schedule.loops if s.axis not in axes]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            yield f"loop '{twice}' of the body is there twice"
    launches = [s for s in schedule.data if isinstance(s, Launch)]
    if len(launches) > 1:
        yield "it says 'launch' twice"
    for launch in launches:
        if launch.warps < 1 or launch.warps & (launch.warps - 1) or launch.stages < 1:
            yield f"'{launch}': warps are a power of two, and stages one or more"
    if sum(loop.into_result for loop in schedule.loops) > 1:
        yield "only one loop adds to the result: the outermost that sums"


def _loop_reasons(loop: Loop, reduction: bool, inside: bool) -> Iterator[str]:
    where = f"loop '{loop.axis}'"
    for field, least in (("by", 1), ("vector", 0), ("accumulators", 0), ("threads", 0)):
        value = getattr(loop, field)
        if value is not None and value < least:
            yield f"{where}: '{field}' is a positive count, not {value}"
    if loop.unroll is not None and loop.unroll != 0 and loop.unroll < 2:
        yield f"{where}: 'unroll' is said alone, or a count of at least 2, not {loop.unroll}"
    if loop.tail and loop.tail not in TAILS:
        yield f"{where}: its tail is {', '.join(TAILS)}, not '{loop.tail}'"
    if loop.tail and loop.by == 1:
        yield f"{where}: 'tail' means nothing without 'by'"
    if loop.accumulators and not loop.vector:
        yield f"{where}: 'accumulators' means nothing without 'vector'"
    if loop.vector and loop.by > 1:
        yield f"{where} goes over blocks, which are no lanes: 'vector' is for its last loop"
    if loop.grid and ((reduction and loop.by == 1) or loop.vector or loop.threads is not None):
        yield (
            f"{where} is no loop over programs: 'grid' is for parallel ones, and for blocks of a reduction whose sums "
            "others join, without 'vector' or 'threads'"
        )
    if reduction and loop.threads is not None:
        yield f"{where} is a reduction, whose iterations meet in one element: it cannot have 'threads'"
    if loop.slide and (reduction or loop.by > 1 or loop.vector or loop.unroll is not None):
        yield f"{where} is not over single rows, in any order, one after the other: it cannot have 'slide'"
    if loop.into_result and not reduction:
        yield f"{where} is no reduction: it adds nothing to the result"
    if loop.into_result and loop.by == 1:
        yield f"{where} goes over single iterations: 'into result' is for blocks, so that of no iterations 0 is written"
    if inside and (loop.by > 1 or loop.fuse or loop.slide):
        word = "by" if loop.by > 1 else "fuse" if loop.fuse else "slide"
        yield f"{where} is one of the body of a procedure: it cannot have '{word}'"


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
            yield f"axis '{axis}' has blocks of {outer} and inside of them {inner}, of which no whole number makes one"
    if is_depth:
        if sizes and sizes[-1] == 1:
            yield f"the product goes along '{axis}', which has a loop over its single iterations too"
    elif sizes and sizes[-1] != 1:
        yield f"axis '{axis}' has no loop inside its blocks of {sizes[-1]}"


def _product_reasons(product: Product, schedule: ScheduleAttr, axes: Mapping[str, str]) -> Iterator[str]:
    for name in product.axes:
        if name not in axes:
            yield f"the product names '{name}', which is no axis{near(name, tuple(axes))}"
    if len(set(product.axes)) < len(product.axes):
        yield "the axes of a product are different ones"
    if min(product.tile) < 1:
        yield "the tile of a product is [rows, panels], two positive counts"
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
                yield f"loop '{step.axis}' is inside the product, where only its rows and columns are, one by one"
            if k < place and moves:
                yield f"loop '{step.axis}' goes over single iterations: it belongs behind the product"
            if step.axis in product.axes and step.tail:
                yield f"loop '{step.axis}' of a product has no 'tail': a micro-kernel takes what is there"


def _store_reasons(schedule: ScheduleAttr, axes: Mapping[str, str], procedure: bool) -> Iterator[str]:
    stores = [k for k, s in enumerate(schedule.data) if isinstance(s, Store)]
    if len(stores) > 1 or (stores and procedure):
        yield "a procedure has no 'store'" if procedure else "it says 'store' twice: its result lives in one place"
    for place in stores:
        for step in schedule.data[:place]:
            if isinstance(step, Product):
                yield "'store' is behind the product, which writes the result: it belongs before it"
            elif isinstance(step, Loop) and axes.get(step.axis) == "reduction":
                yield f"'store' is inside of loop '{step.axis}', a reduction: all of its iterations write the result"
            elif isinstance(step, Loop) and not step.fuse:
                yield (
                    f"'store' is inside of loop '{step.axis}', which is this nest's alone: who reads the result shares "
                    "the loops around it, which 'fuse' says"
                )
            elif isinstance(step, Loop) and (step.tail or step.vector):
                word = "tail" if step.tail else "vector"
                yield f"'store' is inside of loop '{step.axis}' with '{word}', whose iterations are made later"
