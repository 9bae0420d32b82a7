"""Graphs written out by code, node by node as exporters write them, with weights that are random but seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Step = Callable[[str], str]
"""From the name of a value to that of what is made of it."""

LEARNED, CONSTANT = "w", "c"
"""What the names of initializers start with: weights that training finds, and all others."""


class Builder:
    """A graph under construction: values are their names.

    With `values=False` the weights have shapes and no values, which is enough to count what a model has and does, and
    takes no memory.
    """

    def __init__(self, seed: int = 0, values: bool = True, opset: int = 17):
        self.rng = np.random.default_rng(seed)
        self.values = values
        self._model = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", opset)])
        # Weights are put where they stay: the largest models fit into memory only once.
        self._graph = self._model.graph
        self._graph.name = "g"

    def input(self, name: str, *dims: int | str, kind: int = TensorProto.FLOAT) -> str:
        self._graph.input.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The model, which is not to be built any further."""
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        self._graph.output.extend(infos)
        return self._model

    def ops(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """Adds a node; the names of its outputs."""
        name = f"{kind}_{len(self._graph.node)}"
        outputs = [f"{name}_out", *(f"{name}_out{k}" for k in range(1, count))]
        self._graph.node.append(helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return outputs

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node; the name of its output."""
        return self.ops(kind, *inputs, count=1, **attributes)[0]

    # -- weights ------------------------------------------------------------------------------------------------------

    def constant(self, value: Array) -> str:
        return self._initializer(value, CONSTANT)

    def learned(self, value: Array) -> str:
        return self._initializer(value, LEARNED)

    def random(self, *dims: int, scale: float = 1.0, around: float = 0.0) -> str:
        return self.learned(self.draw(*dims, scale=scale, around=around))

    def draw(self, *dims: int, scale: float = 1.0, around: float = 0.0) -> Array:
        """Normally distributed numbers in f32."""
        if not self.values:
            return np.broadcast_to(np.float32(around), dims)
        return np.float32(around) + np.float32(scale) * self.rng.standard_normal(dims, np.float32)

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def _initializer(self, value: Array, prefix: str) -> str:
        tensor = self._graph.initializer.add()
        name = f"{prefix}{len(self._graph.initializer)}"
        if self.values or prefix == CONSTANT:
            tensor.CopyFrom(numpy_helper.from_array(value, name))
        else:
            tensor.name, tensor.data_type = name, helper.np_dtype_to_tensor_dtype(value.dtype)
            tensor.dims.extend(value.shape)
        return name

    # -- what several nodes make --------------------------------------------------------------------------------------

    def linear(self, x: str, rows: int, columns: int, bias: bool = True) -> str:
        product = self.op("MatMul", x, self.random(rows, columns, scale=0.5 / rows**0.5))
        return self.op("Add", product, self.random(columns, scale=0.1)) if bias else product

    def layer_norm(self, x: str, size: int, epsilon: float = 1e-5) -> str:
        scale, bias = self.random(size, scale=0.1, around=1.0), self.random(size, scale=0.1)
        return self.op("LayerNormalization", x, scale, bias, epsilon=epsilon)

    def gelu(self, x: str) -> str:
        error = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", error, self.number(1.0))), self.number(0.5))

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def attention(self, q: str, k: str, v: str, width: int, heads: int, to_scores: Step = lambda s: s) -> str:
        """Attention of [batch, sequence, width]; `to_scores` does what is done to [batch, heads, rows, columns]."""
        split, joined = self.integers(0, 0, heads, width // heads), self.integers(0, 0, width)
        q, k, v = (self.op("Reshape", t, split) for t in (q, k, v))
        q, v = (self.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = self.op("Div", scores, self.number((width / heads) ** 0.5))
        found = self.op("MatMul", self.op("Softmax", to_scores(scores), axis=-1), v)
        return self.op("Reshape", self.op("Transpose", found, perm=[0, 2, 1, 3]), joined)


class Map(NamedTuple):
    """Images within a network, [batch, channels, size, size]."""

    name: str
    channels: int
    size: int


GAINS = {"": 1.0, "Relu": 1.414, "Relu6": 1.414, "Silu": 1.559, "HardSwish": 1.567, "Sigmoid": 1.0, "HardSigmoid": 1.0}
"""By activation, the deviation of normally distributed values in front of it that has the mean square behind it at 1.

With weights to match, what a layer gives is as large as what it takes, however many there are."""


class Layers(Builder):
    """A convolutional network: convolutions with what stands behind them, and pools.

    Batch normalisation is folded into the convolution in front of it, as exporters do for inference, or with
    `folded=False` a node of its own; the weights are the same otherwise, and so are the results.
    """

    def __init__(self, folded: bool = True, values: bool = True, epsilon: float = 1e-5):
        super().__init__(values=values)
        self.folded, self.epsilon = folded, epsilon

    def image(self, size: int, channels: int = 3, name: str = "x") -> Map:
        return Map(self.input(name, "batch", channels, size, size), channels, size)

    def conv(
        self,
        x: Map,
        outputs: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        act: str = "",
        *,
        pad: int | None = None,
        group: int = 1,
        norm: bool = True,
        bias: bool = True,
        gain: float = 1.0,
    ) -> Map:
        """A convolution, batch normalisation and an activation; the bias is for those that are not normalised.

        Pads are half of the kernel unless `pad` says how many; `gain` multiplies the values in front of the activation.
        """
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = [k // 2 if pad is None else pad for k in sides]
        gain *= GAINS[act]
        fan = x.channels // group * sides[0] * sides[1]
        weight = self.draw(outputs, x.channels // group, *sides, scale=(1.0 if norm else gain) / fan**0.5)
        attributes = {"kernel_shape": sides, "strides": [stride] * 2, "pads": pads * 2, "group": group}
        size = (x.size + 2 * pads[0] - sides[0]) // stride + 1
        operands: list[Array] = [weight]
        statistics: list[Array] = []
        if norm:
            statistics = self._statistics(outputs, gain)
            if self.folded:
                operands, statistics = self._folded(weight, *statistics), []
        elif bias:
            operands.append(self.draw(outputs, scale=0.1))
        y = Map(self.op("Conv", x.name, *map(self.learned, operands), **attributes), outputs, size)
        if statistics:
            y = self._normalised(y, statistics)
        return self.act(y, act)

    def batch_norm(self, x: Map, act: str = "") -> Map:
        """Batch normalisation that no convolution stands in front of: exporters leave it."""
        return self.act(self._normalised(x, self._statistics(x.channels, GAINS[act])), act)

    def _statistics(self, channels: int, gain: float) -> list[Array]:
        """Scale, bias, mean and variance, none of which does nothing."""
        scale = self.draw(channels, scale=0.1 * gain, around=gain)
        bias, mean = self.draw(channels, scale=0.1), self.draw(channels, scale=0.1)
        return [scale, bias, mean, 0.75 + np.abs(self.draw(channels, scale=0.3))]

    def _folded(self, weight: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> list[Array]:
        if not self.values:
            return [weight, bias]
        factor = scale / np.sqrt(variance + np.float32(self.epsilon))
        return [weight * factor[:, None, None, None], bias - mean * factor]

    def _normalised(self, x: Map, statistics: Sequence[Array]) -> Map:
        scale, bias, mean, variance = statistics
        names = [self.learned(scale), self.learned(bias), self.constant(mean), self.constant(variance)]
        return x._replace(name=self.op("BatchNormalization", x.name, *names, epsilon=self.epsilon))

    def act(self, x: Map, kind: str) -> Map:
        match kind:
            case "":
                return x
            case "Relu6":
                return x._replace(name=self.op("Clip", x.name, self.number(0.0), self.number(6.0)))
            case "Silu":
                return x._replace(name=self.silu(x.name))
            case "HardSigmoid":
                return x._replace(name=self.op(kind, x.name, alpha=1 / 6, beta=0.5))
            case _:
                return x._replace(name=self.op(kind, x.name))

    def pool(self, kind: str, x: Map, kernel: int, stride: int = 1, pad: int = 0, **attributes: Any) -> Map:
        """MaxPool or AveragePool."""
        geometry = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        ceiling = stride - 1 if attributes.get("ceil_mode") else 0
        size = (x.size + 2 * pad - kernel + ceiling) // stride + 1
        return Map(self.op(kind, x.name, **geometry, **attributes), x.channels, size)

    def doubled(self, x: Map) -> Map:
        """Every pixel four times."""
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return x._replace(name=self.op("Resize", x.name, "", scales, **how), size=2 * x.size)

    def add(self, a: Map, b: Map) -> Map:
        return a._replace(name=self.op("Add", a.name, b.name))

    def concat(self, *maps: Map) -> Map:
        channels = sum(m.channels for m in maps)
        return maps[0]._replace(name=self.op("Concat", *(m.name for m in maps), axis=1), channels=channels)

    def split(self, x: Map, *channels: int) -> list[Map]:
        names = self.ops("Split", x.name, self.integers(*channels), count=len(channels), axis=1)
        return [x._replace(name=n, channels=c) for n, c in zip(names, channels, strict=True)]

    def shuffle(self, x: Map, groups: int) -> Map:
        """Channels of several groups in turn."""
        apart = self.op("Reshape", x.name, self.integers(0, groups, x.channels // groups, x.size, x.size))
        turned = self.op("Transpose", apart, perm=[0, 2, 1, 3, 4])
        return x._replace(name=self.op("Reshape", turned, self.integers(0, x.channels, x.size, x.size)))

    def excite(self, x: Map, inner: int, act: str, gate: str) -> Map:
        """Squeeze and excitation: each channel times what a small network makes of the means of all."""
        means = Map(self.op("GlobalAveragePool", x.name), x.channels, 1)
        gates = self.conv(self.conv(means, inner, act=act, norm=False), x.channels, act=gate, norm=False)
        return x._replace(name=self.op("Mul", x.name, gates.name))

    def dense(self, x: str, rows: int, columns: int, act: str = "") -> str:
        """A Gemm, whose weights lie the other way."""
        weight, bias = self.random(columns, rows, scale=GAINS[act] / rows**0.5), self.random(columns, scale=0.1)
        return self.act(Map(self.op("Gemm", x, weight, bias, transB=1), columns, 1), act).name

    def means(self, x: Map) -> str:
        """The means over the image, [batch, channels]."""
        return self.op("Flatten", self.op("GlobalAveragePool", x.name))

    def to_rows(self, x: Map) -> str:
        """Channels last: [batch, size, size, channels]."""
        return self.op("Transpose", x.name, perm=[0, 2, 3, 1])

    def to_map(self, rows: str, channels: int, size: int) -> Map:
        return Map(self.op("Transpose", rows, perm=[0, 3, 1, 2]), channels, size)
