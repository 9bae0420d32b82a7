"""Every construct of structured kernels in `linalg`, run by stock MLIR and equal to the interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.parser import Parser

from igniter.backends.mlir.kernels import emit_linalg, free_symbols
from igniter.backends.mlir.text import MlirRefusal
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.runtime.mlir_library import call_isolated
from igniter.runtime.mlir_tools import MlirError, find_tools, missing_tools, to_llvm_ir
from igniter.verification.interp.structured import run_kernel
from igniter.verification.mlir_kernels import results_of, run_kernel_by_mlir, run_kernel_by_runner

needs_tools = pytest.mark.skipif(missing_tools() is not None, reason=missing_tools() or "")


def kernel_of(text: str) -> KernelOp:
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return next(op for op in module.ops if isinstance(op, KernelOp))


def agrees(kernel: KernelOp, *inputs: np.ndarray, rtol: float = 0.0, **symbols: int) -> list[np.ndarray]:
    """The results of a kernel in MLIR, which have to be those of the interpreter."""
    expected = run_kernel(kernel, inputs, symbols)
    found = run_kernel_by_mlir(kernel, inputs, symbols)
    for e, a in zip(expected, found, strict=True):
        assert (e.dtype, e.shape) == (a.dtype, a.shape)
        if e.dtype == ml_dtypes.bfloat16:  # NumPy does not see that two NaN of it agree.
            e, a = e.astype(np.float64), a.astype(np.float64)
        if rtol:
            np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(a, e)
    return found


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


SHIFTED = """
loop.kernel @shifted symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>, %at: tensor<?xi64, #sym.dims<n>>)
    -> (tensor<?x?xf32, #sym.dims<n, m>>, tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n + 1>>) {
  %y, %r = loop.nest "reads" [i: parallel n, k: reduction m]
      -> tensor<?x1xf32, #sym.dims<n, 1>>, tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    %j = loop.read %at[i] : i64
    %minus = arith.constant -1.0 : f32
    %b = loop.read %x[i, k + 1] if [m - 2 - k] else %minus : f32
    %c = loop.read %x[n - 1 - i, _0] with %j if [_0, m - 1 - _0] : f32
    %d = arith.addf %a, %b : f32
    %e = arith.addf %d, %c : f32
    loop.yield add %e at [i, 0], max %c at [i]
  }
  %z = loop.nest "places" [i: parallel n, k: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
    %place = loop.index m*i + k : i64
    %p = arith.sitofp %place : i64 to f32
    %s = loop.read %y[i, 0] : f32
    %q = arith.mulf %p, %s : f32
    loop.yield none %q at [i, k]
  }
  %w = loop.nest "moved" [i: parallel n] -> tensor<?xf32, #sym.dims<n + 1>> {
    %s = loop.read %y[i, 0] : f32
    loop.yield none %s at [i + 1] else 7.0 : f32
  }
  loop.return %z, %r, %w
      : tensor<?x?xf32, #sym.dims<n, m>>, tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n + 1>>
}
"""


@needs_tools
@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 1), (0, 4), (4, 0), (0, 0)])
def test_guards_gathers_indices_and_several_results(n: int, m: int) -> None:
    at = np.array([-1, 0, 4, 9], np.int64)[:n]
    agrees(kernel_of(SHIFTED), floats(n, m), at, rtol=1e-6)


OPEN = ("divsi", "remsi", "floordivsi", "ceildivsi", "shli", "shrui", "shrsi")


@needs_tools
def test_results_that_mlir_leaves_open() -> None:
    """A division by 0, the least integer by -1, a shift by the width, a float out of range: as in compiled kernels."""
    kinds = ["tensor<?xi32, #sym.dims<n>>"] * len(OPEN) + ["tensor<?xi8, #sym.dims<n>>"] * 2
    ops = "".join(f"    %{op} = arith.{op} %a, %b : i32\n" for op in OPEN)
    values = (*OPEN, "fptosi", "fptoui")
    kernel = kernel_of(f"""
loop.kernel @open symbols [n] (%x: {kinds[0]}, %y: {kinds[0]}, %f: tensor<?xf32, #sym.dims<n>>)
    -> ({", ".join(kinds)}) {{
  {", ".join(f"%r{k}" for k in range(len(kinds)))} = loop.nest "open" [i: parallel n] -> {", ".join(kinds)} {{
    %a = loop.read %x[i] : i32
    %b = loop.read %y[i] : i32
    %c = loop.read %f[i] : f32
{ops}    %fptosi = arith.fptosi %c : f32 to i8
    %fptoui = arith.fptoui %c : f32 to i8
    loop.yield {", ".join(f"none %{v} at [i]" for v in values)}
  }}
  loop.return {", ".join(f"%r{k}" for k in range(len(kinds)))} : {", ".join(kinds)}
}}
""")
    least = -(2**31)
    x, y = np.array([7, -7, 5, least, -8, 1], "i4"), np.array([0, 0, 2, -1, 40, 33], "i4")
    f = np.array([1.5, np.nan, 300, -129.5, np.inf, -3.9], "f4")
    found = dict(zip(values, run_kernel_by_mlir(kernel, [x, y, f]), strict=True))
    expected = {
        "divsi": [0, 0, 2, least, 0, 0],
        "remsi": [7, -7, 1, 0, -8, 1],
        "floordivsi": [0, 0, 2, least, -1, 0],
        "ceildivsi": [0, 0, 3, least, 0, 1],
        "shli": [7, -7, 20, 0, 0, 0],
        "shrui": [7, -7, 1, 0, 0, 0],
        "shrsi": [7, -7, 1, -1, -1, 0],
        "fptosi": [1, -128, -128, -128, -128, -3],
        "fptoui": [1, -1, -1, -1, -1, -1],
    }
    assert {name: value.tolist() for name, value in found.items()} == expected


FOLDS = """
loop.kernel @folds symbols [n] (%x: tensor<?x{T}, #sym.dims<n>>) -> ({types}) {{
  {names} = loop.nest "folds" [k: reduction n] -> {types} {{
    %v = loop.read %x[k] : {scalar}
    loop.yield {clauses}
  }}
  loop.return {names} : {types}
}}
"""
FOLDED_BOOLS = """
loop.kernel @bools symbols [n] (%x: tensor<?xi1, #sym.dims<n>>) -> (tensor<i1>) {
  %r = loop.nest "all" [k: reduction n] -> tensor<i1> {
    %v = loop.read %x[k] : i1
    loop.yield and %v at []
  }
  loop.return %r : tensor<i1>
}
"""
DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    **{f"i{b}": f"i{b // 8}" for b in (8, 16, 32, 64)},
    **{f"ui{b}": f"u{b // 8}" for b in (8, 16, 32, 64)},
}


@needs_tools
@pytest.mark.parametrize("element", DTYPES)
def test_every_combiner_of_every_type(element: str) -> None:
    """Integers wrap, `max` of unsigned ones is unsigned, NaN is kept, and an empty fold is the identity."""
    combiners = ["add", "mul", "max", "min", *(["and", "or", "xor"] if "f" not in element else [])]
    kind = f"tensor<{element}>"
    text = FOLDS.format(
        T=element,
        scalar=element.replace("u", ""),
        types=", ".join([kind] * len(combiners)),
        names=", ".join(f"%r{k}" for k in range(len(combiners))),
        clauses=", ".join(f"{c} %v at []" for c in combiners),
    )
    kernel = kernel_of(text)
    dtype = np.dtype(DTYPES[element])
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 17):
        if dtype.kind in "iub":
            info = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            drawn = rng.integers(info[0], info[1], n, dtype=dtype if dtype.kind != "b" else np.int64, endpoint=True)
            agrees(kernel, drawn.astype(dtype))
        else:
            drawn = rng.uniform(0.5, 1.5, n).astype(dtype)
            agrees(kernel, drawn, rtol={2: 0.1, 4: 1e-5, 8: 1e-13}[dtype.itemsize])
    if dtype.kind not in "iub":
        with_nan = np.array([1, np.nan, -np.inf]).astype(dtype)
        _, _, most, least = agrees(kernel, with_nan)
        assert np.isnan(most.astype(np.float32)) and np.isnan(least.astype(np.float32))


VARIANTS = """
loop.kernel @sized symbols [n, k] (%x: tensor<?xf32, #sym.dims<2*n + 1>>) -> (tensor<?xf32, #sym.dims<n*k>>)
    requires [n <= k "n is more than k", 4 mod k == 0 "k does not divide 4",
              max(0, n - 4)*max(0, k - 9) == 0 "too large"] {
  %y = loop.nest "large" [i: parallel n*k] -> tensor<?xf32, #sym.dims<n*k>> {
    %v = loop.read %x[min(i, 2*n)] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n*k>>
} variants {
  loop.kernel @small symbols [n, k] (%x: tensor<?xf32, #sym.dims<2*n + 1>>) -> (tensor<?xf32, #sym.dims<n*k>>)
      requires [n <= k "n is more than k", 4 mod k == 0 "k does not divide 4",
              max(0, n - 4)*max(0, k - 9) == 0 "too large"] when n <= 2 {
    %y = loop.nest "small" [i: parallel n*k] -> tensor<?xf32, #sym.dims<n*k>> {
      %v = loop.index i mod k : i64
      %f = arith.sitofp %v : i64 to f32
      loop.yield none %f at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n*k>>
  }
}
"""


@needs_tools
def test_variants_by_sizes_requirements_and_symbols_that_no_dim_is() -> None:
    kernel = kernel_of(VARIANTS)
    assert free_symbols(kernel) == ["k"]
    for n, k in ((0, 4), (1, 1), (2, 4), (3, 4), (4, 4)):
        agrees(kernel, floats(2 * n + 1), k=k)
    ir = to_llvm_ir(emit_linalg(kernel.parent_op()))  # pyright: ignore[reportArgumentType]
    with pytest.raises(MlirError, match=r"(?s)signal 6.*sized: n is more than k"):
        call_isolated(ir, "sized", [floats(9), 2], results_of(kernel))
    with pytest.raises(MlirError, match=r"(?s)signal 6.*sized: k does not divide 4"):
        call_isolated(ir, "sized", [floats(1), 0], results_of(kernel))


VIEWS = """
loop.kernel @views symbols [n] (%x: tensor<?x6xi16, #sym.dims<n, 6>>)
    -> (tensor<?xi16, #sym.dims<n>>, tensor<2x3x?xi16, #sym.dims<2, 3, n>>, tensor<?x6xi16, #sym.dims<n, 6>>) {
  %flat = loop.view %x : tensor<?x6xi16, #sym.dims<n, 6>> to tensor<?xi16, #sym.dims<6*n>>
  %three = loop.view %flat : tensor<?xi16, #sym.dims<6*n>> to tensor<2x3x?xi16, #sym.dims<2, 3, n>>
  %d = loop.nest "diagonal" [i: parallel n] -> tensor<?xi16, #sym.dims<n>> {
    %v = loop.read %three[0, i mod 3, i] : i16
    loop.yield none %v at [i]
  }
  loop.return %d, %three, %x
      : tensor<?xi16, #sym.dims<n>>, tensor<2x3x?xi16, #sym.dims<2, 3, n>>, tensor<?x6xi16, #sym.dims<n, 6>>
}
"""


@needs_tools
@pytest.mark.parametrize("n", [0, 1, 5])
def test_views_and_inputs_as_results(n: int) -> None:
    agrees(kernel_of(VIEWS), np.arange(6 * n, dtype=np.int16).reshape(n, 6))


SCATTERED = """
loop.kernel @scattered symbols [n] (%x: tensor<?x8xi32, #sym.dims<n, 8>>)
    -> (tensor<?x2x4xi32, #sym.dims<n, 2, 4>>, tensor<?x8xi32, #sym.dims<n, 8>>, tensor<?xi32, #sym.dims<2*n>>) {
  %a = loop.nest "blocked" [i: parallel n, j: parallel 8] -> tensor<?x2x4xi32, #sym.dims<n, 2, 4>> {
    %v = loop.read %x[i, j] : i32
    loop.yield none %v at [i, j floordiv 4, j mod 4]
  }
  %b = loop.nest "reversed" [i: parallel n, j: parallel 8] -> tensor<?x8xi32, #sym.dims<n, 8>> {
    %v = loop.read %x[i, j] : i32
    loop.yield none %v at [n - 1 - i, j]
  }
  %c = loop.nest "folded" [i: parallel n, j: reduction 8] -> tensor<?xi32, #sym.dims<2*n>> {
    %v = loop.read %x[i, j] : i32
    loop.yield max %v at [2*i] else 5 : i32
  }
  loop.return %a, %b, %c
      : tensor<?x2x4xi32, #sym.dims<n, 2, 4>>, tensor<?x8xi32, #sym.dims<n, 8>>, tensor<?xi32, #sym.dims<2*n>>
}
"""


@needs_tools
@pytest.mark.parametrize("n", [0, 1, 3])
def test_results_at_subscripts_that_are_no_axes(n: int) -> None:
    agrees(kernel_of(SCATTERED), np.random.default_rng(0).integers(-9, 0, (n, 8), dtype=np.int32))


PROCEDURE = """
loop.kernel @steps symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>)
    -> (tensor<?x?xf32, #sym.dims<n, m>>, tensor<?xi64, #sym.dims<n>>) {
  %y, %count = loop.procedure "steps" [i: parallel n] (%a = %x)
      -> (%o : tensor<?x?xf32, #sym.dims<n, m>>, %c : tensor<?xi64, #sym.dims<n>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %going = loop.alloc "going" : memref<i64, "register">
    %two = loop.alloc "two" : memref<2x3xf32, "local">
    %six = loop.view %two : memref<2x3xf32, "local"> to memref<6xf32, "local">
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1 : i64
    %none = arith.constant 0 : i64
    loop.store %zero, %sum[]
    loop.store %one, %going[]
    loop.store %none, %c[i]
    loop.for j = 0 to 6 {
      loop.store %zero, %six[j]
    }
    loop.for k = 0 to m sequential while %going {
      %v = loop.load %a[i, k] : f32
      loop.accumulate add %v, %sum[]
      loop.accumulate max %v, %six[min(k, 5)]
      loop.accumulate add %one, %c[i]
      %s = loop.load %sum[] : f32
      %limit = arith.constant 2.0 : f32
      %above = arith.cmpf ogt, %s, %limit : f32
      %a1 = arith.extui %above : i1 to i64
      loop.if [_0 - 1] with %a1 {
        loop.store %none, %going[]
      }
    }
    %n1 = loop.load %c[i] : i64
    loop.for l = 0 to m step 2 {
      %r = loop.load %two[0, 1] if [2 - l] else %zero : f32
      %s = loop.load %sum[] : f32
      %q = arith.addf %r, %s : f32
      loop.store %q, %o[i, l]
      loop.store %r, %o[i, l + 1] if [m - 2 - l]
    }
    loop.for p = 0 to _0 with %n1 {
      loop.accumulate mul %zero, %o[i, p]
    }
  }
  loop.return %y, %count : tensor<?x?xf32, #sym.dims<n, m>>, tensor<?xi64, #sym.dims<n>>
}
"""


@needs_tools
@pytest.mark.parametrize(("n", "m"), [(3, 7), (2, 1), (0, 3), (2, 0)])
def test_procedures_with_loops_conditions_views_and_a_while(n: int, m: int) -> None:
    agrees(kernel_of(PROCEDURE), np.abs(floats(n, m)))


BODY = """
loop.kernel @body symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %u: tensor<?xi32, #sym.dims<n>>)
    -> (tensor<?xf32, #sym.dims<n>>, tensor<?xi1, #sym.dims<n>>, tensor<?xi32, #sym.dims<n>>, tensor<?xf16,
    #sym.dims<n>>) {
  %y, %b, %d, %h = loop.nest "body" [i: parallel n]
      -> tensor<?xf32, #sym.dims<n>>, tensor<?xi1, #sym.dims<n>>, tensor<?xi32, #sym.dims<n>>, tensor<?xf16,
      #sym.dims<n>> {
    %v = loop.read %x[i] : f32
    %w = loop.read %u[i] : i32
    %inf = arith.constant 0x7f800000 : f32
    %tiny = arith.constant 1.0e-40 : f32
    %big = arith.constant 3.0e+20 : f32
    %same = arith.cmpf ueq, %v, %inf : f32
    %less = arith.cmpi ult, %w, %w : i32
    %either = arith.ori %same, %less : i1
    %t = arith.select %either, %tiny, %big : f32
    %f = math.fma %v, %t, %v : f32
    %e = math.erf %f : f32
    %p = math.absf %e : f32
    %g = math.sqrt %p : f32
    %dot = loop.dot_bytes %w, %w, %w : i32
    %k = arith.constant 3 : i32
    %r = math.ipowi %dot, %k : i32
    %half = arith.truncf %v : f32 to f16
    %ten = arith.constant 10.0 : f16
    %halves = arith.mulf %half, %ten : f16
    loop.yield none %g at [i], none %either at [i], none %r at [i], none %halves at [i]
  }
  loop.return %y, %b, %d, %h
      : tensor<?xf32, #sym.dims<n>>, tensor<?xi1, #sym.dims<n>>, tensor<?xi32, #sym.dims<n>>, tensor<?xf16,
      #sym.dims<n>>
}
"""


@needs_tools
def test_the_ops_of_bodies() -> None:
    x = np.array([0.1, -1.5, np.inf, np.nan, -0.0, 1e-30], np.float32)
    agrees(kernel_of(BODY), x, np.array([1, 0x7F7F7F7F, 0x01FF0280, -1, 0x40302010, 5], np.int32), rtol=1e-6)


@needs_tools
def test_the_runner_of_mlir_gives_the_same_bits() -> None:
    if find_tools().runner is None:
        pytest.skip("this MLIR has no runner")
    x, at = floats(3, 5), np.array([-1, 0, 4], np.int64)
    for kernel, inputs, symbols in (
        (kernel_of(SHIFTED), [x, at], {}),
        (kernel_of(SHIFTED), [floats(0, 2), at[:0]], {}),
        (kernel_of(VARIANTS), [floats(7)], {"k": 4}),
        (kernel_of(FOLDED_BOOLS), [np.array([True, False, True])], {}),
    ):
        expected = run_kernel_by_mlir(kernel, inputs, symbols)
        found = run_kernel_by_runner(kernel, inputs, symbols)
        for e, a in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, e)


def test_what_has_no_form_is_refused_with_the_op_and_the_kernel() -> None:
    text = BODY.replace("math.ipowi %dot, %k : i32", '"arith.addui_extended"(%dot, %k) : (i32, i32) -> (i32, i1)')
    text = text.replace("%r = ", "%r, %carry = ")
    with pytest.raises(MlirRefusal, match=r"kernel @body: 'arith.addui_extended' has no form in MLIR"):
        emit_linalg(kernel_of(text).parent_op())  # pyright: ignore[reportArgumentType]
    with pytest.raises(MlirRefusal, match=r"writes structured kernels, and the module has none"):
        emit_linalg(Parser(IgniterContext(), "builtin.module {}").parse_module())


SEVERAL = """
builtin.module {{
  {0}
  loop.kernel @"odd \\22name" symbols ["a b"] (%x: tensor<?xf32, #sym.dims<"a b">>)
      -> (tensor<?xf32, #sym.dims<"a b">>) {{
    loop.return %x : tensor<?xf32, #sym.dims<"a b">>
  }}
}}
"""


@needs_tools
def test_a_module_has_a_function_for_each_kernel() -> None:
    module = Parser(IgniterContext(), SEVERAL.format(VIEWS)).parse_module()
    ir = to_llvm_ir(emit_linalg(module))
    assert "@views(" in ir
    assert "odd" in ir
