"""Integer products with weights, zero points on both sides, compiled: the integers that ONNX says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter

Array = np.ndarray[Any, Any]
DEPTH, COLUMNS = 24, 20
PAIRS = [(a, b) for a in (np.uint8, np.int8) for b in (np.uint8, np.int8)]


def corners(rng: np.random.Generator, kind: type, shape: tuple[int, ...]) -> Array:
    """Bytes, the least and the greatest among them often: sums of pairs of their products pass 16 bits."""
    limits = np.iinfo(kind)
    ends = rng.choice([limits.min, limits.max], shape)
    return np.where(rng.random(shape) < 0.7, ends, rng.integers(limits.min, limits.max, shape)).astype(kind)


def model_of(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, Array], list[Array]]:
    """Products of all pairs of types, with the zero point of the weight absent, one, or one a column."""
    nodes, inputs, weights = list[Any](), list[Any](), list[Any]()
    feeds: dict[str, Array] = {}
    expected: list[Array] = []
    for k, (left, right) in enumerate(PAIRS):
        a, za = corners(rng, left, (2, 7, DEPTH)), corners(rng, left, ())
        for name, value in ((f"a{k}", a), (f"za{k}", za)):
            feeds[name] = value
            shape = ["batch", "rows", DEPTH] if value.ndim else []
            code = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(name, code, shape))
        b = corners(rng, right, (DEPTH, COLUMNS))
        weights.append(numpy_helper.from_array(b, f"b{k}"))
        for n, zero in enumerate((None, corners(rng, right, ()), corners(rng, right, (COLUMNS,)))):
            operands = [f"a{k}", f"b{k}", "" if n == 0 and k == 1 else f"za{k}"]
            if zero is not None:
                weights.append(numpy_helper.from_array(zero, f"zb{k}.{n}"))
                operands.append(f"zb{k}.{n}")
            nodes.append(helper.make_node("MatMulInteger", operands, [f"y{k}.{n}"], name=f"product{k}.{n}"))
            less = 0 if operands[2] == "" else za.astype(np.int64)
            around = b.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
            expected.append(((a.astype(np.int64) - less) @ around).astype(np.int32))
    results = [helper.make_tensor_value_info(n.output[0], TensorProto.INT32, None) for n in nodes]
    graph = helper.make_graph(nodes, "products", inputs, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), feeds, expected


@pytest.mark.slow
@pytest.mark.parametrize("byte_products", [True, False], ids=["bytes", "words"])
def test_products(byte_products: bool, tmp_path: Path) -> None:
    model, feeds, expected = model_of(np.random.default_rng(7))
    passes = f"infer-shapes,canonicalize-onnx,hoist-zero-points{{byte_products={str(byte_products).lower()} words=all}}"
    options = igniter.CompileOptions(onnx_passes=passes)
    artifact = igniter.load(model).compile(tmp_path / "out", options=options, verify=False)
    compiled = onnx.load(artifact.model_path, load_external_data=False)
    assert not any(n.op_type.startswith("MatMul") for n in compiled.graph.node), "every product is in a kernel"
    for got, wanted, node in zip(artifact.session().run(None, feeds), expected, model.graph.node, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=node.name)
