"""The compute graph computes what the model does, at every size, with few or no nodes for shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.shapes.compute_nodes import count_nodes
from tests.analysis.model.kit import BRANCHES, HEADS, TABLE, model

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def outputs(proto: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def agree(proto: onnx.ModelProto, made: onnx.ModelProto, feed: dict[str, Any]) -> None:
    onnx.checker.check_model(made, full_check=True)
    for a, b in zip(outputs(proto, feed), outputs(made, feed), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ops(module: igniter.Module) -> list[str]:
    return [op.op_type for op in module.ir.walk() if hasattr(op, "op_type") and op.op_type != "Constant"]


def test_at_several_sizes() -> None:
    proto = model(HEADS)
    module = igniter.load(proto).compute_graph()
    assert ops(module).count("Shape") == 2 and "Gather" not in ops(module)
    for batch, seq in ((1, 1), (2, 5), (3, 0)):
        agree(proto, module.to_onnx(), {"x": random(batch, seq, 8)})
    left = [r.node for r in module.remarks if r.pass_name == "drop-shape-nodes"]
    assert left == ["range_7", "expand_10"]


def test_sizes_fix_everything() -> None:
    proto = model(HEADS)
    made = igniter.load(proto).compute_graph({"batch": 2, "seq": 5})
    assert sorted(ops(made)) == ["Reshape", "Transpose"]
    exported = made.to_onnx()
    agree(proto, exported, {"x": random(2, 5, 8)})
    dims = [d for v in (*exported.graph.input, *exported.graph.output) for d in v.type.tensor_type.shape.dim]
    assert all(d.HasField("dim_value") for d in dims)
    with pytest.raises(IgniterError, match="no size for 'seq'"):
        igniter.load(proto).compute_graph({"batch": 2})


INTS = ", ".join(f"int64[1] i{k} = {{{k}}}" for k in range(4))
SHAPE = "shape = Shape(x) b = Gather<axis = 0>(shape, i0) s = Gather<axis = 0>(shape, i1)"


def graph(nodes: str, output: str) -> onnx.ModelProto:
    return model(f"g (float[b, s, 6] x) => ({output}) <{INTS}> {{ {SHAPE} {nodes} }}")


CASES = {
    "one_unknown": ("n = Mul(b, i2) t = Concat<axis = 0>(n, s, i3) y = Reshape(x, t)", []),
    "two_unknown": (
        "n = Mul(b, s) t = Concat<axis = 0>(n, i3, i2) z = Reshape(x, t) e = Concat<axis = 0>(b, s, i2, i3)"
        " y = Reshape(z, e)",
        ["Shape", "Concat"],
    ),
    "expand_to_itself": ("t = Concat<axis = 0>(b, s, i1) y = Expand(x, t)", []),
    "slice_to_the_end": ("y = Slice(x, i1, s, i1)", []),
    "slice_to_before_the_end": ("e = Sub(s, i1) y = Slice(x, i0, e, i1)", []),
    "tile": ("t = Concat<axis = 0>(s, i1, i1) y = Tile(x, t)", ["Shape", "Concat"]),
    "arithmetic": (
        "m = Mul(s, b) d = Div(m, i2) a = Add(d, i1) t = Concat<axis = 0>(a, i1, i1) y = Tile(x, t)",
        ["Shape", "Shape", "Mul", "Div", "Add", "Concat"],
    ),
    "branch": (
        "z = Squeeze(b) one = Squeeze(i1) c = Greater(z, one) y = If<then_branch = t () => (float[?, ?, ?] p)"
        " { q = Concat<axis = 0>(b, s, i3, i2) r = Reshape(x, q) p = ReduceSum<keepdims = 0>(r, i3) },"
        " else_branch = f () => (float[?, ?, ?] p) { p = Neg(x) }>(c)",
        None,
    ),
    "data": ("k = Cast<to = 1>(s) y = Mul(x, k)", ["Shape"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_constant_can_say(name: str) -> None:
    nodes, shape_ops = CASES[name]
    output = "float[?, ?, ?, ?] y" if name == "two_unknown" else "float[?, ?, ?] y"
    proto = graph(nodes, output)
    module = igniter.load(proto).compute_graph()
    sizes = ((2, 3), (1, 2), (4, 5))
    for batch, seq in sizes:
        agree(proto, module.to_onnx(), {"x": random(batch, seq, 6)})
    if shape_ops is not None:
        own = [
            o
            for o in ops(module)
            if o not in ("Reshape", "Expand", "Slice", "Tile", "Cast", *(["Mul"] * (name == "data")))
        ]
        assert own == shape_ops
    fixed = igniter.load(proto).compute_graph({"b": 2, "s": 3})
    assert "Shape" not in ops(fixed)
    agree(proto, fixed.to_onnx(), {"x": random(2, 3, 6)})


def test_resize_by_sizes_becomes_scales() -> None:
    proto = model(
        "g (float[1, 2, h, w] x) => (float[1, 2, ?, ?] y) <int64[2] two = {2, 2}, int64[2] outer = {1, 2}>"
        " { s = Shape<start = 2, end = 4>(x) d = Mul(s, two) t = Concat<axis = 0>(outer, d)"
        ' y = Resize<mode = "linear">(x, , , t) }'
    )
    module = igniter.load(proto).compute_graph()
    assert ops(module) == ["Resize"]
    for h, w in ((2, 3), (5, 4)):
        agree(proto, module.to_onnx(), {"x": random(1, 2, h, w)})


def test_weights_are_left_as_they_are_and_branches_work() -> None:
    proto = model(BRANCHES)
    for flag in (True, False):
        agree(proto, igniter.load(proto).compute_graph().to_onnx(), {"x": random(2, 4), "flag": np.array(flag)})
    made = igniter.load(model(TABLE)).compute_graph()
    agree(model(TABLE), made.to_onnx(), {"x": random(2, 3, 4)})


FOLDED = {
    "bvlc_alexnet": 24,
    "densenet121": 668,
    "inception_v1": 143,
    "inception_v2": 371,
    "resnet50": 176,
    "shufflenet": 203,
    "squeezenet": 66,
    "vgg19": 46,
    "zfnet512": 22,
}
"""The nodes of the compute graphs of the same models in another tool, after it folded constants."""


@pytest.mark.parametrize("name", FOLDED)
def test_as_many_nodes_as_elsewhere(name: str) -> None:
    """Besides those that make weights, which ConstantOfShape does in these models."""
    module = igniter.load(LIGHT / f"light_{name}.onnx").compute_graph()
    count = count_nodes(module.ir)
    assert count.data == FOLDED[name] and count.shape == 0
    made = [op for op in ops(module) if op == "ConstantOfShape"]
    assert count.constant <= len(made) + 1


def test_outputs_that_are_constants_or_shapes() -> None:
    proto = model(
        "g (float[n, 4] x, bool c) => (float[?] y, int64[?] z, float[1] k) { k = Constant<value = float[1] {3}>()"
        " y = If<then_branch = t () => (float[1] a) { a = Constant<value = float[1] {2}>() },"
        " else_branch = f () => (float[2] b) { b = Constant<value = float[2] {1, 2}>() }>(c) z = Shape(x) }"
    )
    for sizes in (None, {"n": 2}):
        made = igniter.load(proto).compute_graph(sizes).to_onnx()
        for flag in (True, False):
            agree(proto, made, {"x": random(2, 4), "c": np.array(flag)})
