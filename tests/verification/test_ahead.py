"""Runs of the original beside the compilation: as many as without, each taken once, and faults are found as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from igniter.frontend.ort_values import run
from igniter.runtime.session import make_session
from igniter.verification import ahead, original
from igniter.verification.graph_facts import model_facts
from igniter.verification.kept_results import KeptResults
from igniter.verification.original import REFERENCE, UNOPTIMISED, Original
from igniter.verification.verify import Candidate, VerifyOptions, verify_models


def network(scale: float = 1.0) -> onnx.ModelProto:
    rng = np.random.default_rng(5)
    weights = [numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32) * scale, "w")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 8]) for n in ("x", "y")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, bytes]]:
    """The runs of the original, by the level of optimisation and the inputs."""
    counts: Counter[tuple[str, bytes]] = Counter()
    plain = original._run_original

    def count(session: Any, names: Any, feed: Any, *limits: Any) -> Any:
        level = str(session.get_session_options().graph_optimization_level)
        counts[level, b"".join(np.asarray(v).tobytes() for v in feed.values())] += 1
        return plain(session, names, feed, *limits)

    monkeypatch.setattr(original, "_run_original", count)
    return counts


def verified(path: Path, compiled: onnx.ModelProto, results: KeptResults | None) -> Any:
    made = Original(str(path), is_shared=True)
    made.results = results
    candidate = Candidate(lambda _threads, _cut: make_session(compiled.SerializeToString()))
    return verify_models(made, candidate, model_facts(str(path)), VerifyOptions(seed=3))


def test_a_verification_makes_as_many_runs_and_finds_as_much(
    tmp_path: Path, counted: Counter[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other inputs are tried for a time.
    monkeypatch.setattr("igniter.verification.more_inputs.MOST_INPUTS", 4)
    path = tmp_path / "m.onnx"
    onnx.save(network(), path)
    without = verified(path, network(), None)
    plain = Counter(counted)
    counted.clear()
    kept = KeptResults(tmp_path, keeps=True)
    for _ in ahead.runs(str(path), VerifyOptions(seed=3), kept):
        pass
    beside = sum(counted.values())
    assert beside >= 15 and len(list(tmp_path.iterdir())) == beside + 1
    found = verified(path, network(), KeptResults(tmp_path))
    assert counted == plain, "each run is made once, beside the compilation or in the verification"
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"], "each result is taken"
    assert found.status == without.status == "passed"
    assert [(c.kind, c.shapes, c.outputs) for c in found.cases] == [
        (c.kind, c.shapes, c.outputs) for c in without.cases
    ]


def test_a_fault_is_found_with_the_results_of_earlier_runs(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(network(), path)
    for _ in ahead.runs(str(path), VerifyOptions(seed=3), KeptResults(tmp_path, keeps=True)):
        pass
    assert verified(path, network(1.001), KeptResults(tmp_path)).status == "differs"


def test_a_result_is_taken_once_and_for_its_own_run(tmp_path: Path) -> None:
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(3)}
    kept = KeptResults(tmp_path, keeps=True)
    for k in range(2):
        kept.keep(REFERENCE, feed, [np.full((2, 2), k), np.array(0.5 + k, np.float32)])
    kept.keep(REFERENCE, feed, [np.array("text")])
    kept.keep(REFERENCE, {**feed, "s": np.array(["text"], object)}, [np.zeros(1)])
    kept.keep(REFERENCE, {"x": [np.zeros(2)]}, [np.zeros(1)])
    kept.keep(REFERENCE, {"x": np.zeros(2)}, [[np.zeros(1)]])
    assert kept.take(REFERENCE, feed, 2) is None, "it keeps"
    taking = KeptResults(tmp_path)
    others = [{**feed, "x": feed["x"].reshape(3, 2)}, {**feed, "x": feed["x"].astype(np.float64)}, {"x": feed["x"]}]
    others.append({**feed, "x": np.nextafter(feed["x"], np.float32(9))})
    assert all(taking.take(REFERENCE, other, 2) is None for other in others)
    assert taking.take(UNOPTIMISED, feed, 2) is None
    for k in range(2):
        found = taking.take(REFERENCE, feed, 2)
        assert found is not None and np.all(found[0] == k)
        assert found[1].dtype == np.float32 and found[1].shape == () and found[1] == 0.5 + k
    assert taking.take(REFERENCE, feed, 2) is None
    assert not list(tmp_path.iterdir())


def test_results_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igniter.verification.kept_results.MOST_BYTES", 100)
    kept = KeptResults(tmp_path, keeps=True)
    for k in range(4):
        kept.keep(REFERENCE, {"x": np.array(k)}, [np.zeros(5)])
    assert len(list(tmp_path.iterdir())) == 2


def test_no_fork_of_a_process_that_has_onnxruntime(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(network(), path)
    assert run(make_session(str(path)), {"x": np.zeros((1, 8), np.float32)})
    assert ahead.start(str(path), None, 0, None, least=0) is None


COMPILE = """
import sys, time
import igniter
from igniter.verification import ahead
from igniter.verification.kept_results import KeptResults
forked, finish, take, taken = ahead.start, ahead.Ahead.finish, KeptResults.take, []
ahead.start = lambda *options, **more: forked(*options, least=0, **more)
def wait(self):
    end = time.monotonic() + 60
    while self._child is not None and time.monotonic() < end and len(list(self.folder.glob("*.[0-9]"))) < 3:
        time.sleep(0.02)
    return finish(self)
ahead.Ahead.finish = wait
KeptResults.take = lambda self, *run: taken.append(found := take(self, *run)) or found
artifact = igniter.compile(sys.argv[1], sys.argv[2], cache=False)
print(artifact.report["verification"]["status"], sum(found is not None for found in taken))
"""


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a fork needs a CPU of its own")
def test_a_compilation_takes_the_runs_of_its_fork(tmp_path: Path) -> None:
    path, folder = tmp_path / "m.onnx", tmp_path / "temporary"
    onnx.save(network(), path)
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder), "IGNITER_JOBS": "2"}
    command = [sys.executable, "-c", COMPILE, str(path), str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    status, taken = done.stdout.split()
    assert status == "passed" and int(taken) >= 3
    assert not list(folder.glob("igniter-*")), "nothing of the fork stays"
