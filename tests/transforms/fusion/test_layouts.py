"""Networks whose images change their layout give what ONNX Runtime gives, at every size, and are one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session

RNG = np.random.default_rng(5)
TOLERANCE = 2e-5


class Net:
    """Nodes and weights in the order in which they are made; the image is `x` of [n, 5, h, w]."""

    def __init__(self, opset: int = 17):
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.opset = opset

    def constant(self, values: Any, dtype: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(RNG.standard_normal(shape) / max(1, int(np.prod(shape[1:]))) ** 0.5, np.float32)

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 3, **more: Any) -> str:
        """A convolution with a bias; as large as its image unless `pads` say otherwise."""
        weight = self.weight(outputs, inputs // more.get("group", 1), kernel, kernel)
        return self.op("Conv", x, weight, self.weight(outputs), **{"pads": [kernel // 2] * 4, **more})

    def model(self, *outputs: str, rank: int = 2) -> onnx.ModelProto:
        dims = ["n", 5, *(f"d{k}" for k in range(rank))]
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
            self.weights,
        )
        ir = 4 if self.opset < 10 else 9
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)


def residual(net: Net) -> list[str]:
    """Readers with other rims than each other, and one with none."""
    a = net.op("Relu", net.conv("x", 5, 17))
    b = net.conv(a, 17, 17, pads=[2, 0, 1, 3])
    c = net.conv(a, 17, 17, kernel=1)
    d = net.conv(a, 17, 17, pads=[2, 2, 2, 2], dilations=[2, 2])
    return [net.op("Relu", net.op("Add", c, d)), net.op("Tanh", b)]


def reshaped(net: Net) -> list[str]:
    """Tokens of places, as vision transformers take them."""
    a = net.conv("x", 5, 24, kernel=2, pads=[0] * 4, strides=[2, 2])
    rows = net.op("Transpose", net.op("Reshape", a, net.integers(0, 0, -1)), perm=[0, 2, 1])
    return [net.op("Softmax", rows, axis=-1)]


def joined(net: Net) -> list[str]:
    """Images side by side in their channels, scaled channel by channel, cut at a side."""
    a, b = net.conv("x", 5, 16), net.op("Sigmoid", net.conv("x", 5, 7))
    both = net.op("Concat", a, b, axis=1)
    gate = net.op("Sigmoid", net.conv(net.op("GlobalAveragePool", both), 23, 23, kernel=1))
    scaled = net.op("Mul", both, gate)
    part = net.op("Slice", scaled, net.integers(1), net.integers(9999), net.integers(3))
    return [net.conv(part, 23, 4), net.op("MaxPool", scaled, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)]


def grouped(net: Net) -> list[str]:
    """Depthwise, in groups, and the network's input in two layouts."""
    six = net.constant(6, np.float32)
    a = net.op("Clip", net.conv("x", 5, 32, strides=[2, 2]), net.constant(0, np.float32), six)
    c = net.conv(net.conv(a, 32, 32, group=32), 32, 48, group=4)
    return [net.conv(c, 48, 3, kernel=1), net.op("ReduceMean", "x", axes=[2, 3])]


def inside(net: Net) -> list[str]:
    """Convolutions of what is computed right before them, of a result of the graph, and of an image of one channel."""
    a = net.op("Mul", "x", "x")
    b = net.conv(a, 5, 8)
    c = net.conv(net.op("ReduceSum", b, net.integers(1)), 1, 6, kernel=5)
    return [a, b, net.op("HardSigmoid", c)]


def dilated(net: Net) -> list[str]:
    """Wide windows that leave out their padding, beside one that reads it."""
    a = net.op("Relu", net.conv("x", 5, 32, kernel=1))
    wide = [net.conv(a, 32, 16, pads=[d] * 4, dilations=[d, d]) for d in (9, 15)]
    uneven = net.conv(a, 32, 17, kernel=2, pads=[5, 7, 9, 0], dilations=[12, 9], strides=[2, 3])
    near = net.conv(a, 32, 16)
    return [net.conv(net.op("Concat", *wide, near, axis=1), 48, 8, kernel=1), uneven]


NETS = {f.__name__: f for f in (residual, reshaped, joined, grouped, inside, dilated)}
SIZES = ((1, 8, 8), (2, 5, 9), (3, 16, 33), (1, 3, 4), (0, 6, 6))


def compare(model: onnx.ModelProto, sizes: Sequence[tuple[int, ...]]) -> igniter.Artifact:
    """Compiles a model and compares all outputs with ONNX Runtime's."""
    artifact = igniter.compile(model, verify=False)
    ours, theirs = artifact.session(), make_session(model.SerializeToString())
    for n, *rest in sizes:
        feed = {"x": RNG.standard_normal((n, 5, *rest)).astype(np.float32)}
        for got, wanted in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
            assert got.shape == wanted.shape
            largest = max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE * largest)
    return artifact


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_networks(name: str) -> None:
    net = Net()
    # A Reshape that infers a dim takes no empty batch.
    artifact = compare(net.model(*NETS[name](net)), SIZES[:4] if name == "reshaped" else SIZES)
    assert artifact.report["nodes_after"] == 1, artifact.report["left_to_onnxruntime"]


@pytest.mark.parametrize("opset", (7, 9, 10, 11, 13, 22))
def test_opsets(opset: int) -> None:
    """Pad and Slice say what they do in attributes, or in operands."""
    net = Net(opset)
    a = net.op("Relu", net.conv("x", 5, 6))
    compare(net.model(net.op("Add", net.conv(a, 6, 6), a)), SIZES[:3])


@pytest.mark.parametrize("where", ("SAME_UPPER", "SAME_LOWER", "VALID"))
def test_pads_that_a_run_knows(where: str) -> None:
    """Of a stride of 2 they hang on whether the size is even."""
    net = Net()
    a = net.op("Conv", "x", net.weight(6, 5, 3, 3), auto_pad=where, strides=[2, 2])
    b = net.op("Conv", net.op("Relu", a), net.weight(6, 6, 4, 4), auto_pad=where)
    compare(net.model(b), ((1, 10, 10), (2, 11, 14)))


@pytest.mark.parametrize("rank", (1, 3))
def test_other_ranks(rank: int) -> None:
    net = Net()
    a = net.op("Relu", net.op("Conv", "x", net.weight(12, 5, *[3] * rank), pads=[1] * (2 * rank)))
    pooled = net.op("AveragePool", a, kernel_shape=[2] * rank)
    compare(net.model(net.op("Conv", pooled, net.weight(4, 12, *[2] * rank)), rank=rank), [(2, *[6] * rank)])


@pytest.mark.parametrize("size", [(9,), (3, 33), (13, 6), (2, 3, 4)])
def test_padding_left_out(size: tuple[int, ...]) -> None:
    """Sizes that are known, and an element of the weight that is infinite: it meets no padding."""
    net, rank = Net(), len(size)
    weight = RNG.standard_normal((24, 32, *[3] * rank)).astype(np.float32) / 16
    weight[3, 4, *[0] * rank] = np.inf
    net.op("Conv", "x", net.constant(weight, np.float32), pads=[6] * (2 * rank), dilations=[6] * rank)
    model, shape = net.model("t0", rank=rank), (2, 32, *size)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    feed = {"x": RNG.standard_normal(shape).astype(np.float32)}
    got = igniter.compile(model, verify=False).session().run(None, feed)[0]
    finite = np.where(np.isinf(weight), 0, weight)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(finite, "w0"))
    wanted = make_session(model.SerializeToString()).run(None, feed)[0]
    infinite = np.isinf(got)
    assert not np.isnan(got).any() and not np.delete(infinite, 3, axis=1).any()
    # The first element of a window is in the image for places six from the beginning on.
    seen = np.zeros_like(infinite)
    seen[:, 3, *[slice(6, None)] * rank] = True
    np.testing.assert_array_equal(infinite, seen)
    np.testing.assert_allclose(got[~seen], wanted[~seen], rtol=0, atol=TOLERANCE * np.abs(wanted).max())


@pytest.mark.slow
def test_threads() -> None:
    net = Net()
    artifact = igniter.compile(net.model(*joined(net)), verify=False)
    feed = {"x": RNG.standard_normal((2, 5, 40, 33)).astype(np.float32)}
    one, two = (artifact.session(intra_op_num_threads=n).run(None, feed) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("width,dilation", ((32, 2), (33, 18), (97, 5)))
def test_dilated_planes(width: int, dilation: int) -> None:
    """Lone dilated depthwise convolutions read the rows of the model's planes."""
    net = Net()
    net.op("Conv", "x", net.weight(10, 1, 3, 3), group=5, pads=[dilation] * 4, dilations=[dilation] * 2)
    model = net.model("t0")
    shape = (2, 5, 7, width)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    compare(model, [(2, *shape[2:])])
