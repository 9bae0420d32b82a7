"""Nests that match a micro-kernel's meaning, and nests that do not."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from igniter.analysis.structured.contractions import contraction_of
from igniter.analysis.structured.matching import difference, reads_of
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.loop.instructions import MicroKernel, meaning, micro_kernel

DISTANCE = MicroKernel(
    "distance",
    meaning("d", "f32", "f32", "f32", "%d = arith.subf %x, %y : f32\n %v = arith.mulf %d, %d : f32", lanes=16),
)
SHIFTED = MicroKernel(
    "shifted",
    meaning("s", "f32", "f32", "f32", "%p = arith.mulf %x, %y : f32\n %v = arith.addf %p, %x : f32", lanes=16),
)


def nest_of(a: str, b: str, c: str, body: str, combiner: str = "add", group: int = 1) -> NestOp:
    """A product of a tensor of 8 rows and one of 16 columns in one panel, with this body of `%x` and `%y`."""
    at, dims = ("k, j", f"64x16x{b}") if group == 1 else (f"k floordiv {group}, j, k mod {group}", f"16x16x4x{b}")
    text = f"""
    loop.kernel @k symbols [] (%a: tensor<8x64x{a}>, %b: tensor<{dims}>) -> (tensor<8x16x{c}>) {{
      %c = loop.nest "n" [i: parallel 8, j: parallel 16, k: reduction 64] -> tensor<8x16x{c}> {{
        %x = loop.read %a[i, k] : {a.replace("ui", "i")}
        %y = loop.read %b[{at}] : {b.replace("ui", "i")}
        {body}
        loop.yield {combiner} %v at [i, j]
      }}
      loop.return %c : tensor<8x16x{c}>
    }}"""
    kernel = Parser(IgniterContext(), text).parse_op()
    kernel.verify()
    assert isinstance(kernel, KernelOp)
    return kernel.nests[0]


def why_not(nest: NestOp, kernel: MicroKernel) -> str | None:
    reads = reads_of(nest, kernel)
    return reads if isinstance(reads, str) else difference(nest, kernel, *nest.reads)


SAME = (
    (DISTANCE, "%d = arith.subf %x, %y : f32\n %v = arith.mulf %d, %d : f32"),
    (DISTANCE, "%d = arith.subf %x, %y : f32\n %e = arith.subf %x, %y : f32\n %v = arith.mulf %e, %d : f32"),
    (SHIFTED, "%p = arith.mulf %y, %x : f32\n %v = arith.addf %x, %p : f32"),
    (SHIFTED, "%v = math.fma %y, %x, %x : f32"),
)
OTHER = (
    (DISTANCE, "%d = arith.subf %y, %x : f32\n %v = arith.mulf %d, %d : f32"),
    (DISTANCE, "%d = arith.addf %x, %y : f32\n %v = arith.mulf %d, %d : f32"),
    (SHIFTED, "%v = math.fma %y, %x, %y : f32"),
    (SHIFTED, "%p = arith.mulf %y, %x : f32\n %v = arith.subf %p, %x : f32"),
)


@pytest.mark.parametrize(("kernel", "body"), SAME)
def test_the_same(kernel: MicroKernel, body: str) -> None:
    assert why_not(nest_of("f32", "f32", "f32", body), kernel) is None


@pytest.mark.parametrize(("kernel", "body"), OTHER)
def test_not_the_same(kernel: MicroKernel, body: str) -> None:
    reason = why_not(nest_of("f32", "f32", "f32", body), kernel)
    assert reason == f"its body differs from the meaning of micro-kernel '{kernel.name}'"


WIDENED = """%u = arith.{0} %x : i8 to i16
        %w = arith.{0} %u : i16 to i32
        %z = arith.extsi %y : i8 to i32
        %v = arith.muli %z, %w : i32"""


def test_widenings_by_steps() -> None:
    """In two steps as in one; and a sign is no matter of taste."""
    assert why_not(nest_of("i8", "i8", "i32", WIDENED.format("extsi"), group=4), micro_kernel("i8i8")) is None
    found = contraction_of(nest_of("ui8", "i8", "i32", WIDENED.format("extui"), group=4))
    assert not isinstance(found, str)
    assert found.kind == "u8i8"
    assert why_not(nest_of("i8", "i8", "i32", WIDENED.format("extui"), group=4), micro_kernel("i8i8")) is not None
    assert isinstance(contraction_of(nest_of("i8", "i8", "i32", WIDENED.format("extui"), group=4)), str)


def test_long_chains_take_no_longer() -> None:
    """Each value twice in the next: equal expressions are one, or there would be 2**60 of them."""
    lines = ["%d0 = arith.addf %x, %y : f32", *(f"%d{k + 1} = arith.mulf %d{k}, %d{k} : f32" for k in range(60))]
    body = "\n".join([*lines, "%v = arith.addf %d60, %d60 : f32"])
    kernel = MicroKernel("long", meaning("long", "f32", "f32", "f32", body, lanes=16))
    assert why_not(nest_of("f32", "f32", "f32", body), kernel) is None


def test_other_folds() -> None:
    body = "%d = arith.subf %x, %y : f32\n %v = arith.mulf %d, %d : f32"
    assert "combined with 'add'" in str(why_not(nest_of("f32", "f32", "f32", body, "max"), DISTANCE))
