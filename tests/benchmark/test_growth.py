"""The work of a compile by the size of its model: calls of functions are counted, so a busy machine changes nothing."""

from __future__ import annotations

import cProfile
import math
import pstats

import pytest

from benchmark.compile_time import exponent
from benchmark.growing_models import FAMILIES
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_loop, make_onnx
from igniter.context import IgniterContext
from igniter.module import load

N_LOG_N = 1.2
"""The limit of an exponent: n log n has 1.15 at these sizes."""


def calls(name: str, n: int) -> int:
    """Returns the calls of functions from a model to its kernels, before these are scheduled."""
    module = load(FAMILIES[name].make(n))
    c = Compilation(module.ir, CompileOptions(), IgniterContext())
    profile = cProfile.Profile()
    profile.enable()
    make_onnx(c)
    make_fusion(c)
    make_loop(c)
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # pyright: ignore[reportAttributeAccessIssue]


def growth(counts: list[int]) -> float:
    """Returns the exponent from three counts, each of twice the size before: fixed work has no part in differences."""
    first, second, third = counts
    return math.log2((third - second) / (second - first))


def test_exponents() -> None:
    assert exponent([10, 20], [5.0, 9.0], 1.0) == pytest.approx(1)
    assert exponent([10, 20], [2.0, 5.0], 1.0) == pytest.approx(2)
    assert growth([7 + n * n for n in (10, 20, 40)]) == pytest.approx(2)
    assert growth([7 + 3 * n for n in (10, 20, 40)]) == pytest.approx(1)


def require_linear(name: str, least: int) -> None:
    calls(name, least)  # Modules are imported and tables made.
    counts = [calls(name, least * times) for times in (1, 2, 4)]
    assert growth(counts) < N_LOG_N, (name, counts)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("concat", 400), ("nodes", 50)])
def test_work_grows_with_the_model(name: str, least: int) -> None:
    require_linear(name, least)


@pytest.mark.full
def test_work_grows_with_larger_models() -> None:
    sizes = {"nodes": 500, "chain": 200, "kernels": 20, "convolutions": 10, "concat": 1000}
    assert sizes.keys() == FAMILIES.keys()
    for name, least in sizes.items():
        require_linear(name, least)
