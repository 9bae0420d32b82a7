"""Every op on quantised tensors, alone, compiled to a kernel where there is one, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from tests.conformance.node_cases import EVERYTHING

Array = np.ndarray[Any, Any]
CONTRIB = "com.microsoft"
RNG = np.random.default_rng(0)


def codes(*dims: int, kind: type = np.uint8, bits: int = 8) -> Array:
    """Integers of a type; of fewer bits where ONNX Runtime's sums of 16 bits would saturate."""
    limits = np.iinfo(kind)
    shift = 8 - bits
    return RNG.integers(limits.min >> shift, limits.max >> shift, dims, endpoint=True).astype(kind)


def model_of(
    name: str, operands: Sequence[Array | None], attrs: Mapping[str, Any], computed: int, outputs: int, opset: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The first `computed` operands are inputs of the model, the others initializers."""
    domain, _, kind = name.rpartition(".")
    names = [f"x{k}" if a is not None else "" for k, a in enumerate(operands)]
    node = helper.make_node(kind, names, [f"y{k}" for k in range(outputs)], domain=domain, name="node", **attrs)
    arrays = [(n, np.asarray(a)) for n, a in zip(names, operands, strict=True) if a is not None]
    feed = dict(arrays[:computed])
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feed.items()
    ]
    weights = [numpy_helper.from_array(a, n) for n, a in arrays[computed:]]
    results = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
    graph = helper.make_graph([node], "g", given, results, weights)
    return helper.make_model(graph, opset_imports=imports, ir_version=8), feed


def compare(
    name: str,
    operands: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    computed: int = 1,
    outputs: int = 1,
    opset: int = 17,
    tolerance: float = 0.0,
    wanted: Sequence[Array] | None = None,
) -> None:
    """Integers may be one step apart, where a value lies between two; floats as far as `tolerance`."""
    model, feed = model_of(name, operands, attrs or {}, computed, outputs, opset)
    if wanted is None:
        wanted = make_session(model.SerializeToString()).run(None, feed)
    options = igniter.CompileOptions(fusion_passes=EVERYTHING)
    artifact = igniter.load(model).compile(options=options, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    for a, b in zip(artifact.session().run(None, feed), wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind == "f" or tolerance:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            apart = np.abs(a.astype(np.int64) - b.astype(np.int64))
            assert apart.max(initial=0) <= 1 and np.mean(apart != 0) < 0.05


SCALE, STEP = np.float32(0.0517), np.float32(0.0733)


def zero(kind: type) -> Array:
    return np.asarray(7 if kind == np.int8 else 130, kind)


KINDS = pytest.mark.parametrize("kind", [np.uint8, np.int8], ids=lambda k: k.__name__)


@KINDS
@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
def test_two_operands(name: str, kind: type) -> None:
    x, y = codes(3, 17, kind=kind), codes(17, kind=kind)
    compare(f"{CONTRIB}.{name}", [x, SCALE, zero(kind), y, STEP, zero(kind), np.float32(0.1131), zero(kind)])


@KINDS
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearLeakyRelu", {}),
        ("QLinearSoftmax", {"opset": 13, "axis": 1}),
        ("QLinearSoftmax", {"opset": 13}),
        ("QLinearSoftmax", {"opset": 12, "axis": -1}),
    ],
)
def test_one_operand(name: str, attrs: dict[str, Any], kind: type) -> None:
    x = codes(3, 5, 7, kind=kind)
    scale = np.float32(1 / 256 if name in ("QLinearSigmoid", "QLinearSoftmax") else 0.04)
    compare(f"{CONTRIB}.{name}", [x, SCALE, zero(kind), scale, zero(kind)], attrs)
    compare(f"{CONTRIB}.{name}", [x, SCALE, zero(kind), scale, zero(kind)], attrs, opset=21)


@KINDS
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}),
        ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_pools(name: str, attrs: dict[str, Any], kind: type) -> None:
    x = codes(2, 3, 8, 9, kind=kind)
    compare(f"{CONTRIB}.{name}", [x, SCALE, zero(kind), np.float32(0.04), zero(kind)], attrs)


@KINDS
@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize(("axes", "kept"), [((-1,), 0), ((0, 2), 1)])
def test_mean(axes: tuple[int, ...], kept: int, opset: int, kind: type) -> None:
    """ONNX Runtime has no kernel of it."""
    x, point = codes(3, 5, 7, kind=kind), zero(kind)
    mean = ((x.astype(np.float64) - point) * SCALE).mean(axes, keepdims=bool(kept))
    limits = np.iinfo(kind)
    found = np.clip(np.rint(mean / STEP) + point, limits.min, limits.max).astype(kind)
    attrs = {"axes": list(axes), "keepdims": kept}
    compare(f"{CONTRIB}.QLinearReduceMean", [x, SCALE, point, STEP, point], attrs, opset=opset, wanted=[found])


@KINDS
def test_concat_and_where(kind: type) -> None:
    x, y = codes(3, 5, kind=kind), codes(3, 2, kind=kind)
    parts = [x, SCALE, zero(kind), y, STEP, zero(kind)]
    compare(f"{CONTRIB}.QLinearConcat", [np.float32(0.06), zero(kind), *parts], {"axis": 1}, computed=0)
    condition = RNG.random((3, 5)) < 0.5
    operands = [condition, x, SCALE, zero(kind), codes(1, 5, kind=kind), STEP, zero(kind), np.float32(0.06), zero(kind)]
    compare(f"{CONTRIB}.QLinearWhere", operands, computed=2)


FACTORS = pytest.mark.parametrize("kind", [np.uint8, pytest.param(np.int8, marks=pytest.mark.full)], ids=["u8", "i8"])
WEIGHTS = pytest.mark.parametrize("columns", [False, True], ids=["tensor", "columns"])


def scales(columns: bool, count: int) -> Array:
    return RNG.uniform(0.01, 0.03, count).astype(np.float32) if columns else np.float32(0.02)


def zeros(columns: bool, count: int, kind: type) -> Array:
    return codes(count, kind=kind, bits=4) if columns else np.asarray(3, kind)


@pytest.mark.parametrize("scale_type", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
def test_scales_of_16_bits_round_no_codes(scale_type: type) -> None:
    """ONNX Runtime has no kernel: compared with the quotient of exact sums, halfway cases left out."""
    x, w = codes(40, 20), codes(20, 16)
    scales = [np.array([v], scale_type) for v in (0.0066, 0.00705, 0.03)]
    point = np.asarray([113], np.uint8)
    model, feed = model_of("QLinearMatMul", [x, scales[0], point, w, scales[1], point, scales[2], point], {}, 1, 1, 21)
    a, b, y = (float(s[0]) for s in scales)
    exact = (x.astype(int) - 113) @ (w.astype(int) - 113) * (a * b / y) + 113
    (found,) = igniter.compile(model, verify=False).session().run(None, feed)
    sure = abs(exact - np.floor(exact) - 0.5) > 1e-3
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(found[sure], np.clip(np.rint(exact), 0, 255)[sure])


@pytest.mark.slow
@FACTORS
@WEIGHTS
def test_products(columns: bool, kind: type) -> None:
    x, w = codes(3, 20, kind=kind), codes(20, 16, kind=kind, bits=7)
    scale, point = scales(columns, 16), zeros(columns, 16, kind)
    compare("QLinearMatMul", [x, SCALE, zero(kind), w, scale, point, np.float32(0.3), zero(kind)], opset=21)
    x, bias = codes(3, 20), RNG.standard_normal(16).astype(np.float32)
    operands = [x, w, SCALE, scale, zero(np.uint8), point, bias]
    compare(f"{CONTRIB}.MatMulIntegerToFloat", operands, tolerance=1e-3)
    compare(f"{CONTRIB}.MatMulIntegerToFloat", [x, w, SCALE, scale], tolerance=1e-3)
    small = [a if a.dtype != np.float32 else a.astype(np.float16) for a in map(np.asarray, operands)]
    compare(f"{CONTRIB}.MatMulIntegerToFloat", small, tolerance=1e-3)
    rows = RNG.standard_normal((2, 3, 20)).astype(np.float32)
    compare(f"{CONTRIB}.DynamicQuantizeMatMul", [rows, w, scale, point, bias], tolerance=1e-3)
    compare(f"{CONTRIB}.DynamicQuantizeMatMul", [rows, w, scale], tolerance=1e-3)


@FACTORS
@WEIGHTS
@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed: int, columns: bool, kind: type) -> None:
    x = codes(3, 20, kind=kind).T if transposed else codes(3, 20, kind=kind)
    w = codes(16, 20, kind=kind, bits=7) if transposed else codes(20, 16, kind=kind, bits=7)
    attrs = {"transA": transposed, "transB": transposed, "alpha": 1.5}
    left = [np.ascontiguousarray(x), SCALE, zero(kind), w, scales(columns, 16), zeros(columns, 16, kind)]
    bias = RNG.integers(-500, 500, 16).astype(np.int32)
    compare(f"{CONTRIB}.QGemm", [*left, bias, np.float32(0.3), zero(kind)], attrs)
    compare(f"{CONTRIB}.QGemm", [*left, None, np.float32(0.3), zero(kind)], attrs)
    compare(f"{CONTRIB}.QGemm", [*left, bias], attrs, tolerance=1e-3)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 9), (6, 4, 3), {"pads": [1, 1]}),
    ((1, 4, 7, 8), (8, 4, 3, 2), {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
    ((1, 4, 7, 8), (4, 1, 3, 3), {"group": 4, "dilations": [2, 2]}),
    ((1, 6, 7, 8), (4, 3, 1, 1), {"group": 2}),
    ((1, 2, 5, 6, 4), (3, 2, 2, 2, 2), {"auto_pad": "SAME_LOWER"}),
]


@pytest.mark.slow
@WEIGHTS
@pytest.mark.parametrize(("data", "weight", "attrs"), CONVOLUTIONS, ids=lambda v: "x".join(map(str, v)))
def test_convolutions(data: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any], columns: bool) -> None:
    x, w, count = codes(*data), codes(*weight, kind=np.int8, bits=7), weight[0]
    bias = RNG.integers(-500, 500, count).astype(np.int32)
    point = np.zeros(count, np.int8) if columns else np.asarray(0, np.int8)
    operands = [x, SCALE, zero(np.uint8), w, scales(columns, count), point, np.float32(0.3), zero(np.uint8)]
    for case in ([*operands, bias], operands):
        compare("QLinearConv", case, attrs)
    if not columns:
        compare("ConvInteger", [codes(*data), w.view(np.uint8), zero(np.uint8), np.asarray(3, np.uint8)], attrs)
        compare("ConvInteger", [x, w.view(np.uint8)], attrs)


def test_zero_points_of_channels() -> None:
    """ONNX Runtime has no ConvInteger of them: the sums are those of each channel alone."""
    x, w, points = codes(1, 4, 7, 8), codes(6, 2, 3, 3, bits=7), codes(6, bits=4)
    attrs = {"group": 2, "pads": [1, 1, 0, 0]}
    each: list[Array] = []
    for k in range(6):
        half, one = x[:, 2 * (k // 3) : 2 * (k // 3) + 2], np.asarray(points[k])
        model, feed = model_of(
            "ConvInteger", [half, w[k : k + 1], zero(np.uint8), one], {"pads": [1, 1, 0, 0]}, 1, 1, 17
        )
        each.append(make_session(model.SerializeToString()).run(None, feed)[0])
    compare("ConvInteger", [x, w, zero(np.uint8), points], attrs, wanted=[np.concatenate(each, 1)])


@WEIGHTS
@pytest.mark.parametrize("masked", ["", "lengths", "rows"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal: int, masked: str, columns: bool) -> None:
    x, w = codes(2, 5, 16), codes(16, 48, kind=np.int8, bits=7)
    bias = RNG.standard_normal(48).astype(np.float32)
    mask = {"": None, "lengths": np.array([3, 5], np.int32), "rows": np.ones((2, 5), np.int32)}[masked]
    point = np.zeros(48, np.int8) if columns else np.asarray(0, np.int8)
    operands = [x, w, bias, SCALE, scales(columns, 48), mask, zero(np.uint8), point]
    attrs = {"num_heads": 4, "unidirectional": causal}
    compare(f"{CONTRIB}.QAttention", operands, attrs, tolerance=1e-3)


def test_attention_with_a_past() -> None:
    x, w = codes(2, 3, 16), codes(16, 48, kind=np.int8, bits=7)
    past = RNG.standard_normal((2, 2, 4, 6, 4)).astype(np.float32)
    bias = RNG.standard_normal(48).astype(np.float32)
    operands = [x, w, bias, SCALE, np.float32(0.02), None, zero(np.uint8), np.asarray(0, np.int8), past]
    compare(f"{CONTRIB}.QAttention", operands, {"num_heads": 4, "unidirectional": 1}, outputs=2, tolerance=1e-3)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("segmented", [False, True])
def test_embeddings(segmented: bool, masked: bool) -> None:
    ids = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    segments = RNG.integers(0, 2, (2, 5)).astype(np.int32) if segmented else None
    tables: list[Array | None] = [codes(20, 8), codes(6, 8), codes(2, 8), codes(8), codes(8)]
    steps: list[Array | None] = [np.float32(v) for v in (0.02, 0.03, 0.01, 0.05, 0.04)]
    points: list[Array | None] = [np.uint8(v) for v in (120, 130, 90, 10, 100)]
    if not segmented:
        for each in (tables, steps, points):
            each[2] = None
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32) if masked else None
    operands = [ids, segments, *tables, mask, *steps, *points]
    compare(f"{CONTRIB}.QEmbedLayerNormalization", operands, {"epsilon": 1e-6}, outputs=2, tolerance=1e-4)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16], ids=lambda k: k.__name__)
def test_quantisation_of_before_opset_21(kind: type) -> None:
    x = (RNG.standard_normal((3, 17)) * 10).astype(np.float32)
    point = np.asarray(5, kind)
    compare(f"{CONTRIB}.QuantizeLinear", [x, np.float32(0.01), point])
    compare(f"{CONTRIB}.DequantizeLinear", [codes(3, 17, kind=kind), np.float32(0.01), point])
    several, points = np.float32([0.1, 0.2, 0.3]), np.array([1, 2, 3], kind)
    compare(f"{CONTRIB}.QuantizeLinear", [x, several, points], {"axis": 0})
    compare(f"{CONTRIB}.DequantizeLinear", [codes(3, 17, kind=kind), several, points], {"axis": 0}, tolerance=1e-6)
