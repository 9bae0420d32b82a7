"""The order of a plan is the one in which ONNX Runtime ran the nodes, as its own profile says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.toolbox.plan.plan_order import NOT_RUN, run_order
from tests.analysis.model.models import LIGHT, branches, diamond, loop_model

PRIORITY = {"ort": ort.ExecutionOrder.DEFAULT, "ort-priority": ort.ExecutionOrder.PRIORITY_BASED}


def profiled(model: Path | bytes, feeds: Mapping[str, np.ndarray], order: str, folder: Path) -> list[dict[str, Any]]:
    """The nodes that ran, those in the graphs of nodes too, with all of ONNX Runtime's own changes left out."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_order = PRIORITY[order]
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        str(model) if isinstance(model, Path) else model, options, providers=["CPUExecutionProvider"]
    )
    session.run(None, dict(feeds))
    events = json.loads(Path(session.end_profiling()).read_text())
    return [e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]


def ran(model: Path | bytes, feeds: Mapping[str, np.ndarray], order: str, folder: Path) -> list[tuple[str, int]]:
    """The ops that ran and their numbers in the graph."""
    events = profiled(model, feeds, order, folder)
    return [(e["args"]["op_name"], int(e["args"]["node_index"])) for e in events]


def planned(model: Path | bytes, order: str) -> list[tuple[str, int]]:
    """The same of a plan, of the main graph alone."""
    block = main_graph(igniter.load(model).ir).body
    number = {op: k for k, op in enumerate(op for op in block.ops if op.name not in NOT_RUN)}
    return [(op.op_type, number[op]) for op in run_order(block, order) if isinstance(op, OnnxOp)]


def feeds_of(model: Path) -> dict[str, np.ndarray]:
    graph = onnx.load(model, load_external_data=False).graph
    weights = {i.name for i in graph.initializer}
    return {
        i.name: np.zeros([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
        for i in graph.input
        if i.name not in weights
    }


@pytest.mark.parametrize("order", ["ort", "ort-priority"])
@pytest.mark.parametrize("name", ["light_bvlc_alexnet", "light_inception_v1", "light_shufflenet", "light_squeezenet"])
def test_networks_run_in_the_planned_order(name: str, order: str, tmp_path: Path) -> None:
    path = LIGHT / f"{name}.onnx"
    assert ran(path, feeds_of(path), order, tmp_path) == planned(path, order)


@pytest.mark.full
@pytest.mark.parametrize("order", ["ort", "ort-priority"])
@pytest.mark.parametrize("name", ["light_densenet121", "light_inception_v2", "light_resnet50"])
def test_large_networks_run_in_the_planned_order(name: str, order: str, tmp_path: Path) -> None:
    path = LIGHT / f"{name}.onnx"
    assert ran(path, feeds_of(path), order, tmp_path) == planned(path, order)


@pytest.mark.parametrize("order", ["ort", "ort-priority"])
def test_graphs_in_nodes_make_edges_to_these(order: str, tmp_path: Path) -> None:
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(2, np.int64)}
    for model in (branches(), loop_model(), diamond()):
        names = {i.name for i in onnx.load_from_string(model).graph.input}
        events = profiled(model, {k: v for k, v in feeds.items() if k in names}, order, tmp_path)
        block = main_graph(igniter.load(model).ir).body
        top = [op.node_name for op in run_order(block, order) if isinstance(op, OnnxOp)]
        found = [e["name"].removesuffix("_kernel_time") for e in events]
        assert [name for name in found if name in top] == top


def test_orders_differ_where_they_may(tmp_path: Path) -> None:
    """Two branches: the default goes into the last first, the priorities follow the model, and Shape comes first."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Neg", ["x"], ["b"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Reshape", ["c", "s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    ops = {order: [op for op, _ in planned(model, order)] for order in ("ort", "ort-priority", "model")}
    assert ops["model"] == ["Relu", "Neg", "Shape", "Add", "Reshape"]
    assert ops["ort-priority"] == ["Shape", "Relu", "Neg", "Add", "Reshape"]
    assert ops["ort"] == ["Neg", "Relu", "Add", "Shape", "Reshape"]
    for order in ("ort", "ort-priority"):
        assert planned(model, order) == ran(model, {"x": np.ones((2, 3), np.float32)}, order, tmp_path)


def test_an_order_that_is_none_is_named() -> None:
    block = main_graph(igniter.load(diamond()).ir).body
    with pytest.raises(IgniterError, match="there is no order 'backwards'; the orders are ort, ort-priority, model"):
        run_order(block, "backwards")


def test_every_order_runs_each_node_behind_what_it_reads() -> None:
    for path in sorted(LIGHT.glob("*.onnx")):
        block = main_graph(igniter.load(path).ir).body
        for order in ("ort", "ort-priority", "model"):
            ops: Sequence[object] = run_order(block, order)
            place = {op: k for k, op in enumerate(ops)}
            assert len(place) == sum(op.name not in NOT_RUN for op in block.ops) - 1
            assert all(
                place[v.owner] < place[op]
                for op in ops
                for v in op.operands
                if v.owner in place  # type: ignore[attr-defined]
            )


def test_bytes_are_those_that_onnx_runtime_allocates(tmp_path: Path) -> None:
    """What a run says that each node's results take, beside the plan of all nodes."""
    path = LIGHT / "light_squeezenet.onnx"
    events = profiled(path, feeds_of(path), "ort", tmp_path)
    plan = igniter.load(path).plan(fold=False)
    results = [[a.bytes.constant for a in plan.activations if a.first == k] for k in range(len(plan.steps))]
    assert [int(e["args"]["output_size"]) for e in events] == [sum(n or 0 for n in sizes) for sizes in results]
