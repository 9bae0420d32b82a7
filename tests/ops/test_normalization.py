"""Softmax and the normalisations against ONNX Runtime: axes, opsets, all outputs, extreme rows, types, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from igniter.verification.interp.structured import run_kernel
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import compare, kernel_of, model_of, module_of, reference, refusal

F32 = np.float32
check = partial(check_exactly, tolerance=1e-5)
contrib = partial(check, domain="com.microsoft")
inf = np.inf


def floats(shape: tuple[int, ...], dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0.5, 2, shape).astype(dtype)


EXTREME = np.array(
    [[-inf, -inf, -inf], [np.nan, 1, 2], [inf, 1, 2], [1, 2, 3], [-inf, 0, 1], [1e4, -1e4, 0], [3e38, -3e38, 1]], F32
)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str) -> None:
    for axis in (0, 1, 2, -1, -3):
        check(op, [floats((2, 5, 3))], {"axis": axis}, opset=13)
    for axis in (0, 1, 2, -1):
        check(op, [floats((2, 5, 3))], {"axis": axis}, opset=11)
    check(op, [floats((2, 5, 3))], opset=13)
    check(op, [floats((2, 5, 3))], opset=11)
    check(op, [floats((7,))], opset=13)
    check(op, [floats((3, 1))], opset=13)
    check(op, [floats((0, 4))], opset=13)
    check(op, [floats((4, 5), np.float64)], opset=13, tolerance=1e-12)
    check(op, [EXTREME], {"axis": -1}, opset=13)
    check(op, [10 * floats((1, 2, 1, 2, 300))], {"axis": -1}, opset=13)
    assert refusal(op, [np.array(1, F32)], opset=13) == "axis -1 of a tensor of rank 0"


def test_hardmax() -> None:
    x = np.random.default_rng(0).integers(0, 3, (3, 4, 5)).astype(F32)
    for axis in (0, 1, -1):
        check("Hardmax", [x], {"axis": axis}, opset=13)
    assert refusal("Hardmax", [x], {"axis": 1}, opset=11) == "before opset 13 it normalises over several axes at once"


@pytest.mark.parametrize("axis", [-1, 1, 0, -2])
def test_layer_normalization(axis: int) -> None:
    x = floats((3, 4, 5))
    scale, bias = floats(x.shape[axis:], seed=1), floats(x.shape[axis:], seed=2)
    check("LayerNormalization", [x, scale, bias], {"axis": axis}, opset=17)
    check("LayerNormalization", [x, scale], {"axis": axis, "epsilon": 0.1}, opset=17)
    check("LayerNormalization", [x, scale, bias], {"axis": axis}, opset=17, outputs=3)


def test_layer_normalization_types_and_shapes() -> None:
    check("LayerNormalization", [floats((2, 1)), floats((1,)), floats((1,))], opset=17, outputs=3)
    check("LayerNormalization", [floats((0, 3)), floats((3,)), floats((3,))], opset=17, outputs=3)
    check("LayerNormalization", [floats((6,)), floats((6,))], opset=17)
    f64 = [floats((2, 6), np.float64), floats((6,), np.float64), floats((6,), np.float64)]
    check("LayerNormalization", f64, opset=17)
    far = floats((2, 64)) + 3000
    x = far.astype(np.float64)
    centred = x - x.mean(1, keepdims=True)
    want = (centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)).astype(F32)
    check("LayerNormalization", [far, np.ones(64, F32)], opset=17, expected=[want], tolerance=2e-3)


def test_rms_normalization() -> None:
    x = floats((2, 3, 8))
    for axis in (-1, 1):
        scale = floats(x.shape[axis:], seed=1)
        wide = x.astype(np.float64)
        axes = tuple(range(axis % 3, 3))
        want = (wide / np.sqrt((wide**2).mean(axes, keepdims=True) + 1e-5) * scale).astype(F32)
        check("RMSNormalization", [x, scale], {"axis": axis}, opset=23, expected=[want])
    check("SimplifiedLayerNormalization", [x, floats((8,), seed=1)], {"epsilon": 1e-3})


@pytest.mark.slow
def test_skip_layer_normalization() -> None:
    x, skip, gamma = floats((2, 3, 8)), floats((2, 3, 8), seed=1), floats((8,), seed=2)
    beta, bias = floats((8,), seed=3), floats((8,), seed=4)
    for tail in ([], [beta], [beta, bias], [None, bias]):
        contrib("SkipLayerNormalization", [x, skip, gamma, *tail])
    contrib("SkipLayerNormalization", [x, skip, gamma, beta], {"epsilon": 1e-3})
    contrib("SkipLayerNormalization", [x, skip[:1], gamma, beta])
    contrib("SkipLayerNormalization", [x, skip[0], gamma, beta])
    for tail in ([], [bias]):
        contrib("SkipSimplifiedLayerNormalization", [x, skip, gamma, *tail], {"epsilon": 1e-4})


def test_skip_layer_normalization_hands_out_the_sum() -> None:
    inputs = [floats((2, 3, 8)), floats((2, 3, 8), seed=1), floats((8,), seed=2), floats((8,), seed=3)]
    model = model_of("SkipLayerNormalization", inputs, {}, outputs=4, domain="com.microsoft")
    for unwanted in (2, 1):
        model.graph.node[0].output[unwanted] = ""
        del model.graph.output[unwanted]
    feeds = {f"x{k}": x for k, x in enumerate(inputs)}
    got = run_kernel(kernel_of(module_of(model)), list(feeds.values()))
    compare(got, reference(model, feeds), 1e-5)
    assert "outputs for training" in refusal("SkipLayerNormalization", inputs, outputs=2, domain="com.microsoft")


@pytest.mark.slow
def test_embed_layer_normalization() -> None:
    rng = np.random.default_rng(0)
    ids, segments = (rng.integers(0, n, (2, 3)).astype(np.int32) for n in (7, 2))
    places = rng.integers(0, 5, (2, 3)).astype(np.int32)
    tables = [floats((7, 4)), floats((5, 4), seed=1), floats((2, 4), seed=2)]
    gamma, beta = floats((4,), seed=3), floats((4,), seed=4)
    mask = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    for segmented in (False, True):
        given = [ids, segments if segmented else None, *tables[:2], tables[2] if segmented else None, gamma, beta]
        for tail in ([], [mask], [mask, places], [None, places], [None, places[:1]]):
            contrib("EmbedLayerNormalization", [*given, *tail], {"epsilon": 1e-3}, outputs=3)
            contrib("EmbedLayerNormalization", [*given, *tail], outputs=2)


def test_batch_normalization() -> None:
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2), (0, 3, 2)):
        parameters = [floats((3,), seed=k) for k in range(1, 4)]
        variance = np.abs(floats((3,), seed=4))
        check("BatchNormalization", [floats(shape), *parameters, variance], opset=15)
    check("BatchNormalization", [floats(shape), *parameters, variance], {"epsilon": 0.1}, opset=9)
    given = [floats((2, 3, 4)), *parameters, variance]
    assert "in training" in refusal("BatchNormalization", given, opset=6)
    assert "spatial" in refusal("BatchNormalization", given, {"spatial": 0}, opset=8)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batch_normalization_in_training(shape: tuple[int, ...], dtype: Any) -> None:
    x = (floats(shape) * 2 + 1).astype(dtype)
    parameters = [floats((3,), seed=k).astype(dtype) for k in range(3)]
    inputs = [x, *parameters, np.abs(floats((3,), seed=4)).astype(dtype)]
    attrs = {"training_mode": 1, "momentum": 0.8, "epsilon": 0.01}
    check("BatchNormalization", inputs, attrs, opset=15, outputs=3)
    check("BatchNormalization", inputs, attrs, opset=14, outputs=3)


def test_instance_normalization() -> None:
    for shape in ((2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2)):
        check("InstanceNormalization", [floats(shape), floats((3,), seed=1), floats((3,), seed=2)], {"epsilon": 1e-3})


@pytest.mark.slow
def test_group_normalization() -> None:
    # The channels stay an integer: whether a symbolic number of them makes groups is not known.
    for shape in ((2, 6, 5), (2, 6, 3, 4)):
        for groups in (1, 2, 3, 6):
            attrs = {"num_groups": groups, "epsilon": 1e-3}
            x = floats(shape)
            check(
                "GroupNormalization", [x, floats((6,), seed=1), floats((6,), seed=2)], attrs, opset=21, dynamic=[False]
            )
            scale, bias = floats((groups,), seed=1), floats((groups,), seed=2)
            grouped = x.reshape(2, groups, -1).astype(np.float64)
            centred = grouped - grouped.mean(2, keepdims=True)
            want = centred / np.sqrt((centred**2).mean(2, keepdims=True) + 1e-3)
            want = (want * scale[None, :, None] + bias[None, :, None]).reshape(shape).astype(F32)
            check("GroupNormalization", [x, scale, bias], attrs, opset=18, dynamic=[False], expected=[want])
    given = [floats((2, 6, 5)), floats((6,)), floats((6,))]
    assert "are not known to form 2 groups" in refusal(
        "GroupNormalization", given, {"num_groups": 2}, opset=21, dynamic=True
    )


def test_lp_normalization() -> None:
    x = floats((3, 4, 5))
    x[1, :, 2] = 0
    x[1, 2] = 0
    for axis in (0, 1, -1):
        for p in (1, 2):
            check("LpNormalization", [x], {"axis": axis, "p": p})
    check("LpNormalization", [floats((3, 4), np.float64)])


def test_mean_variance_normalization() -> None:
    check("MeanVarianceNormalization", [floats((2, 3, 4, 5))])
    check("MeanVarianceNormalization", [floats((4, 5, 3))], {"axes": [0, 1]})


@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization", "GroupNormalization"])
def test_rows_with_an_offset_in_common(op: str) -> None:
    """What the mean loses to rounding, the distances from it give back: ONNX Runtime is off by up to 1.3 here."""
    for offset in (1e4, 1e7, 1e8):
        rows = (np.random.default_rng(0).normal(size=(4, 2, 100)) * 3 + offset).astype(np.float32)
        axes = {"LayerNormalization": (2,), "InstanceNormalization": (2,), "GroupNormalization": (1, 2)}[op]
        wide = rows.astype(np.float64)
        mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
        expected = ((wide - mean) / np.sqrt(variance + 1e-5)).astype(np.float32)
        size = {"LayerNormalization": 100, "InstanceNormalization": 2, "GroupNormalization": 1}[op]
        parameters = [np.ones(size, np.float32), np.zeros(size, np.float32)]
        attributes = {"num_groups": 1} if op == "GroupNormalization" else {}
        opset = {"LayerNormalization": 17, "InstanceNormalization": 17, "GroupNormalization": 18}[op]
        dynamic = [False] if op == "GroupNormalization" else [False, True]
        check(op, [rows, *parameters], attributes, opset=opset, expected=[expected], dynamic=dynamic)
