"""Models by name: the sizes that each kind is run at, and its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmark.models import packaged, subjects
from benchmark.models.networks import NETWORKS
from benchmark.models.packaged import Packaged, image
from benchmark.models.subjects import PACKAGED, Sizes, check, names, subject
from benchmark.models.zoo import ARCHITECTURES
from benchmark.roofline import graph_of


def test_no_two_models_have_one_name() -> None:
    found = names()
    assert len(found) == len(set(found)) == len(ARCHITECTURES) + len(NETWORKS) + len(PACKAGED)
    assert not any(" " in name for name in found)


def test_a_name_that_no_model_has() -> None:
    check("mobilebert-uncased")
    with pytest.raises(ValueError, match="there is no model called 'resnet'; there are google/mobilebert-uncased, "):
        check("resnet")


def test_a_network(tmp_path: Path) -> None:
    found = subject("squeezenet1_1", tmp_path, Sizes(batch=[1, 2], sequence=[8], size=64))
    assert found.cases == ({"batch": 1, "size": 64}, {"batch": 2, "size": 64})
    assert found.without_effect == {"sequence"}
    assert {name: value.shape for name, value in found.feed(found.cases[1]).items()} == {"x": (2, 3, 64, 64)}
    assert onnx.load(found.file).graph.input[0].name == "x"
    # The first convolution is of 64 filters of 3x3x3, and gives 31x31.
    assert graph_of(found, tmp_path).steps(found.cases[1])[0].flops == 2 * 2 * 64 * 27 * 31 * 31


@pytest.mark.slow
def test_a_network_of_other_channels(tmp_path: Path) -> None:
    found = subject("vae_decoder", tmp_path, Sizes(size=8, channels=32))
    assert found.cases == ({"batch": 1, "size": 8, "channels": 32},)
    assert found.without_effect == frozenset()
    assert subject("resnet50", tmp_path, Sizes(size=32, channels=32)).without_effect == {"channels"}


def test_a_transformer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "ensure", lambda architecture, exporter: tmp_path / "model.onnx")
    found = subject("gpt2-decode", tmp_path, Sizes(sequence=[16, 32], size=8))
    assert found.cases == ({"batch": 1, "past": 16}, {"batch": 1, "past": 32})
    assert found.without_effect == {"size"}
    assert found.family == "gpt2"


def test_a_packaged_model_has_one_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Packaged("some net", "some", "net.onnx", {"x": image(1, 3, 8, 8)})
    value = helper.make_tensor_value_info
    # What the dims of the second value hang on is a name that nobody can compute with.
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("AveragePool", ["a"], ["y"], kernel_shape=[2, 2])],
        "g",
        [value("x", TensorProto.FLOAT, ["n", 3, None, "width"])],
        [value("y", TensorProto.FLOAT, ["n", 3, "floor(rows", "columns)"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "some").mkdir()
    onnx.save_model(model, tmp_path / "some" / "net.onnx")
    monkeypatch.setattr(packaged, "FOLDER", tmp_path)
    monkeypatch.setattr(subjects, "fetch", lambda package: None)
    monkeypatch.setitem(PACKAGED, "some-net", entry)
    found = subject("some-net", tmp_path, Sizes(batch=[4]))
    assert found.cases == ({"n": 1, "x.2": 8, "width": 8},)
    assert found.without_effect == {"batch"}
    assert found.noise == 0.0
    (x,) = found.feed(found.cases[0]).values()
    assert x.shape == (1, 3, 8, 8) and x.dtype == np.float32
    assert graph_of(found, tmp_path).steps({})[-1].tensors == (4 * 192, 4 * 147)
