"""Contractions: ranks, broadcasting, transposes, scales, element types and empty sums."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.runtime.session import SessionError, make_session
from tests.ops.single_node import check, refusal

Array = np.ndarray[Any, Any]


def normal(*dims: int, dtype: str = "float32", seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(dims) * 3).astype(dtype)


PRODUCTS = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)),
    ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((1, 4), (4, 1)), ((2, 3, 4), (1, 4, 5)),
    ((1, 1), (1, 1)), ((5, 2, 3, 4), (5, 2, 4, 6)), ((2, 0, 3, 4), (4, 5)), ((1, 2, 1, 2, 3), (3, 1, 2, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check("MatMul", [normal(*left), normal(*right, seed=1)], tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32", "uint64"])
def test_matmul_types(dtype: str) -> None:
    a, b = abs(normal(3, 4)), abs(normal(4, 5, seed=1))
    check("MatMul", [a.astype(dtype), b.astype(dtype)], tolerance=1e-12)


def test_integer_products_wrap() -> None:
    a = np.full((2, 3), 2**31 - 1, np.int32)
    with np.errstate(over="ignore"):
        check("MatMul", [a, a.T.copy()], expected=[a @ a.T])


def test_half_precision_accumulates_in_single() -> None:
    a = np.full((1, 4096), 1.0, np.float16)
    check("MatMul", [a, a.T.copy()], expected=[np.array([[4096.0]], np.float16)])


def test_matmul_needs_equal_inner_dims() -> None:
    # Inference makes the symbols of one dim equal; two sizes that differ are for ORT to complain of.
    assert "inner dims (4 and 5)" in refusal("MatMul", [normal(3, 4), normal(5, 6)])


BIASES: list[Array | None] = [None, normal(5), normal(3, 1), normal(3, 5), normal(), normal(1, 5), normal(1, 1)]


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", range(len(BIASES)))
def test_gemm(trans_a: int, trans_b: int, bias: int) -> None:
    a = normal(4, 3) if trans_a else normal(3, 4)
    b = normal(5, 4, seed=1) if trans_b else normal(4, 5, seed=1)
    attrs = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": 2.0}
    check("Gemm", [a, b, BIASES[bias]], attrs, tolerance=1e-5)


def test_gemm_scales() -> None:
    a, b = normal(3, 4), normal(4, 5, seed=1)
    check("Gemm", [a, b], tolerance=1e-5)
    check("Gemm", [a, b, normal(5)], tolerance=1e-5)
    check("Gemm", [a, b, normal(5)], {"beta": 0.0}, tolerance=1e-5)
    check("Gemm", [a, b], {"alpha": 0.25}, tolerance=1e-5)
    check("Gemm", [normal(3, 0), normal(0, 5), normal(5)], tolerance=1e-5)
    c = normal(5)  # of which ORT gives 1, not 2
    check("Gemm", [normal(3, 0), normal(0, 5), c], {"beta": 2.0}, expected=[np.tile(2 * c, (3, 1))])
    check("Gemm", [a.astype(np.int64), b.astype(np.int64), normal(5).astype(np.int64)], tolerance=1e-5)


FUSED = [
    ((2, 4, 3), (2, 4, 5), {"transA": 1, "alpha": 0.25}),
    ((2, 7, 3, 4), (2, 7, 5, 4), {"transB": 1}),
    ((3, 2, 7, 4), (5, 2, 7, 4), {"transB": 1, "transBatchA": 1, "transBatchB": 1}),
    ((4, 2, 7, 3), (2, 7, 5, 4), {"transA": 1, "transB": 1, "transBatchA": 1}),
    ((3, 4), (4, 5), {}),
]


@pytest.mark.parametrize(("left", "right", "attrs"), FUSED)
def test_fused_matmul(left: tuple[int, ...], right: tuple[int, ...], attrs: dict[str, Any]) -> None:
    check("FusedMatMul", [normal(*left), normal(*right, seed=1)], attrs, domain="com.microsoft", tolerance=1e-5)


def test_matmul_integer() -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 255, (3, 4)).astype(np.uint8)
    # Of 7 bits: ONNX Runtime adds two products of bytes in 16 bits, and saturates, where it has nothing better.
    b = random.integers(-64, 63, (4, 5)).astype(np.int8)
    check("MatMulInteger", [a, b])
    check("MatMulInteger", [a, b, np.uint8(12), np.int8(-3)])
    check("MatMulInteger", [a, b, np.uint8(12), np.arange(5).astype(np.int8)])
    check("MatMulInteger", [a, b, None, np.int8(-3)])


@pytest.mark.parametrize("columns", [59, 64])
def test_rows_that_lie_in_another_order(columns: int) -> None:
    """A tagger's last layer: `[batch, channels, place]` becomes rows of places by batch; either may be one or none."""
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((48, columns)) / 7).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([-1, 48]), "shape")]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("x", ["n", 48, "s"]), ("y", None)))
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = igniter.compile(model, verify=False)
    assert compiled.report["nodes_after"] == 1
    plain, session = make_session(model.SerializeToString(), []), compiled.session()
    for batch, places in [(1, 33), (3, 5), (1, 1), (17, 2), (2, 16), (4, 0)]:
        value = rng.standard_normal((batch, 48, places)).astype(np.float32)
        expected = plain.run(None, {"x": value})[0]
        np.testing.assert_allclose(session.run(None, {"x": value})[0], expected, rtol=0, atol=1e-5)


def test_rows_that_are_typically_one() -> None:
    """A size that is given is no promise: the tile of one row is right for any number of them."""
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((40, 200)).astype(np.float32), "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("x", ["m", 40]), ("y", None)))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = igniter.compile(model, verify=False, sizes={"m": 1})
    assert not compiled.report["left_to_onnxruntime"]
    plain, session = make_session(model.SerializeToString(), []), compiled.session()
    for rows in (0, 1, 2, 7):
        value = normal(rows, 40)
        expected = plain.run(None, {"x": value})[0]
        np.testing.assert_allclose(session.run(None, {"x": value})[0], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_few_columns_of_a_weight(columns: int) -> None:
    """The weight of such a layer is stored column by column, and what is not finite stays in its row."""
    rng = np.random.default_rng(0)
    constants = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (40, columns)), ("b", (columns,)))
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("x", ["m", 40]), ("y", None)))
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["p"]), helper.make_node("Tanh", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = igniter.compile(model, verify=False)
    assert compiled.report["nodes_after"] == 1
    plain, session = make_session(model.SerializeToString(), []), compiled.session()
    for rows in (0, 1, 2, 33):
        value = normal(rows, 40)
        value[1:2, 7] = np.nan
        expected = plain.run(None, {"x": value})[0]
        np.testing.assert_allclose(session.run(None, {"x": value})[0], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("depth", [1, 31, 40])
def test_few_columns(columns: int, depth: int) -> None:
    """A layer with a handful of results is dot products, or a panel that is mostly zeros."""
    b = normal(depth, columns, seed=1)
    for rows in (0, 1, 33):
        a = normal(2, rows, depth)
        # Two orders of a sum differ by roundings of what is added up, however small the sum itself is.
        tolerance = max(1e-5, 2.0**-23 * float((np.abs(a) @ np.abs(b)).max(initial=0))) if depth == 40 else 1e-5
        check("Gemm", [a[0], b, normal(columns, seed=2)], {}, tolerance=tolerance)
        check("MatMul", [a, b], {}, tolerance=tolerance)


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("bij,bjk", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("ij->ji", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->", [(2, 3)]),
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("i,j->ij", [(3,), (4,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check("Einsum", [normal(*s, seed=k) for k, s in enumerate(shapes)], {"equation": equation}, tolerance=1e-5)


def einsum_of_two(equation: str) -> onnx.ModelProto:
    x = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in ("a", "b")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)], "g", x, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("equation", ["ii,jj->i,j", "ii,jj->->ij", "...j,jk->k", "ij,jk->iz"])
def test_einsum_leaves_what_is_no_equation_to_onnx_runtime(equation: str) -> None:
    """It refuses to load such a model, or to run it."""
    model = einsum_of_two(equation)
    try:
        original = make_session(model.SerializeToString(), log_severity_level=4)
    except SessionError:
        with pytest.raises(IgniterError, match="Einsum"):
            igniter.compile(model)
        return
    artifact = igniter.compile(model)
    assert artifact.report["verification"]["status"] == "not verified"
    feed = {n: np.ones((2, 2), np.float32) for n in ("a", "b")}
    for session in (artifact.session(log_severity_level=4), original):
        with pytest.raises(Exception, match="Einsum"):
            session.run(None, feed)


def test_einsum_of_two_ellipses_in_a_term_is_refused() -> None:
    """ONNX Runtime 1.32 never returns from loading it."""
    with pytest.raises(IgniterError, match=r"Einsum.*2 ellipses in one term"):
        igniter.compile(einsum_of_two("......ij,jk->ik"))


WITH_BLOCKS = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "native"
"""A target on this machine for which `choose-schedule` cuts depths of weights in blocks, if there is one."""


@pytest.mark.parametrize("columns", [1, 40, 200, 400])
@pytest.mark.parametrize(
    ("depth", "dtype"), [(800, "float32"), (1024, "float32"), (3077, "float32"), (1100, "float64")]
)
@pytest.mark.parametrize("rows", ["m", 17, 67, 130])
def test_depth_in_blocks(rows: str | int, depth: int, dtype: str, columns: int) -> None:
    """Sums of blocks of the depth are added to the result, which a bias and a residual read once all are, whatever the
    number of rows; what is not finite stays in its row."""
    weight, bias = normal(depth, columns, dtype=dtype, seed=1), normal(columns, dtype=dtype, seed=2)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [helper.make_tensor_value_info(n, element, [rows, d]) for n, d in (("x", depth), ("r", columns))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["q", "r"], ["y"]),
    ]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    result = helper.make_tensor_value_info("y", element, [rows, columns])
    graph = helper.make_graph(nodes, "g", values, [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled = igniter.compile(model, target=WITH_BLOCKS, verify=False)
    assert compiled.report["left_to_onnxruntime"] == []
    session = compiled.session()
    for count in (0, 1, 2, 16, 61, 121) if isinstance(rows, str) else (rows,):
        x, residual = normal(count, depth, dtype=dtype), normal(count, columns, dtype=dtype, seed=3)
        x[1:2, depth - 1], x[2:3, 0] = np.nan, np.inf
        wanted = x.astype(np.float64) @ weight.astype(np.float64) + bias + residual
        # Each sum of products rounds by some units in the last place of what is added up.
        size = np.abs(np.nan_to_num(x, posinf=0)) @ np.abs(weight)
        bound = 8 * np.finfo(dtype).eps * size.max(initial=1)
        np.testing.assert_allclose(session.run(None, {"x": x, "r": residual})[0], wanted, rtol=0, atol=bound)
