"""How comparisons are handed to machines, with a stand-in for Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from igniter.errors import IgniterError
from igniter.toolbox.experiment.cluster import RayCluster
from igniter.toolbox.experiment.comparison import Case
from igniter.toolbox.experiment.spec import Spec
from igniter.toolbox.experiment.spec_reading import spec_of
from igniter.toolbox.experiment.store import Store
from igniter.toolbox.experiment.subjects import Subject

SPEC = spec_of({"models": ["net"], "variant": [{"name": "a"}]})


class Machine:
    """A machine of the stand-in: takes a comparison, and gives its record when it is asked for."""

    def __init__(self, log: list[str], fails: str = ""):
        self.log, self.fails, self.busy, self.compare = log, fails, False, self

    def remote(self, spec: Spec, case: Case, model: bytes) -> tuple[Machine, str]:
        assert not self.busy, "a machine got two comparisons at once"
        self.busy = True
        self.log.append(case.id)
        return self, case.id

    def get(self, case: str) -> dict[str, bytes]:
        self.busy = False
        if case == self.fails:
            raise RuntimeError("ray.exceptions.ActorDiedError\nthe machine went away")
        return {f"cases/{case}/launch-0.json": case.encode()}


class StandIn:
    """The part of Ray that the cluster uses."""

    def wait(self, running: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return running[-1:], running[:-1]

    def get(self, reference: tuple[Machine, str]) -> dict[str, bytes]:
        return reference[0].get(reference[1])


def cluster_of(machines: list[Machine]) -> RayCluster:
    made = RayCluster.__new__(RayCluster)
    made._ray, made._owned = StandIn(), False
    made._machines = lambda: list(machines)
    return made


CASES = [Case(Subject("net", "", "", ({},), reason="no model"), {"batch": n}, 1) for n in range(1, 6)]


def test_every_comparison_runs_once_on_one_machine_and_its_records_come_back(tmp_path: Path):
    log: list[str] = []
    cluster_of([Machine(log), Machine(log)]).run(SPEC, CASES, Store(tmp_path), lambda _: None)
    assert sorted(log) == sorted(case.id for case in CASES)
    for case in CASES:
        assert (tmp_path / "cases" / case.id / "launch-0.json").read_text() == case.id


def test_a_machine_that_goes_away_is_named(tmp_path: Path):
    log: list[str] = []
    with pytest.raises(IgniterError, match=f"the comparison {CASES[2].id} ended on its machine: the machine went away"):
        cluster_of([Machine(log, CASES[2].id)]).run(SPEC, CASES, Store(tmp_path), lambda _: None)
    # What was finished before is kept.
    assert (tmp_path / "cases" / CASES[0].id / "launch-0.json").is_file()
