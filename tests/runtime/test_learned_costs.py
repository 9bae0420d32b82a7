"""`igniter tune --learned`: features of candidates, the model learned from their times, and the database of both."""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from igniter.errors import IgniterError
from igniter.schedules import cost_features, learned_costs
from igniter.schedules.cost_features import features_of
from igniter.schedules.learned_costs import Example, LearnedCosts, beside
from igniter.schedules.loop_traffic import traffic_of
from igniter.targets import backend_for
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.toolbox.tune.learned import learned_from
from igniter.toolbox.tune.measure import Job, Measurement, measure, scheduled
from igniter.toolbox.tune.search import Limits, Tunable, Tuner, space_of, subject_of, with_schedules
from igniter.tools.main import app
from igniter.transforms.structured.schedule_database import LAYOUT, Subject, Trial, opened

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
EXAMPLES = Path(__file__).resolve().parents[2] / "lit_tests" / "examples"
NATIVE = backend_for("native").target_of("native")


def features(what: Tunable, count: int) -> list[dict[str, float]]:
    """The features of the first legal candidates of a kernel."""
    machine, space = backend_for(what.target.name).machine_for(what.target), space_of(what)
    found: list[dict[str, float]] = []
    for point in islice(space.points(), count):
        try:
            kernel, func = scheduled(with_schedules(what.kernel, space.schedules(point)), what.target)
        except IgniterError:
            continue
        found.append(features_of(kernel, func, machine, what.sizes))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", [EXAMPLES / "gemm.mlir", EXAMPLES / "softmax.mlir", GALLERY / "direct_convolution.mlir"]
)
def test_features_are_finite_deterministic_and_tell_candidates_apart(file: Path) -> None:
    first, again = (features(subject_of(file, target="znver4"), 6) for _ in range(2))
    assert first == again and len(first) > 3
    assert all(found.keys() == first[0].keys() and all(map(math.isfinite, found.values())) for found in first)
    assert len({tuple(found.values()) for found in first}) > 2
    assert all(found["points"] == first[0]["points"] > 0 for found in first)
    assert all(value == 0 for name, value in beside(first[0], first[0]).items() if name.endswith(" change"))


PRODUCT = """builtin.module {
  loop.kernel @product symbols [] (%a: tensor<96x512xTYPE>, %b: tensor<4xDEPTHx16x4xPANEL>) -> (tensor<96x64xSUM>) {
    %c = loop.nest "matmul" [i: parallel 96, j: parallel 64, k: reduction 512]
        schedule [j by 16, i by ROWS, product(i, j, k) tile [ROWS, 1], i, j vector 4 unroll] -> tensor<96x64xSUM> {
      %x = loop.read %a[i, k] : TYPE
      %w = loop.read %b[j floordiv 16, k PLACE] : PANEL
      BODY
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<96x64xSUM>
  }
}"""
BYTES = {
    "DEPTH": "128",
    "k PLACE": "k floordiv 4, j mod 16, k mod 4",
    "BODY": "%u = arith.extsi %x : i8 to i32\n%v = arith.extsi %w : i8 to i32\n%p = arith.muli %u, %v : i32",
    "TYPE": "i8",
    "PANEL": "i8",
    "SUM": "i32",
}
HALVES = {
    "DEPTH": "512",
    "x4xPANEL": "xf16",
    "k PLACE": "k, j mod 16",
    "BODY": "%v = arith.extf %w : f16 to f32\n%p = arith.mulf %x, %v : f32",
    "TYPE": "f32",
    "PANEL": "f16",
    "SUM": "f32",
}


@pytest.mark.parametrize(("words", "rows"), [(BYTES, 192), (HALVES, 48)])
def test_a_tall_tile_holds_six_rows_in_registers(words: dict[str, str], rows: int) -> None:
    """On Arm, where a panel is converted or interleaved once for many rows; no sum is spilled."""
    target = backend_for("neoverse-v1").target_of("neoverse-v1")
    found: dict[int, dict[str, float]] = {}
    for height in (6, rows):
        text = PRODUCT.replace("ROWS", str(height))
        for name, value in words.items():
            text = text.replace(name, value)
        kernel, func = scheduled(text, target)
        found[height] = features_of(kernel, func, backend_for(target.name).machine_for(target), {})
    low, tall = found[6], found[rows]
    # Four vectors of sums for each row, and four of the panel.
    assert low["tile_registers"] == tall["tile_registers"] == 28 and tall["tile_spills"] == 0
    assert low["tile_filled"] == tall["tile_filled"] == 1 and low["tile_loads"] == tall["tile_loads"]
    # Once for each tile of rows: 16 of six, one or two of the tall ones.
    fewer = math.log2(16 / -(-96 // rows))
    assert abs(low["tile_conversions"] - tall["tile_conversions"] - fewer) < 0.02


SCALED = """builtin.module {
  loop.kernel @scaled symbols [] (%x: tensor<256x1024xf32>) -> (tensor<256x1024xf32>) {
    %y = loop.nest "scale" [i: parallel 256, j: parallel 1024] schedule ORDER -> tensor<256x1024xf32> {
      %a = loop.read %x[i, j] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [i, j]
    }
    loop.return %y : tensor<256x1024xf32>
  }
}"""


def test_the_traffic_of_a_loop_is_its_lines_and_columns_move_more_of_them(tmp_path: Path) -> None:
    both = 2 * 256 * 1024 * 4
    moved: dict[str, int] = {}
    for order in ("[i, j]", "[j, i]"):
        _, func = scheduled(SCALED.replace("ORDER", order), NATIVE)
        node = traffic_of(func.block, {}, 64)
        assert node.footprint == both and node.moved(both) == both
        moved[order] = node.moved(1 << 14)
    # A line holds 16 elements of a row; a column of 256 of both tensors has 32 KiB of lines, twice the cache.
    assert moved["[i, j]"] == both
    assert moved["[j, i]"] == 16 * both


# -- learning ---------------------------------------------------------------------------------------------------------


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's."""

    def ranks(values: Sequence[float]) -> list[int]:
        order = sorted(range(len(values)), key=lambda k: values[k])
        return [order.index(k) for k in range(len(values))]

    n = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(ranks(a), ranks(b), strict=True)) / (n * (n * n - 1))


def synthetic(kernels: int, seed: int = 0) -> list[Example]:
    """Candidates whose time follows memory traffic and spills, which counted cycles do not know."""
    rng = random.Random(seed)
    found: list[Example] = []
    for kernel in range(kernels):
        default = {"cycles": rng.uniform(10, 20), "l1_traffic": rng.uniform(10, 20), "tile_spills": 0.0}
        for _ in range(40):
            changes = rng.uniform(-1, 1), rng.uniform(-3, 3), rng.choice((0.0, 0.0, 4.0))
            own = {n: v + c for (n, v), c in zip(default.items(), changes, strict=True)}
            log = 0.2 * changes[0] + 0.5 * changes[1] + 0.25 * changes[2] + rng.gauss(0, 0.02)
            found.append(Example(f"k{kernel}", beside(own, default), 2.0**log))
    return found


def needs_learning() -> None:
    pytest.importorskip("sklearn", reason="the learned cost model needs scikit-learn: the extra learn")


@pytest.mark.slow
def test_a_known_function_is_learned_and_orders_a_kernel_held_out_better_than_cycles() -> None:
    needs_learning()
    examples = synthetic(7)
    known = [e for e in examples if e.kernel != "k0"]
    held = [e for e in examples if e.kernel == "k0"]
    model = LearnedCosts(known)
    times = [e.ratio for e in held]
    learned = rank_correlation(model.ratios([e.features for e in held]), times)
    analytic = rank_correlation([e.features["cycles change"] for e in held], times)
    assert learned > 0.9 > 0.5 > analytic
    again = LearnedCosts(known)
    assert again.ratios([e.features for e in held]) == model.ratios([e.features for e in held])
    assert str(model) == "a cost model learned from 240 candidates of 6 kernels"
    assert model.ratios([]) == []


def test_a_model_without_examples_or_scikit_learn_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_learning()
    with pytest.raises(IgniterError, match="no timed candidates to learn from"):
        LearnedCosts([])
    monkeypatch.setattr(learned_costs, "find_spec", lambda _: None)
    with pytest.raises(IgniterError, match=r"needs scikit-learn: pip install 'onnx-igniter\[learn\]'"):
        LearnedCosts(synthetic(3))


# -- the database -----------------------------------------------------------------------------------------------------


def note(path: Path, examples: Sequence[Example]) -> None:
    with opened(path, create=True) as database:
        for k, each in enumerate(examples):
            trial = Trial({"p": str(k)}, "timed", "", each.ratio, 1e-6, str(k), each.features)
            database.note(Subject(each.kernel, NATIVE.key, "threads=1"), trial)


def test_a_database_keeps_features_and_learns_from_those_of_this_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_learning()
    path = tmp_path / "d.sqlite"
    note(path, synthetic(3))
    with opened(path) as database:
        assert str(learned_from(database, NATIVE)) == "a cost model learned from 120 candidates of 3 kernels"
        monkeypatch.setattr("igniter.transforms.structured.schedule_database.FEATURES", cost_features.FEATURES + 1)
        with pytest.raises(IgniterError, match="has 0 of 0: tune other kernels without --learned first"):
            learned_from(database, NATIVE)


def test_a_database_of_the_layout_without_features_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    subject = Subject("k", NATIVE.key, "threads=1")
    with opened(path, create=True) as database:
        database.note(subject, Trial({"p": "1"}, "timed", "", 0.5, 1e-6, "d"))
    with sqlite3.connect(path) as raw:
        raw.execute("alter table trials drop column features")
        raw.execute("pragma user_version = 2")
    with opened(path) as database:
        assert database.trials(subject) == [Trial({"p": "1"}, "timed", "", 0.5, 1e-6, "d")]
        assert database.examples(NATIVE.key) == []
        database.note(subject, Trial({"p": "2"}, "timed", "", 0.25, 1e-6, "e", {"cycles": 1.0}))
        ((_, _, found),) = database.examples(NATIVE.key)
        assert found.features == {"cycles": 1.0} and found.ratio == 0.25
    with sqlite3.connect(path) as raw:
        assert raw.execute("pragma user_version").fetchone() == (LAYOUT,)


# -- the search -------------------------------------------------------------------------------------------------------


class Recorded(LocalExecutor):
    """Notes the candidates that are timed, in order, and gives them the time of the default."""

    def __init__(self) -> None:
        super().__init__(measure)
        self.timed: list[str] = []

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        found = super().run(jobs)
        self.timed += [j.candidate for j, m in zip(jobs, found, strict=True) if m.outcome == "timed"]
        return found


class Wide(LearnedCosts):
    """Predicts that candidates with more code are faster."""

    def __init__(self) -> None:
        self.kernels, self.examples = 1, 1

    def ratios(self, features: Sequence[dict[str, float]]) -> list[float]:  # type: ignore[override]
        return [2.0 ** -f["code change"] for f in features]


def legal_code(text: str) -> bool:
    try:
        return bool(code_of(text))
    except IgniterError:
        return False


def code_of(text: str) -> float:
    return features_of(*scheduled(text, NATIVE), backend_for("native").machine_for(NATIVE), {})["code"]


def test_a_search_takes_the_learned_order_notes_features_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    file = tmp_path / "scaled.mlir"
    file.write_text(SCALED.replace("ORDER", "[j, i]"))
    what, executor = subject_of(file), Recorded()
    with opened(tmp_path / "d.sqlite", create=True) as database:
        limits = Limits(seconds=600, trials=2, patience=0)
        tuned = Tuner(what, database, limits, executor, learned=Wide(), rounds=3).run()
        assert tuned.order == "a cost model learned from 1 candidates of 1 kernels"
        examples = database.examples(what.target.key)
    assert examples and all(math.isfinite(v) for _, _, t in examples for v in t.features.values())
    # Point 0 is first; the next candidate is the one with the most code.
    space = space_of(what)
    legal = [
        t for t in (with_schedules(what.kernel, space.schedules(p)) for p in islice(space.points(), 8)) if legal_code(t)
    ]
    assert code_of(executor.timed[-1]) == max(map(code_of, legal))


def test_learned_is_refused_with_a_reason_where_it_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    needs_learning()

    def run(*options: str) -> str:
        command = ["tune", str(EXAMPLES / "softmax.mlir"), "--db", str(tmp_path / "d.sqlite"), "--learned", *options]
        found = CliRunner().invoke(app, command)
        assert found.exit_code != 0
        return " ".join(found.output.split())

    assert "--learned needs 60 timed candidates of 3 kernels" in run()
    assert "--learned orders candidates for a CPU" in run("--target=cuda:sm_90", "--estimate")
    monkeypatch.setattr(learned_costs, "find_spec", lambda _: None)
    assert "the learned cost model needs scikit-learn" in run()
