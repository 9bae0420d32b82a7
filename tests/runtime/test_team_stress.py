"""Programs whose threads stay together, under stress: sessions and runs at a time, and runs that are cancelled.

Every result is compared bit by bit with that of one thread: tasks are the same for any number of threads.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.backends.cpu import team
from igniter.runtime.session import make_session

WIDTH, ROWS = 384, (1, 5, 64, 130)
STAGES = 3
"""Nodes of the compiled model that have a team: what stands between them is ONNX Runtime's."""


def model() -> bytes:
    """Stages of products and norms, with a node between them that stays with ONNX Runtime."""
    rng = np.random.default_rng(7)
    nodes, weights, last = [], [], "x"
    for k in range(STAGES):
        for layer in range(2):
            w = (rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
            name = f"{k}.{layer}"
            scale = np.ones(WIDTH, np.float32)
            weights += [numpy_helper.from_array(w, f"w{name}"), numpy_helper.from_array(scale, f"s{name}")]
            nodes += [
                helper.make_node("MatMul", [last, f"w{name}"], [f"m{name}"]),
                helper.make_node("LayerNormalization", [f"m{name}", f"s{name}"], [f"n{name}"]),
            ]
            last = f"n{name}"
        if k + 1 < STAGES:
            nodes += [
                helper.make_node("SequenceConstruct", [last], [f"q{k}"]),
                helper.make_node("SequenceAt", [f"q{k}", "first"], [f"a{k}"]),
            ]
            last = f"a{k}"
    weights.append(numpy_helper.from_array(np.array(0, np.int64), "first"))
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", WIDTH]) for n in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> igniter.Artifact:
    """The compiled model; each of its stages has a team."""
    teams: list[str] = []
    emit = team.emit_team
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(team, "emit_team", lambda module, name, found: (teams.append(name), emit(module, name, found)))
        made = igniter.compile(model(), tmp_path_factory.mktemp("stress") / "out", verify=False, cache=False)
    assert len(set(teams)) == STAGES, teams
    return made


Inputs = dict[int, np.ndarray]


@pytest.fixture(scope="module")
def expected(artifact: igniter.Artifact) -> tuple[Inputs, Inputs]:
    """Inputs by their number of rows, and what one thread makes of them."""
    rng = np.random.default_rng(0)
    given = {rows: rng.standard_normal((rows, WIDTH)).astype(np.float32) for rows in ROWS}
    alone = artifact.session(intra_op_num_threads=1)
    found = {rows: alone.run(None, {"x": x})[0] for rows, x in given.items()}
    reference = make_session(model(), intra_op_num_threads=1)
    for rows, x in given.items():
        np.testing.assert_allclose(found[rows], reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
    return given, found


class Users:
    """Threads that run sessions at a time until each has made its runs. Whatever goes wrong is in `wrong`."""

    def __init__(self, expected: tuple[Inputs, Inputs]):
        self._given, self._expected = expected
        self.wrong: list[str] = []
        self.cancelled = self.ended = 0
        self._lock = threading.Lock()

    def run(self, sessions: list[Any], users: int, runs: int, cancel: bool = False) -> None:
        """`users` threads share `sessions`, each with `runs` runs; with `cancel`, every other run is cancelled."""
        workers = [
            threading.Thread(target=self._work, args=(sessions[k % len(sessions)], k, runs, cancel), daemon=True)
            for k in range(users)
        ]
        for worker in workers:
            worker.start()
        deadline = time.monotonic() + 300
        for worker in workers:
            worker.join(timeout=max(0.0, deadline - time.monotonic()))
        assert not any(worker.is_alive() for worker in workers), "a run did not end"
        assert not self.wrong, self.wrong[:5]

    def _work(self, session: Any, user: int, runs: int, cancel: bool) -> None:
        rng = np.random.default_rng(user)
        for turn in range(runs):
            rows = int(rng.choice(ROWS))
            options = ort.RunOptions()
            stop = threading.Timer(float(rng.uniform(0, 0.004)), lambda o=options: setattr(o, "terminate", True))
            if cancel and turn % 2:
                stop.start()
            try:
                (found,) = session.run(None, {"x": self._given[rows]}, options)
            except Exception as error:
                self._note(cancelled=True, wrong="" if "terminate" in str(error) and cancel else f"{rows}: {error}")
            else:
                same = np.array_equal(found.view(np.uint32), self._expected[rows].view(np.uint32))
                self._note(cancelled=False, wrong="" if same else f"{rows} rows, user {user}, run {turn}")
            finally:
                stop.cancel()

    def _note(self, cancelled: bool, wrong: str) -> None:
        with self._lock:
            self.cancelled += cancelled
            self.ended += not cancelled
            self.wrong += [wrong] if wrong else []


def sessions_of(artifact: igniter.Artifact, count: int, threads: int, spinning: bool) -> list[Any]:
    config = {"session.intra_op.allow_spinning": str(int(spinning))}
    return [artifact.session(intra_op_num_threads=threads, config=config) for _ in range(count)]


@pytest.mark.parametrize(("threads", "spinning"), [(2, True), (5, False), (16, False)])
def test_sessions_at_a_time(
    artifact: igniter.Artifact, expected: tuple[Inputs, Inputs], threads: int, spinning: bool
) -> None:
    users = Users(expected)
    users.run(sessions_of(artifact, 2, threads, spinning), users=4, runs=6)
    assert users.ended == 24 and not users.cancelled


def test_runs_that_are_cancelled(artifact: igniter.Artifact, expected: tuple[Inputs, Inputs]) -> None:
    """A cancelled run ends with an error or with its result, and those after it are right."""
    users = Users(expected)
    sessions = sessions_of(artifact, 2, 3, False)
    users.run(sessions, users=4, runs=10, cancel=True)
    assert users.ended + users.cancelled == 40 and users.ended >= 20
    users.run(sessions, users=2, runs=4)


def test_a_run_that_is_cancelled_before_it_begins(artifact: igniter.Artifact, expected: tuple[Inputs, Inputs]) -> None:
    (session,) = sessions_of(artifact, 1, 3, False)
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(Exception, match="terminate"):
        session.run(None, {"x": expected[0][64]}, options)
    Users(expected).run([session], users=1, runs=3)


@pytest.mark.full
@pytest.mark.timeout(0)
@pytest.mark.parametrize("spinning", [False, True])
@pytest.mark.parametrize("threads", range(1, 17))
def test_longer(artifact: igniter.Artifact, expected: tuple[Inputs, Inputs], threads: int, spinning: bool) -> None:
    for count, people in ((1, 1), (1, 6), (3, 6), (4, 12)):
        users = Users(expected)
        sessions = sessions_of(artifact, count, threads, spinning)
        users.run(sessions, people, 40)
        users.run(sessions, people, 40, cancel=True)
        assert users.ended + users.cancelled == 80 * people
