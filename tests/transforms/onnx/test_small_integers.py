"""Models with integers of 2 and 4 bits, compiled, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from tests.conformance.node_cases import EVERYTHING

Array = np.ndarray[Any, Any]
CONTRIB = "com.microsoft"
FOUR = {"int4": (-8, 8), "uint4": (0, 16)}
RNG = np.random.default_rng(0)


def integers(kind: str, *dims: int) -> Array:
    low, high = {**FOUR, "int8": (-128, 128), "uint8": (0, 256)}[kind]
    return RNG.integers(low, high, dims).astype(getattr(ml_dtypes, kind) if kind in FOUR else kind)


def model_of(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Array], weights: Mapping[str, Array], opset: int = 21
) -> onnx.ModelProto:
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info("y")], tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def compiled(
    model: onnx.ModelProto, feed: Mapping[str, Array], told_by: str = "rewrite-small-integers"
) -> tuple[Array, list[str], list[str]]:
    """The result, what is left to ONNX Runtime, and what a pass says."""
    options = igniter.CompileOptions(fusion_passes=EVERYTHING)
    artifact = igniter.load(model).compile(options=options, verify=False)
    left = [each["op"] for each in artifact.report["left_to_onnxruntime"]]
    notes = [r["message"] for r in artifact.report["remarks"] if r["pass"] == told_by]
    return artifact.session().run(None, dict(feed))[0], left, notes


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize(
    ("rows", "columns", "axis", "block"),
    [
        (2, 256, 0, 32),
        (2, 37, 0, 32),
        (31, 256, 0, 32),
        (2, 256, 1, 32),
        (2, 64, 0, 48),
        (2, 64, 0, 272),
        (2, 64, 0, 24),
    ],
)
def test_weights_in_blocks(rows: int, columns: int, axis: int, block: int, kind: str, zeros: bool) -> None:
    """Products take them as they are stored, in blocks along the depth of a power of two or of several of 16; the
    reference is exact, as ONNX Runtime rounds the rows."""
    depth = 270
    blocks = (-(-depth // block), columns) if axis == 0 else (depth, -(-columns // block))
    weight, x = integers(kind, depth, columns), RNG.standard_normal((rows, 3, depth)).astype(np.float32)
    scale = RNG.uniform(0.5, 1, blocks).astype(np.float32) / 16
    weights = {"w": weight, "s": scale}
    if zeros:
        weights["z"] = integers(kind, *blocks)
    nodes = [
        helper.make_node("DequantizeLinear", list(weights), ["d"], axis=axis, block_size=block),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    got, left, notes = compiled(model_of(nodes, {"x": x}, weights), {"x": x}, "form-block-products")
    assert not left and notes == ["1 products read quantised weights directly"] * (axis == 0 and block != 24)
    points = weights["z"].astype(np.float64) if zeros else np.zeros(blocks)
    spread = [np.repeat(a, block, axis)[:depth, :columns] for a in (points, scale)]
    steps = (weight.astype(np.float64) - spread[0]) * spread[1]
    np.testing.assert_allclose(got, x @ steps, rtol=1e-4, atol=1e-4 * np.abs(x @ steps).max())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", FOUR)
def test_tables(kind: str, zeros: bool) -> None:
    ids, weights = np.array([[3, -1], [9, 0]]), {"w": integers(kind, 10, 48)}
    weights["s"] = RNG.uniform(0.5, 1, (10, 3)).astype(np.float32)
    if zeros:
        weights["z"] = integers(kind, 10, 3)
    names = ["w", "ids", "s", *(["z"] if zeros else [])]
    attrs = {"block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    model = model_of(
        [helper.make_node("GatherBlockQuantized", names, ["y"], domain=CONTRIB, **attrs)], {"ids": ids}, weights
    )
    got, left, notes = compiled(model, {"ids": ids})
    assert not left and notes == ["table of bytes"]
    np.testing.assert_array_equal(got, make_session(model.SerializeToString()).run(None, {"ids": ids})[0])


AWKWARD = np.float32([np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, 1e30, -1e30, -0.0, 0.25, 3.75])


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", FOUR)
@pytest.mark.parametrize("attrs", [{}, {"axis": 1}, {"axis": 1, "block_size": 3}], ids=["tensor", "axis", "blocks"])
def test_quantised_and_dequantised(attrs: dict[str, int], kind: str, zeros: bool) -> None:
    x = np.concatenate([RNG.standard_normal((4, 12)) * 5, AWKWARD[None]]).astype(np.float32)
    dims: tuple[int, ...] = (5, 4) if "block_size" in attrs else (12,) if attrs else ()
    weights = {"s": np.asarray(RNG.uniform(0.3, 1, dims), np.float32)}
    if zeros:
        weights["z"] = integers(kind, *dims)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, kind)))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *weights], ["q"], output_dtype=code, **attrs),
        helper.make_node("DequantizeLinear", ["q", *weights], ["y"], **attrs),
    ]
    model = model_of(nodes, {"x": x}, weights)
    got, left, notes = compiled(model, {"x": x})
    assert not left and notes == ["quantised to bytes"]
    wanted = make_session(model.SerializeToString()).run(None, {"x": x})[0]
    # With several scales, NaN and what passes an i32 wrap around in ONNX Runtime; here they become an end of the range.
    huge = np.zeros(x.shape, bool) if not attrs else ~(np.abs(x) < 1e9)
    np.testing.assert_array_equal(got[~huge], wanted[~huge])
    if attrs == {"axis": 1}:
        point = weights["z"].astype(np.float32) if zeros else np.float32(0)
        low, high = ((np.float32(end) - point) * weights["s"] for end in (FOUR[kind][0], FOUR[kind][1] - 1))
        np.testing.assert_array_equal(got[huge], np.where(x > 0, high, low)[huge])


def test_constants_are_folded() -> None:
    weight, x = integers("int4", 6, 5), RNG.standard_normal((5, 6)).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["t", "dims"], ["r"]),
        helper.make_node("Identity", ["r"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    model = model_of(nodes, {"x": x}, {"w": weight, "dims": np.array([5, 6])})
    got, left, _ = compiled(model, {"x": x})
    assert not left
    np.testing.assert_array_equal(got, x + weight.astype(np.float32).T)


def test_computed_tensors_of_few_bits_are_left() -> None:
    x = RNG.standard_normal((5, 7)).astype(np.float32) * 3
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, {"x": x}, {})
    artifact = igniter.compile(model, verify=False)
    reasons = [each["reason"] for each in artifact.report["left_to_onnxruntime"]]
    assert len(reasons) == 2 and all("several share a byte" in r for r in reasons)
    wanted = make_session(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(artifact.session().run(None, {"x": x})[0], wanted)
