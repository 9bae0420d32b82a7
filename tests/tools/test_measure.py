"""Measured compiles: decisions by invented times, outputs by real kernels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner
from xdsl.context import Context
from xdsl.dialects.arith import NegfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

import igniter
from igniter import registry
from igniter.compiler.measuring.candidates import slow_components
from igniter.compiler.measuring.outcome import Outcome, RegionOutcome, Times
from igniter.compiler.measuring.request import Measure
from igniter.errors import IgniterError
from igniter.runtime.turns import Turns, time_turns
from igniter.tools.main import app

TWO = """
<ir_version: 8, opset_import: ["" : 17]>
two (float[n, 128] x) => (float[n, 128] y, float[n, 128] z)
<float[128, 128] w, float[128, 128] v>
{
    product = MatMul(x, w)
    y = Tanh(product)
    more = MatMul(y, v)
    z = Sigmoid(more)
}
"""


@dataclass(frozen=True)
class NegateTanh(ModulePass):
    """Makes every tanh in kernels its negative."""

    name = "negate-tanh"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if inner.name == "math.tanh":
                uses = list(inner.results[0].uses)
                negative = NegfOp(inner.results[0])
                Rewriter.insert_op(negative, InsertPoint.after(inner))
                for use in uses:
                    use.operation.operands[use.index] = negative.result


@dataclass
class Invented:
    """A timer with invented times; functions get the subject, and how often it was timed before."""

    region: Callable[[str, int], float] = lambda _label, _case: 0.5
    """Igniter's time of a region relative to ONNX Runtime's, by its label."""
    trials: Callable[[str, int], float] = lambda _what, _case: 0.5
    """The time of a trial relative to the best model, by the subject."""
    whole: float = 0.9
    """The time of the best model relative to ONNX Runtime's."""
    seen: list[str] = field(default_factory=list[str])

    def __call__(self, what: str, systems: Mapping[str, Callable[[], object]], seconds: float) -> Turns:
        assert seconds > 0
        for system in systems.values():
            system()
        case = self.seen.count(what)
        self.seen.append(what)
        if what.startswith("region "):
            own = {"igniter": self.region(what.removeprefix("region "), case)}
        else:
            best = self.whole
            own = {"best": best, "plain": best / self.trials(what, case), "trial": best * self.trials(what, case)}
        return Turns({name: [1e-3 * own.get(name, 1.0)] * 8 for name in systems})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one cache: the kernels of all tests here are nearly the same."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(folder))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A model of two regions."""
    model = onnx.parser.parse_model(TWO.replace("float[128, 128] w, float[128, 128] v", "float[1] unused = {0}"))
    rng = np.random.default_rng(0)
    weights = {"w": (128, 128), "v": (128, 128)}
    del model.graph.initializer[:]
    for name, shape in weights.items():
        array = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for node in model.graph.node:
        node.name = f"{node.op_type} {node.output[0]}"
    path = tmp_path / "two.onnx"
    onnx.save(model, path)
    return path


def measured(model: Path, timer: Invented, monkeypatch: pytest.MonkeyPatch, **options: Any) -> igniter.Artifact:
    """A measured compile with invented times."""
    same = Measure.of

    def of(asked: Any, threads: int) -> Measure | None:
        found = same(asked, threads)
        return None if found is None else Measure(found.threads, found.again, timer=timer)

    with monkeypatch.context() as patched:
        patched.setattr(Measure, "of", staticmethod(of))
        return igniter.compile(model, **{"measure": "again", "sizes": {"n": 4}, **options})


def outcome(artifact: igniter.Artifact) -> Outcome:
    return Outcome.from_dict(artifact.report["measured"])


def left(artifact: igniter.Artifact) -> set[str]:
    return {node["node"] for node in artifact.report["left_to_onnxruntime"] if node["kind"] == "request"}


def slow_first(label: str, case: int) -> float:
    return 1.5 if label == "r0" else 0.5


def always(ratio: float) -> Callable[[str, int], float]:
    return lambda what, case: ratio


# -- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_slow_region_is_left_if_the_whole_gains(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = Invented(slow_first, always(0.8))
    artifact = measured(two, timer, monkeypatch)
    found = outcome(artifact)
    assert left(artifact) == {"MatMul product", "Tanh y"}
    assert [r.decision for r in found.regions] == ["onnxruntime", "igniter"]
    assert found.regions[0].ratio == pytest.approx(1.5)
    assert [(t.accepted, len(t.ratios)) for t in found.trials] == [(True, 1)]
    assert artifact.report["verification"]["ok"]
    # A trial is confirmed, and so is the end.
    assert [w for w in timer.seen if "r0 (" in w] == ["without kernels for r0 (MatMul+Tanh)"] * 2
    assert timer.seen[-1] == "the model before and after"
    reasons = {n["node"]: n["reason"] for n in artifact.report["left_to_onnxruntime"]}
    assert reasons["Tanh y"] == "its kernel takes 1.50 of ONNX Runtime's time on this machine"
    remarks = [r for r in artifact.report["remarks"] if r["pass"] == "measure"]
    assert [(r["node"], r["kind"], r["details"].get("ratio")) for r in remarks[:2]] == [
        ("MatMul product", "missed", 1.5),
        ("MatMul more", "applied", 0.5),
    ]
    assert "1 of 2 regions left to it" in artifact.report["measured"]["text"][0]


def test_a_slow_region_stays_if_the_whole_does_not_gain(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = measured(two, Invented(slow_first, always(0.99)), monkeypatch)
    found = outcome(artifact)
    assert not left(artifact) and not found.left
    assert [t.accepted for t in found.trials] == [False]
    assert "the whole model gains too little without it" in found.regions[0].message


def test_a_small_excess_is_not_worth_a_trial(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = Invented(lambda label, _: 1.003 if label == "r0" else 0.5, always(0.5))
    artifact = measured(two, timer, monkeypatch)
    found = outcome(artifact)
    assert not left(artifact) and found.regions[0].is_slower
    assert [(t.ratios, t.reason) for t in found.trials] == [
        ((), "not tried, because its regions exceed ONNX Runtime's by 0.3% of the model's time")
    ]


@pytest.mark.full
def test_a_gain_that_does_not_repeat_is_none(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = measured(two, Invented(slow_first, lambda _, case: 0.5 if case == 0 else 1.0), monkeypatch)
    assert not left(artifact)


def test_the_end_compares_with_the_plain_model_again(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = lambda what, case: 1.1 if what == "the model before and after" else 0.5
    artifact = measured(two, Invented(slow_first, trials), monkeypatch)
    assert not left(artifact)
    assert outcome(artifact).trials[-1].reason == "not confirmed, so all kernels stay"


@pytest.mark.slow
def test_slow_regions_are_tried_together_then_one_by_one(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = measured(two, Invented(always(1.5), always(0.8)), monkeypatch)
    assert len(left(together)) == 4 and not together.libraries
    trials = lambda what, case: 1.2 if "2 slow regions" in what else 0.9
    apart = measured(two, Invented(always(1.5), trials), monkeypatch)
    # The other region, besides this one, is the refused pair: it is not tried twice.
    assert [(t.what, t.accepted) for t in outcome(apart).trials] == [
        ("2 slow regions", False),
        ("r0 (MatMul+Tanh)", True),
    ]
    assert left(apart) == {"MatMul product", "Tanh y"}


def test_a_model_behind_onnxruntime_is_left_as_a_whole(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = measured(two, Invented(always(0.9), always(0.7), whole=1.3), monkeypatch)
    found = outcome(artifact)
    assert [t.what for t in found.trials] == ["all regions"] and len(found.left) == 4
    assert artifact.report["verification"]["ok"]
    assert "the whole model takes 1.30" in next(iter(found.left.values()))


@pytest.mark.slow
def test_at_several_sizes_none_may_lose(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    region = lambda label, case: 1.5 if label == "r0" and case == 1 else 0.5
    trials = lambda what, case: 0.5 if case % 2 == 0 else 1.2
    shapes = [{"n": 4}, {"n": 64}]
    artifact = measured(two, Invented(region, trials), monkeypatch, shapes=shapes)
    found = outcome(artifact)
    assert found.sizes == ("n=4", "n=64")
    assert [len(r.times) for r in found.regions] == [2, 2] and found.regions[0].is_slower
    assert not left(artifact) and len(found.trials[0].ratios) == 2
    gains = lambda what, case: 0.5 if case % 2 == 0 else 1.0
    again = measured(two, Invented(region, gains), monkeypatch, shapes=shapes, measure="again")
    assert left(again) == {"MatMul product", "Tanh y"}


def test_a_model_without_regions_has_nothing_to_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> one (float[4] x) => (float[4] y) { y = Abs(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "one.onnx")
    artifact = measured(tmp_path / "one.onnx", Invented(whole=1.5), monkeypatch, sizes=None)
    found = outcome(artifact)
    assert not found.regions and not found.trials and not found.left
    assert artifact.report["verification"]["ok"]


ODD = {
    "scalars": "g (float x, float[n] v) => (float y, float[n] z) { e = Exp(x) y = Tanh(e) s = Mul(v, y) z = Tanh(s) }",
    "strings": "g (string[n] s, float[n] x) => (string[n] t, float[n] y) { t = Identity(s) e = Exp(x) y = Tanh(e) }",
    "nothing": "g () => (float[2] y) <float[2] w = {1, 2}> { e = Exp(w) y = Tanh(e) }",
    "empty": "g (float[0, 8] x) => (float[0, 8] y) { e = Exp(x) y = Tanh(e) }",
    "bfloat16": "g (bfloat16[4, 8] x) => (bfloat16[4, 8] y) { e = Mul(x, x) y = Add(e, x) }",
}
"""Inputs and outputs that cannot all be bound in place, or have no elements."""


@pytest.mark.parametrize("name", ["scalars", *(pytest.param(n, marks=pytest.mark.full) for n in ODD if n != "scalars")])
def test_odd_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {ODD[name]}')
    onnx.save(model, tmp_path / "odd.onnx")
    artifact = measured(tmp_path / "odd.onnx", Invented(), monkeypatch, sizes=None)
    found = outcome(artifact)
    # ONNX Runtime has no kernels for bf16 on CPUs.
    assert not found.left and bool(found.cannot) == (name == "bfloat16")
    assert [r.unmeasured for r in found.regions] == [""] * len(found.regions)


def test_components_count_their_changes_of_layout() -> None:
    def region(label: str, own: float, theirs: float, *nodes: str) -> RegionOutcome:
        ratio = own / theirs if theirs else 0.0
        return RegionOutcome(label, ("Conv",), nodes, 1, (Times(own, theirs, ratio, 0.0, 8),))

    regions: dict[str, RegionOutcome] = {
        "in": region("in", 0.3, 0.0),
        "conv": region("conv", 0.8, 1.0, "c"),
        "out": region("out", 0.3, 0.0),
        "other": region("other", 5.0, 1.0, "o"),
    }
    nodes: dict[str, Sequence[str]] = {label: r.nodes for label, r in regions.items()}
    (found,) = slow_components([["in", "conv", "out"], ["other"]], regions, nodes)
    assert list(found.reasons) == ["c"] and found.excess == (pytest.approx(0.4),)
    assert "1.40 of ONNX Runtime's time" in found.reasons["c"]
    faster = {**regions, "conv": region("conv", 0.3, 1.0, "c")}
    assert not slow_components([["in", "conv", "out"]], faster, nodes)


@pytest.mark.slow
def test_an_image_network_is_one_component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[1, 16, 12, 12] x, float[32, 16, 3, 3] v, float[32, 32, 3, 3] w) => (float[1, 32, 8, 8] y)
    { a = Conv(x, v)  b = Tanh(a)  c = Conv(b, w)  y = Tanh(c) }"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for given in list(model.graph.input)[1:]:
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
        array = rng.standard_normal(shape).astype(np.float32) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, given.name))
        model.graph.input.remove(given)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, tmp_path / "net.onnx")
    slow_change = lambda label, case: 0.6 if label in ("r0", "r1") else 3.0
    artifact = measured(tmp_path / "net.onnx", Invented(slow_change, always(0.8)), monkeypatch, sizes=None)
    found = outcome(artifact)
    assert [r.ops for r in found.regions if r.nodes] == [("Conv", "Tanh")] * 2
    assert [t.what.partition(" around")[0] for t in found.trials] == [f"the {len(found.regions)} regions"]
    assert left(artifact) == {"a", "b", "c", "y"} and artifact.report["verification"]["ok"]


# -- the cache --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_compile_takes_the_outcome_from_the_cache(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measured(two, Invented(slow_first, always(0.8)), monkeypatch)
    silent = Invented()
    second = measured(two, silent, monkeypatch, measure=True)
    assert not silent.seen and outcome(second).from_cache
    assert second.model_path.read_bytes() == first.model_path.read_bytes()
    assert [p.read_bytes() for p in second.libraries] == [p.read_bytes() for p in first.libraries]
    for other in ({"sizes": {"n": 5}}, {"threads": 2}):
        timer = Invented()
        assert not left(measured(two, timer, monkeypatch, measure=True, **other)) and timer.seen
    again = Invented()
    assert not left(measured(two, again, monkeypatch)) and again.seen
    # The new outcome has replaced the old one.
    assert not left(measured(two, silent, monkeypatch, measure=True)) and not silent.seen


@pytest.mark.full
def test_regions_are_not_timed_again_in_another_model(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(two, Invented(slow_first, always(0.8)), monkeypatch)
    model = onnx.load(two)
    model.graph.node[3].op_type = "Exp"
    onnx.save(model, two)
    timer = Invented(lambda label, _: 0.4, always(0.8))
    found = outcome(measured(two, timer, monkeypatch, measure=True))
    assert [r.ratio for r in found.regions] == [pytest.approx(1.5), pytest.approx(0.4)]
    assert [w for w in timer.seen if w.startswith("region")] == ["region r1"]


@pytest.mark.slow
def test_without_the_option_nothing_changes(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = igniter.load(two)
    before = module.compile(tmp_path / "a")
    measured(two, Invented(slow_first, always(0.8)), monkeypatch)
    after = module.compile(tmp_path / "b")
    assert "measured" not in after.report and not left(after)
    for name in [before.model_path.name, *(p.name for p in before.libraries)]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
def test_the_options_of_a_report_give_the_same_kernels(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = measured(two, Invented(slow_first, always(0.8)), monkeypatch)
    options = igniter.CompileOptions.of_report(json.loads(json.dumps(artifact.report["options"])))
    assert dict(options.left).keys() == left(artifact)
    again = igniter.compile(two, options=options)
    assert again.report["kernel_digest"] == artifact.report["kernel_digest"] and left(again) == left(artifact)


# -- differences and refusals -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_region_with_other_numbers_is_left_to_onnxruntime(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PASSES, "negate-tanh", f"{__name__}:NegateTanh")
    options = igniter.CompileOptions(loop_passes="cpu-loop,negate-tanh")
    with pytest.raises(igniter.VerificationFailed):
        igniter.compile(two, options=options)
    artifact = measured(two, Invented(), monkeypatch, options=options)
    found = outcome(artifact)
    assert [r.decision for r in found.regions] == ["differs", "igniter"]
    assert left(artifact) == {"MatMul product", "Tanh y"} and artifact.report["verification"]["ok"]
    assert "WRONG RESULT in r0" in artifact.report["measured"]["text"][1]


@pytest.mark.parametrize("target", ["aarch64", "cuda", "x86-64-v2,x86-64-v3"])
def test_the_target_must_be_this_machine(two: Path, target: str) -> None:
    with pytest.raises(IgniterError, match="measuring times kernels on this machine: "):
        igniter.compile(two, target=target, measure=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"measure": "maybe"}, "measure must be True, False or 'again', not 'maybe'"),
        ({"threads": 2}, "threads=2 is for a measured compile"),
        ({"measure": True, "threads": -1}, "it cannot be negative"),
        ({"measure": True, "sanitize": True}, "sanitize adds checks"),
    ],
)
def test_options_without_a_meaning_are_errors(two: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(IgniterError, match=said):
        igniter.compile(two, **options)


def test_formed_regions_cannot_be_left(two: Path) -> None:
    module = igniter.load(two).run_passes("cpu-onnx,cpu-fusion")
    with pytest.raises(IgniterError, match="the regions are already formed"):
        module.compile(measure=True)


# -- turns ------------------------------------------------------------------------------------------------------------


def test_noise_is_the_control_or_the_spread() -> None:
    steady = Turns({"a": [2.0] * 9, "b": [1.0] * 9, "again": [1.1] * 9})
    assert steady.ratio("a", "b") == pytest.approx(2) and steady.noise("a", "b") == 0
    assert steady.noise("a", "b", ("again", "b")) == pytest.approx(0.1)
    # The machine got three times slower: ratios within rounds do not see it.
    drift = Turns({"a": [2.0, 6.0, 6.0], "b": [1.0, 3.0, 3.0]})
    assert drift.ratio("a", "b") == pytest.approx(2) and drift.noise("a", "b") == pytest.approx(0)
    wild = Turns({"a": [1.0, 2.0, 1.0, 2.0, 1.5], "b": [1.0] * 5})
    assert wild.noise("a", "b") > 0.3


def test_every_system_has_a_turn_in_each_round() -> None:
    runs: list[str] = []
    turns = time_turns("test", {name: lambda name=name: runs.append(name) for name in "abc"}, 0.001)
    assert turns.rounds >= 6 and len({len(s) for s in turns.seconds.values()}) == 1
    assert runs.count("a") == runs.count("b") == runs.count("c")


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--threads=2"], "--threads is for --measure: give both, or neither"),
        (["--measure", "--emit=loop"], "--measure times a library, and --emit=loop makes none"),
        (["--measure", "--target=aarch64"], "'aarch64' is not this machine"),
        (["--measure", "--sanitize"], "sanitize adds checks"),
    ],
)
def test_the_command_refuses_options_without_a_meaning(two: Path, options: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["compile", str(two), *options])
    assert done.exit_code == 1 and said in " ".join(done.output.split())


@pytest.mark.slow
def test_the_command_says_what_was_measured(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = Invented(slow_first, always(0.8))
    monkeypatch.setattr(Measure, "of", staticmethod(lambda asked, threads: Measure(threads, bool(asked), timer=timer)))
    command = ["compile", str(two), "-o", str(tmp_path / "out"), "--measure-again", "--sizes=n=4", "--threads=2"]
    done = CliRunner().invoke(app, [*command, "--explain"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "measured beside ONNX Runtime (2 threads at n=4): 1 of 2 regions left to it" in said
    assert "r0 MatMul+Tanh: 1500.0 us, 1.50 of ONNX Runtime's time (noise 0.00, 8 rounds): left to ONNX Runtime" in said
    assert "the model with r0 (MatMul+Tanh) left to ONNX Runtime takes 0.80 of the time" in said
    shown = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert [r["decision"] for r in shown["measured"]["regions"]] == ["onnxruntime", "igniter"]
