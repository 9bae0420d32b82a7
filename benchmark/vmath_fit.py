"""Fits the polynomials of the vector math: `python -m benchmark.vmath_fit`.

Its output is `igniter/backends/cpu/vmath/coefficients.py`. It needs mpmath, which is in the extra `dev`. Most fits are
mpmath's near-minimax polynomials of a quotient that leaves the leading terms of the function exact, so that rounding
the coefficients costs nothing. The float `erf` is fitted with Lawson's algorithm (iterated, reweighted least squares),
because its weight is far from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# Its types say that every result may be complex, where it has types.
mp: Any = import_module("mpmath")


def polynomial(f: Callable[[Any], Any], low: float, high: float, degree: int) -> list[float]:
    """Coefficients, constant first, of a near-minimax polynomial for `f` on an interval."""
    mp.mp.dps = 120
    found = mp.chebyfit(f, [mp.mpf(low), mp.mpf(high)], degree + 1)
    return [float(c) for c in reversed(found)]


def erf32_exponent(degree: int, high: float) -> list[float]:
    """`-log(erfc(x))/x - 1` on [0, high], weighted by how much `erf` feels it."""
    import numpy as np

    mp.mp.dps = 40
    count = 3000
    x = high * 0.5 * (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count))
    exponent = np.array([float(-mp.log(mp.erfc(v))) for v in x])
    target = exponent / x - 1
    sensitivity = exponent / np.expm1(exponent)
    basis = np.stack([(x / high) ** i for i in range(degree + 1)], 1)
    weight = np.ones(count)
    best, best_error = basis[0], np.inf
    for _ in range(80):
        scale = np.sqrt(weight) * sensitivity / (target + 1)
        c = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)[0]
        error = np.abs((basis @ c - target) / (target + 1) * sensitivity)
        if error.max() < best_error:
            best, best_error = c, error.max()
        weight *= (error / error.max() + 1e-3) ** 0.5
        weight /= weight.sum()
    return [float(best[i] / high**i) for i in range(degree + 1)]


def series(f: Callable[[Any], Any], low: float, high: float, degree: int, at: float = 1e-25) -> list[float]:
    """`polynomial`, for quotients that mpmath cannot evaluate at 0."""
    return polynomial(lambda v: f(v) if abs(v) > at else f(mp.mpf(at)), low, high, degree)


def tables() -> dict[str, list[float]]:
    """Every table by name."""
    mp.mp.dps = 120
    half_ln2 = float(mp.log(2) / 2) * 1.0005

    def expm1_rest(r: Any) -> Any:
        return (mp.expm1(r) - r) / r**2

    def log_rest(z: Any) -> Any:
        s = mp.sqrt(z)
        return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3

    def log_rest5(z: Any) -> Any:
        s = mp.sqrt(z)
        return (log_rest(z) - mp.mpf(2) / 3) / s**2

    def sin_rest(z: Any) -> Any:
        r = mp.sqrt(z)
        return (mp.sin(r) - r) / r**3

    def cos_rest(z: Any) -> Any:
        r = mp.sqrt(z)
        return (mp.cos(r) - 1 + z / 2) / z**2

    def atan_rest(z: Any) -> Any:
        t = mp.sqrt(z)
        return (mp.atan(t) - t) / t**3

    def asin_rest(z: Any) -> Any:
        t = mp.sqrt(z)
        return (mp.asin(t) - t) / t**3

    def erf_rest(z: Any) -> Any:
        x = mp.sqrt(z)
        return mp.erf(x) / x - 1

    def erfcx(t: Any) -> Any:
        # t = (x - 2) / (x + 2), which takes [1, 6] to [-1/3, 1/2].
        x = 2 * (1 + t) / (1 - t)
        return mp.exp(x * x) * mp.erfc(x)

    z_log = float((mp.sqrt(2) - 1) ** 2 / (mp.sqrt(2) + 1) ** 2) * 1.001
    z_sin = float((mp.pi / 4) ** 2) * 1.001
    z_atan = float((mp.sqrt(2) - 1) ** 2) * 1.001
    low, high = float(mp.sqrt(0.5)) - 1, float(mp.sqrt(2)) - 1
    return {
        "EXP32": series(expm1_rest, -half_ln2, half_ln2, 4),
        "EXPM1_32": series(expm1_rest, -half_ln2, half_ln2, 5),
        "EXP2_32": series(lambda r: (2**r - 1) / r, -0.5, 0.5, 6),
        "ERF32": erf32_exponent(8, 3.95),
        "LOG32": series(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, low * 1.001, high * 1.001, 8),
        "EXP64": series(expm1_rest, -half_ln2, half_ln2, 10),
        "EXPM1_64": series(expm1_rest, -half_ln2, half_ln2, 11),
        "EXP2_64": series(lambda r: (2**r - 1) / r, -0.5, 0.5, 12),
        "EXP_FOR32": series(expm1_rest, -half_ln2, half_ln2, 6),
        "LOG64": series(log_rest, 0.0, z_log, 7),
        "LOG_FOR32": series(log_rest, 0.0, z_log, 5),
        "LOG64_FIFTH": series(log_rest5, 0.0, z_log, 7),
        "SIN64": series(sin_rest, 0.0, z_sin, 6),
        "COS64": series(cos_rest, 0.0, z_sin, 6),
        "SIN_FOR32": series(sin_rest, 0.0, z_sin, 3),
        "COS_FOR32": series(cos_rest, 0.0, z_sin, 3),
        "ATAN64": series(atan_rest, 0.0, z_atan, 11),
        "ATAN_FOR32": series(atan_rest, 0.0, z_atan, 5),
        "ATAN32": series(atan_rest, 0.0, 1.0001, 8),
        "ASIN32": series(asin_rest, 0.0, 0.2501, 5),
        "ASIN64": series(asin_rest, 0.0, 0.2501, 13),
        "ERF64": series(erf_rest, 0.0, 1.0001, 14),
        "ERFC64": polynomial(erfcx, -0.334, 0.501, 18),
    }


def main() -> None:
    source = "made by `benchmark/vmath_fit.py`, which says what each one fits"
    print(f'"""Coefficients of the polynomials, constant first: {source}."""')
    print("\nfrom __future__ import annotations\n")
    for name, values in tables().items():
        print(f"{name} = (")
        for value in values:
            print(f"    {value!r},")
        print(")")


if __name__ == "__main__":
    main()
