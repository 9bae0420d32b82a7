"""An output whose size depends on a rounding: the regions are compared, each on the original's own values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import igniter
from igniter import registry
from igniter.runtime.session import make_session
from igniter.verification.decisions import sized_by_rounding
from igniter.verification.graph_facts import GraphFacts
from igniter.verification.judgement import CHAOS, failure
from igniter.verification.original import Original
from igniter.verification.report import BY_REGION, CaseResult
from igniter.verification.verify import Candidate, VerifyOptions, verify_models

from . import bad_pass
from .models import model

TEXT = """g (float[n, 16] x) => (float[t, 4] y) <float two = {2}, int64 zero = {0}, int64 step = {1}> {
  f = Mul (x, two)  q = Round (f)  c = Concat <axis = 1> (q, q)
  a0 = MatMul (c, w)  sq = SequenceConstruct (a0)  a = SequenceAt (sq, zero)
  r = Round (a)  p = Abs (r)
  i = Cast <to = 7> (p)  d = Squeeze (i, one)  total = ReduceSum <keepdims = 0> (d)  e = CumSum (d, zero)
  s = Range (zero, total, step)  u = Unsqueeze (s, one)  g = GreaterOrEqual (u, e)  h = Cast <to = 7> (g)
  k = ReduceSum <keepdims = 0> (h, one)  z = Tanh (x)  o = Gather (z, k)  m = MatMul (o, v)  b = Sub (m, half)
  y = Sigmoid (b) }"""
"""As a model of speech repeats phonemes by their durations. These are halves of whole numbers but for rounding, which
decides each of them anew in another order of the sum. A value in a sequence crosses from one region to the next."""


@pytest.fixture
def durations(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    weight = (3 * rng.standard_normal((16, 1))).astype(np.float32)
    proto = model(
        TEXT,
        w=np.concatenate([weight + np.float32(0.5), -weight]),
        v=rng.standard_normal((16, 4)).astype(np.float32),
        one=np.array([1], np.int64),
        half=np.array([0.5], np.float32),
    )
    onnx.save(proto, tmp_path / "durations.onnx")
    return tmp_path / "durations.onnx"


SIZES = [{"n": n} for n in (7, 8, 9, 10, 11, 12)]


@pytest.mark.slow
def test_an_output_whose_size_a_rounding_decides_is_verified(durations: Path) -> None:
    report = igniter.compile(durations, shapes=SIZES).report["verification"]
    assert report["status"] == "passed", report["reasons"]
    # By chance another order of the sums decides all of them alike; a case may also move by itself.
    reasons = [c["reason"] for c in report["cases"] if c["status"] == "skipped"]
    assert not reasons or report["way"] == "regions"
    assert all("determines sizes that lead to output 'y'" in r or r.startswith(CHAOS) for r in reasons)


@pytest.mark.slow
def test_a_wrong_pass_is_found_all_the_same(durations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = bad_pass.SwapSubNodes.name
    monkeypatch.setitem(registry.PASSES, wrong, f"{bad_pass.__name__}:SwapSubNodes")
    options = igniter.CompileOptions(onnx_passes=f"cpu-onnx,{wrong}")
    with pytest.raises(igniter.VerificationFailed):
        igniter.compile(durations, shapes=SIZES[:1], options=options, cache=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "status", "way"),
    [("passed", "passed", "regions"), ("failed", "differs", "regions"), ("skipped", "differs", "outputs")],
)
def test_the_pieces_decide_where_a_size_differs(
    durations: Path, pieces: Literal["passed", "failed", "skipped"], status: str, way: str
) -> None:
    """Where they cannot be compared, another size is a difference."""
    other = onnx.load(durations)
    # Each duration is one more: nothing that a rounding of single ones explains.
    other.graph.initializer.append(numpy_helper.from_array(np.array([[1]], np.float32), "more"))
    at = next(i for i, node in enumerate(other.graph.node) if node.op_type == "Abs")
    other.graph.node.insert(at + 1, onnx.helper.make_node("Add", ["p0", "more"], ["p"]))
    other.graph.node[at].output[0] = "p0"
    session = make_session(other.SerializeToString(), log_severity_level=4)
    result = CaseResult({"n": 40}, pieces, (failure("k", "", (), "wrong"),) * (pieces == "failed"), kind=BY_REGION)
    found = verify_models(
        Original(str(durations)),
        Candidate(lambda _threads, _cut: session),
        GraphFacts(),
        VerifyOptions(shapes=[{"n": 40}], budget=4.0),
        lambda _sizes, _ready: result,
    )
    assert (found.status, found.way) == (status, way)


def test_sizes_that_follow_from_those_of_inputs_are_no_excuse() -> None:
    text = """g (float[n, 8] x) => (float[m, 8] y) <int64 zero = {0}> {
      f = Floor (x)  s = Shape (f)  h = Gather (s, zero)  c = Cast <to = 1> (h)  l = Floor (c)  i = Cast <to = 7> (l)
      u = Unsqueeze (i, first)  e = Concat <axis = 0> (u, eight)  y = Expand (row, e) }"""
    weights = {"first": np.array([0], np.int64), "eight": np.array([8], np.int64), "row": np.ones(8, np.float32)}
    assert sized_by_rounding(Original(model(text, **weights).SerializeToString()), "y") == ""
