"""DFT, STFT and windows against ONNX Runtime: axes, lengths, real and complex signals, both directions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from igniter.runtime.interp.structured import run_kernel
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import kernel_of, model_of, module_of, refusal

F32 = np.float32
check = partial(check_exactly, tolerance=2e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


@pytest.mark.parametrize("parts", [1, 2])
def test_dft(parts: int) -> None:
    x = floats(2, 9, 6, parts)
    for axis in (1, 2, -2):
        check("DFT", [x, None, np.array(axis)], opset=20, constant=[2], fixed=[parts])
        check("DFT", [x, np.array(8), np.array(axis)], opset=20, constant=[1, 2], fixed=[parts])
    check("DFT", [x], {"axis": 2}, opset=17, fixed=[parts])
    if parts == 1:
        check("DFT", [x], {"onesided": 1, "axis": 1}, opset=17, fixed=[1])
    else:
        check("DFT", [x], {"inverse": 1, "axis": 1}, opset=17, fixed=[2])
    check("DFT", [x.astype(np.float64)], opset=20, tolerance=1e-12, fixed=[parts])


def test_dft_refuses() -> None:
    assert refusal("DFT", [floats(2, 9, 1), None, np.array(1)], opset=20) == "its axis is only known when it runs"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 5])
def test_real_inverse(bins: int, dtype: Any) -> None:
    x = np.random.default_rng(bins).normal(size=(3, bins, 4, 2)).astype(dtype)
    attrs = {"inverse": 1, "onesided": 1}
    close: dict[str, Any] = {"constant": [1, 2], "opset": 20, "tolerance": 1e-5, "fixed": [2]}
    check("DFT", [x, None, np.array(1)], attrs, **close)
    # An odd length, of which no bin is alone but the first.
    check("DFT", [x, np.array(2 * bins - 1), np.array(1)], attrs, dynamic=(False,), **close)
    check("DFT", [x], {**attrs, "axis": 1}, opset=17, tolerance=1e-5, fixed=[2])


def test_a_real_inverse_of_other_bins_stays() -> None:
    x = np.zeros((3, 5, 4, 2), np.float32)
    for length, dynamic in ((7, False), (10, False), (8, True)):
        reason = refusal(
            "DFT",
            [x, np.array(length), np.array(1)],
            {"inverse": 1, "onesided": 1},
            constant=[1, 2],
            fixed=[2],
            dynamic=dynamic,
        )
        assert "half of the bins is not known" in reason


def test_stft() -> None:
    x, window = floats(2, 33, 1), np.abs(floats(8, seed=1))
    for onesided in (0, 1):
        for given in (
            [x, np.array(5), window],
            [x, np.array(4), None, np.array(16)],
            [x, np.array(3), window, np.array(8)],
        ):
            constant = [k for k in (1, 3) if k < len(given)]
            check("STFT", given, {"onesided": onesided}, opset=17, constant=constant, dynamic=(False,))


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_window(op: str) -> None:
    for periodic in (0, 1):
        for size in (1, 2, 9):
            # A size that is a constant is folded; here the kernel computes it.
            given, attrs = [np.array(size, np.int64)], {"periodic": periodic}
            if size > 1 or periodic:
                check(op, given, attrs, opset=17, constant=[0], tolerance=1e-6, dynamic=(False,))
    kernel = kernel_of(module_of(model_of(op, [np.array(0, np.int64)], {}, constant=[0], opset=17)))
    assert run_kernel(kernel, [])[0].shape == (0,)
