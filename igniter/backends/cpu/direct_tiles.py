"""Micro-kernels of bytes and of bf16 on AMX: tiles of 16 rows by 64 bytes, multiplied two by two in one instruction.

A panel of bytes is already in the layout of the right factor of `tdpbusd` and `tdpbssd` (the left one is unsigned or
signed), 16 groups of four steps of depth at a time, and the rows of the left factor are in its layout: nothing is
repacked. The same holds for bf16, `tdpbf16ps` and groups of two steps. The sums of 32 rows and two panels are four
tiles, the factors two each; they stay in the registers over all rounds (the rows of a window). The bodies with vectors,
eight rows at a time, handle the rest of the depth, a few rows, and calls in a process without permission for tiles.

`tdpbf16ps` adds the even steps of a depth of 32, and the odd ones, then both to the sums. It rounds to nearest and
takes subnormal numbers as 0, like `vdpbf16ps`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import bf16

from igniter.analysis.structured.contractions import DIRECT_TILE
from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64
from igniter.backends.cpu.tile_blocks import TileBlock
from igniter.backends.cpu.tile_bodies import TileSize
from igniter.backends.cpu.tile_calls import SECOND, argument, call, function, offset, prefetch, signature, stripes
from igniter.backends.cpu.tile_registers import (
    BYTES,
    HIGH,
    add_request,
    branch_on_permission,
    configuration,
    configure,
    halves_of,
)
from igniter.dialects.loop import is_unsigned
from igniter.dialects.loop.instructions import MicroKernel

ROWS = DIRECT_TILE[0]
"""The rows of a micro-kernel: two tiles."""

STRIPE = 8
"""The rows of the bodies with vectors."""

GROUPS = 16
"""The groups of four bytes in a row of a tile: of four bytes or two bf16."""

FEWEST = 4
"""The least number of rows for which tiles are faster than vectors: up to 16 take as long as one."""


def _instruction(kernel: MicroKernel) -> str:
    left = kernel.facts.elements[0]
    if left == bf16:
        return "tdpbf16ps"
    return "tdpbusd" if is_unsigned(left) else "tdpbssd"


def add_direct_tiles(module: LlvmModule, name: str, size: TileSize, kernel: MicroKernel) -> None:
    """Defines `@name`; it calls `@name.stripe` for rows unsuitable for tiles, up to `STRIPE` rows at a time."""
    add_request(module)
    module.functions += [
        _choice(module, name, size),
        stripes(module, f"{name}.stripes", f"{name}.stripe", STRIPE, size.parameters),
        _tiles(module, name, size, _instruction(kernel)),
    ]


def _choice(module: LlvmModule, name: str, size: TileSize) -> str:
    """Returns the function that chooses between tiles and vectors."""
    f = Builder(module)
    few = f.icmp("slt", argument("rows"), f.const(I64, FEWEST))
    flat = f.icmp("slt", argument("depth"), f.const(I64, GROUPS))
    apart = f.icmp("ne", argument("a_depth"), f.const(I64, 4))
    unfit = f.binary("or", f.binary("or", few, flat), apart)
    if size.rounds:
        unfit = f.binary("or", unfit, f.icmp("slt", argument("rounds"), f.const(I64, 1)))
    f.branch(unfit, "vectors", "look")
    f.start("look")
    branch_on_permission(f, "tiles", "vectors")
    f.start("tiles")
    call(f, f"{name}.tiles", parameters=size.parameters)
    rest = f.binary("and", argument("depth"), f.const(I64, GROUPS - 1))
    f.branch(f.icmp("eq", rest, f.const(I64, 0)), "done", "rest")
    f.start("rest")
    whole = f.binary("sub", argument("depth"), rest)
    moved = {
        "a": offset(f, argument("a"), f.binary("mul", whole, f.const(I64, 4))),
        "b": offset(f, argument("b"), f.binary("mul", whole, argument("b_depth"))),
        "next": offset(f, argument("next"), f.binary("mul", whole, f.const(I64, BYTES))),
    }
    call(f, f"{name}.stripes", {**moved, "depth": rest, "add": f.const(I64, 1)}, size.parameters)
    f.jump("done")
    f.start("vectors")
    call(f, f"{name}.stripes", parameters=size.parameters)
    f.jump("done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define hidden void @{name}({signature(size.parameters)}) #0 {{")


def _tiles(module: LlvmModule, name: str, size: TileSize, instruction: str) -> str:
    """Returns the function for all rows and panels, for the part of the depth that fills tiles."""
    f = Builder(module)
    rows = argument("rows")
    upper, lower, alone = halves_of(f, rows)
    configure(f, configuration(f), upper, lower)
    groups = f.binary("and", argument("depth"), f.const(I64, -GROUPS))
    f.branch(alone, "one", "two")
    for label, count in (("one", 1), ("two", 2)):
        f.start(label)
        _Block(f, label, count, size.panels, instruction).run(groups, GROUPS, size.rounds)
        f.jump("done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define internal void @{name}.tiles({signature(size.parameters)}) noinline #0 {{")


class _Block(TileBlock):
    """One or two tiles of rows by the panels, both in the caller's memory."""

    def __init__(self, f: Builder, label: str, high: int, panels: int, instruction: str):
        super().__init__(f, label, high, panels, argument("c"))
        self.instruction = instruction
        self.places = {p: argument(p) for p in ("a", "b", "next")}

    def start_round(self, number: Value) -> None:
        steps = (("a", "a_round"), ("b", "b_round"), ("next", "b_round"))
        for place, step in steps:
            self.places[place] = offset(self.f, argument(place), self.f.binary("mul", number, argument(step)))

    def step(self, k: Value) -> None:
        f = self.f
        lines = f.binary("mul", k, f.const(I64, BYTES))
        for line in range(GROUPS):
            place = offset(f, self.places["next"], f.binary("add", lines, f.const(I64, BYTES * line)))
            prefetch(f, place, SECOND)
        along = f.binary("mul", k, f.const(I64, 4))
        down = f.binary("mul", k, argument("b_depth"))
        for r in range(self.high):
            row = offset(f, self.places["a"], f.binary("mul", argument("a_row"), f.const(I64, HIGH * r)))
            self.load_left(r, offset(f, row, along), argument("a_row"))
            for p in range(self.wide):
                if not r:
                    panel = offset(f, self.places["b"], f.binary("mul", argument("b_panel"), f.const(I64, p)))
                    self.load_right(p, offset(f, panel, down), argument("b_depth"))
                self.multiply(self.instruction, r, p)
