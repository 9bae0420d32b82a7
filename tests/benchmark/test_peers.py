"""Races between systems: the order of turns, what is compared, and how results are written. No peer is needed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmark.peers.protocol import Loaded, Task, Unavailable
from benchmark.peers.race import CONTROL, REFERENCE, Entry, Result, labelled, largest_error, orders, race
from benchmark.peers.report import Race, markdown, save
from benchmark.table import Column, line


class Fake:
    """A peer's process that takes a given time, or says why it does not run."""

    def __init__(self, peer: str, seconds: float, output: float = 1.0, reason: str = "", dies: bool = False):
        self.peer, self.seconds, self.output, self.reason, self.dies = peer, seconds, output, reason, dies
        self.turns: list[int] = []

    def load(self, task: Task, limit: float) -> Loaded:
        if self.reason:
            raise Unavailable(self.reason)
        return Loaded([np.full(3, self.output, np.float32)], 2.0, "1.2", "as it is")

    def run(self, times: int) -> list[float]:
        if self.dies and self.turns:
            raise Unavailable("its process ended with -11")
        self.turns.append(times)
        return [self.seconds] * times


def run(workers: dict[str, Fake], rounds: int = 4) -> dict[str, Result]:
    task = Task("model.onnx", {})
    entries = [Entry(label, worker, task) for label, worker in workers.items()]  # type: ignore[arg-type]
    return {r.label: r for r in race(entries, rounds=rounds, seconds=1.0, gap=0.0)}


def test_everyone_is_as_often_before_as_after_everyone_else() -> None:
    found = list(orders(5, 6, seed=3))
    assert len(found) == 6
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in found)
    before = Counter((a, b) for order in found for k, a in enumerate(order) for b in order[k + 1 :])
    assert set(before.values()) == {3}
    assert found == list(orders(5, 6, seed=3))
    assert found != list(orders(5, 6, seed=4))
    assert len(list(orders(3, 5, seed=0))) == 5


def test_the_reference_runs_twice() -> None:
    assert labelled(["igniter", "ort", "tvm"]) == {
        REFERENCE: "ort", "igniter": "igniter", "tvm": "tvm", CONTROL: "ort",
    }  # fmt: skip


def test_all_make_the_same_number_of_runs() -> None:
    workers = {"ort": Fake("ort", 0.1), "igniter": Fake("igniter", 0.01)}
    found = run(workers)
    # Two to see how long they take, then as many as the slower one fits into a turn.
    assert workers["ort"].turns == workers["igniter"].turns == [2, 10, 10, 10, 10]
    assert found["igniter"].ratio(found["ort"]) == pytest.approx(0.1)


def test_those_that_do_not_run_are_listed_with_the_reason() -> None:
    found = run(
        {
            "ort": Fake("ort", 0.1),
            "absent": Fake("absent", 0.1, reason="absent is not installed"),
            "wrong": Fake("wrong", 0.1, output=1.5),
            "fragile": Fake("fragile", 0.1, dies=True),
        }
    )
    assert found["absent"].reason == "absent is not installed"
    assert found["wrong"].reason == "its outputs differ by 5.0e-01"
    assert found["fragile"].reason == "its process ended with -11"
    assert found["ort"].reason == "" and len(found["ort"].turns) == 4


def test_errors_are_relative_to_the_largest_magnitude() -> None:
    want = np.array([[100.0, 1.0]], np.float32)
    assert largest_error([want], [want + 1]) == pytest.approx(0.01)
    assert largest_error([want], [want[0]]) == float("inf")
    assert largest_error([want], []) == float("inf")
    assert largest_error([want], [want * np.nan]) == float("inf")


def made_race() -> Race:
    results = [
        Result("ort", "ort", version="1.31", turns=[0.010, 0.012, 0.011]),
        Result("igniter", "igniter", version="0.1", turns=[0.005, 0.006, 0.0055]),
        Result("tvm", "tvm", reason="apache-tvm is not installed"),
        Result(CONTROL, "ort", version="1.31", turns=[0.010, 0.012, 0.011]),
    ]
    return Race("small", {"batch": 1, "sequence": 8}, 2, "f32", results, {"seconds": 0.0044}, {"spread": 0.02})


def test_the_table() -> None:
    assert markdown([made_race()]) == (
        "| model | shape | threads | precision | roofline ms | ort ms | igniter | tvm | ort again | noise |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| small | 1x8 | 2 | f32 | 4.4 | 11 (10.5-11.5) [40%] | 0.50 [80%] | - | 1.00 | 0.0%, peak 2.0% |\n"
        "\n"
        "Not timed:\n"
        "\n"
        "* tvm, small 1x8, f32: apache-tvm is not installed\n"
        "\n"
        "Versions: ort 1.31, igniter 0.1.\n"
    )


def test_the_shape_of_a_model_without_symbolic_dims() -> None:
    assert made_race().shape == "1x8"
    assert Race("small", {}, 1, "f32", []).shape == "fixed"


def test_what_is_saved(tmp_path: Path) -> None:
    save([made_race()], tmp_path, "run", {"machine": {"cpu": "some"}})
    stored = json.loads((tmp_path / "run.json").read_text())
    assert stored["machine"] == {"cpu": "some"}
    (found,) = stored["races"]
    igniter = next(s for s in found["systems"] if s["label"] == "igniter")
    assert igniter["ratio"] == pytest.approx(0.5)
    assert igniter["share_of_roofline"] == pytest.approx(0.8)
    assert igniter["quartiles_ms"] == pytest.approx([5.25, 5.75])
    assert (tmp_path / "run.md").read_text() == markdown([made_race()])


def test_lines_of_a_terminal_table() -> None:
    columns = [Column("name", 6), Column("ms", 5)]
    assert line(columns, ["a", "1.0"]) == "a        1.0"
    assert line(columns, ["longer name", "1.0"]) == "longer name   1.0"


def test_igniter_and_the_runtime_are_found() -> None:
    """By the names of their distributions, not of their modules."""
    from benchmark.peers.systems import SYSTEMS

    assert all(SYSTEMS[name].version()[0].isdigit() for name in ("igniter", "ort"))
