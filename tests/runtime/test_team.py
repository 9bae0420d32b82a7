"""Programs whose threads stay together: with any number of threads, of runs at a time, and of sizes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.analysis.machine import TYPICAL
from igniter.backends.cpu.builder import LlvmModule
from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.team import emit_team
from igniter.dialects.loop import Team
from igniter.runtime.session import make_session

LAYERS, WIDTH = 4, 384


def model() -> bytes:
    """Products with weights of a few MB, an activation and a norm between them: several kernels."""
    rng = np.random.default_rng(3)
    nodes, weights, last = [], [], "x"
    for k in range(LAYERS):
        w = (rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
        weights += [numpy_helper.from_array(w, f"w{k}"), numpy_helper.from_array(np.ones(WIDTH, np.float32), f"s{k}")]
        nodes += [
            helper.make_node("MatMul", [last, f"w{k}"], [f"m{k}"]),
            helper.make_node("Tanh", [f"m{k}"], [f"t{k}"]),
            helper.make_node("LayerNormalization", [f"t{k}", f"s{k}"], [f"n{k}"]),
        ]
        last = f"n{k}"
    assert TYPICAL.team_bytes <= LAYERS * WIDTH * WIDTH * 4
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", WIDTH]) for n in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> igniter.Artifact:
    return igniter.compile(model(), tmp_path_factory.mktemp("team") / "out", strict=True)


@pytest.mark.parametrize("spinning", ["0", "1"])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_threads(artifact: igniter.Artifact, threads: int, spinning: str) -> None:
    reference = make_session(model(), intra_op_num_threads=1)
    session = artifact.session(intra_op_num_threads=threads, config={"session.intra_op.allow_spinning": spinning})
    for rows in (1, 7, 64, 0, 200):
        x = np.random.default_rng(rows).standard_normal((rows, WIDTH)).astype(np.float32)
        (expected,) = reference.run(None, {"x": x})
        for _ in range(20):
            (found,) = session.run(None, {"x": x})
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_many_runs_at_a_time(artifact: igniter.Artifact) -> None:
    """Runs share the pool: whoever gets no help does all the work, and nobody waits for ever."""
    session = artifact.session(intra_op_num_threads=3)
    reference = make_session(model(), intra_op_num_threads=1)
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(25):
            x = rng.standard_normal((int(rng.integers(1, 90)), WIDTH)).astype(np.float32)
            if not np.allclose(session.run(None, {"x": x})[0], reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4):
                wrong.append(f"{seed}: {x.shape}")

    workers = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert not any(worker.is_alive() for worker in workers), "a run did not end"
    assert not wrong


@pytest.mark.parametrize("target", ["x86-64", "native", "aarch64"])
def test_the_entry_of_a_program_compiles_for_every_machine(target: str) -> None:
    module = LlvmModule(target_of(target))
    module.functions.append("define internal void @p.alone(ptr %b, ptr %s, ptr %m, ptr %f, ptr %c) #0 { ret void }")
    emit_team(module, "p", Team(64, 1 << 15))
    assert b"igniter_team_member" in compile_object(module.text(), module.target)
