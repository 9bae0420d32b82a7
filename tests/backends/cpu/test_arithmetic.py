"""Every op of arith and math that bodies hold, scalar and vector, against the interpreter's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS

from igniter.backends.cpu import arithmetic, vmath

from .cpu_kit import ALL_KINDS, TARGETS, Array, check_against_interpreter, compiled

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f32", "f64")
OF_TWO = {"math.powf", "math.atan2"}
EDGES = (0, 1, 2, 3, 7, -1, -2, -3, -7, 100, -100)


def values(kind: str, rng: np.random.Generator, count: int = 64) -> Array:
    dtype = ALL_KINDS[kind]
    if dtype.kind == "f":
        special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan]
        return np.concatenate([special, rng.normal(0, 3, count - len(special))]).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    info = np.iinfo(dtype)
    edges = [*EDGES, info.min, info.max, info.min + 1]
    return np.concatenate([edges, rng.integers(info.min, info.max, count - len(edges))]).astype(dtype)


def run_op(op: str, kinds: list[str], result: str, inputs: list[Array], suffix: str) -> None:
    """The op on 16 lanes and on scalars, both compared with the interpreter."""
    for lanes in (16, 0):
        shape = (lambda k, n=lanes: f"vector<{n}x{k}>") if lanes else (lambda k: k)
        at = "[i + v] lane v" if lanes else "[i]"
        args = "".join(f"%x{n}: memref<64x{k}>, " for n, k in enumerate(kinds))
        loads = "\n".join(f"    %a{n} = loop.load %x{n}{at} : {shape(k)}" for n, k in enumerate(kinds))
        operands = ", ".join(f"%a{n}" for n in range(len(kinds)))
        types = suffix.format(*[shape(k) for k in kinds], r=shape(result))
        text = f"""
loop.func @op symbols [] ({args}%y: memref<64x{result}>) outputs 1 {{
  loop.for i = 0 to 64 step {max(1, lanes)} {{
{loads}
    %r = {op} {operands} : {types}
    loop.store %r, %y{at}
  }}
}}"""
        output = np.zeros(64, ALL_KINDS[result])
        check_against_interpreter(text, [*inputs, output], rtol=4e-6)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", sorted(o for o in arithmetic.BINARY if o.endswith("f") or o == "math.copysign"))
def test_binary_floats(op: str, kind: str):
    rng = np.random.default_rng(0)
    x, y = values(kind, rng), rng.permutation(values(kind, rng))
    run_op(op, [kind, kind], kind, [x, y], "{0}")


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    "op", ["arith.negf", "math.absf", *sorted(vmath.FUNCTIONS.keys() - {"math.powf", "math.atan2"})]
)
def test_unary_floats(op: str, kind: str):
    x = values(kind, np.random.default_rng(1))
    if op == "math.round":
        pytest.skip("numpy has no rounding away from zero; test_vmath has")
    run_op(op, [kind], kind, [x], "{0}")


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", sorted(OF_TWO))
def test_functions_of_two(op: str, kind: str):
    rng = np.random.default_rng(2)
    run_op(op, [kind, kind], kind, [values(kind, rng), rng.permutation(values(kind, rng))], "{0}")


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", sorted(o for o in arithmetic.BINARY if not o.endswith("f") and o != "math.copysign"))
def test_binary_integers(op: str, kind: str):
    if op in ("arith.ceildivsi", "arith.ceildivui"):
        pytest.skip("the interpreter leaves them out; test_division_never_traps has them")
    rng = np.random.default_rng(3)
    x, y = values(kind, rng), rng.permutation(values(kind, rng))
    if "div" in op or "rem" in op:
        y = np.where(y == 0, 5, y).astype(y.dtype)
        if op.endswith("si"):
            y = np.where(y == -1, 3, y).astype(y.dtype)
    if ".sh" in op:
        y = (np.abs(y.astype(np.int64)) % (x.dtype.itemsize * 8)).astype(y.dtype)
    run_op(op, [kind, kind], kind, [x, y], "{0}")


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", ["math.absi", "math.ctpop"])
def test_unary_integers(op: str, kind: str):
    run_op(op, [kind], kind, [values(kind, np.random.default_rng(4))], "{0}")


@pytest.mark.parametrize("kind", INTEGERS)
def test_division_never_traps(kind: str):
    """Zero divisors and the minimum divided by -1, at run time and as constants."""
    dtype = ALL_KINDS[kind]
    least = np.iinfo(dtype).min
    x = np.array([5, -5, least, least, 0, 7, -7, least] * 8, dtype)
    y = np.array([0, 0, -1, 0, 0, 2, 2, 2] * 8, dtype)
    half = int(least) // 2
    expected = {
        "arith.divsi": [0, 0, least, 0, 0, 3, -3, half],
        "arith.remsi": [5, -5, 0, least, 0, 1, -1, 0],
        "arith.floordivsi": [0, 0, least, 0, 0, 3, -4, half],
        "arith.ceildivsi": [0, 0, least, 0, 0, 4, -3, half],
    }
    for op, wanted in expected.items():
        text = f"""
loop.func @divide symbols [] (%x: memref<64x{kind}>, %y: memref<64x{kind}>, %z: memref<64x{kind}>) outputs 1 {{
  loop.for i = 0 to 64 step 8 {{
    %a = loop.load %x[i + v] lane v : vector<8x{kind}>
    %b = loop.load %y[i + v] lane v : vector<8x{kind}>
    %c = {op} %a, %b : vector<8x{kind}>
    loop.store %c, %z[i + v] lane v
  }}
}}"""
        actual = np.zeros(64, dtype)
        compiled(text, "native")(x, y, actual)
        np.testing.assert_array_equal(actual[:8], np.array(wanted, dtype), err_msg=op)
    for divisor in (0, -1, 3):
        text = f"""
loop.func @constant symbols [] (%x: memref<64x{kind}>, %z: memref<64x{kind}>) outputs 1 {{
  %b = arith.constant {divisor} : {kind}
  loop.for i = 0 to 64 {{
    %a = loop.load %x[i] : {kind}
    %c = arith.divsi %a, %b : {kind}
    loop.store %c, %z[i]
  }}
}}"""
        actual = np.zeros(64, dtype)
        compiled(text, "native")(x, actual)
        exact = [
            0 if divisor == 0 else abs(int(v)) // abs(divisor) * (1 if (v < 0) == (divisor < 0) else -1) for v in x
        ]
        wrapped = [least if q == -int(least) else q for q in exact]
        np.testing.assert_array_equal(actual, np.array(wrapped, dtype))


CASTS = [
    ("arith.extf", "f32", "f64"),
    ("arith.truncf", "f64", "f32"),
    ("arith.extsi", "i8", "i64"),
    ("arith.extsi", "i1", "i32"),
    ("arith.extui", "i8", "i32"),
    ("arith.extui", "i1", "i64"),
    ("arith.trunci", "i64", "i8"),
    ("arith.trunci", "i32", "i1"),
    ("arith.sitofp", "i64", "f32"),
    ("arith.sitofp", "i8", "f64"),
    ("arith.uitofp", "i8", "f32"),
    ("arith.uitofp", "i64", "f64"),
    ("arith.uitofp", "i1", "f32"),
    ("arith.bitcast", "f32", "i32"),
    ("arith.bitcast", "i64", "f64"),
]


@pytest.mark.parametrize("op,source,result", CASTS)
def test_casts(op: str, source: str, result: str):
    run_op(op, [source], result, [values(source, np.random.default_rng(5))], "{0} to {r}")


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("result", INTEGERS)
@pytest.mark.parametrize("op", ["arith.fptosi", "arith.fptoui"])
def test_floats_to_integers(op: str, source: str, result: str):
    """In range, at the ends of the range, beyond it, and NaN."""
    bits = ALL_KINDS[result].itemsize * 8
    ends = [s * 2.0**b + d for s in (1, -1) for b in (bits, bits - 1) for d in (-1, -0.5, 0, 0.5, 1)]
    special = [np.nan, np.inf, -np.inf, 0.5, -0.5, -0.99, 1.99, -1.99, 1e30, -1e30]
    x = np.concatenate([ends, special, np.linspace(-100, 100, 64 - len(ends) - len(special))])
    run_op(op, [source], result, [x.astype(ALL_KINDS[source])], "{0} to {r}")


@pytest.mark.parametrize("predicate", [p for p in CMPF_COMPARISON_OPERATIONS if p not in ("true", "false")])
def test_float_comparisons(predicate: str):
    rng = np.random.default_rng(6)
    x = values("f32", rng)
    y = np.where(rng.random(64) < 0.3, x, rng.permutation(x)).astype(np.float32)
    run_op(f"arith.cmpf {predicate},", ["f32", "f32"], "i1", [x, y], "{0}")


@pytest.mark.parametrize("predicate", CMPI_COMPARISON_OPERATIONS)
def test_integer_comparisons(predicate: str):
    rng = np.random.default_rng(7)
    x = values("i32", rng)
    y = np.where(rng.random(64) < 0.3, x, rng.permutation(x)).astype(np.int32)
    run_op(f"arith.cmpi {predicate},", ["i32", "i32"], "i1", [x, y], "{0}")


@pytest.mark.slow
def test_select_and_fma():
    rng = np.random.default_rng(8)
    x, y, z = (rng.normal(size=64).astype(np.float32) for _ in range(3))
    run_op("arith.select", ["i1", "f32", "f32"], "f32", [values("i1", rng), x, y], "{1}")
    run_op("math.fma", ["f32", "f32", "f32"], "f32", [x, y, z], "{0}")
    run_op("math.fma", ["f64", "f64", "f64"], "f64", [a.astype("f8") for a in (x, y, z)], "{0}")


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_constant_of_negative_zero_is_not_that_of_zero(kind: str):
    """Equal as numbers, so a cache by value gave the later of the two the text of the earlier, whatever the kernel."""
    for first, second in (("0.0", "-0.0"), ("-0.0", "0.0")):
        text = f"""
loop.func @zeros symbols [] (%x: memref<4x{kind}>, %y: memref<2x4x{kind}>) outputs 1 {{
  loop.for i = 0 to 4 {{
    %x0 = loop.load %x[i] : {kind}
    %a = arith.constant {first} : {kind}
    %b = arith.constant {second} : {kind}
    %p = arith.mulf %x0, %a : {kind}
    %q = arith.mulf %x0, %b : {kind}
    loop.store %p, %y[0, i]
    loop.store %q, %y[1, i]
  }}
}}"""
        x = np.array([1, -1, 2, -3], ALL_KINDS[kind])
        for target in TARGETS:
            products = np.full((2, 4), 9, ALL_KINDS[kind])
            compiled(text, target)(x, products)
            assert (np.signbit(products) == np.signbit([x * float(first), x * float(second)])).all()
