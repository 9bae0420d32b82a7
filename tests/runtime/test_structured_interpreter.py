"""The interpreter of the structured level: what it computes, and everything that it refuses to run."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.verification.interp import structured
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.structured import run_kernel

F32 = np.float32


def kernel(text: str) -> KernelOp:
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return next(op for op in module.ops if isinstance(op, KernelOp))


def nest(body: str, axes: str = "i: parallel 4", result: str = "tensor<4xf32>", symbols: str = "") -> KernelOp:
    return kernel(f"""
        loop.kernel @k symbols [{symbols}] (%x: tensor<4xf32>, %k: tensor<4xi64>) -> ({result}) {{
          %y = loop.nest "the_nest" [{axes}] -> {result} {{
            {body}
          }}
          loop.return %y : {result}
        }}""")


X, K = np.arange(4, dtype=F32), np.array([0, 3, -1, 9])


def test_guards_and_indirect_reads() -> None:
    k = nest("""%at = loop.read %k[i] : i64
                %else = arith.constant 7.0 : f32
                %v = loop.read %x[_0] with %at if [_0, 3 - _0] else %else : f32
                loop.yield none %v at [i]""")
    np.testing.assert_array_equal(run_kernel(k, [X, K])[0], [0, 3, 7, 7])


def test_values_that_meet_combine() -> None:
    body = "%v = loop.read %x[2*i + r] : f32\n loop.yield add %v at [i]"
    k = nest(body, axes="i: parallel 2, r: reduction 2", result="tensor<2xf32>")
    np.testing.assert_array_equal(run_kernel(k, [X, K])[0], [1, 5])


def test_identities_where_no_point_reaches() -> None:
    k = nest("%v = loop.read %x[i] : f32\n loop.yield max %v at [2*i]", result="tensor<8xf32>")
    np.testing.assert_array_equal(run_kernel(k, [X, K])[0], [0, -np.inf, 1, -np.inf, 2, -np.inf, 3, -np.inf])


def test_big_domains_are_cut_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """loop.kernel @k symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>) -> (tensor<?xf32, #sym.dims<n>>) {
      %y = loop.nest "sum" [j: parallel n, i: reduction m] -> tensor<?xf32, #sym.dims<n>> {
        %v = loop.read %x[i, j] : f32
        loop.yield add %v at [j]
      }
      loop.return %y : tensor<?xf32, #sym.dims<n>>
    }"""
    monkeypatch.setattr(structured, "BLOCK_POINTS", 7)
    x = np.arange(13 * 5, dtype=F32).reshape(13, 5)
    np.testing.assert_array_equal(run_kernel(kernel(text), [x])[0], x.sum(0))


@pytest.mark.parametrize(
    ("body", "result", "message"),
    [
        ("%v = loop.read %x[i + 1] : f32\n loop.yield none %v at [i]", "tensor<4xf32>", "reads out of bounds"),
        ("%v = loop.read %x[i - 1] : f32\n loop.yield none %v at [i]", "tensor<4xf32>", "reads out of bounds"),
        ("%v = loop.read %x[i] : f32\n loop.yield none %v at [i + 1]", "tensor<4xf32>", "writes out of bounds"),
        ("%v = loop.read %x[i] : f32\n loop.yield none %v at [i]", "tensor<5xf32>", "does not write every element"),
    ],
)
def test_what_the_level_rules_out_is_an_error(body: str, result: str, message: str) -> None:
    with pytest.raises(InterpreterError, match=f"nest 'the_nest' {message}"):
        run_kernel(nest(body, result=result), [X, K])


def test_points_that_meet_are_refused() -> None:
    with pytest.raises(VerifyException, match="two iterations of the parallel axes may write the same element"):
        nest("%v = loop.read %x[i] : f32\n loop.yield none %v at [i floordiv 2]", result="tensor<2xf32>")


def test_integer_division_by_zero_is_an_error() -> None:
    body = "%v = loop.read %k[i] : i64\n %q = arith.divsi %v, %v : i64\n loop.yield none %q at [i]"
    with pytest.raises(InterpreterError, match="integer division by zero"):
        run_kernel(nest(body, result="tensor<4xi64>"), [X, K])


def test_an_op_that_is_not_known_is_an_error() -> None:
    body = "%v = loop.read %x[i] : f32\n %c = math.cttz %k0 : i64\n loop.yield none %v at [i]"
    with pytest.raises(InterpreterError, match=r"does not support 'math.cttz'"):
        run_kernel(nest("%k0 = loop.read %k[i] : i64\n" + body), [X, K])


COPY = """loop.kernel @k symbols [n] (%x: tensor<?x?xf32, #sym.dims<n, 2*n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %y = loop.nest "first" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %v = loop.read %x[i, 0] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
}"""


def test_inputs_that_do_not_fit_are_errors() -> None:
    k = kernel(COPY)
    np.testing.assert_array_equal(run_kernel(k, [np.ones((3, 6), F32)])[0], np.ones(3, F32))
    assert run_kernel(k, [np.ones((0, 0), F32)])[0].shape == (0,)
    for bad, message in (
        (np.ones((3, 5), F32), "input 0: dim 1 is 5, not 2\\*n"),
        (np.ones((3,), F32), "input 0 has rank 1, not 2"),
        (np.ones((3, 6)), "has dtype float64"),
    ):
        with pytest.raises(InterpreterError, match=message):
            run_kernel(k, [bad])
    with pytest.raises(InterpreterError, match="takes 1 inputs, not 0"):
        run_kernel(k, [])


def test_a_symbol_that_no_input_binds_is_given_or_missed() -> None:
    text = """loop.kernel @k symbols [n] () -> (tensor<?xi64, #sym.dims<n>>) {
      %y = loop.nest "range" [i: parallel n] -> tensor<?xi64, #sym.dims<n>> {
        %v = loop.index i : i64
        loop.yield none %v at [i]
      }
      loop.return %y : tensor<?xi64, #sym.dims<n>>
    }"""
    np.testing.assert_array_equal(run_kernel(kernel(text), [], {"n": 3})[0], [0, 1, 2])
    with pytest.raises(InterpreterError, match="n is not a dim of any input"):
        run_kernel(kernel(text), [])
