"""Models that grow: families for the time of a compile by size (`python -m benchmark.compile_time --growth`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Family:
    """A kind of model by its size `n`."""

    make: Callable[[int], onnx.ModelProto]
    about: str
    sizes: tuple[int, ...]
    """The sizes to measure, each a multiple of the one before."""


def _model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, list[int]],
    outputs: Sequence[str],
    weights: dict[str, np.ndarray],
) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "g", ends, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutions(n: int) -> onnx.ModelProto:
    """Convolutions of different channels, each with a Relu, one after the other; windows of 1 and 3 by turns."""
    random, nodes, weights, last, channels = (
        np.random.default_rng(0),
        list[NodeProto](),
        dict[str, np.ndarray](),
        "x",
        3,
    )
    for k in range(n):
        to, window = 64 + k % 1021, (1, 3)[k % 2]
        weights[f"w{k}"] = random.standard_normal((to, channels, window, window)).astype(np.float32)
        pads = [window // 2] * 4
        nodes.append(helper.make_node("Conv", [last, f"w{k}"], [f"c{k}"], pads=pads))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"]))
        last, channels = f"r{k}", to
    return _model(nodes, {"x": [1, 3, 14, 14]}, [last], weights)


def kernels(n: int) -> onnx.ModelProto:
    """Softmaxes over rows of different lengths, each an output: as many kernels."""
    nodes = [helper.make_node("Softmax", [f"x{k}"], [f"y{k}"], axis=-1) for k in range(n)]
    return _model(nodes, {f"x{k}": [4, 5 + k] for k in range(n)}, [f"y{k}" for k in range(n)], {})


def nodes(n: int) -> onnx.ModelProto:
    """Blocks of a transformer's kind, 10 nodes each and all alike, with shared weights: few kernels, many calls."""
    made, last = list[NodeProto](), "x"
    weights = {"scale": np.ones(256, np.float32), **{name: np.full((256, 256), 1 / 256, np.float32) for name in "uv"}}
    for k in range(max(1, n // 10)):
        steps = [
            ("LayerNormalization", [last, "scale", "scale"], "n"),
            ("MatMul", [f"n{k}", "u"], "m"),
            ("Sigmoid", [f"m{k}"], "s"),
            ("Mul", [f"m{k}", f"s{k}"], "g"),
            ("MatMul", [f"g{k}", "v"], "d"),
            ("Tanh", [f"d{k}"], "t"),
            ("Add", [f"t{k}", last], "a"),
            ("Softmax", [f"a{k}"], "p"),
            ("Mul", [f"p{k}", f"a{k}"], "q"),
            ("Add", [f"q{k}", last], "r"),
        ]
        made += [helper.make_node(op, inputs, [f"{name}{k}"]) for op, inputs, name in steps]
        last = f"r{k}"
    return _model(made, {"x": [64, 256]}, [last], weights)


def concat(n: int) -> onnx.ModelProto:
    """One Concat of `n` inputs of different lengths, and a Sigmoid of its result."""
    inputs = {f"x{k}": [2, 1 + k % 7] for k in range(n)}
    made = [helper.make_node("Concat", list(inputs), ["c"], axis=1), helper.make_node("Sigmoid", ["c"], ["y"])]
    return _model(made, inputs, ["y"], {})


def chain(n: int) -> onnx.ModelProto:
    """A chain of elementwise nodes."""
    ops = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh")
    made = [helper.make_node(ops[k % len(ops)], [f"v{k}"], [f"v{k + 1}"]) for k in range(n)]
    return _model(made, {"v0": ["batch", 16]}, [f"v{n}"], {})


FAMILIES = {
    "convolutions": Family(convolutions, "different convolutions", (8, 16, 32)),
    "kernels": Family(kernels, "different kernels", (30, 60, 120)),
    "nodes": Family(nodes, "nodes in equal blocks", (1250, 2500, 5000)),
    "concat": Family(concat, "inputs of a Concat", (750, 1500, 3000)),
    "chain": Family(chain, "elementwise nodes in a chain", (250, 500, 1000)),
}
