"""Models in bf16 and int8: the errors that rounding leaves, and no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.runtime.session import make_session

RNG = np.random.default_rng(5)


def model(kind: str, depth: int, columns: int, opset: int = 17) -> bytes:
    """Two products with one weight, or a Gemm, with an activation between them."""
    w = (RNG.standard_normal((depth, columns)) / np.sqrt(depth)).astype(np.float32)
    c = RNG.standard_normal(columns).astype(np.float32)
    weights = [numpy_helper.from_array(w if kind != "transposed" else w.T.copy(), "w"), numpy_helper.from_array(c, "c")]
    if kind == "twice":
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Tanh", ["m"], ["t"]),
            helper.make_node("MatMul", ["t", "w"], ["y"]),
        ]
    elif kind == "transposed":
        nodes = [helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1)]
    else:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "c"], ["y"])]
    dims = ["n", depth] if kind == "transposed" else ["b", "n", depth]
    out = [*dims[:-1], columns]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        weights,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(proto)
    return proto.SerializeToString()


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize(("precision", "bound"), [("bf16", 1e-2), ("int8-dynamic", 3e-2)])
@pytest.mark.parametrize(
    ("kind", "depth", "columns"),
    [("plain", 64, 48), ("plain", 100, 37), ("twice", 64, 64), ("transposed", 128, 80), ("plain", 7, 32)],
)
def test_errors_are_those_of_rounding(
    precision: str, bound: float, kind: str, depth: int, columns: int, opset: int, tmp_path: Path
) -> None:
    source = model(kind, depth, columns, opset)
    artifact = igniter.compile(source, tmp_path / "out", precision=precision, verify=False, strict=True)
    session, reference = artifact.session(), make_session(source)
    for rows in (1, 2, 17, 0):
        shape = (rows, depth) if kind == "transposed" else (2, rows, depth)
        x = RNG.standard_normal(shape).astype(np.float32)
        if rows == 17:
            x[..., 3, :] = 0.0
        (expected,), (actual,) = reference.run(None, {"x": x}), session.run(None, {"x": x})
        assert actual.shape == expected.shape
        error = np.max(np.abs(actual - expected), initial=0.0) / max(1e-9, np.max(np.abs(expected), initial=0.0))
        assert error <= bound
        if rows == 17 and depth % 4 == 0:
            assert error > 1e-6, "nothing was rounded"


def test_what_is_not_finite_stays_so(tmp_path: Path) -> None:
    source = model("plain", 64, 32)
    x = RNG.standard_normal((1, 4, 64)).astype(np.float32)
    x[0, 1, 5], x[0, 2, 7] = np.nan, np.inf
    for precision in ("bf16", "int8-dynamic"):
        artifact = igniter.compile(source, tmp_path / precision, precision=precision, verify=False, strict=True)
        (y,) = artifact.session().run(None, {"x": x})
        assert not np.isfinite(y[0, 1]).any() and not np.isfinite(y[0, 2]).any()
        assert np.isfinite(y[0, 0]).all() and np.isfinite(y[0, 3]).all()


def test_the_report_says_the_precision_and_verify_its_error(tmp_path: Path) -> None:
    artifact = igniter.compile(model("plain", 64, 48), tmp_path / "out", precision="int8-dynamic")
    assert artifact.report["options"]["precision"] == "int8-dynamic"
    verification = artifact.verify()
    assert verification.ok
    assert 1e-4 < max(verification.max_errors.values()) < 5e-2


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match="int8-dynamic"):
        igniter.compile(model("plain", 64, 48), tmp_path / "out", precision="int3")


@pytest.mark.parametrize("precision", ["bf16", "int8-dynamic"])
def test_an_old_opset_is_raised(precision: str, tmp_path: Path) -> None:
    artifact = igniter.compile(model("plain", 64, 48, opset=11), tmp_path / "out", precision=precision)
    (said,) = [r for r in artifact.report["remarks"] if r["pass"] == "lower-precision"]
    assert said["message"] == f"1 products in {precision}"


def test_why_nothing_is_in_fewer_bits(tmp_path: Path) -> None:
    """Softmax was another op before opset 13, so that the model stays there; and 7 columns are too few."""
    proto = onnx.ModelProto.FromString(model("plain", 64, 48, opset=11))
    proto.graph.node.append(helper.make_node("Softmax", ["m"], ["z"], "soft", axis=1))
    proto.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["b", "n", 48]))
    for source, why in (
        (proto.SerializeToString(), "it needs opset 13, and Softmax 'soft' differs between opset 13"),
        (model("plain", 64, 7), "no product is of f32 with a constant matrix of at least 16 columns"),
    ):
        artifact = igniter.compile(source, precision="bf16", verify=False)
        (said,) = [r for r in artifact.report["remarks"] if r["pass"] == "lower-precision"]
        assert said["message"].startswith(f"0 products in bf16: {why}")


ON_TILES = (
    "form-half-products{min-elements=1},form-fusion-regions,narrow-convolutions{half-tiles=true},choose-layouts,"
    "lift-constants,pack-weights"
)


def convolutions(group: int = 1, channels: int = 32) -> onnx.ModelProto:
    """Convolutions of 3 x 3, 1 x 1 and with a stride, with bias, activation and a residual."""
    filters = {
        "w3": (channels, channels // group, 3, 3),
        "w1": (channels, channels // group, 1, 1),
        "bias": (channels,),
    }
    weights = [
        numpy_helper.from_array((RNG.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype(np.float32), name)
        for name, dims in filters.items()
    ]
    conv = lambda inputs, output, **attrs: helper.make_node("Conv", inputs, [output], group=group, **attrs)
    nodes = [
        conv(["x", "w3", "bias"], "a", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        conv(["b", "w1"], "c"),
        helper.make_node("Add", ["c", "b"], ["d"]),
        conv(["d", "w3", "bias"], "y", pads=[2, 0, 1, 1], strides=[2, 1], dilations=[1, 2]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", channels, "h", 13])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("group", "channels"), [(1, 32), (2, 32), (1, 34), (4, 32)])
def test_convolutions_in_bf16(group: int, channels: int, tmp_path: Path) -> None:
    """As where tiles multiply bf16: factors are rounded, sums are f32. Groups of eight columns stay f32."""
    source = convolutions(group, channels)
    lowered = "infer-shapes,lower-precision{to=bf16 half-tiles=true}"
    module = igniter.load(source).run_passes(lowered)
    rounded = sum(str(module).count(f"{n}.bf16 = onnx.Constant") for n in ("w3", "w1"))
    assert rounded == (2 if channels // group >= 16 else 0)
    # The residual reads the image that the convolution reads: one rounding, and one tensor of 16 bits.
    assert str(module).count("{to = 16 : i64}") == (3 if rounded else 0)
    assert ("onnx.Add(%c, %b)" in str(module)) == (not rounded)
    options = igniter.CompileOptions(onnx_passes=lowered, fusion_passes=ON_TILES)
    artifact = igniter.compile(source, tmp_path / "out", options=options, verify=False)
    assert [node.domain for node in onnx.load(artifact.model_path).graph.node if not node.domain] == []
    applied = [r for r in artifact.report["remarks"] if r["pass"] == "narrow-convolutions"]
    assert len(applied) == (3 if rounded else 0)
    session, reference = artifact.session(), make_session(source.SerializeToString())
    for n, h in ((1, 5), (2, 16), (0, 7)):
        x = RNG.standard_normal((n, channels, h, 13)).astype(np.float32)
        (expected,), (actual,) = reference.run(None, {"x": x}), session.run(None, {"x": x})
        assert actual.shape == expected.shape
        error = np.max(np.abs(actual - expected), initial=0.0) / max(1e-9, np.max(np.abs(expected), initial=0.0))
        assert error <= (1e-2 if rounded else 1e-5)
        assert not rounded or n == 0 or error > 1e-6, "nothing was rounded"


@pytest.mark.parametrize(
    ("rank", "group", "depth", "columns", "side", "attrs"),
    [
        (1, 1, 32, 48, 3, {"pads": [1, 1]}),
        (1, 1, 2, 64, 8, {"strides": [4]}),
        (2, 2, 16, 48, 3, {"pads": [1, 1, 1, 1]}),
        (2, 1, 32, 32, 3, {"dilations": [6, 6], "pads": [6, 6, 6, 6]}),
    ],
    ids=["signal", "long windows", "groups that fill no panels", "dilated"],
)
def test_other_convolutions_in_bf16(
    rank: int, group: int, depth: int, columns: int, side: int, attrs: dict[str, list[int]], tmp_path: Path
) -> None:
    w = (RNG.standard_normal((columns, depth, *[side] * rank)) / np.sqrt(depth * side**rank)).astype(np.float32)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["y"], group=group, **attrs),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", depth * group, *["a", "b"][:rank]])
    weights = [numpy_helper.from_array(w, "w")]
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], weights)
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = igniter.CompileOptions(
        onnx_passes="infer-shapes,lower-precision{to=bf16 half-tiles=true}", fusion_passes=ON_TILES
    )
    artifact = igniter.compile(source, tmp_path / "out", options=options, verify=False)
    assert [r["node"] for r in artifact.report["remarks"] if r["pass"] == "narrow-convolutions"] == ["y"]
    session, reference = artifact.session(), make_session(source.SerializeToString())
    for n, places in ((1, 9), (2, 40), (0, 9)):
        x = RNG.standard_normal((n, depth * group, *[places] * rank)).astype(np.float32)
        (expected,), (actual,) = reference.run(None, {"x": x}), session.run(None, {"x": x})
        assert actual.shape == expected.shape
        assert np.max(np.abs(actual - expected), initial=0.0) <= 1e-2 * np.max(np.abs(expected), initial=0.0)
