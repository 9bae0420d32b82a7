"""Weights in blocks of few bits: MatMulNBits and GatherBlockQuantized, beside ONNX Runtime."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.analysis.machine import TYPICAL
from igniter.runtime.session import make_session
from tests.ops.single_node import check, refusal

Array = np.ndarray[Any, Any]
CONTRIB = "com.microsoft"
WITHOUT_BYTES = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "native"
"""A target on this machine that does not multiply bytes in one instruction, if there is one."""


def packed(rng: np.random.Generator, *dims: int) -> Array:
    return rng.integers(0, 256, dims, dtype=np.uint8)


def product(
    rows: tuple[int, ...] = (3,),
    depth: int = 64,
    columns: int = 16,
    bits: int = 4,
    block: int = 16,
    zeros: str = "",
    dtype: type = np.float32,
    bias: bool = False,
    flat: bool = False,
) -> tuple[list[Array | None], dict[str, int]]:
    """The operands and attributes of a MatMulNBits; `zeros` are `packed`, `float` or the format's own."""
    rng = np.random.default_rng(depth + columns + bits)
    blocks = -(-depth // block)
    x = rng.standard_normal((*rows, depth)).astype(dtype)
    scales = (rng.uniform(0.5, 1.5, (columns, blocks)) / 2**bits).astype(dtype)
    zero: Array | None = None
    if zeros == "packed":
        zero = packed(rng, columns, -(-blocks * bits // 8))
    elif zeros == "float":
        zero = rng.uniform(0, 2**bits, (columns, blocks)).astype(dtype)
    added = rng.standard_normal(columns).astype(dtype) if bias else None
    weights = packed(rng, columns, blocks, block * bits // 8)
    operands = [x, weights, scales, zero, None, added]
    if flat:
        operands = [x, weights, *(None if a is None else a.reshape(-1) for a in (scales, zero)), None, added]
    while operands[-1] is None:
        operands.pop()
    return operands, {"K": depth, "N": columns, "bits": bits, "block_size": block}


def sizes(operands: list[Array | None]) -> set[int]:
    """Every size but the number of rows, which may be a symbol."""
    x, *weights = operands
    assert x is not None
    return {x.shape[-1], *(d for a in weights if a is not None for d in a.shape)}


def multiplied(operands: list[Array | None], attrs: dict[str, int]) -> Array:
    """The product in f64."""
    x, weights, scales, zero, _, bias = [*operands, *[None] * (6 - len(operands))]
    assert x is not None and weights is not None and scales is not None
    depth, columns, bits, block = (attrs[n] for n in ("K", "N", "bits", "block_size"))
    blocks = -(-depth // block)
    points: Any = 2 ** (bits - 1)
    if zero is not None:
        several = unpacked(zero.reshape(columns, -1), bits) if zero.dtype == np.uint8 else zero
        points = several.reshape(columns, -1)[:, :blocks, None].astype(np.float64)
    numbers = unpacked(weights, bits).astype(np.float64)
    dense = ((numbers - points) * scales.reshape(columns, blocks, 1).astype(np.float64)).reshape(columns, -1)
    result = x.astype(np.float64) @ dense[:, :depth].T
    return (result if bias is None else result + bias).astype(x.dtype)


def unpacked(codes: Array, bits: int) -> Array:
    numbers = [(codes >> (bits * k)) & (2**bits - 1) for k in range(8 // bits)]
    return np.stack(numbers, -1).reshape(*codes.shape[:-1], -1)


@pytest.mark.parametrize("zeros", ["", "packed", "float"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("depth", "block"), [(64, 16), (48, 32), (150, 64), (16, 256)])
def test_product(depth: int, block: int, bits: int, zeros: str) -> None:
    operands, attrs = product(depth=depth, columns=21, bits=bits, block=block, zeros=zeros)
    wanted = multiplied(operands, attrs)
    check("MatMulNBits", operands, attrs, domain=CONTRIB, tolerance=2e-5, expected=[wanted], fixed=sizes(operands))


@pytest.mark.parametrize("rows", [(1,), (0,), (), (2, 3), (1, 1)])
@pytest.mark.parametrize("columns", [1, 16, 33])
def test_rows_and_columns(rows: tuple[int, ...], columns: int) -> None:
    operands, attrs = product(rows, columns=columns, bias=True)
    check("MatMulNBits", operands, attrs, domain=CONTRIB, tolerance=2e-5, fixed=sizes(operands))


def test_scales_in_a_row_and_halves() -> None:
    for zeros in ("packed", "float"):
        operands, attrs = product(zeros=zeros, flat=True)
        check("MatMulNBits", operands, attrs, domain=CONTRIB, tolerance=2e-5, dynamic=[False])
        operands, attrs = product(zeros=zeros, dtype=np.float16, bias=True)
        check("MatMulNBits", operands, attrs, domain=CONTRIB, tolerance=4e-3, dynamic=[False])


def test_products_that_are_not_lowered() -> None:
    operands, attrs = product()
    ordered = [*operands, None, np.arange(64, dtype=np.int32)]
    assert "g_idx" in refusal("MatMulNBits", ordered, attrs, domain=CONTRIB)
    assert "3 bits" in refusal("MatMulNBits", operands, {**attrs, "bits": 3}, domain=CONTRIB)
    assert "GPU" in refusal("MatMulNBits", operands, {**attrs, "weight_prepacked": 1}, domain=CONTRIB)
    assert "weights are not known to have" in refusal("MatMulNBits", operands, {**attrs, "N": 15}, domain=CONTRIB)


def model_of(operands: list[Array | None], attrs: dict[str, int], rows: int | str) -> onnx.ModelProto:
    names = [f"w{k}" if a is not None else "" for k, a in enumerate(operands)]
    x, *weights = operands
    assert x is not None
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("MatMulNBits", ["x", *names[1:]], ["y"], domain=CONTRIB, name="product", **attrs)
    given = helper.make_tensor_value_info("x", element, [rows, x.shape[-1]])
    result = helper.make_tensor_value_info("y", element, None)
    tensors = [numpy_helper.from_array(a, f"w{k}") for k, a in enumerate(weights, 1) if a is not None]
    graph = helper.make_graph([node], "g", [given], [result], tensors)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (1, {"depth": 96, "columns": 48, "block": 32, "zeros": "packed"}),
        (7, {"depth": 150, "columns": 64, "block": 64, "bias": True}),
        (5, {"depth": 64, "columns": 37, "bits": 8, "zeros": "packed"}),
        (2, {"depth": 128, "columns": 32, "zeros": "float", "dtype": np.float16}),
        ("rows", {"depth": 128, "columns": 80, "bits": 8, "block": 128}),
        ("rows", {"depth": 128, "columns": 16, "bits": 2, "block": 64}),
        (9, {"depth": 96, "columns": 48, "block": 32, "zeros": "packed"}),
        (33, {"depth": 150, "columns": 37, "block": 64, "bias": True}),
        (64, {"depth": 70, "columns": 1, "bits": 8, "block": 16, "zeros": "packed"}),
        (40, {"depth": 200, "columns": 176, "bits": 2, "block": 32, "zeros": "float"}),
        ("rows", {"depth": 90, "columns": 33, "block": 32}),
        (40, {"depth": 900, "columns": 350, "block": 32, "zeros": "packed"}),
        ("rows", {"depth": 1030, "columns": 40, "bits": 8, "block": 64, "bias": True}),
    ],
)
def test_compiled(rows: int | str, options: dict[str, Any]) -> None:
    several = 6 if rows == "rows" else int(rows)
    operands, attrs = product((several,), **options)
    is_deep = options["depth"] > 800
    target = WITHOUT_BYTES if is_deep else "native"
    artifact = igniter.compile(model_of(operands, attrs, rows), target=target, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    (got,) = artifact.session().run(None, {"x": operands[0]})
    wanted = multiplied(operands, attrs)
    tolerance = 4e-3 if wanted.dtype == np.float16 else 2e-5
    # A deep sum rounds by what is added up, and not by what comes out.
    size = np.abs(wanted.astype(np.float64)).max() if is_deep else 1
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * size)


@pytest.mark.parametrize(("bits", "depth", "bias"), [(4, 96, False), (8, 70, True), (2, 900, True)])
def test_one_kernel_for_few_rows_and_many(bits: int, depth: int, bias: bool) -> None:
    """Rows that are a symbol: a variant of the kernel reads the numbers as they are, another makes panels of floats."""
    operands, attrs = product((1,), depth=depth, columns=40, block=32, bits=bits, zeros="packed", bias=bias)
    artifact = igniter.compile(model_of(operands, attrs, "rows"), target=WITHOUT_BYTES, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    session = artifact.session()
    for count in (0, 1, 3, 4, 5, 33):
        x = np.random.default_rng(count).standard_normal((count, depth)).astype(np.float32)
        wanted = multiplied([x, *operands[1:]], attrs)
        size = np.abs(wanted).max(initial=1)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize(
    ("rows", "options", "reason"),
    [
        (64, {}, None),
        (64, {"columns": 1001}, None),
        (64, {"accuracy_level": 4}, None),
        (1, {"accuracy_level": 4}, None),
        (1, {"accuracy_level": 4, "bits": 8}, None),
        (1, {"accuracy_level": 4, "bits": 2}, "accuracy_level"),
        (1, {"columns": 1001}, None),
        (64, {"bits": 8}, None),
        (8, {}, None),
    ],
)
def test_what_is_left_to_onnx_runtime(rows: int, options: dict[str, int], reason: str | None) -> None:
    """Large ones with a kernel of their own there."""
    more = {k: v for k, v in options.items() if k == "accuracy_level"}
    shape = {k: v for k, v in options.items() if k not in more}
    operands, attrs = product((rows,), depth=512, **{"columns": 1024, **shape})
    artifact = igniter.compile(model_of(operands, {**attrs, **more}, rows), target=WITHOUT_BYTES, verify=False)
    left = [each["reason"] for each in artifact.report["left_to_onnxruntime"]]
    assert len(left) == (reason is not None)
    assert all(reason in each for each in left if reason is not None)


def by_bytes(operands: list[Array | None], attrs: dict[str, int]) -> Array:
    """The product in f64 with blocks of the left factor rounded to eight bits."""
    x, block = operands[0], attrs["block_size"]
    assert x is not None
    blocks = np.zeros((*x.shape[:-1], -(-x.shape[-1] // block) * block))
    blocks[..., : x.shape[-1]] = x
    blocks = blocks.reshape(*x.shape[:-1], -1, block)
    scale = np.abs(blocks).max(-1, keepdims=True) / 127
    rounded = np.round(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0)) * scale
    return multiplied([rounded.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]], *operands[1:]], attrs).astype(np.float32)


@pytest.mark.parametrize("zeros", ["", "packed"])
@pytest.mark.parametrize(("depth", "block"), [(64, 16), (48, 32), (150, 64), (16, 256), (300, 128)])
@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("bits", [4, pytest.param(8, marks=pytest.mark.full)])
def test_factors_of_eight_bits(bits: int, depth: int, block: int, zeros: str, rows: int) -> None:
    """Where the node lets them be rounded: as ONNX Runtime rounds them, so that the results are the same."""
    operands, attrs = product((rows,), depth=depth, columns=21, bits=bits, block=block, zeros=zeros, bias=True)
    x = operands[0]
    assert x is not None
    # A block of zeros, and one with numbers of all magnitudes.
    x[0, :block] = 0
    x[-1, -9:] = [1e30, -1e30, 1e-30, 5e29, -2.5e29, 1e28, 0, -0.0, 7e29]
    attrs["accuracy_level"] = 4
    wanted = by_bytes(operands, attrs)
    model = model_of(operands, attrs, rows)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    (got,), (theirs,) = (s.run(None, {"x": x}) for s in (artifact.session(), make_session(model.SerializeToString())))
    for k in range(rows):
        size = np.abs(wanted[k]).max()
        np.testing.assert_allclose(got[k] / size, wanted[k] / size, atol=2e-6)
        np.testing.assert_allclose(got[k] / size, theirs[k] / size, atol=2e-6)


@pytest.mark.parametrize("target", ["native", WITHOUT_BYTES])
def test_weights_of_eight_bits_beside_rounded_factors(target: str) -> None:
    """All bytes are exact, those above 127 as well, which `pmaddubsw` does not add without saturation."""
    operands, attrs = product((9,), depth=96, columns=37, bits=8, block=32)
    operands[1] = np.full_like(operands[1], 255)
    x = operands[0]
    assert x is not None
    x[0] = np.abs(x[0]).max()
    model = model_of(operands, {**attrs, "accuracy_level": 4}, 9)
    artifact = igniter.compile(model, target=target, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    (got,) = artifact.session().run(None, {"x": x})
    wanted = by_bytes(operands, attrs)
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize(("columns", "depth", "block"), [(1, 40, 16), (17, 31, 16), (100, 520, 256), (3, 1, 16)])
@pytest.mark.parametrize("rows", [(0,), (5,), (2, 3), (), (20,)])
def test_factors_of_eight_bits_of_any_rank(rows: tuple[int, ...], columns: int, depth: int, block: int) -> None:
    """Rows that are symbols, none of them, and a row without a dim."""
    operands, attrs = product(rows, depth=depth, columns=columns, block=block, zeros="packed", bias=True)
    model = model_of(operands, {**attrs, "accuracy_level": 4}, 1)
    dims = [*(f"d{k}" for k in range(len(rows))), depth]
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    artifact = igniter.compile(model, target=WITHOUT_BYTES, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    sessions = artifact.session(), make_session(model.SerializeToString())
    for several in {rows, tuple(n + 1 for n in rows), tuple(0 for _ in rows)}:
        x = np.random.default_rng(1).standard_normal((*several, depth)).astype(np.float32)
        got, wanted = (s.run(None, {"x": x})[0] for s in sessions)
        assert got.shape == wanted.shape == (*several, columns)
        np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6 * np.abs(wanted).max(initial=1e-9))


@pytest.mark.parametrize("rows", [1, 7])
def test_factors_are_rounded_to_the_bytes_of_onnx_runtime(rows: int) -> None:
    """With the identity as weight the results are the rounded factors: the same bytes, also in ties. ONNX Runtime
    subtracts zero points in f32 for several rows, so its results are the same to a hundredth of a step."""
    codes = np.full((64, 64), 8, np.uint8) + np.eye(64, dtype=np.uint8)
    weights = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(64, 2, 16)
    x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
    x[0, :32] = np.arange(32) * np.float32(0.5)
    x[0, 0] = 127
    attrs = {"K": 64, "N": 64, "bits": 4, "block_size": 32, "accuracy_level": 4}
    model = model_of([x, weights, np.ones((64, 2), np.float32)], attrs, rows)
    sessions = igniter.compile(model, verify=False).session(), make_session(model.SerializeToString())
    step = np.abs(x.reshape(rows, 2, 32)).max(-1, keepdims=True) / 127
    got, wanted = (s.run(None, {"x": x})[0].reshape(rows, 2, 32) / step for s in sessions)
    np.testing.assert_array_equal(np.round(got), np.round(wanted))
    np.testing.assert_allclose(got, np.round(got), atol=1e-4)


@pytest.mark.parametrize("zeros", ["", "packed", "float"])
def test_factors_of_eight_bits_on_request(zeros: str) -> None:
    """`precision=int8-dynamic` rounds as `accuracy_level=4` does, where this level can."""
    operands, attrs = product((5,), depth=96, columns=48, block=32, zeros=zeros)
    model = model_of(operands, attrs, 5)
    artifact = igniter.compile(model, precision="int8-dynamic", verify=False)
    (got,) = artifact.session().run(None, {"x": operands[0]})
    wanted = multiplied(operands, attrs) if zeros == "float" else by_bytes(operands, attrs)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


def test_factors_of_eight_bits_that_are_not_numbers() -> None:
    operands, attrs = product((3,), depth=64, columns=16, block=32)
    x = operands[0]
    assert x is not None
    x[1, 3] = np.nan
    model = model_of(operands, {**attrs, "accuracy_level": 4}, 3)
    (got,) = igniter.compile(model, verify=False).session().run(None, {"x": x})
    assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()


def test_small_factors_keep_their_bits() -> None:
    """A factor is less by the power of two that masked numbers are too large by; down to 2^-114 that is exact."""
    operands, attrs = product((2,), depth=64, columns=16, block=32, zeros="packed")
    x = operands[0]
    assert x is not None
    x *= np.float32(2.0**-108)
    (got,) = igniter.compile(model_of(operands, attrs, 2), verify=False).session().run(None, {"x": x})
    wanted = multiplied(operands, attrs)
    np.testing.assert_allclose(got * np.float32(2.0**108), wanted * np.float32(2.0**108), rtol=2e-5, atol=2e-5)


def test_words_that_are_unpacked_by_nodes(tmp_path: Path) -> None:
    """Where a region with packed weights is taken apart, nodes of ONNX make bytes of them again."""
    operands, attrs = product((2,), depth=150, columns=37, block=32, zeros="packed")
    onnx.save(model_of(operands, attrs, 2), str(tmp_path / "model.onnx"))
    module = igniter.load(tmp_path / "model.onnx")
    module = module.run_passes("infer-shapes,form-fusion-regions,pack-weights,fold-packs")
    assert "words" in str(module)
    plain = module.run_passes("inline-regions")
    plain.save(tmp_path / "plain.onnx")
    nodes = [n.op_type for n in onnx.load(str(tmp_path / "plain.onnx")).graph.node]
    assert "BitShift" in nodes and nodes[-1] == "MatMulNBits"
    (got,) = make_session(tmp_path / "plain.onnx").run(None, {"x": operands[0]})
    np.testing.assert_allclose(got, multiplied(operands, attrs), rtol=2e-5, atol=2e-5)


def test_bytes_are_multiplied_on_cpus_alone() -> None:
    """ONNX Runtime rounds no factor on GPUs, so that the kernel of one may not."""
    from igniter.backends.triton.coverage import refusal as refused_on_gpus

    for level, wanted in ((0, None), (4, "MatMulNBits multiplies bytes")):
        operands, attrs = product((2,), depth=64, columns=16, block=32)
        module = igniter.load(model_of(operands, {**attrs, "accuracy_level": level}, 2)).run_passes("infer-shapes")
        (node,) = [op for op in module.ir.walk() if op.attributes.get("bits") is not None]
        reason = refused_on_gpus(node)
        assert reason is None if wanted is None else reason is not None and wanted in reason.message


# -- GatherBlockQuantized ---------------------------------------------------------------------------------------------

INDICES = np.array([[1, -1, 4], [0, -5, 2]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows_of_a_table(bits: int, zeros: bool, dtype: type) -> None:
    rng = np.random.default_rng(bits)
    data, parts = packed(rng, 5, 3, 20), 8 // bits
    blocks = -(-20 * parts // 16)
    scales = rng.uniform(0.5, 1, (5, 3, blocks)).astype(dtype)
    points = packed(rng, 5, 3, -(-blocks // parts)) if zeros else None
    attrs = {"bits": bits, "gather_axis": 0, "quantize_axis": 2, "block_size": 16}
    for index in (INDICES, np.array(3, np.int32), np.zeros((0, 2), np.int64)):
        check("GatherBlockQuantized", [data, index, scales, points], attrs, domain=CONTRIB, dynamic=[False])


def test_rows_outside_of_the_table_are_zero() -> None:
    rng = np.random.default_rng(0)
    data, scales = packed(rng, 5, 32), rng.uniform(0.5, 1, (5, 2)).astype(np.float32)
    attrs = {"bits": 8, "gather_axis": 0, "quantize_axis": -1, "block_size": 16}
    index = np.array([5, -6, 4, 2**40, -(2**40)])
    check("GatherBlockQuantized", [data, index, scales], attrs, domain=CONTRIB, dynamic=[False])


@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("axis", [0, 1])
def test_tables_of_floats_of_eight_bits(axis: int, block: int) -> None:
    rng = np.random.default_rng(axis)
    data = (rng.standard_normal((32, 48)) * 4).astype(ml_dtypes.float8_e4m3fn)
    other = 1 - axis
    dims = [data.shape[0], data.shape[1]]
    dims[other] = dims[other] // block if block else 1
    dims[axis] = dims[axis] if block else 1
    scales = rng.uniform(0.5, 1, dims).astype(np.float32)
    attrs = {"gather_axis": axis, "quantize_axis": other, "block_size": block}
    each = np.repeat(scales, block or data.shape[other], other)
    wanted = (data.astype(np.float32) * each).take([3, -1], axis)
    operands = [data, np.array([3, -1]), scales]
    check("GatherBlockQuantized", operands, attrs, domain=CONTRIB, dynamic=[False], expected=[wanted])


def test_tables_that_are_not_lowered() -> None:
    rng = np.random.default_rng(0)
    data, scales = packed(rng, 5, 32), np.ones((5, 3), np.float32)
    attrs = {"bits": 8, "gather_axis": 0, "quantize_axis": 1, "block_size": 16}
    reason = refusal("GatherBlockQuantized", [data, INDICES, scales], attrs, domain=CONTRIB)
    assert "one scale for each block" in reason


def test_an_embedding_and_the_product_behind_it() -> None:
    """The nodes around them go into their kernels."""
    rng = np.random.default_rng(0)
    table, scales = packed(rng, 50, 32), rng.uniform(0.01, 0.1, (50, 2)).astype(np.float32)
    operands, attrs = product(depth=64, columns=32, zeros="packed")
    nodes = [
        helper.make_node(
            "GatherBlockQuantized", ["table", "ids", "scales"], ["rows"], domain=CONTRIB, block_size=32, quantize_axis=1
        ),
        helper.make_node("Mul", ["rows", "factor"], ["scaled"]),
        helper.make_node("MatMulNBits", ["scaled", "w1", "w2", "w3"], ["sums"], domain=CONTRIB, **attrs),
        helper.make_node("Relu", ["sums"], ["y"]),
    ]
    weights = {"table": table, "scales": scales, "factor": np.array(2, np.float32)}
    weights.update((f"w{k}", a) for k, a in enumerate(operands) if k and a is not None)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    feed = {"ids": np.array([[3, -1, 49, 0]])}
    (got,), (wanted,) = artifact.session().run(None, feed), make_session(model.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bits", [4, 8])
def test_many_rows_make_panels_group_by_group(bits: int, tmp_path: Path) -> None:
    """What is made of codes is a group of panels for each task, not the weight; no rows are none, and NaN spreads."""
    operands, attrs = product((64,), depth=512, columns=4096, bits=bits, block=32)
    artifact = igniter.compile(model_of(operands, attrs, "rows"), tmp_path / "m", verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    scratch = max(int(n) for n in re.findall(r"scratch\((\d+)", scheduled(tmp_path, operands, attrs)))
    assert scratch <= 16 * TYPICAL.group_bytes < 512 * 4096 * 4
    x = operands[0]
    assert x is not None
    x[3, 5] = np.nan
    (got,) = artifact.session().run(None, {"x": x})
    np.testing.assert_allclose(got, multiplied(operands, attrs), rtol=2e-5, atol=1e-4)
    assert artifact.session().run(None, {"x": x[:0]})[0].shape == (0, 4096)


def scheduled(folder: Path, operands: list[Array | None], attrs: dict[str, int]) -> str:
    """The scheduled IR of a product of 64 rows."""
    onnx.save(model_of(operands, attrs, 64), str(folder / "model.onnx"))
    module = igniter.load(folder / "model.onnx")
    return str(module.run_passes("cpu"))
