"""Findings of the fuzzer in networks of images: small models that compile wholly and compute what ONNX Runtime does."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.fuzz.graph import Case
from tests.fuzz.images import FUSIONS, PLAIN
from tests.fuzz.run import run_case

ALONE = FUSIONS[-1]
TOGETHER = FUSIONS[-2]


def check(
    text: str, *shapes: tuple[int, ...], fusion: str = ALONE, left: int | None = None, tiles: bool = False
) -> None:
    """Runs a graph of an input `x`, whose initializers `w..` are made up, at several shapes; `left` is how many nodes
    are left to ONNX Runtime. With `tiles` convolutions are computed in tiles wherever they can be."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> {text}')
    rng = np.random.default_rng(0)
    for k, node in enumerate(model.graph.node):
        node.name = f"node{k}"
    for weight in model.graph.initializer:
        if weight.name.startswith("w"):
            weight.ClearField("float_data")
            weight.raw_data = rng.standard_normal(list(weight.dims)).astype(np.float32).tobytes()
    feeds = tuple({"x": rng.standard_normal(shape).astype(np.float32)} for shape in shapes)
    found = run_case(Case(int(tiles), model, feeds, tuple({} for _ in shapes), fusion))
    assert (found.status, found.message, found.dropped) == ("ok", "", ())
    assert left is None or found.left == left


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_of_sizes_that_a_run_knows(pad: str, stride: int) -> None:
    """Neither side of what is added is negative, which the lowering of the Pad has to know."""
    check(
        f"""g (float[n, 4, h, w] x) => (float[] y) <float[4, 4, 3, 3] w0 = {{0}}> {{
            a = Relu (x)
            y = Conv <auto_pad = "{pad}", strides = [{stride}, {stride}]> (a, w0)
        }}""",
        (1, 4, 5, 8),
        (2, 4, 1, 6),
        fusion=TOGETHER,
    )


def test_same_padding_beside_a_wider_rim() -> None:
    """What `SAME` padding adds hangs on the dims of the image, not on those of the tensor that is stored."""
    check(
        """g (float[1, 4, 5, 8] x) => (float[] y, float[] z) <float[4, 4, 3, 3] w0 = {0}, float[4, 4, 7, 7] w1 = {0}> {
            y = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w0)
            z = Conv <pads = [3, 3, 3, 3]> (x, w1)
        }""",
        (1, 4, 5, 8),
    )


def test_dims_that_are_products_are_told() -> None:
    """Places in a row: their number is a product of sizes, which the operand that it comes from still has to tell."""
    check(
        """g (float[n, 17, h, w] x) => (float[] z) <float[5, 17, 4, 7] w0 = {0}, float[15, 1, 1, 1] w1 = {0},
                float[15, 15] w2 = {0}, int64[3] flat = {0, 15, -1}> {
            a = Conv <pads = [1, 3, 1, 3]> (x, w0)
            b = LeakyRelu (a)
            c = Conv <group = 5, strides = [3, 1]> (b, w1)
            d = Reshape (c, flat)
            e = Transpose <perm = [0, 2, 1]> (d)
            z = MatMul (e, w2)
        }""",
        (1, 17, 9, 5),
        (2, 17, 6, 3),
        fusion=PLAIN,
    )


def test_images_with_a_rim_that_is_skipped() -> None:
    """Of an image that is smaller than its own rim nothing is asked that a size could answer with a negative number."""
    check(
        """g (float[1, 8, h, h] x) => (float[] y, float[] z) <float[4, 8, 2, 2] w0 = {0}, float[3, 4, 3, 3] w1 = {0}> {
            a = Conv (x, w0)
            b = Relu (a)
            y = Conv <pads = [1, 0, 3, 0]> (b, w1)
            z = Tanh (b)
        }""",
        (1, 8, 6, 6),
        (1, 8, 4, 4),
    )


@pytest.mark.slow
def test_images_are_resized_in_the_layout_they_have() -> None:
    """No node of a network that resizes is left to ONNX Runtime, to which the image would have to change its layout."""
    check(
        """g (float[n, 8, h, w] x) => (float[] z) <float[8, 8, 3, 3] w0 = {0}, float[4] twice = {1, 1, 2, 2},
                float[4] half = {1, 1, 0.5, 0.5}> {
            a = Conv <pads = [1, 1, 1, 1]> (x, w0)
            b = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (a, , twice)
            c = Resize <mode = "linear"> (b, , twice)
            d = Resize <mode = "linear"> (c, , half)
            z = Conv <pads = [1, 1, 1, 1]> (d, w0)
        }""",
        (1, 8, 7, 5),
        (2, 8, 1, 4),
        fusion=PLAIN,
        left=0,
    )


@pytest.mark.slow
def test_what_follows_tiles_along_sizes_that_a_run_knows() -> None:
    """A Resize reads tiles at places along sizes, which are no axes of it: it is no part of the band, and the author of
    schedules leaves it rather than fail."""
    check(
        """g (float[2, 48, h, w] x) => (float[] y, float[] z)
           <float[48, 48, 3, 3] w0 = {0}, float[48] w1 = {0}, float[4] scales = {1, 1, 3, 3}> {
            c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w0, w1)
            y = Max (c, x)
            z = Resize <coordinate_transformation_mode = "pytorch_half_pixel", mode = "linear"> (c, , scales)
        }""",
        (2, 48, 9, 2),
        (2, 48, 3, 5),
        (2, 48, 11, 4),
        fusion=TOGETHER,
        left=0,
    )


@pytest.mark.slow
def test_what_joins_two_convolutions_in_tiles() -> None:
    """A Concat can work on the tiles of both: it is scheduled with the last of them, once."""
    check(
        """g (float[3, 48, h, w] x) => (float[] y)
           <float[20, 20, 3, 3] w0 = {0}, float[28, 28, 3, 3] w1 = {0}, int64[2] sizes = {20, 28}> {
            a = Elu (x)
            b, c = Split <axis = 1> (a, sizes)
            d = Conv <pads = [1, 1, 1, 1]> (b, w0)
            e = Conv <pads = [1, 1, 1, 1]> (c, w1)
            y = Concat <axis = 1> (e, d)
        }""",
        (3, 48, 9, 2),
        (3, 48, 3, 5),
        (3, 48, 11, 14),
        fusion=TOGETHER,
        left=0,
        tiles=True,
    )
