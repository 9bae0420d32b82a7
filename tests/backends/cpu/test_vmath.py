"""The stated error bounds of the elementary functions, over the whole range of floats."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from .cpu_kit import TARGETS, Array, Elementary
from .every_float import worst_of_all

# In units in the last place of the exact result. f32 that is computed in f64 is within 0.51.
BOUNDS32 = {
    "exp": 1.1,
    "exp2": 1.0,
    "expm1": 1.5,
    "log": 1.0,
    "tanh": 2.5,
    "erf": 2.0,
    "rsqrt": 1.5,
    "sqrt": 0.501,
    "acos": 1.5,
    "acosh": 0.51,
    "asin": 1.5,
    "asinh": 0.51,
    "atan": 2.0,
    "atanh": 0.51,
    "cbrt": 0.51,
    "cos": 0.51,
    "cosh": 0.51,
    "log10": 0.51,
    "log1p": 0.51,
    "log2": 0.51,
    "sin": 0.51,
    "sinh": 0.51,
    "tan": 0.51,
    "ceil": 0.0,
    "floor": 0.0,
    "round": 0.0,
    "roundeven": 0.0,
    "trunc": 0.0,
}
BOUNDS64 = {
    "exp": 1.1,
    "exp2": 1.1,
    "expm1": 2.0,
    "log": 1.0,
    "log2": 1.0,
    "log10": 1.0,
    "log1p": 1.5,
    "sin": 1.0,
    "cos": 1.0,
    "tan": 2.5,
    "asin": 1.5,
    "acos": 1.5,
    "atan": 2.0,
    "sinh": 2.5,
    "cosh": 1.5,
    "tanh": 2.5,
    "asinh": 2.5,
    "acosh": 2.5,
    "atanh": 2.5,
    "erf": 1.5,
    "cbrt": 1.0,
    "rsqrt": 1.5,
    "pow": 1.5,
    "atan2": 2.5,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1.5, 2.5, -2.5, 1e-45, -1e-45]
NUMPY_NAMES = {
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "roundeven": "rint",
}


def reference32(name: str, x: Array) -> Array:
    """numpy's function in f64."""
    with np.errstate(all="ignore"):
        x = x.astype(np.float64)
        if name == "erf":
            return np.vectorize(math.erf)(x)
        if name == "rsqrt":
            return 1 / np.sqrt(x)
        if name == "round":
            return np.trunc(x + np.copysign(0.5, x))
        return getattr(np, NUMPY_NAMES.get(name, name))(x)


def errors32(actual: Array, exact: Array) -> Array:
    """In units in the last place; infinite where a NaN, an infinity or a zero's sign is wrong."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        error = np.abs(actual.astype(np.float64) - exact) / np.where(np.isfinite(unit), unit, 2.0**104)
        # Half an ulp below infinity, either is right.
        overflow = np.isinf(actual) & (np.abs(exact) > 3.4028235677973366e38) & (np.sign(actual) == np.sign(exact))
        same = (np.isnan(actual) & np.isnan(exact)) | ((actual == rounded) & ~np.isfinite(rounded)) | overflow
        error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
        wrong_zero = (exact == 0) & (np.signbit(actual) != np.signbit(exact))
        return np.where(wrong_zero, np.inf, error)


def floats(step: int, first: int = 0, count: int | None = None) -> Array:
    """Every `step`-th float of all 2^32, with the special values in front."""
    end = 2**32 if count is None else first + count * step
    bits = np.arange(first, end, step, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([np.array(SPECIAL, np.float32), bits.view(np.float32)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(BOUNDS32))
def test_f32_over_the_whole_range(name: str, target: str):
    x = floats(50021)
    actual = Elementary(name, "f4", target)(x)
    errors = errors32(actual, reference32(name, x))
    worst = int(errors.argmax())
    assert errors[worst] <= BOUNDS32[name], f"{name}({x[worst]!r}) = {actual[worst]!r}: {errors[worst]:.3f} ulp"


@pytest.mark.parametrize("lanes", [0, 1, 4, 5, 32])
@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "log", "sin", "log2"])
def test_any_width_computes_the_same(name: str, lanes: int):
    """Scalars, odd widths and vectors of several registers; `scale` has two ways, which round alike."""
    x = floats(900001)
    np.testing.assert_array_equal(Elementary(name, "f4", lanes=lanes)(x), Elementary(name, "f4")(x))


def pow_samples(count: int, dtype: str, rng: np.random.Generator) -> tuple[Array, Array]:
    base = [
        *SPECIAL,
        *rng.uniform(-3, 3, count),
        *np.exp(rng.uniform(-80, 80, count)),
        *(1 + rng.normal(0, 1e-3, count)),
    ]
    exponent = [*rng.integers(-9, 9, len(SPECIAL)), *rng.integers(-30, 30, count), *rng.uniform(-2, 2, count)]
    exponent += [*rng.normal(0, 3e4, count)]
    x, y = np.array(base).astype(dtype), np.array(exponent).astype(dtype)
    crossed = np.array(np.meshgrid([*SPECIAL, 3.0, -3.0, 1e30, -1e30], [*SPECIAL, 3.0, -3.0, 1e30])).reshape(2, -1)
    return np.concatenate([x, crossed[0].astype(dtype)]), np.concatenate([y, crossed[1].astype(dtype)])


@pytest.mark.parametrize("target", TARGETS)
def test_pow_and_atan2_f32(target: str):
    x, y = pow_samples(3000, "f4", np.random.default_rng(0))
    with np.errstate(all="ignore"):
        exact_pow = np.power(x.astype("f8"), y.astype("f8"))
        exact_atan = np.arctan2(x.astype("f8"), y.astype("f8"))
    assert errors32(Elementary("pow", "f4", target)(x, y), exact_pow).max() <= 0.51
    assert errors32(Elementary("atan2", "f4", target)(x, y), exact_atan).max() <= 0.51


@pytest.mark.parametrize("target", TARGETS)
def test_special_cases_f64(target: str):
    """Zeros, infinities, NaN and subnormals as numpy has them."""
    x = np.array([*SPECIAL, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308])
    for name in sorted(BOUNDS64.keys() - {"pow", "atan2"}):
        actual, expected = Elementary(name, "f8", target)(x), reference32(name, x)
        np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=5e-324, err_msg=name)
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]), name)
    x, y = pow_samples(4, "f8", np.random.default_rng(1))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(Elementary("pow", "f8", target)(x, y), np.power(x, y), rtol=3e-15)
        np.testing.assert_allclose(Elementary("atan2", "f8", target)(x, y), np.arctan2(x, y), rtol=3e-15)


# -- f64 against mpmath -----------------------------------------------------------------------------------------------


def samples64(name: str, rng: np.random.Generator, count: int) -> list[Array]:
    """Arguments where the function is neither overflown nor constant."""

    def uniform(low: float, high: float) -> Array:
        return rng.uniform(low, high, count)

    def spread(low: float, high: float) -> Array:
        return np.exp(rng.uniform(math.log(low), math.log(high), count)) * rng.choice([-1, 1], count)

    small, any_size, near_one = spread(1e-9, 0.1), spread(1e-300, 1e300), 1 + rng.uniform(-1e-3, 1e-3, count)
    domains: dict[str, list[Array]] = {
        "exp": [uniform(-745, 709.7), uniform(-2, 2)],
        "exp2": [uniform(-1074, 1023.9), small],
        "expm1": [uniform(-40, 709), uniform(-2, 2), small],
        "log": [np.abs(any_size), uniform(0.5, 2), near_one],
        "log2": [np.abs(any_size), uniform(0.5, 2), near_one],
        "log10": [np.abs(any_size), uniform(0.5, 2), near_one],
        "log1p": [uniform(-1, 2), small],
        "sin": [uniform(-10, 10), uniform(-1e6, 1e6), any_size, spread(1e6, 1e9)],
        "cos": [uniform(-10, 10), uniform(-1e6, 1e6), any_size, spread(1e6, 1e9)],
        "tan": [uniform(-10, 10), uniform(-1e6, 1e6), any_size],
        "asin": [uniform(-1, 1), small, 1 - np.abs(small)],
        "acos": [uniform(-1, 1), small, 1 - np.abs(small), np.abs(small) - 1],
        "atan": [uniform(-3, 3), any_size, spread(1, 1e3)],
        "sinh": [uniform(-710.4, 710.4), uniform(-3, 3), small],
        "cosh": [uniform(-710.4, 710.4), uniform(-3, 3)],
        "tanh": [uniform(-20, 20), uniform(-2, 2), small],
        "asinh": [uniform(-5, 5), small, spread(1, 1e9)],
        "acosh": [1 + np.abs(spread(1e-8, 1e10)), uniform(1, 3)],
        "atanh": [uniform(-1, 1), small],
        "erf": [uniform(-6, 6), uniform(-1.2, 1.2), small],
        "cbrt": [any_size, uniform(-5, 5)],
        "rsqrt": [np.abs(any_size)],
        "pow": [np.abs(any_size), uniform(0, 3), near_one],
        "atan2": [uniform(-3, 3)],
    }
    x = np.concatenate(domains[name])
    if name == "pow":
        return [x, np.concatenate([uniform(-1, 1), uniform(-300, 300), uniform(-6e5, 6e5)])]
    return [x, rng.uniform(-3, 3, len(x))] if name == "atan2" else [x]


def worst64(name: str, target: str, count: int, seed: int) -> tuple[float, list[float]]:
    """The largest error in ulp against mpmath, and where."""
    functions = {
        "pow": mp.power,
        "exp2": lambda v: mp.power(2, v),
        "log2": lambda v: mp.log(v, 2),
        "log1p": lambda v: mp.log(1 + v),
        "cbrt": lambda v: mp.sign(v) * mp.cbrt(abs(v)),
        "rsqrt": lambda v: 1 / mp.sqrt(v),
    }
    exact = functions.get(name) or getattr(mp, name)
    arguments = samples64(name, np.random.default_rng(seed), count)
    actual = Elementary(name, "f8", target)(*arguments)
    worst, where = 0.0, [0.0]
    # Reducing 1e300 by pi takes a thousand bits of it; sums like 1 + x lose nothing at 300.
    with mp.workprec(1300 if name in ("sin", "cos", "tan") else 300):
        for k in range(len(actual)):
            wanted = exact(*[mp.mpf(float(a[k])) for a in arguments])
            if not math.isfinite(float(wanted)):
                assert actual[k] == float(wanted)
                continue
            error = float(abs(mp.mpf(float(actual[k])) - wanted) / mp.mpf(float(np.spacing(abs(float(wanted))))))
            if not error <= worst:
                worst, where = error, [float(a[k]) for a in arguments]
    return worst, where


@pytest.mark.parametrize("name", sorted(BOUNDS64))
def test_f64_against_mpmath(name: str):
    worst, where = worst64(name, "native", 150, 0)
    assert worst <= BOUNDS64[name], f"{name}{where}: {worst:.3f} ulp"


@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(BOUNDS64))
def test_f64_against_mpmath_at_length(name: str, target: str):
    worst, where = worst64(name, target, 4000, 1)
    assert worst <= BOUNDS64[name], f"{name}{where}: {worst:.3f} ulp"


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(BOUNDS32))
def test_every_float(name: str):
    """All 2^32 floats, against libm in double precision."""
    worst, where = worst_of_all(name)
    assert worst <= BOUNDS32[name], f"{name}({where!r}): {worst:.3f} ulp"


@pytest.mark.slow
def test_the_compiled_comparison():
    """It judges as numpy's does: the worst of every 64th block of 2^24 floats is as large as what numpy finds there."""
    x = np.concatenate([floats(1009, first, 2**24 // 1009) for first in range(0, 2**32, 2**24 * 64)])
    for name in ("erf", "log"):
        found, _ = worst_of_all(name, step=64)
        errors = errors32(Elementary(name, "f4")(x), reference32(name, x))
        assert errors[len(SPECIAL) :].max() <= found * (1 + 1e-9) <= BOUNDS32[name]


def test_half_floats_are_computed_in_single():
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for target in TARGETS:
        with np.errstate(all="ignore"):
            expected = np.exp(x.astype(np.float64)).astype(np.float16)
        actual = Elementary("exp", "f2", target)(x)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        # Rounding twice, to f32 and to f16, differs where the f32 lies next to the middle of two halves.
        assert np.count_nonzero(~same) <= 4, target


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype, least", [("f4", -87.33), ("f8", -708.39)])
def test_exponentials_of_a_softmax(target: str, dtype: str, least: float):
    """The formula for arguments up to 0: that of `exp` where the result is normal, and 0 far below."""
    function = Elementary("exp_nonpositive", dtype, target)
    x = np.linspace(least, 1e-3, 4000).astype(dtype)
    exact = np.array([float(mp.exp(mp.mpf(float(v)))) for v in x])
    assert np.max(np.abs(function(x).astype("f8") - exact) / np.spacing(exact.astype(dtype)).astype("f8")) < 1.2
    below = np.array([least - 0.1, least - 0.3], dtype)
    assert np.all((function(below) >= 0) & (function(below) < np.finfo(dtype).tiny * 1.01))
    values = np.array([0.0, -0.0, 1.5 * least, -np.inf, np.nan], dtype)
    np.testing.assert_array_equal(function(values), np.array([1, 1, 0, 0, np.nan], dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype, most", [("f4", 88.3), ("f8", 709.4)])
def test_exponentials_of_a_sigmoid(target: str, dtype: str, most: float):
    function = Elementary("exp_saturating", dtype, target)
    x = np.linspace(-87.0, most, 4000).astype(dtype)
    exact = np.array([float(mp.exp(mp.mpf(float(v)))) for v in x])
    assert np.max(np.abs(function(x).astype("f8") - exact) / np.spacing(exact.astype(dtype)).astype("f8")) < 1.2
    values = np.array([0.0, -0.0, most + 2, np.inf, -np.inf, np.nan], dtype)
    np.testing.assert_array_equal(function(values), np.array([1, 1, np.inf, np.inf, 0, np.nan], dtype))
