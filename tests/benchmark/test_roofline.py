"""The arithmetic of the roofline, on models small enough to count by hand."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmark.machine import Machine
from benchmark.roofline import Graph, Roofline, Step, roofline

MACHINE = Machine(
    threads=1,
    flops={"f32": 1000.0, "bf16": 2000.0, "int8": 4000.0},
    bandwidth={"l2": 100.0, "l3": 50.0, "memory": 10.0},
    l2=1000,
    l3=10_000,
)


def model(nodes: list[onnx.NodeProto], weights: dict[str, tuple[int, ...]], **shapes: list[int | str]) -> bytes:
    """Nodes from inputs (names of `shapes` but for `y`) to `y`."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "graph",
        [value(name, TensorProto.FLOAT, shape) for name, shape in shapes.items() if name != "y"],
        [value("y", TensorProto.FLOAT, shapes["y"])],
        # Not all equal, so that nothing is folded away.
        [numpy_helper.from_array(np.arange(np.prod(s), dtype=np.float32).reshape(s), n) for n, s in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return made.SerializeToString()


MLP = model(
    [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "v"], ["e"]),
        helper.make_node("Tanh", ["e"], ["y"]),
    ],
    {"w": (4, 8), "b": (8,), "v": (8, 2)},
    x=["batch", 4],
    y=["batch", 2],
)


def test_steps_of_two_layers() -> None:
    first, second, rest = Graph(MLP).steps({"batch": 3})
    # x (3x4) is read and a (3x8) written; d (3x8) is read and e (3x2) written. 4 bytes each.
    assert first == Step("MatMul", 2 * 3 * 4 * 8, "f32", 4 * 32, (4 * 12, 4 * 24))
    assert second == Step("MatMul", 2 * 3 * 8 * 2, "f32", 4 * 16, (4 * 24, 4 * 6))
    # The bias, and y, which a Tanh writes; x is read by a contraction already.
    assert rest == Step("rest", 0, "f32", 4 * 8, (4 * 6,))


def test_a_step_takes_the_longer_of_arithmetic_and_bytes() -> None:
    found = roofline(Graph(MLP).steps({"batch": 3}), MACHINE)
    # All weights (224 bytes) lie in the second-level cache, and so does every tensor.
    first = max(192 / 1000, (128 + 48 + 96) / 100)
    second = max(96 / 1000, (64 + 96 + 24) / 100)
    rest = (32 + 24) / 100
    assert found == Roofline(288, 224, 288, pytest.approx(first + second + rest), 0.0)
    many = roofline(Graph(MLP).steps({"batch": 3}), Machine(1, {"f32": 10.0}, MACHINE.bandwidth, 1000, 10_000))
    assert many.seconds == pytest.approx(19.2 + 9.6 + rest)
    assert many.bound_by_arithmetic == pytest.approx(28.8 / (28.8 + rest))


def test_tensors_are_moved_at_the_bandwidth_of_where_they_lie() -> None:
    steps = [Step("MatMul", 1, "f32", 6000.0, (1000, 1001)), Step("MatMul", 1, "f32", 6000.0, (20_000,))]
    # The weights are 12,000 bytes together: in memory, although each step's would fit into the third cache.
    assert roofline(steps, MACHINE).seconds == pytest.approx(1200 + 10 + 1001 / 50 + 2000)


@pytest.mark.parametrize(("precision", "weights"), [("f32", 128), ("bf16", 64), ("int8", 32)])
def test_precisions_shrink_weights(precision: str, weights: int) -> None:
    first, *_ = Graph(MLP).steps({"batch": 3}, precision)
    assert (first.arithmetic, first.weights) == (precision, weights)


def test_rearranged_operands_count_as_what_is_rearranged() -> None:
    # Two queries to a key: k is repeated for the product, but read once.
    nodes = [
        helper.make_node("Expand", ["k", "to"], ["repeated"]),
        helper.make_node("Transpose", ["repeated"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "turned"], ["y"]),
    ]
    made = onnx.load_from_string(model(nodes, {}, q=[2, 5, 3], k=[1, 5, 3], y=[2, 5, 5]))
    made.graph.initializer.append(numpy_helper.from_array(np.array([2, 5, 3]), "to"))
    first, rest = Graph(made.SerializeToString()).steps({})
    assert first.flops == 2 * 2 * 5 * 5 * 3
    assert first.tensors == (4 * 30, 4 * 15, 4 * 50)
    assert rest.tensors == ()


def test_convolutions_and_tables() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], group=2),
        helper.make_node("Gather", ["table", "rows"], ["b"], axis=0),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    made = onnx.load_from_string(model(nodes, {"w": (6, 2, 3), "table": (100, 10)}, x=[1, 4, 12], y=[1, 6, 10]))
    made.graph.input.append(helper.make_tensor_value_info("rows", TensorProto.INT64, [6]))
    convolution, rest = Graph(made.SerializeToString()).steps({})
    # Each of 1x6x10 outputs is 2 channels of a group times 3 taps.
    assert convolution.flops == 2 * 60 * 2 * 3
    # Six rows of ten of the table; the rows' numbers and y.
    assert (rest.weights, sorted(rest.tensors)) == (4 * 60, [8 * 6, 4 * 60])


def test_transposed_convolutions() -> None:
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2], group=2)]
    made = model(nodes, {"w": (4, 3, 2)}, x=["batch", 4, 12], y=["batch", 6, 24])
    # Each of 4x12 elements is multiplied with the 3x2 weights of its channel.
    assert Graph(made).steps({"batch": 5})[0].flops == 2 * 5 * 48 * 6


def test_recurrences() -> None:
    nodes = [helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=2)]
    made = model(nodes, {"w": (1, 6, 4), "r": (1, 6, 2)}, x=["n", 1, 4], y=["n", 1, 1, 2])
    # In each of the steps, every weight of both matrices is multiplied once.
    assert Graph(made).steps({"n": 3})[0].flops == 2 * 3 * (6 * 4 + 6 * 2)


def test_what_is_not_counted_is_said() -> None:
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["b"])], "b", [], [helper.make_empty_tensor_value_info("b")]
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=9),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    made = model(nodes, {}, x=["n", 4], y=["n", 4])
    with pytest.raises(ValueError, match="what is in If is not counted"):
        Graph(made).steps({"n": 3})
    made = model([helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["y"], to=1)], {},
                 x=["n", 4], y=[2, "found"])  # fmt: skip
    with pytest.raises(ValueError, match="a size of what NonZero gives, hangs on values"):
        Graph(made).steps({"n": 3})


def test_sizes_from_the_shapes_of_inputs() -> None:
    assert Graph(MLP).sizes({"x": (7, 4)}) == {"batch": 7}


def test_a_sum_as_the_name_of_a_dim() -> None:
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": (4, 8)}, x=["past + 1", 4], y=["past + 1", 8])
    assert Graph(made).steps({"past": 6})[0].flops == 2 * 7 * 4 * 8
