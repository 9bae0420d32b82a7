"""Static quantisation: what is written runs, errs as little as codes allow, and meets the error that is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import GraphOptimizationLevel

import igniter
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.toolbox.quantize.calibration.errors import output_errors
from igniter.toolbox.quantize.calibration.histogram import METHODS
from igniter.toolbox.quantize.calibration.samples import samples
from igniter.toolbox.quantize.calibration.workbench import EXACT
from tests.quantized_models import encoder

Array = np.ndarray[Any, Any]


def network(opset: int = 17, softmax: bool = False) -> onnx.ModelProto:
    """Two convolutions, a ReLU behind the first, and a Gemm; of any batch."""
    rng = np.random.default_rng(5)
    weights = {
        "u": rng.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5,
        "b": rng.standard_normal(8).astype(np.float32),
        "v": rng.standard_normal((6, 8, 3, 3)).astype(np.float32) / 8,
        "w": rng.standard_normal((10, 6)).astype(np.float32),
        "c": rng.standard_normal(10).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "u", "b"], ["h"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "v"], ["k"], "second"),
        helper.make_node("GlobalAveragePool", ["k"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w", "c"], ["y" if not softmax else "z"], "head", transB=1),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["z"], ["y"], "softmax", axis=1))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def images(count: int = 6) -> list[dict[str, Array]]:
    """Samples whose shapes vary."""
    rng = np.random.default_rng(11)
    return [{"x": rng.standard_normal((1 + k % 3, 3, 8 + k, 9)).astype(np.float32)} for k in range(count)]


def measured(proto: onnx.ModelProto, made: onnx.ModelProto, data: list[dict[str, Array]]) -> float:
    sessions: list[Any] = [make_session(m.SerializeToString(), config=EXACT) for m in (proto, made)]
    return max(output_errors(sessions[0], sessions[1], lambda: iter(data)).values())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "style",
    [
        {},
        {"activations": "i8", "symmetric": True},
        {"granularity": "tensor"},
        {"symmetric": True, "asymmetric_weights": True},
    ],
)
def test_a_network(method: Any, style: dict[str, Any]):
    proto = network()
    module = igniter.load(proto)
    found = module.quantize(images(), calibrate=method, correct=False, **style)
    made = module.to_onnx()
    onnx.checker.check_model(made)
    assert found.samples == 6
    assert found.error == pytest.approx(measured(proto, made, images()))
    assert found.error < (0.05 if method != "entropy" else 0.3)
    ops = Counter(n.op_type for n in made.graph.node)
    # The image, what ReLU leaves, the second convolution's result and the features.
    assert ops["QuantizeLinear"] == 4
    biases = [t for t in made.graph.initializer if t.data_type == TensorProto.INT32]
    assert len(biases) == 2
    assert [e.name for e in found.layers] == ["first", "second", "head"]
    assert all(20 < e.sqnr < 80 for e in found.layers) or method == "entropy"


def test_each_layer_alone_is_what_numpy_says():
    """The error of the head: factors and bias rounded to codes by hand."""
    proto = network()
    module = igniter.load(proto)
    found = module.quantize(images(), ops=["Gemm"], correct=False, equalize=False)
    weights = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    probe = onnx.ModelProto()
    probe.CopyFrom(proto)
    probe.graph.output.add(name="f")
    session: Any = make_session(probe.SerializeToString())
    low, high = found.ranges["f"]
    step = np.float32((high - low) / 255)
    zero = np.rint(-low / step)
    scale = np.maximum(weights["w"].max(1) / 127, weights["w"].min(1) / -128)[:, None]
    w = np.clip(np.rint(weights["w"] / scale), -128, 127) * scale
    error = power = 0.0
    for feed in images():
        y, f = session.run(["y", "f"], feed)
        q = (np.clip(np.rint(f / step) + zero, 0, 255) - zero) * step
        bias = np.rint(weights["c"] / (step * scale[:, 0])) * (step * scale[:, 0])
        error += float(((q @ w.T + bias - y) ** 2).sum())
        power += float((y**2).sum())
    assert found.layers[0].relative == pytest.approx((error / power) ** 0.5, rel=1e-3)


@pytest.mark.slow
def test_a_method_is_taken_where_it_is_no_worse_than_all_of_the_values():
    plain = igniter.load(network()).quantize(images())
    for method in ("best", "entropy"):
        other = igniter.load(network()).quantize(images(), calibrate=method)
        assert other.error <= 1.05 * plain.error
        assert other.cut <= len(other.ranges)


def test_biases_make_up_for_mean_errors():
    """A convolution without a bias gets one, after which its results are right in the mean."""
    rng = np.random.default_rng(2)
    w = rng.uniform(0, 1, (4, 8, 1, 1)).astype(np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "c")],
        "g",
        [value("x", TensorProto.FLOAT, [1, 8, 16, 16])],
        [value("y", TensorProto.FLOAT, [1, 4, 16, 16])],
        [numpy_helper.from_array(w, "w")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    # Values that lie between codes, and are all rounded up.
    data = [{"x": np.where(rng.random((1, 8, 16, 16)) < 0.01, 255.0, 10.6).astype(np.float32)}]
    made, plain = igniter.load(proto), igniter.load(proto)
    assert made.quantize(data).error < 0.5 * plain.quantize(data, correct=False).error


def test_transformers_share_what_they_quantise():
    proto = encoder(layers=2)
    rng = np.random.default_rng(0)
    data = [{"ids": rng.integers(0, 100, (2, k)), "mask": np.ones((2, k), np.int64)} for k in (5, 9, 16)]
    module = igniter.load(proto)
    found = module.quantize(data)
    assert found.error < 0.01
    made = module.to_onnx()
    quantised = [n.input[0] for n in made.graph.node if n.op_type == "QuantizeLinear"]
    assert len(quantised) == len(set(quantised))


def test_a_weight_of_two_products_is_quantised_once():
    text = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 64] x) => (float[n, 64] y) {
        h = MatMul (x, w)
        t = Tanh (h)
        y = MatMul (t, w)
    }"""
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((64, 64), np.float32) / 8, "w"))
    data = [{"x": rng.standard_normal((4, 64), np.float32)}]
    module = igniter.load(proto)
    found = module.quantize(data)
    made = module.to_onnx()
    assert [i.name for i in made.graph.initializer if i.name.endswith(".codes")] == ["w.codes"]
    plain: dict[str, Any] = {"graph_optimization_level": GraphOptimizationLevel.ORT_DISABLE_ALL}
    outputs = [make_session(m.SerializeToString(), **plain).run(None, data[0])[0] for m in (proto, made)]
    assert 0 < np.sqrt(np.mean((outputs[0] - outputs[1]) ** 2) / np.mean(outputs[0] ** 2)) < 0.05
    assert len(found.layers) == 2


def test_the_largest_error_is_met_with_the_fewest_nodes_in_float():
    proto = network()
    everything = igniter.load(proto).quantize(images(), correct=False)
    module = igniter.load(proto)
    found = module.quantize(images(), max_error=everything.error / 1.5, correct=False)
    assert 0 < found.error <= everything.error / 1.5
    assert found.error == pytest.approx(measured(proto, module.to_onnx(), images()))
    worst = sorted(everything.layers, key=lambda e: -e.relative)
    assert found.floats == {e.name for e in worst[: len(found.floats)]}
    with pytest.raises(IgniterError, match="no choice of nodes meets an error of 1e-09"):
        igniter.load(proto).quantize(images(), max_error=1e-9)


def test_an_old_opset_is_converted():
    """The axis of Softmax means something else from opset 13 on; ONNX's converter writes it out."""
    proto = network(11, softmax=True)
    module = igniter.load(proto)
    found = module.quantize(images())
    assert found.error < 0.05
    assert module.to_onnx().opset_import[0].version >= 13
    assert igniter.load(proto).quantize(images(), granularity="tensor").error < 0.05


def test_samples_come_from_files_and_functions(tmp_path: Path):
    for number, feed in enumerate(images(3)):
        np.savez(tmp_path / f"{number}.npz", **feed)
    (tmp_path / "data.py").write_text(
        "import numpy as np\n\ndef feeds():\n    yield {'x': np.ones((1, 3, 8, 9), np.float32)}\n", encoding="utf-8"
    )
    assert igniter.load(network()).quantize(str(tmp_path)).samples == 3
    assert igniter.load(network()).quantize(tmp_path / "1.npz").samples == 1
    assert igniter.load(network()).quantize(f"{tmp_path}/data.py:feeds").samples == 1
    with pytest.raises(IgniterError, match="there are no samples at"):
        samples(str(tmp_path / "none"), ["x"])
    with pytest.raises(IgniterError, match="cannot take samples from no_such_module:feeds"):
        samples("no_such_module:feeds", ["x"])
    with pytest.raises(IgniterError, match="sample 0 lacks x; the inputs are x"):
        igniter.load(network()).quantize([{"z": np.ones(3)}])
    with pytest.raises(IgniterError, match="has no samples to calibrate on"):
        igniter.load(network()).quantize([])


def test_samples_are_never_kept():
    alive: list[int] = []

    class Counted(dict[str, Array]):
        def __init__(self, *given: Any):
            super().__init__(*given)
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    most = 0

    def feeds() -> Iterator[dict[str, Array]]:
        nonlocal most
        for feed in images(6):
            most = max(most, len(alive))
            yield Counted(feed)

    igniter.load(network()).quantize(feeds)
    assert most <= 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"calibrate": "average"},
            "ranges are found by min-max, entropy, percentile, distribution, best, not by 'average'",
        ),
        ({"percentile": 20}, "the percentile is over 50 and up to 100"),
        ({"activations": "i4"}, "activations are u8 or i8, not 'i4'"),
        ({"granularity": "block:32"}, "the granularity of weights is channel or tensor"),
        ({"ops": ["Relu"]}, "Relu cannot be quantised: ops that can are Conv"),
        ({"only": ["frist"]}, "'frist' names no node .* like it are first"),
        ({"leave": ["*"]}, "there is nothing to quantise"),
        ({"max_error": 0.0}, "is positive"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], said: str):
    with pytest.raises(IgniterError, match=said):
        igniter.load(network()).quantize(images(1), **options)


def test_compiled(tmp_path: Path):
    """Quantised models compile, and agree with ONNX Runtime."""
    module = igniter.load(network())
    module.quantize(images(), leave=["head"])
    artifact = module.compile(tmp_path / "m", shapes=[{"n": 2, "h": 8, "w": 9}])
    assert artifact.report["verification"]["status"] == "passed"
