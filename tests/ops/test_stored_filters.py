"""Convolutions whose filters are stored as floats of 16 bits: the numbers of f32, at half the size."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session

Array = np.ndarray[Any, Any]


def convolution(filters: Array, element: str, size: int | str, **attributes: Any) -> onnx.ModelProto:
    """A convolution with a bias and what follows; `size` of the image."""
    outs, ins = filters.shape[0], filters.shape[1] * attributes.get("group", 1)
    kinds = {"f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
    number, dtype = kinds[element]
    raw = filters.astype(dtype).view(np.uint16).tobytes()
    weight = helper.make_tensor("w", number, filters.shape, raw, raw=True)
    bias = numpy_helper.from_array(np.linspace(-1, 1, outs, dtype=np.float32), "b")
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Conv", ["x", "wide", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    dims = ["n" if isinstance(size, str) else 2, ins, size, size]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [given], [result], [weight, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("filters", "size", "attributes", "small"),
    [
        ((96, 64, 1, 1), "size", {}, True),
        ((72, 128, 1, 1), 5, {"strides": [2, 2]}, True),
        ((128, 64, 3, 3), 15, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, True),
        ((100, 64, 5, 5), 17, {"dilations": [2, 2], "pads": [3, 4, 3, 4]}, True),
        ((64, 32, 3, 3), "size", {"group": 2, "strides": [2, 1]}, True),
        # In tiles, which read transformed filters; and of one channel.
        ((64, 64, 3, 3), 16, {"pads": [1, 1, 1, 1]}, False),
        ((64, 1, 3, 3), 16, {"group": 64}, False),
        # Fewer channels than fill a vector.
        ((64, 3, 7, 7), 32, {"strides": [2, 2]}, False),
    ],
)
def test_filters(
    filters: tuple[int, ...], size: int | str, attributes: dict[str, Any], small: bool, element: str
) -> None:
    rng = np.random.default_rng(sum(filters))
    weight = rng.standard_normal(filters) / np.sqrt(np.prod(filters[1:]))
    model = convolution(weight, element, size, **attributes)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    for n in (2, 1) if isinstance(size, str) else (2,):
        side = 9 + n if isinstance(size, str) else size
        x = rng.standard_normal((n, filters[1] * attributes.get("group", 1), side, side)).astype(np.float32)
        x[0, 0, 0, 0] = np.inf
        (got,), (wanted,) = (
            s.run(None, {"x": x}) for s in (artifact.session(), make_session(model.SerializeToString()))
        )
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
    stored = sum(f.stat().st_size for f in artifact.folder.iterdir() if ".data" in f.name or f.suffix == ".onnx")
    if small:
        assert stored < weight.size * 2 * 1.2 + 40_000
