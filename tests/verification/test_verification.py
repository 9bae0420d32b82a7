"""Verification finds sizes and inputs that a model takes, knows its noise, and tells "differs" from "not verified"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.frontend.unsigned_weights import with_unsigned_weights
from igniter.runtime.session import make_session
from igniter.tools.main import app
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import facts_of
from igniter.verification.guard import TooMuch, guarded_run
from igniter.verification.inputs import random_inputs
from igniter.verification.judgement import CHAOS, Noise, compare_output
from igniter.verification.judgement import SMALL as SMALL_OUTPUT
from igniter.verification.original import Original
from igniter.verification.report import CaseResult, Verification
from igniter.verification.roles import Role, roles_of
from igniter.verification.specs import InputSpec, specs_of, specs_of_module, symbols_of
from igniter.verification.verify import Candidate, VerifyOptions, verify_models

from .models import model

BUDGET = 120.0
"""Tests run on busy machines."""


def verified(reference: onnx.ModelProto, other: onnx.ModelProto | None = None, **options: Any) -> Verification:
    """Verification of `other` in the place of the compiled model, both run by ONNX Runtime."""
    data = reference.SerializeToString()
    session = make_session((other or reference).SerializeToString(), log_severity_level=4)
    candidate = Candidate(lambda _threads, _cut: session)
    facts = facts_of(import_model(data))
    return verify_models(Original(data), candidate, facts, VerifyOptions(**{"budget": BUDGET, **options}))


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


# -- sizes ------------------------------------------------------------------------------------------------------------

PYRAMID = """g (float[n, 3, h, w] x) => (float[n, 3, p, q] y) <float[4] twice = {1, 1, 2, 2}> {
  a = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
  b = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (a)
  c = Resize (b, , twice)  d = Concat <axis = 0> (a, c)  e = Reshape (d, shape)  y = Relu (d) }"""


def test_pictures_get_sizes_that_their_strides_divide() -> None:
    found = verified(model(PYRAMID, shape=np.array([-1, 3, 64], np.int64)))
    assert found.status == "passed" and found.refused
    sizes = [c.shapes for c in found.cases]
    assert all(s["h"] // 2 % 2 == 0 and s["w"] // 2 % 2 == 0 for s in sizes)
    assert any(s["h"] != s["w"] for s in sizes)
    assert any(c.kind == "many" and c.threads > 1 for c in found.cases)


@pytest.mark.slow
def test_sound_gets_thousands_of_samples() -> None:
    text = """g (float[batch, sequence] input) => (float[batch, 4, t] y) <int64[1] one = {1}> {
      u = Unsqueeze (input, one)  p = Pad <mode = "reflect"> (u, pads)  y = Conv <strides = [64]> (p, k) }"""
    kernel = np.random.default_rng(0).standard_normal((4, 1, 256)).astype(np.float32)
    found = verified(model(text, pads=np.array([0, 0, 90, 0, 0, 90], np.int64), k=kernel))
    assert found.status == "passed", found.reasons
    assert min(c.shapes["sequence"] for c in found.cases) > 90


def test_dims_without_names_are_tied_where_they_must_be() -> None:
    text = "g (float[?, 8] x, float[?, 8] z) => (float[?, 16] y) { y = Concat <axis = 1> (x, z) }"
    proto = model(text.replace("?", "n"))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    found = verified(proto)
    assert found.status == "passed" and {c.shapes["x.0"] == c.shapes["z.0"] for c in found.cases} == {True}
    assert len(found.cases) > 2


def test_roles_come_from_names_and_places() -> None:
    def role(name: str, dtype: str, *dims: int | str | None) -> list[Role]:
        return list(roles_of([InputSpec(name, dtype, dims)], [name]).values())

    assert role("x", "float", None, 3, "?", "?") == [Role.BATCH, Role.HEIGHT, Role.WIDTH]
    assert role("x", "uint8", "n", None, None, 3) == [Role.BATCH, Role.HEIGHT, Role.WIDTH]
    assert role("ids", "int64", "p", "q") == [Role.BATCH, Role.LENGTH]
    assert role("wav", "float", "batch", "samples") == [Role.BATCH, Role.SAMPLES]
    assert role("mel", "float", None, 80, None) == [Role.BATCH, Role.FRAMES]
    assert role("state", "float", 2, None, 128) == [Role.BATCH]


def test_what_runs_too_long_is_ended() -> None:
    text = """g (float[n, n] x) => (float[n, n] y) {
      a = MatMul (x, x)  b = MatMul (a, x)  c = MatMul (b, x)  y = MatMul (c, x) }"""
    session = ort.InferenceSession(model(text).SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.ones((2500, 2500), np.float32)
    with pytest.raises(TooMuch, match=r"more than 0\.02 s"):
        guarded_run(session, None, {"x": x}, 0.02)
    assert guarded_run(session, None, {"x": x[:2, :2]}, 60.0)[0].shape == (2, 2)


# -- not verified -----------------------------------------------------------------------------------------------------

NEVER = "g (float[n, 4] x) => (float[n, 6] y) { r = Reshape (x, shape)  y = Add (r, b) }"


@pytest.fixture
def never(tmp_path: Path) -> Path:
    """A model that runs only where its batch is 30011, a size that nobody tries."""
    proto = model(NEVER, shape=np.array([30011, 4], np.int64), b=np.zeros((30011, 4), np.float32))
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    onnx.save(proto, tmp_path / "never.onnx")
    return tmp_path / "never.onnx"


def test_what_cannot_be_compared_is_compiled_and_said(never: Path, tmp_path: Path) -> None:
    done = invoke("compile", never, "-o", tmp_path / "out", "--budget", "20")
    assert done.exit_code == 0, done.output
    assert "not verified: the original model does not run at" in done.stdout and "--shape n=N" in done.stdout
    assert json.loads((tmp_path / "out" / "report.json").read_text())["verification"]["status"] == "not verified"
    again = invoke("verify", tmp_path / "out", "--json", "--budget", "20")
    found = json.loads(again.stdout)
    assert again.exit_code == 3 and found["status"] == "not verified" and not found["ok"] and found["reasons"]
    good = invoke("verify", tmp_path / "out", "--shape", "n=30011", "--json")
    assert good.exit_code == 0 and json.loads(good.stdout)["status"] == "passed"


def test_a_dim_that_is_none_is_told_before_compiling(never: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igniter.compiler.compile_model.lower_to_kernels", lambda c: pytest.fail("it was compiled"))
    with pytest.raises(IgniterError, match="the model has no dim m; its dims are n"):
        igniter.compile(never, shapes=[{"m": 3}])


def test_a_dim_without_a_name_is_called_by_its_input(tmp_path: Path) -> None:
    """As ONNX Runtime's description of the model calls it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, "?", "n", "n + 1", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = make_session(made)
    assert symbols_of(specs_of_module(igniter.load(made).ir)) == symbols_of(specs_of(session)) == ["x.0", "x.1", "n"]


def test_a_dim_that_is_none_is_an_error(never: Path, tmp_path: Path) -> None:
    igniter.compile(never, tmp_path / "out", verify=False)
    done = invoke("verify", tmp_path / "out", "--shape", "m=3")
    assert done.exit_code == 1 and "the model has no dim m; its dims are n" in done.stderr


# -- inputs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sum_model(tmp_path: Path) -> Path:
    path = tmp_path / "sum.onnx"
    onnx.save(model("g (float[n, m] x, int64[n] k) => (float[n, m] y) { y = Exp (x) }"), path)
    return path


@pytest.mark.slow
def test_inputs_come_from_files(sum_model: Path, tmp_path: Path) -> None:
    x, k = np.full((2, 3), 0.5, np.float32), np.array([1, 2], np.int64)
    np.savez(tmp_path / "in.npz", x=x, k=k)
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    for i, (name, array) in enumerate((("", x), ("k", k))):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(np.exp(x), "y").SerializeToString())
    for source in (tmp_path / "in.npz", folder):
        (feed,) = read_inputs(source, ["x", "k"])
        assert np.array_equal(feed["x"], x) and np.array_equal(feed["k"], k)
        done = invoke("compile", sum_model, "-o", tmp_path / "out", "--inputs", source, "--json", "--rtol", "1e-3")
        report = json.loads(done.stdout)["verification"]
        assert [c["kind"] for c in report["cases"]] == ["given"] and report["cases"][0]["outputs"][0]["shape"] == [2, 3]
        assert invoke("verify", tmp_path / "out", "--inputs", source, "--atol", "0.1").exit_code == 0
    timed = invoke("bench", tmp_path / "out", "--inputs", tmp_path / "in.npz", "--rounds", "1", "--json")
    assert timed.exit_code == 0, timed.output
    assert read_inputs(tmp_path, ["x", "k"])[0].keys() == {"x", "k"}


def test_inputs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros(2), z=np.zeros(2))
    with pytest.raises(IgniterError, match=r"has z, which the model lacks and lacks k; the model's inputs are x, k"):
        read_inputs(tmp_path / "in.npz", ["x", "k"])
    with pytest.raises(IgniterError, match="there are no inputs at"):
        read_inputs(tmp_path / "no.npz", ["x"])
    (tmp_path / "bad").mkdir()
    with pytest.raises(IgniterError, match=r"no input_0\.pb"):
        read_inputs(tmp_path / "bad", ["x"])


def test_values_are_of_the_kind_that_the_input_is() -> None:
    specs = [
        InputSpec("image", "float", (1, 3, 32, "w")),
        InputSpec("pixels", "uint8", (1, "h", 32, 3)),
        InputSpec("sr", "int64", ()),
        InputSpec("input_lengths", "int64", ("b",)),
        InputSpec("iou_threshold", "float", (1,)),
        InputSpec("scales", "float", (3,)),
    ]
    made = random_inputs(specs, {"w": 48, "h": 40, "b": 3}, None, 0)
    assert made["image"].min() >= 0 and made["image"].max() <= 1
    assert made["pixels"].max() > 100
    assert made["sr"] == 16000 and made["input_lengths"][0] == 48 and made["input_lengths"].min() >= 24
    assert 0.1 <= made["iou_threshold"][0] <= 0.9 and made["scales"].min() > 0
    assert random_inputs(specs, {"w": 48, "h": 40, "b": 3}, None, 1)["image"].min() < -1


def test_what_the_graph_asks_of_integers() -> None:
    text = """g (int64[n] a, int64[n] ids, int64[n] size, int64[n] d, int64[n] hot) => (int64[n] y, float[n] z)
    <int64 two = {2}> {
      s = Add (a, two)  w = ConstantOfShape (size)  y = Div (s, d)  e = Equal (hot, list)  z = Gather (table, ids) }"""
    facts = facts_of(
        import_model(model(text, table=np.zeros(9, np.float32), list=np.arange(12, dtype=np.int64)).SerializeToString())
    )
    assert facts.limits == {"ids": 9, "hot": 12} and "d" in facts.positive
    assert "size" not in facts.large and "ids" not in facts.large


def test_integers_near_the_limits_of_their_type() -> None:
    from .models import BUILT

    found = verified(BUILT["integers"]())
    assert found.ok and any(c.kind == "large integers" for c in found.cases)
    narrow = BUILT["integers"]()
    # i32 arithmetic where i64 was asked for is right for small numbers only.
    del narrow.graph.node[:]
    other = model(
        """g (int64[n, m] a, int32[n, m] b) => (int64[n, m] y, int32[m] t, bool[n, m] c) <int32 three = {3}> {
      a4 = Cast <to = 6> (a)  p = Mul (a4, three)  q = Add (p, b)  r = Max (q, a4)  y = Cast <to = 7> (r)
      c = Less (a4, b)  s = Sub (b, b2)  t = ReduceMax <axes = [0], keepdims = 0> (s) }""",
        b2=np.array([7], np.int32),
    )
    wrong = verified(BUILT["integers"](), other)
    assert [c.kind for c in wrong.cases if c.status == "failed"] == ["large integers"]


# -- randomness -------------------------------------------------------------------------------------------------------


def random_model(inside: bool = False) -> onnx.ModelProto:
    body = "r = RandomNormalLike (x)  d = RandomUniformLike (x)  a = Mul (x, r)  b = Add (a, d)"
    if inside:
        body = """c = Cast <to = 9> (flag)  b = If (c) <
          then_branch = t () => (float[n, m] p) { p = RandomNormalLike (x) },
          else_branch = e () => (float[n, m] q) { q = Neg (x) }>"""
    return model(f"g (float[n, m] x, int64 flag) => (float[n, m] y) {{ {body}  y = Tanh (b) }}")


def test_what_a_random_node_draws_is_given_to_both(tmp_path: Path) -> None:
    onnx.save(random_model(), tmp_path / "r.onnx")
    artifact = igniter.compile(tmp_path / "r.onnx", tmp_path / "out", budget=BUDGET)
    assert artifact.report["verification"]["status"] == "passed"
    wrong = random_model()
    next(n for n in wrong.graph.node if n.op_type == "Mul").op_type = "Add"
    onnx.save(wrong, tmp_path / "w.onnx")
    assert artifact.verify(reference=tmp_path / "w.onnx", budget=BUDGET).status == "differs"


def test_randomness_inside_a_branch_is_not_verified() -> None:
    found = verified(random_model(inside=True))
    assert found.status == "not verified" and "random node is inside" in found.reasons[0]


# -- judgement --------------------------------------------------------------------------------------------------------


def test_noise_is_allowed_for_and_shown() -> None:
    e = np.array([1.0, 2.0], np.float32)
    a = np.array([1.002, 2.0], np.float32)
    noisy = Noise([np.array([1.0002, 2.0], np.float32)], seen=True)
    assert not compare_output("y", e, a).ok
    found = compare_output("y", e, a, noise=noisy)
    assert found.ok and found.note and found.noise == pytest.approx(1e-4, rel=1e-2)
    assert not compare_output("y", e, np.array([1.2, 2.0], np.float32), noise=noisy).ok
    wild = Noise([np.array([1.5, 2.0], np.float32)], seen=True)
    chaos = compare_output("y", e, a, noise=wild)
    assert chaos.reason.startswith(CHAOS)
    cases = (CaseResult({}, "skipped", (chaos,), chaos.reason), CaseResult({}, "passed", (found,)))
    assert Verification(cases).ok and Verification(cases).max_errors == {"y": found.max_error}
    assert Verification(cases[:1]).status == "not verified" and chaos.reason in Verification(cases[:1]).reasons[1]


def test_a_slice_is_judged_by_its_own_magnitude() -> None:
    e = np.ones((2, 100), np.float32)
    e[0] = 3000
    a = e.copy()
    a[1, 3] += 0.1
    quiet = Noise([e], seen=True)
    assert "slice 1 of axis 0" in compare_output("y", e, a, noise=quiet).reason
    assert compare_output("y", e, a, noise=Noise([e + np.float32(0.01)], seen=True)).ok
    # A few elements are no slice: one sample of a sound that crosses zero there.
    assert compare_output("y", e[:, 3:4], a[:, 3:4], noise=Noise([e[:, 3:4]], seen=True)).ok


def test_what_cancels_is_judged_by_what_it_was_made_from() -> None:
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    text = """g (float[n, 64] x) => (float[n, 1] y) {
      m = ReduceMean <axes = [1]> (x)  c = Sub (x, m)  y = ReduceSum (c, one) }"""
    reference = model(text, one=np.array([1], np.int64))
    other = model(
        text.replace("y = ReduceSum (c, one)", "d = Add (c, tiny)  y = ReduceSum (d, one)"),
        one=np.array([1], np.int64),
        tiny=np.full(64, 2e-8, np.float32),
    )
    found = verified(reference, other, inputs={"x": x})
    (output,) = found.cases[0].outputs
    assert output.max_error > 1e-3 and output.max_difference < output.allowed
    # The output is no larger than it may be off by, so that it tells nothing of the model either.
    assert found.status == "not verified" and output.reason.startswith(SMALL_OUTPUT)
    wrong = verified(
        reference, model(text.replace("Sub (x, m)", "Add (x, m)"), one=np.array([1], np.int64)), inputs={"x": x}
    )
    assert wrong.status == "differs"


def test_values_that_the_usual_inputs_never_reach_are_compared() -> None:
    """Normal values do not pass 6; those times 4, and plus 2, do."""
    text = "g (float[n, 64] x) => (float[n, 64] y) { a = Sub (x, six)  r = Relu (a)  y = Add (x, r) }"
    six = np.array(6, np.float32)
    other = model(text.replace("r = Relu (a)", "s = Relu (a)  r = Add (s, s)"), six=six)
    assert verified(model(text, six=six), other).status == "differs"
    assert verified(model(text, six=six), model(text, six=six)).status == "passed"


SMALL = """g (float[n, 8] x) => (float[n, 1] y) <float half = {0.5}> {
  s = Sigmoid (x)  c = ReduceMax <keepdims = 0> (x)  b = Greater (c, half)
  i = If (b) <then_branch = t () => (float[n, 8] u) { u = Identity (s) },
              else_branch = e () => (float[n, 8] v) { v = Identity (s) }>
  y = ReduceMean <axes = [1]> (i) }"""


@pytest.mark.parametrize(("by", "ok"), [(1e-7, True), (5e-7, False)])
def test_a_small_sigmoid_is_known_to_units_of_a_half(by: float, ok: bool) -> None:
    """ONNX Runtime's are so far from what they mean, and nudged ones round to the same."""
    x = np.linspace(-10.2, -9.6, 24).reshape(3, 8).astype(np.float32)
    other = model(
        SMALL.replace("y = ReduceMean <axes = [1]> (i)", "m = ReduceMean <axes = [1]> (i)  y = Add (m, by)"),
        by=np.float32(by),
    )
    found = verified(model(SMALL), other, inputs={"x": x})
    assert found.ok == ok and max(found.max_errors.values()) > 1e-3


TIES = """g (float[n, 4] x) => (int64[n] best, bool[n, 4] more, float[n, 4] y) <float half = {0.5}> {
  best = ArgMax <axis = 1, keepdims = 0> (x)  more = Greater (x, half)  f = Floor (x)  y = Mul (f, x) }"""


@pytest.mark.parametrize(("by", "ok"), [(2e-7, True), (1e-2, False)])
def test_other_choices_are_right_only_between_equals(by: float, ok: bool) -> None:
    """Two equal maxima, a comparison of equals and a number that is almost whole; a nudge decides them otherwise."""
    x = np.array([[0.5, 2.0, 2.0, -1.0], [0.1, np.nextafter(np.float32(3), np.float32(0)), 0.2, 0.5]], np.float32)
    nudge = np.array([[by, 0, by, 0], [0, by, 0, by]], np.float32)
    other = model(TIES.replace("best = ArgMax", "x2 = Add (x, nudge)  best = ArgMax"), nudge=nudge)
    for node in other.graph.node[1:]:
        node.input[:] = ["x2" if name == "x" else name for name in node.input]
    found = verified(model(TIES), other, inputs={"x": x})
    assert found.ok == ok, found.failures
    if ok:
        assert {o.name for o in found.cases[0].outputs if o.note} == {"best", "more", "y"}


def test_a_number_without_dims_is_rounded_otherwise_too() -> None:
    """What NumPy adds to an array without dims is no array."""
    text = "g (float x) => (float y) { x1 = Identity (x)  c = Ceil (x1)  s = Sin (c)  y = Mul (s, s) }"
    other = model(text.replace("x1 = Identity (x)", "x1 = Add (x, nudge)"), nudge=np.array(1e-6, np.float32))
    found = verified(model(text), other, inputs={"x": np.array(3, np.float32)})
    assert found.ok and "Ceil" in found.cases[0].outputs[0].note, found.failures


def test_a_choice_that_the_original_cannot_run_with_is_none() -> None:
    """A length that rounds the other way fits nothing else; another choice is looked for all the same."""
    text = (
        "g (float a, float b, float[3] z) => (float[3] y) "
        "{ n = Ceil (a)  r = Range (zero, n, one)  b1 = Identity (b)  t = Ceil (b1)  s = Sin (t)  "
        "m = Mul (z, s)  y = Add (m, r) }"
    )
    numbers = {"zero": np.array(0, np.float32), "one": np.array(1, np.float32)}
    other = model(text.replace("b1 = Identity (b)", "b1 = Add (b, nudge)"), nudge=np.array(1e-6, np.float32), **numbers)
    inputs = {"a": np.array(2.9999, np.float32), "b": np.array(5, np.float32), "z": np.ones(3, np.float32)}
    found = verified(model(text, **numbers), other, inputs=inputs)
    assert found.ok and "Ceil" in found.cases[0].outputs[0].note, found.failures


@pytest.mark.parametrize("node", ["Cast <to = 1> (x1)", "Mod <fmod = 1> (x1, ten)"])
def test_a_result_that_follows_its_input_is_no_choice(node: str) -> None:
    """Any error would be another choice, of a Cast from f32 to f32 and of a remainder that passes no multiple."""
    text = f"g (float[1] x) => (float[1] y) {{ x1 = Identity (x)  c = {node}  s = Sin (c)  y = Sub (s, most) }}"
    numbers = {"ten": np.array(10, np.float32), "most": np.array(np.sin(1) - 0.1, np.float32)}
    by = {"nudge": np.array([5e-5], np.float32), **numbers}
    found = verified(
        model(text.replace("Identity (x)", "Add (x, nudge)"), **by),
        model(text, **numbers),
        inputs={"x": np.ones(1, np.float32)},
    )
    assert found.status == "differs"


def test_a_remainder_at_a_multiple_is_a_choice() -> None:
    text = "g (float[1] x) => (float[1] y) { x1 = Identity (x)  c = Mod <fmod = 1> (x1, two)  y = Cos (c) }"
    number = {"two": np.array(2, np.float32)}
    other = model(text.replace("Identity (x)", "Add (x, nudge)"), nudge=np.array([3e-7], np.float32), **number)
    x = np.nextafter(np.full(1, 4, np.float32), np.float32(0))
    found = verified(model(text, **number), other, inputs={"x": x})
    assert found.ok and "Mod" in found.cases[0].outputs[0].note, found.failures


# -- every value ------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_regions(tmp_path: Path) -> Path:
    text = """g (float[n, 16] x) => (float[n, 16] y, float[n, 16] z) {
      a = Exp (x)  b = Sub (a, x)  s = Det (square)  c = Mul (b, s)  y = Relu (c)  d = Sigmoid (y)  z = Sub (d, x) }"""
    onnx.save(model(text, square=np.eye(2, dtype=np.float32)), tmp_path / "two.onnx")
    return tmp_path / "two.onnx"


@pytest.mark.slow
def test_every_value_agrees(two_regions: Path, tmp_path: Path) -> None:
    igniter.compile(two_regions, tmp_path / "out", verify=False)
    done = invoke("verify", tmp_path / "out", "--every-value", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["status"] == "passed" and found["folder"] is None
    assert any(r["kernel"] for r in found["regions"])


@pytest.mark.slow
def test_the_first_region_that_differs_is_named_and_kept(
    two_regions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from igniter import registry

    monkeypatch.setitem(registry.PASSES, "swap-subtractions", f"{__package__}.bad_pass:SwapSubtractions")
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    options = igniter.CompileOptions(loop_passes="cpu-loop,swap-subtractions")
    artifact = igniter.compile(two_regions, tmp_path / "out", options=options, verify=False)
    found = artifact.verify_every_value()
    wrong = found.first_failure
    assert found.status == "differs" and wrong is not None and wrong.kernel
    assert any("Sub" in node for node in wrong.nodes) and "kernel @" in found.message
    assert found.folder is not None and "reproduces it" in found.message
    assert sorted(p.suffix for p in found.folder.iterdir()) == sorted(
        [".json", ".mlir", ".npz", ".onnx", ".onnx", ".py", ".so"]
    )
    done = invoke("verify", tmp_path / "out", "--every-value")
    assert done.exit_code == 1 and "the first difference is in" in done.stdout


def test_sums_that_saturate_in_the_original_are_its_noise(tmp_path: Path) -> None:
    """On x86-64 without VNNI ONNX Runtime's sums of u8 and i8 saturate, and are exact once the weight is u8."""
    rng = np.random.default_rng(3)
    weight = rng.choice(np.array([-127, 127], np.int8), (8, 4, 3, 3))
    zero = np.zeros(8, np.int8)
    values = [np.float32(0.02), np.uint8(0), weight, np.full(8, 0.01, np.float32), zero, np.float32(4), np.uint8(9)]
    names = ["xs", "xz", "w", "ws", "wz", "ys", "yz"]
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", ["x", *names], ["y"], name="conv")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 4, 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 8, 7, 7])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in zip(names, values, strict=True)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    other = with_unsigned_weights(proto)
    assert other is not None
    feed = {"x": rng.integers(128, 256, (1, 4, 9, 9)).astype(np.uint8)}
    windows = np.lib.stride_tricks.sliding_window_view(feed["x"][0].astype(np.int64), (3, 3), axis=(1, 2))
    sums = np.einsum("cijkl,ockl->oij", windows, weight.astype(np.int64))
    exact = np.clip(np.rint(sums.astype(np.float32) * np.float32(0.02 * 0.01 / 4)) + 9, 0, 255)
    made = make_session(other.SerializeToString(), log_severity_level=4).run(None, feed)[0]
    assert np.abs(made[0].astype(np.int64) - exact).max() <= 1
    assert Original(proto.SerializeToString()).unsigned is not None
    assert verified(proto, other).status == "passed"


def test_there_is_no_other_kernel_without_weights_of_i8() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    )
    assert with_unsigned_weights(proto) is None


def test_an_op_that_only_optimisations_take_away_has_no_unoptimised_run() -> None:
    """ONNX Runtime has no Identity of 4-bit integers, but takes it away."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    four = helper.make_tensor("w", TensorProto.INT4, [2, 2], [1, -2, 3, -4])
    scale = numpy_helper.from_array(np.float32(0.5), "s")
    nodes = [
        helper.make_node("Identity", ["w"], ["v"]),
        helper.make_node("DequantizeLinear", ["v", "s"], ["d"]),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [four, scale])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert Original(proto.SerializeToString()).unoptimised is None
    assert igniter.compile(proto).report["verification"]["status"] == "passed"


def test_maps_of_floats_are_compared_as_floats() -> None:
    """ZipMap's output, a map for each row."""
    expected = [{0: 0.25, 1: 0.75}, {0: 1.0, 1: 0.0}]
    near = [{0: 0.2500001, 1: 0.75}, {0: 1.0, 1: 0.0}]
    assert compare_output("p", expected, near).ok
    assert compare_output("p", expected, [{0: 0.25, 1: 0.76}, {0: 1.0, 1: 0.0}]).reason.startswith("the largest error")
    assert compare_output("p", expected, [{0: 0.25, 2: 0.75}, {0: 1.0, 2: 0.0}]).reason == "the keys of its maps differ"
    assert not compare_output("p", expected, near[:1]).ok
    labels = [{"a": 1}, {"a": 2}]
    assert compare_output("p", labels, labels).ok
    assert not compare_output("p", labels, labels[::-1]).ok


# -- many symbols that are one ----------------------------------------------------------------------------------------


def many_symbols() -> onnx.ModelProto:
    """As an exporter writes it that gives every dim of every input a name of its own: 13 names, and all are one length,
    of which the last node reads the second element."""
    vectors = [f"float[s{k}] v{k}" for k in range(5)] + [f"int64[s{k}] i{k}" for k in range(5, 9)]
    tables = [f"float[s{k}, 4] t{k}" for k in range(9, 12)]
    nodes, total = ["q0 = Gather (table, ids)"], "q0"
    for k in range(5):
        nodes.append(f"a{k} = Add ({total}, v{k})")
        total = f"a{k}"
    for k in range(5, 9):
        nodes += [f"f{k} = Cast <to = 1> (i{k})", f"a{k} = Add ({total}, f{k})"]
        total = f"a{k}"
    for k in range(9, 12):
        nodes += [f"r{k} = ReduceSum <keepdims = 0> (t{k}, one)", f"a{k} = Mul ({total}, r{k})"]
        total = f"a{k}"
    inputs = ", ".join(["int64[s12] ids", *vectors, *tables])
    text = f"g ({inputs}) => (float[1] y) {{ {'  '.join(nodes)}  y = Gather ({total}, one) }}"
    return model(text, one=np.array([1], np.int64), table=np.arange(20, dtype=np.float32))


def test_sizes_are_found_where_many_names_are_one_length() -> None:
    found = verified(many_symbols())
    assert found.status == "passed", found.reasons
    assert all(len(set(c.shapes.values())) == 1 for c in found.cases)
    assert len({tuple(c.shapes.values()) for c in found.cases}) > 2


def test_a_size_that_is_the_sum_of_others_is_found() -> None:
    """A mask as long as a cache and what is new, with names of their own for each."""
    text = """g (float[b, past, 4] cache, float[c, new, 4] x, float[m, total] mask) => (float[b, 4] y) {
      k = Concat <axis = 1> (cache, x)  s = ReduceSum <keepdims = 0> (k, last)  w = Mul (s, mask)
      e = Unsqueeze (w, last)  p = Mul (e, k)  r = Slice (p, two, end, one)
      t = Gather <axis = 1> (p, three)  y = Add (t, t) }"""
    proto = model(text, last=np.array([-1], np.int64), one=np.array([1], np.int64), two=np.array([2], np.int64),
                  end=np.array([100], np.int64), three=np.array(3, np.int64))  # fmt: skip
    found = verified(proto)
    assert found.status == "passed", found.reasons
    sizes = [c.shapes for c in found.cases if c.shapes["past"] != c.shapes["new"]]
    assert sizes and all(s["total"] in (s["past"] + s["new"], 1) for s in sizes)
    assert any(s["total"] > 1 for s in sizes)


def test_dims_are_bound_on_the_command_line(tmp_path: Path) -> None:
    onnx.save(many_symbols(), tmp_path / "many.onnx")
    bound = [f"--bind-dim=s{k}=s12" for k in range(12)]
    done = invoke("compile", tmp_path / "many.onnx", "-o", tmp_path / "out", *bound, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["verification"]["status"] == "passed"
    assert {name for case in report["verification"]["cases"] for name in case["shapes"]} == {"s12"}
    session = igniter.Artifact.load(tmp_path / "out").session()
    assert {value.shape[0] for value in session.get_inputs()} == {"s12"}
    wrong = invoke("compile", tmp_path / "many.onnx", "-o", tmp_path / "out", "--bind-dim", "s13=s12")
    assert wrong.exit_code == 1 and "s13" in wrong.stderr
