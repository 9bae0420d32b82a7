"""Micro-kernels of f32 by panels of f16 on AMX, which multiplies bf16: each factor is the sum of two bf16.

An f16 has 11 significant bits, a bf16 has 8. The split is `x = high + low`: `high` has the upper 16 bits of `x`, `low`
the rest, and both parts are exact. The four products of parts are exact too, and their sums are f32: the result is that
of f32 multiplication, at a quarter of the rate of bf16, four times the rate of f32. The parts of a stretch of depth are
written to buffers on the stack, once for all rows and panels of a tile, in the layout of `tdpbf16ps`: rows of the left
factor in order, and pairs of steps of depth side by side in panels.

The contents of the left factor are known only at run time. It may hold an f32 that is no sum of two bf16, a NaN, or an
infinity, whose product with a part of 0 would be a NaN. Splitting detects them, and the bodies with vectors handle such
a stretch, as well as few rows, the rest of the depth, and calls in a process without permission for tiles. Subnormal
f32 count as 0; no f16 converts to one.
"""

from __future__ import annotations

from igniter.analysis.structured.contractions import HALF_TILE
from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I32, I64, PTR, Type
from igniter.backends.cpu.tile_blocks import TileBlock, counted
from igniter.backends.cpu.tile_calls import SECOND, SIGNATURE, argument, call, function, offset, prefetch, stripes
from igniter.backends.cpu.tile_registers import (
    BYTES,
    HIGH,
    add_request,
    branch_on_permission,
    configuration,
    configure,
    halves_of,
)
from igniter.backends.cpu.vmath import extend

ROWS = HALF_TILE[0]

STRIPE = 8
"""The rows of the bodies with vectors."""

WIDEST = 3
"""The most panels of the bodies with vectors."""

FEWEST = 12
"""The least number of rows for which tiles are faster than vectors: the cost of splitting panels is independent of
rows."""

DEEP = 32
"""The steps of depth of a tile: the bf16 in its rows."""

STRETCH = 128
"""The steps of depth split together. Their parts and the sums fit the second-level cache."""

LANES = 16
"""The columns of a panel, and the f32 of a vector."""

PLANE = STRETCH * 2
"""The bytes of one part of a row."""

F32 = Type("float", LANES)
WORDS = Type("i32", LANES)
UPPER = -65536
"""The mask of the bits of an f32 that form a bf16."""


def groups_of(panels: int) -> list[int]:
    """Returns the numbers of panels of the calls with vectors."""
    count = -(-panels // WIDEST)
    return [panels // count + (k < panels % count) for k in range(count)]


def widths_of(panels: int) -> list[int]:
    """Returns the numbers of panels N for which `@name.vectors.N` is needed."""
    return sorted({*groups_of(panels), *_pairs_of(panels)})


def _pairs_of(panels: int) -> list[int]:
    """Returns the numbers of panels of the calls with tiles."""
    return [min(2, panels - first) for first in range(0, panels, 2)]


def add_half_tiles(module: LlvmModule, name: str, panels: int) -> None:
    """Defines `@name`; it calls `@name.vectors.N`, of N panels, for up to `STRIPE` rows unsuitable for tiles."""
    add_request(module)
    module.functions += [
        _choice(module, name, panels),
        _split_rows(module, name),
        stripes(module, f"{name}.stripes", f"{name}.stripe", STRIPE),
        _stripe(module, name, panels),
    ]
    for width in sorted(set(_pairs_of(panels))):
        module.functions += [
            _split_panels(module, name, width),
            _multiply(module, name, width),
            stripes(module, f"{name}.stripes.{width}", f"{name}.vectors.{width}", STRIPE),
        ]


def _stripe(module: LlvmModule, name: str, panels: int) -> str:
    """Returns the function for a few rows by all panels, group by group."""
    f = Builder(module)
    first = 0
    for width in groups_of(panels):
        moved = {
            "b": offset(f, argument("b"), f.binary("mul", argument("b_panel"), f.const(I64, first))),
            "c": offset(f, argument("c"), first * BYTES),
        }
        call(f, f"{name}.vectors.{width}", moved)
        first += width
    f.raw("ret void")
    return function(f, f"define internal void @{name}.stripe({SIGNATURE}) noinline #0 {{")


def _choice(module: LlvmModule, name: str, panels: int) -> str:
    """Returns the function that chooses between tiles and vectors, for each stretch."""
    f = Builder(module)
    config = configuration(f)
    left = f.emit(PTR, f"alloca [{2 * ROWS * PLANE} x i8], align 64", "left")
    right = f.emit(PTR, f"alloca [{2 * STRETCH * BYTES} x i8], align 64", "right")
    none, depth, add = f.const(I64, 0), argument("depth"), argument("add")
    few = f.icmp("slt", argument("rows"), f.const(I64, FEWEST))
    flat = f.icmp("slt", depth, f.const(I64, DEEP))
    apart = f.icmp("ne", argument("a_depth"), f.const(I64, 4))
    f.branch(f.binary("or", f.binary("or", few, flat), apart), "vectors", "look")
    f.start("look")
    branch_on_permission(f, "tiles", "vectors")
    f.start("vectors")
    call(f, f"{name}.stripes")
    f.raw("ret void")

    f.start("tiles")
    whole = f.binary("and", depth, f.const(I64, -DEEP))
    f.jump("stretch")
    f.start("stretch")
    following = Value(I64, "%following")
    first = f.phi(I64, [(none, "tiles"), (following, "next.stretch")])
    steps = f.call("llvm.smin.i64", I64, [f.binary("sub", whole, first), f.const(I64, STRETCH)])
    more = f.select(f.icmp("sgt", first, none), f.const(I64, 1), add)
    moved = _moved(f, first)
    last = f.icmp("sge", f.binary("add", first, steps), whole)
    # The next operand to split: the first pair of the next stretch, or of the panels that the caller will need next.
    wanted = f.select(last, argument("next"), offset(f, moved["b"], f.binary("mul", steps, argument("b_depth"))))
    shared = f"{argument('rows').typed}, {steps.typed}, {left.typed}"
    wrong = f.emit(I32, f"call i32 @{name}.rows({moved['a'].typed}, {argument('a_row').typed}, {shared})")
    f.branch(f.icmp("eq", wrong, f.const(I32, 0)), "pair0", "strange")
    start = 0
    for number, width in enumerate(_pairs_of(panels)):
        label = f"pair{number}"
        f.start(label)
        beside = {
            "b": offset(f, moved["b"], f.binary("mul", argument("b_panel"), f.const(I64, start))),
            "c": offset(f, argument("c"), start * BYTES),
        }
        steps_of_b = ", ".join(argument(n).typed for n in ("b_panel", "b_depth"))
        ahead = (
            wanted
            if start + width == panels
            else offset(f, beside["b"], f.binary("mul", argument("b_panel"), f.const(I64, width)))
        )
        split = f"{beside['b'].typed}, {steps_of_b}, {ahead.typed}, {steps.typed}, {right.typed}"
        odd = f.emit(I32, f"call i32 @{name}.panels.{width}({split})")
        f.branch(f.icmp("eq", odd, f.const(I32, 0)), f"{label}.tiles", f"{label}.vectors")
        f.start(f"{label}.tiles")
        sums = f"{beside['c'].typed}, {argument('c_row').typed}, {shared}, {right.typed}, {more.typed}, {config.typed}"
        f.raw(f"call void @{name}.multiply.{width}({sums})")
        f.jump(f"{label}.done")
        f.start(f"{label}.vectors")
        call(f, f"{name}.stripes.{width}", {**moved, **beside, "depth": steps, "add": more})
        f.jump(f"{label}.done")
        f.start(f"{label}.done")
        start += width
        f.jump(f"pair{number + 1}" if start < panels else "next.stretch")
    f.start("strange")
    call(f, f"{name}.stripes", {**moved, "depth": steps, "add": more})
    f.jump("next.stretch")
    f.start("next.stretch")
    f.raw(f"{following.text} = add i64 {first.text}, {STRETCH}")
    f.branch(f.icmp("slt", following, whole), "stretch", "after")
    f.start("after")
    rest = f.binary("sub", depth, whole)
    f.branch(f.icmp("eq", rest, none), "done", "rest")
    f.start("rest")
    call(f, f"{name}.stripes", {**_moved(f, whole), "depth": rest, "add": f.const(I64, 1)})
    f.jump("done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define hidden void @{name}({SIGNATURE}) #0 {{")


def _moved(f: Builder, first: Value) -> dict[str, Value]:
    """Returns the arguments from a step of depth on."""
    return {
        "a": offset(f, argument("a"), f.binary("mul", first, f.const(I64, 4))),
        "b": offset(f, argument("b"), f.binary("mul", first, argument("b_depth"))),
    }


def _parts(f: Builder, x: Value) -> tuple[Value, Value]:
    """Splits an f32: the upper 16 bits, in place, and the remainder."""
    high = f.binary("and", f.bitcast(x, WORDS), f.splat(f.const(I32, UPPER), LANES))
    return high, f.binary("fsub", x, f.bitcast(high, F32))


def _pair(f: Builder, one: Value, two: Value) -> Value:
    """Returns the upper halves of the lanes of `one` beside those of `two`; the lower halves of `two` are 0."""
    shifted = f.binary("lshr", f.bitcast(one, WORDS), f.splat(f.const(I32, 16), LANES))
    return f.binary("or", shifted, f.bitcast(two, WORDS))


def _cell(f: Builder, t: Type) -> Value:
    """Allocates a variable with initial value 0; LLVM keeps it in a register."""
    cell = f.emit(PTR, f"alloca {t}, align 64", "cell")
    f.raw(f"store {f.zero(t).typed}, ptr {cell.text}, align 64")
    return cell


def _collect(f: Builder, cell: Value, op: str, value: Value) -> None:
    before = f.emit(value.type, f"load {value.type}, ptr {cell.text}, align 64")
    f.raw(f"store {f.binary(op, before, value).typed}, ptr {cell.text}, align 64")


def _return_found(f: Builder, bits: Value | None, sums: Value) -> None:
    """Returns nonzero if lower bits were found, or if a sum of finite numbers is a NaN."""
    total = f.emit(F32, f"load {F32}, ptr {sums.text}, align 64")
    wrong = f.fcmp("uno", total, total)
    if bits is not None:
        found = f.emit(WORDS, f"load {WORDS}, ptr {bits.text}, align 64")
        lower = f.binary("and", found, f.splat(f.const(I32, ~UPPER), LANES))
        wrong = f.binary("or", wrong, f.icmp("ne", lower, f.zero(WORDS)))
    lanes = f.emit(Type("i16"), f"bitcast {wrong.typed} to i16")
    f.raw(f"ret i32 {f.cast('zext', lanes, I32).text}")


def _split_rows(module: LlvmModule, name: str) -> str:
    """Splits all rows: first the high parts, a row in `PLANE` bytes, then the low ones. Of `DEEP` steps, those `LANES`
    apart are side by side. The function returns nonzero if an element is not the sum of its parts."""
    f = Builder(module)
    bits, sums = _cell(f, WORDS), _cell(f, F32)
    with counted(f, "row", argument("rows"), 1) as row:
        source = offset(f, argument("a"), f.binary("mul", row, argument("a_row")))
        target = offset(f, Value(PTR, "%left"), f.binary("mul", row, f.const(I64, PLANE)))
        with counted(f, "step", Value(I64, "%steps"), DEEP) as k:
            place = offset(f, source, f.binary("mul", k, f.const(I64, 4)))
            pair = [f.emit(F32, f"load {F32}, ptr {offset(f, place, at).text}, align 4") for at in (0, 4 * LANES)]
            (high, low), (other_high, other_low) = (_parts(f, x) for x in pair)
            whole = [f.bitcast(x, WORDS) for x in (low, other_low)]
            _collect(f, bits, "or", f.binary("or", *whole))
            _collect(f, sums, "fadd", f.binary("fadd", low, other_low))
            upper = f.binary("and", whole[1], f.splat(f.const(I32, UPPER), LANES))
            for plane, both in ((0, _pair(f, high, other_high)), (ROWS * PLANE, _pair(f, low, upper))):
                aim = offset(f, offset(f, target, f.binary("mul", k, f.const(I64, 2))), plane)
                f.raw(f"store {both.typed}, ptr {aim.text}, align 64")
    _return_found(f, bits, sums)
    head = "ptr %a, i64 %a_row, i64 %rows, i64 %steps, ptr %left"
    return function(f, f"define internal i32 @{name}.rows({head}) noinline #0 {{")


def _split_panels(module: LlvmModule, name: str, panels: int) -> str:
    """Splits a pair of panels, with the steps of `_split_rows` side by side: `[panel, part, pair, column, 2]`. The
    function returns nonzero if an element is not finite. It also prefetches the panels at `ahead`."""
    f = Builder(module)
    half, sums = Type("half", LANES), _cell(f, F32)
    apart = f.binary("mul", argument("b_depth"), f.const(I64, LANES))
    with counted(f, "chunk", Value(I64, "%steps"), DEEP) as k, counted(f, "pair", f.const(I64, LANES), 1) as i:
        down = f.binary("mul", f.binary("add", k, i), argument("b_depth"))
        pairs = f.binary("add", f.binary("lshr", k, f.const(I64, 1)), i)
        across = f.binary("mul", pairs, f.const(I64, BYTES))
        for p in range(panels):
            row = offset(f, offset(f, argument("b"), f.binary("mul", argument("b_panel"), f.const(I64, p))), down)
            stored = [f.emit(half, f"load {half}, ptr {at.text}, align 2") for at in (row, offset(f, row, apart))]
            (high, low), (other_high, other_low) = (_parts(f, extend(f, x, F32)) for x in stored)
            _collect(f, sums, "fadd", f.binary("fadd", low, other_low))
            target = offset(f, offset(f, Value(PTR, "%right"), across), p * STRETCH * BYTES)
            for plane, both in enumerate((_pair(f, high, other_high), _pair(f, low, other_low))):
                aim = offset(f, target, plane * STRETCH * BYTES // 2)
                f.raw(f"store {both.typed}, ptr {aim.text}, align 64")
            line = offset(f, Value(PTR, "%ahead"), f.binary("mul", argument("b_panel"), f.const(I64, p)))
            prefetch(f, offset(f, line, across), SECOND)
    _return_found(f, None, sums)
    head = "ptr %b, i64 %b_panel, i64 %b_depth, ptr %ahead, i64 %steps, ptr %right"
    return function(f, f"define internal i32 @{name}.panels.{panels}({head}) noinline #0 {{")


def _multiply(module: LlvmModule, name: str, panels: int) -> str:
    """Returns the function for all rows, two tiles at a time, by a pair of panels."""
    f = Builder(module)
    with counted(f, "block", argument("rows"), 2 * HIGH) as row:
        count = f.call("llvm.smin.i64", I64, [f.binary("sub", argument("rows"), row), f.const(I64, 2 * HIGH)])
        upper, lower, alone = halves_of(f, count)
        configure(f, Value(PTR, "%config"), upper, lower)
        sums = offset(f, argument("c"), f.binary("mul", row, argument("c_row")))
        left = offset(f, Value(PTR, "%left"), f.binary("mul", row, f.const(I64, PLANE)))
        f.branch(alone, "one", "two")
        for label, high in (("one", 1), ("two", 2)):
            f.start(label)
            _Block(f, label, high, panels, sums, left, Value(PTR, "%right")).run(Value(I64, "%steps"), DEEP)
            f.jump("blocks")
        f.start("blocks")
    f.raw("ret void")
    head = "ptr %c, i64 %c_row, i64 %rows, i64 %steps, ptr %left, ptr %right, i64 %add, ptr %config"
    return function(f, f"define internal void @{name}.multiply.{panels}({head}) noinline #0 {{")


class _Block(TileBlock):
    """One or two tiles of rows by one or two panels, over a stretch; both factors are in parts."""

    def __init__(self, f: Builder, label: str, high: int, wide: int, sums: Value, left: Value, right: Value):
        super().__init__(f, label, high, wide, sums)
        self.left = left
        self.right = right

    def step(self, k: Value) -> None:
        """Emits all products of parts: high by high, high by low, low by low, low by high."""
        self._load_left(k, 0)
        self._load_right(k, 0)
        self._products()
        self._load_right(k, 1)
        self._products()
        self._load_left(k, 1)
        self._products()
        self._load_right(k, 0)
        self._products()

    def _load_left(self, k: Value, part: int) -> None:
        f = self.f
        along = f.binary("mul", k, f.const(I64, 2))
        for r in range(self.high):
            place = offset(f, offset(f, self.left, along), part * ROWS * PLANE + r * HIGH * PLANE)
            self.load_left(r, place, f.const(I64, PLANE))

    def _load_right(self, k: Value, part: int) -> None:
        f = self.f
        down = f.binary("mul", k, f.const(I64, BYTES // 2))
        for p in range(self.wide):
            place = offset(f, offset(f, self.right, down), (2 * p + part) * STRETCH * BYTES // 2)
            self.load_right(p, place, f.const(I64, BYTES))

    def _products(self) -> None:
        for r in range(self.high):
            for p in range(self.wide):
                self.multiply("tdpbf16ps", r, p)
