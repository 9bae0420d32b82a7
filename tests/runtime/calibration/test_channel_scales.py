"""Scales of channels: found where they help, and put into models that compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime import GraphOptimizationLevel

import igniter
from igniter.dialects.onnx.structure import main_graph
from igniter.runtime.session import make_session
from igniter.toolbox.quantize.calibration import quantizer
from igniter.toolbox.quantize.calibration.channels import PARTS, ChannelCounter
from igniter.toolbox.quantize.calibration.folds import Way
from igniter.toolbox.quantize.channel_scales import Channels, Reader, scales_of
from igniter.toolbox.quantize.channel_sites import sites
from igniter.toolbox.quantize.quantization_plan import candidates
from igniter.toolbox.quantize.scale_channels import scale_channels

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)

BLOCKS = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 6, 8, 8] x) => (float[n, 8, 8, 4] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, first, bias)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1], group = 12> (b, depthwise)
    s = HardSwish (c)
    d = Div (s, six)
    e = Conv (d, third)
    f = Sigmoid (e)
    g = Mul (e, f)
    h = Conv (g, fourth)
    i = Transpose <perm = [0, 2, 3, 1]> (h)
    j = LayerNormalization (i, gamma, beta)
    y = MatMul (j, last)
}"""


def spread(count: int, rng: Any = RNG) -> Array:
    """Factors of channels, of very different sizes."""
    return np.exp(rng.uniform(-3, 3, count)).astype(np.float32)


def blocks() -> onnx.ModelProto:
    """Convolutions, one of them depthwise, whose channels differ in size."""
    proto, rng = onnx.parser.parse_model(BLOCKS), np.random.default_rng(4)

    def weight(name: str, *shape: int) -> None:
        values = rng.standard_normal(shape).astype(np.float32) * spread(shape[0], rng).reshape(
            -1, *[1] * (len(shape) - 1)
        )
        proto.graph.initializer.append(numpy_helper.from_array(values, name))

    weight("first", 12, 6, 3, 3)
    weight("bias", 12)
    weight("depthwise", 12, 1, 3, 3)
    weight("third", 7, 12, 1, 1)
    weight("fourth", 5, 7, 1, 1)
    weight("gamma", 5)
    weight("beta", 5)
    weight("last", 5, 4)
    proto.graph.initializer.append(numpy_helper.from_array(np.array(6, np.float32), "six"))
    return proto


def images(count: int = 8) -> list[dict[str, Array]]:
    rng = np.random.default_rng(1)
    return [{"x": rng.standard_normal((2, 6, 8, 8)).astype(np.float32)} for _ in range(count)]


def run(proto: onnx.ModelProto, feed: dict[str, Array], **options: Any) -> Array:
    return make_session(proto.SerializeToString(), **options).run(None, feed)[0]  # pyright: ignore[reportReturnType]


def test_a_model_with_scales_computes_the_same():
    proto = blocks()
    module = igniter.load(proto)
    graph, nodes = main_graph(module.ir), candidates(module.ir)
    found = {site.name: site for site in sites(graph, nodes)}
    # `b` is of the first convolution alone, `g` of a product of two values, and `d` of one with a constant.
    assert {n for n, s in found.items() if s.is_free} == {"b", "d", "j"}
    assert {n: (s.producer is not None, len(s.readers)) for n, s in found.items()} == {
        "x": (False, 1),
        "b": (True, 1),
        "d": (False, 1),
        "g": (False, 1),
        "j": (False, 1),
    }
    sizes = {"x": 6, "b": 12, "d": 12, "g": 7, "j": 5}
    done = scale_channels(graph, nodes, {name: spread(size) for name, size in sizes.items()})
    assert sorted(done) == sorted(sizes)
    feed = images(1)[0]
    np.testing.assert_allclose(run(module.to_onnx(), feed), run(proto, feed), rtol=2e-3, atol=1e-3)


def test_scales_are_of_use(monkeypatch: pytest.MonkeyPatch):
    """Codes are spent evenly, and ONNX Runtime computes with integers what the nodes say."""
    proto = blocks()
    module = igniter.load(proto)
    monkeypatch.setattr(quantizer, "best_way", lambda *_: Way(scaled=True))
    found = module.quantize(images())
    plain = igniter.load(proto).quantize(images(), equalize=False)
    assert set(found.parameters.scales) >= {"b", "d", "g"}
    own = {layer.name: layer.relative for layer in plain.layers}
    assert all(layer.relative < 1.01 * own[layer.name] for layer in found.layers)
    assert min(layer.relative / own[layer.name] for layer in found.layers) < 0.6
    assert found.outside == ()
    made = module.to_onnx()
    exact = run(made, images(1)[0], graph_optimization_level=GraphOptimizationLevel.ORT_DISABLE_ALL)
    joined = run(made, images(1)[0], config={"session.x64quantprecision": "1"})
    assert np.sqrt(np.mean((joined - exact) ** 2) / np.mean(exact**2)) < 0.01


def channels(reach: Array, parts: int = 8, places: float = 1000.0) -> Channels:
    highs = np.stack([reach * (1 - 0.001 * k) for k in range(parts)])
    return Channels(np.zeros_like(highs), highs, np.square(reach) / 9, places)


def test_scales_even_out_what_channels_need():
    reach = np.array([0.1, 0.5, 2.0, 10.0])
    # Each output channel reads one channel: weights lose nothing.
    depthwise = Reader(np.ones((4, 1, 1)), np.ones((4, 1, 1)), 1, False)
    scale = scales_of(channels(reach), [depthwise])
    assert scale is not None
    assert scale / scale[0] == pytest.approx(reach / reach[0], rel=0.02)
    assert scales_of(channels(np.full(4, 2.0)), [depthwise]) is None
    # All outputs read all channels: the weight's own codes are weighed against the activations'.
    dense = Reader(np.ones((1, 5, 4)), np.ones((1, 5, 4)), 1, False)
    assert (found := scales_of(channels(reach), [dense])) is None or found[3] / found[0] < 100


def test_what_samples_do_not_support_is_not_scaled():
    """One number of a channel in a sample, and a different channel that is large in each."""
    depthwise = Reader(np.ones((8, 1, 1)), np.ones((8, 1, 1)), 1, False)
    highs = np.full((8, 8), 0.1)
    highs[np.arange(4), np.arange(4)] = 5.0
    erratic = Channels(np.zeros_like(highs), highs, np.square(highs).mean(0), 1.0)
    found = scales_of(erratic, [depthwise])
    assert found is None or found.max() / found.min() < 2
    assert scales_of(channels(spread(8).astype(np.float64), parts=1), [depthwise]) is None


def test_channels_are_counted_in_bounded_memory():
    counter, values = ChannelCounter(1), RNG.standard_normal((3 * PARTS, 2, 5, 4)).astype(np.float32)
    for value in values:
        counter.add(value)
    found = counter.found
    assert found is not None
    assert found.lows.shape == (PARTS, 5)
    np.testing.assert_allclose(found.highs.max(0), values.max(axis=(0, 1, 3)), rtol=1e-6)
    np.testing.assert_allclose(found.square, np.square(values).mean(axis=(0, 1, 3)), rtol=1e-5)
    assert found.places == 8
    counter.add(np.ones((2, 6, 4), np.float32))
    assert counter.found is None
