"""Every micro-kernel against numpy: all kinds, all numbers of rows, all depths, on every CPU that there is here."""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from igniter.analysis.structured.contractions import WIDENED, WIDENED_ROWS, WIDENED_STRIPE, tile_size
from igniter.backends.cpu import direct_tiles, half_tiles, tile_assembly, widened_tiles
from igniter.backends.cpu.assembly import Listing
from igniter.backends.cpu.builder import Builder, LlvmModule, flatten
from igniter.backends.cpu.codegen import compile_assembly, compile_object, link_modules
from igniter.backends.cpu.jit import CompiledFunc, compile_ir
from igniter.backends.cpu.llvm_types import I64, PTR
from igniter.backends.cpu.matrix_products import INSTRUCTIONS
from igniter.backends.cpu.target import Target, target_of
from igniter.backends.cpu.tile_bodies import TileKind, TileSize
from igniter.backends.cpu.tile_calls import PARAMETERS
from igniter.backends.cpu.tile_kernels import (
    KINDS,
    declaration,
    emit_tile_kernel,
    parse_name,
    required,
    tile_name,
    with_tile_kernels,
)
from igniter.backends.cpu.tile_registers import REFUSED, STATE
from igniter.errors import IgniterError

from .emulator import EmulatedFunc, is_emulated
from .qemu import QemuFunc, missing_qemu
from .test_codegen import undefined_symbols
from .tile_emulator import TARGET, emulated_kernel, tiles

Array = np.ndarray

X86 = (
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v3+avxvnni",
    "x86-64-v4",
    "x86-64-v4+avx512bf16",
    "x86-64-v4+avx512vnni",
    "native",
)
ARM = ("aarch64", "aarch64+dotprod", "aarch64+dotprod+i8mm+bf16")
# The tiles that schedules have (`igniter.analysis.structured.contractions.tile_size`).
SIZES = {64: ((8, 3), (12, 2), (12, 1)), 32: ((6, 1), (4, 1), (2, 2)), 16: ((2, 1), (6, 1))}
DEPTHS = (0, 1, 3, 4, 5, 64, 100)

NUMBERS = {
    "f32": (np.dtype(np.float32),) * 3,
    "f64": (np.dtype(np.float64),) * 3,
    "f32f16": (np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.float32)),
    "f16": (np.dtype(np.float16), np.dtype(np.float16), np.dtype(np.float32)),
    "f32bf16": (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)),
    "bf16": (np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)),
    "i16": (np.dtype(np.int16), np.dtype(np.int16), np.dtype(np.int32)),
    "u8i8": (np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.int32)),
    "i8i8": (np.dtype(np.int8), np.dtype(np.int8), np.dtype(np.int32)),
}
"""The types of `a`, `b` and `c` of a kind."""


def runs_here(target: str) -> bool:
    """True if this machine can run code for the target; Arm's is emulated."""
    if is_emulated(target) or target == "native":
        return True
    wanted, here = target_of(target), target_of("native")
    extra = [f[1:] for f in wanted.features.split(",") if f.startswith("+")]
    return wanted.arch == here.arch and wanted.level <= here.level and all(map(here.has_feature, extra))


def skip_unless_it_runs(kind: str, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"this machine does not run code for {target}")
    if is_young(kind, target) and (reason := missing_qemu()) is not None:
        pytest.skip(reason)


def is_young(kind: str, target: str) -> bool:
    """True if the instructions of a kind are younger than the emulator's CPU."""
    cpu = target_of(target)
    return is_emulated(target) and kind in INSTRUCTIONS and cpu.has_feature(INSTRUCTIONS[kind].feature)


def numbers_of(size: TileSize) -> list[str]:
    """The parameters of a micro-kernel that are no addresses."""
    return [p for p in size.parameters if p not in ("a", "b", "c", "next")]


def ir_of(kind: str, size: TileSize, target: Target) -> str:
    """`@k(buffers = a, b, c, symbols = all other parameters)`: a call of the micro-kernel."""
    module = LlvmModule(target)
    name = tile_name(kind, size, target)
    module.declarations[name] = declaration(name)
    f = Builder(module)
    values: list[str] = []
    buffers, numbers = ("a", "b", "c"), numbers_of(size)
    for parameter in size.parameters:
        kept = "b" if parameter == "next" else parameter
        found = ("buffers", buffers.index(kept), PTR) if kept in buffers else ("symbols", numbers.index(kept), I64)
        place = f.emit(PTR, f"getelementptr i64, ptr %{found[0]}, i64 {found[1]}")
        values.append(f.emit(found[2], f"load {found[2]}, ptr {place.text}").typed)
    f.raw(f"call void @{name}({', '.join(values)})")
    header = "define void @k(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) #0 {"
    module.functions.append("\n".join([header, "entry:", *flatten(f.lines), "  ret void", "}", ""]))
    return module.text()


@cache
def compiled(kind: str, size: TileSize, target: str) -> CompiledFunc | EmulatedFunc:
    cpu, symbols = target_of(target), numbers_of(size)
    if is_emulated(target):
        emulated = QemuFunc if is_young(kind, target) else EmulatedFunc
        return emulated("k", with_tile_kernels(ir_of(kind, size, cpu), cpu), cpu, symbols)
    return compile_ir("k", ir_of(kind, size, cpu), target, symbols)


class Guarded:
    """Arrays that each end right before a page that cannot be touched."""

    PAGES = 16

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    def copy(self, array: Array) -> Array:
        """The array, at the end of its pages."""
        size = max(self.PAGES, -(-array.nbytes // mmap.PAGESIZE)) * mmap.PAGESIZE
        memory = mmap.mmap(-1, size + mmap.PAGESIZE)
        whole = np.frombuffer(memory, np.uint8)
        status = ctypes.CDLL(None).mprotect(ctypes.c_void_p(whole.ctypes.data + size), mmap.PAGESIZE, 0)
        assert status == 0
        self._maps.append(memory)
        placed = whole[size - array.nbytes : size].view(array.dtype).reshape(array.shape)
        placed[...] = array
        return placed


@dataclass(frozen=True)
class Shape:
    """The layout of a call's operands: `rows` of `a` side by side (`by_columns`) or one after the other."""

    rows: int
    depth: int
    add: bool
    by_columns: bool
    rounded: bool = False
    """True if `a`, of f32, holds numbers of 16 bits."""


def shapes_of(kind: TileKind, size: TileSize) -> Iterator[Shape]:
    for rows in range(1, size.rows + 1):
        for depth in DEPTHS:
            yield Shape(rows, depth, bool((rows + depth) % 2), bool(depth % 2) and kind.group == 1)
    yield Shape(size.rows, 5, True, True)


def check(
    kind: TileKind, size: TileSize, target: str, shape: Shape, pages: Guarded, kernel: CompiledFunc | None = None
) -> None:
    """One call, of `kernel` if given; `a` and `b` end where memory ends, and the bytes between the rows of `c` stay."""
    rng = np.random.default_rng(shape.rows * 1000 + shape.depth)
    group, lanes = kind.group, kind.lanes
    left, right, sums = NUMBERS[kind.name]

    def numbers(dtype: np.dtype, *dims: int) -> Array:
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, dims, endpoint=True).astype(dtype)
        return rng.standard_normal(dims).astype(dtype)

    a = numbers(left, shape.rows, shape.depth, group)
    if shape.rounded:
        a = a.astype(np.float16).astype(left)
    b = numbers(right, size.panels, shape.depth, lanes, group)
    if sums.kind == "i":
        c = rng.integers(-1000, 1000, (shape.rows, size.panels * lanes + 3)).astype(sums)
    else:
        c = numbers(sums, shape.rows, size.panels * lanes + 3)
    wide = np.float64 if sums.kind == "f" else np.int64
    product = np.einsum("rkg,pklg->rpl", a.astype(wide), b.astype(wide)).reshape(shape.rows, -1)
    expected = c.astype(wide)
    expected[:, :-3] = product + (expected[:, :-3] if shape.add else 0)
    expected = expected.astype(sums) if sums.kind == "i" else expected  # Sums of words wrap.
    stored = np.ascontiguousarray(a.transpose(1, 0, 2)) if shape.by_columns else a
    step, sum_bytes = kind.step_bytes, kind.sum_bytes
    a_row, a_depth = (step, step * shape.rows) if shape.by_columns else (step * shape.depth, step)
    buffers = [pages.copy(x) if not is_emulated(target) else x for x in (stored, b, c)]
    (kernel or compiled(kind.name, size, target))(
        *buffers,
        a_row=a_row,
        a_depth=a_depth,
        b_panel=kind.panel_bytes * lanes * shape.depth,
        b_depth=kind.panel_bytes * lanes,
        c_row=sum_bytes * c.shape[1],
        rows=shape.rows,
        depth=shape.depth,
        add=int(shape.add),
    )
    scale = float(np.abs(expected.astype(np.float64)).max(initial=0))
    rtol = 0 if sums.kind == "i" else 1e-13 if kind.name == "f64" else 1e-5
    np.testing.assert_allclose(buffers[2], expected, rtol, rtol * scale, err_msg=f"{kind.name} {size} {shape}")


@pytest.mark.parametrize("target", (*X86, *ARM))
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str, target: str) -> None:
    """The tiles of the schedules, at every number of rows and several depths."""
    skip_unless_it_runs(kind, target)
    pages = Guarded()
    rows, panels = SIZES[target_of(target).vector_bytes][0]
    size = TileSize(rows, panels)
    for shape in shapes_of(KINDS[kind], size):
        if not is_emulated(target) or shape.depth < 64 or shape.rows == rows:
            check(KINDS[kind], size, target, shape, pages)


@pytest.mark.parametrize(
    ("target", "size"),
    [
        *(("x86-64-v3", size) for size in ((6, 1), (2, 2), (1, 3))),
        *(("x86-64-v4", size) for size in ((8, 3), (16, 1), (14, 2), (9, 3), (6, 4), (5, 5), (3, 7))),
    ],
)
@pytest.mark.parametrize("kind", ("f32", "f64", "f32f16", "f32bf16"))
def test_the_loop_in_assembly_is_the_one_of_llvm(
    kind: str, target: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, with the factors of a row side by side and apart, up to as many sums as there are registers for; on
    other machines the code has none."""
    skip_unless_it_runs(kind, target)
    cpu, steps = target_of(target), KINDS[kind]
    if platform.machine() != "x86_64":
        pytest.skip("LLVM reads assembly for the machine that it runs on only")
    (rows, panels), depth = size, 11
    name = tile_name(kind, TileSize(rows, panels), cpu)
    here = emit_tile_kernel(name, cpu)
    monkeypatch.setattr(tile_assembly.platform, "machine", lambda: "aarch64")
    emit_tile_kernel.cache_clear()
    elsewhere = emit_tile_kernel(name, cpu)
    monkeypatch.undo()
    emit_tile_kernel.cache_clear()
    assert "asm sideeffect" in here
    assert "asm sideeffect" not in elsewhere
    rng = np.random.default_rng(5)
    left, right, sums = NUMBERS[kind]
    b = rng.standard_normal((panels, depth, steps.lanes)).astype(right)
    symbols = [p for p in PARAMETERS if p not in ("a", "b", "c", "next")]
    for apart in (1, 3):
        a = rng.standard_normal((rows, depth * apart)).astype(left)
        found: list[Array] = []
        for text in (here, elsewhere):
            c = rng.standard_normal((rows, panels * steps.lanes)).astype(sums)
            run = compile_ir("k", link_modules([ir_of(kind, TileSize(rows, panels), cpu), text]), target, symbols)
            run(
                a, b, c,
                a_row=a.strides[0], a_depth=a.itemsize * apart, b_panel=b.strides[0], b_depth=b.strides[1],
                c_row=c.strides[0], rows=rows, depth=depth, add=0,
            )  # fmt: skip
            found.append(c)
        np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("target", ("aarch64", "x86-64-v3"))
@pytest.mark.parametrize("kind", sorted(WIDENED))
def test_panels_widened_for_many_rows(kind: str, target: str) -> None:
    """Rows of one body and of several, with a rest; no depth, stretches of it and what is left over."""
    skip_unless_it_runs(kind, target)
    pages, size = Guarded(), TileSize(WIDENED_ROWS, 1)
    for rows in (1, WIDENED_STRIPE, WIDENED_STRIPE + 1, 20, WIDENED_ROWS):
        for depth in (0, 1, widened_tiles.STRETCH, 2 * widened_tiles.STRETCH + 5):
            check(KINDS[kind], size, target, Shape(rows, depth, bool((rows + depth) % 2), bool(depth % 2)), pages)


def test_no_panel_is_converted_beside_products() -> None:
    """A loop of multiply-adds for many rows has no conversion; only the bodies of few rows have."""
    cpu = target_of("aarch64")
    name = tile_name("f32f16", TileSize(WIDENED_ROWS, 1), cpu)
    found = Listing(compile_assembly(emit_tile_kernel(name, cpu), cpu)).loops()
    full = ["fcvtl" in "".join(loop.lines) for loop in found if loop.multiply_adds == 4 * WIDENED_STRIPE]
    assert sorted(full) == [False, False, True, True]
    assert sum("fcvtl" in "".join(loop.lines) for loop in found if not loop.multiply_adds) == 1


def skip_without_tiles(kind: str) -> None:
    native = target_of("native")
    if not (native.half_tiles if kind == "bf16" else native.byte_tiles):
        pytest.skip(f"this machine has no tiles for {kind}")


@pytest.mark.parametrize("kind", ("u8i8", "i8i8", "bf16"))
@pytest.mark.parametrize("panels", (1, 2))
def test_direct_tiles(panels: int, kind: str) -> None:
    """With AMX tiles hold 32 rows: all of them, whole depths and what is left over of them."""
    skip_without_tiles(kind)
    pages = Guarded()
    for shape in shapes_of(KINDS[kind], TileSize(32, panels)):
        check(KINDS[kind], TileSize(32, panels), "native", shape, pages)


EMULATED = [("u8i8", 32, 2), ("i8i8", 32, 1), ("i8i8", 32, 2), ("bf16", 32, 1), ("bf16", 32, 2), ("f32f16", 128, 3)]


@pytest.mark.parametrize(("kind", "rows", "panels"), EMULATED)
@pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")
def test_tiles_in_an_emulator(kind: str, rows: int, panels: int) -> None:
    """The code for AMX on any x86-64: tiles of Python. Rows above and below a tile's, and depths with and without a
    remainder; a tile product happens exactly where there are enough rows and steps."""
    size, pages, registers = TileSize(rows, panels), Guarded(), tiles()
    cpu = target_of(TARGET)
    ir = link_modules([ir_of(kind, size, cpu), emulated_kernel(KINDS[kind], size)])
    kernel = compile_ir("k", ir, TARGET, numbers_of(size))
    least = half_tiles.FEWEST if kind == "f32f16" else direct_tiles.FEWEST
    deep = half_tiles.DEEP if kind == "f32f16" else direct_tiles.GROUPS
    for height in sorted({1, least - 1, least, 16, 17, 31, 32, rows}):
        for depth in (0, deep - 1, deep, 2 * deep + 3):
            registers.products = 0
            shape = Shape(height, depth, bool(height % 2), False, kind == "f32f16")
            check(KINDS[kind], size, TARGET, shape, pages, kernel)
            assert (registers.products > 0) == (height >= least and depth >= deep), shape


@pytest.mark.parametrize("kind", ("u8i8", "bf16"))
@pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")
def test_rounds_on_tiles_in_an_emulator(kind: str) -> None:
    """The rows of a window, in tiles of sums that stay in the registers: no round at all, depths with and without a
    remainder, few rows. Calls with the same heights share one configuration."""
    size, cpu, registers, of = TileSize(32, 2, True), target_of(TARGET), tiles(), KINDS[kind]
    ir = link_modules([ir_of(kind, size, cpu), emulated_kernel(of, size)])
    kernel = compile_ir("k", ir, TARGET, numbers_of(size))
    left, right, sums = NUMBERS[kind]
    rng, pages = np.random.default_rng(0), Guarded()
    for rows, depth, rounds in (
        (3, 16, 2),
        (4, 35, 3),
        (14, 16, 3),
        (14, 16, 1),
        (14, 32, 7),
        (30, 33, 2),
        (32, 48, 0),
    ):
        a = rng.integers(0, 9, (rounds, rows, depth, of.group)).astype(left)
        b = rng.integers(-9, 9, (size.panels, rounds, depth, of.lanes, of.group)).astype(right)
        c = rng.integers(-9, 9, (rows, size.panels * of.lanes)).astype(sums)
        add = rows % 4 == 0
        product = np.einsum("srkg,psklg->rpl", a.astype(np.int64), b.astype(np.int64)).reshape(c.shape)
        expected = (product + (c if add else 0)).astype(sums)
        registers.products = registers.configurations = 0
        buffers = [pages.copy(x) for x in (a, b, c)]
        for _ in range(1 if add else 3):
            kernel(
                *buffers,
                a_row=4 * depth,
                a_depth=4,
                b_panel=4 * of.lanes * depth * rounds,
                b_depth=4 * of.lanes,
                c_row=c.strides[0],
                rows=rows,
                depth=depth,
                add=int(add),
                rounds=rounds,
                a_round=4 * depth * rows,
                b_round=4 * of.lanes * depth,
            )
            np.testing.assert_array_equal(buffers[2], expected)
        on_tiles = rows >= direct_tiles.FEWEST and rounds > 0
        assert (registers.products > 0) == on_tiles
        assert registers.configurations <= on_tiles


@pytest.mark.parametrize("special", (np.inf, -np.inf, np.nan))
@pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")
def test_tiles_of_bf16_pass_on_infinities(special: float) -> None:
    size, cpu = TileSize(32, 2), target_of(TARGET)
    ir = link_modules([ir_of("bf16", size, cpu), emulated_kernel(KINDS["bf16"], size)])
    a, b = np.ones((20, 64), ml_dtypes.bfloat16), np.ones((2, 32, 16, 2), ml_dtypes.bfloat16)
    a[3, 5], b[1, 7, 2, 1] = special, 0
    c = np.zeros((20, 32), np.float32)
    steps = {"a_row": 128, "a_depth": 4, "b_panel": 2048, "b_depth": 64, "c_row": 128}
    compile_ir("k", ir, TARGET, numbers_of(size))(a, b, c, **steps, rows=20, depth=32, add=0)
    with np.errstate(invalid="ignore"):
        expected = np.einsum(
            "rk,pkl->rpl", a.astype(np.float32), b.astype(np.float32).swapaxes(2, 3).reshape(2, 64, 16)
        )
    np.testing.assert_array_equal(c, expected.reshape(20, 32))


def half_size(panels: int) -> TileSize:
    if not target_of("native").half_tiles:
        pytest.skip("this machine has no tiles of bf16")
    return TileSize(half_tiles.ROWS, panels)


@pytest.mark.parametrize("panels", range(1, 7))
def test_half_tiles(panels: int) -> None:
    """With AMX an f16 is two bf16, whose products are exact: stretches of depth and what is left over of them, any
    number of rows; and f32 that are no two bf16, which vectors multiply."""
    pages, size = Guarded(), half_size(panels)
    for rows in (1, half_tiles.FEWEST - 1, half_tiles.FEWEST, 16, 17, 33, 64, 127, 128):
        for depth in (0, 31, 32, 33, half_tiles.STRETCH, half_tiles.STRETCH + 32, 2 * half_tiles.STRETCH + 33):
            for rounded in (True, False):
                check(KINDS["f32f16"], size, "native", Shape(rows, depth, bool(depth % 2), False, rounded), pages)
    check(KINDS["f32f16"], size, "native", Shape(40, 64, True, True, True), pages)


@pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")
def test_no_product_of_parts_is_dropped() -> None:
    """The low parts of two f16 multiply to less than 2^-14 of the product, but where sums cancel that is the result.
    Each row is a sum that f64 has exactly and three of the four products of parts do not; subnormal f16, the largest
    ones, and a sum beyond them."""
    size, cpu = TileSize(half_tiles.ROWS, 1), target_of(TARGET)
    ir = link_modules([ir_of("f32f16", size, cpu), emulated_kernel(KINDS["f32f16"], size)])
    one, least, most = 1 + 2.0**-10, 2.0**-24, 65504.0
    sums = [
        ([one, -1.0], [one, 1 + 2.0**-9], 2.0**-20),
        ([one, -1.0, one], [one, one, -(2.0**-10)], 0.0),
        ([1023 * least, -512 * least], [1023 * least, 2044 * least], (1023**2 - 512 * 2044) * 2.0**-48),
        ([most, -most], [most, most - 32], most * 32),
        ([most] * 3, [most] * 3, 3 * most**2),
        ([least, least], [least, -least], 0.0),
    ]
    a, b = np.zeros((2 * len(sums), 32), np.float32), np.zeros((1, 32, 16), np.float16)
    c = np.zeros((len(a), 16), np.float32)
    expected = np.zeros(c.shape)
    for n, (left, right, total) in enumerate(sums):
        a[n, 4 * n : 4 * n + len(left)] = left
        b[0, 4 * n : 4 * n + len(right), 0] = right
        expected[n, 0] = total
        assert total == float(np.dot(np.float64(left), np.float64(right)))
    steps = {"a_row": 128, "a_depth": 4, "b_panel": 1024, "b_depth": 32, "c_row": 64}
    registers = tiles()
    registers.products = 0
    compile_ir("k", ir, TARGET, numbers_of(size))(a, b, c, **steps, rows=len(a), depth=32, add=0)
    assert registers.products > 0
    np.testing.assert_array_equal(c, expected.astype(np.float32))


@pytest.mark.parametrize("special", ("inf", "-inf", "nan", "1.0000001"))
@pytest.mark.parametrize("where", ("left", "right", "both"))
def test_half_tiles_of_numbers_without_parts(where: str, special: str) -> None:
    """An infinity times a part of 0 would be a NaN. What has such a number is multiplied by vectors, stretch by stretch
    and panel by panel; the rest is as exact as ever."""
    size, lanes, depth, rows = half_size(5), 16, 2 * half_tiles.STRETCH + 40, 37
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (rows, depth)).astype(np.float32)
    b = rng.integers(-8, 8, (size.panels, depth, lanes)).astype(np.float16)
    with np.errstate(over="ignore"):
        if where != "right":
            a[5, half_tiles.STRETCH + 3] = special
            a[36, depth - 1] = special
        if where != "left":
            b[1, 2, 7] = b[4, half_tiles.STRETCH, 0] = special
    c = np.zeros((rows, size.panels * lanes), np.float32)
    compiled("f32f16", size, "native")(
        *(a, b, c),
        a_row=4 * depth,
        a_depth=4,
        b_panel=2 * lanes * depth,
        b_depth=2 * lanes,
        c_row=c.strides[0],
        rows=rows,
        depth=depth,
        add=0,
    )
    with np.errstate(invalid="ignore"):
        expected = np.einsum("rk,pkl->rpl", a, b.astype(np.float32), optimize=False).reshape(c.shape)
    np.testing.assert_allclose(c, expected, 1e-6)


def test_a_process_without_tiles_multiplies_halves_by_vectors() -> None:
    size, target = half_size(3), target_of("native")
    ir = with_tile_kernels(ir_of("f32f16", size, target), target)
    known = f"@{STATE} = weak hidden global i32 "
    assert known + "0" in ir
    a, b = np.ones((29, 64), np.float32), np.ones((3, 64, 16), np.float16)
    c = np.zeros((29, 48), np.float32)
    symbols = [p for p in PARAMETERS if p not in ("a", "b", "c", "next")]
    call = compile_ir("k", ir.replace(known + "0", f"{known}{REFUSED}"), "native", symbols)
    steps = {"a_row": 256, "a_depth": 4, "b_panel": 2048, "b_depth": 32, "c_row": 192}
    call(a, b, c, **steps, rows=29, depth=64, add=0)
    assert (c == 64).all()


def test_a_process_without_tiles_multiplies_by_vectors() -> None:
    """Linux may refuse a process the tiles: then the same micro-kernel does without."""
    target = target_of("native")
    if not target.byte_tiles:
        pytest.skip("this machine has no tiles of bytes")
    size = TileSize(32, 2)
    ir = with_tile_kernels(ir_of("u8i8", size, target), target)
    known = f"@{STATE} = weak hidden global i32 "
    assert known + "0" in ir
    symbols = [p for p in PARAMETERS if p not in ("a", "b", "c", "next")]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (29, 80), np.uint8), rng.integers(-128, 128, (2, 20, 16, 4), np.int8)
    steps = {"a_row": 80, "a_depth": 4, "b_panel": 20 * 64, "b_depth": 64, "c_row": 128}
    c = np.zeros((29, 32), np.int32)
    call = compile_ir("k", ir.replace(known + "0", f"{known}{REFUSED}"), "native", symbols)
    call(a, b, c, **steps, rows=29, depth=20, add=0)
    expected = np.einsum("rkg,pklg->rpl", a.reshape(29, 20, 4).astype(int), b.astype(int)).reshape(29, 32)
    np.testing.assert_array_equal(c, expected)


SIGNED = ("x86-64-v3+avxvnni", "x86-64-v4+avx512vnni", "native")


@pytest.mark.parametrize("target", SIGNED)
@pytest.mark.parametrize("panels", (1, 2, 3))
def test_extreme_signed_bytes(panels: int, target: str) -> None:
    """Sums wrap, and are exact: -128 by -128, and factors whose bias is the largest; rows side by side or not."""
    skip_unless_it_runs("i8i8", target)
    kind, size, pages = KINDS["i8i8"], TileSize(8, panels), Guarded()
    for rows in range(1, 9):
        for depth in (1, 7, 16, 17, 33):
            for one, other in ((-128, -128), (-128, 127), (127, -128), (127, 127)):
                add, apart = bool(depth % 2), depth == 17
                a = np.full((rows, depth, 4), one, np.int8)
                b = np.full((panels, depth, kind.lanes, 4), other, np.int8)
                b[:, ::3, ::2] = -1 - b[:, ::3, ::2]
                c = np.full((rows, panels * kind.lanes), np.iinfo(np.int32).max, np.int32)
                expected = np.einsum("rkg,pklg->rpl", a.astype(np.int64), b.astype(np.int64)).reshape(rows, -1)
                expected = (expected + (c if add else 0)).astype(np.int32)
                stored = np.ascontiguousarray(a.transpose(1, 0, 2)) if apart else a
                buffers = [pages.copy(x) for x in (stored, b, c)]
                compiled("i8i8", size, target)(
                    *buffers,
                    a_row=4 if apart else 4 * depth,
                    a_depth=4 * rows if apart else 4,
                    b_panel=64 * depth,
                    b_depth=64,
                    c_row=c.strides[0],
                    rows=rows,
                    depth=depth,
                    add=int(add),
                )
                np.testing.assert_array_equal(buffers[2], expected)


def test_signed_bytes_have_an_instruction() -> None:
    """Each CPU gets its own instruction for signed bytes."""
    for target, wanted in (
        ("x86-64-v3", "vpmaddwd"),
        ("x86-64-v3+avxvnni", "vpdpbusd"),
        ("x86-64-v3+avxvnni+avxvnniint8", "vpdpbssd"),
        ("znver4", "vpdpbusd"),
        ("aarch64+dotprod", "sdot"),
    ):
        cpu = target_of(target)
        assert wanted in compile_assembly(emit_tile_kernel(tile_name("i8i8", TileSize(2, 1), cpu), cpu), cpu)


def test_brain_floats_have_an_instruction() -> None:
    cpu = target_of("aarch64+bf16")
    assert "bfdot" in compile_assembly(emit_tile_kernel(tile_name("bf16", TileSize(2, 1), cpu), cpu), cpu)


@pytest.mark.full
@pytest.mark.parametrize("target", (*X86, *ARM))
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_every_size(kind: str, target: str) -> None:
    skip_unless_it_runs(kind, target)
    for rows, panels in (*(s for sizes in SIZES.values() for s in sizes), (1, 1), (8, 2), (8, 1)):
        for shape in shapes_of(KINDS[kind], TileSize(rows, panels)):
            check(KINDS[kind], TileSize(rows, panels), target, shape, Guarded())


@pytest.mark.parametrize("target", ("x86-64", "x86-64-v3", "native"))
def test_infinities_and_nan(target: str) -> None:
    """0 * inf is NaN in its column only, and so is a NaN in its row and column."""
    size = TileSize(*SIZES[target_of(target).vector_bytes][0])
    lanes = KINDS["f32"].lanes
    a, b = np.ones((2, 5), np.float32), np.ones((size.panels, 5, lanes), np.float32)
    a[0, 2], a[1, 4], b[0, 2, 3], b[0, 1, 5] = 0, np.nan, np.inf, -np.inf
    c = np.full((2, size.panels * lanes), 7, np.float32)
    steps = {"a_row": 20, "a_depth": 4, "b_panel": 4 * 5 * lanes, "b_depth": 4 * lanes, "c_row": c.strides[0]}
    compiled("f32", size, target)(a, b, c, **steps, rows=2, depth=5, add=0)
    with np.errstate(invalid="ignore"):
        expected = np.einsum("rk,pkl->rpl", a, b).reshape(c.shape)
    np.testing.assert_array_equal(c, expected)


def test_no_rows_change_nothing() -> None:
    size = TileSize(*SIZES[target_of("native").vector_bytes][0])
    c = np.full((1, size.panels * 16), 7, np.float32)
    zeros = dict.fromkeys(("a_row", "a_depth", "b_panel", "b_depth", "c_row", "rows", "add"), 0)
    compiled("f32", size, "native")(c, c, c, **zeros, depth=3)
    assert (c == 7).all()


@pytest.mark.parametrize("target", (*X86, *ARM, "neoverse-v2", "sapphirerapids"))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_needed_from_outside(kind: str, target: str) -> None:
    """An object of a caller and its micro-kernel has no undefined symbol: no memset, no fma, no conversion."""
    cpu = target_of(target)
    on_tiles = {
        "u8i8": (TileSize(32, 2), cpu.byte_tiles),
        "bf16": (TileSize(32, 2), cpu.half_tiles),
        "f32f16": (TileSize(half_tiles.ROWS, 3), cpu.half_tiles),
    }
    large, there = on_tiles.get(kind, (TileSize(2, 1), True))
    size = large if there else TileSize(2, 1)
    data = compile_object(with_tile_kernels(ir_of(kind, size, cpu), cpu), cpu)
    assert undefined_symbols(data) == []
    assert undefined_symbols(compile_object(emit_tile_kernel(tile_name(kind, size, cpu), cpu), cpu)) == []


@pytest.mark.parametrize("target", ("x86-64-v3", "x86-64-v4", "sapphirerapids", "znver4"))
@pytest.mark.parametrize("kind", ("f32", "f64", "f32f16", "f32bf16"))
def test_sums_stay_in_registers(kind: str, target: str) -> None:
    """No loop moves a vector to the stack and back: those that did took twice the time."""
    cpu = target_of(target)
    for rows, panels in {tile_size(cpu.vector_bytes, cpu.vector_registers, p, kind) for p in (None, 1, 2, 3, 4)}:
        text = compile_assembly(emit_tile_kernel(tile_name(kind, TileSize(rows, panels), cpu), cpu), cpu)
        found = [loop for loop in loops(text) if "vfmadd" in loop]
        assert len(found) >= rows
        assert not [loop for loop in found if re.search(r"[xyz]mm.*\(%rsp|\(%rsp.*[xyz]mm", loop)]


def loops(assembly: str) -> Iterator[str]:
    """The lines from a label to a jump back to it, the innermost of each."""
    labels: dict[str, int] = {}
    lines = assembly.splitlines()
    for at, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = at
        elif (jump := re.match(r"\tj\w+\s+(\.L\w+)", line)) and jump[1] in labels:
            yield "\n".join(lines[labels[jump[1]] : at])


def test_names() -> None:
    cpu = target_of("x86-64-v3")
    name = tile_name("u8i8", TileSize(6, 1), cpu)
    assert parse_name(name) == (KINDS["u8i8"], TileSize(6, 1))
    assert required(f"{declaration(name)}\n{declaration(name)}\ndeclare void @other()") == [name]
    assert name != tile_name("u8i8", TileSize(6, 1), target_of("x86-64-v4"))
    assert parse_name("igniter.tile.f17.8x3.01234567") is parse_name("memset") is None
    with pytest.raises(
        IgniterError, match=r"'memset' is not the name of a micro-kernel; known: bf16, f16, f32, f32bf16"
    ):
        emit_tile_kernel("memset", cpu)
