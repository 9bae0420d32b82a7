"""`--emit=scf`: stock MLIR runs scheduled kernels with the results of the interpreter, and of ONNX Runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.parser import Parser

from igniter.backends.mlir.scheduled import func_module
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp
from igniter.runtime.mlir_library import compile_mlir
from igniter.runtime.mlir_tools import SCF_PASSES, missing_tools
from igniter.verification.interp.scheduled import run_func
from tests.backends.cpu.cpu_kit import MLIR, check_against_interpreter
from tests.backends.mlir.scheduled_runs import EXAMPLES, MODELS, Outcome, example, model, node_case
from tests.conformance.node_cases import node_cases

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(missing_tools() is not None, reason=missing_tools() or "")

CASES = ("test_softmax_axis_1", "test_gru_defaults")
"""Node cases that run in every test run."""

NO_KERNELS = {"distances_by_mine", "linear_racing", "linear_uneven", "misspelt_schedule", "unbound_symbol"} | {
    "distances_by_f32",
    "wrong_nest",
    "wrong_node",
}
"""The examples that show errors."""


def check(outcome: Outcome) -> None:
    assert outcome.ran and not outcome.problems, outcome.problems


# -- kernels of every statement ---------------------------------------------------------------------------------------


def test_a_loop_that_ends_at_a_condition():
    text = """
loop.func @k symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %c: memref<i1>, %y: memref<?xf32, #sym.dims<n>>) outputs 2 {
  %true = arith.constant true
  loop.store %true, %c[]
  loop.for i = 0 to n sequential while %c {
    %a = loop.load %x[i] : f32
    loop.store %a, %y[i]
    %z = arith.constant 0.0 : f32
    %more = arith.cmpf ogt, %a, %z : f32
    loop.store %more, %c[]
  }
}"""
    x = np.array([1, 2, -1, 4], np.float32)
    check_against_interpreter(text, [x, np.zeros((), bool), np.zeros(4, np.float32)], {"n": 4}, (MLIR,))


def test_lanes_that_are_no_neighbours():
    text = """
loop.func @k symbols [n] (%x: memref<?x3xf32, #sym.dims<n, 3>>, %at: memref<8xi64>, %y: memref<8x3xf32>,
    %s: memref<?xf32, #sym.dims<n>>) outputs 2 {
  loop.for j = 0 to 3 {
    %i = loop.load %at[v] lane v : vector<8xi64>
    %a = loop.load %x[_0, j] lane v with %i if [_0 - 1] : vector<8xf32>
    loop.store %a, %y[7 - v, j] lane v if [6 - v]
    loop.accumulate add %a, %s[_0] lane v with %i
    loop.accumulate max %a, %s[n - 1] lane v if [3 - v]
  }
}"""
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    at = np.array([0, 3, 3, 1, 0, 4, 2, 3])
    check_against_interpreter(text, [x, at, np.ones((8, 3), "f4"), np.ones(5, "f4")], {"n": 5}, (MLIR,))


@pytest.mark.parametrize("same", [False, True])
def test_buffers_that_may_be_one(same: bool):
    text = """
loop.func @k symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 attributes {igniter.in_place} {
  loop.if_shared %x, %y {
    %a = loop.load %y[0] : f32
    loop.store %a, %y[3]
  } else {
    loop.for i = 0 to 4 {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}"""
    func = next(op for op in Parser(IgniterContext(), text).parse_module().walk() if isinstance(op, FuncOp))
    x = np.arange(1, 5, dtype=np.float32)
    y = x if same else np.zeros(4, np.float32)
    compile_mlir(func_module([func]), SCF_PASSES).call("k", [x, y])
    np.testing.assert_array_equal(y, [1, 2, 3, 1] if same else [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("kind", "group", "a", "b", "c"),
    [("f32", 1, "f4", "f4", "f4"), ("u8i8", 4, "u1", "i1", "i4"), ("bf16", 2, "bf16", "bf16", "f4")],
)
def test_tiles_of_products(kind: str, group: int, a: str, b: str, c: str):
    names = {"f4": "f32", "u1": "ui8", "i1": "i8", "i4": "i32", "bf16": "bf16"}
    at, inside, last = ("k", "", "") if group == 1 else (f"k floordiv {group}", f", k mod {group}", f"x{group}")
    text = f"""
loop.func @k symbols [] (%a: memref<3x2{last}x{names[a]}>, %b: memref<2x2x16{last}x{names[b]}>,
    %c: memref<3x32x{names[c]}>, %e: memref<3x32x{names[c]}>) outputs 2 {{
  loop.tile_product %c[r, 16*p + l] = %a[r, {at}{inside}] * %b[p, {at}, l{inside}]
    over r = 3, p = 2, l = 16, k = {2 * group} tile [8, 3]
  loop.tile_product %e[r, 16*p + l] += %a[r, {at}{inside}] * %b[p, {at}, l{inside}]
    over r = 3, p = 2, l = 16, k = {2 * group} tile [8, 3]
}}"""
    rng = np.random.default_rng(0)
    types = {"bf16": np.dtype(ml_dtypes.bfloat16)}
    kinds = [types.get(k, np.dtype(k) if k not in types else None) for k in (a, b, c)]
    groups = () if group == 1 else (group,)
    left = rng.integers(0, 100, (3, 2, *groups)).astype(kinds[0])
    right = rng.integers(-100, 100, (2, 2, 16, *groups)).astype(kinds[1])
    start = rng.integers(-9, 9, (3, 32)).astype(kinds[2])
    check_against_interpreter(text, [left, right, start, start.copy()], {}, (MLIR,))


def test_a_program_calls_kernels_on_slices():
    text = """
loop.func @one symbols [d0] (%x: memref<?x2xf32, #sym.dims<d0, 2>>, %y: memref<?xf32, #sym.dims<2*d0>>) outputs 1 {
  %v = loop.view %x : memref<?x2xf32, #sym.dims<d0, 2>> to memref<?xf32, #sym.dims<2*d0>>
  loop.for i = 0 to 2*d0 {
    %a = loop.load %v[i] : f32
    %b = arith.negf %a : f32
    loop.store %b, %y[i]
  }
}
loop.func @all symbols [b, n] (%x: memref<?x?x2xf32, #sym.dims<b, n, 2>>,
    %y: memref<?x?xf32, #sym.dims<b, 2*n>>) outputs 1 {
  loop.for i = 0 to b sequential {
    %0 = loop.slice %x[i] : memref<?x?x2xf32, #sym.dims<b, n, 2>> to memref<?x2xf32, #sym.dims<n, 2>>
    %1 = loop.slice %y[i] : memref<?x?xf32, #sym.dims<b, 2*n>> to memref<?xf32, #sym.dims<2*n>>
    loop.call @one symbols [n] (%0) -> (%1)
  }
}"""
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    funcs = [op for op in module.walk() if isinstance(op, FuncOp)]
    x = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
    expected, found = np.zeros((3, 10), np.float32), np.zeros((3, 10), np.float32)
    run_func(funcs[1], [x, expected], {"b": 3, "n": 5})
    compile_mlir(func_module(funcs), SCF_PASSES).call("all", [x, found, 3, 5])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, -x.reshape(3, 10))


# -- kernels of the pipeline ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mask_softmax", "quantized_attention", "two_products"])
def test_kernels_of_examples(name: str):
    check(example(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_some_node_cases(name: str):
    check(node_case(name))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(p.stem for p in EXAMPLES.glob("*.mlir") if p.stem not in NO_KERNELS))
def test_kernels_of_every_example(name: str):
    assert not example(name).problems


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_kernels_of_models(name: str):
    check(model(name))


@pytest.mark.full
def test_kernels_of_every_fifth_node_case():
    problems: dict[str, str] = {}
    ran = 0
    for name in sorted(node_cases())[::5]:
        try:
            outcome = node_case(name)
        except Exception as error:  # The case needs ops or types that are left to ONNX Runtime.
            problems |= {name: f"{type(error).__name__}: {error}"} if isinstance(error, AssertionError) else {}
            continue
        ran += len(outcome.ran)
        problems |= {f"{name} {k}": v for k, v in outcome.problems.items()}
    assert ran > 150 and not problems, "\n".join(f"{k}: {v}" for k, v in problems.items())


@pytest.mark.full
def test_every_case_of_the_emitter_in_mlir():
    """The tests of the CPU backend's emitter and of its arithmetic, with MLIR as the only target."""
    files = ("tests/backends/cpu/test_emit.py", "tests/backends/cpu/test_arithmetic.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "IGNITER_TEST_TARGETS": MLIR}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:]
