"""Attention in blocks of keys is attention: against numpy, compiled, for scores and numbers of keys of every kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from igniter.backends.cpu.jit import CompiledFunc, compile_func
from igniter.dialects.loop import FuncOp
from igniter.registry import load_pass
from igniter.verification.interp.structured import run_kernel
from tests.transforms.scheduled.scheduling import SCHEDULE, Array, IgniterContext, call, kernel_of, parse

KEYS = 32

ATTENTION = """
builtin.module {
  loop.kernel @attention symbols [s, t] (%q: tensor<?x64xf32, #sym.dims<s, 64>>, %k: tensor<?x64xf32, #sym.dims<t, 64>>, %v: tensor<?x64xf32, #sym.dims<t, 64>>, %mask: tensor<?x?xf32, #sym.dims<s, t>>) -> (tensor<?x64xf32, #sym.dims<s, 64>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 64] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %k[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %masked = loop.nest "masked" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %m = loop.read %mask[i, j] : f32
      %b = arith.mulf %a, %scale : f32
      %c = arith.addf %b, %m : f32
      loop.yield none %c at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %masked[i, j] : f32
      loop.yield max %a at [i]
    }
    %floor = loop.nest "floor" [i: parallel s] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %max[i] : f32
      %n = loop.index t : i64
      %f = arith.sitofp %n : i64 to f32
      %g = math.log %f : f32
      %b = FLOOR
      %c = arith.addf %b, %g : f32
      loop.yield none %c at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %masked[i, j] : f32
      %x = loop.read %floor[i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 64, j: reduction t] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %v[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 64] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %o[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x64xf32, #sym.dims<s, 64>>
  }
}"""  # noqa: E501

WHOLE = ATTENTION.replace("%b = FLOOR", "").replace("addf %b, %g", "addf %a, %g")
"""Of a row of -inf alone, NaN is made."""

EMPTIED = ATTENTION.replace(
    "%b = FLOOR", "%least = arith.constant -1.0e30 : f32\n      %b = arith.maximumf %a, %least : f32"
)
"""Of a row of -inf alone, sums of zeros are made: 0 / 0."""


@cache
def split_and_compiled(text: str) -> tuple[FuncOp, CompiledFunc]:
    func = split(text)
    return func, compile_func(func)


def split(text: str, keys: int = KEYS) -> FuncOp:
    module = parse(text)
    load_pass("split-softmax")(keys=keys).apply(IgniterContext(), module)
    module.verify()
    assert "values.blocks" in [nest.label for nest in kernel_of(module).nests], "it was split"
    for name, options in (("pack-operands", {}), ("check-bounds", {"guard": True}), *((n, {}) for n in SCHEDULE)):
        load_pass(name)(**options).apply(IgniterContext(), module)
    module.verify()
    return next(op for op in module.ops if isinstance(op, FuncOp))


def inputs(rows: int, keys: int) -> list[Array]:
    rng = np.random.default_rng(rows + keys)
    q, k, v = (rng.standard_normal((n, 64)).astype("f4") for n in (rows, keys, keys))
    return [q, k, v, np.zeros((rows, keys), "f4")]


def attention(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """As it is defined, in f64; a row of -inf alone, and one with NaN or +inf, is NaN."""
    scores = q.astype("f8") @ k.astype("f8").T * 0.125 + mask
    with np.errstate(invalid="ignore", divide="ignore"):
        e = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
        return e @ v.astype("f8") / e.sum(1, keepdims=True)


def check(values: list[Array], text: str = WHOLE, wanted: Array | None = None) -> Array:
    sizes = {"s": len(values[0]), "t": len(values[1])}
    (got,) = call(*split_and_compiled(text), values, sizes)
    np.testing.assert_allclose(got, attention(*values) if wanted is None else wanted, 2e-5, 2e-6)
    return got


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 2, 31, 32, 33, 64, 100, 257])
@pytest.mark.parametrize("rows", [1, 9])
def test_numbers_of_keys_that_blocks_divide_or_not(rows: int, keys: int) -> None:
    check(inputs(rows, keys))


def test_no_keys_and_no_rows() -> None:
    assert np.isnan(check(inputs(3, 0))).all()
    check(inputs(0, 40))


def test_nan_and_infinite_scores_make_their_row_nan() -> None:
    values = inputs(6, 100)
    values[3][1, 70] = np.nan
    values[3][2, 3] = np.inf
    values[3][4, 99] = np.nan
    got = check(values)
    assert np.isnan(got).all(1).tolist() == [False, True, True, False, True, False]


def test_blocks_of_minus_infinity_and_rows_of_it() -> None:
    values = inputs(6, 100)
    values[3][0, :KEYS] = -np.inf
    values[3][1, KEYS:] = -np.inf
    values[3][2, 5:] = -np.inf
    values[3][3, :] = -np.inf
    values[3][4, :99] = -np.inf
    got = check(values)
    assert np.isnan(got).all(1).tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize("low", [-1e4, -3e38, float(np.finfo("f4").min)])
def test_masks_of_low_numbers(low: float) -> None:
    values = inputs(4, 100)
    values[3][0, :KEYS] = low
    values[3][1, 40:] = low
    values[3][2, :] = low
    (wanted,) = run_kernel(kernel_of(parse(WHOLE)), values, {"s": 4, "t": 100})
    # What a low number leaves of the scores that are added to it is another question.
    got = check(values, wanted=wanted)
    assert np.isfinite(got).all()


def test_causal() -> None:
    values = inputs(70, 70)
    values[3][:] = np.triu(np.full((70, 70), -np.inf, "f4"), 1)
    check(values)


@pytest.mark.slow
def test_a_row_whose_floor_is_not_its_maximum() -> None:
    values = inputs(4, 100)
    values[3][0, :] = -np.inf
    values[3][1, 7:] = -np.inf
    check(values, EMPTIED)


def test_scores_that_differ_by_more_than_exponentials_hold() -> None:
    values = inputs(4, 100)
    values[3][0] = np.linspace(-500, 500, 100)
    values[3][1] = np.linspace(500, -500, 100)
    values[3][2, 50] = 3e4
    check(values)


def test_sums_of_great_values_stay_finite() -> None:
    values = inputs(2, 100)
    values[2][:] = 1e38
    values[0][:] = 0
    assert np.isfinite(check(values)).all()


def test_values_that_are_nan_or_infinite() -> None:
    values = inputs(3, 40)
    values[2][39, 5] = np.inf
    values[2][2, 6] = np.nan
    got = check(values)
    assert np.isnan(got[:, 6]).all() and np.isposinf(got[:, 5]).all() and np.isfinite(np.delete(got, [5, 6], 1)).all()


def test_other_sizes_of_blocks_and_f64() -> None:
    for keys in (2, 24, 48):
        module = parse(WHOLE.replace("f32", "f64"))
        whole = kernel_of(parse(WHOLE.replace("f32", "f64")))
        load_pass("split-softmax")(keys=keys).apply(IgniterContext(), module)
        module.verify()
        values = [x.astype("f8") for x in inputs(5, 61)]
        values[3][2, 20:50] = -np.inf
        sizes = {"s": 5, "t": 61}
        (want,), (got,) = run_kernel(whole, values, sizes), run_kernel(kernel_of(module), values, sizes)
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)
