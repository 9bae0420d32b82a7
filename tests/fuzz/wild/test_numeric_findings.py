"""Findings of the fuzzer about values that are no numbers, and of what they are beside: a node each."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.fuzz.wild.pool import Array, make_model, value_info
from tests.fuzz.wild.run import Wild, run_wild
from tests.fuzz.wild.test_findings import outcome

NAN, INF = np.nan, np.inf


def floats(*values: object) -> Array:
    return np.array(values, np.float32)


def test_the_greatest_of_a_row_is_a_number() -> None:
    """Normalizer passes NaN over when it looks for the greatest element; a row of NaN alone stays one."""
    rows = floats(
        [NAN, 1, 2], [1, NAN, 0.5], [NAN, NAN, NAN], [-1, -2, NAN], [0, 0, NAN], [-INF, -INF, -1], [INF, 1, 2]
    )
    for norm in ("MAX", "L1", "L2"):
        assert outcome("ai.onnx.ml.Normalizer", [[rows]], norm=norm) == ("ok", 0)


@pytest.mark.slow
def test_f16_that_does_not_vary_has_no_deviation() -> None:
    """The epsilon of MeanVarianceNormalization is 0 in f16: 0 / 0."""
    feeds = [[np.float16([[k, 1], [2, 2.5]])] for k in (1, 2)]
    for axes in ([0], [1]):
        assert outcome("MeanVarianceNormalization", feeds, axes=axes) == ("ok", 0)
    assert outcome("MeanVarianceNormalization", [[np.float16([[3]])]], axes=[0, 1]) == ("ok", 0)
    assert outcome("MeanVarianceNormalization", [[floats([3.5, 3.5])]], axes=[1]) == ("ok", 0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (1, 2, 2, 3)])
def test_a_filter_does_not_take_what_it_does_not_reach(mode: str, sizes: tuple[int, ...]) -> None:
    x = np.arange(2 * 4 * 6, dtype=np.float32).reshape(1, 2, 4, 6)
    x[0, 0, 0, 0], x[0, 0, 1, 2], x[0, 1, 3, 5], x[0, 1, 0, 3] = INF, NAN, -INF, NAN
    for outside in (0, 1):
        found = outcome(
            "Resize",
            [[x, None, None]],
            [np.array(sizes, np.int64)],
            opset=18,
            mode=mode,
            antialias=1,
            exclude_outside=outside,
            coordinate_transformation_mode="half_pixel",
        )
        assert found == ("ok", 0)


@pytest.mark.parametrize("attrs", [{}, {"strides": [2, 2]}, {"dilations": [2, 1], "pads": [1, 0, 1, 0]}])
def test_elements_that_are_not_there_meet_no_infinity(attrs: dict[str, object]) -> None:
    """A computed weight of ConvTranspose may be infinite, beyond the ends of the input as well."""
    w = np.ones((1, 2, 3, 2), np.float32)
    w[0, 0, 0, 1], w[0, 1, 2, 0] = INF, -INF
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    assert outcome("ConvTranspose", [[x, w]], **attrs) == ("ok", 0)


@pytest.mark.parametrize("length", [3, 4, 5])
def test_the_transform_of_a_signal_that_is_not_finite(length: int) -> None:
    x = np.arange(2 * length, dtype=np.float32).reshape(2, length, 1)
    x[0, 1] = INF
    axis = np.array(1, np.int64)
    # Of 4 samples ONNX Runtime makes infinities, which `readings.py` takes for NaN.
    assert outcome("DFT", [[x, None]], [axis], opset=20)[0].split()[0] == ("ort" if length == 4 else "ok")
    x[1, 0] = NAN
    assert outcome("DFT", [[x, None]], [axis], opset=20, inverse=1)[0].split()[0] == ("ort" if length == 4 else "ok")


def test_outputs_that_are_folded_keep_their_type() -> None:
    """Floats of eight bits come out of ONNX Runtime as bytes where nothing says what they are."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], name="shape"),
        helper.make_node("Cast", ["shape"], ["y"], name="cast", to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Exp", ["x"], ["z"], name="exp"),
    ]
    outputs = [onnx.ValueInfoProto(name=n) for n in "yz"]
    graph = helper.make_graph(nodes, "found", [value_info("x", np.float32, [2, 3])], outputs)
    model = make_model(graph, 21)
    found = run_wild(Wild(0, model, model, ({"x": np.ones((2, 3), np.float32)},), "every", "native", shipped=False))
    assert found.status == "ok", found.message
