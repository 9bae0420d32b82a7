"""Procedures as launches, by their algorithm: scans and orders, in Triton's interpreter beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.coverage import refusal
from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects.loop import LaunchOp
from igniter.dialects.onnx.base import OnnxOp
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values
from tests.backends.triton.recording_driver import RecordingDriver, activate
from tests.backends.triton.test_library import compiled, of_ort
from tests.ops.single_node import module_of

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT = TensorProto.FLOAT
NUMBERS = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "f32": (FLOAT, np.float32),
    "f64": (TensorProto.DOUBLE, np.float64),
    "i8": (TensorProto.INT8, np.int8),
    "u8": (TensorProto.UINT8, np.uint8),
    "i32": (TensorProto.INT32, np.int32),
    "i64": (TensorProto.INT64, np.int64),
}
GPUS = (80, 90, 100, 120)


def scan(op: str, kind: int, dims: list[Any], axis: int, opset: int = 14, **attributes: int) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", "axis"], ["y"], **attributes)
    return model([node], {"x": (kind, dims)}, {"axis": np.array(axis)}, opset=opset)


def top(kind: int, dims: list[Any], k: int, axis: int = -1, largest: int = 1) -> onnx.ModelProto:
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=axis, largest=largest)
    made = model([node], {"x": (kind, dims)}, {"k": np.array([k])}, opset=24)
    del made.graph.output[:]
    made.graph.output.extend(map(helper.make_empty_tensor_value_info, ("values", "places")))
    return made


def ties(dtype: Any, *shape: int) -> Any:
    """Few different numbers; of floats also NaNs, infinities and both zeros."""
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if np.dtype(dtype).kind == "u" else -4, 5, shape).astype(dtype)
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5, 2, -2, 0.25, 1e-7])
    return rng.choice(special, shape).astype(dtype)


@pytest.mark.parametrize("exclusive, reverse", [(0, 0), (1, 1), (1, 0), (0, 1)])
def test_sums_of_rows_and_columns_in_both_directions(exclusive: int, reverse: int) -> None:
    """A short row, a column, a row and a column of several blocks, and none."""
    for dims, axis in (((3, 7), 1), ((3, 70), 0), ((2, 4100), 1), ((2, 300, 5), 1), ((0, 7), 1), ((3, 0), 1)):
        found = scan("CumSum", FLOAT, list(dims), axis, exclusive=exclusive, reverse=reverse)
        check(found, {"x": values(np.float32, *dims)}, launches=1)


def test_sums_of_any_size() -> None:
    runs = [{"x": values(np.float32, *shape)} for shape in ((1, 1), (3, 2050), (5, 0), (0, 4), (130, 3))]
    check(scan("CumSum", FLOAT, ["n", "m"], 1), *runs, launches=1)
    check(scan("CumSum", FLOAT, ["n", "m"], 0), *runs, launches=1)


@pytest.mark.parametrize("kind", ["f64", "i32", "i64"])
def test_sums_of_other_types(kind: str) -> None:
    code, dtype = NUMBERS[kind]
    x = values(np.float64, 3, 2100) * (1 if kind == "f64" else 1e8)
    check(scan("CumSum", code, [3, 2100], 1), {"x": x.astype(dtype)}, launches=1)


@pytest.mark.parametrize("exclusive, reverse", [(0, 0), (1, 1)])
def test_sums_of_halves_and_products_are_rounded_once(exclusive: int, reverse: int) -> None:
    """ONNX Runtime on CPUs has neither, so NumPy tells what is right."""
    x = (values(np.float16, 3, 1200) / np.float16(8)).astype(np.float16)
    for op, axis in (("CumSum", 1), ("CumProd", 0)):
        found = scan(op, NUMBERS["f16"][0], [3, 1200], axis, 26, exclusive=exclusive, reverse=reverse)
        module = lowered(found)
        (mine,) = run_func(module, func_of(module), [x], {})
        wide = np.flip(x, axis).astype(np.float64) if reverse else x.astype(np.float64)
        wide = (np.cumsum if op == "CumSum" else np.cumprod)(wide, axis=axis)
        if exclusive:
            first = np.full_like(np.take(wide, [0], axis), float(op == "CumProd"))
            wide = np.concatenate((first, np.take(wide, range(wide.shape[axis] - 1), axis)), axis)
        wide = np.flip(wide, axis) if reverse else wide
        np.testing.assert_allclose(mine.astype(np.float64), wide, rtol=1e-3, atol=2e-3)


def test_a_nan_has_a_part_only_in_the_sums_behind_it() -> None:
    x = values(np.float32, 3, 2100)
    x[1, 5], x[1, 2060], x[2, 7] = np.nan, np.inf, -np.inf
    for exclusive in 0, 1:
        check(scan("CumSum", FLOAT, [3, 2100], 1, exclusive=exclusive), {"x": x}, launches=1)


@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize("kind", ["f32", *(pytest.param(k, marks=pytest.mark.full) for k in NUMBERS if k != "f32")])
def test_first_elements_of_rows_and_columns(kind: str, largest: int) -> None:
    """In one launch: NaN is the greatest, and ties prefer the lower place."""
    code, dtype = NUMBERS[kind]
    for dims, k, axis in (((3, 7), 3, 1), ((37, 3), 5, 0), ((2, 130), 130, 1), ((2, 0), 0, 1), ((5, 1), 1, 1)):
        check(top(code, list(dims), k, axis, largest), {"x": ties(dtype, *dims)}, launches=1)


@pytest.mark.parametrize(
    "kind, largest",
    [("f32", 1), ("i8", 0), *(pytest.param(k, n, marks=pytest.mark.full) for k in NUMBERS for n in (0, 1))],
)
def test_first_elements_of_long_rows(kind: str, largest: int) -> None:
    """A launch finds the candidates of each row, and another one their order."""
    code, dtype = NUMBERS[kind]
    runs = [{"x": ties(dtype, 2, 2050)}, {"x": ties(dtype, 1, 7)}, {"x": ties(dtype, 0, 9)}]
    check(top(code, ["n", "m"], 7, 1, largest), *runs, launches=2)


REST = {
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "i16": (TensorProto.INT16, np.int16),
    "u16": (TensorProto.UINT16, np.uint16),
    "u32": (TensorProto.UINT32, np.uint32),
    "u64": (TensorProto.UINT64, np.uint64),
}
"""Types for which ONNX Runtime has no kernel on CPUs."""


@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize("kind", ["bf16", *(pytest.param(k, marks=pytest.mark.full) for k in REST if k != "bf16")])
def test_first_elements_of_types_that_onnx_runtime_leaves(kind: str, largest: int) -> None:
    """Beside an order by Python: NaNs of both signs are the greatest, and of equal elements the first one is first."""
    code, dtype = REST[kind]
    x = ties(np.float32, 3, 17).astype(dtype)
    if kind != "bf16":
        x = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, (3, 17), dtype, endpoint=True)
        x[:, 3:5], x[:, 9] = np.iinfo(dtype).max, np.iinfo(dtype).min

    def before(row: Any, place: int) -> Any:
        number = float(row[place]) if kind == "bf16" else int(row[place])
        is_nan = number != number
        return (is_nan, 0 if is_nan else number, -place if largest else place)

    module = lowered(top(code, [3, 17], 9, largest=largest))
    found, places = run_func(module, func_of(module), [x], {})
    for row, got, at in zip(x, found, places, strict=True):
        wanted = sorted(range(17), key=lambda place, row=row: before(row, place), reverse=bool(largest))[:9]
        np.testing.assert_array_equal(at, wanted)
        np.testing.assert_array_equal(got.view(np.uint8), row[wanted].view(np.uint8))


def scatter(op: str, kind: int, data: list[Any], indices: list[Any], updates: list[Any], **how: Any) -> onnx.ModelProto:
    given = {"x": (kind, data), "i": (TensorProto.INT64, indices), "u": (kind, updates)}
    return model([helper.make_node(op, ["x", "i", "u"], ["y"], **how)], given, opset=18)


@pytest.mark.parametrize("dims, given, axis", [((3, 7), (2, 5), 1), ((7, 3), (9, 2), 0), ((0, 7), (0, 5), 1)])
def test_updates_along_a_dim(dims: tuple[int, ...], given: tuple[int, ...], axis: int) -> None:
    """Of several updates of one element the last one counts."""
    rng = np.random.default_rng(0)
    found = scatter("ScatterElements", FLOAT, list(dims), list(given), list(given), axis=axis)
    indices = rng.integers(-dims[axis], dims[axis], given)
    run = {"x": values(np.float32, *dims), "i": indices, "u": values(np.float32, *given, seed=3)}
    check(found, run, launches=3)


@pytest.mark.parametrize("kind", ["i32", *(pytest.param(k, marks=pytest.mark.full) for k in NUMBERS if k != "i32")])
def test_updates_at_positions(kind: str) -> None:
    """Of elements and of whole rows, of known and of unknown sizes, also none."""
    code, dtype = NUMBERS[kind]
    rng = np.random.default_rng(0)
    for depth, count in ((1, 5), (2, 8), (1, 0), (3, 1100)):
        dims = (3, 7, 4)
        found = scatter("ScatterND", code, ["a", 7, 4], ["n", depth], ["n", *dims[depth:]])
        indices = np.stack([rng.integers(-dims[k], dims[k], count) for k in range(depth)], -1)
        updates = ties(dtype, count, *dims[depth:])
        check(found, {"x": ties(dtype, *dims), "i": indices, "u": updates}, launches=3)


def test_updates_that_are_combined_are_left() -> None:
    """Sums of floats depend on their order."""
    assert "goes step by step" in left(scatter("ScatterElements", FLOAT, [3, 7], [2, 5], [2, 5], reduction="add"))


def left(found: onnx.ModelProto) -> str:
    """The reason why the node is left to ONNX Runtime."""
    reason = refusal([op for op in module_of(found).walk() if isinstance(op, OnnxOp)][-1])
    assert reason is not None
    return reason.message


def test_an_unsorted_order_is_onnx_runtimes_own() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], sorted=0)
    found = model([node], {"x": (FLOAT, [3, 100])}, {"k": np.array([10])}, opset=11)
    assert "goes step by step" in left(found)


@pytest.mark.parametrize(
    "name",
    ["rows", "updates", *(pytest.param(n, marks=pytest.mark.full) for n in ("columns", "doubles", "first", "long"))],
)
def test_every_gpu_takes_them_without_spills(name: str) -> None:
    models = {
        "rows": lambda: scan("CumSum", FLOAT, ["n", 5000], 1),
        "columns": lambda: scan("CumSum", NUMBERS["f16"][0], ["n", 300, 70], 1, 26, exclusive=1, reverse=1),
        "doubles": lambda: top(NUMBERS["f64"][0], ["n", "m"], 50),
        "first": lambda: top(FLOAT, ["n", 64], 6),
        "updates": lambda: scatter("ScatterND", FLOAT, ["a", "b", 64], ["n", 2], ["n", 64]),
        "long": lambda: top(FLOAT, ["n", "m"], 50),
    }
    module = lowered(models[name]())
    kernels = {kernel.sym_name.data: kernel for kernel in kernels_of(module)}
    for launch in func_of(module).walk():
        if isinstance(launch, LaunchOp):
            kernel = kernels[launch.kernel]
            made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages)
            for arch in GPUS:
                found = resources_of(made, arch)
                assert found.spills == found.stack == 0, f"sm_{arch}: {found}"


@pytest.mark.slow
def test_a_program_with_a_scan_an_order_and_updates_is_one_op() -> None:
    """Nests, a scan, nests again, the order of their results and updates at these places, in ONNX Runtime."""
    driver = RecordingDriver()
    activate(driver)
    # Flat probabilities: no sum is nearly equal to the one before it.
    weights = {"w": values(np.float32, 40, 40) / np.float32(20), "axis": np.array(1), "k": np.array([5])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["p"], axis=-1),
        helper.make_node("CumSum", ["p", "axis"], ["c"]),
        helper.make_node("Sub", ["c", "p"], ["d"]),
        helper.make_node("TopK", ["d", "k"], ["v", "places"]),
        helper.make_node("Exp", ["v"], ["e"]),
        helper.make_node("ScatterElements", ["p", "places", "e"], ["y"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "sampling",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 40])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 40])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    artifact = compiled(made, driver)
    assert artifact.report["nodes_after"] == 1
    session: Any = artifact.session()
    for n in 3, 1:
        given = {"x": values(np.float32, n, 40, seed=n)}
        np.testing.assert_allclose(session.run(None, given)[0], of_ort(made, given), rtol=1e-4)
