"""Convolutions of bytes, in kernels, beside ONNX Runtime's: the same codes, but for numbers between two steps.

ONNX Runtime makes a QLinearConv of each when it loads the model, with the factor that kernels have, so codes of a
convolution alone are equal to the bit. Weights have seven bits, so that its sums do not saturate on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from tests.quantized_models import multiplies_bytes

Array = np.ndarray[Any, Any]
Kind = type[np.int8] | type[np.uint8]

U8, I8 = np.uint8, np.int8


def stored(name: str, values: Any, kind: Any = None) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, kind), name)


@dataclass
class Network:
    """Nodes between QuantizeLinear and DequantizeLinear, of images `x` of f32."""

    image: Kind = U8
    weight: Kind = I8
    opset: int = 17
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def node(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def constant(self, values: Any, kind: Any = None) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(stored(name, values, kind))
        return name

    def parameters(self, scale: float, zero: int) -> list[str]:
        return [self.constant(scale, np.float32), self.constant(zero, self.image)]

    def codes(self, x: str, scale: float, zero: int) -> str:
        return self.node("QuantizeLinear", [x, *self.parameters(scale, zero)])

    def numbers(self, codes: str, scale: float, zero: int) -> str:
        return self.node("DequantizeLinear", [codes, *self.parameters(scale, zero)])

    def rounded(self, x: str, scale: float, zero: int) -> str:
        return self.numbers(self.codes(x, scale, zero), scale, zero)

    def conv(
        self,
        x: str,
        shape: Sequence[int],
        step: float,
        per_channel: bool = True,
        zero: int = 0,
        bias: bool = True,
        **attrs: Any,
    ) -> str:
        """A Conv of dequantised factors; `step` is the scale of `x`."""
        scale = self.rng.uniform(0.01, 0.03, shape[0] if per_channel else ()).astype(np.float32)
        limits = (-64, 64) if self.weight is I8 else (64, 192)
        values = self.rng.integers(*limits, shape).astype(self.weight)
        zeros = np.full(scale.shape, zero, self.weight)
        inputs = [self.constant(values), self.constant(scale), self.constant(zeros)]
        w = self.node("DequantizeLinear", inputs, axis=0)
        given = [x, w]
        if bias:
            numbers = self.constant(self.rng.integers(-3000, 3000, shape[0]), np.int32)
            steps = self.constant(np.broadcast_to(scale * np.float32(step), shape[0]).copy(), np.float32)
            given.append(self.node("DequantizeLinear", [numbers, steps], axis=0))
        return self.node("Conv", given, **attrs)

    def model(self, dims: Sequence[Any], result: str) -> onnx.ModelProto:
        kind = {U8: TensorProto.UINT8, I8: TensorProto.INT8}[self.image]
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
        graph = helper.make_graph(
            self.nodes, "bytes", given, [helper.make_tensor_value_info("y", kind, None)], self.weights
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def compare(
    model: onnx.ModelProto, folder: Path, shapes: Sequence[Sequence[int]], most: int = 0, unequal: float = 0.0
) -> None:
    """Compiles a model, all of it where bytes are multiplied, and compares the codes that it gives: they differ by
    `most` at most, and no more than the part `unequal` of them does."""
    artifact = igniter.load(model).compile(folder / "out", verify=False)
    left = onnx.load(artifact.model_path, load_external_data=False).graph.node
    others = [n.op_type for n in left if not n.domain.startswith("libigniter_")]
    assert not multiplies_bytes() or not set(others) - {"Constant", "Identity"}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    original = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    session = artifact.session()
    for shape in shapes:
        feeds = {"x": np.random.default_rng(7).standard_normal(shape).astype(np.float32)}
        for got, want in zip(session.run(None, feeds), original.run(None, feeds), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            if want.size:
                apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
                assert apart.max() <= most and np.count_nonzero(apart) <= unequal * apart.size
                assert len(np.unique(want)) > 8


@dataclass(frozen=True)
class Case:
    """One convolution: its weight, and what else is said of it."""

    weight: tuple[int, ...]
    dims: tuple[Any, ...] = ("n", 8, "h", "w")
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    zero: int = 3
    sizes: tuple[int, int, int] = (2, 9, 11)


CASES = {
    "pointwise": Case((16, 8, 1, 1)),
    "window": Case((24, 8, 3, 3), attrs={"pads": [1, 1, 1, 1]}),
    "strided": Case((17, 8, 3, 3), attrs={"pads": [1, 0, 2, 1], "strides": [2, 3]}),
    "dilated": Case((8, 8, 3, 2), attrs={"pads": [2, 1, 2, 1], "dilations": [2, 3]}),
    "colours": Case((32, 3, 7, 7), ("n", 3, "h", "w"), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    "few channels": Case((16, 5, 3, 3), ("n", 5, "h", "w"), {"pads": [1, 1, 1, 1]}),
    "fixed": Case((48, 16, 3, 3), (1, 16, 14, 14), {"pads": [1, 1, 1, 1]}, sizes=(1, 14, 14)),
    "depthwise": Case((24, 1, 3, 3), ("n", 24, "h", "w"), {"pads": [1, 1, 1, 1], "group": 24}),
    "depthwise, strided": Case(
        (24, 1, 5, 5), (1, 24, 15, 13), {"pads": [2, 2, 2, 2], "group": 24, "strides": [2, 2]}, sizes=(1, 15, 13)
    ),
    "groups": Case((24, 4, 3, 3), ("n", 16, "h", "w"), {"pads": [1, 1, 1, 1], "group": 4}),
    "groups of panels": Case((64, 12, 3, 3), ("n", 24, "h", "w"), {"pads": [1, 1, 1, 1], "group": 2}),
    "groups of few": Case((9, 3, 3, 3), (1, 9, 9, 8), {"pads": [0, 1, 1, 0], "group": 3}, sizes=(1, 9, 8)),
    "one dim": Case((16, 8, 3), ("n", 8, "w"), {"pads": [1, 1]}),
    "same": Case((16, 8, 3, 3), ("n", 8, 10, 9), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, sizes=(2, 10, 9)),
}


def single(case: Case, image: Kind, weight: Kind, per_channel: bool, zero: int, bias: bool = True) -> onnx.ModelProto:
    b = Network(image, weight)
    shift = 117 if image is U8 else -7
    x = b.rounded("x", 0.03, shift)
    y = b.conv(x, case.weight, 0.03, per_channel, zero, bias, **case.attrs)
    return b.model(case.dims, b.codes(y, 0.11, 125 if image is U8 else 3))


def sizes_of(case: Case) -> list[list[int]]:
    batch, *space = case.sizes
    channels = case.dims[1]
    return [[batch, channels, *space[2 - len(case.dims) :]]]


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_has_the_codes_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    compare(single(case, U8, I8, True, 0), tmp_path, sizes_of(case))


@pytest.mark.parametrize("zero", [0, 5])
@pytest.mark.parametrize("weight", [I8, U8])
@pytest.mark.parametrize("name", ["window", "colours", "depthwise", "groups"])
def test_zero_points_of_weights(name: str, weight: Kind, zero: int, tmp_path: Path) -> None:
    """Numbers of u8 around 128 become i8; those that are then too far from their zero point keep one."""
    case = CASES[name]
    compare(single(case, U8, weight, False, zero if weight is I8 else zero + 120), tmp_path, sizes_of(case))


@pytest.mark.parametrize("zero", [4, 250])
def test_zero_points_that_no_byte_absorbs(zero: int, tmp_path: Path) -> None:
    case = CASES["strided"]
    compare(single(case, U8, U8, False, zero), tmp_path, sizes_of(case))


@pytest.mark.parametrize("name", ["window", "depthwise"])
def test_signed_images(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    compare(single(case, I8, I8, True, 0, bias=False), tmp_path, sizes_of(case))


# -- what stands between ----------------------------------------------------------------------------------------------


def between(b: Network, name: str, x: str, y: str) -> str:
    """Of two convolutions' results, in steps of 0.1137 from 125, what the next one reads, in the same."""

    def op(kind: str, *inputs: str, scale: float = 0.1137, zero: int = 125, **attrs: Any) -> str:
        return b.rounded(b.node(kind, inputs, **attrs), scale, zero)

    made: Mapping[str, Callable[[], str]] = {
        "residual": lambda: op("Add", x, y, scale=0.2071),
        "residual, relu": lambda: op("Relu", op("Add", x, y, scale=0.2071), scale=0.1013, zero=0),
        "product": lambda: op("Mul", x, y, scale=0.9177),
        "silu": lambda: op("Mul", x, op("Sigmoid", x, scale=1 / 255, zero=0), scale=0.0613, zero=5),
        "hard swish": lambda: op("HardSwish", x, scale=0.0619, zero=6),
        "pool": lambda: op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        "concat": lambda: op("Concat", x, y, axis=1),
        "clip": lambda: op("Clip", x, b.constant(0.0, np.float32), b.constant(6.0, np.float32), scale=0.0239, zero=0),
        "no upper limit": lambda: op(
            "Clip", x, b.constant(0.0, np.float32), b.constant(np.inf, np.float32), scale=0.0239, zero=0
        ),
        "leaky": lambda: op("LeakyRelu", x, alpha=0.1, scale=0.0607, zero=20),
        # Nine numbers: their mean is never in the middle of two steps.
        "average": lambda: op("AveragePool", x, kernel_shape=[3, 3]),
    }
    return made[name]()


STEPS = {
    "residual": 0.2071,
    "residual, relu": 0.1013,
    "product": 0.9177,
    "silu": 0.0613,
    "hard swish": 0.0619,
    "leaky": 0.0607,
    "clip": 0.0239,
    "no upper limit": 0.0239,
}
BETWEEN = [*STEPS, "pool", "concat", "average"]


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between_convolutions_is_done_on_bytes(name: str, tmp_path: Path) -> None:
    b = Network()
    x = b.rounded("x", 0.03, 117)
    pair = [b.rounded(b.conv(x, (16, 8, 3, 3), 0.03, pads=[1, 1, 1, 1]), 0.1137, 125) for _ in range(2)]
    made = between(b, name, *pair)
    step = STEPS.get(name, 0.1137)
    y = b.conv(made, (8, 32 if name == "concat" else 16, 3, 3), step, pads=[1, 1, 1, 1])
    model = b.model(("n", 8, "h", "w"), b.codes(y, 1.5 if name == "product" else 0.5, 128))
    # A code between that is another by one moves those that are computed of it.
    compare(model, tmp_path, [(2, 8, 7, 10), (1, 8, 5, 5)], most=1, unequal=0.02)


@pytest.mark.parametrize("zero", [0, 9])
def test_images_that_two_windows_read(zero: int, tmp_path: Path) -> None:
    """The rim is as wide as the wider one wants; the other, and what reads no window, skip it."""
    b = Network()
    x = b.rounded(b.conv(b.rounded("x", 0.03, 117), (8, 8, 1, 1), 0.03), 0.1137, zero)
    wide = b.conv(x, (8, 8, 5, 5), 0.1137, pads=[2, 2, 2, 2])
    narrow = b.conv(x, (8, 8, 3, 3), 0.1137, pads=[1, 1, 1, 1])
    total = b.node("Add", [b.rounded(wide, 0.983, 120), b.rounded(narrow, 0.711, 120)])
    total = b.node("Add", [b.rounded(total, 1.217, 120), x])
    compare(b.model(("n", 8, "h", "w"), b.codes(total, 1.231, 120)), tmp_path, [(2, 8, 9, 7)], most=1, unequal=0.02)


def test_no_images(tmp_path: Path) -> None:
    case = CASES["window"]
    compare(single(case, U8, I8, True, 0), tmp_path, [(0, 8, 9, 11), (1, 8, 9, 11)])


def test_a_bias_in_other_steps(tmp_path: Path) -> None:
    """What a bias stands for is added, where it is not in steps of both scales."""
    b = Network()
    x = b.rounded("x", 0.03, 117)
    y = b.conv(x, (16, 8, 3, 3), 0.06, pads=[1, 1, 1, 1])
    artifact = igniter.load(b.model(("n", 8, "h", "w"), b.codes(y, 0.11, 125))).compile(tmp_path / "out", verify=False)
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = b.model(("n", 8, "h", "w"), "y")
    del model.graph.node[-1]
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), plain, ["CPUExecutionProvider"])
    feeds = {"x": np.random.default_rng(7).standard_normal((1, 8, 6, 6)).astype(np.float32)}
    got, want = artifact.session().run(None, feeds)[0], wanted.run(None, feeds)[0]
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("weight", [I8, U8])
def test_bytes_whose_zero_point_a_run_finds(weight: Kind, tmp_path: Path) -> None:
    """DynamicQuantizeLinear and ConvInteger, as `quantize_dynamic` makes of a Conv: the rim is what the run says."""
    rng = np.random.default_rng(0)
    values = rng.integers(-64, 64, (16, 8, 3, 3)) + (0 if weight is I8 else 128)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z", "wz"], ["sums"], pads=[1, 1, 1, 1], strides=[2, 1]),
        helper.make_node("Cast", ["sums"], ["wide"], to=1),
        helper.make_node("Mul", ["s", "ws"], ["step"]),
        helper.make_node("Mul", ["wide", "step"], ["y"]),
    ]
    weights = [
        stored("w", values, weight),
        stored("wz", 0 if weight is I8 else 131, weight),
        stored("ws", 0.01, np.float32),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, "h", "w"])]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "dynamic", given, result, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    artifact = igniter.load(model).compile(tmp_path / "out", verify=False)
    left = onnx.load(artifact.model_path, load_external_data=False).graph.node
    assert not [n.op_type for n in left if not n.domain.startswith("libigniter_") and n.op_type != "Constant"]
    original = onnxruntime.InferenceSession(model.SerializeToString(), None, ["CPUExecutionProvider"])
    feeds = {"x": rng.standard_normal((2, 8, 7, 9)).astype(np.float32)}
    got, want = artifact.session().run(None, feeds)[0], original.run(None, feeds)[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "group", "settled"),
    [
        ((16, 4, 3, 3), 1, True),
        ((3, 8, 3, 3), 1, True),
        ((16, 16, 1, 1), 1, False),
        ((12, 8, 3, 3), 1, False),
        ((16, 3, 3, 3), 1, False),
        ((8, 1, 3, 3), 8, True),
        ((12, 16, 3, 3), 4, False),
    ],
)
@pytest.mark.parametrize("weight", [I8, U8])
def test_without_products_of_bytes(weight: Kind, shape: tuple[int, ...], group: int, settled: bool) -> None:
    """A weight of u8 becomes i8 only where products of words are faster than ONNX Runtime's kernel. Fusion leaves the
    others to it, as they are: its kernels of u8 and i8 take six times as long."""
    rng = np.random.default_rng(0)
    inputs = shape[1] * group
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"], pads=[shape[2] // 2] * 4, group=group)
    numbers = rng.integers(0, 256, shape) - (128 if weight is I8 else 0)
    weights = [stored("w", numbers, weight), stored("z", 3, U8), stored("wz", 0 if weight is I8 else 128, weight)]
    given = [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, inputs, 28, 28])]
    result = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    graph = helper.make_graph([node], "words", given, result, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = igniter.load(model)
    passes = "form-integer-products{byte-products=false},infer-shapes,form-fusion-regions{byte-products=false}"
    text = str(module.run_passes(passes, target="x86-64-v3"))
    kept = settled or weight is I8
    assert ("fusion.region" in text) == kept
    assert ("xui8>, tensor<ui8>" in text) == (weight is U8 and not kept)
