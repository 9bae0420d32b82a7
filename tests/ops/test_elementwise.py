"""Elementwise ops and activations against ONNX Runtime: types, broadcasting, ranks, empty tensors, NaN, infinities."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

import igniter
from igniter.runtime.session import make_session
from tests.ops.single_node import NotLowered, kernel_of, model_of, module_of, refusal
from tests.ops.single_node import check as check_exactly

F32 = np.float32
check = partial(check_exactly, tolerance=2e-6)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1e-3, 300.0, -300.0, 1e10]


def floats(shape: tuple[int, ...], dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 2, shape).astype(dtype)


def values(dtype: Any, shape: tuple[int, ...] = (4, 5), seed: int = 0) -> Any:
    """Values that the type holds, some of them extreme."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return floats(shape, dtype, seed)
    low, high = (0, 200) if dtype.kind == "u" else (-100, 100)
    return rng.integers(low, high, shape).astype(dtype)


FLOAT_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu"),
    *("Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"),
    "ThresholdedRelu",
)


@pytest.mark.parametrize("op", FLOAT_UNARY)
def test_float_function(op: str) -> None:
    x = np.concatenate([np.array(SPECIAL, F32), floats((40,))])
    x = np.where(np.abs(x) > 20, np.sign(x) * 20, x) if op in ("Sinh", "Cosh", "Sin", "Cos", "Tan") else x
    check(op, [x.astype(F32)], tolerance=2e-5)


@pytest.mark.parametrize(
    "op", ["Abs", "Exp", "Neg", "Relu", "Sqrt", "Sigmoid", "Tanh", "Floor", "Round", "Sign", "Log"]
)
def test_float64_function(op: str) -> None:
    check(op, [np.concatenate([np.array(SPECIAL), floats((40,), np.float64)])], tolerance=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (1, 1), (2, 3, 4), (2, 1, 3, 2), (1, 2, 1, 2, 3)])
def test_ranks_and_empty(shape: tuple[int, ...]) -> None:
    check("Relu", [floats(shape)])
    check("Mul", [floats(shape), floats(shape, seed=1)])


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("Elu", {"alpha": 0.3}),
        ("Celu", {"alpha": 2.5}),
        ("Celu", {"alpha": -0.5}),
        ("Celu", {"alpha": 0.0}),
        ("Celu", {"alpha": float("inf")}),
        ("Selu", {"alpha": 1.2, "gamma": 0.9}),
        ("LeakyRelu", {"alpha": -0.2}),
        ("HardSigmoid", {"alpha": 0.7, "beta": 0.1}),
        ("ThresholdedRelu", {"alpha": -0.5}),
        ("Shrink", {"bias": 0.3, "lambd": 1.1}),
        ("Gelu", {"approximate": "tanh"}),
    ],
)
def test_attributes(op: str, attrs: dict[str, Any]) -> None:
    check(op, [floats((5, 7))], attrs, tolerance=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Max", "Min", "Less", "Equal", "GreaterOrEqual", "Sum"])
def test_binary_types(op: str, dtype: str) -> None:
    if op == "Sum" and np.dtype(dtype).kind != "f":
        pytest.skip("floats only")
    a, b = values(dtype), values(dtype, (5,), 1)
    b[1:3] = a[0, 1:3]
    check(op, [a, b])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((), (2, 3)),
        ((2, 3, 4), (3, 1)),
        ((1, 5), (4, 1, 1)),
        ((0, 3), (1, 3)),
        ((2, 0), (2, 1)),
    ],
)
@pytest.mark.parametrize("op", ["Add", "Greater", "Pow", "PRelu"])
def test_broadcasting(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if op == "PRelu" and np.broadcast_shapes(a, b) != a:
        pytest.skip("the slopes broadcast to the input")
    check(op, [np.abs(floats(a)), floats(b, seed=1)], tolerance=2e-5)


def test_broadcast_of_unknown_dims_is_refused() -> None:
    model = model_of("Add", [floats((3, 4)), floats((3, 4))], {}, dynamic=True)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "other"
    with pytest.raises(NotLowered, match="dim n3 is not known to be 1 or equal to add_0"):
        kernel_of(module_of(model))


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Sessions of a sum of `a` and of `b` twice along both axes: ONNX Runtime's and Igniter's."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    doubled (float[h,w] a, float[p,q] b) => (float[?,?] y) {
        r = Relu(a) c = Concat<axis = 0>(b, b) d = Concat<axis = 1>(c, c) y = Add(r, d)
    }"""
    model = onnx.parser.parse_model(text)
    compiled = igniter.compile(model, tmp_path_factory.mktemp("doubled") / "m", verify=False, strict=True)
    return make_session(model.SerializeToString()), compiled.session()


@pytest.mark.parametrize("a", [(4, 6), (1, 6), (4, 1), (1, 1), (4, 34), (0, 6), (1, 0)])
@pytest.mark.parametrize("b", [(2, 3), (2, 17), (0, 3), (1, 0)])
def test_a_run_finds_out_which_dim_is_1(doubled: tuple[Any, Any], a: tuple[int, ...], b: tuple[int, ...]) -> None:
    feeds = {"a": floats(a), "b": floats(b, seed=1)}
    if all(x in (1, 2 * y) for x, y in zip(a, b, strict=True)):
        want, got = (session.run(None, feeds)[0] for session in doubled)
        np.testing.assert_array_equal(got, want)
        return
    with pytest.raises(Exception, match="its operands do not broadcast"):
        doubled[1].run(None, feeds)


def test_comparisons_with_nan() -> None:
    a = np.array([np.nan, 1, np.nan, 2], F32)
    b = np.array([np.nan, np.nan, 1, 2], F32)
    for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min", "Mean", "Sum"):
        check(op, [a, b])


def test_variadic() -> None:
    xs = [floats((2, 3)), floats((3,), seed=1), floats((2, 1), seed=2)]
    for op in ("Max", "Min", "Sum", "Mean"):
        for count in (1, 2, 3):
            check(op, xs[:count])
    check("Max", [values(np.int64), values(np.int64, seed=1), values(np.int64, seed=2)])


def test_logic() -> None:
    a, b = values(bool, (4, 3)), values(bool, (3,), 1)
    for op in ("And", "Or", "Xor", "Equal"):
        check(op, [a, b])
    check("Not", [a])
    check("Where", [a, floats((4, 3)), floats((3,), seed=1)])
    check("Where", [a, values(np.int64, (4, 3)), np.array(7, np.int64)])
    check("Where", [a[:, :1], values(np.uint8, (1, 3)), values(np.uint8, (4, 1), 1)])


def test_is_nan_and_inf() -> None:
    x = np.array([*SPECIAL], F32)
    check("IsNaN", [x], opset=13)
    for negative in (0, 1):
        for positive in (0, 1):
            check("IsInf", [x], {"detect_negative": negative, "detect_positive": positive}, opset=10)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
def test_integer_division(dtype: str) -> None:
    info = np.iinfo(dtype)
    a = np.array([7, 0, info.max, info.min, 100, 1], dtype)
    b = np.array([2, 3, info.max, 1, 7, info.max], dtype)
    if info.min < 0:
        a, b = np.concatenate([a, -a[:3], a[:3]]), np.concatenate([b, b[:3], -b[:3]])
    check("Div", [a, b])
    check("Mod", [a, b])
    check("Mod", [a, b], {"fmod": 1})


def test_integer_division_never_traps() -> None:
    least = np.iinfo(np.int32).min
    a, b = np.array([5, least, least, 0, -7], np.int32), np.array([2, -1, 1, -1, -1], np.int32)
    check("Div", [a, b], expected=[np.array([2, least, least, 0, 7], np.int32)])
    check("Mod", [a, b], expected=[np.array([1, 0, 0, 0, 0], np.int32)])
    check("Div", [a, np.array(-1, np.int32)], expected=[np.array([-5, least, least, 0, 7], np.int32)], constant=[1])
    check("Div", [a, np.array(3, np.int32)], constant=[1])


def remainder_cases(dtype: Any) -> tuple[Any, Any]:
    """Numbers of all sizes, by numbers of all sizes, zeros and infinities among them."""
    info = ml_dtypes.finfo(dtype)
    low, high = float(info.smallest_subnormal), float(info.max)
    rng = np.random.default_rng(0)
    sizes = np.exp2(rng.uniform(np.log2(low), np.log2(high), (2, 600))) * rng.choice([-1, 1], (2, 600))
    edges = [0.0, -0.0, low, -low, high, -high, np.inf, -np.inf, np.nan, 1.0, -2.5, 3.0]
    left, right = np.meshgrid(edges, edges)
    a = np.concatenate([sizes[0], left.ravel(), rng.normal(0, 9, 200)])
    b = np.concatenate([sizes[1], right.ravel(), rng.integers(-8, 8, 200) / 2])
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", [F32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_float_remainder_is_exact(dtype: Any) -> None:
    a, b = remainder_cases(dtype)
    if dtype == np.float64:  # Of which the interpreter divides one after the other.
        a, b = a[600:760:9], b[600:760:9]
    with np.errstate(invalid="ignore"):
        # Not 0: numpy tells NaNs of ml_dtypes apart.
        check_exactly("Mod", [a, b], {"fmod": 1}, expected=[np.fmod(a, b)], tolerance=1e-300)
        if dtype in (F32, np.float16):
            check_exactly("Mod", [a, b], {"fmod": 1})
        if dtype != ml_dtypes.bfloat16:
            floored = np.mod(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
            tolerance = 1e-6 if dtype == F32 else 0.0
            check_exactly("Mod", [a, b], opset=28, expected=[floored], tolerance=tolerance)


def test_float_remainder_is_refused() -> None:
    assert "before opset 28" in refusal("Mod", [floats((3,)), floats((3,))])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_shrink(dtype: str) -> None:
    x = np.array([0, 1, 2, 3, 5, 100, 7], dtype)
    x = np.concatenate([x, -x]) if np.dtype(dtype).kind == "i" else x
    for bias, lambd in ((0.5, 1.5), (300.0, 1.0), (-0.7, 0.5)):
        check_exactly("Shrink", [x], {"bias": bias, "lambd": lambd})


def test_swiglu() -> None:
    for dtype, tolerance in ((F32, 2e-6), (np.float16, 2e-3)):
        a, b = floats((3, 7), dtype), floats((3, 7), dtype, seed=1)
        wide = a.astype(np.float64)
        for alpha in (1.0, 1.7):
            wanted = (wide / (1 + np.exp(-alpha * wide)) * b).astype(dtype)
            check_exactly("SwiGLU", [a, b], {"alpha": alpha}, opset=28, expected=[wanted], tolerance=tolerance)


def test_pow() -> None:
    x = np.array([*SPECIAL], F32)
    for exponent in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, 2.5):
        check("Pow", [x, np.array(exponent, F32)], constant=[1], tolerance=2e-5)
        check("Pow", [x, np.array(exponent, F32)], tolerance=2e-5)
    check("Pow", [np.array([2, -2, 3, 7, 2], np.int32), np.array([10, 3, -1, 2, 0], np.int32)])
    check("Pow", [np.array([3037000499, -3], np.int64), np.array(2, np.int64)], constant=[1])
    check("Pow", [np.array([3, 4, 9], np.int32), np.array([0.5, 2, 0.5], F32)])
    check("Pow", [np.array([3, -2, 0, 4], F32), np.array([2, -1, -1, 3], np.int32)])
    check("Pow", [np.array([3, 2, 0, 4], F32), np.array([2, -1, -1, 3.5], np.float64)])
    check("Pow", [np.array([3, 2, 5, 4], np.float64), np.array([2, -1, -1, 3.5], F32)])


def test_bits() -> None:
    a, b = values(np.uint8), values(np.uint8, seed=1)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        check(op, [a, b])
        check(op, [values(np.int64), values(np.int64, (5,), 1)])
    check("BitwiseNot", [a])
    check("BitwiseNot", [values(np.int32)])
    for direction in ("LEFT", "RIGHT"):
        check("BitShift", [a, np.arange(20, dtype=np.uint8).reshape(4, 5)], {"direction": direction})
    signed, by = np.array([-8, 5, -1, 100, -100], np.int8), np.array([1, 2, 8, 100, -1], np.int8)
    check("BitShift", [signed, by], {"direction": "RIGHT"}, opset=26, expected=[np.array([-4, 1, -1, 0, -1], np.int8)])


@pytest.mark.parametrize("to", ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"])
def test_cast(source: str, to: str) -> None:
    x = values(source)
    if x.dtype.kind == "f":
        extreme = [
            np.nan,
            np.inf,
            -np.inf,
            3e9,
            -3e9,
            1e20,
            -1e20,
            300.5,
            -300.5,
            2.9,
            -2.9,
            7e4,
            5e9,
            2**31 - 1,
            -(2**31),
            0,
        ]
        x = np.concatenate([np.array(extreme, x.dtype), x.reshape(-1)])
    if source in ("int32", "int64"):
        x[0, :3] = [np.iinfo(source).min, np.iinfo(source).max, 257]
    from onnx.helper import np_dtype_to_tensor_dtype

    check("Cast", [x], {"to": np_dtype_to_tensor_dtype(np.dtype(to))})
    check("CastLike", [x, np.zeros((2,), to)])


def test_clip() -> None:
    x = np.array([*SPECIAL], F32)
    low, high = np.array(-1.5, F32), np.array(2, F32)
    for bounds in ([low, high], [low, None], [None, high], [None, None], [high, low], [np.array(np.nan, F32), high]):
        given = [i + 1 for i, b in enumerate(bounds) if b is not None]
        check("Clip", [x, *bounds])
        check("Clip", [x, *bounds], constant=given)
    check("Clip", [x], {"min": -1.5, "max": 2.0}, opset=6)
    check("Clip", [x], {"max": 2.0}, opset=10)
    check("Clip", [x], opset=10)
    for dtype in (np.float64, np.int32, np.int64, np.int8, np.uint8):
        check("Clip", [values(dtype), np.array(3, dtype), np.array(50, dtype)])


def test_dropout() -> None:
    x = floats((3, 4))
    check("Dropout", [x], {"ratio": 0.5}, opset=10)
    check("Dropout", [x], opset=13, outputs=2)
    check("Dropout", [x, np.array(0.5, F32), np.array(False)], opset=13, outputs=2, constant=[1, 2])
    inputs = [x, np.array(0.5, F32), np.array(True)]
    assert refusal("Dropout", inputs, opset=13, constant=[1, 2]) == "it drops values at random, in training"
    assert refusal("Dropout", inputs, opset=13) == "whether it is in training is known only at run time"


def test_identity_copies() -> None:
    check("Identity", [floats((3, 4))])
    check("Identity", [values(bool)])


def test_onnx_runtime_activations() -> None:
    x, bias = floats((3, 8)), floats((8,), seed=1)
    kwargs: dict[str, Any] = {"domain": "com.microsoft", "tolerance": 2e-5}
    check("Gelu", [x], **kwargs)
    check("QuickGelu", [x], **kwargs)
    check("QuickGelu", [x], {"alpha": 0.7}, **kwargs)
    check("FastGelu", [x], **kwargs)
    check("FastGelu", [x, bias], **kwargs)
    # ONNX Runtime runs the function body, whose constants have six digits.
    check("FastGelu", [x.astype(np.float64)], domain="com.microsoft", tolerance=1e-13)
    check("BiasGelu", [x, bias], **kwargs)


def test_swish() -> None:
    x = floats((3, 8))
    check("Swish", [x], {"alpha": 0.5}, opset=24, tolerance=2e-5)
    check("Swish", [x], opset=24, tolerance=2e-5)


def test_legacy_broadcast_is_refused() -> None:
    assert "opset 6" in refusal("Add", [floats((2, 3)), floats((3,))], {"broadcast": 1}, opset=6)


def test_types_that_kernels_do_not_compute_with_are_refused() -> None:
    assert "complex" in refusal("Add", [values(np.complex64), values(np.complex64)])


def test_softplus_far_below_zero() -> None:
    """`log(1 + exp(x))` is `exp(x)` there, not 0."""
    x = np.array([-5, -17, -50, -100, 0, 50], np.float32)
    check("Softplus", [x], expected=[np.log1p(np.exp(-abs(x.astype(np.float64)))).astype(np.float32) + x.clip(0)])
