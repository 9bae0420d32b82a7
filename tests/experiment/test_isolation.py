"""Processes of an experiment: what fails costs its own rows."""

from __future__ import annotations

import pytest

from igniter.errors import IgniterError
from igniter.runtime.timing import System, TimedProcess
from igniter.toolbox.experiment.jobs import run_job
from igniter.toolbox.experiment.spec import Measure
from igniter.toolbox.experiment.timing import Entry, time_launch

PLACE = "tests.experiment.broken_systems"


def system(name: str, entry: str, **settings: object) -> System:
    return System(name, "", "", entry=f"{PLACE}:{entry}", settings=settings)


@pytest.mark.slow
def test_a_system_that_dies_leaves_the_launch_and_the_others_go_on():
    entries = [
        Entry(system("good", "sleeper", seconds=0.001, lives=1000)),
        Entry(system("dies later", "sleeper", seconds=0.001, lives=9)),
        Entry(system("never starts", "crash")),
    ]
    found = time_launch(entries, Measure(rounds=3, seconds=0.002, limit=60), "ab")
    assert list(found["times"]) == ["good"] and found["memory"]["good"] > 1 << 20
    assert all(len(rounds) == 3 for rounds in found["times"]["good"].values())
    assert all(s >= 0.001 for rounds in found["times"]["good"].values() for turn in rounds for s in turn)
    assert set(found["failed"]) == {"dies later", "never starts"}
    assert found["failed"]["dies later"] == "the process that timed 'dies later' ended (status 3)"
    assert found["failed"]["never starts"] == "the process that timed 'never starts' ended (status -11)"


def test_a_system_that_hangs_is_ended():
    with pytest.raises(IgniterError, match=r"the process that timed 'slow' was not done in 0.5 seconds"):
        TimedProcess(system("slow", "hang"), limit=0.5)


@pytest.mark.parametrize(
    ("what", "limit", "message"),
    [
        ("raise", 60, "ValueError: wrong"),
        ("crash", 60, "its process ended with SIGSEGV: last words"),
        ("hang", 0.5, "it was not done in 0.5 seconds"),
    ],
)
def test_a_job_that_fails_says_how(what: str, limit: float, message: str):
    with pytest.raises(IgniterError) as error:
        run_job(f"{PLACE}:job", {"what": what}, limit=limit)
    assert error.value.message == message


def test_a_job_returns_its_result_whatever_libraries_print():
    assert run_job(f"{PLACE}:job", {"what": "work"}, limit=60) == {"done": "work"}
