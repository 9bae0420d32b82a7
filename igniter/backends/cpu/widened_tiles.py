"""Micro-kernels of f32 by panels of 16-bit floats that convert a stretch of a panel once for many rows.

A conversion occupies the units of multiply-adds: on a Neoverse the four `fcvtl` of a step take 4 to 8 cycles of two of
the units. A body of six rows converts at every step, and reaches 60 to 67% of the rate of multiply-adds. Here a stretch
of the panel is converted to a buffer on the stack, which stays in the first-level cache, and the bodies of f32 multiply
all rows by it, six at a time. A call with the rows of a single body converts in registers (`tile_bodies.py`).
"""

from __future__ import annotations

from igniter.analysis.structured.contractions import TALL, WIDENED, WIDENED_STRIPE
from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64, PTR, Type
from igniter.backends.cpu.tile_blocks import counted
from igniter.backends.cpu.tile_bodies import AHEAD, TileKind, TileSize, add_bodies
from igniter.backends.cpu.tile_calls import NEAREST, SECOND, argument, function, offset, prefetch, stripes
from igniter.backends.cpu.tile_stretches import Stretches, stretch_head, stretches
from igniter.backends.cpu.vmath import extend
from igniter.dialects.loop.instructions import BUILT_IN, PANEL_BYTES

STRETCH = 128
"""The steps of depth converted together: 8 KiB, a part of any first-level cache."""

WIDE = TileKind(BUILT_IN["f32"])


def has_widened_tiles(kind: TileKind, rows: int) -> bool:
    """True if the micro-kernel of a kind, for this number of rows, converts a panel once for all of them."""
    return kind.name in WIDENED and rows == TALL[kind.name].rows


def add_widened_tiles(module: LlvmModule, name: str, kind: TileKind) -> None:
    """Defines `@name`, of one panel, with its bodies: `@name.narrow` converts in registers, `@name.wide` has f32."""
    module.functions += [
        stretches(
            module, name, Stretches(STRETCH, f"{name}.widen", f"{name}.stripes", WIDENED_STRIPE, f"{name}.narrow")
        ),
        _widen(module, name, kind),
        stripes(module, f"{name}.stripes", f"{name}.wide", WIDENED_STRIPE),
    ]
    add_bodies(module, f"{name}.narrow", kind, TileSize(WIDENED_STRIPE, 1))
    add_bodies(module, f"{name}.wide", WIDE, TileSize(WIDENED_STRIPE, 1))


def _widen(module: LlvmModule, name: str, kind: TileKind) -> str:
    """Returns the function that converts some steps of a panel to f32, and prefetches those at `next`."""
    assert kind.panel is not None
    f = Builder(module)
    narrow, wide = Type(kind.panel.element, kind.lanes), kind.sums.with_lanes(kind.lanes)
    with counted(f, "step", Value(I64, "%steps"), 1) as k:
        down = f.binary("mul", k, argument("b_depth"))
        source = offset(f, argument("b"), down)
        prefetch(f, offset(f, source, AHEAD * kind.lanes * kind.panel_bytes), NEAREST)
        prefetch(f, offset(f, argument("next"), down), SECOND)
        found = f.emit(narrow, f"load {narrow}, ptr {source.text}, align {kind.panel_bytes}")
        place = offset(f, Value(PTR, "%buffer"), f.binary("mul", k, f.const(I64, PANEL_BYTES)))
        f.raw(f"store {extend(f, found, wide).typed}, ptr {place.text}, align 64")
    f.raw("ret void")
    return function(f, stretch_head(f"{name}.widen"))
