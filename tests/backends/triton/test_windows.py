"""Pools and resizes as single launches: windows are folded element by element, places of a resize computed inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects.loop import LaunchOp
from tests.backends.triton.programs import Array, check, func_of, kernels_of, lowered, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
full = pytest.mark.full


def pooled(op: str, opset: int = 20, kind: int = FLOAT, **attributes: Any) -> Any:
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    return model([node], {"x": (kind, ["b", 3, 13, 9])}, opset=opset)


def images(batch: int, kind: int = FLOAT, number: float = np.nan) -> dict[str, Array]:
    """Images with `number` and infinities. ONNX Runtime's maxima on CPUs lose some NaN."""
    x = values(np.float32 if kind == FLOAT else np.float16, batch, 3, 13, 9)
    if x.size:
        x[0, 0, 2, 3], x[0, 1, 0, 0], x[0, 2, 12, 8] = number, np.inf, -np.inf
    return {"x": x}


POOLS: list[Any] = [
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "ceil_mode": 1}),
    pytest.param("MaxPool", {"kernel_shape": [2, 3], "dilations": [3, 2], "ceil_mode": 1}, marks=full),
    pytest.param("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, marks=full),
    pytest.param("MaxPool", {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}, marks=full),
    pytest.param("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2], "count_include_pad": 1}, marks=full),
    pytest.param("LpPool", {"kernel_shape": [3, 3], "strides": [2, 2], "p": 2}, marks=full),
    pytest.param("GlobalAveragePool", {}, marks=full),
    pytest.param("GlobalMaxPool", {}, marks=full),
]


@pytest.mark.parametrize("op, attributes", POOLS)
def test_pools(op: str, attributes: dict[str, Any]) -> None:
    launches = None if attributes.get("kernel_shape") == [5, 5] or op.startswith("Global") else 1
    number = 3.0 if "Max" in op else np.nan
    check(pooled(op, **attributes), images(2, number=number), images(0), launches=launches)


def test_maxima_of_halves() -> None:
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check(pooled("MaxPool", kind=HALF, **attributes), images(2, HALF, 3.0), launches=1)


def test_a_pool_with_channels_last() -> None:
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("MaxPool", ["t"], ["p"], **attributes),
        helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    check(model(nodes, {"x": (FLOAT, ["b", 7, 9, 5])}), {"x": values(np.float32, 2, 7, 9, 5)}, launches=1)


RESIZES: list[Any] = [
    ("nearest", [1, 1, 2, 2.5], {"nearest_mode": "floor"}),
    ("linear", [1, 1, 2, 0.6], {}),
    pytest.param("nearest", [1, 1, 0.4, 3], {"coordinate_transformation_mode": "align_corners"}, marks=full),
    pytest.param("linear", [1, 1, 2, 2], {"coordinate_transformation_mode": "align_corners"}, marks=full),
    pytest.param("linear", [1, 1, 1.7, 1], {"coordinate_transformation_mode": "asymmetric"}, marks=full),
    pytest.param("linear", [1, 1, 0.5, 0.5], {"antialias": 1}, marks=full),
    pytest.param("cubic", [1, 1, 2, 1.5], {}, marks=full),
    pytest.param("cubic", [1, 1, 0.7, 2], {"exclude_outside": 1}, marks=full),
]


@pytest.mark.parametrize("mode, scales, attributes", RESIZES)
def test_resizes(mode: str, scales: list[float], attributes: dict[str, Any]) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, **attributes)
    found = model([node], {"x": (FLOAT, ["b", 3, 13, 9])}, {"s": np.array(scales, np.float32)}, opset=19)
    launches = None if mode == "cubic" or "antialias" in attributes else 1
    # Along an axis of scale 1 ONNX Runtime multiplies the neighbours by 0, and an infinity becomes NaN.
    x = {"x": values(np.float32, 2, 3, 13, 9)} if scales[3] == 1 else images(2)
    check(found, x, images(0), launches=launches, rtol=2e-5)


@pytest.mark.slow
def test_a_resize_of_unknown_size() -> None:
    node = helper.make_node("Resize", ["x", "", "", "z"], ["y"], mode="linear")
    found = model([node], {"x": (FLOAT, ["b", 3, "h", 9])}, {"z": np.array([2, 3, 20, 20])}, opset=19)
    check(found, *({"x": values(np.float32, 2, 3, h, 9)} for h in (11, 20)), launches=1)


@pytest.mark.parametrize("arch", [90, *(pytest.param(arch, marks=full) for arch in (80, 100, 120))])
@pytest.mark.parametrize("kind", [HALF, pytest.param(FLOAT, marks=full)])
def test_no_window_spills(kind: int, arch: int) -> None:
    attributes = {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    module = lowered(pooled("MaxPool", kind=kind, **attributes), f"cuda:sm_{arch}")
    (kernel,), (launch,) = kernels_of(module), [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
    assert resources_of(made, arch).spills == 0
