"""DynamicQuantizeLSTM: ONNX Runtime's values depend on the number of threads, which both sides must share."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact
from igniter.compiler.artifact_checks import Checks
from igniter.frontend import surgery
from igniter.frontend.unsigned_weights import with_unsigned_weights
from igniter.runtime.session import make_session
from igniter.verification.judge import Judge, Ready
from igniter.verification.judgement import Allowance
from igniter.verification.more_inputs import MANY_THREADS
from igniter.verification.original import Original

STEPS, INPUTS, HIDDEN = 6, 16, 24


def lstm(low: int = -64, high: int = 64, rows: list[str | int] | None = None) -> onnx.ModelProto:
    """Its inputs scaled, the LSTM, its states doubled; the weights are in low .. high - 1."""
    rng = np.random.default_rng(3)
    shapes = {"w": (1, INPUTS, 4 * HIDDEN), "r": (1, HIDDEN, 4 * HIDDEN)}
    weights = [numpy_helper.from_array(rng.integers(low, high, s).astype(np.int8), n) for n, s in shapes.items()]
    weights += [
        numpy_helper.from_array(np.array([0.02], np.float32), "scale"),
        # Of their own: ONNX Runtime, asked for exact products, does not load a node that takes one twice.
        *(numpy_helper.from_array(np.array([0], np.int8), n) for n in ("zero.w", "zero.r")),
        numpy_helper.from_array(np.array(2.0, np.float32), "two"),
    ]
    inputs = ["scaled", "w", "r", "", "", "", "", "", "scale", "zero.w", "scale", "zero.r"]
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["scaled"]),
        helper.make_node("DynamicQuantizeLSTM", inputs, ["states"], domain="com.microsoft", hidden_size=HIDDEN),
        helper.make_node("Mul", ["states", "two"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [*(rows or ["steps", "batch"]), INPUTS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def feed(seed: int = 0, batch: int = 9) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).normal(0, 1, (STEPS, batch, INPUTS)).astype(np.float32)}


def difference(a: Any, b: Any) -> float:
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


def test_the_values_of_onnxruntime_depend_on_the_threads() -> None:
    one, four = (make_session(lstm().SerializeToString(), intra_op_num_threads=n) for n in (1, 4))
    assert difference(one.run(None, feed())[0], four.run(None, feed())[0]) > 1e-3


def test_a_node_left_to_onnxruntime_is_compared_on_as_many_threads(tmp_path: Any) -> None:
    onnx.save(lstm(), tmp_path / "m.onnx")
    artifact = igniter.load(tmp_path / "m.onnx").compile(tmp_path / "m", cache=False, verify=False)
    assert surgery.thread_dependent(surgery.read_proto(str(artifact.model_path))[0]) == 1
    found = artifact.verify(budget=4)
    assert found.status == "passed"
    assert any(case.threads == MANY_THREADS for case in found.cases)
    # Each side on the threads that it takes by itself, then four on both; whatever the machine has.
    original = Original(lstm().SerializeToString(), options={"intra_op_num_threads": 2})
    ready = Ready(feed(), original.run(feed())[0])
    judge, other = Judge(original, Allowance(), 5.0).on_threads(ready, 4)
    actual = artifact.session(intra_op_num_threads=4).run(None, feed())
    assert [o.ok for o in judge.outputs(other, actual)] == [True]
    assert [o.ok for o in Judge(original, Allowance(), 5.0).outputs(ready, actual)] == [False]


def test_the_original_of_other_models_stays(tmp_path: Any) -> None:
    model = lstm()
    del model.graph.node[1:]
    model.graph.output[0].name = "scaled"
    original = Original(model.SerializeToString())
    assert not original.by_threads
    assert original.on_threads(4) is original


@pytest.mark.parametrize("left", [0, 1])
def test_kernels_are_compared_with_one_thread(left: int, tmp_path: Any) -> None:
    """`left` of two such nodes are ONNX Runtime's in the compiled model, which then needs a single thread as well."""
    two = lstm()
    second = onnx.NodeProto()
    second.CopyFrom(two.graph.node[1])
    second.output[0] = "more"
    two.graph.node.append(second)
    compiled = lstm()
    del compiled.graph.node[1 + left : 2]
    onnx.save(compiled, tmp_path / "model.onnx")
    artifact = object.__new__(Artifact)
    object.__setattr__(artifact, "folder", tmp_path)
    original, mixed = Checks(artifact).with_threads(Original(two.SerializeToString()))
    assert mixed == bool(left)
    assert original.on_threads(4) is original
    one = make_session(lstm().SerializeToString(), intra_op_num_threads=1)
    assert difference(original.run(feed())[0][0], one.run(None, feed())[0]) == 0


def test_sums_that_saturate_are_exact_with_unsigned_weights() -> None:
    model = lstm(-128, 128)
    unsigned = with_unsigned_weights(model)
    assert unsigned is not None
    exact = make_session(
        model.SerializeToString(), intra_op_num_threads=1, config={"session.x64quantprecision": "1"}
    ).run(None, feed())[0]
    made = make_session(unsigned.SerializeToString(), intra_op_num_threads=1).run(None, feed())[0]
    assert difference(exact, made) < 1e-6
