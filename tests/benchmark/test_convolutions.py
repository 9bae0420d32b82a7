"""The layers of networks one by one: which there are, the models of them, and what is made of their times."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmark.convolutions import UNARY, cells, layers, row_of, torch_layers, totals, write_csv
from benchmark.models.builder import GAINS, Layers
from benchmark.models.counts import multiply_adds
from benchmark.models.networks import NETWORKS
from benchmark.models.single_layers import Layer, layers_of, model_of
from benchmark.peers.race import Result
from benchmark.peers.systems import LEFT_TO_ORT
from igniter.runtime.session import make_session

STRIDED = Layer(8, 16, (9, 11), (3, 5), (2, 1), (1, 2, 1, 2), group=4, activation="Silu")


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "inception_v3", "shufflenet_v1", "yolov8n"])
def test_the_layers_are_all_of_the_network(name: str) -> None:
    model = NETWORKS[name](values=False)
    found = layers_of(model, {"batch": 3})
    classes = {"yolov8n": 0, "mobilenet_v2": 1280, "shufflenet_v1": 544}.get(name, 2048) * 1000
    assert sum(n * layer.multiply_adds for layer, n in found.items()) + classes == multiply_adds(model, {"batch": 1})
    assert sum(found.values()) == sum(node.op_type == "Conv" for node in model.graph.node)


def test_activations_behind_them() -> None:
    b = Layers()
    x = b.image(8)
    for act in GAINS:
        x = b.conv(x, 4, act=act)
    # Here the sum takes what the convolution gives, and nobody takes the sum's.
    other = b.conv(x, 4)
    found = layers_of(b.model(b.add(other, x).name), {"batch": 1})
    # The first takes three channels; the last is of the same kind as the one without an activation would be.
    assert [(layer.inputs, layer.activation) for layer in found] == [(3, ""), *((4, a) for a in GAINS if a), (4, "")]


def test_their_names() -> None:
    assert str(Layer(64, 256, (56, 56), (1, 1), activation="Relu")) == "64x56x56 to 256, 1x1, Relu"
    assert str(STRIDED) == "8x9x11 to 16, 3x5, strides 2x1, 4 groups, Silu"
    same = Layer(32, 32, (7, 7), (3, 3), (2, 2), (0, 0, 1, 1), group=32)
    assert str(same) == "32x7x7 to 32, 3x3, stride 2, depthwise, pads 0x0x1x1"
    assert len({str(layer) for layer in layers("resnet50", None, 1)}) == len(layers("resnet50", None, 1))  # type: ignore[arg-type]


def test_a_layer_as_a_model() -> None:
    assert STRIDED.result == (5, 11)
    assert STRIDED.multiply_adds == 16 * 5 * 11 * 2 * 15
    assert STRIDED.bytes(2) == 4 * (2 * (8 * 99 + 16 * 55) + 16 * 31)
    model = model_of(STRIDED)
    assert layers_of(model, {"batch": 2}) == {STRIDED: 1}
    (y,) = make_session(model.SerializeToString()).run(None, {"x": np.ones((2, 8, 9, 11), np.float32)})
    assert y.shape == (2, 16, 5, 11)


def test_a_layer_that_follows_itself() -> None:
    layer = Layer(4, 4, (6, 6), (3, 3), pads=(1, 1, 1, 1), activation="Relu")
    assert layer.follows_itself and not STRIDED.follows_itself
    assert layers_of(model_of(layer, 5), {"batch": 1}) == {layer: 5}


def test_pads_that_are_not_written_out() -> None:
    value = helper.make_tensor_value_info
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="first", auto_pad="SAME_UPPER")
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [value("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ValueError, match="first: pads of SAME_UPPER are not written out here"):
        layers_of(model, {})


@pytest.mark.parametrize("activation", UNARY)
def test_onednn_computes_the_same(activation: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = Layer(8, 8, (9, 11), (3, 3), pads=(1, 1, 1, 1), group=2, activation=activation)
    path = tmp_path / "layer.onnx"
    onnx.save_model(model_of(layer, 2), path)
    image = np.random.default_rng(0).standard_normal((2, 8, 9, 11)).astype(np.float32)
    (want,) = make_session(path).run(None, {"x": image})
    run = torch_layers(str(path), activation)
    for _ in range(2):
        assert np.abs(want - run(torch.from_numpy(image)).numpy()).max() < 1e-5 * np.abs(want).max()


def test_every_activation_has_a_name_there() -> None:
    assert UNARY.keys() == GAINS.keys()


def made_row(layer: Layer, repeat: int = 1) -> dict[str, object]:
    results = [
        Result("ort", "ort", turns=[110e-6, 112e-6, 108e-6]),
        Result("igniter", "igniter", note=LEFT_TO_ORT, turns=[60e-6]),
        Result("torch", "torch", turns=[15e-6]),
        Result("openvino", "openvino", reason="openvino is not installed"),
        Result("ort again", "ort", turns=[10.5e-6]),
    ]
    calls = {"ort": 10e-6, "igniter": 10e-6, "torch": 10e-6, "ort again": 10e-6}
    return row_of(layer, 1, 1, repeat, results, calls, peak=100e9, reading=50e9)


def test_calls_are_subtracted() -> None:
    layer = Layer(64, 64, (14, 14), (1, 1))
    row = made_row(layer)
    ort, igniter, torch = (row["systems"][n] for n in ("ort", "igniter", "torch"))  # type: ignore[index]
    assert row["bound_by"] == "arithmetic" and row["limit_us"] == pytest.approx(2 * 64 * 64 * 196 / 100e3)
    assert ort["us"] == pytest.approx(100) and igniter["us"] == pytest.approx(50)
    assert ort["share"] == pytest.approx(2 * 64 * 64 * 196 / 100e3 / 100)
    assert not ort["doubtful"] and torch["doubtful"]
    assert cells({**row, "count": 3}) == [
        "64x14x14 to 64, 1x1", "3", "100.0us 16 16%", "=50.0us 32 32%", "~5.0us 321 321%", "-", "a call",
        "16.1us 100 GFLOP/s",
    ]  # fmt: skip
    assert made_row(layer, 4)["systems"]["ort"]["us"] == pytest.approx(25)  # type: ignore[index]


def test_a_layer_bound_by_its_bytes() -> None:
    layer = Layer(64, 64, (14, 14), (3, 3), pads=(1, 1, 1, 1), group=64)
    row = made_row(layer)
    assert row["bound_by"] == "bytes" and row["limit_us"] == pytest.approx(layer.bytes(1) / 50e3)
    assert cells({**row, "count": 1})[-1] == "2.1us 50 GB/s"


def test_totals_are_of_every_layer_as_often_as_there_is_one() -> None:
    row = made_row(Layer(64, 64, (14, 14), (1, 1)))
    found = totals([{**row, "count": 3}, {**row, "count": 2}], ["ort", "igniter", "openvino", "ort again"])
    assert found == ["all of them", "5", "0.50ms 1.00x", "0.25ms 0.50x", "-", "-", "0.08ms"]


def test_a_line_of_csv_for_every_system(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv([{**made_row(Layer(64, 64, (14, 14), (1, 1))), "model": "net", "count": 3}])
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [line["system"] for line in lines] == ["ort", "igniter", "torch", "openvino", "ort again"]
    assert lines[0]["layer"] == "64x14x14 to 64, 1x1" and float(lines[0]["us"]) == pytest.approx(100)
    assert lines[3]["reason"] == "openvino is not installed" and lines[3]["us"] == ""
