"""GPTQ keeps products over samples better than rounding does, in every layout of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import igniter
from benchmark.models.decoders import Decoder
from igniter.analysis.onnx.weight_codes import Coding
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.toolbox.compress.gptq import Factor, corrected
from igniter.toolbox.generate.model_folder import open_model
from igniter.toolbox.generate.samples import feed

DEPTH, COLUMNS, ROWS = 96, 40, 400


def correlated(seed: int, rows: int = ROWS, depth: int = DEPTH) -> Any:
    """Samples whose inputs are correlated, with a few large ones, as activations are."""
    mixing, random = np.random.default_rng(99).standard_normal((depth // 4, depth)), np.random.default_rng(seed)
    found = random.standard_normal((rows, depth // 4)) @ mixing + 0.2 * random.standard_normal((rows, depth))
    return (found * np.where(np.arange(depth) % 17 == 0, 5.0, 1.0)).astype(np.float32)


def rounded(weight: Any, coding: Coding) -> Any:
    from igniter.analysis.onnx.weight_codes import codes_of
    from igniter.dialects.onnx.weights import Weight

    return np.concatenate([decoded for _, _, _, decoded in codes_of(Weight.of(weight), coding)])


@pytest.mark.parametrize("symmetric", (False, True))
@pytest.mark.parametrize("block", (0, 16, 32, 40))
def test_products_over_samples_are_kept(symmetric: bool, block: int):
    x, weight = correlated(0), np.random.default_rng(1).standard_normal((DEPTH, COLUMNS)).astype(np.float32)
    coding = Coding(4, 0 if block else 1, block, symmetric)
    fixed = corrected(weight, Factor.of(x.T @ x), coding)
    assert fixed.codes.min() >= coding.least and fixed.codes.max() <= coding.greatest
    assert fixed.scales.shape == fixed.zeros.shape == (-(-DEPTH // (block or DEPTH)), COLUMNS)
    spread = [np.repeat(p, block or DEPTH, axis=0)[:DEPTH] for p in (fixed.scales, fixed.zeros)]
    decoded = (fixed.codes - spread[1]) * spread[0]
    fresh = correlated(2)
    errors = [np.square(fresh @ (w - weight)).sum() for w in (decoded, rounded(weight, coding))]
    assert errors[0] < 0.5 * errors[1]


def model(tmp_path: Path, kind: str, element: Any = np.float32) -> Path:
    """A product with a weight: of MatMul, of a Gemm with its weight transposed, or with a Transpose between."""
    random = np.random.default_rng(3)
    weight = random.standard_normal((DEPTH, COLUMNS)).astype(element)
    stored = weight if kind == "MatMul" else np.ascontiguousarray(weight.T)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    nodes = {
        "MatMul": [helper.make_node("MatMul", ["h", "w"], ["y"])],
        "Gemm": [helper.make_node("Gemm", ["h", "w"], ["y"], transB=1)],
        "Transpose": [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["h", "t"], ["y"])],
    }[kind]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["h"]), *nodes],
        "g",
        [info("x", code, ["n", DEPTH])],
        [info("y", code, ["n", COLUMNS])],
        [numpy_helper.from_array(stored, "w")],
    )
    path = tmp_path / f"{kind}.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


@pytest.mark.parametrize("kind", ("MatMul", "Gemm", "Transpose"))
@pytest.mark.parametrize("options", ({}, {"symmetric": True}, {"standard": True}, {"granularity": "channel"}))
def test_the_model_has_the_codes(kind: str, options: dict[str, Any], tmp_path: Path):
    path, data = model(tmp_path, kind), [{"x": part} for part in np.split(correlated(0), 4)]
    given: dict[str, Any] = {"granularity": "block:32", "min_elements": 16, **options}
    fresh = correlated(2)
    run = {}
    for name, more in (("rounded", {}), ("corrected", {"correct": "gptq", "data": data})):
        module = igniter.load(path).compress("int4", **given, **more)
        module.save(tmp_path / f"{name}.onnx")
        run[name] = onnxruntime.InferenceSession(str(tmp_path / f"{name}.onnx")).run(None, {"x": fresh})[0]
    exact = onnxruntime.InferenceSession(str(path)).run(None, {"x": fresh})[0]
    errors = {name: float(np.square(np.asarray(y) - exact).sum()) for name, y in run.items()}
    assert errors["corrected"] < 0.6 * errors["rounded"]
    (told,) = [r for r in module.remarks.of("compress-weights") if r.kind == "applied"]
    assert told.details["corrected"] is True


def test_eight_bits_and_halves(tmp_path: Path):
    data = [{"x": correlated(0)}]
    for element, weights in ((np.float32, "int8"), (np.float16, "int4")):
        path = model(tmp_path, "MatMul", element)
        feeds = [{"x": d["x"].astype(element)} for d in data]
        module = igniter.load(path).compress(weights, "block:32", min_elements=16, correct="gptq", data=feeds)
        module.save(tmp_path / "out.onnx")
        exact, found = (
            np.asarray(onnxruntime.InferenceSession(str(p)).run(None, feeds[0])[0], np.float32)
            for p in (path, tmp_path / "out.onnx")
        )
        limit = 0.01 if weights == "int8" else 0.1
        assert np.abs(found - exact).max() < limit * np.abs(exact).max()


def test_an_input_that_is_always_zero():
    x, weight = correlated(0), np.random.default_rng(1).standard_normal((DEPTH, COLUMNS)).astype(np.float32)
    x[:, 5] = 0.0
    fixed = corrected(weight, Factor.of(x.T @ x), Coding(4, 0, 32, False))
    assert np.isfinite(fixed.scales).all()
    assert np.isfinite(
        corrected(weight, Factor.of(np.zeros((DEPTH, DEPTH), np.float32)), Coding(4, 0, 32)).scales
    ).all()


def test_data_and_correction_come_together(tmp_path: Path):
    path = model(tmp_path, "MatMul")
    with pytest.raises(IgniterError, match="give both data and correct='gptq', or neither"):
        igniter.load(path).compress("int4", correct="gptq")
    with pytest.raises(IgniterError, match="give both data and correct='gptq', or neither"):
        igniter.load(path).compress("int4", data=[{"x": correlated(0)}])


def test_a_weight_that_is_not_corrected_says_why(tmp_path: Path):
    module = igniter.load(model(tmp_path, "MatMul"))
    module.compress("int4", "tensor", min_elements=16, correct="gptq", data=[{"x": correlated(0)}])
    (told,) = [r for r in module.remarks.of("compress-weights") if r.kind == "applied"]
    assert "scale for each channel or block" in told.details["uncorrected"] and "corrected" not in told.details


def test_a_weight_that_is_left_is_not_corrected(tmp_path: Path):
    """A decoder's embedding stays in f32, and every product gets its codes."""
    onnx.save(Decoder().model("shared"), tmp_path / "model.onnx")
    random, opened = np.random.default_rng(0), open_model(tmp_path / "model.onnx")
    data = [feed(opened.graph, random.integers(0, 64, 32).tolist()) for _ in range(3)]
    module = igniter.load(tmp_path / "model.onnx")
    module.compress("int4", "block:32", min_elements=64, leave=["Gather"], correct="gptq", data=data)
    told = [r for r in module.remarks.of("compress-weights") if r.kind == "applied"]
    # Two layers of five products, and the logits.
    assert len(told) == 11 and all(r.details["corrected"] for r in told)
    module.save(tmp_path / "small.onnx")
    names = [value.name for value in opened.session.get_outputs()]
    found = dict(zip(names, make_session(tmp_path / "small.onnx").run(names, data[0]), strict=True))
    exact = opened.session.run(["logits"], data[0])[0]
    assert np.abs(found["logits"] - exact).mean() < 0.5 * np.abs(exact).mean()
