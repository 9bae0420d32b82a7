"""Concurrent runs of a library of GPU kernels: memory that queued kernels use stays with their stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from tests.backends.triton.recording_driver import activate
from tests.backends.triton.streams import QueueingDriver, StreamOrt
from tests.backends.triton.test_library import compiled, of_ort
from tests.backends.triton.test_library import feed as wide_feed
from tests.backends.triton.test_library import rows as wide_rows

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")


WIDTH = 16
"""Narrow rows, which the interpreter computes sooner."""


def rows() -> onnx.ModelProto:
    return wide_rows(width=WIDTH)


def feed(n: int) -> dict[str, np.ndarray]:
    return wide_feed(n, WIDTH)


@pytest.fixture(scope="module")
def installed() -> QueueingDriver:
    return QueueingDriver()


@pytest.fixture(scope="module")
def artifact(installed: QueueingDriver) -> igniter.Artifact:
    return compiled(rows(), installed)


@pytest.fixture(scope="module")
def several_ops(installed: QueueingDriver) -> igniter.Artifact:
    """Two regions, so that a run is two ops on one stream, with memory of the stream between them."""
    return compiled(chain(), installed, fusion_passes="form-fusion-regions{max-nodes=2}", program_passes="")


@pytest.fixture
def driver(installed: QueueingDriver) -> Iterator[QueueingDriver]:
    activate(installed)
    installed.reset()
    yield installed
    assert not installed.queues, "a run was not finished"
    assert not [call for call in installed.calls if ":" in call]


def chain() -> onnx.ModelProto:
    """Regions of a product and a softmax each."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "w"], ["q"]),
        helper.make_node("Softmax", ["q"], ["y"], axis=-1),
    ]
    w = np.random.default_rng(4).normal(0, 1, (WIDTH, WIDTH)).astype(np.float32)
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH])
    graph = helper.make_graph(nodes, "chain", [value("x")], [value("y")], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def check(found: np.ndarray, n: int, model: onnx.ModelProto | None = None) -> None:
    np.testing.assert_allclose(found, of_ort(model or rows(), feed(n)), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("last_first", [False, True])
def test_two_runs_of_a_session_are_queued_at_once(
    driver: QueueingDriver, artifact: igniter.Artifact, last_first: bool
) -> None:
    session = StreamOrt(artifact.folder, driver)
    runs = {n: session.start(feed(n)) for n in (5, 7, 3)}
    for n in sorted(runs, reverse=last_first):
        check(runs[n].finish(), n)
    session.close()
    assert driver.ledger.violations == []


def test_scratch_memory_without_a_stream_is_found(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    """`AllocatorAlloc` gives such memory, and arenas were made of it: the ledger names the ops that share it."""
    session = StreamOrt(artifact.folder, driver, scratch_of_stream=False)
    first, second = session.start(feed(5)), session.start(feed(5))
    names = [node.name for node in session.model.graph.node]
    assert driver.ledger.violations
    assert all(f"of op {names[0]}" in each and "still uses" in each for each in driver.ledger.violations)
    assert "on stream" in driver.ledger.violations[0]
    second.finish()
    first.finish()
    session.close()
    driver.ledger.violations.clear()


def test_a_region_has_memory_between_its_launches(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    """The model of these tests can show the fault: its op has scratch memory."""
    session = StreamOrt(artifact.folder, driver)
    session.run(feed(5))
    sizes = [c.size for c in session.arena.chunks]
    assert len(sizes) > 2, "input, output and scratch memory"
    session.close()


def test_the_next_run_takes_the_memory_of_a_finished_one(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    session = StreamOrt(artifact.folder, driver)
    for _ in range(2):
        check(session.run(feed(5)), 5)
    first = len(session.arena.chunks)
    for _ in range(2):
        check(session.run(feed(5)), 5)
    assert len(session.arena.chunks) == first
    session.close()
    assert driver.ledger.violations == []


@pytest.mark.slow
def test_ops_of_one_run_share_memory_in_the_order_of_the_stream(
    driver: QueueingDriver, several_ops: igniter.Artifact
) -> None:
    session = StreamOrt(several_ops.folder, driver)
    assert len(session.kernels) == 2
    runs = {n: session.start(feed(n)) for n in (4, 6)}
    for n, run in runs.items():
        check(run.finish(), n, chain())
    session.close()
    assert driver.ledger.violations == []


def test_sessions_do_not_share_memory(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    sessions = [StreamOrt(artifact.folder, driver) for _ in range(3)]
    runs = [(n, session.start(feed(n))) for n in (2, 9) for session in sessions]
    for n, run in reversed(runs):
        check(run.finish(), n)
    for session in sessions:
        session.close()
    assert driver.ledger.violations == []


def test_threads_and_sessions(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    sessions = [StreamOrt(artifact.folder, driver) for _ in range(2)]
    wanted = {n: of_ort(rows(), feed(n)) for n in (1, 2, 3, 4)}
    errors: list[Any] = []

    def work(n: int, session: StreamOrt) -> None:
        try:
            for _ in range(2):
                np.testing.assert_allclose(session.run(feed(n)), wanted[n], rtol=1e-4, atol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n, sessions[n % 2])) for n in wanted]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for session in sessions:
        session.close()
    assert errors == []
    assert driver.ledger.violations == []


def test_an_output_that_is_read_too_early_is_found(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    session = StreamOrt(artifact.folder, driver)
    run = session.start(feed(5))
    run.fetch()
    [found] = driver.ledger.violations
    assert found.startswith("the host reads memory that kernel '")
    assert f"of op {session.model.graph.node[0].name} on stream {run.stream} still uses" in found
    driver.ledger.violations.clear()
    run.finish()
    session.close()
    assert driver.ledger.violations == []


def test_memory_that_goes_back_to_the_device_too_early_is_found(
    driver: QueueingDriver, artifact: igniter.Artifact
) -> None:
    session = StreamOrt(artifact.folder, driver)
    run = session.start(feed(5))
    kept = session.arena.chunks[:]
    session.close()
    assert any(v.startswith("memory goes back to the device that kernel '") for v in driver.ledger.violations)
    driver.ledger.violations.clear()
    run.synchronise()
    assert kept


def test_a_run_without_a_stream_takes_plain_memory(driver: QueueingDriver, artifact: igniter.Artifact) -> None:
    """Ops in ONNX Runtime's CPU provider, as in other tests, have no stream that `GetScratchBuffer` could read."""
    session = StreamOrt(artifact.folder, driver)
    run = session.start(feed(5), stream=0)
    check(run.finish(), 5)
    assert session.plain == 1
    session.run(feed(5))
    assert session.plain == 1
    session.close()
