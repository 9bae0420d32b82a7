"""Arm's matrix instructions: against numpy, what micro-kernels mean and dot products, run by qemu; and their code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from igniter.analysis.structured.contractions import PAIRED, PAIRED_ROWS, TALL, tile_size
from igniter.backends.cpu import tile_kernels
from igniter.backends.cpu.assembly import AssemblyLoop, Listing
from igniter.backends.cpu.codegen import compile_assembly, link_modules
from igniter.backends.cpu.matrix_products import INSTRUCTIONS
from igniter.backends.cpu.paired_panels import STRETCH, WINDOW
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.tile_bodies import TileSize
from igniter.backends.cpu.tile_kernels import KINDS, emit_tile_kernel, tile_name
from igniter.verification.interp.structured import run_kernel

from .qemu import QemuFunc
from .test_tile_kernels import (
    NUMBERS,
    Guarded,
    Shape,
    check,
    compiled,
    ir_of,
    is_young,
    numbers_of,
    skip_unless_it_runs,
)

Array = np.ndarray

TARGET = "aarch64+dotprod+i8mm+bf16"
OTHERS = ("neoverse-n2", "neoverse-v1", "neoverse-v2", "neoverse-v3", "aarch64+i8mm+bf16")
NAMES = {"u8i8": "usmmla", "i8i8": "smmla", "bf16": "bfmmla"}
DOTS = {"u8i8": "sudot", "i8i8": "sdot", "bf16": "bfdot"}

KIND = pytest.mark.parametrize("kind", INSTRUCTIONS)


def numbers(rng: np.random.Generator, dtype: np.dtype, *dims: int) -> Array:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, dims, endpoint=True).astype(dtype)
    return rng.standard_normal(dims).astype(dtype)


def call(kind: str, size: TileSize, a: Array, b: Array, c: Array, add: bool = False) -> Array:
    """The contents of `c` after a call with dense operands; with rounds these are the first dim of `a` and of `b`."""
    skip_unless_it_runs(kind, TARGET)
    result = c.copy()
    rounds = {"rounds": len(a), "a_round": a.strides[0], "b_round": b.strides[0]} if size.rounds else {}
    compiled(kind, size, TARGET)(
        *(a, b, result),
        a_row=a.strides[-3],
        a_depth=a.strides[-2],
        b_panel=b.strides[-4],
        b_depth=b.strides[-3],
        c_row=c.strides[0],
        rows=a.shape[-3],
        depth=a.shape[-2],
        add=int(add),
        **rounds,
    )
    return result


@pytest.mark.slow
@KIND
@pytest.mark.parametrize("size", (TileSize(6, 1), TileSize(5, 2)))
def test_every_number_of_rows(kind: str, size: TileSize) -> None:
    """At depths of no, one, pairs of and odd groups, with rows side by side and apart, on new sums and old."""
    skip_unless_it_runs(kind, TARGET)
    for rows in range(1, size.rows + 1):
        for depth in (0, 1, 2, 3, 4, 7, 64, 101):
            for apart in (False, True):
                shape = Shape(rows, depth, bool((rows + depth + apart) % 2), apart)
                check(KINDS[kind], size, TARGET, shape, Guarded())


@KIND
def test_panels_interleaved_for_many_rows(kind: str) -> None:
    """Rows that interleave in registers, and those of stripes with a rest of each size; no depth, odd ones, stretches
    and what is left over."""
    skip_unless_it_runs(kind, TARGET)
    depths = (0, 1, 7, 64, STRETCH, STRETCH + 1, 2 * STRETCH + 5)
    few = TALL[kind].few
    for n, rows in enumerate((1, few, *range(few + 1, few + 7), PAIRED_ROWS)):
        for depth in (depths[(2 * n) % 7], *((0, 2 * STRETCH + 5) if rows == PAIRED_ROWS else ())):
            check(KINDS[kind], TileSize(PAIRED_ROWS, 1), TARGET, Shape(rows, depth, n % 2 == 0, n % 3 == 0), Guarded())


@KIND
def test_a_tall_tile_without_the_instructions(kind: str) -> None:
    """A schedule for another CPU: the usual bodies, six rows at a time."""
    name = tile_name(kind, TileSize(PAIRED_ROWS, 1), target_of("x86-64-v3"))
    assert f"@{name}.narrow.6(" in emit_tile_kernel(name, target_of("x86-64-v3"))
    skip_unless_it_runs(kind, "x86-64-v3")
    for rows, depth in ((1, 3), (6, 4), (20, 9)):
        shape = Shape(rows, depth, rows > 1, False)
        check(KINDS[kind], TileSize(PAIRED_ROWS, 1), "x86-64-v3", shape, Guarded())


@KIND
def test_what_is_meant(kind: str) -> None:
    """As the interpreter runs the meaning."""
    size, meaning = TileSize(6, 2), KINDS[kind].kernel.facts
    rng = np.random.default_rng(1)
    left, right, sums = NUMBERS[kind]
    for rows, depth in ((2, 1), (3, 6), (6, 9)):
        a = numbers(rng, left, rows, depth, meaning.group)
        b = numbers(rng, right, size.panels, depth, meaning.lanes, meaning.group)
        c = np.zeros((rows, size.panels * meaning.lanes), sums)
        (meant,) = run_kernel(meaning.kernel, [a, b])
        tolerance = 0 if sums.kind == "i" else 1e-5
        np.testing.assert_allclose(call(kind, size, a, b, c), meant.reshape(c.shape), tolerance, tolerance)


@KIND
@pytest.mark.parametrize("rounds", (0, 1, 3))
def test_rounds(kind: str, rounds: int) -> None:
    """Sums stay in registers over an outer sum, whose depths may be odd."""
    group, lanes = KINDS[kind].group, KINDS[kind].lanes
    rng = np.random.default_rng(rounds)
    left, right, sums = NUMBERS[kind]
    # The last panels exceed the buffer for interleaved ones, if there are two rounds or more.
    for rows, depth in ((1, 3), (2, 5), (5, 1), (6, 8), (6, 0), (20, 3), (13, 8), (20, 0), (14, WINDOW // 2 + 1)):
        size = TileSize(6 if rows <= 6 else PAIRED_ROWS, 1, True)
        a = numbers(rng, left, rounds, rows, depth, group)
        b = numbers(rng, right, rounds, 1, depth, lanes, group)
        c = rng.integers(-9, 9, (rows, lanes)).astype(sums)
        wide = np.int64 if sums.kind == "i" else np.float64
        expected = np.einsum("srkg,spklg->rpl", a.astype(wide), b.astype(wide)).reshape(c.shape)
        tolerance = 0 if sums.kind == "i" else 1e-5
        for add in (False, True):
            found = call(kind, size, a, b, c, add)
            np.testing.assert_allclose(found, expected + c * add, tolerance, tolerance * (np.abs(expected).max() + 9))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("u8i8", "i8i8"))
def test_extremes_wrap(kind: str) -> None:
    """Sums begin at the ends of i32, and pass them in between too."""
    left, size = np.iinfo(NUMBERS[kind][0]), TileSize(6, 1)
    # An i32 holds 16,448 groups of 255 by -128, and 32,767 of -128 by -128.
    for rows, depth in ((1, 5), (3, 3), (6, 7), (2, 33001), (3, 33002)):
        for one, other in ((left.max, -128), (left.min, -128), (left.max, 127), (left.min, 127)):
            for start in (np.iinfo(np.int32).min, np.iinfo(np.int32).max):
                a = np.full((rows, depth, 4), one, NUMBERS[kind][0])
                b = np.full((1, depth, 16, 4), other, np.int8)
                b[:, :, ::3] = -1 - b[:, :, ::3]
                c = np.full((rows, 16), start, np.int32)
                column = b[0].astype(np.int64).sum((0, 2)) * one
                expected = (column + start).astype(np.int32)
                np.testing.assert_array_equal(call(kind, size, a, b, c, True), np.tile(expected, (rows, 1)))


def test_columns_and_rows_are_kept_apart() -> None:
    """A one in a row, a step and a column is in one sum."""
    rows, depth, size = 5, 3, TileSize(6, 1)
    for row in range(rows):
        for step in range(4 * depth):
            a, b = np.zeros((rows, depth, 4), np.int8), np.zeros((1, depth, 16, 4), np.int8)
            a.reshape(rows, -1)[row, step] = 1
            b[0, step // 4, :, step % 4] = np.arange(1, 17)
            found = call("i8i8", size, a, b, np.full((rows, 16), 99, np.int32))
            assert (found[row] == np.arange(1, 17)).all() and found.sum() == 136


@pytest.mark.parametrize("special", (0.0, np.inf, np.nan, 1e-39))
def test_brain_floats_are_those_of_dot_products(special: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, NaN where those have one, and nowhere else."""
    skip_unless_it_runs("bf16", TARGET)
    if not is_young("bf16", TARGET):
        pytest.skip("the code of both is compared in the emulator")
    size, cpu = TileSize(6, 1), target_of(TARGET)
    name = tile_name("bf16", size, cpu)
    matrices = emit_tile_kernel(name, cpu)
    monkeypatch.setattr(tile_kernels, "has_matrix_products", lambda kind, target: False)
    emit_tile_kernel.cache_clear()
    dots = emit_tile_kernel(name, cpu)
    emit_tile_kernel.cache_clear()
    assert "bfmmla" in matrices and "bfmmla" not in dots
    rng = np.random.default_rng(0)
    call = ir_of("bf16", size, cpu)
    kernels = [QemuFunc("k", link_modules([call, k]), cpu, numbers_of(size)) for k in (matrices, dots)]
    for rows, depth in ((2, 1), (3, 37), (6, 38), (5, 3)):
        a = rng.standard_normal((rows, depth, 2)) * 10.0 ** rng.integers(-3, 4, (depth, 2))
        a, b = (x.astype(ml_dtypes.bfloat16) for x in (a, rng.standard_normal((1, depth, 16, 2))))
        a[rows - 1, depth - 1, 0] = b[0, depth // 2, 3, 1] = special
        steps = {"a_row": a.strides[0], "a_depth": 4, "b_panel": b.strides[0], "b_depth": 64, "c_row": 64}
        found: list[Array] = []
        for kernel in kernels:
            c = np.zeros((rows, 16), np.float32)
            kernel(a, b, c, **steps, rows=rows, depth=depth, add=0)
            found.append(c.view(np.uint32))
        np.testing.assert_array_equal(*found)


def loops(kind: str, size: TileSize, target: str) -> Iterator[AssemblyLoop]:
    cpu = target_of(target)
    text = compile_assembly(emit_tile_kernel(tile_name(kind, size, cpu), cpu), cpu)
    return (loop for loop in Listing(text).loops() if loop.multiply_adds)


def count(loop: AssemblyLoop, instruction: str) -> int:
    return sum(bool(re.match(rf"\s+{instruction}\s", line)) for line in loop.lines)


@KIND
@pytest.mark.parametrize("target", (TARGET, *OTHERS))
def test_the_loop_has_them_and_keeps_its_sums(kind: str, target: str) -> None:
    """In the tiles of schedules: eight products for a pair of rows and a panel, eight `zip` for all rows, and no
    vector on the stack, where the factors of a row lie side by side and where they do not."""
    cpu = target_of(target)
    for rows, panels in {tile_size(cpu.vector_bytes, cpu.vector_registers, p, kind) for p in (None, 1, 2, 3)}:
        assert (rows, panels) == (6, 1)
        found = [loop for loop in loops(kind, TileSize(rows, panels), target) if count(loop, NAMES[kind])]
        assert sorted(count(loop, NAMES[kind]) for loop in found) == [8] * 2 + [16] * 4 + [24] * 4
        for loop in found:
            assert count(loop, r"zip[12]") == 8 and loop.multiply_adds == count(loop, NAMES[kind])
            assert not [line for line in loop.lines if re.search(r"\b[qdv]\d+\b.*\[sp", line)]


@KIND
@pytest.mark.parametrize("target", (TARGET, *OTHERS))
def test_no_panel_is_interleaved_beside_products_of_many_rows(kind: str, target: str) -> None:
    cpu = target_of(target)
    size = TileSize(*tile_size(cpu.vector_bytes, cpu.vector_registers, None, kind, pairs=True))
    assert size == TileSize(PAIRED_ROWS, 1) and kind in PAIRED
    found = list(loops(kind, size, target))
    full = [loop for loop in found if loop.multiply_adds == 24]
    assert sorted(count(loop, r"zip[12]") for loop in full) == [0] * 4 + [8] * 4
    assert not any(re.search(r"\b[qdv]\d+\b.*\[sp", line) for loop in full for line in loop.lines)
    # A store that interleaves, and a load to a lane, take the units of products or of stores twice.
    text = compile_assembly(emit_tile_kernel(tile_name(kind, size, cpu), cpu), cpu)
    assert "st2" not in text and "}[1], [" not in text


@KIND
def test_a_row_alone_has_dot_products(kind: str) -> None:
    found = list(loops(kind, TileSize(1, 1), TARGET))
    assert found and all(count(loop, DOTS[kind]) == loop.multiply_adds for loop in found)


@pytest.mark.parametrize(
    ("target", "kinds"),
    [
        ("aarch64", ""),
        ("aarch64+dotprod", ""),
        ("neoverse-n1", ""),
        ("aarch64+bf16", "bf16"),
        ("aarch64+i8mm", "u8i8 i8i8"),
    ],
)
def test_only_where_the_target_has_them(target: str, kinds: str) -> None:
    cpu, size = target_of(target), TileSize(6, 1)
    texts = {k: emit_tile_kernel(tile_name(k, size, cpu), cpu) for k in KINDS}
    assert [k for k, text in texts.items() if "mmla" in text] == [k for k in KINDS if k in kinds.split()]
