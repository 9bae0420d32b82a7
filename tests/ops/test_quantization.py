"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear have ONNX Runtime's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.pipelines import PIPELINES
from igniter.runtime.session import make_session
from tests.ops.single_node import NotLowered, check, refusal
from tests.ops.test_small_types import EIGHTS

RNG = np.random.default_rng(0)
AWKWARD = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, 1e30, -1e30, 3e9, 0.0, -0.0]
VALUES = np.concatenate([RNG.normal(size=100) * 30, AWKWARD]).astype(np.float32)
ZEROS = [np.uint8(3), np.uint8(255), np.int8(-7), np.int8(127), np.uint16(60000), np.int16(-30000)]


def integers(kind: type, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    limits = np.iinfo(kind)
    return RNG.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)


@pytest.mark.parametrize("zero", ZEROS, ids=lambda z: f"{z.dtype}.{z}")
@pytest.mark.parametrize("constant", [(), (1, 2)], ids=["computed", "constant"])
@pytest.mark.parametrize("scale", [1.0, 0.3, 1e-3])
def test_per_tensor(zero: np.generic, constant: tuple[int, ...], scale: float) -> None:
    check("QuantizeLinear", [VALUES, np.float32(scale), zero], constant=constant, dynamic=[True])
    codes = integers(zero.dtype.type, (5, 7))
    check("DequantizeLinear", [codes, np.float32(scale), zero], constant=constant, dynamic=[True])


@pytest.mark.parametrize("zero", ZEROS[:3], ids=lambda z: f"{z.dtype}.{z}")
def test_half_precision(zero: np.generic) -> None:
    x, scale = VALUES[:100].astype(np.float16), np.float16(0.3)
    check("QuantizeLinear", [x, scale, zero], dynamic=[True])
    check("DequantizeLinear", [integers(zero.dtype.type, (5, 7)), scale, zero], dynamic=[True])


def test_no_zero_point() -> None:
    check("QuantizeLinear", [VALUES, np.float32(0.7)])
    check("DequantizeLinear", [integers(np.int32, (3, 4)), np.float32(0.01)])


@pytest.mark.parametrize(("axis", "size"), [(1, 6), (-1, 5), (0, 2)])
@pytest.mark.parametrize("opset", [13, 19, 21])
def test_per_axis(axis: int, size: int, opset: int) -> None:
    x = (RNG.normal(size=(2, 6, 5)) * 40).astype(np.float32)
    scale, zero = RNG.uniform(0.1, 2, size).astype(np.float32), integers(np.uint8, (size,))
    check("QuantizeLinear", [x, scale, zero], {"axis": axis}, opset=opset)
    check("QuantizeLinear", [x, scale, zero], {"axis": axis}, opset=opset, constant=(1, 2))
    check("DequantizeLinear", [integers(np.uint8, x.shape), scale, zero], {"axis": axis}, opset=opset)


@pytest.mark.parametrize(("block", "count"), [(2, 3), (3, 2), (4, 2)])
def test_per_block(block: int, count: int) -> None:
    x = (RNG.normal(size=(2, 6, 5)) * 40).astype(np.float32)
    scale, zero = RNG.uniform(0.1, 2, (2, count, 5)).astype(np.float32), integers(np.uint8, (2, count, 5))
    attrs = {"axis": 1, "block_size": block}
    check("QuantizeLinear", [x, scale, zero], attrs, dynamic=[False])
    check("DequantizeLinear", [integers(np.uint8, x.shape), scale, zero], attrs, dynamic=[False])


def test_blocks_that_are_not_known_to_fit_are_refused() -> None:
    x, scale = np.ones((2, 6), np.float32), np.ones((2, 3), np.float32)
    with pytest.raises(NotLowered, match="one scale for each block"):
        check("QuantizeLinear", [x, scale], {"axis": 1, "block_size": 2}, dynamic=[True])


@pytest.mark.parametrize(
    "x",
    [
        VALUES,
        VALUES[:1],
        np.zeros((3, 4), np.float32),
        np.zeros((0,), np.float32),
        np.zeros((0, 3), np.float32),
        np.array([-5, -3], np.float32),
        np.array([1e-42, 0], np.float32),
        np.array([1e38, -3e38], np.float32),
        np.array(2.0, np.float32),
    ],
    ids=lambda x: "x".join(map(str, x.shape)),
)
def test_dynamic(x: np.ndarray[Any, Any]) -> None:
    check("DynamicQuantizeLinear", [x], outputs=3)


@pytest.mark.slow
def test_dynamic_over_scales() -> None:
    for _ in range(20):
        x = RNG.normal(size=(4, 50)) * 10 ** RNG.uniform(-4, 4) + RNG.normal()
        check("DynamicQuantizeLinear", [x.astype(np.float32)], outputs=3, dynamic=[True])


Case = tuple[np.ndarray[Any, Any], Any, dict[str, int]]


def through_eight_bits(name: str, cases: list[Case], saturate: int) -> onnx.ModelProto:
    """Each `x` quantised to floats of eight bits by its scale, widened again as they are, and dequantised."""
    nodes: list[onnx.NodeProto] = []
    for k, (_, _, attrs) in enumerate(cases):
        target = {"output_dtype": EIGHTS[name][0], "saturate": saturate}
        nodes += [
            helper.make_node("QuantizeLinear", [f"x{k}", f"s{k}"], [f"codes{k}"], **target, **attrs),
            helper.make_node("Cast", [f"codes{k}"], [f"plain{k}"], to=TensorProto.FLOAT),
            helper.make_node("DequantizeLinear", [f"codes{k}", f"s{k}"], [f"y{k}"], **attrs),
        ]
    types = [(helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for x, _, _ in cases]
    given = [helper.make_tensor_value_info(f"x{k}", *each) for k, each in enumerate(types)]
    results = [helper.make_empty_tensor_value_info(f"{n}{k}") for k in range(len(cases)) for n in ("plain", "y")]
    scales = [numpy_helper.from_array(np.asarray(s), f"s{k}") for k, (_, s, _) in enumerate(cases)]
    graph = helper.make_graph(nodes, "g", given, results, scales)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", EIGHTS)
def test_floats_of_eight_bits(name: str, saturate: int) -> None:
    """As ONNX Runtime, through the whole compiler: no array of these comes in or out of a session from numpy."""
    x = VALUES[:108].reshape(3, 36)
    blocks = np.float32([[0.3], [2], [0.01]]) + np.zeros((1, 4), np.float32)
    cases: list[Case] = [
        (VALUES, np.float32(0.7), {}),
        (x, np.float32([0.5, 3, 1e-3]), {"axis": 0}),
        (x, blocks, {"axis": 1, "block_size": 9}),
        (np.clip(x, -6e4, 6e4).astype(np.float16), np.float16(0.3), {}),
    ]
    model = through_eight_bits(name, cases, saturate)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    feed = {f"x{k}": values for k, (values, _, _) in enumerate(cases)}
    got = artifact.session().run(None, feed)
    for k, (a, b) in enumerate(zip(got, make_session(model.SerializeToString()).run(None, feed), strict=True)):
        values, scale, attrs = cases[k // 2]
        if name == "E4M3FN" and not saturate:
            # ONNX Runtime makes the greatest number of what is from 480 to 496, and NaN of what is less or more.
            steps = values.astype(np.float32) / along(scale, attrs)
            odd = (np.abs(steps) >= 480) & (np.abs(steps) < 496)
            assert np.isnan(a[odd]).all()
            b = np.where(odd, a, b)
        np.testing.assert_array_equal(a, b)


def along(scale: Any, attrs: dict[str, int]) -> Any:
    """A scale as it is broadcast."""
    if "block_size" in attrs:
        return np.repeat(scale, attrs["block_size"], attrs["axis"])
    return np.reshape(scale, (-1, 1)) if attrs else np.float32(scale)


def test_zero_points_of_floats_are_zero() -> None:
    """QuantizeLinear does not look at them; DequantizeLinear refuses others, when it runs if it has to."""
    kind, x = EIGHTS["E5M2"][1], VALUES[:100]
    scale, one = np.float32(0.5), np.array(1, kind)
    assert "must be 0" in refusal("DequantizeLinear", [x.astype(kind), scale, one], constant=[2])
    with np.errstate(invalid="ignore"):
        codes = (x / scale).astype(kind)
    for constant in ([2], []):
        check("QuantizeLinear", [x, scale, one], constant=constant, expected=[codes])
        plain = codes.astype(np.float32) * scale
        check("DequantizeLinear", [codes, scale, np.array(0, kind)], constant=constant, expected=[plain])


def test_zero_points_of_floats_are_checked() -> None:
    nodes = [
        helper.make_node("Cast", ["given"], ["zero"], to=EIGHTS["E4M3FN"][0]),
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["y"]),
    ]
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("x", [4]), ("given", []))]
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    graph = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info("y")], [scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    feed = {"x": np.float32([1, 2, 3.25, -5]), "given": np.array(0, np.float32)}
    np.testing.assert_array_equal(artifact.session().run(None, feed)[0], feed["x"])
    # A zero with a sign has a code other than 0.
    for zero in (1, -0.0):
        with pytest.raises(Exception, match="zero points of 8-bit floats must be 0"):
            artifact.session().run(None, {**feed, "given": np.array(zero, np.float32)})


@pytest.mark.parametrize("columns", [False, True], ids=["tensor", "columns"])
def test_integer_products_have_the_bits_of_onnx_runtime(columns: bool) -> None:
    """The scales of factors and result are one factor of the sums. ORT's sums of u8 and u8 are exact everywhere."""
    scale = RNG.uniform(1e-3, 1e-2, 24 if columns else ()).astype(np.float32)
    values: dict[str, Any] = {
        "as": np.float32(0.037),
        "az": np.uint8(117),
        "w": integers(np.uint8, (256, 24)),
        "ws": scale,
        "wz": np.full(scale.shape, 128, np.uint8),
        "ys": np.float32(0.21),
        "yz": np.uint8(120),
    }
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["a", *values], ["y"])],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [211, 256])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [211, 24])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    passes = ",".join(PIPELINES["cpu-onnx"]).replace("form-integer-products", "form-integer-products{always=true}")
    feed = {"a": integers(np.uint8, (211, 256))}
    compiled = igniter.compile(model, options=igniter.CompileOptions(onnx_passes=passes), verify=False)
    assert not compiled.report["left_to_onnxruntime"]
    expected = make_session(model.SerializeToString()).run(None, feed)[0]
    np.testing.assert_array_equal(compiled.session().run(None, feed)[0], expected)
