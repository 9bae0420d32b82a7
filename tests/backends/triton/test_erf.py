"""`1 + erf(x)` on GPUs, in the interpreter beside libm's `erfc` in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from tests.backends.triton.programs import func_of, kernels_of, lowered, model

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

ABSOLUTE, RELATIVE, FITTED = 1.5e-7, 8e-6, 4.2
"""The largest error of the result; that of negative x, relative to it, within the range of the fit. numpy's powers of
two are rounded correctly; a GPU's add 2^-22 of the result."""


def sums(x: Any) -> Any:
    """1 + erf(x), by a kernel."""
    nodes = [helper.make_node("Erf", ["x"], ["e"]), helper.make_node("Add", ["e", "one"], ["y"])]
    given = model(nodes, {"x": (TensorProto.FLOAT, ["n"])}, {"one": np.float32(1)})
    module = lowered(given)
    (kernel,) = kernels_of(module)
    text = print_kernel(kernel)
    assert "tl.erf" not in text
    assert "tl.exp2" in text
    (found,) = run_func(module, func_of(module), [x], {"n": len(x)})
    return found


def every(step: int) -> Any:
    """Every `step`-th of all floats."""
    return np.arange(0, 1 << 32, step, np.uint64).astype(np.uint32).view(np.float32)


def compare(x: Any) -> None:
    found = sums(x).astype(np.float64)
    wanted = np.array([math.erfc(-v) for v in x.tolist()])
    assert (np.isnan(found) == np.isnan(wanted)).all()
    apart = np.abs(found - wanted)[~np.isnan(wanted)]
    assert apart.max() < ABSOLUTE
    near = (x < 0) & (x > -FITTED)
    assert (np.abs(found[near] / wanted[near] - 1) < RELATIVE).all()


def test_all_kinds_of_floats() -> None:
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, -4.2, -10.1], np.float32)
    found = sums(special)
    assert found[:4].tolist() == [1, 1, 2, 0]
    assert np.isnan(found[4])
    assert found[8] == 0
    compare(np.concatenate([special, every(200_003), np.linspace(-8, 8, 20_001, dtype=np.float32)]))


@pytest.mark.full
def test_many_floats() -> None:
    compare(every(5_003))
    compare(np.linspace(-12, 12, 1_000_001, dtype=np.float32))


def test_erf_alone_is_the_device_librarys() -> None:
    module = lowered(model([helper.make_node("Erf", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["n"])}))
    assert "tl.erf" in print_kernel(kernels_of(module)[0])
