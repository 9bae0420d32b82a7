"""Micro-kernels with Arm's matrix instructions that interleave a stretch of a panel once for many rows.

A matrix instruction multiplies eight bytes of a column, and a panel holds groups of four (`matrix_products.py`). Six
rows by a panel are 24 products and 8 `zip`, which occupy the units of products: 35 operations in four units. Here the
pairs of groups of a stretch of the panel are interleaved once, to a buffer on the stack that stays in the first-level
cache, and the bodies multiply all rows by it, six at a time:

    b, group k       c0.k c1.k c2.k c3.k .. c15.k       64 bytes
    b, group k + 1   c0.l c1.l c2.l c3.l .. c15.l       64 bytes
    buffer           c0.k c0.l c1.k c1.l .. c15.k c15.l

The loop of six rows then has 24 products and 3 operations that combine two rows. An odd group at the end of the depth
is paired with zeros. Panels in memory have the same format for all targets.

With rounds (the rows of a window) the panel of all of them is interleaved, and sums stay in registers over them. A call
with few rows interleaves in registers, and so does one whose window exceeds the buffer. On targets without the
instructions, the micro-kernel of this size is the usual bodies, called for a few rows at a time: one schedule may be
for several CPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.analysis.structured.contractions import PAIRED, TALL, WIDENED_STRIPE
from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64, PTR
from igniter.backends.cpu.matrix_products import (
    GROUPS,
    PAIR,
    REGISTER,
    MatrixBody,
    has_matrix_products,
    load_columns,
)
from igniter.backends.cpu.tile_blocks import counted
from igniter.backends.cpu.tile_bodies import AHEAD, TileKind, TileSize, add_bodies
from igniter.backends.cpu.tile_calls import (
    NEAREST,
    ROUND_PARAMETERS,
    SECOND,
    argument,
    call,
    function,
    offset,
    prefetch,
    signature,
    stripes,
)
from igniter.backends.cpu.tile_stretches import Stretches, stretch_head, stretches
from igniter.dialects.loop.instructions import PANEL_BYTES

STRETCH = 256
"""The groups interleaved together: 16 KiB of a panel, a part of any first-level cache. The sums are loaded and stored
once for each stretch, which is most depths of models: 1,024 bytes, 512 bf16."""


WINDOW = 576
"""The most groups of all rounds that are interleaved together: 36 KiB, a window of 3 x 3 by 256 channels of bytes."""


def has_paired_panels(kind: TileKind, rows: int) -> bool:
    """True if the micro-kernel of a kind, for this number of rows, takes a few rows at a time."""
    return kind.name in PAIRED and rows == TALL[kind.name].rows


def add_paired_panels(module: LlvmModule, name: str, kind: TileKind, size: TileSize) -> None:
    """Defines `@name`, of one panel, with its bodies: `@name.narrow` interleaves in registers, `@name.wide` reads
    interleaved panels."""
    body = MatrixBody if has_matrix_products(kind, module.target) else None
    pairs = body is not None
    here, linkage = (f"{name}.few", "internal") if pairs else (name, "hidden")
    module.functions.append(stripes(module, here, f"{name}.narrow", WIDENED_STRIPE, size.parameters, linkage))
    add_bodies(module, f"{name}.narrow", kind, TileSize(WIDENED_STRIPE, 1, size.rounds), body)
    if pairs:
        few = TALL[kind.name].few
        parts = Stretches(STRETCH, f"{name}.pair", f"{name}.stripes", few, f"{name}.few")
        module.functions += [
            _window(module, name, few) if size.rounds else stretches(module, name, parts),
            _pair(module, name),
            stripes(module, f"{name}.stripes", f"{name}.wide", WIDENED_STRIPE, size.parameters),
        ]
        add_bodies(module, f"{name}.wide", kind, TileSize(WIDENED_STRIPE, 1, size.rounds), PairedBody)


class PairedBody(MatrixBody):
    """A body whose panels hold pairs of groups, interleaved; also for a single row."""

    streams = False

    def _columns(self, lines: Sequence[Value], part: int) -> list[Value]:
        places = [self.const(I64, REGISTER * (PAIR * part + half)) for half in range(PAIR)]
        return [self.emit(GROUPS, f"load {GROUPS}, ptr {self._at(lines[0], at).text}, align 16") for at in places]


def _window(module: LlvmModule, name: str, few: int) -> str:
    """Returns `@name` with rounds: it interleaves the panel of all rounds, one after the other in the buffer, unless
    there are few rows or the panel is larger."""
    f = Builder(module)
    buffer = f.emit(PTR, f"alloca [{WINDOW * PANEL_BYTES} x i8], align 64", "buffer")
    depth, rounds, none = argument("depth"), argument("rounds"), f.const(I64, 0)
    padded = f.binary("and", f.binary("add", depth, f.const(I64, 1)), f.const(I64, -PAIR))
    groups, size = f.binary("mul", padded, rounds), f.binary("mul", padded, f.const(I64, PANEL_BYTES))
    f.branch(f.icmp("sgt", argument("rows"), f.const(I64, few)), "many", "narrow")
    f.start("many")
    f.branch(f.icmp("sle", groups, f.const(I64, WINDOW)), "fits", "narrow")
    f.start("fits")
    f.branch(f.icmp("sgt", groups, none), "round", "narrow")
    f.start("round")
    following = Value(I64, "%following")
    number = f.phi(I64, [(none, "fits"), (following, "round")])
    b, ahead = (offset(f, argument(p), f.binary("mul", number, argument("b_round"))) for p in ("b", "next"))
    place = offset(f, buffer, f.binary("mul", number, size))
    f.raw(f"call void @{name}.pair({', '.join(v.typed for v in (b, argument('b_depth'), ahead, depth, place))})")
    f.raw(f"{following.text} = add i64 {number.text}, 1")
    f.branch(f.icmp("slt", following, rounds), "round", "wide")
    f.start("wide")
    # The panels of later calls are prefetched while this one is interleaved.
    moved = {"b": buffer, "b_depth": f.const(I64, PANEL_BYTES), "b_round": size, "next": buffer}
    call(f, f"{name}.stripes", moved, ROUND_PARAMETERS)
    f.raw("ret void")
    f.start("narrow")
    call(f, f"{name}.few", None, ROUND_PARAMETERS)
    f.raw("ret void")
    return function(f, f"define hidden void @{name}({signature(ROUND_PARAMETERS)}) #0 {{")


def _pair(module: LlvmModule, name: str) -> str:
    """Returns the function that interleaves some groups of a panel, and prefetches those at `next`."""
    f = Builder(module)
    steps, depth = Value(I64, "%steps"), argument("b_depth")
    whole = f.binary("and", steps, f.const(I64, -PAIR))
    f.branch(f.icmp("ne", whole, f.const(I64, 0)), "pairs", "rest")
    f.start("pairs")
    with counted(f, "pair", whole, PAIR) as k:
        down = f.binary("mul", k, depth)
        source, ahead = (offset(f, argument(n), down) for n in ("b", "next"))
        lines = [source, offset(f, source, depth)]
        for line, coming in zip(lines, (ahead, offset(f, ahead, depth)), strict=True):
            prefetch(f, offset(f, line, AHEAD * PANEL_BYTES), NEAREST)
            prefetch(f, coming, SECOND)
        _store_pair(f, lines, k)
    f.jump("rest")
    f.start("rest")
    f.branch(f.icmp("ne", whole, steps), "odd", "done")
    f.start("odd")
    _store_pair(f, [offset(f, argument("b"), f.binary("mul", whole, depth))], whole)
    f.jump("done")
    f.start("done")
    f.raw("ret void")
    return function(f, stretch_head(f"{name}.pair"))


def _store_pair(f: Builder, lines: Sequence[Value], at: Value) -> None:
    """Stores one or two groups of all columns to the buffer, interleaved, from group `at` on."""
    place = offset(f, Value(PTR, "%buffer"), f.binary("mul", at, f.const(I64, PANEL_BYTES)))
    columns = [c for part in range(PANEL_BYTES // REGISTER) for c in load_columns(f, lines, part)]
    for n, column in enumerate(columns):
        # Without it LLVM makes an interleaving store (`st2`) of two, which takes the units of stores twice.
        kept = f.emit(GROUPS, f"freeze {column.typed}", "f")
        f.raw(f"store {kept.typed}, ptr {offset(f, place, n * REGISTER).text}, align 16")
