"""Comparing outputs, choosing shapes and inputs, and what a verification says."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, parser

from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.verification.graph_facts import index_limits
from igniter.verification.inputs import random_inputs
from igniter.verification.specs import InputSpec, specs_of
from igniter.verification.verify import compare_output, verify_sessions

NAN, INF = math.nan, math.inf


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "ok", "error"),
    [
        (f32(1, 2, 4), f32(1, 2, 4), True, 0.0),
        (f32(1, 2, 1000), f32(1.05, 2, 1000), True, 0.05 / 1000),
        (f32(1, 2, 4), f32(1, 2, 4.1), False, 0.1 / 4),
        (f32(0, 0), f32(0, 1e-5), True, 1e-5),
        (f32(0, 0), f32(0, 1e-3), False, 1e-3),
        (f32(NAN, 1), f32(NAN, 1), True, 0.0),
        (f32(INF, -INF), f32(INF, -INF), True, 0.0),
        (f32(NAN, 1), f32(1, 1), False, 0.0),
        (f32(1, 1), f32(1, NAN), False, 0.0),
        (f32(INF, 1), f32(-INF, 1), False, 0.0),
        (f32(INF, 1), f32(NAN, 1), False, 0.0),
        (f32(INF, 1), f32(3, 1), False, 0.0),
        (f32(), f32(), True, 0.0),
        (np.array([1, 2]), np.array([1, 2]), True, 0.0),
        (np.array([1, 2]), np.array([1, 3]), False, 0.5),
        (np.array([2**63 - 1]), np.array([-(2**63)]), False, 2.0),
        (np.array([True]), np.array([False]), False, 1.0),
        (np.array(["a"], object), np.array(["a"], object), True, 0.0),
        (np.array([1e-3], np.float64), np.array([1e-3 + 1e-13], np.float64), True, 1e-10),
        (np.array([1.0], np.float64), np.array([1 + 1e-8], np.float64), False, 1e-8),
        ([f32(1), f32(2)], [f32(1), f32(2)], True, 0.0),
        ([f32(1), f32(2)], [f32(1), f32(3)], False, 0.5),
        (None, None, True, 0.0),
    ],
)
def test_outputs_are_compared(expected, actual, ok: bool, error: float) -> None:
    result = compare_output("y", expected, actual)
    assert result.ok == ok
    assert bool(result.reason) != ok
    assert result.max_error == pytest.approx(error, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (f32(1), np.array([1.0]), "the type is float64, ORT's is float32"),
        (f32(1), f32(1, 2), r"the shape is \[2\], ORT's is \[1\]"),
        ([f32(1)], [f32(1), f32(2)], "the sequences differ in length"),
        (None, f32(1), "the values differ"),
        (np.array(["a"], object), np.array(["b"], object), "text differs"),
        (np.array([1, 2, 3]), np.array([1, 5, 6]), "2 of 3 elements differ"),
        (f32(1, NAN), f32(NAN, 1), "NaN or infinity in 2 of 2 places"),
        (f32(1), f32(2), "the largest error, 1 of the largest magnitude 1, is over 0.0001"),
    ],
)
def test_what_differs_is_said(expected, actual, reason: str) -> None:
    import re

    assert re.search(reason, compare_output("y", expected, actual).reason)


def test_the_tolerance_can_be_given() -> None:
    assert compare_output("y", f32(1), f32(1.01), rtol=0.1).ok
    assert not compare_output("y", f32(1), f32(1.00001), rtol=1e-7).ok


# -- shapes and inputs ------------------------------------------------------------------------------------------------


def test_dims_without_a_name_get_one() -> None:
    spec = InputSpec("x", "float", (None, "a b", "n-1", "k*", "?", ""))
    assert spec.symbols() == ("x.0", "a b", "n", "k*", "x.4", "x.5")
    assert spec.shape({"x.0": 2, "a b": 3, "n": 4, "k*": 5, "x.4": 6, "x.5": 7}) == (2, 3, 3, 5, 6, 7)
    with pytest.raises(IgniterError, match=r"dim 'x\.0' of input 'x' has no size"):
        spec.shape({})


def test_values_suit_type_and_name() -> None:
    specs = [
        InputSpec("input_ids", "int64", ("b", "s")),
        InputSpec("attention_mask", "int64", ("b", "s")),
        InputSpec("position_ids", "int64", ("b", "s")),
        InputSpec("token_type_ids", "int32", ("b", "s")),
        InputSpec("flag", "bool", ("s",)),
        InputSpec("x", "float16", ("s",)),
        InputSpec("u", "uint8", ("s",)),
        InputSpec("empty_mask", "float", ("z",)),
        InputSpec("scalar", "double", ()),
        InputSpec("b16", "bfloat16", ("s",)),
    ]
    shapes = {"b": 4, "s": 50, "z": 0}
    values = random_inputs(specs, shapes, {"input_ids": 7})
    assert values["input_ids"].dtype == np.int64 and values["input_ids"].max() == 6 and values["input_ids"].min() == 0
    mask = values["attention_mask"]
    assert set(np.unique(mask)) == {0, 1} and mask[:, 0].all() and (np.diff(mask, axis=1) <= 0).all()
    assert values["position_ids"][3].tolist() == list(range(50))
    assert values["token_type_ids"].dtype == np.int32 and set(np.unique(values["token_type_ids"])) == {0, 1}
    assert values["flag"].dtype == bool
    assert values["x"].dtype == np.float16 and values["u"].dtype == np.uint8
    assert values["empty_mask"].shape == (0,) and values["scalar"].shape == ()
    again = random_inputs(specs, shapes, {"input_ids": 7})
    assert all(np.array_equal(values[k], again[k]) for k in values)
    with pytest.raises(IgniterError, match="no random values of type complex64; give input 'q'"):
        random_inputs([InputSpec("q", "complex64", (1,))], {}, {})


GATHER = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[b, s] ids, int32[s] pos, int64[b] free, float[9, 4] table) => (float[b, s, 4] y, float[s, 1, 4] z, int64[b] f)
<int64[1] one = {1}> {
  y = Gather (table, ids)
  wide = Cast <to = 7> (pos)
  tall = Unsqueeze (wide, one)
  z = Gather <axis = 0> (y9, tall)
  y9 = Identity (table)
  f = Neg (free)
}
"""


def test_integers_stay_within_what_they_index() -> None:
    model = parser.parse_model(GATHER.replace("  z = Gather <axis = 0> (y9, tall)\n  y9 = Identity (table)\n",
                                              "  t5 = Slice (table, s0, s5)\n  z = Gather (t5, tall)\n")
                               .replace("{1}>", "{1}, int64[1] s0 = {0}, int64[1] s5 = {5}>"))  # fmt: skip
    model.graph.value_info.append(helper.make_tensor_value_info("t5", TensorProto.FLOAT, [5, 4]))
    assert index_limits(import_model(model)) == {"ids": 9, "pos": 5}


# -- sessions ---------------------------------------------------------------------------------------------------------


def session(text: str) -> ort.InferenceSession:
    header = '<ir_version: 8, opset_import: ["" : 17]>\n'
    proto = parser.parse_model(header + text)
    return ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


DOUBLE = "g (float[n, m] x) => (float[n, m] y) { y = Add (x, x) }"


def test_equal_sessions_pass() -> None:
    result = verify_sessions(session(DOUBLE), session("g (float[n, m] x) => (float[n, m] y) { y = Sum (x, x) }"))
    assert result and result.ok and not result.failures
    assert len(result.cases) >= 3 and result.max_errors == {"y": 0.0}
    assert json.loads(result.to_json())["cases"][0]["outputs"][0]["ok"] is True


def test_different_sessions_fail() -> None:
    result = verify_sessions(session(DOUBLE), session("g (float[n, m] x) => (float[n, m] y) { y = Exp (x) }"))
    assert not result
    assert any(("output 'y'" in line and "n=3" in line) or "output 'y'" in line for line in result.failures)
    assert result.max_errors["y"] > 0.1


def test_a_compiled_model_that_fails_is_a_failure() -> None:
    strict = session("g (float[n, m] x) => (float[n, m] y) <float[1, 1] w = {2.0}> { y = MatMul (x, w) }")
    result = verify_sessions(session(DOUBLE), strict)
    assert not result
    assert any("the compiled model fails" in line for line in result.failures)


def test_sizes_that_the_original_refuses_are_replaced() -> None:
    text = "g (float[n, m] x, float[k, p] w) => (float[n, p] y) { y = MatMul (x, w) }"
    result = verify_sessions(session(text), session(text))
    assert result and result.refused
    assert {c.status for c in result.cases} == {"passed"} and len(result.cases) > 1
    assert all(c.shapes["m"] == c.shapes["k"] for c in result.cases)
    never = verify_sessions(session(text), session(text), shapes=[{"n": 1, "m": 2, "k": 3, "p": 4}])
    assert not never and never.status == "not verified" and not never.failures
    assert "does not run at the sizes" in never.reasons[0] and "--shape n=N,m=N,k=N,p=N" in never.reasons[-1]


def test_sizes_are_chosen_for_the_dims_that_none_is_given_for() -> None:
    text = "g (float[batch, n, m] x) => (float[batch, n, m] y) { y = Neg (x) }"
    for name in ("batch", "n"):
        result = verify_sessions(session(text), session(text), shapes=[{name: 6}])
        assert result and {c.shapes[name] for c in result.cases} == {6} and len(result.cases) > 1


def test_given_inputs_are_used() -> None:
    seen: list[np.ndarray] = []
    real = session(DOUBLE)

    class Recorder:
        get_inputs, get_outputs = real.get_inputs, real.get_outputs

        def run(self, names, feed):
            seen.append(feed["x"])
            return real.run(names, feed)

    feeds = [{"x": np.full((1, 2), i, np.float32)} for i in range(2)]
    assert verify_sessions(real, Recorder(), inputs=feeds)
    assert [float(x[0, 0]) for x in seen] == [0.0, 1.0]
    assert verify_sessions(real, Recorder(), inputs=feeds[0])


def test_interfaces_must_agree() -> None:
    other = session("g (float[n, m] z) => (float[n, m] y) { y = Neg (z) }")
    with pytest.raises(IgniterError, match=r"has the inputs \['z'\], the original \['x'\]"):
        verify_sessions(session(DOUBLE), other)


def test_inputs_that_are_no_tensors_must_be_given() -> None:
    fake = SimpleNamespace(get_inputs=lambda: [SimpleNamespace(name="s", type="seq(tensor(float))", shape=[])])
    with pytest.raises(IgniterError, match=r"input 's' is of type seq\(tensor\(float\)\); give a value"):
        specs_of(fake)
