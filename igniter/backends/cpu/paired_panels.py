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

A call with few rows interleaves in registers. So does a call with rounds, whose sums stay in registers over all of
them. On targets without the instructions, the micro-kernel of this size is the usual bodies, called for a few rows at a
time: one schedule may be for several CPUs.
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
from igniter.backends.cpu.tile_calls import NEAREST, SECOND, argument, function, offset, prefetch, stripes
from igniter.backends.cpu.tile_stretches import Stretches, stretch_head, stretches
from igniter.dialects.loop.instructions import PANEL_BYTES

STRETCH = 256
"""The groups interleaved together: 16 KiB of a panel, a part of any first-level cache. The sums are loaded and stored
once for each stretch, which is most depths of models: 1,024 bytes, 512 bf16."""


def has_paired_panels(kind: TileKind, rows: int) -> bool:
    """True if the micro-kernel of a kind, for this number of rows, takes a few rows at a time."""
    return kind.name in PAIRED and rows == TALL[kind.name].rows


def add_paired_panels(module: LlvmModule, name: str, kind: TileKind, size: TileSize) -> None:
    """Defines `@name`, of one panel, with its bodies: `@name.narrow` interleaves in registers, `@name.wide` reads
    interleaved panels."""
    body = MatrixBody if has_matrix_products(kind, module.target) else None
    pairs = body is not None and not size.rounds
    here, linkage = (f"{name}.few", "internal") if pairs else (name, "hidden")
    module.functions.append(stripes(module, here, f"{name}.narrow", WIDENED_STRIPE, size.parameters, linkage))
    add_bodies(module, f"{name}.narrow", kind, TileSize(WIDENED_STRIPE, 1, size.rounds), body)
    if pairs:
        module.functions += [
            stretches(
                module, name, Stretches(STRETCH, f"{name}.pair", f"{name}.stripes", TALL[kind.name].few, f"{name}.few")
            ),
            _pair(module, name),
            stripes(module, f"{name}.stripes", f"{name}.wide", WIDENED_STRIPE),
        ]
        add_bodies(module, f"{name}.wide", kind, TileSize(WIDENED_STRIPE, 1), PairedBody)


class PairedBody(MatrixBody):
    """A body whose panels hold pairs of groups, interleaved; also for a single row."""

    streams = False

    def _columns(self, lines: Sequence[Value], part: int) -> list[Value]:
        places = [self.const(I64, REGISTER * (PAIR * part + half)) for half in range(PAIR)]
        return [self.emit(GROUPS, f"load {GROUPS}, ptr {self._at(lines[0], at).text}, align 16") for at in places]


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
