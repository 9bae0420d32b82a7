"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear have ONNX Runtime's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import NotLowered, check

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
    with pytest.raises(NotLowered, match="one for each block"):
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


def test_dynamic_over_scales() -> None:
    for _ in range(20):
        x = RNG.normal(size=(4, 50)) * 10 ** RNG.uniform(-4, 4) + RNG.normal()
        check("DynamicQuantizeLinear", [x.astype(np.float32)], outputs=3, dynamic=[True])
