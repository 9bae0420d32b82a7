"""Transposed convolutions as convolutions whose channels become places: networks around them, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from igniter.transforms.onnx.form_subpixel_convolutions import FULL_VECTORS

Array = np.ndarray[Any, Any]
OPSET = 17


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


def network(
    channels: int,
    outs: int,
    window: Sequence[int],
    dims: Sequence[int | str] | None = None,
    opset: int = OPSET,
    weight: Array | None = None,
    **attrs: Any,
) -> onnx.ModelProto:
    """Conv, Relu, ConvTranspose, BatchNormalization, LeakyRelu, Conv of `[n, channels, ..]`; `window` is the one of
    the ConvTranspose and `outs` what it makes."""
    rng, rank = np.random.default_rng(7), len(window)
    group = attrs.get("group", 1)
    one = [1] * rank
    values = {
        "w0": floats(rng, channels, channels, *one),
        "w1": floats(rng, channels, outs // group, *window) if weight is None else weight,
        "b1": floats(rng, outs),
        "scale": rng.random(outs).astype(np.float32) + 0.5,
        "mean": floats(rng, outs),
        "w2": floats(rng, 5, outs, *one),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("ConvTranspose", ["b", "w1", "b1"], ["c"], "up", **attrs),
        helper.make_node("BatchNormalization", ["c", "scale", "b1", "mean", "scale"], ["d"], "norm"),
        helper.make_node("LeakyRelu", ["d"], ["e"], "leaky", alpha=0.2),
        helper.make_node("Conv", ["e", "w2"], ["y"], "last"),
    ]
    sizes = dims or ["n", *"hwd"[:rank]]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [sizes[0], channels, *sizes[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, k) for k, v in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def compare(model: onnx.ModelProto, *feeds: Array, left: int = 0, threads: int = 1, rtol: float = 1e-5) -> None:
    """Runs a model beside ONNX Runtime; as many nodes are `left` to that, or it is one custom op."""
    artifact = igniter.compile(model, verify=False)
    nodes = [n.op_type for n in onnx.load(artifact.model_path).graph.node if n.op_type != "Constant"]
    assert nodes.count("ConvTranspose") == left
    assert left or len(nodes) == 1, nodes
    plain = make_session(model.SerializeToString())
    ours = artifact.session(intra_op_num_threads=threads)
    for x in feeds:
        (expected,), (found,) = plain.run(None, {"x": x}), ours.run(None, {"x": x})
        assert found.shape == expected.shape
        if expected.size:
            bound = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=2 * rtol * bound)


CASES: dict[str, tuple[int, int, tuple[int, ...], dict[str, Any]]] = {
    "whole": (6, FULL_VECTORS, (2, 2), {"strides": [2, 2]}),
    "whole of few channels": (6, 3, (2, 2), {"strides": [2, 2]}),
    "one result": (24, 1, (2, 2), {"strides": [2, 2]}),
    "cropped": (6, 16, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "cropped in front": (6, 16, (4, 4), {"strides": [2, 2], "pads": [1, 1, 0, 0]}),
    "by three": (4, 16, (6, 3), {"strides": [3, 3], "pads": [2, 1, 1, 0]}),
    "uneven": (6, 16, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "uneven on one side": (6, 16, (4, 5), {"strides": [2, 2]}),
    "unequal strides": (6, 16, (4, 3), {"strides": [2, 1]}),
    "stride one": (6, 16, (3, 3), {"pads": [1, 1, 1, 1]}),
    "stride one, dilated": (6, 16, (3, 2), {"dilations": [2, 3]}),
    "groups": (8, 12, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 4}),
    "uneven groups": (8, 12, (3, 3), {"strides": [2, 2], "group": 4}),
    "depthwise": (16, 16, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 16}),
    "depthwise, uneven": (16, 16, (3, 3), {"strides": [2, 2], "group": 16}),
    "same": (6, 16, (3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same, low": (6, 16, (4, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "line": (6, 16, (16,), {"strides": [8], "pads": [4, 4]}),
    "whole line": (6, 16, (4,), {"strides": [2]}),
    "cube": (4, 16, (2, 2, 2), {"strides": [2, 2, 2]}),
    "uneven cube": (4, 6, (3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6, "output_padding": [1, 1, 1]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [False, True], ids=["sizes known", "sizes of a run"])
def test_networks(name: str, dynamic: bool) -> None:
    """One custom op, whose results are those of ONNX Runtime at odd sizes, single pixels and without any image."""
    channels, outs, window, attrs = CASES[name]
    rng, rank = np.random.default_rng(1), len(window)
    shapes = [(2, *(7, 5, 3)[:rank]), (1, *(1, 1, 1)[:rank]), (3, *(2, 9, 4)[:rank])]
    if not dynamic:
        for n, *sizes in shapes[:2]:
            x = rng.standard_normal((n, channels, *sizes)).astype(np.float32)
            compare(network(channels, outs, window, [n, *sizes], **attrs), x)
        return
    feeds = [rng.standard_normal((n, channels, *sizes)).astype(np.float32) for n, *sizes in shapes]
    compare(network(channels, outs, window, **attrs), *feeds, np.empty((0, *feeds[0].shape[1:]), np.float32))


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, 21])
@pytest.mark.parametrize("name", ["cropped", "groups", "uneven groups", "line"])
def test_opsets(opset: int, name: str) -> None:
    """Slice has attributes before opset 10; DepthToSpace of groups as one needs 11, before which the node stays."""
    channels, outs, window, attrs = CASES[name]
    model = network(channels, outs, window, opset=opset, **attrs)
    x = np.random.default_rng(2).standard_normal((2, channels, *(5, 4)[: len(window)])).astype(np.float32)
    compare(model, x, left=1 if name == "groups" and opset < 11 else 0)


def test_two_threads() -> None:
    channels, outs, window, attrs = CASES["cropped"]
    x = np.random.default_rng(3).standard_normal((3, channels, 23, 31)).astype(np.float32)
    compare(network(channels, outs, window, **attrs), x, threads=2)


@pytest.mark.slow
def test_what_is_not_finite_in_the_image_stays_where_it_is() -> None:
    """No element of the window but those that see a place meets what is there."""
    channels, outs, window, attrs = CASES["uneven"]
    x = np.random.default_rng(4).standard_normal((1, channels, 6, 5)).astype(np.float32)
    x[0, 1, 2, 3], x[0, 2, 5, 0] = np.nan, np.inf
    compare(network(channels, outs, window, **attrs), x)


def test_a_weight_that_is_not_finite_is_left() -> None:
    """The rim is multiplied with it: no place that no element reaches may become NaN."""
    weight = np.ones((6, 16, 4, 4), np.float32)
    weight[0, 0, 0, 0] = np.inf
    x = np.ones((1, 6, 3, 3), np.float32)
    compare(network(6, 16, (4, 4), weight=weight, strides=[2, 2], pads=[1, 1, 1, 1]), x, left=1)


@pytest.mark.parametrize(
    "name, left", [("whole", 1), ("uneven", 1), ("depthwise", 0), ("depthwise, uneven", 1), ("stride one", 0)]
)
def test_alone(name: str, left: int) -> None:
    """Without a convolution beside it, one by a stride is left to ONNX Runtime, which takes less time, unless it is
    depthwise with phases of one size."""
    channels, outs, window, attrs = CASES[name]
    model = network(channels, outs, window, **attrs)
    del model.graph.node[5], model.graph.node[0]
    model.graph.node[0].input[0], model.graph.output[0].name = "x", "e"
    for weight in [w for w in model.graph.initializer if w.name in ("w0", "w2")]:
        model.graph.initializer.remove(weight)
    x = np.random.default_rng(6).standard_normal((2, channels, 5, 6)).astype(np.float32)
    compare(model, x, left=left)


@pytest.mark.slow
@pytest.mark.parametrize("name, left", [("cropped", 0), ("uneven", 1)])
def test_floats_of_16_bits(name: str, left: int) -> None:
    """They are converted for each of the convolutions that phases of other sizes make."""
    channels, outs, window, attrs = CASES[name]
    model = network(channels, outs, window, **attrs)
    for weight in model.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    x = np.random.default_rng(6).standard_normal((2, channels, 5, 6)).astype(np.float16)
    compare(model, x, left=left, rtol=4e-3)
