"""Any legal order of loops computes what the nest says: blocks of blocks, sums around loops, sums in the result."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from igniter.backends.cpu.jit import compile_func
from igniter.dialects.loop import NestOp
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr
from igniter.errors import IgniterError
from igniter.verification.interp.structured import run_kernel
from tests.transforms.scheduled.scheduling import SCHEDULE, call, kernel_of, parse, random_inputs, schedule

MATMUL = """
builtin.module {
  loop.kernel @k symbols [n, m] (%a: tensor<?x?xf32, #sym.dims<n, m>>, %b: tensor<?x96xf32, #sym.dims<m, 96>>)
      -> (tensor<?x96xf32, #sym.dims<n, 96>>) {
    %c = loop.nest "matmul" [i: parallel n, j: parallel 96, k: reduction m] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<n, 96>>
  }
}"""

STACK = """
builtin.module {
  loop.kernel @k symbols [n, m] (%a: tensor<3x?x?xf32, #sym.dims<3, n, m>>, %b: tensor<3x?x96xf32, #sym.dims<3, m, 96>>)
      -> (tensor<?x96xf32, #sym.dims<n, 96>>) {
    %c = loop.nest "heads" [i: parallel n, j: parallel 96, h: reduction 3, k: reduction m]
        -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %a[h, i, k] : f32
      %y = loop.read %b[h, k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<n, 96>>
  }
}"""

CONVOLUTION = """
builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x7x6xf32, #sym.dims<n + 2, 7, 6>>, %w: tensor<3x3x6x20xf32>)
      -> (tensor<?x5x20xf32, #sym.dims<n, 5, 20>>) {
    %c = loop.nest "conv" [
        y: parallel n, x: parallel 5, o: parallel 20, ky: reduction 3, kx: reduction 3, c: reduction 6]
        -> tensor<?x5x20xf32, #sym.dims<n, 5, 20>> {
      %a = loop.read %x[y + ky, x + kx, c] : f32
      %b = loop.read %w[ky, kx, c, o] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [y, x, o]
    }
    loop.return %c : tensor<?x5x20xf32, #sym.dims<n, 5, 20>>
  }
}"""

EXTREMES = """
builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x13xf32, #sym.dims<n, 13>>)
      -> (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>) {
    %m, %s = loop.nest "both" [i: parallel n, k: reduction 13]
        -> tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield max %a at [i], add %a at [i]
    }
    loop.return %m, %s : tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>
  }
}"""

KERNELS = {"matmul": MATMUL, "convolution": CONVOLUTION, "extremes": EXTREMES}
SIZES = ({"n": 11, "m": 37}, {"n": 16, "m": 64}, {"n": 1, "m": 1}, {"n": 3, "m": 0}, {"n": 0, "m": 5})


def said(text: str, words: str) -> str:
    """The kernel with a schedule of its nest."""
    head, arrow, rest = text.partition("\n        ->") if "\n        ->" in text else text.partition("] ->")
    assert arrow
    return f"{head}{']' if arrow == '] ->' else ''} schedule {words}{arrow.lstrip(']')}{rest}"


def check(text: str) -> None:
    plain = kernel_of(parse(text))
    func = schedule(parse(text), SCHEDULE[1:])
    compiled = compile_func(func)
    for sizes in ({s: case[s] for s in plain.symbol_names} for case in SIZES):
        inputs = random_inputs(plain, sizes, np.random.default_rng(0))
        expected = run_kernel(plain, inputs, sizes)
        found = call(func, compiled, inputs, sizes)
        for want, got in zip(expected, found, strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-5 * float(np.abs(want).max(initial=1)), err_msg=f"{sizes}")


@pytest.mark.parametrize(
    "words",
    [
        "[k by 8 into result, i, j vector 16, k]",
        "[i by 8, j by 32, k, i, j vector 16]",
        "[i by 8 threads, k by 16, j by 32, k, i, j vector 16]",
        # GotoBLAS: blocks of depth, each added to the result, and register tiles inside.
        "[j by 96, k by 16 into result, i by 8 threads, i by 4, j by 32, k, i, j vector 16 unroll]",
        "[k by 16 into result, i by 4 tail rest threads, j by 48 tail peel, k, i unroll, j vector 16 unroll]",
        # A tile in registers, its rows a plain loop around them.
        "[i threads, j by 48, k, j vector 16 unroll]",
        "[j by 48 threads, k by 8 into result, i by 4, k, i, j]",
        "[i by 16, i by 8, i by 2 threads, j by 32, j by 16, k by 12, k by 4, i, k, j vector 16]",
    ],
)
def test_orders_of_a_matmul(words: str) -> None:
    check(said(MATMUL, words))


@pytest.mark.parametrize(
    "words",
    [
        # Pixels inside channels, and outputs in registers.
        "[y threads, ky, kx, c, x, o]",
        "[y threads, ky, c by 2, kx, x, c, o vector 4]",
        "[y threads, x by 5, o by 20, ky, kx, c, x unroll, o vector 4 unroll]",
        "[y by 2 threads, c by 3 into result, o by 10, y, ky, kx, c, x, o]",
    ],
)
def test_orders_of_a_convolution(words: str) -> None:
    check(said(CONVOLUTION, words))


@pytest.mark.parametrize(
    "words", ["[i by 4, k by 2, i, k]", "[k by 4 into result, i by 2, k, i]", "[i by 4, k, i unroll]"]
)
def test_orders_of_two_results(words: str) -> None:
    if "unroll" in words:
        with pytest.raises(IgniterError, match="not a constant"):
            check(said(EXTREMES, words))
    else:
        check(said(EXTREMES, words))


@pytest.mark.parametrize(
    "words",
    [
        "[j by 48 threads, i by 8, product(i, j, k) tile [8, 3], i, j vector 16]",
        "[j by 96, j by 48 threads, i by 24, i by 8, product(i, j, k) tile [8, 3], i, j vector 16]",
        "[j by 96, k by 16 into result, i by 24 threads, j by 48, i by 8, product(i, j, k) tile [8, 3], i, j]",
        "[k by 8 into result, i by 4, j by 16 threads, product(i, j, k) tile [4, 1], j vector 16, i]",
        "[i by 8 threads, j by 48, k by 16, product(i, j, k) tile [8, 3], i, j vector 16]",
    ],
)
def test_micro_kernels_in_blocks_of_the_depth(words: str) -> None:
    check(said(MATMUL, words))


@pytest.mark.parametrize(
    "words",
    [
        # What all heads sum is added up in the tile.
        "[j by 48 threads, i by 8, h, product(i, j, k) tile [8, 3], i, j vector 16]",
        "[i by 8 threads, j by 32, h, k by 8, product(i, j, k) tile [8, 2], i, j vector 16 unroll]",
        "[i by 4, j by 16, k by 16, h, product(i, j, k) tile [4, 1], j, i]",
        # In the result.
        "[k by 16 into result, i by 8 threads, j by 48, h, product(i, j, k) tile [8, 3], i, j vector 16]",
        "[h by 2 into result, i by 8, j by 48 threads, h, product(i, j, k) tile [8, 3], i, j vector 16]",
    ],
)
def test_micro_kernels_in_another_reduction(words: str) -> None:
    check(said(STACK, words))


def test_a_reduction_around_tiles_adds_to_the_result() -> None:
    with pytest.raises(IgniterError, match=r"loop 'h' is a reduction around the tiles .* 'into result'"):
        check(said(STACK, "[h, i by 8, j by 48, product(i, j, k) tile [8, 3], i, j]"))
    with pytest.raises(VerifyException, match="loop 'h' is behind the product"):
        check(said(STACK, "[i by 8, j by 48, product(i, j, k) tile [8, 3], i, h, j]"))


LINEAR = (Path(__file__).parents[3] / "docs" / "examples" / "linear.mlir").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("matmul", "relu"),
    [
        (
            "[i by 8 threads fuse 'g', k by 16 into result, j by 32, k, i, j vector 16]",
            "[i by 8 fuse 'g', i, j vector 16]",
        ),
        (
            "[k by 16 into result, i by 8 threads fuse 'g', j by 32, k, i, j vector 16]",
            "[i by 8 fuse 'g', i, j vector 16]",
        ),
        (
            "[j by 48 fuse 'g', k by 16 into result, i by 8, product(i, j, k) tile [8, 3], i, j]",
            "[j by 48 fuse 'g', i, j]",
        ),
        ("[i fuse 'g', k by 8 into result fuse 'h', k, j]", "[i fuse 'g', j]"),
    ],
)
def test_results_that_are_added_to_are_whole_where_they_are_read(matmul: str, relu: str) -> None:
    # The buffer of such a result is kept from one block of the reduction to the next, whatever loop it shrinks into.
    text = LINEAR
    for label, words in (("matmul", matmul), ("relu", relu)):
        head, arrow, rest = text.partition(f'loop.nest "{label}"')
        axes, close, tail = rest.partition("] ->")
        said = words.replace("'", '"')
        text = f"{head}{arrow}{axes}] schedule {said} ->{tail}"
        assert close
    check(text)


def random_schedule(nest: NestOp, draw: random.Random) -> ScheduleAttr:
    """Blocks, an order and words by chance; most are legal."""
    loops: list[Loop] = []
    for axis in nest.axes:
        size, chain = draw.choice((1, 2, 3, 4)), [1]
        while len(chain) < draw.choice((1, 1, 2, 3)):
            chain.append(chain[-1] * size * draw.choice((1, 2)) if size > 1 else chain[-1] * 2)
        loops += [Loop(axis.name, by=n) for n in sorted(set(chain), reverse=True)]
    # Any order in which each axis has its blocks before what is inside of them.
    names = [loop.axis for loop in loops]
    draw.shuffle(names)
    order = [loops.pop(next(k for k, loop in enumerate(loops) if loop.axis == n)) for n in names]
    kinds = {a.name: a.kind for a in nest.axes}
    words: list[Loop] = []
    for k, loop in enumerate(order):
        more: dict[str, object] = {}
        last = loop.by == 1
        if kinds[loop.axis] == "reduction" and not last and draw.random() < 0.7:
            more["into_result"] = all(kinds[x.axis] == "parallel" for x in order[:k])
        if last and loop.axis == nest.axes[-1].name and draw.random() < 0.5:
            more["vector"] = draw.choice((4, 8))
        if kinds[loop.axis] == "parallel" and draw.random() < 0.2:
            more["threads"] = 0
        if last and draw.random() < 0.2:
            more["unroll"] = draw.choice((2, 3))
        words.append(Loop(loop.axis, by=loop.by, **more))  # type: ignore[arg-type]
    return ScheduleAttr(words)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_random_orders_are_right_or_refused(name: str) -> None:
    draw = random.Random(name)
    right = refused = 0
    while right < 6:
        (nest,) = kernel_of(parse(KERNELS[name])).nests
        words = str(random_schedule(nest, draw))
        try:
            check(said(KERNELS[name], words))
            right += 1
        except (IgniterError, VerifyException) as error:
            assert str(error)
            refused += 1
            assert refused < 100, f"most random orders are refused, the last with: {error}"


def test_text_round_trip() -> None:
    words = (
        '[j by 96 tail peel threads 4 fuse "g", k by 16 into result, j by 48, i by 8, product(i, j, k) tile [8, 3], '
        "i unroll 2, j vector 16 accumulators 2 unroll]"
    )
    steps = (
        Loop("j", by=96, tail="peel", threads=4, fuse="g"),
        Loop("k", by=16, into_result=True),
        Loop("j", by=48),
        Loop("i", by=8),
        Product("i", "j", "k", (8, 3)),
        Loop("i", unroll=2),
        Loop("j", vector=16, accumulators=2, unroll=0),
    )
    assert str(ScheduleAttr(steps)) == words
