"""Convolutions of small images on AMX tiles: all rows of an image are one axis, with the tiles in Python."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from igniter.backends.cpu import direct_tiles
from igniter.dialects.loop import TileProductOp
from igniter.schedules.products import equal_blocks

from .test_tile_kernels import Guarded, runs_here
from .tile_emulator import TARGET, compiled_on_tiles, scheduled_for_tiles, tiles

Array = np.ndarray

pytestmark = pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")


def convolution(size: int, window: int, stride: int, channels: int, kind: str) -> tuple[str, int]:
    """Returns the kernel of a convolution without bias, and ReLU, of a padded image with channels last, and the width
    of the image."""
    group, (a, b, c, mul, widen) = (2, ("bf16", "bf16", "f32", "mulf", ("extf", "extf")))
    if kind == "u8i8":
        group, (a, b, c, mul, widen) = 4, ("ui8", "i8", "i32", "muli", ("extui", "extsi"))
    wide = (size - 1) * stride + window
    depth = window * channels
    image = f"tensor<?x{wide}x{wide}x{channels}x{a}, #sym.dims<b, {wide}, {wide}, {channels}>>"
    line = f"tensor<?x{wide}x{wide * channels}x{a}, #sym.dims<b, {wide}, {wide * channels}>>"
    weight = f"tensor<2x{window}x{depth // group}x16x{group}x{b}>"
    out = f"tensor<?x{size}x{size}x32x{c}, #sym.dims<b, {size}, {size}, 32>>"
    axes = f"n: parallel b, y: parallel {size}, x: parallel {size}, o: parallel 32"
    zero, top = ("0.0", "maximumf") if c == "f32" else ("0", "maxsi")
    step = f"{stride}*y" if stride > 1 else "y"
    return (
        f"""
        loop.kernel @conv symbols [b] (%image: {image}, %w: {weight}) -> ({out}) {{
          %lines = loop.view %image : {image} to {line}
          %c = loop.nest "conv" [{axes}, r: reduction {window}, k: reduction {depth}] -> {out} {{
            %a = loop.read %lines[n, {step} + r, {stride * channels}*x + k] : {a.replace("ui", "i")}
            %e = arith.{widen[0]} %a : {a.replace("ui", "i")} to {c}
            %f = loop.read %w[o floordiv 16, r, k floordiv {group}, o mod 16, k mod {group}] : {b}
            %g = arith.{widen[1]} %f : {b} to {c}
            %p = arith.{mul} %e, %g : {c}
            loop.yield add %p at [n, y, x, o]
          }}
          %o = loop.nest "relu" [{axes}] -> {out} {{
            %a = loop.read %c[n, y, x, o] : {c}
            %z = arith.constant {zero} : {c}
            %m = arith.{top} %a, %z : {c}
            loop.yield none %m at [n, y, x, o]
          }}
          loop.return %o : {out}
        }}""",
        wide,
    )


def check(size: int, window: int, stride: int, channels: int, kind: str) -> None:
    text, wide = convolution(size, window, stride, channels, kind)
    func = scheduled_for_tiles(text)
    (product,) = [op for op in func.walk() if isinstance(op, TileProductOp)]
    assert product.tile == (32, 2)
    run, pages, registers = compiled_on_tiles(func), Guarded(), tiles()
    rng = np.random.default_rng(size)
    left, right, sums = (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32)
    if kind == "u8i8":
        left, right, sums = np.uint8, np.int8, np.int32
    weight = rng.integers(-9, 9, (window, window, channels, 32))
    group = 4 if kind == "u8i8" else 2
    packed = weight.reshape(window, -1, group, 2, 16).transpose(3, 0, 1, 4, 2)
    for batch in (1, 3):
        image = rng.integers(0, 9, (batch, wide, wide, channels))
        found = np.full((batch, size, size, 32), 7, sums)
        registers.products = 0
        buffers = [pages.copy(np.ascontiguousarray(x)) for x in (image.astype(left), packed.astype(right), found)]
        run(*buffers, b=batch)
        places = np.lib.stride_tricks.sliding_window_view(image, (window, window), (1, 2))[:, ::stride, ::stride]
        expected = np.maximum(np.einsum("nyxcrk,rkco->nyxo", places, weight), 0)
        np.testing.assert_array_equal(buffers[2], expected.astype(sums))
        rows = (size - 1) * wide + size
        if window > 1 and size <= 16 and -(-rows // 16) <= size:
            blocks, rest = divmod(rows, 32)
            halves = 2 * blocks + (-(-rest // 16) if rest >= direct_tiles.FEWEST else 0)
            # Two panels; the depth of a round in tiles of 64 bytes.
            steps = window * channels * (4 // group) // 64
            assert registers.products == batch * halves * 2 * window * steps


@pytest.mark.slow
@pytest.mark.parametrize(("size", "kind"), ((7, "bf16"), (5, "u8i8")))
def test_rows_of_an_image(size: int, kind: str) -> None:
    """Windows of 3 x 3: the padding between rows is multiplied with them, and nothing beyond the image is read."""
    check(size, 3, 1, 64, kind)


def test_equal_blocks() -> None:
    found = {rows: equal_blocks(rows, 32) for rows in (1, 31, 32, 33, 48, 56, 60, 64, 84, 197)}
    assert found == {1: 32, 31: 32, 32: 32, 33: 32, 48: 32, 56: 28, 60: 30, 64: 32, 84: 28, 197: 32}


@pytest.mark.full
def test_rows_in_equal_blocks() -> None:
    check(56, 3, 1, 32, "bf16")


@pytest.mark.full
@pytest.mark.parametrize("kind", ("bf16", "u8i8"))
@pytest.mark.parametrize("size", (2, 3, 7, 14, 15, 16, 17))
@pytest.mark.parametrize(("window", "stride"), ((1, 1), (3, 1), (3, 2), (5, 1), (1, 2)))
def test_rows_of_images(size: int, kind: str, window: int, stride: int) -> None:
    check(size, window, stride, 64, kind)
