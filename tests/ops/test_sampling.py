"""GridSample, AffineGrid and DeformConv against ONNX Runtime: modes, padding, ranks, places far outside."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import model_of, reference

F32 = np.float32
check = partial(check_exactly, tolerance=3e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(mode: str, padding: str) -> None:
    for corners in (0, 1):
        attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        x, grid = floats(2, 3, 5, 6), floats(2, 3, 4, 2, seed=1)
        check("GridSample", [x, grid], attrs, opset=20, fixed=[2])
        check("GridSample", [x, grid * 5], attrs, opset=20, dynamic=(False,))
        if mode != "cubic":
            volume, points = floats(1, 2, 4, 3, 5), floats(1, 2, 3, 2, 3, seed=1)
            check("GridSample", [volume, points], attrs, opset=20, fixed=[3])


def test_grid_sample_of_other_types_and_opsets() -> None:
    for mode in ("nearest", "bilinear", "bicubic"):
        check("GridSample", [floats(1, 1, 5, 4), floats(1, 3, 3, 2, seed=1)], {"mode": mode}, opset=16)
    wide = [floats(1, 1, 5, 4, dtype=np.float64), floats(1, 3, 3, 2, dtype=np.float64, seed=1)]
    check("GridSample", wide, opset=20, tolerance=1e-12, dynamic=(False,))
    check("GridSample", [floats(1, 2, 3, 4), floats(1, 0, 3, 2)], opset=20)


def test_coordinates_that_are_no_numbers_lie_outside() -> None:
    x, grid, far = floats(1, 2, 3, 4), floats(1, 3, 3, 2), floats(1, 3, 3, 2)
    grid[0, 0, 0], grid[0, 1, 1] = [np.nan, 0.5], [np.inf, -1e30]
    far[0, 0, 0] = far[0, 1, 1] = [99, 99]
    wanted = reference(model_of("GridSample", [x, far], {}, opset=20), {"x0": x, "x1": far})
    check("GridSample", [x, grid], opset=20, expected=wanted)


def test_affine_grid() -> None:
    for corners, size in product((0, 1), ([2, 3, 4, 5], [2, 3, 2, 4, 5])):
        rank = len(size) - 2
        theta = floats(2, rank, rank + 1)
        check(
            "AffineGrid", [theta, np.array(size)], {"align_corners": corners}, opset=20, constant=[1], fixed=[2, 3, 4]
        )
    check("AffineGrid", [floats(1, 2, 3), np.array([1, 1, 1, 3])], {}, opset=20, constant=[1], fixed=[2, 3])


Shape = tuple[int, ...]

DEFORMED: tuple[tuple[Shape, Shape, int, dict[str, Any]], ...] = (
    ((2, 3, 5, 6), (4, 3, 3, 2), 1, {}),
    ((1, 4, 6, 5), (4, 2, 2, 2), 2, {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}),
    ((2, 6, 4, 5), (6, 1, 3, 3), 3, {"group": 6, "pads": [1, 1, 1, 1]}),  # A channel to a group.
    ((1, 8, 4, 3), (8, 2, 1, 1), 1, {"group": 4}),  # A few.
    ((1, 4, 1, 1), (2, 4, 3, 3), 4, {"pads": [1, 1, 1, 1]}),
    ((0, 4, 5, 6), (4, 4, 3, 3), 1, {}),
)


def deformed(data: Shape, weight: Shape, groups: int, attrs: dict[str, Any], dtype: Any = F32) -> list[Any]:
    """The operands of a DeformConv, with places up to some elements outside of the image."""
    pads, strides, dilations = (
        attrs.get(k, d) for k, d in (("pads", [0] * 4), ("strides", [1, 1]), ("dilations", [1, 1]))
    )
    out = [
        (data[2 + k] + pads[k] + pads[k + 2] - dilations[k] * (weight[2 + k] - 1) - 1) // strides[k] + 1 for k in (0, 1)
    ]
    taps = weight[2] * weight[3] * groups
    offset = floats(data[0], 2 * taps, *out, dtype=dtype, seed=1) * 2
    mask = floats(data[0], taps, *out, dtype=dtype, seed=2)
    return [
        floats(*data, dtype=dtype),
        floats(*weight, dtype=dtype, seed=3),
        offset,
        floats(weight[0], dtype=dtype, seed=4),
        mask,
    ]


@pytest.mark.parametrize("data, weight, groups, attrs", DEFORMED)
def test_deform_conv(data: Shape, weight: Shape, groups: int, attrs: dict[str, Any]) -> None:
    operands = deformed(data, weight, groups, attrs)
    attrs = {**attrs, "offset_group": groups}
    check("DeformConv", operands[:3], attrs, opset=19, dynamic=(False,))
    check("DeformConv", operands, attrs, opset=19, dynamic=(False,))


@pytest.mark.slow
def test_deform_conv_of_wide_floats() -> None:
    operands = deformed((2, 4, 5, 6), (4, 2, 3, 3), 2, {"group": 2}, np.float64)
    attrs = {"group": 2, "offset_group": 2}
    check("DeformConv", operands, attrs, opset=22, tolerance=1e-12, dynamic=(False,))


def test_deform_conv_of_half_floats() -> None:
    """ONNX Runtime has none: sums are those of f32, rounded once."""
    halves = [x.astype(np.float16) for x in deformed((1, 4, 5, 6), (4, 4, 3, 3), 2, {})]
    attrs = {"offset_group": 2}
    widened = {f"x{k}": x.astype(F32) for k, x in enumerate(halves)}
    (wanted,) = reference(model_of("DeformConv", list(widened.values()), attrs, opset=22), widened)
    expected = [wanted.astype(np.float16)]
    check("DeformConv", halves, attrs, opset=22, tolerance=1e-3, dynamic=(False,), expected=expected)


def not_finite(operands: list[Any]) -> list[Any]:
    """The operands with places, elements and factors that are no numbers, but for the first element of an image, which
    ONNX Runtime multiplies by 0 for what is outside; and places right on the edges, inside and outside."""
    x, weight, offset, bias, mask = (a.copy() for a in operands)
    x[:, :, 1, 2], x[:, 0, -1, -1] = np.inf, np.nan
    offset[:, 0, 0, 0], offset[:, 1, 1, 0], offset[:, 2, 0, 1] = np.nan, np.inf, -np.inf
    offset[:, 3, 1, 1], offset[:, 4, 1, 1], offset[:, 5, 2, 1] = 1e30, -1e30, 3e9
    offset[:, 6:12, :, 2] = np.round(offset[:, 6:12, :, 2])
    mask[:, 0, 0, 0], mask[:, 1, 1, 1], mask[:, 2, 2, 2] = np.inf, np.nan, -np.inf
    return [x, weight, offset, bias, mask]


def test_deform_conv_of_what_is_not_finite() -> None:
    operands = not_finite(deformed((1, 2, 5, 6), (3, 2, 3, 3), 1, {}))
    with np.errstate(invalid="ignore"):
        check("DeformConv", operands, {}, opset=19, dynamic=(False,))
        check("DeformConv", operands[:3], {}, opset=19, dynamic=(False,))


def deform_model(operands: list[Any], attrs: dict[str, Any]) -> onnx.ModelProto:
    """A DeformConv of a batch whose size is a symbol, and a ReLU."""
    names = ["x", "w", "offset", "b", "mask"][: len(operands)]
    given = dict(zip(names, operands, strict=True))
    nodes = [helper.make_node("DeformConv", names, ["c"], **attrs), helper.make_node("Relu", ["c"], ["y"])]
    code = helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    inputs = [helper.make_tensor_value_info(n, code, ["n", *a.shape[1:]]) for n, a in given.items() if n not in "wb"]
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info("y", code, None)],
        [numpy_helper.from_array(given[n], n) for n in "wb"],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize(
    "channels, outs, group, groups", [(32, 16, 1, 4), (32, 4, 1, 1), (32, 64, 2, 1), (16, 16, 16, 2), (16, 16, 8, 16)]
)
@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_deform_conv_compiled(channels: int, outs: int, group: int, groups: int, dtype: Any) -> None:
    """By default, with its weight packed: whole panels, few columns, groups."""
    attrs = {"group": group, "offset_group": groups, "pads": [1, 1, 1, 1], "strides": [1, 2]}
    weight = (outs, channels // group, 3, 3)
    operands = deformed((2, channels, 9, 8), weight, groups, attrs, dtype)
    model = deform_model(operands, attrs)
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    session = compiled.session(intra_op_num_threads=2)
    for chosen in (operands, not_finite(operands), [a[:0] if k in (0, 2, 4) else a for k, a in enumerate(operands)]):
        feeds: dict[str, Any] = {"x": chosen[0], "offset": chosen[2], "mask": chosen[4]}
        (wanted,) = reference(model, feeds)
        got: Any = cast("Any", session.run(None, feeds)[0])
        tolerance = 2e-5 if dtype is F32 else 1e-12
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_deform_conv_whose_groups_fill_no_vectors_is_compiled() -> None:
    """ONNX Runtime 1.22 has no kernel for it, so a folder that leaves it would not load there."""
    attrs = {"group": 4, "pads": [1, 1, 1, 1]}
    operands = deformed((2, 12, 9, 8), (12, 3, 3, 3), 1, attrs)
    model = deform_model(operands, attrs)
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    feeds: dict[str, Any] = {"x": operands[0], "offset": operands[2], "mask": operands[4]}
    got: Any = compiled.session(intra_op_num_threads=1).run(None, feeds)[0]
    np.testing.assert_allclose(got, reference(model, feeds)[0], rtol=2e-5, atol=2e-5)
