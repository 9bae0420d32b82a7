"""Tiles of one panel: a multiply-add with AVX-512 reads the factor of its row itself. Their results and their code."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

import numpy as np
import pytest

from igniter.backends.cpu.assembly import AssemblyLoop, Listing
from igniter.backends.cpu.codegen import compile_assembly
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.tile_bodies import TileSize
from igniter.backends.cpu.tile_kernels import KINDS, emit_tile_kernel, tile_name

from .test_tile_kernels import NUMBERS, Guarded, Shape, check, compiled, skip_unless_it_runs

ROWS = 14
"""As many as schedules have."""

TARGETS = ("x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16", "native")
MULTIPLY = r"v(fmadd231[ps][sd]|dpbf16ps)"
FROM_MEMORY = r"\(.*\)\{1to(16|8)\}"

FLOATS = pytest.mark.parametrize("kind", ("f32", "f64", "f32f16"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ("f32", "f64", "f32f16", "bf16"))
def test_every_number_of_rows(kind: str, target: str) -> None:
    """At depths of no, part of an and many iterations, with the factors of a row side by side and apart, on new sums
    and old."""
    skip_unless_it_runs(kind, target)
    pages = Guarded()
    for rows in range(1, ROWS + 1):
        for depth in (0, 1, 3, 4, 7, 8, 101):
            for apart in (False, True):
                add = bool((rows + depth + apart) % 2)
                check(KINDS[kind], TileSize(ROWS, 1), target, Shape(rows, depth, add, apart), pages)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rounds", (0, 1, 3))
@FLOATS
def test_rounds(kind: str, rounds: int, target: str) -> None:
    """Sums over rounds of a depth, which begin so much further on in both operands."""
    skip_unless_it_runs(kind, target)
    size, lanes = TileSize(ROWS, 1, rounds=True), KINDS[kind].lanes
    left, right, sums = NUMBERS[kind]
    rng = np.random.default_rng(rounds)
    for rows in (1, 6, 12, ROWS):
        for depth in (0, 3, 6, 9):
            a = rng.standard_normal((rounds, rows, depth)).astype(left)
            b = rng.standard_normal((rounds, depth, lanes)).astype(right)
            c = rng.standard_normal((rows, lanes)).astype(sums)
            expected = np.einsum("srk,skl->rl", a.astype("f8"), b.astype("f8"))
            compiled(kind, size, target)(
                *(a, b, c),
                a_row=a.strides[1],
                a_depth=a.itemsize,
                b_panel=b.strides[0],
                b_depth=b.strides[1],
                c_row=c.strides[0],
                rows=rows,
                depth=depth,
                add=0,
                rounds=rounds,
                a_round=a.strides[0],
                b_round=b.strides[0],
            )
            np.testing.assert_allclose(c, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("special", (np.inf, -np.inf, np.nan))
@pytest.mark.parametrize("target", TARGETS)
@FLOATS
def test_infinities_and_nan(kind: str, target: str, special: float) -> None:
    """They stay in their row, in their column, and where 0 meets them there is a NaN."""
    skip_unless_it_runs(kind, target)
    lanes, depth = KINDS[kind].lanes, 9
    left, right, sums = NUMBERS[kind]
    for rows in (6, 12, ROWS):
        a, b = np.ones((rows, depth), left), np.ones((depth, lanes), right)
        a[1, 3], a[rows - 1, 8], a[2, 5], b[5, 3] = special, special, 0, special
        c = np.full((rows, lanes), 7, sums)
        steps = {"a_row": a.strides[0], "a_depth": a.itemsize, "b_panel": b.nbytes, "b_depth": b.strides[0]}
        compiled(kind, TileSize(ROWS, 1), target)(a, b, c, **steps, c_row=c.strides[0], rows=rows, depth=depth, add=0)
        with np.errstate(invalid="ignore"):
            expected = np.einsum("rk,kl->rl", a.astype("f8"), b.astype("f8"))
        np.testing.assert_array_equal(c, expected)


def loops(kind: str, rows: int, target: str, panels: int = 1) -> Iterator[AssemblyLoop]:
    """The loops of multiply-adds of a tile."""
    cpu = target_of(target)
    text = compile_assembly(emit_tile_kernel(tile_name(kind, TileSize(rows, panels), cpu), cpu), cpu)
    return (loop for loop in Listing(text).loops() if count(loop, MULTIPLY))


def count(loop: AssemblyLoop, instruction: str, operand: str = "") -> int:
    return sum(bool(re.match(rf"\s+{instruction}\s+.*{operand}", line)) for line in loop.lines)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        *((kind, target) for kind in ("f32", "f64", "f32f16") for target in ("x86-64-v4", "znver4", "sapphirerapids")),
        *(("bf16", target) for target in ("x86-64-v4+avx512bf16", "znver4", "sapphirerapids")),
    ],
)
def test_multiply_adds_read_their_factors(kind: str, target: str) -> None:
    """All of them, in the loops over four steps and over what is left of them, and no vector is on the stack; fewer
    rows than six take turns."""
    if platform.machine() != "x86_64":
        pytest.skip("LLVM reads assembly for the machine that it runs on only")
    found = [loop for loop in loops(kind, ROWS, target) if count(loop, MULTIPLY) >= 6]
    assert {count(loop, MULTIPLY) for loop in found} >= {*range(6, ROWS + 1)}
    if kind != "bf16":
        assert {count(loop, MULTIPLY) for loop in found} >= {4 * rows for rows in range(6, ROWS + 1)}
    for loop in found:
        assert count(loop, MULTIPLY, FROM_MEMORY) == count(loop, MULTIPLY)
        assert not count(loop, r"v\w*broadcast\w*") and not loop.spills


@pytest.mark.parametrize(("target", "panels", "rows"), [("x86-64-v3", 1, 6), ("x86-64-v4", 2, 12), ("znver4", 3, 8)])
@FLOATS
def test_a_factor_for_several_vectors_is_read_once(kind: str, target: str, panels: int, rows: int) -> None:
    """By a broadcast, in the loop over four steps."""
    if platform.machine() != "x86_64":
        pytest.skip("LLVM reads assembly for the machine that it runs on only")
    columns = panels * (2 if target == "x86-64-v3" else 1)
    found = [loop for loop in loops(kind, rows, target, panels) if count(loop, MULTIPLY) == 4 * rows * columns]
    assert len(found) >= 2
    for loop in found:
        assert not count(loop, MULTIPLY, FROM_MEMORY) and not loop.spills
        assert count(loop, r"vbroadcasts[sd]") == 4 * rows
