"""Models built by code and quantised by ONNX Runtime's own tools: what the tests of quantised models compile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from igniter.backends.cpu.machine import machine_for

Array = np.ndarray[Any, Any]


def multiplies_bytes() -> bool:
    """True if this machine multiplies bytes in one instruction: where none does, most such products and convolutions
    are left to ONNX Runtime, and there is less to be said of what is compiled."""
    return machine_for("native").byte_products


class ModelBuilder:
    """Nodes and weights of one graph."""

    def __init__(self, seed: int = 0, opset: int = 17):
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attrs: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"{name}.node", **attrs))
        return name

    def weight(self, value: Array) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def random(self, *shape: int, scale: float = 0.05) -> str:
        return self.weight((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def integers(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def finish(self, inputs: Mapping[str, tuple[int, list[Any]]], output: str, dims: list[Any]) -> onnx.ModelProto:
        given = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()]
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, "model", given, [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)


def encoder(layers: int = 1, hidden: int = 64, heads: int = 4, inner: int = 128, words: int = 100) -> onnx.ModelProto:
    """A transformer encoder as exporters write it: token ids and a mask to hidden states."""
    b = ModelBuilder()
    size = hidden // heads

    def linear(x: str, n: int, m: int) -> str:
        return b.op("Add", b.op("MatMul", x, b.random(n, m)), b.random(m))

    def norm(x: str) -> str:
        gain = b.weight((1 + 0.1 * b.rng.standard_normal(hidden)).astype(np.float32))
        return b.op("LayerNormalization", x, gain, b.random(hidden), axis=-1)

    mask = b.op("Unsqueeze", b.op("Cast", "mask", to=TensorProto.FLOAT), b.integers(1, 2))
    one, least = b.weight(np.float32(1)), b.weight(np.float32(-10000))
    bias = b.op("Mul", b.op("Sub", one, mask), least)
    x = norm(b.op("Gather", b.random(words, hidden, scale=1.0), "ids"))
    for _ in range(layers):
        split = b.integers(0, 0, heads, size)
        q, k, v = (
            b.op("Transpose", b.op("Reshape", linear(x, hidden, hidden), split), perm=p)
            for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = b.op("Div", b.op("MatMul", q, k), b.weight(np.float32(np.sqrt(size))))
        weights = b.op("Softmax", b.op("Add", scores, bias), axis=-1)
        heads_out = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        x = norm(b.op("Add", linear(b.op("Reshape", heads_out, b.integers(0, 0, hidden)), hidden, hidden), x))
        up = linear(x, hidden, inner)
        erf = b.op("Erf", b.op("Div", up, b.weight(np.float32(np.sqrt(2)))))
        gelu = b.op("Mul", b.op("Mul", up, b.op("Add", erf, one)), b.weight(np.float32(0.5)))
        x = norm(b.op("Add", linear(gelu, inner, hidden), x))
    inputs = {name: (TensorProto.INT64, ["batch", "seq"]) for name in ("ids", "mask")}
    return b.finish(inputs, x, ["batch", "seq", hidden])


def residual_network(blocks: int = 2, channels: int = 16, size: int = 16) -> onnx.ModelProto:
    """A small ResNet: convolutions with residuals, a global pool and a classifier."""
    b = ModelBuilder(1)

    def conv(x: str, n: int, m: int, kernel: int = 3, stride: int = 1) -> str:
        pads = [kernel // 2] * 4
        scale = 1.0 / np.sqrt(n * kernel * kernel)
        weight, bias = b.random(m, n, kernel, kernel, scale=scale), b.random(m)
        return b.op("Conv", x, weight, bias, kernel_shape=[kernel] * 2, pads=pads, strides=[stride] * 2)

    x = b.op("Relu", conv("image", 3, channels))
    for k in range(blocks):
        wide = channels * 2**k
        inner = b.op("Relu", conv(x, wide, wide * 2, stride=2))
        x = b.op("Relu", b.op("Add", conv(inner, wide * 2, wide * 2), conv(x, wide, wide * 2, 1, 2)))
    flat = b.op("Flatten", b.op("GlobalAveragePool", x))
    wide = channels * 2**blocks
    y = b.op("Gemm", flat, b.random(wide, 10, scale=0.2), b.random(10))
    return b.finish({"image": (TensorProto.FLOAT, ["batch", 3, size, size])}, y, ["batch", 10])


def perceptron(widths: tuple[int, ...] = (32, 64, 48, 16)) -> onnx.ModelProto:
    """Layers of Gemm and MatMul with activations between them."""
    b = ModelBuilder(2)
    x = "x"
    for k, (n, m) in enumerate(pairwise(widths)):
        weight, bias = b.random(n, m, scale=0.3), b.random(m, scale=0.3)
        x = b.op("Gemm", x, weight, bias) if k % 2 == 0 else b.op("Add", b.op("MatMul", x, weight), bias)
        x = b.op(("Relu", "Sigmoid", "Identity")[k % 3], x)
    return b.finish({"x": (TensorProto.FLOAT, ["rows", widths[0]])}, x, ["rows", widths[-1]])


def feeds_of(model: onnx.ModelProto, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Inputs of a model of this module at these sizes."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for each in model.graph.input:
        tensor = each.type.tensor_type
        shape = [sizes.get(d.dim_param, 1) if d.dim_param else d.dim_value for d in tensor.shape.dim]
        if each.name == "mask":
            found[each.name] = np.ones(shape, np.int64)
        elif tensor.elem_type == TensorProto.INT64:
            found[each.name] = rng.integers(0, 100, shape)
        else:
            found[each.name] = rng.standard_normal(shape).astype(np.float32)
    return found


def quantize_dynamic(model: onnx.ModelProto, folder: Path, **options: Any) -> onnx.ModelProto:
    """`onnxruntime.quantization.quantize_dynamic` of a model."""
    from onnxruntime.quantization import quantize_dynamic as run

    source, target = _paths(model, folder)
    run(source, target, **options)
    return onnx.load(target)


def quantize_static(model: onnx.ModelProto, folder: Path, sizes: Mapping[str, int], **options: Any) -> onnx.ModelProto:
    """`onnxruntime.quantization.quantize_static` of a model, calibrated on a few random inputs."""
    from onnxruntime.quantization import CalibrationDataReader
    from onnxruntime.quantization import quantize_static as run

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.batches: Iterator[dict[str, Array]] = iter([feeds_of(model, sizes, seed) for seed in range(4)])

        def get_next(self) -> dict[str, Array] | None:
            return next(self.batches, None)

    source, target = _paths(model, folder)
    run(source, target, Reader(), **options)
    return onnx.load(target)


def _paths(model: onnx.ModelProto, folder: Path) -> tuple[str, str]:
    source = folder / "source.onnx"
    onnx.save(model, source)
    return str(source), str(folder / "quantized.onnx")
