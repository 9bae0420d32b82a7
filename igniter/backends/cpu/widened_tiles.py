"""Micro-kernels of f32 by panels of 16-bit floats that convert a stretch of a panel once for many rows.

A conversion occupies the units of multiply-adds: on a Neoverse the four `fcvtl` of a step take 4 to 8 cycles of two of
the units. A body of six rows converts at every step, and reaches 60 to 67% of the rate of multiply-adds. Here a stretch
of the panel is converted to a buffer on the stack, which stays in the first-level cache, and the bodies of f32 multiply
all rows by it, six at a time. A call with the rows of a single body converts in registers (`tile_bodies.py`).
"""

from __future__ import annotations

from igniter.analysis.structured.contractions import WIDENED, WIDENED_ROWS, WIDENED_STRIPE
from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64, PTR, Type
from igniter.backends.cpu.tile_blocks import counted
from igniter.backends.cpu.tile_bodies import AHEAD, TileKind, TileSize, add_bodies
from igniter.backends.cpu.tile_calls import (
    NEAREST,
    SECOND,
    SIGNATURE,
    argument,
    call,
    function,
    offset,
    prefetch,
    stripes,
)
from igniter.backends.cpu.vmath import extend
from igniter.dialects.loop.instructions import BUILT_IN, PANEL_BYTES

STRETCH = 128
"""The steps of depth converted together: 8 KiB, a part of any first-level cache."""

WIDE = TileKind(BUILT_IN["f32"])


def has_widened_tiles(kind: TileKind, rows: int) -> bool:
    """True if the micro-kernel of a kind, for this number of rows, converts a panel once for all of them."""
    return kind.name in WIDENED and rows == WIDENED_ROWS


def add_widened_tiles(module: LlvmModule, name: str, kind: TileKind) -> None:
    """Defines `@name`, of one panel, with its bodies: `@name.narrow` converts in registers, `@name.wide` has f32."""
    module.functions += [
        _choice(module, name),
        _widen(module, name, kind),
        stripes(module, f"{name}.stripes", f"{name}.wide", WIDENED_STRIPE),
    ]
    add_bodies(module, f"{name}.narrow", kind, TileSize(WIDENED_STRIPE, 1))
    add_bodies(module, f"{name}.wide", WIDE, TileSize(WIDENED_STRIPE, 1))


def _choice(module: LlvmModule, name: str) -> str:
    """Returns the function that chooses by the number of rows; a depth of 0 is one empty stretch."""
    f = Builder(module)
    buffer = f.emit(PTR, f"alloca [{STRETCH * PANEL_BYTES} x i8], align 64", "buffer")
    none, depth = f.const(I64, 0), argument("depth")
    f.branch(f.icmp("sle", argument("rows"), f.const(I64, WIDENED_STRIPE)), "narrow", "wide")
    f.start("narrow")
    call(f, f"{name}.narrow")
    f.raw("ret void")
    f.start("wide")
    f.jump("stretch")
    f.start("stretch")
    following = Value(I64, "%following")
    first = f.phi(I64, [(none, "wide"), (following, "multiply")])
    steps = f.call("llvm.smin.i64", I64, [f.binary("sub", depth, first), f.const(I64, STRETCH)])
    f.branch(f.icmp("sgt", steps, none), "widen", "multiply")
    f.start("widen")
    b = offset(f, argument("b"), f.binary("mul", first, argument("b_depth")))
    ahead = offset(f, argument("next"), f.binary("mul", first, argument("b_depth")))
    f.raw(
        f"call void @{name}.widen({b.typed}, {argument('b_depth').typed}, {ahead.typed}, {steps.typed}, {buffer.typed})"
    )
    f.jump("multiply")
    f.start("multiply")
    moved = {
        "a": offset(f, argument("a"), f.binary("mul", first, argument("a_depth"))),
        "b": buffer,
        "b_depth": f.const(I64, PANEL_BYTES),
        "depth": steps,
        "add": f.select(f.icmp("sgt", first, none), f.const(I64, 1), argument("add")),
        # The panels of later calls are prefetched while this one is converted.
        "next": buffer,
    }
    call(f, f"{name}.stripes", moved)
    f.raw(f"{following.text} = add i64 {first.text}, {STRETCH}")
    f.branch(f.icmp("slt", following, depth), "stretch", "done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define hidden void @{name}({SIGNATURE}) #0 {{")


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
    head = "ptr %b, i64 %b_depth, ptr %next, i64 %steps, ptr noalias %buffer"
    return function(f, f"define internal void @{name}.widen({head}) noinline #0 {{")
