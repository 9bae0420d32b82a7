"""Single nodes, scheduled, compiled and called: what holds of a lowering when interpreted must hold of its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from igniter.verification.interp.structured import bind
from tests.ops.single_node import compare, kernel_of, model_of, module_of, optimise, reference
from tests.transforms.scheduled.scheduling import run_compiled, schedule

F32 = np.float32
EXTREME = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1e-3, 80.0, -80.0]


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1.5, shape).astype(dtype)


def ints(*shape: int, dtype: Any = np.int32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(1, 50, shape).astype(dtype)


def extreme(*tail: Any) -> Any:
    return np.concatenate([np.array(EXTREME, F32), floats(40)])


def run(
    op: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    tolerance: float,
    wanted: Sequence[Any] | None = None,
    **model: Any,
) -> None:
    """Compiles the node with static and with symbolic dims and compares with `wanted`, or else with the reference."""
    constant = model.get("constant", ())
    feeds = {f"x{k}": a for k, a in enumerate(inputs) if a is not None and k not in constant}
    wanted = reference(model_of(op, inputs, attrs, **model), feeds) if wanted is None else wanted
    for dynamic in (False, True):
        kernel = optimise(kernel_of(module_of(model_of(op, inputs, attrs, dynamic=dynamic, **model))))
        values = list(feeds.values())
        func = schedule(ModuleOp([kernel.clone()]))
        compare(run_compiled(func, values, bind(kernel, values, {})), wanted, tolerance)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bnqd,ndh->bqh", ((2, 3, 5, 8), (3, 8, 48))),
        ("bqnd,ndh->bqh", ((2, 9, 3, 8), (3, 8, 48))),  # Side by side: one reduction.
        ("bnqd,hnd->bqh", ((2, 3, 9, 8), (35, 3, 8))),  # Packed at run time.
        ("abcd,cdea->be", ((3, 9, 2, 5), (2, 5, 32, 3))),
        ("abc,bcad->ad", ((2, 3, 4), (3, 4, 2, 16))),  # No rows.
        ("ibk,kbj->ij", ((1, 3, 7), (7, 3, 16))),
        ("ibk,kbj->ij", ((9, 0, 7), (7, 0, 16))),
        ("ibk,kbj->ij", ((9, 3, 0), (0, 3, 16))),
        ("ibk,kbj->ij", ((0, 3, 7), (7, 3, 16))),
    ],
)
@pytest.mark.parametrize("dtype", (F32, np.float64, np.float16, np.int32))
def test_einsum_over_several_axes(equation: str, shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
    make = ints if dtype == np.int32 else floats
    inputs = [make(*shape, dtype=dtype, seed=k) for k, shape in enumerate(shapes)]
    tolerance = {np.float64: 1e-12, np.float16: 5e-3}.get(dtype, 1e-5)
    # ONNX Runtime divides by zero where a dim is empty, and does not have all types.
    sums = [np.einsum(equation, *(x.astype(np.float64) for x in inputs)).astype(dtype)]
    run("Einsum", inputs, {"equation": equation}, tolerance, sums)


FUNCTIONS = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor"),
    *("Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu"),
)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_function(op: str) -> None:
    run(op, [extreme()], {}, 2e-5)
    if op in ("Exp", "Tanh", "Sigmoid", "Log", "Sqrt", "Abs", "Neg", "Relu"):
        run(op, [floats(5, 7, dtype=np.float64)], {}, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize("op", ["Add", "Div", "Max", "Less", "Mod"])
def test_binary(op: str, dtype: str) -> None:
    attrs = {"fmod": 1} if op == "Mod" and np.dtype(dtype).kind == "f" else {}
    a = ints(5, 33, dtype=dtype) if np.dtype(dtype).kind in "iu" else floats(5, 33, dtype=dtype)
    b = ints(33, dtype=dtype, seed=1) if np.dtype(dtype).kind in "iu" else floats(33, dtype=dtype, seed=1)
    run(op, [a, b], attrs, 1e-6)
    run(op, [a, b[:1]], attrs, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_all_sizes(dtype: str) -> None:
    from tests.ops.test_elementwise import remainder_cases

    run("Mod", list(remainder_cases(dtype)), {"fmod": 1}, 0.0)


@pytest.mark.parametrize("to", ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_cast(source: str, to: str) -> None:
    from onnx.helper import np_dtype_to_tensor_dtype

    x = np.random.default_rng(0).integers(0, 2, 37).astype(bool) if source == "bool" else ints(37, dtype=source)
    if x.dtype.kind == "f":
        x[:12] = [np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -1e20, 300.5, -300.5, 2.9, -2.9, 0]
    run("Cast", [x], {"to": np_dtype_to_tensor_dtype(np.dtype(to))}, 0.0)


REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduction(op: str) -> None:
    x = np.abs(floats(3, 5, 37))
    for axes in ([2], [0, 1], [0, 2]):
        run(op, [x, np.array(axes)], {"keepdims": 0}, 2e-5, opset=18, constant=[1])
    # No more than five factors, lest the product overflows.
    run(op, [ints(3, 5 if op == "ReduceProd" else 37), np.array([1])], {}, 0.0, opset=18, constant=[1])
    run(op, [x[:, :0], np.array([1])], {}, 0.0, opset=18, constant=[1])


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_extremes_of_bytes(op: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 100)).astype(dtype)
    run(op, [x, np.array([1])], {}, 0.0, opset=18, constant=[1])
    run(op, [x, np.array([0])], {}, 0.0, opset=18, constant=[1])


@pytest.mark.slow
def test_arg_extremes_and_running_sums() -> None:
    x = np.random.default_rng(0).integers(0, 4, (3, 40)).astype(F32)
    for op in ("ArgMax", "ArgMin"):
        run(op, [x], {"axis": 1}, 0.0, opset=13)
        run(op, [x], {"axis": 0, "select_last_index": 1}, 0.0, opset=13)
    run("CumSum", [x, np.array(1)], {}, 1e-6, constant=[1])
    run("CumSum", [x, np.array(0)], {"reverse": 1, "exclusive": 1}, 1e-6, constant=[1])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str) -> None:
    inf = np.inf
    rows = np.array([[-inf, -inf, -inf], [np.nan, 1, 2], [inf, 1, 2], [1, 2, 3], [-inf, 0, 1], [1e4, -1e4, 0]], F32)
    run(op, [rows], {"axis": -1}, 1e-5, opset=13)
    run(op, [floats(2, 3, 37)], {"axis": -1}, 1e-5, opset=13)
    run(op, [floats(2, 37, 5)], {"axis": 1}, 1e-5, opset=13)
    run(op, [floats(2, 3, 17)], {"axis": 1}, 1e-5, opset=11)
    run(op, [floats(0, 4)], {}, 1e-5, opset=13)


@pytest.mark.slow
def test_normalizations() -> None:
    x, scale, bias = floats(2, 6, 37), floats(37, seed=1), floats(37, seed=2)
    run("LayerNormalization", [x, scale, bias], {}, 1e-5, opset=17, outputs=3)
    run("LayerNormalization", [x, floats(6, 37, seed=1)], {"axis": 1}, 1e-5, opset=17)
    channel = [floats(6, seed=k) for k in range(1, 4)]
    run("BatchNormalization", [x, *channel, np.abs(floats(6, seed=4))], {}, 1e-5, opset=15)
    run("InstanceNormalization", [x, *channel[:2]], {}, 1e-5)
    run("LpNormalization", [x], {"axis": 1}, 1e-5)
    run("SkipLayerNormalization", [x, x[:1], scale, bias], {}, 1e-5, domain="com.microsoft")
    run("SimplifiedLayerNormalization", [x, scale], {}, 1e-5)


@pytest.mark.slow
def test_attention() -> None:
    q, k, v = floats(3, 4, 19, 8), floats(3, 2, 37, 8, seed=1), floats(3, 2, 37, 6, seed=2)
    fixed: dict[str, Any] = {"fixed": [4, 2, 8, 6, 24, 12, 16, 32, 96], "opset": 23}
    run("Attention", [q, k, v], {"is_causal": 1, "softcap": 2.0}, 1e-5, **fixed)
    mask = np.random.default_rng(0).integers(0, 2, (19, 37)).astype(bool)
    mask[5] = False
    run("Attention", [q, k, v, mask], {}, 1e-5, **fixed)
    past = [floats(3, 2, 9, n, seed=n) for n in (8, 6)]
    run("Attention", [q, k, v, None, *past], {"is_causal": 1}, 1e-5, **fixed, outputs=4)
    joined = [floats(3, 19, 32), floats(3, 19, 32, seed=1), floats(3, 19, 32, seed=2), floats(96, seed=3)]
    padding = np.random.default_rng(0).integers(0, 2, (3, 19)).astype(np.int32)
    padding[:, 0] = 1
    masked = {"num_heads": 4, "unidirectional": 1}
    run("MultiHeadAttention", [*joined, padding], masked, 1e-5, domain="com.microsoft", **fixed)
    projected = [(floats(3, 19, 12) / 8).astype(F32), floats(12, 96, seed=1), floats(96, seed=2), padding]
    run("Attention", projected, masked, 2e-5, domain="com.microsoft", outputs=2, **fixed)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_attention_to_a_cache(interleaved: int) -> None:
    q, k, v = floats(3, 1, 64), floats(3, 1, 32, seed=1), floats(3, 1, 32, seed=2)
    cache, tables = [floats(3, 2, 37, 16, seed=n) for n in (3, 4)], [floats(50, 8, seed=n) for n in (5, 6)]
    lengths, total = np.array([37, 11, 0], np.int32), np.array(38, np.int32)
    attrs = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "rotary_interleaved": interleaved}
    for given in ([q, k, v], [np.concatenate([q, k, v], 2), None, None]):
        operands = [*given, *cache, lengths, total, *tables]
        options: dict[str, Any] = {"constant": [6], "outputs": 3, "fixed": [2, 8, 16, 64, 32, 128]}
        run("GroupQueryAttention", operands, attrs, 2e-5, domain="com.microsoft", **options)
