"""The largest errors of the f32 functions over all 2^32 floats: `python -m tests.backends.cpu.every_float [NAME...]`.

The functions and the comparison are one compiled loop, so that a function takes a minute or two of one core. The
reference is libm's function in double precision, within an ulp of f64 and so exact for this purpose. The table that
this prints is in docs/explanation/numerics.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from igniter.backends.cpu import vmath
from igniter.backends.cpu.builder import Builder, LlvmModule, Value, flatten
from igniter.backends.cpu.jit import compile_ir
from igniter.backends.cpu.llvm_types import F64, I32, I64, PTR, Type
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.vmath.num import Num

BLOCK = 2**24
"""Floats of one task."""
LARGEST = 3.4028235677973366e38
"""Half an ulp below the overflow to infinity: beyond it, infinity is right."""


def worst_of_all(name: str, target: str = "native", step: int = 1) -> tuple[float, float]:
    """The largest error in ulp of the exact result over all floats (every `step`-th block of them), and where.

    It is infinite where a NaN, an infinity or the sign of a zero is wrong.
    """
    kernel = compile_ir("k", _ir(name, target), target, ["first", "count"])

    def block(first: int) -> tuple[float, float]:
        errors, places = np.zeros(_lanes(target)), np.zeros(_lanes(target), np.uint32)
        kernel(errors, places, first=first, count=BLOCK)
        at = int(errors.argmax())
        return float(errors[at]), float(places[at : at + 1].view(np.float32)[0])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(block, range(0, 2**32, BLOCK * step)), key=lambda found: found[0])


def _lanes(target: str) -> int:
    return target_of(target).lanes(4)


def _ir(name: str, target: str) -> str:
    """`@k(buffers = [errors, places], symbols = [first, count])`: the worst of each lane from the float `first` on."""
    module = LlvmModule(target_of(target))
    b = Builder(module)
    lanes = _lanes(target)
    bits_type, wide = Type("i32", lanes), Type("double", lanes)
    pointers = [b.emit(PTR, f"load ptr, ptr {_place(b, 'buffers', PTR, k)}") for k in range(2)]
    first, count = (b.emit(I64, f"load i64, ptr {_place(b, 'symbols', I64, k)}") for k in range(2))
    start = b.splat(b.cast("trunc", first, I32), lanes)
    iota = Value(bits_type, "<" + ", ".join(f"i32 {k}" for k in range(lanes)) + ">")
    initial = b.binary("add", start, iota)
    b.jump("body")
    b.start("body")
    at = len(b.lines)
    b.lines += [""] * 4
    index, bits = Value(I64, "%i"), Value(bits_type, "%bits")
    worst, where = Num(b, Value(wide, "%worst")), Num(b, Value(bits_type, "%where"))
    x = Num(b, bits).as_float()
    error = _error(Num(b, vmath.call(b, name, [x.v])), _exact(b, name, x.cast("fpext", "double")))
    worse = error.gt(worst)
    after = [worse.where(error, worst).v, worse.where(Num(b, bits), where).v]
    following = [b.binary("add", index, b.const(I64, lanes)), b.binary("add", bits, b.const(bits_type, lanes)), *after]
    zeros = [b.const(I64, 0), initial, b.zero(wide), b.zero(bits_type)]
    for k, (phi, zero, new) in enumerate(zip((index, bits, worst.v, where.v), zeros, following, strict=True)):
        b.lines[at + k] = f"  {phi.text} = phi {phi.type} [ {zero.text}, %entry ], [ {new.text}, %{b.block} ]"
    b.branch(b.icmp("slt", following[0], count), "body", "done")
    b.start("done")
    for value, pointer in zip(after, pointers, strict=True):
        b.raw(f"store {value.typed}, ptr {pointer.text}, align 4")
    header = "define void @k(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) #0 {"
    module.functions.append("\n".join([header, "entry:", *flatten(b.lines), "  ret void", "}", ""]))
    return module.text()


def _place(b: Builder, array: str, element: Type, index: int) -> str:
    return b.emit(PTR, f"getelementptr {element}, ptr %{array}, i64 {index}").text


def _exact(b: Builder, name: str, x: Num) -> Num:
    """libm's function, lane by lane; the reciprocal of a square root is not one of libm's."""
    libm = "sqrt" if name == "rsqrt" else name
    b.module.declare(libm, F64, [F64])
    result = "poison"
    for k in range(x.type.lanes):
        lane = b.emit(F64, f"extractelement {x.v.typed}, i32 {k}")
        value = b.emit(F64, f"call double @{libm}({lane.typed})")
        result = b.emit(x.type, f"insertelement {x.type} {result}, {value.typed}, i32 {k}").text
    exact = Num(b, Value(x.type, result))
    return 1.0 / exact if name == "rsqrt" else exact


def _error(actual: Num, exact: Num) -> Num:
    """The distance in units in the last place of the exact result in f32."""
    wide, infinity = actual.cast("fpext", "double"), float("inf")
    rounded = exact.cast("fptrunc", "float")
    exponent = (rounded.bits() >> 23) & 0xFF
    exponent = exponent.eq(0).where(1, exponent)
    # 2^(150 - exponent), the inverse of the unit, as a double. Beyond the largest float, the unit is that float's.
    exponent = exponent.eq(255).where(254, exponent)
    inverse = ((1023 + 150 - exponent).cast("zext", "i64") << 52).as_float()
    distance = (wide - exact).abs() * inverse
    both_nan = _both(actual.is_nan(), exact.is_nan())
    both_infinite = _both(wide.eq(exact), exact.abs().eq(infinity))
    overflown = _both(_both(wide.abs().eq(infinity), exact.abs().gt(LARGEST)), (wide * exact).gt(0.0))
    right = both_nan | both_infinite | overflown
    error = right.where(distance.of(0.0), distance.is_nan().where(distance.of(infinity), distance))
    signs = (wide.bits() ^ exact.bits()).lt(0)
    return _both(exact.eq(0.0), signs).where(error.of(infinity), error)


def _both(a: Num, b: Num) -> Num:
    return Num(a.b, a.b.binary("and", a.v, b.v))


def main(names: Sequence[str]) -> None:
    from tests.backends.cpu.test_vmath import BOUNDS32

    for name in names or sorted(BOUNDS32):
        start = time.perf_counter()
        worst, where = worst_of_all(name)
        bits = int(np.float32(where).view(np.uint32))
        print(
            f"| `{name}` | {worst:.4f} | `{where:.9g}` (0x{bits:08x}) | {time.perf_counter() - start:.0f} s", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
