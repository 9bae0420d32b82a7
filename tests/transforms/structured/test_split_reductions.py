"""Split reductions compute what the whole one does: every combiner, parts that divide the axis or not, empty axes."""

from __future__ import annotations

import numpy as np
import pytest

from igniter.backends.cpu.jit import compile_func
from igniter.registry import load_pass
from igniter.verification.interp.structured import run_kernel
from tests.transforms.scheduled.scheduling import SCHEDULE, IgniterContext, call, kernel_of, parse, schedule

KERNEL = """
builtin.module {
  loop.kernel @k symbols [n, m] (%x: tensor<?x?xTYPE, #sym.dims<n, m>>) -> (tensor<?xTYPE, #sym.dims<n>>) {
    %s = loop.nest "all" [i: parallel n, k: reduction m] -> tensor<?xTYPE, #sym.dims<n>> {
      %a = loop.read %x[i, k] : TYPE
      loop.yield COMBINER %a at [i]
    }
    loop.return %s : tensor<?xTYPE, #sym.dims<n>>
  }
}"""

GUARDED = """
builtin.module {
  loop.kernel @k symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "all" [i: parallel n, k: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %one = arith.constant 1.0 : f32
      %a = loop.read %x[i, k - 1] if [k - 1] else %one : f32
      %e = math.exp %a : f32
      loop.yield add %e at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}"""


def check(text: str, dtype: str, parts: int) -> None:
    whole, module = kernel_of(parse(text)), parse(text)
    load_pass("split-reductions")(nest="all", axis="k", parts=parts).apply(IgniterContext(), module)
    module.verify()
    split = kernel_of(module)
    assert len(split.nests) == 2
    rng = np.random.default_rng(0)
    cases = [(3, 24), (2, 23), (1, 1), (4, 2), (2, 0), (0, 5)]
    inputs = [rng.integers(-3, 4, case).astype(dtype) for case in cases]
    wanted = [run_kernel(whole, [x], {"n": n, "m": m}) for x, (n, m) in zip(inputs, cases, strict=True)]
    for x, (n, m), (want,) in zip(inputs, cases, wanted, strict=True):
        (got,) = run_kernel(split, [x], {"n": n, "m": m})
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    load_pass("check-bounds")(guard=True).apply(IgniterContext(), module)
    func = schedule(module, SCHEDULE)
    compiled = compile_func(func)
    for x, (n, m), (want,) in zip(inputs, cases, wanted, strict=True):
        (got,) = call(func, compiled, [x], {"n": n, "m": m})
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize("parts", [2, 4, 7])
@pytest.mark.parametrize(
    ("combiner", "kind", "dtype"),
    [("add", "f32", "f4"), ("max", "f32", "f4"), ("min", "f64", "f8"), ("mul", "f32", "f4"), ("xor", "i64", "i8"),
     ("and", "i32", "i4"), ("or", "i32", "i4"), ("add", "i32", "i4"), ("max", "i64", "i8")],
)  # fmt: skip
def test_every_combiner(combiner: str, kind: str, dtype: str, parts: int) -> None:
    check(KERNEL.replace("TYPE", kind).replace("COMBINER", combiner), dtype, parts)


@pytest.mark.parametrize("parts", [2, 3])
def test_reads_that_are_guarded_and_bodies_that_are_not_zero_at_zero(parts: int) -> None:
    check(GUARDED, "f4", parts)
