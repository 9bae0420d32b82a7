"""Convolutions against ONNX Runtime: ranks, groups, strides, dilations, padding, odd and single sizes, types."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import refusal

F32 = np.float32
check = partial(check_exactly, tolerance=2e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 9), (4, 3, 3), {}),
    ((1, 3, 9), (4, 3, 3), {"pads": [2, 1], "strides": [2], "dilations": [2]}),
    ((2, 6, 9), (4, 3, 1), {"group": 2}),
    ((2, 4, 7), (4, 1, 3), {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2]}),
    ((2, 4, 8), (4, 1, 4), {"group": 4, "auto_pad": "SAME_LOWER"}),
    ((2, 4, 8), (3, 4, 1), {"strides": [3], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 5, 7), (4, 3, 3, 2), {"pads": [1, 0, 1, 1]}),
    ((2, 3, 5, 7), (5, 3, 1, 1), {}),
    ((1, 4, 6, 5), (6, 2, 3, 3), {"group": 2, "strides": [2, 1], "dilations": [1, 2], "pads": [0, 2, 1, 2]}),
    ((2, 3, 6, 5), (4, 3, 3, 3), {"auto_pad": "VALID", "strides": [2, 3]}),
    ((2, 3, 6, 5), (4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3], "kernel_shape": [3, 3]}),
    ((1, 2, 3, 4, 5), (3, 2, 2, 2, 3), {"pads": [1, 0, 1, 0, 1, 1], "strides": [1, 2, 1]}),
    ((0, 3, 5, 7), (4, 3, 3, 2), {}),
    # Groups of which a vector has several.
    ((1, 24, 6, 5), (24, 4, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    ((2, 16, 5, 4), (32, 1, 3, 3), {"group": 16, "strides": [2, 1]}),
    ((1, 40, 4, 6), (40, 8, 1, 3), {"group": 5, "dilations": [1, 2]}),
    ((1, 6, 9), (12, 1, 3), {"group": 6}),
    ((1, 36, 4, 4), (36, 12, 3, 3), {"group": 3}),
    # Windows of fewer elements than there are results.
    ((2, 1, 95), (32, 1, 10), {"strides": [5]}),
    ((2, 3, 37), (24, 3, 5), {"dilations": [2], "pads": [7, 1]}),
    ((1, 1, 20), (17, 1, 7), {"auto_pad": "SAME_LOWER", "strides": [2]}),
)


@pytest.mark.parametrize("data, weight, attrs", CASES)
def test_conv(data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x, w = floats(*data), floats(*weight, seed=1)
    fixed = {data[1], weight[1], weight[0], *weight[2:]}
    check("Conv", [x, w, floats(weight[0], seed=2)], attrs, fixed=fixed)
    check("Conv", [x, w], attrs, fixed={data[1], weight[1], weight[0]})


@pytest.mark.parametrize("size", [2, 4, 8])
def test_what_is_not_finite_stays_in_its_group(size: int) -> None:
    x = floats(1, 24, 5, 6)
    x[0, 5, 2, 3], x[0, 17, 4, 0], x[0, 18, 0, 0] = np.inf, np.nan, -np.inf
    weight, attrs = floats(24, size, 3, 3, seed=1), {"group": 24 // size, "pads": [1, 1, 1, 1]}
    check("Conv", [x, weight], attrs, fixed={24, size, 3})


def _model_of_groups(size: int, groups: int, depth: int) -> onnx.ModelProto:
    weight = floats(groups * size, depth, 3, 3, seed=1) / np.float32(3 * depth**0.5)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=groups, pads=[1, 1, 1, 1], strides=[1, 2]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(floats(groups * size, seed=2), "b")]
    dims = ["n", groups * depth, "h", "w_"]
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, d) for n, d in (("x", dims), ("y", None)))
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("size", "groups", "depth"),
    [
        *((2, 9, 2), (4, 6, 4), (4, 3, 8), (8, 5, 4), (12, 2, 12), (20, 3, 5), (40, 2, 3), (24, 2, 24)),
        *((3, 8, 3), (3, 5, 4), (3, 3, 5), (5, 5, 5), (6, 3, 2), (7, 4, 8)),
    ],
)
def test_groups_between_other_layers(size: int, groups: int, depth: int, tmp_path: Path) -> None:
    """With channels last, as networks have them: lanes of several groups, some with zeros, or panels that a group does
    not fill. And what runs where no kernel could be made, which has to make the plain weight of the packed one."""
    model = _model_of_groups(size, groups, depth)
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    whole = igniter.load(model).run_passes("cpu-onnx,cpu-fusion,inline-regions,fold-packs")
    whole.save(tmp_path / "plain.onnx")
    plain = make_session(model.SerializeToString(), [])
    for other in (compiled.session(), make_session(str(tmp_path / "plain.onnx"), [])):
        for shape in ((1, 5, 7), (2, 1, 1), (0, 4, 4)):
            x = floats(shape[0], groups * depth, *shape[1:])
            expected = plain.run(None, {"x": x})[0]
            np.testing.assert_allclose(other.run(None, {"x": x})[0], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("groups", "size"), [(1, (2, 9, 7, 19)), (3, (2, 21, 9, 11))])
def test_a_lone_pointwise_convolution(groups: int, size: tuple[int, ...]) -> None:
    """Of few channels, or in groups: the places of the image are the columns, and fill no whole panels."""
    x, w = floats(*size), floats(4 * groups, size[1] // groups, 1, 1, seed=1)
    x[0, 0, 0, 0], x[1, 5, 6, 10] = np.nan, np.inf
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], group=groups), helper.make_node("Tanh", ["c"], ["y"])]
    image, result = helper.make_tensor_value_info("x", 1, size), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "g", [image], [result], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected: Any = make_session(model.SerializeToString(), []).run(None, {"x": x})[0]
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    np.testing.assert_allclose(compiled.session().run(None, {"x": x})[0], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("op", "weight", "attrs"),
    [
        ("Conv", (6, 1, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("Conv", (12, 1, 5, 2), {"pads": [0, 1, 3, 0]}),
        ("ConvTranspose", (6, 1, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ],
)
def test_a_lone_depthwise_convolution(op: str, weight: tuple[int, ...], attrs: dict[str, Any]) -> None:
    """It keeps the model's layout, on an image that its region computes."""
    x, w = floats(2, 6, 7, 19), floats(*weight, seed=1)
    x[0, 0, 0, 0], x[1, 5, 6, 18] = np.nan, 1e30
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node(op, ["s", "w"], ["y"], group=6, **attrs)]
    image, result = helper.make_tensor_value_info("x", 1, ["n", *x.shape[1:]]), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "g", [image], [result], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected: Any = make_session(model.SerializeToString(), []).run(None, {"x": x})[0]
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    np.testing.assert_allclose(compiled.session().run(None, {"x": x})[0], expected, rtol=0, atol=2e-5)


COMPUTED: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 8, 9, 7), (20, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 16, 9, 11), (32, 16, 3, 5), {"strides": [2, 1], "dilations": [1, 2], "auto_pad": "VALID"}),
    ((1, 24, 7, 6), (24, 1, 3, 3), {"group": 24, "auto_pad": "SAME_UPPER"}),
    ((1, 32, 8, 8), (64, 16, 3, 3), {"group": 2, "pads": [0, 1, 2, 3]}),
    ((1, 12, 8, 8), (12, 3, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 40, 6, 5), (24, 40, 1, 1), {}),
    ((1, 40, 6, 5), (3, 40, 1, 1), {}),
    ((2, 5, 30), (16, 5, 4), {"strides": [3], "pads": [2, 0]}),
    ((2, 2, 30), (16, 2, 4), {"strides": [3], "pads": [2, 0]}),
    ((1, 3, 4, 5, 6), (8, 3, 2, 3, 2), {"pads": [1, 1, 0, 0, 1, 1]}),
)


@pytest.mark.parametrize("dtype", [F32, np.float16])
@pytest.mark.parametrize("data, weight, attrs", COMPUTED)
def test_a_computed_weight(data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any], dtype: Any) -> None:
    """The weight is scaled at run time, and one convolution has its image from a Reshape, as in a StyleGAN: no constant
    to pack."""
    feed = {"x": floats(*data, dtype=dtype), "g": floats(weight[0], *[1] * (len(weight) - 1), dtype=dtype, seed=1)}
    tables = {"w": floats(*weight, dtype=dtype, seed=2), "s": np.array(data, np.int64)}
    nodes = [
        helper.make_node("Mul", ["w", "g"], ["m"]),
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        *(helper.make_node("Conv", [image, "m"], [f"c{image}"], **attrs) for image in "xr"),
        *(helper.make_node("Relu", [f"c{image}"], [f"y{image}"]) for image in "xr"),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [
        helper.make_tensor_value_info("x", element, data),
        helper.make_tensor_value_info("g", element, feed["g"].shape),
    ]
    outputs = [helper.make_empty_tensor_value_info(f"y{image}") for image in "xr"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in tables.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = igniter.compile(model, verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    expected: Any = make_session(model.SerializeToString(), []).run(None, feed)
    found: Any = compiled.session().run(None, feed)
    tolerance = 2e-5 if dtype is F32 else 2e-3
    for want, got in zip(expected, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("data", "weight", "attrs", "left"),
    [
        ((1, 8, 9, 9), (16, 8, 3, 3), {"dilations": [9, 12], "pads": [9, 12, 9, 12]}, [1, 1]),
        ((1, 8, 1, 2), (16, 8, 3, 3), {"pads": [1, 1, 1, 1]}, [1, 3]),
        ((1, 8, 2, 2), (16, 8, 3, 5), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}, [2, 2]),
        ((2, 16, 7), (16, 1, 4), {"group": 16, "dilations": [5], "pads": [14, 2]}, [4]),
        ((2, 16, 7), (16, 1, 4), {"group": 16, "dilations": [5], "pads": [13, 3]}, [3]),
    ],
)
def test_elements_of_a_window_in_the_padding(
    data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any], left: list[int], computed: bool
) -> None:
    """Only the elements that see the image are left, for images of known size."""
    x, w = floats(*data), floats(*weight, seed=1)
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attrs)
    inputs = [helper.make_tensor_value_info("x", 1, data)]
    inputs += [helper.make_tensor_value_info("w", 1, weight)] if computed else []
    tables = [] if computed else [numpy_helper.from_array(w, "w")]
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")], tables)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = {"x": x, "w": w} if computed else {"x": x}
    expected: Any = make_session(model.SerializeToString(), []).run(None, feed)[0]
    small = igniter.load(model).run_passes("infer-shapes,canonicalize-onnx").to_onnx()
    (conv,) = [n for n in small.graph.node if n.op_type == "Conv"]
    assert next((list(a.ints) for a in conv.attribute if a.name == "kernel_shape"), list(weight[2:])) == left
    for session in (make_session(small.SerializeToString(), []), igniter.compile(model, verify=False).session()):
        np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("size", [3, 6])
def test_zeros_beside_the_results_of_a_group_stay_there(size: int) -> None:
    """They are 0 times what the group reads, which may be infinite."""
    model = _model_of_groups(size, 4, size)
    x = floats(1, 4 * size, 5, 7)
    x[0, size, 2, 3], x[0, 2 * size - 1, 4, 0], x[0, -1, 0, 0] = np.inf, np.nan, -np.inf
    expected: Any = make_session(model.SerializeToString(), []).run(None, {"x": x})[0]
    found: Any = igniter.compile(model, verify=False).session().run(None, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_conv_with_a_symbolic_window() -> None:
    check("Conv", [floats(2, 3, 9, 8), floats(4, 3, 3, 2, seed=1)], {"strides": [2, 1], "pads": [1, 1, 0, 0]})


def test_conv_refuses() -> None:
    x, w = floats(1, 4, 9), floats(4, 4, 3)
    assert refusal("Conv", [x, w], {"auto_pad": "SAME_UPPER", "dilations": [2]}) == (
        "ONNX Runtime does not dilate with automatic padding"
    )
    assert refusal("Conv", [x, floats(6, 2, 3)], {"group": 2}, dynamic=True).startswith("its groups are not known")


@pytest.mark.parametrize(
    "activation, params", [("Relu", None), ("Clip", [-0.5, 1.0]), ("LeakyRelu", [0.1]), ("Tanh", None)]
)
def test_fused_conv(activation: str, params: list[float] | None) -> None:
    attrs: dict[str, Any] = {"activation": activation, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    attrs |= {} if params is None else {"activation_params": params}
    operands = [floats(2, 3, 5, 4), floats(4, 3, 3, 3, seed=1), floats(4, seed=2)]
    check("FusedConv", operands, attrs, domain="com.microsoft", fixed=[4])
    check("FusedConv", [*operands, floats(2, 4, 5, 4, seed=3)], attrs, domain="com.microsoft", fixed=[4])


@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_conv_with_state(activation: str) -> None:
    x, w, bias, past = floats(2, 3, 5), floats(3, 1, 4, seed=1), floats(3, seed=2), floats(2, 3, 3, seed=3)
    for operands in ([x, w], [x, w, bias], [x, w, bias, past], [x[:, :, :2], w, None, past]):
        check("CausalConvWithState", operands, {"activation": activation}, opset=27, outputs=2, dynamic=(False,))


TRANSPOSED: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 5), (3, 4, 3), {}),
    ((2, 3, 5), (3, 4, 4), {"strides": [2], "pads": [2, 1]}),
    ((2, 3, 5), (3, 4, 3), {"strides": [3], "output_padding": [2]}),
    ((2, 3, 5), (3, 4, 3), {"strides": [2], "dilations": [2], "pads": [1, 0]}),
    ((2, 3, 5), (3, 4, 2), {"strides": [5]}),
    ((2, 4, 5), (4, 2, 3), {"group": 2, "strides": [2]}),
    ((1, 3, 4), (3, 4, 4), {"strides": [2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 4), (3, 4, 3), {"auto_pad": "SAME_LOWER"}),
    ((1, 3, 4), (3, 4, 3), {"strides": [5], "auto_pad": "SAME_LOWER"}),
    ((1, 3, 4), (3, 4, 3), {"strides": [2], "output_shape": [8]}),
    ((1, 3, 4), (3, 4, 3), {"strides": [2], "output_shape": [7], "auto_pad": "SAME_UPPER"}),
    ((2, 3, 4, 5), (3, 2, 3, 4), {"strides": [2, 3], "pads": [1, 0, 1, 2], "output_padding": [1, 2]}),
    ((2, 2, 4, 5), (2, 3, 3, 3), {"strides": [2, 1], "dilations": [1, 2]}),
    ((1, 2, 3, 2, 4), (2, 3, 2, 3, 2), {"strides": [2, 1, 2]}),
    ((0, 3, 4, 5), (3, 2, 3, 4), {}),
)


@pytest.mark.parametrize("data, weight, attrs", TRANSPOSED)
def test_conv_transpose(data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x, w = floats(*data), floats(*weight, seed=1)
    channels = weight[1] * attrs.get("group", 1)
    fixed = {*weight, channels, 8, 7} if "output_shape" in attrs else {*weight, channels}
    check("ConvTranspose", [x, w, floats(channels, seed=2)], attrs, fixed=fixed)
    check("ConvTranspose", [x, w], attrs, fixed={data[1], *weight[:2]})


def test_conv_transpose_beside_infinities() -> None:
    x = np.array([[[1, np.inf, -np.inf, np.nan]]], F32)
    check("ConvTranspose", [x, floats(1, 2, 3)], {"strides": [2]})


COLUMNS: tuple[tuple[tuple[int, ...], list[int], list[int], dict[str, Any]], ...] = (
    ((1, 5, 5), [5, 5], [1, 5], {}),
    ((2, 18, 4), [5, 5], [3, 3], {"strides": [2, 2]}),
    ((1, 9, 12), [4, 5], [3, 3], {"pads": [1, 1, 0, 1]}),
    ((1, 8, 6), [6, 5], [2, 2], {"dilations": [3, 2], "strides": [1, 2], "pads": [0, 0, 0, 1]}),
    ((1, 6, 10), [6, 3, 3], [1, 3, 2], {"strides": [1, 1, 2]}),
)


@pytest.mark.parametrize("shape, image, block, attrs", COLUMNS)
def test_col2im(shape: tuple[int, ...], image: list[int], block: list[int], attrs: dict[str, Any]) -> None:
    rank = len(image)
    pads, strides = attrs.get("pads", [0] * 2 * rank), attrs.get("strides", [1] * rank)
    dilations = attrs.get("dilations", [1] * rank)
    windows = 1
    for k in range(rank):
        windows *= (image[k] + pads[k] + pads[k + rank] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1
    x = floats(shape[0], shape[1], windows)
    check("Col2Im", [x, np.array(image), np.array(block)], attrs, constant=[1, 2], opset=18, fixed=x.shape[1:])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.bool_, np.int8, np.float64])
def test_col2im_of_other_types(dtype: Any) -> None:
    x = (floats(1, 8, 6) * 3).astype(dtype)
    attrs = {"dilations": [3, 2], "strides": [1, 2], "pads": [0, 0, 0, 1]}
    tolerance = 2e-2 if dtype in (np.float16, ml_dtypes.bfloat16) else 1e-6
    inputs = [x, np.array([6, 5]), np.array([2, 2])]
    check("Col2Im", inputs, attrs, constant=[1, 2], opset=18, fixed=x.shape[1:], tolerance=tolerance)


@pytest.mark.parametrize("dtype", [np.float16])
def test_half_precision(dtype: Any) -> None:
    x, w = floats(2, 3, 9, dtype=dtype), floats(4, 3, 3, dtype=dtype, seed=1)
    half = partial(check_exactly, tolerance=2e-2)
    half("Conv", [x, w], dynamic=(False,))
    half("ConvTranspose", [x, floats(3, 2, 4, dtype=dtype)], {"strides": [2]}, dynamic=(False,))
    half("MaxPool", [x], {"kernel_shape": [3], "pads": [1, 1]}, outputs=2, dynamic=(False,))
    half("AveragePool", [x], {"kernel_shape": [3], "pads": [1, 1]}, dynamic=(False,))
