"""`igniter.backend`: ONNX's backend interface, and ONNX's own test runner over some of its node cases."""

from __future__ import annotations

import unittest

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import Backend

import igniter.backend as backend
from igniter.errors import IgniterError


def add_model() -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xyz"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_interface() -> None:
    assert issubclass(backend.IgniterBackend, Backend)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    with pytest.raises(IgniterError, match="CUDA"):
        backend.prepare(add_model(), "CUDA")


def test_inputs_by_position_and_by_name() -> None:
    x, y = np.float32([1, 2]), np.float32([3, 4])
    rep = backend.prepare(add_model())
    assert rep.artifact.report["regions"] == 1
    assert rep.run([x, y])[0].tolist() == [4, 6]
    assert rep.run({"y": y, "x": x})["z"].tolist() == [4, 6]
    with pytest.raises(IgniterError, match="2 inputs, and 3"):
        rep.run([x, y, y])
    with pytest.raises(IgniterError, match="no options"):
        rep.run([x, y], speed="high")


def test_run_node() -> None:
    node = helper.make_node("Split", ["a"], ["b", "c"], num_outputs=2)
    outputs = backend.run_node(node, [np.arange(5, dtype=np.float32)])
    assert [o.tolist() for o in outputs] == [[0, 1, 2], [3, 4]]
    (total,) = backend.run_node(
        helper.make_node("Sum", ["a", "b"], ["c"]), [np.ones(2, np.float32)] * 2, outputs_info=[(np.float32, (2,))]
    )
    assert total.tolist() == [2, 2]


@pytest.mark.slow
def test_runner_of_onnx() -> None:
    """ONNX's own runner; the whole of it is `python -m tests.conformance`."""
    from onnx.backend.test import BackendTest

    runner = BackendTest(backend, __name__).include(
        r"^test_(softmax_axis_1|gather_1|where_example|reduce_sum_empty_set|relu)_"
    )
    result = unittest.TestResult()
    runner.test_suite.run(result)
    ran = result.testsRun - len(result.skipped)
    assert not result.failures, result.failures
    assert not result.errors, result.errors
    assert ran >= 3
