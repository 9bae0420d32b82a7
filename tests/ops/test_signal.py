"""DFT, STFT, windows and MelWeightMatrix against ONNX Runtime: axes, lengths, real and complex signals, both
directions, sizes and edges of filters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from igniter.errors import IgniterError
from igniter.verification.interp.structured import run_kernel
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import kernel_of, model_of, module_of, refusal
from tests.ops.test_compiled import run

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
    assert refusal("DFT", [floats(2, 9, 1), None, np.array(1)], opset=20) == "its axis is known only at run time"


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
        assert "not known to have half of the bins" in reason


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


def mel(filters: int, length: int, rate: int, low: float, high: float, kind: Any = np.int64) -> list[Any]:
    """The operands of a MelWeightMatrix."""
    return [*(np.array(n, kind) for n in (filters, length, rate)), np.array(low, F32), np.array(high, F32)]


MELS = [
    (8, 16, 8192, 0.0, 4096.0),
    (40, 512, 16000, 20.0, 8000.0),
    (80, 400, 16000, 0.0, 7600.0),
    (20, 33, 8000, 125.0, 3800.0),  # Corners coincide: there are more filters than bins.
    (5, 64, 48000, 0.0, 0.0),
    (4, 64, 8000, 3000.0, 100.0),  # An upper edge below the lower one: filters of nothing but a coinciding corner.
    (0, 8, 8000, 0.0, 4000.0),
]
SIZES: dict[str, Any] = {"constant": [0, 1], "opset": 17}
"""Sizes are constants; a run computes the others."""


@pytest.mark.parametrize("given", MELS, ids=str)
def test_mel_weights(given: tuple[int, int, int, float, float]) -> None:
    for code, kind in ((1, np.int32), (11, np.int64)):
        inputs, attrs = mel(*given, kind), {"output_datatype": code}
        check_exactly("MelWeightMatrix", inputs, attrs, dynamic=(False,), **SIZES)
        run("MelWeightMatrix", inputs, attrs, 0.0, **SIZES)


def test_mel_weights_of_edges_outside() -> None:
    # What is no size may be a tensor of one element, too.
    inputs = mel(6, 16, 8000, 0.0, 4000.0)
    inputs = [*inputs[:2], *(a.reshape(1) for a in inputs[2:])]
    check_exactly("MelWeightMatrix", inputs, dynamic=(False,), **SIZES)
    kernel = kernel_of(module_of(model_of("MelWeightMatrix", inputs, {}, **SIZES)))
    for low, high in ((0.0, 4300.0), (-1.0, 4000.0), (np.nan, 4000.0)):
        with pytest.raises(IgniterError, match="outside of the spectrogram"):
            run_kernel(kernel, [inputs[2], np.array([low], F32), np.array([high], F32)])


def test_mel_weights_refuse() -> None:
    inputs = mel(4, 16, 8000, 0.0, 4000.0)

    def lower_edge(edge: Any) -> str:
        return refusal("MelWeightMatrix", [*inputs[:3], edge, inputs[4]], **SIZES)

    assert "known only at run time" in refusal("MelWeightMatrix", inputs, constant=[0], opset=17)
    assert "not f32 or f64" in refusal("MelWeightMatrix", inputs, {"output_datatype": 6}, **SIZES)
    assert "its edges are not f32" in lower_edge(np.array(0.0))
    assert "not all known to be single numbers" in lower_edge(np.zeros(2, F32))
