"""Every kind of statement and access, compiled for CPUs with and without masks, against the interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.jit import compile_func
from igniter.backends.cpu.target import target_of
from tests.examples import examples

from .cpu_kit import TARGETS, check_against_interpreter, compiled, parse_func

ALL = ("native", "x86-64", "x86-64-v2", "x86-64-v3", "aarch64")


def arange(*shape: int, dtype: str = "f4") -> np.ndarray:
    return (np.arange(int(np.prod(shape))) + 1).reshape(shape).astype(dtype)


@pytest.mark.parametrize("lanes", [1, 3, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4"])
def test_masked_tails(lanes: int, dtype: str):
    kind = {"f4": "f32", "f8": "f64", "i8": "i64", "i4": "i32"}[dtype]
    op = "addf" if dtype[0] == "f" else "addi"
    text = f"""
loop.func @tail symbols [n] (%x: memref<?x{kind}, #sym.dims<n>>, %y: memref<?x{kind}, #sym.dims<n>>) outputs 1 {{
  loop.for i = 0 to n step {lanes} {{
    %a = loop.load %x[i + v] lane v if [n - 1 - i - v] : vector<{lanes}x{kind}>
    %b = arith.{op} %a, %a : vector<{lanes}x{kind}>
    loop.store %b, %y[i + v] lane v if [n - 1 - i - v]
  }}
}}"""
    for n in (0, 1, 15, 16, 33):
        buffers = [arange(n, dtype=dtype), np.full(n, 77).astype(dtype)]
        check_against_interpreter(text, buffers, {"n": n}, ALL if lanes == 8 else TARGETS)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(("size", "step"), [(2, 2), (4, 4), (4, 1), (4, 3), (8, 8), (3, 3), (2, 4)])
def test_groups_of_lanes(lanes: int, size: int, step: int):
    """Some lanes at a place, as channels of a convolution in groups read those of an image: up to the last element of
    the buffer and no further, in groups that a vector has whole ones of and in others."""
    count = 3 * lanes
    for first in range(min(step, 2)):
        elements = max((count - 1) // size * step + 1 + first, size)
        text = f"""
loop.func @groups symbols [] (%x: memref<{elements}xf32>, %y: memref<{count}xf32>) outputs 1 {{
  loop.for i = 0 to {count} step {lanes} {{
    %a = loop.load %x[{step}*((i + v) floordiv {size}) + {first}] lane v : vector<{lanes}xf32>
    %r = loop.load %x[(i + v) mod {size}] lane v : vector<{lanes}xf32>
    %b = arith.addf %a, %r : vector<{lanes}xf32>
    loop.store %b, %y[i + v] lane v
  }}
}}"""
        check_against_interpreter(text, [arange(elements), np.full(count, 77).astype("f4")], {}, ALL)


# Loads of 8 lanes from a 5 x 9 buffer at row i: subscripts and guards over the lane `v`.
LOADS = {
    "contiguous": ("[i, v]", ""),
    "shifted": ("[i, v + 1]", ""),
    "equal": ("[i, 3]", ""),
    "equal, some lanes off": ("[i, 3]", "if [v - 2]"),
    "equal, all lanes off": ("[i + 9, 3]", "if [3 - i, v - 20]"),
    "reversed": ("[i, 8 - v]", ""),
    "rows": ("[v, i]", "if [4 - v]"),
    "even": ("[i, 2*v]", "if [8 - 2*v]"),
    "first lanes": ("[i, v + 4]", "if [4 - v]"),
    "last lanes": ("[i, v - 3]", "if [v - 3]"),
    "middle lanes": ("[i, v - 1]", "if [v - 1, 5 - v]"),
    "row guard": ("[i + 2, v]", "if [2 - i]"),
    "row and lane guard": ("[i - 1, v + 3]", "if [i - 1, 5 - v]"),
    "row guard of equal lanes": ("[i + 2, 1]", "if [2 - i]"),
    "every other lane": ("[i, v]", "if [v mod 2 - 1]"),
    "pairs": ("[i, v floordiv 2]", ""),
    "diagonal": ("[(i + v) mod 5, v]", ""),
    "negative division": ("[i, 5 + (v - 6) floordiv 2]", ""),
    "negative remainder": ("[i, (i - v) mod 9]", ""),
    "minimum": ("[i, min(v, 5)]", ""),
    "maximum": ("[i, max(v - 2, i)]", ""),
    "never": ("[i, v]", "if [-1]"),
    "always": ("[i, v]", "if [i, v, 7 - v]"),
}


@pytest.mark.parametrize("element", ["f32", "f64", "i8"])
@pytest.mark.parametrize("otherwise", [False, True])
@pytest.mark.parametrize("case", LOADS)
def test_vector_loads(case: str, otherwise: bool, element: str):
    subscripts, guards = LOADS[case]
    if otherwise and not guards:
        return
    dtype = {"f32": "f4", "f64": "f8", "i8": "i1"}[element]
    default = "5.0" if element[0] == "f" else "5"
    kind = f"vector<8x{element}>"
    tail = guards + (" else %d" if otherwise else "")
    check_against_interpreter(
        f"""
loop.func @loads symbols [] (%x: memref<5x9x{element}>, %y: memref<5x8x{element}>) outputs 1 {{
  %d = arith.constant dense<{default}> : {kind}
  loop.for i = 0 to 5 {{
    %a = loop.load %x{subscripts} lane v {tail} : {kind}
    loop.store %a, %y[i, v] lane v
  }}
}}""",
        [arange(5, 9, dtype=dtype), np.zeros((5, 8), dtype)],
        targets=ALL if element == "f32" else TARGETS,
    )


WALKS = {
    "every second": "[2*v + i]",
    "every third": "[3*v + 2]",
    "every fourth, to the end": "[4*v + n - 29]",
    "every fifth": "[5*v + 1]",
    "backwards, from the end": "[n - i - v - 1]",
    "backwards by two": "[15 - 2*v]",
    "clamped": "[max(0, min(8*i + v - 4, n - 1))]",
    "reflected": "[max(8*i + v - 6, -8*i - v + 6)]",
    "repeated": "[(8*i + v) mod 13]",
    "fallen remainder": "[16 - (8*i + v) mod 13]",
    "nested": "[min(max(0, 3 + v - i), (v + 7*i) mod 11)]",
    "two steps": "[min(2*v + i, 20)]",
    "masked": "[max(8*i + v - 6, -8*i - v + 6)] lane v if [5 - v]",
}


@pytest.mark.parametrize("element", ["f32", "f64", "i8", "i1"])
@pytest.mark.parametrize("walk", WALKS)
def test_loads_of_lanes_that_are_not_neighbours_everywhere(walk: str, element: str):
    subscripts = WALKS[walk] if "lane" in WALKS[walk] else WALKS[walk] + " lane v"
    dtype = {"f32": "f4", "f64": "f8", "i8": "i1", "i1": "?"}[element]
    n = 41
    check_against_interpreter(
        f"""
loop.func @walks symbols [n] (%x: memref<?x{element}, #sym.dims<n>>, %y: memref<5x8x{element}>) outputs 1 {{
  loop.for i = 0 to 5 {{
    %a = loop.load %x{subscripts} : vector<8x{element}>
    loop.store %a, %y[i, v] lane v
  }}
}}""",
        [(np.arange(n) * 7 % 5 > 1) if dtype == "?" else np.arange(n).astype(dtype), np.zeros((5, 8), dtype)],
        {"n": n},
        targets=ALL,
    )


@pytest.mark.parametrize("stride", [-1, 2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_strided_loads_end_with_the_last_lane(lanes: int, stride: int):
    """The emulator's buffers end at a page that is not mapped."""
    size = abs(stride) * (lanes - 1) + 1
    first = f"{size - 1} - v" if stride < 0 else f"{stride}*v"
    check_against_interpreter(
        f"""
loop.func @ends symbols [] (%x: memref<{size}xf64>, %y: memref<{lanes}xf64>) outputs 1 {{
  %a = loop.load %x[{first}] lane v : vector<{lanes}xf64>
  loop.store %a, %y[v] lane v
}}""",
        [arange(size, dtype="f8"), np.zeros(lanes)],
        targets=ALL,
    )


@pytest.mark.slow
@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("element", ["f32", "f64", "i32", "i8"])
def test_masked_strided_loads_touch_no_lane_that_is_off(element: str, stride: int):
    """The buffer begins with the first lane that is on and ends with the last one."""
    dtype = {"f32": "f4", "f64": "f8", "i32": "i4", "i8": "i1"}[element]
    for first, last in ((0, 6), (1, 7), (3, 4), (5, 5)):
        size = stride * (last - first) + 1
        check_against_interpreter(
            f"""
loop.func @ends symbols [] (%x: memref<{size}x{element}>, %y: memref<8x{element}>) outputs 1 {{
  %n = arith.constant {"7.0" if element[0] == "f" else "7"} : {element}
  %s = vector.broadcast %n : {element} to vector<8x{element}>
  %a = loop.load %x[{stride}*v - {stride * first}] lane v if [v - {first}, {last} - v] else %s : vector<8x{element}>
  loop.store %a, %y[v] lane v
}}""",
            [arange(size, dtype=dtype), np.zeros(8, dtype)],
            targets=ALL,
        )


def test_clamps_that_several_loads_share():
    check_against_interpreter(
        """
loop.func @shared symbols [n]
    (%x: memref<?xf32, #sym.dims<n>>, %b: memref<?xf32, #sym.dims<n>>, %y: memref<5x8xf32>) outputs 1 {
  loop.for i = 0 to 5 {
    %a = loop.load %x[max(0, min(8*i + v - 4, n - 1))] lane v : vector<8xf32>
    %c = loop.load %b[max(0, min(8*i + v - 4, n - 1))] lane v : vector<8xf32>
    %d = loop.load %x[max(0, min(8*i + v - 3, n - 1))] lane v if [8*i + v - 4] : vector<8xf32>
    %e = loop.load %b[(8*i + v) mod n] lane v : vector<8xf32>
    %f = arith.addf %a, %c : vector<8xf32>
    %g = arith.mulf %d, %e : vector<8xf32>
    %h = arith.subf %f, %g : vector<8xf32>
    loop.store %h, %y[i, v] lane v
  }
}""",
        [arange(33), arange(33), np.zeros((5, 8), "f4")],
        {"n": 33},
        targets=ALL,
    )


STORES = {
    "contiguous": ("[i, v]", ""),
    "reversed": ("[i, 8 - v]", ""),
    "column": ("[v, i]", "if [4 - v]"),
    "first lanes": ("[i, v + 4]", "if [4 - v]"),
    "last lanes": ("[i, v - 3]", "if [v - 3]"),
    "row guard": ("[i + 2, v]", "if [2 - i]"),
    "even": ("[i, 2*v]", "if [8 - 2*v]"),
    "permuted": ("[i, (3*v) mod 8]", ""),
}


@pytest.mark.parametrize("case", STORES)
@pytest.mark.parametrize("statement", ["loop.store", "loop.accumulate add", "loop.accumulate max"])
def test_vector_stores(case: str, statement: str):
    subscripts, guards = STORES[case]
    check_against_interpreter(
        f"""
loop.func @stores symbols [] (%x: memref<5x8xf32>, %y: memref<5x9xf32>) outputs 1 {{
  loop.for i = 0 to 5 {{
    %a = loop.load %x[i, v] lane v : vector<8xf32>
    {statement} %a, %y{subscripts} lane v {guards}
  }}
}}""",
        [arange(5, 8), np.full((5, 9), 7, np.float32)],
        targets=ALL,
    )


@pytest.mark.parametrize("combiner", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("element,dtype", [("f32", "f4"), ("f64", "f8"), ("i64", "i8"), ("ui8", "u1"), ("i8", "i1")])
@pytest.mark.parametrize("guards", ["", "if [5 - v]", "if [i - 1]", "if [i - 1, v - 3]"])
def test_lanes_that_meet_at_one_element(combiner: str, element: str, dtype: str, guards: str):
    signless = element.removeprefix("u")
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, (4, 8)).astype(dtype)
    check_against_interpreter(
        f"""
loop.func @meet symbols [] (%x: memref<4x8x{element}>, %y: memref<4x{element}>) outputs 1 {{
  loop.for i = 0 to 4 {{
    %a = loop.load %x[i, v] lane v : vector<8x{signless}>
    loop.accumulate {combiner} %a, %y[i] lane v {guards}
  }}
}}""",
        [x, np.array([1, 100, 3, 200]).astype(dtype)],
    )


@pytest.mark.parametrize("combiner", ["and", "or", "xor", "add", "mul", "max", "min"])
def test_booleans(combiner: str):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (6, 16)).astype(bool)
    check_against_interpreter(
        f"""
loop.func @booleans symbols [] (%x: memref<6x16xi1>, %y: memref<6xi1>, %z: memref<6x16xi1>) outputs 2 {{
  loop.for i = 0 to 6 {{
    %a = loop.load %x[i, v] lane v : vector<16xi1>
    %t = loop.reduce_lanes {combiner} %a : vector<16xi1> to i1
    loop.accumulate {combiner} %t, %y[i]
    %b = loop.load %x[i, 0] : i1
    %c = vector.broadcast %b : i1 to vector<16xi1>
    %d = arith.xori %a, %c : vector<16xi1>
    loop.store %d, %z[i, v] lane v if [12 - v]
  }}
}}""",
        [x, np.array([0, 1, 0, 1, 1, 0], bool), np.ones((6, 16), bool)],
        targets=ALL,
    )


@pytest.mark.slow
def test_maximum_and_minimum_keep_nan():
    x = np.array([[1, np.nan, 3, 4], [5, 6, 7, 8], [np.nan] * 4, [-np.inf, 1, 2, np.inf]], np.float32)
    for combiner in ("max", "min"):
        out = check_against_interpreter(
            f"""
loop.func @nan symbols [] (%x: memref<4x4xf32>, %y: memref<4xf32>) outputs 1 {{
  loop.for i = 0 to 4 {{
    %a = loop.load %x[i, v] lane v : vector<4xf32>
    %t = loop.reduce_lanes {combiner} %a : vector<4xf32> to f32
    loop.accumulate {combiner} %t, %y[i]
  }}
}}""",
            [x, np.array([0, np.nan, 0, 0], np.float32)],
            targets=ALL,
        )
        np.testing.assert_array_equal(out[0], [np.nan] * 3 + [np.inf if combiner == "max" else -np.inf])


def test_gather_and_scatter_by_indices():
    """Vectors of indices, one index for all lanes, lanes that meet, and indices that guards exclude."""
    rng = np.random.default_rng(2)
    index = rng.integers(-3, 12, 32)
    check_against_interpreter(
        """
loop.func @indices symbols [] (%x: memref<9x4xf32>, %i: memref<32xi64>, %y: memref<32xf32>, %z: memref<9xf32>)
    outputs 2 {
  %one = arith.constant dense<-1.0> : vector<8xf32>
  loop.for k = 0 to 32 step 8 {
    %j = loop.load %i[k + v] lane v : vector<8xi64>
    %a = loop.load %x[_0, 1] lane v with %j if [_0, 8 - _0] else %one : vector<8xf32>
    loop.store %a, %y[k + v] lane v
    loop.accumulate add %a, %z[_0] lane v with %j if [_0, 8 - _0]
    %s = loop.load %i[k] : i64
    %b = loop.load %x[_0, v mod 4] lane v with %s if [_0, 8 - _0] : vector<8xf32>
    loop.accumulate add %b, %y[k + v] lane v
    %c = loop.load %x[_0, 2] with %s if [_0, 8 - _0] : f32
    loop.accumulate mul %c, %z[_0] with %s if [_0, 8 - _0]
  }
}""",
        [arange(9, 4), index.astype(np.int64), np.zeros(32, np.float32), np.ones(9, np.float32)],
        targets=ALL,
    )


def test_memory_spaces():
    """Rows through the arena, the stack and registers, with offsets that name an axis and views of each."""
    check_against_interpreter(
        """
loop.func @spaces symbols [n] (%x: memref<?x12xf32, #sym.dims<n, 12>>, %y: memref<?x12xf32, #sym.dims<n, 12>>)
    outputs 1 scratch(64*n + 64) {
  %whole = loop.alloc "whole" offset 0 : memref<16xf32, "scratch">
  loop.for c = 0 to 12 {
    %k = loop.load %x[0, c] if [n - 1] : f32
    loop.store %k, %whole[c]
  }
  loop.for i = 0 to n threads(2) {
    %s = loop.alloc "slot" offset 64 + 64*i : memref<12xf32, "scratch">
    %l = loop.alloc "row" : memref<3x4xf32, "local">
    %f = loop.view %l : memref<3x4xf32, "local"> to memref<12xf32, "local">
    %r = loop.alloc "pair" : memref<2xf32, "register">
    loop.for c1 = 0 to 12 {
      %a = loop.load %x[i, c1] : f32
      %b = loop.load %whole[c1] : f32
      %c = arith.addf %a, %b : f32
      loop.store %c, %f[c1]
    }
    loop.for p = 0 to 3 {
      loop.for q = 0 to 4 {
        %a = loop.load %l[p, q] : f32
        loop.store %a, %s[4*p + q]
      }
    }
    %z = arith.constant 0.0 : f32
    loop.store %z, %r[0]
    loop.store %z, %r[1]
    loop.for c2 = 0 to 12 reduction {
      %a = loop.load %s[c2] : f32
      loop.accumulate add %a, %r[0]
      loop.accumulate max %a, %r[1] if [c2 - 3]
    }
    %t = loop.load %r[0] : f32
    %u = loop.load %r[1] if [i - 1] : f32
    %w = arith.addf %t, %u : f32
    loop.for c3 = 0 to 12 step 5 {
      loop.store %w, %y[i, c3]
    }
  }
}""",
        [arange(5, 12), np.zeros((5, 12), np.float32)],
        {"n": 5},
        ALL,
        threads=2,
    )


@pytest.mark.parametrize(
    "n,grain,threads", [(0, 1, 2), (2, 1, 2), (8, 1, 2), (8, 3, 2), (8, 100, 2), (64, 5, 3), (10, 2, 1)]
)
def test_tasks(n: int, grain: int, threads: int):
    """Loops with steps and offsets on threads, one inside another, and two in a row."""
    check_against_interpreter(
        f"""
loop.func @tasks symbols [n] (%x: memref<?x4xf32, #sym.dims<n, 4>>, %y: memref<?x4xf32, #sym.dims<n, 4>>) outputs 1 {{
  %k = arith.constant 3.0 : f32
  loop.for i = 1 to n + 1 step 2 threads({grain}) {{
    loop.for j = 0 to 4 threads(1) {{
      %a = loop.load %x[i - 1, j] : f32
      %b = arith.mulf %a, %k : f32
      loop.store %b, %y[i - 1, j]
    }}
  }}
  loop.for h = 0 to 4 threads({grain}) {{
    loop.for g = 0 to n floordiv 2 {{
      %a = loop.load %x[2*g + 1, h] : f32
      loop.store %a, %y[2*g + 1, h]
    }}
  }}
}}""",
        [arange(n, 4), np.zeros((n, 4), np.float32)],
        {"n": n},
        threads=threads,
    )


def test_conditions_and_index_values():
    check_against_interpreter(
        """
loop.func @conditions symbols [n] (%x: memref<?xi64, #sym.dims<n>>, %y: memref<?xi64, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n {
    loop.if [i - 2, n - 4 - i] {
      %a = loop.index (i - 7) floordiv 3 + 10*((i - 5) mod 4) : i64
      loop.store %a, %y[i]
      loop.if [i - 4] {
        %b = loop.index n*i - min(i, 6) : i64
        loop.accumulate add %b, %y[i]
      }
    }
    loop.if [i] {
      %c = loop.load %x[i] : i64
      loop.accumulate add %c, %y[i]
    }
    loop.if [-i - 1] {
      %d = arith.constant 99 : i64
      loop.store %d, %y[i]
    }
  }
  loop.for k = 0 to n - 7 step 8 {
    %e = loop.index 3*(k + v) - (n - v) floordiv 3 lane v : vector<8xi64>
    loop.accumulate add %e, %y[k + v] lane v
  }
}""",
        [arange(21, dtype="i8"), np.zeros(21, np.int64)],
        {"n": 21},
        ALL,
    )


@pytest.mark.parametrize("element,bits", [("f16", 10), ("bf16", 7)])
def test_16_bit_floats(element: str, bits: int):
    """Loads, stores, arithmetic and conversions, computed in f32: also on CPUs that have none of it."""
    import ml_dtypes

    dtype = np.float16 if element == "f16" else ml_dtypes.bfloat16
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(0, 10.0, 40), rng.normal(0, 1e-6, 20), [0, -0.0, np.inf, -np.inf]])
    x = values.astype(dtype).reshape(4, 16)
    check_against_interpreter(
        f"""
loop.func @short symbols [] (%x: memref<4x16x{element}>, %y: memref<4x16x{element}>, %z: memref<4x16xf32>)
    outputs 2 {{
  loop.for i = 0 to 4 {{
    %a = loop.load %x[i, v] lane v : vector<16x{element}>
    %b = arith.extf %a : vector<16x{element}> to vector<16xf32>
    %c = math.exp %b : vector<16xf32>
    loop.store %c, %z[i, v] lane v
    %t = arith.truncf %c : vector<16xf32> to vector<16x{element}>
    %d = arith.addf %t, %a : vector<16x{element}>
    loop.store %d, %y[i, v] lane v if [14 - v]
    %s = loop.load %x[i, 15] : {element}
    loop.store %s, %y[i, 15]
  }}
}}""",
        [x, np.zeros((4, 16), dtype), np.zeros((4, 16), np.float32)],
        targets=ALL,
        rtol=2.0**-bits,
    )


def test_all_f16_conversions():
    """Every half to f32 and back, and doubles that lie next to the middle of two halves."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        middles = (halves[1:].astype(np.float64) + halves[:-1].astype(np.float64)) / 2
    near = np.concatenate([middles, np.nextafter(middles, 1e9), np.nextafter(middles, -1e9)])
    near = near[np.isfinite(near)][: len(near) // 16 * 16 - 16]
    near = near[: len(near) // 16 * 16]
    text = f"""
loop.func @convert symbols [] (%h: memref<65536xf16>, %d: memref<{len(near)}xf64>, %s: memref<65536xf32>,
    %b: memref<65536xf16>, %e: memref<{len(near)}xf16>) outputs 3 {{
  loop.for i = 0 to 65536 step 16 {{
    %x = loop.load %h[i + v] lane v : vector<16xf16>
    %y = arith.extf %x : vector<16xf16> to vector<16xf32>
    loop.store %y, %s[i + v] lane v
    %z = arith.truncf %y : vector<16xf32> to vector<16xf16>
    loop.store %z, %b[i + v] lane v
  }}
  loop.for j = 0 to {len(near)} step 16 {{
    %x = loop.load %d[j + v] lane v : vector<16xf64>
    %y = arith.truncf %x : vector<16xf64> to vector<16xf16>
    loop.store %y, %e[j + v] lane v
  }}
}}"""
    for target in ALL:
        single, back = np.zeros(65536, np.float32), np.zeros(65536, np.float16)
        rounded = np.zeros(len(near), np.float16)
        compiled(text, target)(halves, near, single, back, rounded)
        np.testing.assert_array_equal(single, halves.astype(np.float32))
        np.testing.assert_array_equal(back, halves)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(rounded, near.astype(np.float16))


@pytest.mark.slow
@examples(60)
@given(st.data())
def test_random_affine_accesses(data: st.DataObject):
    """Guarded accesses with random coefficients: what stays in bounds is copied, by scalars and by vectors."""
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 20))
    lanes = data.draw(st.sampled_from([2, 4, 8, 16]))
    small = st.integers(-3, 3)
    a, b, d, e = (data.draw(small) for _ in range(4))
    c, f = data.draw(st.integers(-8, 8)), data.draw(small)

    def access(i: str, j: str, guard: str) -> str:
        row, column = f"{d}*{i} + {e}*({j}) + {f}", f"{a}*{i} + {b}*({j}) + {c}"
        return f"{row}, {column}] {guard} if [{row}, n - 1 - ({row}), {column}, m - 1 - ({column})"

    kind = "memref<?x?xf32, #sym.dims<n, m>>"
    check_against_interpreter(
        f"""
loop.func @affine symbols [n, m] (%x: {kind}, %y: {kind}, %z: {kind}) outputs 2 {{
  loop.for i = 0 to n {{
    loop.for j = 0 to m step {lanes} {{
      %a = loop.load %x[{access("i", "j + v", "lane v")}, m - 1 - j - v] : vector<{lanes}xf32>
      loop.store %a, %y[i, j + v] lane v if [m - 1 - j - v]
    }}
  }}
  loop.for p = 0 to n {{
    loop.for q = 0 to m {{
      %a = loop.load %x[{access("p", "q", "")}] : f32
      loop.store %a, %z[p, q]
    }}
  }}
}}""",
        [arange(rows, columns), np.zeros((rows, columns), np.float32), np.zeros((rows, columns), np.float32)],
        {"n": rows, "m": columns},
        ("native", "x86-64-v3", "x86-64"),
    )


def test_divisions_that_a_lane_cannot_carry_over():
    """Heads split off a row: whole vectors lie within a head, so they are loaded and stored whole."""
    text = """
loop.func @heads symbols [n] (%x: memref<?x96xf32, #sym.dims<n, 96>>, %y: memref<3x?x32xf32, #sym.dims<3, n, 32>>)
    outputs 1 {
  loop.for i = 0 to n {
    loop.for j = 0 to 96 step 8 {
      %a = loop.load %x[i, 32*((j + v) floordiv 32) + (j + v) mod 32] lane v : vector<8xf32>
      loop.store %a, %y[(j + v) floordiv 32, i, (j + v) mod 32] lane v
    }
    loop.for k = 4 to 92 step 8 {
      %a = loop.load %x[i, k + v] lane v : vector<8xf32>
      loop.accumulate add %a, %y[(k + v) floordiv 32, i, (k + v) mod 32] lane v
    }
  }
}"""
    buffers = [arange(5, 96), np.zeros((3, 5, 32), np.float32)]
    check_against_interpreter(text, buffers, {"n": 5}, ALL)
    whole, halves = emit_llvm(parse_func(text), target_of("x86-64-v3")).split("store <8 x float>")[:2]
    assert "gather" not in whole and "udiv <" in halves


def test_the_text_is_the_same_every_time():
    text = """
loop.func @same symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n threads(16) {
    %a = loop.load %x[i] : f32
    %b = math.sin %a : f32
    %c = math.powf %b, %a : f32
    loop.store %c, %y[i]
  }
}"""
    target = target_of("x86-64-v3")
    assert emit_llvm(parse_func(text), target) == emit_llvm(parse_func(text), target)


@pytest.mark.parametrize("rows_of_count", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 8, 12])
@pytest.mark.parametrize("lanes", [4, 6, 8, 16])
def test_matrices_transposed_in_registers(count: int, lanes: int, rows_of_count: bool):
    kind = f"vector<{lanes}xf32>"
    size = count * lanes
    kinds, rows = ", ".join([kind] * count), "" if rows_of_count else f" rows {lanes}"
    loads = "\n".join(f"%a{k} = loop.load %x[v + {k * lanes}] lane v : {kind}" for k in range(count))
    stores = "\n".join(f"loop.store %b{k}, %y[v + {k * lanes}] lane v" for k in range(count))
    before, after = (", ".join(f"%{c}{k}" for k in range(count)) for c in "ab")
    text = f"""
loop.func @matrix symbols [] (%x: memref<{size}xf32>, %y: memref<{size}xf32>) outputs 1 {{
  {loads}
  {after} = loop.transpose {before} : {kinds} to {kinds}{rows}
  {stores}
}}"""
    x = arange(size)
    targets = ("native", "x86-64-v3", "aarch64")
    (found,) = check_against_interpreter(text, [x, np.zeros(size, "f4")], {}, targets)
    np.testing.assert_array_equal(found, x.reshape(count if rows_of_count else lanes, -1).T.reshape(-1))


# What the factors are, and the sums, of kinds of micro-kernels with rounds and of one without, and how deep a group is.
ROUNDS = {
    "f32": ("f32", "f32", "f32", 1),
    "f64": ("f64", "f64", "f64", 1),
    "bf16": ("bf16", "bf16", "f32", 2),
    "u8i8": ("ui8", "i8", "i32", 4),
    "i8i8": ("i8", "i8", "i32", 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("panels", (1, 2, 3))
@pytest.mark.parametrize(("rows", "depth", "rounds"), [(1, 3, 1), (5, 7, 3), (8, 13, 4), (3, 0, 2), (4, 5, 0)])
@pytest.mark.parametrize("kind", ROUNDS)
def test_products_in_rounds(kind: str, rows: int, depth: int, rounds: int, panels: int) -> None:
    """A micro-kernel sums over rounds of its depth: as the interpreter does, into a tile and added to one."""
    left, right, sums, group = ROUNDS[kind]
    lanes, depth = 8 if kind == "f64" else 16, depth * group
    step = "k" if group == 1 else f"k floordiv {group}"
    part, inner, last = ("", "", "") if group == 1 else (f", k mod {group}", f"x{group}", f", {group}")
    b_type = f"memref<{panels}x?x?x{lanes}{inner}x{right}, #sym.dims<{panels}, n, d floordiv {group}, {lanes}{last}>>"
    c_type = f"memref<{rows}x{panels * lanes}x{sums}>"
    product = f"%a[s, r, k] * %b[p, s, {step}, l{part}]"
    over = f"over r = {rows}, p = {panels}, l = {lanes}, k = d, s = n tile [8, 3]"
    text = f"""
loop.func @product symbols [n, d] (
    %a: memref<?x9x?x{left}, #sym.dims<n, 9, d>>, %b: {b_type}, %c: {c_type}, %e: {c_type}) outputs 2 {{
  loop.tile_product %c[r, {lanes}*p + l] = {product} {over}
  loop.tile_product %e[r, {lanes}*p + l] += {product} {over}
}}"""
    rng = np.random.default_rng(0)
    types = {"f32": "f4", "f64": "f8", "bf16": ml_dtypes.bfloat16, "ui8": "u1", "i8": "i1", "i32": "i4"}
    dims = ((rounds, 9, depth), (panels, rounds, depth // group, lanes, *((group,) if group > 1 else ())))
    a, b = (rng.integers(-9, 9, d).astype(types[t]) for d, t in zip(dims, (left, right), strict=True))
    start = np.full((rows, panels * lanes), 3, types[sums])
    plain, more = check_against_interpreter(text, [a, b, start, start.copy()], {"n": rounds, "d": depth}, TARGETS)
    wide = b.reshape(panels, rounds, depth // group, lanes, group).transpose(0, 1, 2, 4, 3)
    wide = wide.reshape(panels, rounds, depth, lanes).astype("f8")
    expected = np.einsum("srk,pskl->rpl", a[:, :rows].astype("f8"), wide).reshape(rows, -1)
    np.testing.assert_array_equal(plain, expected)
    np.testing.assert_array_equal(more, expected + 3)


def test_the_name_of_a_loop_of_one_step_is_free_behind_it() -> None:
    """A loop of one step is no loop in the code, and its axis a number: not to what has an axis of that name later."""
    func = parse_func("""
loop.func @product symbols [] (%a: memref<4x5xf32>, %b: memref<2x5x16xf32>, %c: memref<4x32xf32>) outputs 1 {
  loop.for p = 0 to 1 {
    loop.for r = 3 to 4 {
      %x = loop.load %a[r, p] : f32
      loop.store %x, %c[r, p]
    }
  }
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 4, p = 2, l = 16, k = 5 tile [8, 3]
}""")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 5)).astype("f4"), rng.standard_normal((2, 5, 16)).astype("f4")
    c = np.zeros((4, 32), "f4")
    compile_func(func, "native")(a, b, c)
    np.testing.assert_allclose(c, np.einsum("rk,pkl->rpl", a, b).reshape(4, 32), rtol=1e-5)
