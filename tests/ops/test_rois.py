"""RoiAlign, MaxRoiPool and CropAndResize against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import check, refusal

F32 = np.float32
BOXES = [
    [0, 0, 9, 7],
    [2.3, 1.2, 5.7, 6.1],
    [-3, -2, 4, 4],
    [5, 5, 30, 30],
    [4, 4, 4, 4],
    [6, 6, 2, 3],
    [40, 40, 50, 60],
]


def image(dtype: Any = F32) -> Any:
    return np.random.default_rng(0).normal(0, 1, (2, 3, 8, 10)).astype(dtype)


def regions(dtype: Any = F32) -> tuple[Any, Any]:
    return np.array(BOXES, dtype), np.array([0, 1, 1, 0, 1, 0, 1], np.int64)


@pytest.mark.parametrize("dtype", [F32, np.float64])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("pixel", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_roi_align(ratio: int, pixel: str, mode: str, dtype: Any) -> None:
    attrs = {
        "output_height": 3,
        "output_width": 2,
        "sampling_ratio": ratio,
        "spatial_scale": 0.75,
        "coordinate_transformation_mode": pixel,
        "mode": mode,
    }
    check("RoiAlign", [image(dtype), *regions(dtype)], attrs, opset=16, tolerance=2e-5, fixed=[4])
    if dtype == F32 and pixel == "half_pixel":
        del attrs["coordinate_transformation_mode"]
        check("RoiAlign", [image(), *regions()], attrs, opset=10, tolerance=2e-5, fixed=[4])


@pytest.mark.slow
def test_roi_align_of_nothing() -> None:
    rois, batches = regions()
    check("RoiAlign", [image(), rois[:0], batches[:0]], {"output_height": 2}, opset=16, fixed=[4])
    x = image()
    x[0, 0, 0, 0] = np.nan
    # The first reads the element, the second does not.
    check("RoiAlign", [x, rois[:2], batches[:2]], {"output_height": 2}, opset=16, tolerance=2e-5, fixed=[4])


def test_roi_align_refusals() -> None:
    rois, batches = regions()
    assert "different types" in refusal("RoiAlign", [image(), rois.astype(np.float64), batches], opset=16)


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("shape", [[1, 1], [3, 2]])
def test_max_roi_pool(shape: list[int], scale: float) -> None:
    rois, batches = regions()
    boxes = np.concatenate([batches[:, None].astype(F32), rois], 1)
    check("MaxRoiPool", [image(), boxes], {"pooled_shape": shape, "spatial_scale": scale}, fixed=[5])
    check("MaxRoiPool", [image(), boxes[:0]], {"pooled_shape": shape}, fixed=[5])


CROPS = [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.8, 0.9, 0.1, 0], [-0.5, -0.2, 1.4, 1.2], [0.5, 0.5, 0.5, 0.5]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 1), (2, 1)])
def test_crop_and_resize(size: tuple[int, int], mode: str) -> None:
    inputs = [image(), np.array(CROPS, F32), np.array([0, 1, 1, 0, 1], np.int32), np.array(size, np.int32)]
    attrs = {"mode": mode, "extrapolation_value": 2.5}
    check("CropAndResize", inputs, attrs, domain="com.microsoft", constant=[3], tolerance=2e-5, fixed=[4])
