"""The files that the commands and calls of this folder work on, made with `onnx` alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN = 32, 64
RNG = np.random.default_rng(7)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array((RNG.standard_normal(shape) / 8).astype(np.float32), name)


def feed_forward() -> onnx.ModelProto:
    """Two products with a GELU written out between them, and a softmax: x [rows, 32] to y [rows, 32]."""
    numbers = {"root": np.sqrt(2.0), "one": 1.0, "half": 0.5}
    nodes = [
        helper.make_node("MatMul", ["x", "up"], ["wide"], name="up_product"),
        helper.make_node("Add", ["wide", "up_bias"], ["h"], name="up_sum"),
        helper.make_node("Div", ["h", "root"], ["scaled"], name="gelu_scale"),
        helper.make_node("Erf", ["scaled"], ["erf"], name="gelu_erf"),
        helper.make_node("Add", ["erf", "one"], ["shifted"], name="gelu_shift"),
        helper.make_node("Mul", ["h", "shifted"], ["doubled"], name="gelu_mul"),
        helper.make_node("Mul", ["doubled", "half"], ["g"], name="gelu_half"),
        helper.make_node("MatMul", ["g", "down"], ["s"], name="down_product"),
        helper.make_node("Softmax", ["s"], ["y"], name="probabilities", axis=-1),
    ]
    weights = [weight("up", WIDTH, HIDDEN), weight("up_bias", HIDDEN), weight("down", HIDDEN, WIDTH)]
    weights += [numpy_helper.from_array(np.float32(value), name) for name, value in numbers.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", WIDTH])
    graph = helper.make_graph(nodes, "feed_forward", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def product(turned: bool = False) -> onnx.ModelProto:
    """A product of two inputs, a kernel to schedule by hand: with a ReLU, or of a right factor that is transposed."""
    if turned:
        nodes = [helper.make_node("Gemm", ["a", "b"], ["c"], transB=1)]
    else:
        nodes = [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["c"])]
    places = {"a": ["n", 64], "b": [96, 64] if turned else [64, 96], "c": ["n", 96]}
    a, b, c = (helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in places.items())
    graph = helper.make_graph(nodes, "product", [a, b], [c])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(folder: Path) -> None:
    """Writes the models, `samples.npz` and `module.py` into a folder."""
    onnx.save(feed_forward(), folder / "model.onnx")
    changed = feed_forward()
    changed.graph.node[-1].attribute[0].i = 0
    onnx.save(changed, folder / "changed.onnx")
    onnx.save(product(), folder / "product.onnx")
    onnx.save(product(turned=True), folder / "turned.onnx")
    spare = feed_forward()
    spare.graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, ["others"]))
    onnx.save(spare, folder / "spare.onnx")
    np.savez(folder / "samples.npz", x=RNG.standard_normal((8, WIDTH)).astype(np.float32))
    (folder / "module.py").write_text(MODULE)


MODULE = """\
import torch


def made():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    return layers.eval(), (torch.randn(4, 32),)
"""


if __name__ == "__main__":
    write(Path("."))
