"""The models whose kernels stock MLIR runs: a transformer's encoder, a network of images, and recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from igniter.tools.demo_model import Shape, build_demo_model

Feed = dict[str, Any]
RNG = np.random.default_rng(7)


def encoder() -> tuple[onnx.ModelProto, Feed]:
    """A MobileBERT of two layers, of the kind of `igniter demo`."""
    made = build_demo_model(Shape(layers=2))
    shape = (2, 9)
    feed: Feed = {}
    for value in made.graph.input:
        high = 2 if value.name != "input_ids" else 100
        feed[value.name] = RNG.integers(0, high, shape) if "mask" not in value.name else np.ones(shape, np.int64)
    return made, feed


def mobilenet_v2() -> tuple[onnx.ModelProto, Feed]:
    """Depthwise and pointwise convolutions, on a small image."""
    from benchmark.models.vision import mobilenet_v2

    made = mobilenet_v2(size=32)
    return made, {made.graph.input[0].name: RNG.standard_normal((1, 3, 32, 32)).astype(np.float32)}


def recurrent() -> tuple[onnx.ModelProto, Feed]:
    """An LSTM in both directions, a GRU, and TopK of a cumulative sum."""
    steps, batch, width, hidden = 5, 3, 8, 6

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((RNG.standard_normal(shape) * 0.3).astype(np.float32), name)

    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction="bidirectional"),
        helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["flat"]),
        helper.make_node("GRU", ["flat", "gw", "gr"], ["", "g"], hidden_size=hidden),
        helper.make_node("Squeeze", ["g", "zero"], ["s"]),
        helper.make_node("CumSum", ["s", "one"], ["c"]),
        helper.make_node("TopK", ["c", "three"], ["values", "places"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", width])],
        [
            helper.make_tensor_value_info("values", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("places", TensorProto.INT64, ["batch", 3]),
        ],
        [
            weight("w", 2, 4 * hidden, width),
            weight("r", 2, 4 * hidden, hidden),
            weight("b", 2, 8 * hidden),
            weight("gw", 1, 3 * hidden, 2 * hidden),
            weight("gr", 1, 3 * hidden, hidden),
            numpy_helper.from_array(np.array([0, 0, 2 * hidden]), "shape"),
            numpy_helper.from_array(np.array([0]), "zero"),
            numpy_helper.from_array(np.array(1), "one"),
            numpy_helper.from_array(np.array([3]), "three"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made, {"x": RNG.standard_normal((steps, batch, width)).astype(np.float32)}


MODELS: dict[str, Callable[[], tuple[onnx.ModelProto, Feed]]] = {
    "encoder": encoder,
    "mobilenet_v2": mobilenet_v2,
    "recurrent": recurrent,
}


def model(name: str, folder: Path) -> tuple[bytes, Feed]:
    """A model as bytes, and its inputs. Larger networks of the benchmark have their names, too, on small images."""
    if name in MODELS:
        made, feed = MODELS[name]()
        return made.SerializeToString(), feed
    from benchmark.models.networks import NETWORKS

    made = NETWORKS[name](size=64)
    shape = [d.dim_value or 1 for d in made.graph.input[0].type.tensor_type.shape.dim]
    return made.SerializeToString(), {made.graph.input[0].name: RNG.standard_normal(shape).astype(np.float32)}
