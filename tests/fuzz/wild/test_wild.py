"""A short run of the second fuzzer; `python -m tests.fuzz.wild` is the long one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.fuzz.wild.pool import make_session
from tests.fuzz.wild.run import Wild, compare, make_wild, run_seeds, run_wild
from tests.fuzz.wild.shrink import describe, shrink


def test_a_seed_is_a_model() -> None:
    one, two = make_wild(7), make_wild(7)
    assert one is not None
    assert two is not None
    assert one.model.SerializeToString() == two.model.SerializeToString()
    make_session(one.model).run(None, one.feeds[0])


def test_models_are_of_many_ops() -> None:
    found = {n.op_type for seed in range(12) if (case := make_wild(seed)) for n in case.model.graph.node}
    assert len(found) >= 25


def test_shrinking_keeps_what_fails() -> None:
    """Of a model with a node that computes something else than its reference, that node is left."""
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xyz"]

    def model(op: str) -> onnx.ModelProto:
        ops = [("Neg", "x", "a"), (op, "a", "b"), ("Exp", "b", "y"), ("Abs", "x", "z")]
        nodes = [helper.make_node(o, [i], [r], name=r) for o, i, r in ops]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    feed = {"x": np.float32([-1.0, 0.5, 2.0])}
    wild = Wild(0, model("Relu"), model("Sigmoid"), (feed, feed), "default", "native", shipped=False)
    small, outcome = shrink(wild)
    assert outcome.status == "mismatch"
    assert len(small.feeds) == len(small.model.graph.output) == 1
    assert describe(small) in ("Relu Exp", "Relu")


def test_a_difference_is_found() -> None:
    """Igniter against a reference that computes something else."""
    case = make_wild(7)
    assert case is not None
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xy"]

    def model(op: str) -> onnx.ModelProto:
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", values[:1], values[1:])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    feed = {"x": np.float32([-1.0, 0.5, 2.0])}
    want, other = (make_session(model(op)).run(None, feed) for op in ("Tanh", "Sigmoid"))
    wild = Wild(0, model("Tanh"), model("Tanh"), (feed,), "default", "native")
    assert compare(wild, feed, want, want) == ("ok", "")
    assert compare(wild, feed, want, other)[0] == "mismatch"
    assert run_wild(wild).status == "ok"


@pytest.mark.full
def test_many_models() -> None:
    failed = [o for o in run_seeds(range(50_000, 50_600)) if o.failed]
    assert not failed, "\n".join(f"seed {o.seed}: {o.status}: {o.message}" for o in failed)
