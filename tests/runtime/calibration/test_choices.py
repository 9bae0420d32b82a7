"""What is chosen by error, and what chance does not decide: shrunk means, margins, and models as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.passes import run_passes
from igniter.runtime.session import make_session
from igniter.toolbox.quantize.calibration.corrections import shrunk
from igniter.toolbox.quantize.calibration.errors import OutputErrors
from igniter.toolbox.quantize.calibration.histogram import Histogram
from igniter.toolbox.quantize.calibration.range_choice import advantage, choose
from igniter.toolbox.quantize.quantize_model import QuantizeModel
from igniter.transforms.onnx.infer_shapes import InferShapes

Array = np.ndarray[Any, Any]

NORMALISED = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 3, 6, 6] x) => (float[n, 4, 6, 6] y) {
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    d = BatchNormalization (c, scale, offset, mean, var)
    y = Relu (d)
}"""

CALLS = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]> net (float[n, 8] x) => (float[n, 8] y) {
    a = local.dense (x, w)
    y = Tanh (a)
}
<domain: "local", opset_import: ["" : 17]> dense (v, k) => (r) { r = MatMul (v, k) }"""

BRANCHES = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 8] x, bool flag) => (float[n, 8] y) {
    a = MatMul (x, w)
    y = If (flag) <then_branch = one () => (float[n, 8] p) { p = MatMul (a, w) },
                   else_branch = two () => (float[n, 8] q) { q = Relu (a) }>
}"""


def with_weights(text: str, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    proto, rng = onnx.parser.parse_model(text), np.random.default_rng(0)
    for name, shape in shapes.items():
        values = rng.random(shape).astype(np.float32) + 0.1 if name == "var" else rng.standard_normal(shape) / 3
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
    return proto


def rows(count: int = 4, **more: Array) -> list[dict[str, Array]]:
    rng = np.random.default_rng(6)
    return [{"x": rng.standard_normal((3, 8)).astype(np.float32), **more} for _ in range(count)]


def errors(*each: float) -> OutputErrors:
    return OutputErrors({}, each)


def test_means_that_differ_from_sample_to_sample_are_chance():
    rng = np.random.default_rng(0)
    common = np.array([1.0, -2.0, 0.0])
    found = shrunk(common + 0.01 * rng.standard_normal((8, 3)), 100)
    assert found == pytest.approx(common, abs=0.02)
    noise = rng.standard_normal((8, 200))
    assert np.square(shrunk(noise, 100)).sum() < 0.5 * np.square(noise.mean(0)).sum()
    assert (shrunk(np.ones((1, 2)), 1) == 0).all()
    assert (shrunk(np.ones((1, 2)), 100) == 1).all()


def test_a_model_is_taken_where_it_is_better_beyond_chance():
    first = errors(0.1, 0.2, 0.1, 0.3)
    assert choose([first, errors(0.09, 0.19, 0.09, 0.28)]) == 1
    assert choose([first, errors(0.02, 0.7, 0.05, 0.4)]) == 0
    assert choose([first, errors(0.09, 0.19, 0.09, 0.28), errors(0.05, 0.1, 0.05, 0.15)]) == 2
    assert advantage(errors(0.1), errors(0.099)) < 0 < advantage(errors(0.1), errors(0.05))
    assert advantage(errors(0.1, 0.1), errors(float("inf"), 0.01)) == 0


def test_a_margin_is_what_samples_differ_by():
    histogram = Histogram()
    for top in (3.0, 5.0, 4.0, -1.0):
        histogram.add(np.array([0.0, top, -0.5], np.float32))
    assert (histogram.next_low, histogram.next_high) == (-0.5, 4.0)
    assert histogram.extent(False) == (-1.0, 5.0)
    assert histogram.extent(True) == (-1.5, 6.0)


def test_normalisations_are_folded_and_keep_the_name_of_the_convolution():
    proto = with_weights(NORMALISED, w=(4, 3, 3, 3), scale=(4,), offset=(4,), mean=(4,), var=(4,))
    proto.graph.node[0].name = "conv"
    rng = np.random.default_rng(0)
    data = [{"x": rng.standard_normal((1, 3, 6, 6)).astype(np.float32)} for _ in range(4)]
    module = igniter.load(proto)
    found = module.quantize(data, only=["conv"])
    assert [layer.name for layer in found.layers] == ["conv"]
    assert [n.op_type for n in module.to_onnx().graph.node if "Linear" not in n.op_type] == ["Conv", "Relu"]
    assert found.error < 0.02


def test_kernels_of_integers_give_integers():
    """A result that a node in float reads beside a convolution, and one that Relu bounds, are read as codes."""
    text = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 3, 6, 6] x) => (float[n, 3, 6, 6] y) {
        a = Conv (x, u)
        b = Conv (a, v)
        c = Relu (b)
        d = Add (a, c)
        y = Sqrt (d)
    }"""
    module = igniter.load(with_weights(text, u=(3, 3, 1, 1), v=(3, 3, 1, 1)))
    rng = np.random.default_rng(0)
    module.quantize([{"x": rng.random((1, 3, 6, 6)).astype(np.float32)} for _ in range(2)])
    made = module.to_onnx()
    by_name = {n.output[0]: n for n in made.graph.node}
    (added,) = (n for n in made.graph.node if n.op_type == "Add")
    assert [by_name[name].op_type for name in added.input] == ["DequantizeLinear", "DequantizeLinear"]
    assert sorted(n.input[0] for n in made.graph.node if n.op_type == "QuantizeLinear") == ["a", "c", "x"]


def test_a_factor_of_zeros_leaves_the_bias_exact():
    text = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 8] x) => (float[n, 8] y) {
        z = Sub (x, x)
        y = Gemm (z, w, b)
    }"""
    found = igniter.load(with_weights(text, w=(8, 8), b=(8,))).quantize(rows())
    assert found.error < 1e-3


def test_functions_are_inlined_and_branches_stay_in_float():
    module = igniter.load(with_weights(CALLS, w=(8, 8)))
    assert len(module.quantize(rows()).layers) == 1
    module = igniter.load(with_weights(BRANCHES, w=(8, 8)))
    found = module.quantize(rows(flag=np.array(True)))
    assert len(found.layers) == 1
    assert found.outside == (("p", "it is inside another node or a function, whose values are not calibrated"),)


def test_the_pass_does_what_the_command_did(tmp_path: Path):
    """The result of a calibration survives a file."""
    proto = with_weights(NORMALISED, w=(4, 3, 3, 3), scale=(4,), offset=(4,), mean=(4,), var=(4,))
    rng = np.random.default_rng(0)
    sizes = np.array([1.0, 0.02, 5.0], np.float32).reshape(1, 3, 1, 1)
    data = [{"x": rng.standard_normal((1, 3, 6, 6)).astype(np.float32) * sizes} for _ in range(8)]
    module = igniter.load(proto)
    found = module.quantize(data)
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps(found.parameters.as_dict()), encoding="utf-8")
    other = igniter.load(proto)
    run_passes(other.ctx, other.ir, (InferShapes(), QuantizeModel(str(path))))
    results = [make_session(m.to_onnx().SerializeToString()).run(None, data[0])[0] for m in (module, other)]
    np.testing.assert_array_equal(*results)


def test_the_largest_error_is_met_on_what_was_held_out():
    proto = with_weights(CALLS.replace("Tanh (a)", "MatMul (a, v)"), w=(8, 8), v=(8, 8))
    held = [{"x": 20 * feed["x"]} for feed in rows(2)]
    found = igniter.load(proto).quantize(rows(), held=held)
    assert found.held is not None
    assert max(found.held.values()) > 10 * found.error
    with pytest.raises(IgniterError, match="no choice of nodes meets"):
        igniter.load(proto).quantize(rows(), held=held, max_error=2 * found.error)
    largest = max(found.held.values())
    kept = igniter.load(proto).quantize(rows(), held=held, max_error=0.999 * largest)
    assert kept.floats
    assert max(kept.held.values()) <= 0.999 * largest  # pyright: ignore[reportOptionalMemberAccess]
