"""Micro-kernels that convert a stretch of a panel once for many rows: the function that calls the parts.

    @name(.., rows, depth, ..)
      rows <= few     @name.narrow          converts in registers, at every step
      else            for each stretch of the depth:
                        @name.convert       from the panel to a buffer on the stack
                        @name.stripes       multiplies all rows by the buffer, and adds to the sums after the first

The first-level cache holds the buffer. The parts differ by kind (`widened_tiles.py`, `paired_panels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64, PTR
from igniter.backends.cpu.tile_calls import SIGNATURE, argument, call, function, offset
from igniter.dialects.loop.instructions import PANEL_BYTES


@dataclass(frozen=True)
class Stretches:
    """The parts of a micro-kernel of one panel, by the names of their functions."""

    steps: int
    """The steps of depth converted together, of `PANEL_BYTES` each in the buffer."""
    convert: str
    multiply: str
    few: int
    """The most rows for which the whole depth is left to `narrow`."""
    narrow: str


def stretch_head(name: str) -> str:
    """Returns the head of a function that converts some steps of a panel to a buffer."""
    given = "ptr %b, i64 %b_depth, ptr %next, i64 %steps, ptr noalias %buffer"
    return f"define internal void @{name}({given}) noinline #0 {{"


def stretches(module: LlvmModule, name: str, parts: Stretches) -> str:
    """Returns `@name`, which chooses by the number of rows. A depth of 0 is one empty stretch."""
    f = Builder(module)
    buffer = f.emit(PTR, f"alloca [{parts.steps * PANEL_BYTES} x i8], align 64", "buffer")
    none, depth = f.const(I64, 0), argument("depth")
    f.branch(f.icmp("sle", argument("rows"), f.const(I64, parts.few)), "narrow", "wide")
    f.start("narrow")
    call(f, parts.narrow)
    f.raw("ret void")
    f.start("wide")
    f.jump("stretch")
    f.start("stretch")
    following = Value(I64, "%following")
    first = f.phi(I64, [(none, "wide"), (following, "multiply")])
    steps = f.call("llvm.smin.i64", I64, [f.binary("sub", depth, first), f.const(I64, parts.steps)])
    f.branch(f.icmp("sgt", steps, none), "convert", "multiply")
    f.start("convert")
    b = offset(f, argument("b"), f.binary("mul", first, argument("b_depth")))
    ahead = offset(f, argument("next"), f.binary("mul", first, argument("b_depth")))
    given = (b, argument("b_depth"), ahead, steps, buffer)
    f.raw(f"call void @{parts.convert}({', '.join(v.typed for v in given)})")
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
    call(f, parts.multiply, moved)
    f.raw(f"{following.text} = add i64 {first.text}, {parts.steps}")
    f.branch(f.icmp("slt", following, depth), "stretch", "done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define hidden void @{name}({SIGNATURE}) #0 {{")
