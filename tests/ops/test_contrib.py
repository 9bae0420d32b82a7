"""Ops of com.microsoft against ONNX Runtime, or against numpy where its CPU has no kernel of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from igniter.verification.interp.arithmetic import InterpreterError
from tests.ops.single_node import check, refusal

F32, F16 = np.float32, np.float16
check_ms = partial(check, domain="com.microsoft")
refusal_ms = partial(refusal, domain="com.microsoft")


def floats(*shape: int, dtype: Any = F32, seed: int = 0, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).normal(0, scale, shape)).astype(dtype)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# -- activations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F16])
def test_scaled_silu(dtype: Any) -> None:
    tolerance = 2e-6 if dtype == F32 else 2e-3
    x = np.concatenate([floats(30), [np.nan, np.inf, -np.inf, 0.0, 90.0, -90.0]]).astype(dtype)
    check_ms("ScaledSiLU", [x], {"alpha": 1.7}, tolerance=tolerance)
    check_ms("ScaledSiLU", [floats(3, 0, 2, dtype=dtype)], tolerance=tolerance)
    for scale in (np.array(0.3, F32), np.array(1.5, F16)):
        check_ms("ScaledSiLU", [floats(3, 4, dtype=dtype), scale], tolerance=tolerance)


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 7), (0, 4), (2, 1)])
def test_gated_add(shape: tuple[int, ...], dtype: Any) -> None:
    x, y, gate = (floats(*s, dtype=dtype, seed=k) for k, s in enumerate([shape, shape, (*shape[:-1], 1)]))
    check_ms("GatedAdd", [x, y, gate], tolerance=1e-6)


def test_bias_add() -> None:
    x, bias, skip = floats(2, 5, 8), floats(8), floats(2, 5, 8, seed=1)
    check_ms("BiasAdd", [x, bias, skip], tolerance=1e-6, expected=[x + bias + skip])


@pytest.mark.parametrize("dtype", [F32, F16])
def test_bias_split_gelu(dtype: Any) -> None:
    from math import erf

    x, bias = floats(2, 3, 10, dtype=dtype), floats(10, dtype=dtype, seed=1)
    total = x.astype(np.float64) + bias
    left, right = total[..., :5], total[..., 5:]
    wanted = left * right * 0.5 * (1 + np.vectorize(erf)(right / np.sqrt(2)))
    check_ms("BiasSplitGelu", [x, bias], tolerance=2e-3 if dtype == F16 else 1e-5, expected=[wanted.astype(dtype)])


# -- products ---------------------------------------------------------------------------------------------------------

PARAMETERS = {"activation_alpha": 0.3, "activation_beta": 0.6, "activation_gamma": 1.2}


@pytest.mark.parametrize(
    "activation",
    ["Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"],
)
def test_fused_gemm(activation: str) -> None:
    inputs = [floats(4, 6), floats(6, 5, seed=1), floats(5, seed=2)]
    check_ms("FusedGemm", inputs, {"activation": activation, **PARAMETERS}, tolerance=1e-5)


def test_fused_gemm_forms() -> None:
    check_ms("FusedGemm", [floats(4, 6), floats(6, 5)], {"activation": "Relu", "alpha": 0.5}, tolerance=1e-5)
    inputs = [floats(6, 4), floats(5, 6, seed=1), floats(4, 1, seed=2)]
    check_ms("FusedGemm", inputs, {"activation": "Tanh", "transA": 1, "transB": 1, "beta": 2.0}, tolerance=1e-5)
    assert "Swish" in refusal_ms("FusedGemm", inputs[:2], {"activation": "Swish", "transA": 1, "transB": 1})


def test_transpose_matmul() -> None:
    inputs = [floats(2, 6, 4), floats(2, 5, 6, seed=1)]
    check_ms("TransposeMatMul", inputs, {"transA": 1, "transB": 1, "alpha": 0.25}, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [F32, np.float64, F16])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 4, 4), (2, 3, 7, 7), (0, 3, 3), (2, 0, 0)])
def test_inverse(shape: tuple[int, ...], dtype: Any) -> None:
    x = floats(*shape, dtype=dtype) + np.eye(shape[-1], dtype=dtype) * 3
    wanted = np.linalg.inv(x.astype(np.float64)).astype(dtype)
    tolerance = {F32: 2e-5, np.float64: 1e-12, F16: 2e-3}[dtype]
    check_ms("Inverse", [x], tolerance=tolerance, expected=[wanted])
    if x.size and dtype != F16:
        check_ms("Inverse", [x], tolerance=10 * tolerance)


def test_inverse_pivots() -> None:
    x = np.array([[0, 2, 1], [1, 0, 0], [0, 0, 4]], F32)
    check_ms("Inverse", [x], tolerance=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 5, 5), (2, 0, 3, 3), (6, 6)])
def test_det(shape: tuple[int, ...]) -> None:
    check("Det", [floats(*shape)], tolerance=1e-4)
    singular = np.zeros(shape, F32)
    check("Det", [singular], tolerance=1e-6)


def test_det_pivots() -> None:
    check("Det", [np.array([[0, 1], [1, 0]], F32)])
    check("Det", [np.array([[0, 0, 1], [0, 2, 0], [3, 0, 0]], F32)])


# -- movement ---------------------------------------------------------------------------------------------------------


def test_aliases() -> None:
    x = floats(3, 4, 5)
    check_ms("ExpandDims", [x, np.array(1, np.int32)], constant=[1])
    check_ms("ExpandDims", [x, np.array(-1, np.int32)], constant=[1])
    check_ms("Trilu", [x, np.array(1, np.int64)], {"upper": 0}, constant=[1])
    check_ms("GatherND", [x, np.array([[0, 1], [2, 3]], np.int32)], fixed=[2])
    check_ms("GatherND", [x, np.array([[-1], [1]], np.int64)])
    check_ms("Pad", [x, np.array([0, 1, 2, 0, 0, 1], np.int64), np.array(2.5, F32)], constant=[1])
    check_ms("Pad", [x, np.array([0, 1, 2, 0, 0, 1], np.int64)], {"mode": "reflect"}, constant=[1])
    grid = floats(2, 3, 2, 2, seed=3, scale=0.6)
    for attrs in ({}, {"mode": "nearest", "padding_mode": "border"}, {"mode": "bicubic", "align_corners": 1}):
        check_ms("GridSample", [floats(2, 2, 4, 5), grid], attrs, tolerance=1e-5)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_unfold_tensor(step: int, dim: int) -> None:
    check_ms("UnfoldTensor", [floats(4, 5, 6)], {"dim": dim, "size": 3, "step": step})
    check_ms("UnfoldTensor", [np.arange(12).reshape(3, 4, 1)], {"dim": dim, "size": 1, "step": step})


def test_distances() -> None:
    a, b = floats(5, 7), floats(3, 7, seed=1)
    for metric in ("euclidean", "sqeuclidean"):
        check_ms("CDist", [a, b], {"metric": metric}, tolerance=1e-5)
        check_ms("CDist", [a.astype(np.float64), b.astype(np.float64)], {"metric": metric}, tolerance=1e-12)
    assert "cosine" in refusal_ms("CDist", [a, b], {"metric": "cosine"})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_nhwc_max_pool(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 120, (2, 7, 6, 5)).astype(dtype)
    for attrs in ({}, {"strides": [2, 2], "pads": [1, 1, 0, 1]}, {"dilations": [2, 1]}, {"auto_pad": "SAME_UPPER"}):
        check_ms("NhwcMaxPool", [x], {"kernel_shape": [3, 2], **attrs})
    check_ms("NhwcMaxPool", [x], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1})


# -- positions and states ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("sections", [[4, 2, 2], [3, 3, 2], [8, 0, 0]])
def test_positions_of_three_kinds(sections: list[int], layout: int) -> None:
    positions = np.random.default_rng(0).integers(0, 9, (3, 2, 5))
    tables = [np.cos(floats(9, 8)), np.sin(floats(9, 8))]
    attrs: dict[str, Any] = {"mrope_section": sections, "mrope_layout": layout}
    for interleaved in (0, 1):
        attrs["interleaved"] = interleaved
        check_ms("MRotaryEmbedding", [floats(2, 3, 5, 16), positions, *tables], attrs, tolerance=1e-6, fixed=[3, 8, 16])
    heads = {**attrs, "num_heads": 3, "rotary_embedding_dim": 16}
    fixed = [3, 8, 16, 60]
    check_ms("MRotaryEmbedding", [floats(2, 5, 60), positions, *tables], heads, tolerance=1e-6, fixed=fixed)


def test_positions_out_of_range() -> None:
    tables = [floats(9, 8), floats(9, 8)]
    attrs = {"mrope_section": [4, 2, 2]}
    for wrong in (9, -1):
        positions = np.full((3, 2, 5), wrong)
        with pytest.raises(InterpreterError, match="out of the range"):
            check_ms(
                "MRotaryEmbedding", [floats(2, 3, 5, 16), positions, *tables], attrs, expected=[], fixed=[3, 8, 16]
            )
        with pytest.raises(InterpreterError, match="out of the range"):
            check_ms("RotaryEmbedding", [floats(2, 3, 5, 16), positions[0], *tables], expected=[], fixed=[3, 8, 16])


def test_embeddings_out_of_range() -> None:
    table, one = floats(5, 4), floats(4)
    for ids, segments in (([[0, 5]], [[0, 0]]), ([[-1, 0]], [[0, 0]]), ([[1, 1]], [[0, 2]])):
        inputs = [np.array(ids, np.int32), np.array(segments, np.int32), table, floats(2, 4), floats(2, 4), one, one]
        with pytest.raises(InterpreterError, match="out of range"):
            check_ms("EmbedLayerNormalization", inputs, outputs=2, expected=[])


@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_convolution(activation: str, dilation: int) -> None:
    x, weight, bias, past = floats(2, 4, 7), floats(4, 1, 3, seed=1), floats(4), floats(2, 4, 2 * dilation, seed=2)
    attrs = {"activation": activation, "dilation": dilation}
    for inputs in ([x, weight], [x, weight, bias], [x, weight, bias, past], [x[..., :1], weight, None, past]):
        check_ms("CausalConvWithState", inputs, attrs, outputs=2, tolerance=1e-5, fixed=[3, 2 * dilation])


def test_what_a_causal_convolution_leaves() -> None:
    x, weight = floats(2, 7, 4), floats(4, 1, 3)
    assert "channels are last" in refusal_ms("CausalConvWithState", [x, floats(7, 1, 3)], {"channels_last": 1})
    assert "not a depthwise" in refusal_ms("CausalConvWithState", [x, weight])


# -- norms ------------------------------------------------------------------------------------------------------------


def group_norm(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float, swish: bool, last: bool) -> Any:
    wide = np.moveaxis(x, -1, 1) if last else x
    wide = wide.astype(np.float64)
    rows = wide.reshape(wide.shape[0], groups, -1)
    normal = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + epsilon)
    made = normal.reshape(wide.shape) * gamma[:, None, None] + beta[:, None, None]
    made = made * sigmoid(made) if swish else made
    return (np.moveaxis(made, 1, -1) if last else made).astype(x.dtype)


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("swish", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_group_norm(last: int, swish: int, dtype: Any) -> None:
    x = floats(2, 3, 5, 6, dtype=dtype) if last else floats(2, 6, 3, 5, dtype=dtype)
    gamma, beta = floats(6, seed=1), floats(6, seed=2)
    attrs = {"groups": 3, "epsilon": 1e-3, "activation": swish, "channels_last": last}
    wanted = group_norm(x, gamma, beta, 3, 1e-3, bool(swish), bool(last))
    tolerance = 1e-5 if dtype == F32 else 4e-3
    check_ms("GroupNorm", [x, gamma, beta], attrs, tolerance=tolerance, expected=[wanted], fixed=[6])


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 1, 1, 6), (2, 6)])
@pytest.mark.parametrize("outputs", [1, 2])
def test_skip_group_norm(shape: tuple[int, ...], outputs: int) -> None:
    x, gamma, beta, skip, bias = floats(2, 3, 5, 6), floats(6), floats(6, seed=1), floats(*shape), floats(6, seed=3)
    total = x + (skip if len(shape) == 4 else skip[:, None, None, :]) + bias
    wanted = [group_norm(total, gamma, beta, 2, 1e-5, True, True), total][:outputs]
    attrs = {"groups": 2, "activation": 1}
    inputs = [x, gamma, beta, skip, bias]
    check_ms("SkipGroupNorm", inputs, attrs, outputs=outputs, tolerance=1e-5, expected=wanted, fixed=[6])


def test_what_onnxruntime_refuses_is_refused() -> None:
    assert "not a scalar" in refusal_ms("ScaledSiLU", [floats(3, 3), floats(1)])


def test_group_norm_refusals() -> None:
    x, one = floats(2, 3, 5, 6), floats(6)
    assert "4 groups" in refusal_ms("GroupNorm", [x, one, one], {"groups": 4, "activation": 0})
    assert "channel" in refusal_ms("GroupNorm", [x, floats(3), one], {"groups": 2, "activation": 0})


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
@pytest.mark.parametrize("shape", [(2, 3, 8), (2, 3, 24), (0, 3, 8), (8,)])
def test_gated_rms_norm(shape: tuple[int, ...], activation: str, dtype: Any) -> None:
    inputs = [floats(*shape, dtype=dtype), floats(8, dtype=dtype, seed=1), floats(*shape, dtype=dtype, seed=2)]
    tolerance = 1e-5 if dtype == F32 else 2e-3
    check_ms("GatedRMSNorm", inputs, {"activation": activation}, tolerance=tolerance, fixed=[8])


@pytest.mark.parametrize("dtype", [F32, F16])
def test_branchwise_rms_norm(dtype: Any) -> None:
    tolerance = 1e-5 if dtype == F32 else 2e-3
    grouped, flat = floats(2, 5, 3, 4, dtype=dtype), floats(2, 5, 12, dtype=dtype)
    for scale in (None, floats(12), floats(3, 4, dtype=F16), floats(4)):
        inputs = [grouped] if scale is None else [grouped, scale]
        check_ms("BranchwiseRMSNorm", inputs, {"epsilon": 1e-3}, tolerance=tolerance, fixed=[3, 4, 12])
        inputs[0] = flat
        check_ms("BranchwiseRMSNorm", inputs, {"num_branches": 3}, tolerance=tolerance, fixed=[3, 4, 12])


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 4), (12,)])
def test_hyper_connections(shape: tuple[int, ...], dtype: Any) -> None:
    tolerance = 1e-5 if dtype == F32 else 4e-3
    flat, weights = floats(2, 5, 12, dtype=dtype), floats(2, 5, *shape, seed=1)
    attrs: dict[str, Any] = {"num_branches": 3}
    check_ms(
        "HyperConnectionPreMix",
        [flat, weights],
        {**attrs, "reduction_scale": 0.5},
        tolerance=tolerance,
        fixed=[3, 4, 12],
    )
    if shape == (12,):
        return
    grouped = floats(2, 5, 3, 4, dtype=dtype)
    check_ms("HyperConnectionPreMix", [grouped, weights], tolerance=tolerance, fixed=[3, 4])
    block = floats(2, 5, 4, dtype=dtype, seed=2)
    for mix in ([], [floats(2, 5, 3, 3, seed=3)]):
        check_ms("HyperConnectionPostMix", [grouped, block, weights, *mix], tolerance=tolerance, fixed=[3, 4])
        check_ms("HyperConnectionPostMix", [flat, block, weights, *mix], attrs, tolerance=tolerance, fixed=[3, 4, 12])


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("outputs", [1, 2])
def test_engram_gate(outputs: int, dtype: Any) -> None:
    shape = (2, 5, 3, 8)
    key, query = floats(*shape, dtype=dtype), floats(*shape, dtype=dtype, seed=1)
    value = floats(2, 5, 8, dtype=dtype, seed=2)
    scales = [floats(3, 8, dtype=dtype, seed=k) for k in range(3, 5 + outputs - 1)]
    tolerance = 1e-5 if dtype == F32 else 4e-3
    check_ms("EngramGate", [key, query, value, *scales], outputs=outputs, tolerance=tolerance, fixed=[3, 8])


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("outputs", [1, 2])
def test_linear_attention_gate(outputs: int, dtype: Any) -> None:
    inputs = [floats(2, 5, 3, dtype=dtype, scale=9), floats(3), -abs(floats(3)), floats(2, 5, 3, dtype=dtype)]
    tolerance = 2e-6 if dtype == F32 else 2e-3
    check_ms("LinearAttentionGate", inputs[: outputs + 2], outputs=outputs, tolerance=tolerance)


# -- of before opset 10 -----------------------------------------------------------------------------------------------


def test_legacy_ops() -> None:
    x = np.concatenate([floats(1, 3, 4, 5), 30 * floats(1, 3, 4, 5, seed=1)])
    parameters = {"alpha": 1.7, "beta": -0.6}
    for op in ("Affine", "ScaledTanh", "ParametricSoftplus"):
        check(op, [x], parameters, opset=7, tolerance=1e-5)
    check("Scale", [x], {"scale": 0.3}, opset=7, tolerance=1e-6)
    check("ImageScaler", [x], {"scale": 0.3, "bias": [1.0, -2.0, 0.5]}, opset=7, tolerance=1e-6, fixed=[3])
    check("Crop", [x], {"border": [1, 2, 0, 1]}, opset=7)
    check("Crop", [x], {"border": [1, 2, 0, 0], "scale": [2, 3]}, opset=7)
