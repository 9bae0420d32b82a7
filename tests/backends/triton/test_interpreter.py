"""Launches of Triton kernels in Triton's interpreter, beside ONNX Runtime: types, odd and empty shapes, NaN, rows of
any length, and what is one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.backends.triton.programs import check, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOATS: dict[str, tuple[int, Any]] = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "f32": (TensorProto.FLOAT, np.float32),
    "f64": (TensorProto.DOUBLE, np.float64),
}


def one(op: str, *kinds: int, dims: list[Any] | None = None, **attrs: Any) -> Any:
    names = [f"x{k}" for k in range(len(kinds))]
    shape = dims or ["n", "m"]
    return model(
        [helper.make_node(op, names, ["y"], **attrs)], {n: (k, shape) for n, k in zip(names, kinds, strict=True)}
    )


SHAPES = ((5, 37), (1, 1), (0, 4), (3, 1100))
UNARY = (
    "Exp",
    "Log",
    "Sqrt",
    "Tanh",
    "Sigmoid",
    "Erf",
    "Neg",
    "Abs",
    "Floor",
    "Ceil",
    "Round",
    "Sin",
    "Atan",
    "Softplus",
    "Reciprocal",
    "Sign",
    "Relu",
    "Gelu",
    "Mish",
    "HardSwish",
    "Cosh",
    "Asinh",
    "Tan",
)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", UNARY)
def test_functions(op: str, kind: str) -> None:
    code, dtype = FLOATS[kind]
    if op in ("Gelu", "Softplus", "Mish", "HardSwish", "Atan", "Cosh", "Asinh", "Tan") and kind == "f64":
        pytest.skip("ONNX Runtime has none of f64")
    x = values(dtype, 4, 21)
    # The sign of a NaN of f16 is 0 in ONNX Runtime, and NaN of other types.
    x[0, :5] = (0.0, -0.0, np.inf, -np.inf, np.nan if (op, kind) != ("Sign", "f16") else 1.0)
    nodes = one(op, code)
    check(nodes, {"x0": x}, launches=1, rtol=2e-3 if kind == "f16" else 1e-5)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu"])
def test_pairs_of_any_shape(op: str) -> None:
    x = {n: values(np.float32, *s) for n, s in (("x0", (7, 1)), ("x1", (1, 33)))}
    given = model(
        [helper.make_node(op, ["x0", "x1"] if op != "PRelu" else ["z", "x1"], ["y"])]
        if op != "PRelu"
        else [helper.make_node("Add", ["x0", "x1"], ["z"]), helper.make_node("PRelu", ["z", "x1"], ["y"])],
        {"x0": (TensorProto.FLOAT, ["n", 1]), "x1": (TensorProto.FLOAT, [1, "m"])},
    )
    if op == "Pow":
        x["x0"] = np.abs(x["x0"])
    check(given, x, launches=1)


@pytest.mark.parametrize(
    "code, dtype",
    [
        (TensorProto.INT8, np.int8),
        (TensorProto.UINT8, np.uint8),
        (TensorProto.INT64, np.int64),
        (TensorProto.UINT32, np.uint32),
    ],
)
@pytest.mark.parametrize("op", ["Add", "Mul", "Div", "Max", "Min", "Less", "Equal", "Mod"])
def test_integers(op: str, code: int, dtype: Any) -> None:
    if op in ("Add", "Mul", "Div", "Less") and dtype in (np.int8, np.uint8):
        pytest.skip("ONNX Runtime has none of 8 bits")
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    x = rng.integers(max(info.min, -100), min(info.max, 120), (3, 19), endpoint=True).astype(dtype)
    y = rng.integers(1, 90, (3, 19)).astype(dtype)
    if info.min < 0:
        y[0, ::2] *= -1
    # Whether a divisor is 0 is a launch of its own.
    check(one(op, code, code), {"x0": x, "x1": y}, launches=1)


@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp"]
)
@pytest.mark.parametrize("axes", [[1], [0], [0, 1]])
def test_reductions(op: str, axes: list[int]) -> None:
    given = model(
        [helper.make_node(op, ["x", "axes"], ["y"])],
        {"x": (TensorProto.FLOAT, ["n", "m"])},
        {"axes": np.array(axes, np.int64)},
    )
    runs = [{"x": values(np.float32, *s) / 2} for s in SHAPES if 0 not in s or op in ("ReduceSum", "ReduceProd")]
    # Along the first axis ONNX Runtime leaves NaN out.
    if op == "ReduceMax" and axes == [1]:
        runs[0]["x"][1, 3] = np.nan
    check(given, *runs, rtol=1e-4)


def test_a_softmax_is_one_launch() -> None:
    x = [{"x0": values(np.float32, *s)} for s in (*SHAPES, (2, 2500))]
    check(one("Softmax", TensorProto.FLOAT), *x, launches=1)
    check(one("Softmax", TensorProto.FLOAT, dims=["n", 100]), {"x0": values(np.float32, 9, 100)}, launches=1)


def test_a_layer_normalisation_is_one_launch() -> None:
    given = model(
        [
            helper.make_node("Add", ["x", "r"], ["s"]),
            helper.make_node("LayerNormalization", ["s", "scale", "bias"], ["n"], axis=-1),
            helper.make_node("Gelu", ["n"], ["y"]),
        ],
        {
            "x": (TensorProto.FLOAT, ["n", "m", 48]),
            "r": (TensorProto.FLOAT, ["n", "m", 48]),
            "scale": (TensorProto.FLOAT, [48]),
            "bias": (TensorProto.FLOAT, [48]),
        },
    )
    weights = {"scale": values(np.float32, 48), "bias": values(np.float32, 48, seed=1)}
    runs = [
        {"x": values(np.float32, n, m, 48), "r": values(np.float32, n, m, 48, seed=2), **weights}
        for n, m in ((2, 3), (1, 1))
    ]
    check(given, *runs, launches=1)


@pytest.mark.parametrize("perm", [[1, 0, 2], [2, 1, 0], [0, 2, 1]])
def test_transposes(perm: list[int]) -> None:
    runs = [{"x0": values(np.float32, *s)} for s in ((3, 5, 37), (1, 1, 1), (2, 0, 3), (33, 2, 40))]
    check(one("Transpose", TensorProto.FLOAT, dims=["a", "b", "c"], perm=perm), *runs, launches=1)


def test_gather_reads_at_places_that_are_data() -> None:
    """Nobody is told of one that is outside, where there is a 0, as of ONNX Runtime's own kernels."""
    given = model(
        [helper.make_node("Gather", ["x", "at"], ["y"], axis=0)],
        {"x": (TensorProto.FLOAT, ["n", 24]), "at": (TensorProto.INT64, ["k"])},
    )
    check(given, {"x": values(np.float32, 11, 24), "at": np.array([3, -1, 10, 0, -11, 5], np.int64)}, launches=1)


def test_what_is_moved() -> None:
    given = model(
        [
            helper.make_node("Pad", ["x", "pads", "value"], ["p"]),
            helper.make_node("Slice", ["p", "starts", "ends", "axes", "steps"], ["s"]),
            helper.make_node("Concat", ["s", "x"], ["y"], axis=0),
        ],
        {"x": (TensorProto.FLOAT, ["n", 24])},
        {
            "pads": np.array([1, 2, 0, 3], np.int64),
            "value": np.float32(7.5),
            "starts": np.array([25], np.int64),
            "ends": np.array([1], np.int64),
            "axes": np.array([1], np.int64),
            "steps": np.array([-1], np.int64),
        },
    )
    check(given, {"x": values(np.float32, 5, 24)}, {"x": values(np.float32, 0, 24)})


def test_products_are_sums_of_products() -> None:
    """Not by tensor cores yet: as any sum."""
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
        {"x": (TensorProto.FLOAT, ["n", 40]), "w": (TensorProto.FLOAT, [40, "k"])},
    )
    check(given, {"x": values(np.float32, 5, 40), "w": values(np.float32, 40, 7)}, launches=1)


def test_bools_and_selections() -> None:
    given = model(
        [
            helper.make_node("Greater", ["x", "y"], ["g"]),
            helper.make_node("Not", ["g"], ["h"]),
            helper.make_node("And", ["h", "b"], ["c"]),
            helper.make_node("Where", ["c", "x", "y"], ["z"]),
        ],
        {
            "x": (TensorProto.FLOAT, ["n", "m"]),
            "y": (TensorProto.FLOAT, ["n", "m"]),
            "b": (TensorProto.BOOL, ["n", "m"]),
        },
    )
    x = values(np.float32, 4, 9)
    x[0, 0] = np.nan
    check(given, {"x": x, "y": values(np.float32, 4, 9, seed=1), "b": np.arange(36).reshape(4, 9) % 3 == 0}, launches=1)


def test_what_is_read_at_a_place_of_a_row_is_one_element() -> None:
    """A label of each row, beside sums along it: it has no lanes along what is summed."""
    given = model(
        [helper.make_node("SoftmaxCrossEntropyLoss", ["x", "labels"], ["y"], reduction="none")],
        {"x": (TensorProto.FLOAT, ["n", 5]), "labels": (TensorProto.INT64, ["n"])},
    )
    check(given, {"x": values(np.float32, 6, 5), "labels": np.array([0, 4, 2, 2, 1, 3], np.int64)})


def test_nothing_is_summed_up_of_an_axis_that_is_known_to_be_empty() -> None:
    given = model(
        [helper.make_node("ReduceSum", ["x", "axes"], ["s"]), helper.make_node("Add", ["s", "b"], ["y"])],
        {"x": (TensorProto.FLOAT, ["n", 0]), "b": (TensorProto.FLOAT, ["n", 1])},
        {"axes": np.array([1], np.int64)},
    )
    check(given, {"x": values(np.float32, 3, 0), "b": values(np.float32, 3, 1)})


def test_rows_beside_an_axis_that_is_empty() -> None:
    """Sums of rows that are a result are computed though nothing is that reads them."""
    given = model(
        [
            helper.make_node("ReduceSum", ["x", "axes"], ["s"]),
            helper.make_node("Mul", ["s", "z"], ["y"]),
        ],
        {"x": (TensorProto.FLOAT, ["n", "m"]), "z": (TensorProto.FLOAT, [1, "l"])},
        {"axes": np.array([1], np.int64)},
    )
    given.graph.output.append(helper.make_empty_tensor_value_info("s"))
    runs = [{"x": values(np.float32, 3, 5), "z": values(np.float32, 1, length)} for length in (0, 4)]
    check(given, *runs, launches=2)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("code, dtype", [(TensorProto.UINT8, np.uint8), (TensorProto.UINT32, np.uint32)])
def test_shifts_by_all_bits_and_more(code: int, dtype: Any, direction: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    x = np.array([[1, 3, 7, 200, 255]] * 2, dtype)
    by = np.array([[0, 1, width - 1, 3, 2], [width, width + 1, 100, 2, 0]], dtype)
    with np.errstate(all="ignore"):
        check(one("BitShift", code, code, direction=direction), {"x0": x, "x1": by}, launches=1)
