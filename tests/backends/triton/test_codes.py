"""Products with weights of few bits in Triton's interpreter, beside ONNX Runtime; their programs for each GPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.loop import LaunchOp
from igniter.transforms.onnx.form_block_products import FormBlockProducts
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values, versions_of
from tests.backends.triton.recording_driver import activate, standing_driver
from tests.backends.triton.test_library import compiled
from tests.ops.test_block_quantized import CONTRIB, multiplied, product

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

PLAIN = [FormBlockProducts(plain=True)]
Array = np.ndarray[Any, Any]


def model_of(operands: list[Array | None], attrs: dict[str, int], rows: list[int | str]) -> onnx.ModelProto:
    """A MatMulNBits with all operands as inputs."""
    names = ["" if a is None else f"x{k}" for k, a in enumerate(operands)]
    infos: list[Any] = []
    for name, a in zip(names, operands, strict=True):
        if a is not None:
            kind = TensorProto.BFLOAT16 if a.dtype == ml_dtypes.bfloat16 else helper.np_dtype_to_tensor_dtype(a.dtype)
            infos.append(helper.make_tensor_value_info(name, kind, [*rows, a.shape[-1]] if name == "x0" else a.shape))
    node = helper.make_node("MatMulNBits", names, ["y"], domain=CONTRIB, **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def feeds_of(operands: list[Array | None], *rows: int) -> dict[str, Array]:
    x, *rest = operands
    assert x is not None
    given = values(x.dtype, *rows, x.shape[-1], seed=sum(rows))
    return {"x0": given, **{f"x{k}": a for k, a in enumerate(rest, 1) if a is not None}}


@pytest.mark.parametrize(
    ("depth", "columns", "options"),
    [
        (70, 37, {"block": 16, "zeros": "packed"}),
        (256, 48, {"block": 32, "zeros": "float", "bias": True}),
        pytest.param(300, 33, {"block": 128, "zeros": "packed"}, marks=pytest.mark.full),
        (150, 21, {"block": 64, "bits": 8, "zeros": "packed"}),
        (80, 17, {"block": 16, "bits": 2, "bias": True}),
        pytest.param(256, 16, {"block": 256, "bits": 8, "flat": True}, marks=pytest.mark.full),
    ],
)
def test_products_beside_onnx_runtime(depth: int, columns: int, options: dict[str, Any]) -> None:
    """Odd depths and columns; no rows, one row, and rows that do not fill a block."""
    operands, attrs = product(depth=depth, columns=columns, **options)
    given = model_of(operands, attrs, ["m"])
    runs = [feeds_of(operands, m) for m in (0, 1, 3, 16, 33)]
    check(given, *runs, launches=1, before=PLAIN)
    (dot,) = [op for k in kernels_of(lowered(given, before=PLAIN)) for op in k.walk() if isinstance(op, tt.DotOp)]
    assert str(tt.element_type(dot.a.type)) == "f32"


@pytest.mark.slow
def test_halves_are_multiplied_by_tensor_cores() -> None:
    """The weights are rounded to f16; each byte is loaded once for its two numbers, which a join puts side by side."""
    operands, attrs = product(depth=160, columns=40, block=32, zeros="packed", dtype=np.float16, bias=True)
    given = model_of(operands, attrs, ["m"])
    check(given, *(feeds_of(operands, m) for m in (1, 33)), launches=1, rtol=2e-3, before=PLAIN)
    (kernel,) = kernels_of(lowered(given, before=PLAIN))
    (dot,) = [op for op in kernel.walk() if isinstance(op, tt.DotOp)]
    (join,) = [op for op in kernel.walk() if isinstance(op, tt.JoinOp)]
    assert str(tt.element_type(dot.b.type)) == "f16"
    weights = [op for op in kernel.walk() if isinstance(op, tt.LoadOp) and len(tt.shape_of(op.result.type)) == 3]
    (codes,) = [op for op in weights if tt.shape_of(op.result.type) == tt.shape_of(join.lhs.type)]
    assert tt.width_of(codes.result.type) == 8


def test_brain_floats() -> None:
    operands, attrs = product(depth=64, columns=24, block=32, zeros="packed")
    halves = [a if a is None or a.dtype != np.float32 else a.astype(ml_dtypes.bfloat16) for a in operands]
    module = lowered(model_of(halves, attrs, ["m"]), before=PLAIN)
    feeds = list(feeds_of(halves, 5).values())
    (got,) = run_func(module, func_of(module), feeds, {"m": 5})
    wide = [None if a is None else a.astype(np.float32) if a.dtype == ml_dtypes.bfloat16 else a for a in halves]
    wanted = multiplied([feeds[0].astype(np.float32), *wide[1:]], attrs)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=2e-2, atol=1e-2 * scale)


def test_batches_of_rows_and_infinities() -> None:
    """NaN and infinities of a row stay in it."""
    operands, attrs = product(depth=90, columns=18, block=32, zeros="packed")
    feeds = feeds_of(operands, 2, 3)
    feeds["x0"][0, 1, 4], feeds["x0"][1, 2, 89] = np.inf, np.nan
    check(model_of(operands, attrs, ["b", "m"]), feeds, launches=1, before=PLAIN)


@pytest.mark.slow
def test_parts_of_the_depth_begin_with_a_block() -> None:
    """Few rows and columns: the depth is split, and each part has whole scales."""
    operands, attrs = product(depth=4096, columns=32, block=128, dtype=np.float16)
    module = lowered(model_of(operands, attrs, [16]), before=PLAIN)
    launches = [op for op in func_of(module).block.ops if isinstance(op, LaunchOp)]
    assert len(launches) == 2
    feeds = list(feeds_of(operands, 16).values())
    (got,) = run_func(module, func_of(module), feeds, {})
    wanted = multiplied([feeds[0], *operands[1:]], attrs).astype(np.float32)
    np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=1e-2, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("depth", "options"),
    [(4200, {"block": 128, "zeros": "packed"}), (70, {"block": 16, "bias": True}), (150, {"block": 64, "bits": 8})],
)
def test_threads_sum_one_row(depth: int, options: dict[str, Any]) -> None:
    """No product of blocks, also with blocks of the depth in sequence and a depth that ends within a group."""
    operands, attrs = product((1,), depth, 21, **options)
    given = model_of(operands, attrs, [1])
    check(given, feeds_of(operands, 1), launches=1, before=PLAIN)
    (kernel,) = kernels_of(lowered(given, before=PLAIN))
    assert not [op for op in kernel.walk() if isinstance(op, tt.DotOp)]


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
def test_no_kernel_spills(arch: int) -> None:
    """The schedules for few, some and many rows, by the assembler of each GPU."""
    operands, attrs = product(depth=4096, columns=4096, block=128, zeros="packed", dtype=np.float16)
    module = lowered(model_of(operands, attrs, ["m"]), f"cuda:sm_{arch}", variants=True, before=PLAIN)
    kernels = {k.sym_name.data: k for k in kernels_of(module)}
    versions = versions_of(func_of(module))
    assert len(versions) > 1
    for launch in (launches[0] for launches in versions):
        kernel = kernels[launch.kernel]
        made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
        resources = resources_of(made, arch)
        assert not resources.spills and not resources.serialized, launch.kernel


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits(name: str) -> None:
    """All codes dequantised, and numbers rounded to them and back: bytes in memory, decoded by integer arithmetic."""
    kind = {"float8_e4m3fn": TensorProto.FLOAT8E4M3FN, "float8_e5m2": TensorProto.FLOAT8E5M2}[name]
    codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).reshape(8, 32)
    scales = values(np.float32, 32)
    inputs = {"q": (kind, [8, 32]), "s": (TensorProto.FLOAT, [32])}
    module = lowered(model([helper.make_node("DequantizeLinear", ["q", "s"], ["y"], axis=1)], inputs, opset=19))
    (got,) = run_func(module, func_of(module), [codes, scales], {})
    np.testing.assert_array_equal(got, codes.astype(np.float32) * scales)
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], to=kind),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    sizes = [values(np.float32, 80) * scale for scale in (1e-3, 1.0, 300.0, 1e5)]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    check(model(nodes, {"x": (TensorProto.FLOAT, ["n"])}, opset=19), {"x": np.concatenate([*sizes, special])}, rtol=0)


@pytest.mark.slow
def test_dequantised_weights_are_read_as_codes_in_onnx_runtime() -> None:
    """A node of DequantizeLinear with int4 weights and a Gemm: one launch of one op, which reads 4 bits a weight."""
    driver = standing_driver()
    activate(driver)
    driver.reset()
    rng = np.random.default_rng(5)
    codes, scales = rng.integers(-8, 8, 96 * 40), rng.uniform(0.1, 0.2, (3, 40)).astype(np.float16)
    weights = [
        helper.make_tensor("q", TensorProto.INT4, [96, 40], codes),
        numpy_helper.from_array(scales, "s"),
        numpy_helper.from_array(rng.normal(0, 1, 40).astype(np.float16), "b"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=32),
        helper.make_node("Gemm", ["x", "w", "b"], ["y"]),
    ]
    half = TensorProto.FLOAT16
    infos = [helper.make_tensor_value_info(n, half, ["m", k]) for n, k in (("x", 96), ("y", 40))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], weights)
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    artifact = compiled(given, driver)
    assert artifact.report["nodes_after"] == 1
    session: Any = artifact.session()
    driver.launches.clear()
    x = values(np.float16, 5, 96)
    (got,) = session.run(None, {"x": x})
    assert len(driver.launches) == 1
    dense = codes.reshape(96, 40) * np.repeat(scales, 32, axis=0).astype(np.float32)
    wanted = x.astype(np.float32) @ dense + numpy_helper.to_array(weights[2]).astype(np.float32)
    np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
