"""A small model, compiled once for all tests of deployment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact

FEED = {"x": np.linspace(-2, 2, 3 * 64, dtype=np.float32).reshape(3, 64)}


def small_model(path: Path) -> Path:
    """A product, an activation and a softmax over a symbolic batch."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((64, 32)).astype(np.float32),
        "b": rng.standard_normal(32).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
        helper.make_node("Add", ["m", "b"], ["a"], "bias"),
        helper.make_node("Relu", ["a"], ["r"], "activation"),
        helper.make_node("Softmax", ["r"], ["y"], "probabilities", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compiled(folder: Path, **options: object) -> Artifact:
    """The model compiled into `folder`; without verification, which other tests are for."""
    model = small_model(folder / "small.onnx")
    return igniter.compile(model, folder / "small.igniter", **{"verify": False, "cache": False, **options})  # type: ignore[arg-type]


def expected(feed: dict[str, np.ndarray] = FEED) -> np.ndarray:
    """What the model computes, by NumPy."""
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((64, 32)).astype(np.float32), rng.standard_normal(32).astype(np.float32)
    r = np.maximum(feed["x"] @ w + b, 0)
    e = np.exp(r - r.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
