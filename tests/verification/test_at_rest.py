"""Outputs that vanish, saturate or stay the same: inputs are found under which they move, or nothing is verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import igniter
from igniter.frontend import import_model
from igniter.runtime.session import make_session
from igniter.tools.main import app
from igniter.verification.graph_facts import GraphFacts, facts_of
from igniter.verification.judgement import Noise, compare_output
from igniter.verification.lively import variants
from igniter.verification.more_inputs import MoreInputs
from igniter.verification.original import Original
from igniter.verification.report import LOOKED_FOR, Verification
from igniter.verification.sensitivity import dependent_outputs
from igniter.verification.specs import InputSpec
from igniter.verification.verify import Candidate, VerifyOptions, verify_models

from .models import model

NEVER = """g (float[n, 8] x) => (float[n, 8] y) <int64 zero = {0}> {
  c = Cast <to = 7> (x)  z = Mul (c, zero)  y = Cast <to = 1> (z) }"""
"""A model whose output is 0 for every input."""


def verified(reference: onnx.ModelProto, other: onnx.ModelProto, **options: Any) -> Verification:
    """Verification of `other` in the place of the compiled model."""
    data = reference.SerializeToString()
    session = make_session(other.SerializeToString(), log_severity_level=4)
    candidate = Candidate(lambda _threads, _cut: session)
    return verify_models(
        Original(data), candidate, facts_of(import_model(data)), VerifyOptions(**{"budget": 60.0, **options})
    )


def test_outputs_that_are_0_for_every_input_are_not_verified(tmp_path: Path) -> None:
    onnx.save(model(NEVER), tmp_path / "never.onnx")
    done = CliRunner().invoke(app, ["compile", str(tmp_path / "never.onnx"), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "not verified: the outputs are 0 for every tried input; give --inputs" in said
    assert "verified" not in said.replace("not verified", "")
    report = igniter.Artifact.load(tmp_path / "out").report["verification"]
    assert (report["status"], report["ok"]) == ("not verified", False)
    assert report["at_rest"] == ["the outputs are 0 for every tried input"]


def _unit(scale: float, offset: float, other: float = 1.0) -> onnx.ModelProto:
    """Sigmoids of large sums: 0 or 1 but for inputs of a certain size; `other` is a factor of one row."""
    rng = np.random.default_rng(1)
    weight = (scale * rng.uniform(0.5, 1.5, (16, 4))).astype(np.float32)
    weight[3] *= other
    text = "g (float[n, 16] x) => (float[n, 4] y) { a = MatMul (x, w)  b = Add (a, o)  y = Sigmoid (b) }"
    return model(text, w=weight, o=np.full(4, offset, np.float32))


@pytest.mark.parametrize(("scale", "offset"), [(0.05, -40.0), (4000.0, 0.0), (0.05, 40.0)])
def test_inputs_are_found_under_which_an_output_moves(scale: float, offset: float) -> None:
    """A row of weights that is twice what it is shows only there."""
    good = verified(_unit(scale, offset), _unit(scale, offset))
    assert good.ok and any(c.kind == LOOKED_FOR for c in good.cases), good.reasons
    wrong = verified(_unit(scale, offset), _unit(scale, offset, 2.0))
    assert wrong.status == "differs"


def test_given_inputs_that_leave_the_outputs_at_rest_verify_nothing() -> None:
    x = np.ones((2, 16), np.float32)
    found = verified(_unit(0.05, -400.0), _unit(0.05, -400.0), inputs={"x": x})
    assert found.status == "not verified" and "for every tried input" in found.reasons[0]
    assert verified(_unit(0.05, -400.0), _unit(0.05, -400.0), inputs={"x": 500 * x}).ok


def test_what_may_be_off_by_more_than_it_is_says_nothing() -> None:
    """As a detector of text that sees none: the largest value is 9e-8, and rounding alone makes as much."""
    e = np.array([[9e-8, 3e-8]], np.float32)
    found = compare_output("y", e, e + np.float32(6e-8), noise=Noise([e], 0.03, True))
    assert found.says_nothing and not found.ok and found.allowed > 2e-7
    assert not compare_output("y", e, e + np.float32(1e-3), noise=Noise([e * 2], 0.03, True)).says_nothing


def test_outputs_made_from_sizes_and_constants_are_no_reason_to_doubt() -> None:
    text = """g (float[n, 8] x) => (int64[2] s, float[8] c, float[n, 8] y) {
      s = Shape (x)  c = Identity (w)  y = Tanh (x) }"""
    proto = model(text, w=np.zeros(8, np.float32))
    assert dependent_outputs(proto, ["s", "c", "y"]) == {"y"}
    assert verified(proto, proto).ok


def test_a_count_that_stays_is_no_reason_to_doubt_what_moves() -> None:
    text = """g (float[n, 8] x) => (bool[n, 8] b, float[n, 8] y) <float big = {1e30}> {
      a = Abs (x)  t = Tanh (a)  b = Greater (t, big)  y = Tanh (x) }"""
    assert verified(model(text), model(text)).ok


def test_pictures_sounds_and_words_look_like_what_they_are() -> None:
    specs = [
        InputSpec("image", "float", (1, 3, 64, 96)),
        InputSpec("pixels", "uint8", (1, 40, 64, 3)),
        InputSpec("audio", "float", (1, 4000)),
        InputSpec("input_ids", "int64", (2, 16)),
        InputSpec("attention_mask", "int64", (2, 16)),
    ]
    made = dict(variants(specs, {}, GraphFacts({"input_ids": 1000}), 0))
    page = made["a page of text, 0 .. 255"]
    assert page["pixels"].dtype == np.uint8 and page["pixels"].std() > 30
    assert page["image"].shape == (1, 3, 64, 96) and page["image"].max() > 100
    assert abs(made["speech"]["audio"]).max() > 0.2
    words = made["words"]["input_ids"]
    assert words.min() >= 0 and words.max() < 1000 and set(made["words"]["attention_mask"].reshape(-1)) <= {0, 1}
    assert np.isnan(made["special values"]["audio"]).any()


def test_more_inputs_read_every_row_of_a_table() -> None:
    """Of indices at random a fifth of the rows is not read by twice as many; counted on, all are."""
    nothing: Any = None
    more = MoreInputs(nothing, GraphFacts({"ids": 10, "position_ids": 10}), nothing, nothing, nothing, nothing, 0)
    feeds = [more._swept({"ids": np.zeros((2, 2), np.int64), "position_ids": np.zeros(3, np.int64)}) for _ in range(3)]
    assert sorted({int(i) for feed in feeds for i in feed["ids"].reshape(-1)}) == list(range(10))
    assert all(feed["ids"].shape == (2, 2) and not feed["position_ids"].any() for feed in feeds)
