"""Bound nodes among others: parameters that kernels compute, chains of carriers, subgraphs, and what goes back to
ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import igniter
from igniter.compiler.artifact import Artifact
from tests.values.bound import OPTIONS

X = np.random.default_rng(11).integers(0, 5, (6, 8)).astype(np.float32)

CHAIN = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 8] x) => (float[m, w] y, int64[2, c] places) {
    zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    a = Relu(x)
    top = ReduceMax<keepdims = 0>(a)
    rank1 = Reshape(top, one)
    end = Cast<to = 7>(rank1)
    head = Slice(a, zero, end, one)
    places = NonZero(head)
    size = Shape(places)
    two = Constant<value = int64[1] {2}>()
    count = Slice(size, one, two)
    target = Concat<axis = 0>(end, count)
    row = ReduceSum<keepdims = 1>(head)
    y = Expand(row, target)
}
"""

LOOP = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 8] x, int64[1] axis, int64 trips) => (float[a, b] y) {
    yes = Constant<value = bool {1}>()
    y = Loop(trips, yes, x) <body = b (int64 i, bool c, float[p, q] v) => (bool d, float[r, s] w) {
        d = Identity(c)
        t = ReduceSum<keepdims = 1>(v, axis)
        u = Relu(t)
        w = Sub(v, u)
    }>
}
"""


def compiled(text: str, **options: Any) -> tuple[Artifact, bytes]:
    model = onnx.parser.parse_model(text)
    return igniter.load(model).compile(options=OPTIONS, **options), model.SerializeToString()


def check(artifact: Artifact, model: bytes, feed: dict[str, np.ndarray[Any, Any]]) -> None:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    expected = onnxruntime.InferenceSession(model, settings).run(None, feed)
    for e, a in zip(expected, artifact.session(log_severity_level=4).run(None, feed), strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_values_that_kernels_compute() -> None:
    artifact, model = compiled(CHAIN, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    for x in (X, X[:3] * 0.5, X[:1] * 0):
        check(artifact, model, {"x": x})


def test_verification() -> None:
    artifact, _ = compiled(CHAIN, verify=True)
    assert artifact.report["verification"]["status"] == "passed"


def test_body_of_a_loop() -> None:
    artifact, model = compiled(LOOP, verify=False)
    for axis, trips in ((0, 3), (1, 2), (-1, 0)):
        feed = {"x": X, "axis": np.array([axis], np.int64), "trips": np.array(trips, np.int64)}
        check(artifact, model, feed)


def test_a_kernel_that_is_refused_leaves_a_model_of_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    import igniter.compiler.driver

    attempt = igniter.compiler.driver.compile_kernel

    def refuse(c: Any, kernel: Any, text: str) -> Any:
        if "tile" in text:
            raise igniter.IgniterError("not this one")
        return attempt(c, kernel, text)

    monkeypatch.setattr(igniter.compiler.driver, "compile_kernel", refuse)
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[n, 8] x, int64[2] repeats, int64[1] axes) => (float[a, b] y, float[c, d] z) {
        y = Tile(x, repeats)
        z = ReduceMax<keepdims = 1>(x, axes)
    }
    """
    artifact, model = compiled(text, verify=False)
    (left,) = [n for n in artifact.report["left_to_onnxruntime"] if n["op"] == "Tile"]
    assert "not this one" in left["reason"]
    check(artifact, model, {"x": X, "repeats": np.array([2, 3], np.int64), "axes": np.array([-2], np.int64)})
