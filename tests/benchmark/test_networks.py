"""The networks that code writes out: they have what the published ones have, and what they compute means something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime import GraphOptimizationLevel

from benchmark.models.builder import Layers
from benchmark.models.counts import multiply_adds, parameters, shapes
from benchmark.models.networks import NETWORKS
from igniter.runtime.session import make_session

Array = np.ndarray[Any, Any]

PUBLISHED = {
    "resnet50": (25_557_032, 4.09),
    "vgg16": (138_357_544, 15.47),
    "densenet121": (7_978_856, 2.83),
    "inception_v3": (23_834_568, 5.71),
    "squeezenet1_1": (1_235_496, 0.35),
    "shufflenet_v2": (2_278_604, 0.145),
    "mobilenet_v2": (3_504_872, 0.30),
    "mobilenet_v3_large": (5_483_032, 0.217),
    "efficientnet_b0": (5_288_548, 0.386),
    "convnext_tiny": (28_589_128, 4.46),
    "swin_tiny": (28_288_354, 4.49),
    "vit_base": (86_567_656, 17.56),
    "yolov8n": (3_157_200, 4.37),
    "unet": (859_520_964, 401.6),
    "vae_decoder": (49_490_199, 1257.3),
}
"""Parameters and billions of multiply-adds: torchvision's, ultralytics' (whose count of operations is twice that) and
diffusers' parameters. Nobody publishes one count of the multiply-adds of the last two: those are ours."""

SMALL: dict[str, dict[str, int]] = {
    "inception_v3": {"size": 139},
    "swin_tiny": {"size": 224},
    "unet": {"size": 16, "channels": 32},
    "vae_decoder": {"size": 8, "channels": 32},
}
"""Sizes that a test has time for, where they are not 64."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_the_published_ones(name: str) -> None:
    # Without values: the largest has 3.4 GB of them.
    model = NETWORKS[name](folded=False, values=False)
    assert parameters(model) == PUBLISHED[name][0]
    assert multiply_adds(model, {"batch": 1}) / 1e9 == pytest.approx(PUBLISHED[name][1], rel=0.02)
    assert multiply_adds(model, {"batch": 3}) == 3 * multiply_adds(model, {"batch": 1})


@pytest.mark.parametrize(("name", "same"), [("shufflenet_v1", "shufflenet"), ("densenet121", "densenet121")])
def test_layers_are_those_of_the_models_of_onnx(name: str, same: str) -> None:
    file = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{same}.onnx"
    assert _convolutions(NETWORKS[name](folded=False, values=False)) == _convolutions(onnx.load(file))


def _convolutions(model: onnx.ModelProto) -> Counter[Any]:
    """Shapes of weights, strides, pads and groups of all but a last layer, and how many of some other nodes there are.

    The models of onnx have a convolution or a pool where ours have a Gemm and the means of the image.
    """
    dims: dict[str, Any] = {w.name: tuple(w.dims) for w in model.graph.initializer}
    values = {w.name: w for w in model.graph.initializer}
    found: Counter[Any] = Counter()
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "ConstantOfShape":
            dims[node.output[0]] = tuple(numpy_helper.to_array(values[node.input[0]]).tolist())
        elif node.op_type == "Conv":
            geometry = (tuple(attributes["strides"]), tuple(attributes["pads"]), attributes.get("group", 1))
            shape = dims[node.input[1]]
            found[shape, *geometry] += shape[0] != 1000
        elif node.op_type in ("BatchNormalization", "MaxPool", "Relu"):
            found[node.op_type] += 1
    return +found


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_sane_and_hang_on_the_inputs(name: str) -> None:
    model = NETWORKS[name](**_small(name))
    first, second = _inputs(model, 1), _inputs(model, 2)
    run = _runner(model)
    found = run(first)
    assert np.isfinite(found).all()
    # A box is as large as a picture.
    assert 0.1 < np.abs(found).max() < 1000
    scale = np.abs(found).max()
    # Two pictures of a batch, and two batches.
    assert np.abs(found[0] - found[1]).max() > 0.01 * scale
    assert np.abs(found - run(second)).max() > 0.01 * scale
    alone = run({name: value[:1] for name, value in first.items()})
    assert np.abs(alone - found[:1]).max() < 1e-4 * scale


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "densenet121", "mobilenet_v3_large", "shufflenet_v2", "yolov8n"])
def test_folding_batch_normalisation_changes_nothing(name: str) -> None:
    folded, plain = (NETWORKS[name](**_small(name), folded=f) for f in (True, False))
    count = Counter(n.op_type for n in plain.graph.node)["BatchNormalization"]
    left = Counter(n.op_type for n in folded.graph.node)["BatchNormalization"]
    # Those of DenseNet that stand in front of a convolution cannot be folded.
    assert left == (62 if name == "densenet121" else 0) < count
    inputs = _inputs(folded, 1)
    want, got = _runner(plain, optimised=False)(inputs), _runner(folded)(inputs)
    assert np.abs(want - got).max() < 1e-4 * np.abs(want).max()


def test_batch_normalisation_does_something() -> None:
    b = Layers(folded=False)
    normal = b.conv(b.image(8), 16, 3)
    weights = {w.name: numpy_helper.to_array(w) for w in b.model(normal.name).graph.initializer}
    scale, bias, mean, variance = list(weights.values())[-4:]
    for values, neutral in ((scale, 1.0), (bias, 0.0), (mean, 0.0), (variance, 1.0)):
        assert np.abs(values - neutral).mean() > 0.03
    assert variance.min() > 0.5


@pytest.mark.slow
def test_the_noise_hangs_on_every_input() -> None:
    model = NETWORKS["unet"](**SMALL["unet"])
    inputs, others = _inputs(model, 1), _inputs(model, 2)
    run = _runner(model)
    want = run(inputs)
    for changed in inputs:
        assert np.abs(want - run({**inputs, changed: others[changed]})).max() > 0.01 * np.abs(want).max()


def test_windows_fill_the_image() -> None:
    with pytest.raises(ValueError, match="windows of 7x7 do not fill images of 256x256: take a multiple of 224"):
        NETWORKS["swin_tiny"](size=256)


def test_shapes_of_values() -> None:
    b = Layers()
    x = b.conv(b.image(8), 16, 3, 2, "Relu")
    found = shapes(b.model(x.name), {"batch": 5})
    assert found["x"] == (5, 3, 8, 8)
    assert found[x.name] == (5, 16, 4, 4)


def _small(name: str) -> dict[str, int]:
    return SMALL.get(name, {"size": 64})


def _inputs(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    dims = {v.name: [d.dim_value or 2 for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in dims.items()}
    return {name: 100 * np.abs(value) if name == "timestep" else value for name, value in made.items()}


def _runner(model: onnx.ModelProto, optimised: bool = True) -> Callable[[dict[str, Array]], Array]:
    level = GraphOptimizationLevel.ORT_ENABLE_ALL if optimised else GraphOptimizationLevel.ORT_DISABLE_ALL
    session = make_session(model.SerializeToString(), graph_optimization_level=level, intra_op_num_threads=1)
    return lambda inputs: session.run(None, inputs)[0]
