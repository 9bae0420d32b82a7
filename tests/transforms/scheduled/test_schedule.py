"""Scheduled kernels compute what the structured level says, at every width and for odd, tiny and empty extents."""

from __future__ import annotations

import pytest

from tests.transforms.scheduled.scheduling import check

ROWS = [{"n": n, "m": m} for n, m in ((0, 3), (1, 1), (3, 0), (2, 5), (3, 16), (5, 17), (2, 33), (3, 64), (7, 131))]


def dims(*names: str | int) -> str:
    return f"#sym.dims<{', '.join(map(str, names))}>"


def tensor(*names: str | int, element: str = "f32") -> str:
    if all(isinstance(n, int) for n in names):
        return f"tensor<{''.join(f'{n}x' for n in names)}{element}>"
    shape = "".join("?x" if isinstance(n, str) else f"{n}x" for n in names)
    return f"tensor<{shape}{element}, {dims(*names)}>"


COLUMNS = [{"n": n, "m": m} for n, m in ((0, 3), (1, 1), (3, 0), (33, 5), (16, 16), (35, 64), (17, 137))]

NM, N, M = tensor("n", "m"), tensor("n"), tensor("m")
STACK, STACKED_ROWS, TOTALS = tensor(2, "n", "m"), tensor(2, "m", "n"), tensor(2, "m")
BOOLS, BYTES = tensor("n", "m", element="i1"), tensor("n", "m", element="ui8")

KERNELS = {
    "softmax": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> ({NM}) {{
    %m = loop.nest "max" [i: parallel n, j: reduction m] -> {N} {{
      %a = loop.read %x[i, j] : f32
      loop.yield max %a at [i]
    }}
    %e = loop.nest "exp" [i: parallel n, j: parallel m] -> {NM} {{
      %a = loop.read %x[i, j] : f32
      %b = loop.read %m[i] : f32
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      loop.yield none %d at [i, j]
    }}
    %s = loop.nest "sum" [i: parallel n, j: reduction m] -> {N} {{
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }}
    %o = loop.nest "div" [i: parallel n, j: parallel m] -> {NM} {{
      %a = loop.read %e[i, j] : f32
      %b = loop.read %s[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, j]
    }}
    loop.return %o : {NM}
  }}""",
    "column sums": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> ({M}, {M}) {{
    %s, %p = loop.nest "sum" [j: parallel m, i: reduction n] -> {M}, {M} {{
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at [j], max %a at [j]
    }}
    loop.return %s, %p : {M}, {M}
  }}""",
    "transpose and add": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}, %y : {tensor("m", "n")}) -> ({tensor("m", "n")}) {{
    %o = loop.nest "add" [j: parallel m, i: parallel n] -> {tensor("m", "n")} {{
      %a = loop.read %x[i, j] : f32
      %b = loop.read %y[j, i] : f32
      %c = arith.addf %a, %b : f32
      loop.yield none %c at [j, i]
    }}
    loop.return %o : {tensor("m", "n")}
  }}""",
    "matmul with an epilogue": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor("n", 19)}, %y : {tensor(19, "m")}, %b : {M}) -> ({NM}) {{
    %c = loop.nest "matmul" [i: parallel n, j: parallel m, k: reduction 19] -> {NM} {{
      %a = loop.read %x[i, k] : f32
      %b1 = loop.read %y[k, j] : f32
      %p = arith.mulf %a, %b1 : f32
      loop.yield add %p at [i, j]
    }}
    %o = loop.nest "bias" [i: parallel n, j: parallel m] -> {NM} {{
      %a = loop.read %c[i, j] : f32
      %b1 = loop.read %b[j] : f32
      %p = arith.addf %a, %b1 : f32
      loop.yield none %p at [i, j]
    }}
    loop.return %o : {NM}
  }}""",
    "static matmul": f"""
  loop.kernel @k symbols [] (%x : {tensor(13, 19)}, %y : {tensor(19, 70)}) -> ({tensor(13, 70)}) {{
    %c = loop.nest "matmul" [i: parallel 13, j: parallel 70, k: reduction 19] -> {tensor(13, 70)} {{
      %a = loop.read %x[i, k] : f32
      %b1 = loop.read %y[k, j] : f32
      %p = arith.mulf %a, %b1 : f32
      loop.yield add %p at [i, j]
    }}
    loop.return %c : {tensor(13, 70)}
  }}""",
    "full sum": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> (tensor<f32>, tensor<f32>) {{
    %s = loop.nest "sum" [i: reduction n, j: reduction m] -> tensor<f32> {{
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at []
    }}
    %t = loop.nest "half" [] -> tensor<f32> {{
      %a = loop.read %s[] : f32
      %h = arith.constant 0.5 : f32
      %b = arith.mulf %a, %h : f32
      loop.yield none %b at []
    }}
    loop.return %s, %t : tensor<f32>, tensor<f32>
  }}""",
    "guarded reads": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}, %y : {NM}) -> ({tensor("n", "2*m")}) {{
    %o = loop.nest "concat" [i: parallel n, j: parallel 2*m] -> {tensor("n", "2*m")} {{
      %b = loop.read %y[i, j - m] if [j - m] : f32
      %a = loop.read %x[i, j] if [m - 1 - j] else %b : f32
      loop.yield none %a at [i, j]
    }}
    loop.return %o : {tensor("n", "2*m")}
  }}""",
    "gather": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor(5, "m")}, %i : {tensor("n", element="i64")}) -> ({NM}) {{
    %o = loop.nest "gather" [i: parallel n, j: parallel m] -> {NM} {{
      %k = loop.read %i[i] : i64
      %a = loop.read %x[_0, j] with %k if [_0, 4 - _0] : f32
      loop.yield none %a at [i, j]
    }}
    loop.return %o : {NM}
  }}""",
    "index values": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> ({NM}) {{
    %o = loop.nest "tril" [i: parallel n, j: parallel m] -> {NM} {{
      %a = loop.read %x[i, j] : f32
      %d = loop.index i - j : i64
      %z = arith.constant 0 : i64
      %f = arith.constant 0.0 : f32
      %c = arith.cmpi sge, %d, %z : i64
      %r = arith.select %c, %a, %f : f32
      loop.yield none %r at [i, j]
    }}
    loop.return %o : {NM}
  }}""",
    "views and heads": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor("n", "m", 24)}) -> ({tensor("n", 4, "m", 6)}) {{
    %v = loop.view %x : {tensor("n", "m", 24)} to {tensor("n", "m", 4, 6)}
    %o = loop.nest "heads" [b: parallel n, h: parallel 4, s: parallel m, d: parallel 6] -> {tensor("n", 4, "m", 6)} {{
      %a = loop.read %v[b, s, h, d] : f32
      %c = arith.addf %a, %a : f32
      loop.yield none %c at [b, h, s, d]
    }}
    loop.return %o : {tensor("n", 4, "m", 6)}
  }}""",
    "bool and bytes": f"""
  loop.kernel @k symbols [n, m] (%x : {BOOLS}, %y : {BYTES}) -> ({BYTES}, {tensor("n", element="i1")}) {{
    %o = loop.nest "select" [i: parallel n, j: parallel m] -> {BYTES} {{
      %a = loop.read %x[i, j] : i1
      %b = loop.read %y[i, j] : i8
      %z = arith.constant 200 : i8
      %c = arith.select %a, %b, %z : i8
      loop.yield none %c at [i, j]
    }}
    %r = loop.nest "any" [i: parallel n, j: reduction m] -> {tensor("n", element="i1")} {{
      %a = loop.read %x[i, j] : i1
      loop.yield or %a at [i]
    }}
    loop.return %o, %r : {BYTES}, {tensor("n", element="i1")}
  }}""",
    "transposed squares in a batch": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor("n", "m", 16)}, %y : {tensor("n", 16, "m")})
      -> ({tensor("n", 16, "m")}) {{
    %o = loop.nest "add" [b: parallel n, i: parallel 16, j: parallel m] -> {tensor("n", 16, "m")} {{
      %a = loop.read %x[b, j, i] : f32
      %c = loop.read %y[b, i, j] : f32
      %d = arith.addf %a, %c : f32
      loop.yield none %d at [b, i, j]
    }}
    loop.return %o : {tensor("n", 16, "m")}
  }}""",
    "transposed squares of one tile": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor("n", 16, 32)}, %y : {tensor("n", 32, 16)}) -> ({tensor("n", 32, 16)}) {{
    %o = loop.nest "add" [b: parallel n, i: parallel 32, j: parallel 16] -> {tensor("n", 32, 16)} {{
      %a = loop.read %x[b, j, i] : f32
      %c = loop.read %y[b, i, j] : f32
      %d = arith.addf %a, %c : f32
      loop.yield none %d at [b, i, j]
    }}
    loop.return %o : {tensor("n", 32, 16)}
  }}""",
    "a scalar for some lanes": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> ({tensor("n", 6)}) {{
    %s = loop.nest "sum" [i: parallel n, j: reduction m] -> {tensor("n", 1)} {{
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at [i, 0]
    }}
    %o = loop.nest "concat" [i: parallel n, j: parallel 6] -> {tensor("n", 6)} {{
      %a = loop.read %s[i, 0] if [j - 3] : f32
      %b = loop.read %s[i, 0] if [i - 1] else %a : f32
      loop.yield none %b at [i, j]
    }}
    loop.return %o : {tensor("n", 6)}
  }}""",
    "constant strides": """
  loop.kernel @k symbols [n, m] (%x : tensor<?xf32, #sym.dims<5*m>>, %b : tensor<?xui8, #sym.dims<5*m>>)
      -> (tensor<?xf32, #sym.dims<m>>, tensor<?xui8, #sym.dims<m>>) {
    %o, %p = loop.nest "strided" [j: parallel m] -> tensor<?xf32, #sym.dims<m>>, tensor<?xui8, #sym.dims<m>> {
      %a = loop.read %x[-j + m - 1] : f32
      %c = loop.read %x[2*j + 1] : f32
      %d = loop.read %x[3*j + 2] : f32
      %e = loop.read %x[4*j + m] : f32
      %f = loop.read %x[5*j + 4] : f32
      %g = arith.subf %a, %c : f32
      %h = arith.mulf %d, %e : f32
      %i = arith.divf %g, %f : f32
      %k = arith.addf %i, %h : f32
      %q = loop.read %b[3*j] : i8
      %r = loop.read %b[-j + 5*m - 1] : i8
      %s = arith.subi %q, %r : i8
      loop.yield none %k at [j], none %s at [j]
    }
    loop.return %o, %p : tensor<?xf32, #sym.dims<m>>, tensor<?xui8, #sym.dims<m>>
  }""",
    "vector loops of a row and of what follows it": f"""
  loop.kernel @k symbols [n, m] (%x : {tensor("n", 8, "m")}) -> ({tensor("n", 8, "m")}) {{
    %s = loop.nest "sum" [i: parallel n, g: parallel 8, j: reduction m] -> {tensor("n", 8)} {{
      %a = loop.read %x[i, g, j] : f32
      loop.yield add %a at [i, g]
    }}
    %r = loop.nest "root" [i: parallel n, g: parallel 8] -> {tensor("n", 8)} {{
      %a = loop.read %s[i, g] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [i, g]
    }}
    %o = loop.nest "scale" [i: parallel n, g: parallel 8, j: parallel m] -> {tensor("n", 8, "m")} {{
      %a = loop.read %x[i, g, j] : f32
      %b = loop.read %r[i, g] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield none %c at [i, g, j]
    }}
    loop.return %o : {tensor("n", 8, "m")}
  }}""",
    "empty among others": f"""
  loop.kernel @k symbols [n, m] (%x : {NM}) -> ({tensor("n", 0, "m")}, {NM}) {{
    %e = loop.nest "slice" [i: parallel n, k: parallel 0, j: parallel m] -> {tensor("n", 0, "m")} {{
      %a = loop.read %x[i, j] : f32
      loop.yield none %a at [i, k, j]
    }}
    %o = loop.nest "twice" [i: parallel n, j: parallel m] -> {NM} {{
      %a = loop.read %x[i, j] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i, j]
    }}
    loop.return %e, %o : {tensor("n", 0, "m")}, {NM}
  }}""",
}


# Rows that lie across memory: the lanes are columns. What leaves as rows is transposed in registers, whole squares or
# not; a value that two loops of a row use (the largest, without its infinities) goes from one to the other.
DOWN = {
    "log-sum-exp and softmax of columns": f"""
  loop.kernel @k symbols [n, m] (%x : {STACK}) -> ({STACK}, {TOTALS}) {{
    %m = loop.nest "max" [b: parallel 2, j: parallel m, i: reduction n] -> {TOTALS} {{
      %a = loop.read %x[b, i, j] : f32
      loop.yield max %a at [b, j]
    }}
    %e = loop.nest "exp" [b: parallel 2, i: parallel n, j: parallel m] -> {STACK} {{
      %a = loop.read %x[b, i, j] : f32
      %t = loop.read %m[b, j] : f32
      %c = arith.subf %a, %t : f32
      %d = math.exp %c : f32
      loop.yield none %d at [b, i, j]
    }}
    %s = loop.nest "sum" [b: parallel 2, j: parallel m, i: reduction n] -> {TOTALS} {{
      %a = loop.read %e[b, i, j] : f32
      loop.yield add %a at [b, j]
    }}
    %y = loop.nest "div" [b: parallel 2, i: parallel n, j: parallel m] -> {STACK} {{
      %a = loop.read %e[b, i, j] : f32
      %t = loop.read %s[b, j] : f32
      %c = arith.divf %a, %t : f32
      loop.yield none %c at [b, i, j]
    }}
    %l = loop.nest "log" [b: parallel 2, j: parallel m] -> {TOTALS} {{
      %a = loop.read %s[b, j] : f32
      %t = loop.read %m[b, j] : f32
      %c = math.log %a : f32
      %z = math.absf %t : f32
      %d = arith.addf %c, %z : f32
      loop.yield none %d at [b, j]
    }}
    loop.return %y, %l : {STACK}, {TOTALS}
  }}""",
    "centred columns as rows": f"""
  loop.kernel @k symbols [n, m] (%x : {STACK}) -> ({STACKED_ROWS}) {{
    %s = loop.nest "sum" [b: parallel 2, j: parallel m, i: reduction n] -> {TOTALS} {{
      %a = loop.read %x[b, i, j] : f32
      loop.yield add %a at [b, j]
    }}
    %y = loop.nest "sub" [b: parallel 2, j: parallel m, i: parallel n] -> {STACKED_ROWS} {{
      %a = loop.read %x[b, i, j] : f32
      %t = loop.read %s[b, j] : f32
      %c = arith.subf %a, %t : f32
      loop.yield none %c at [b, j, i]
    }}
    loop.return %y : {STACKED_ROWS}
  }}""",
    "columns and an operand of rows": f"""
  loop.kernel @k symbols [n, m] (%x : {STACK}, %w : {STACKED_ROWS}) -> ({STACK}) {{
    %s = loop.nest "sum" [b: parallel 2, j: parallel m, i: reduction n] -> {TOTALS} {{
      %a = loop.read %x[b, i, j] : f32
      %w0 = loop.read %w[b, j, i] : f32
      %c = arith.mulf %a, %w0 : f32
      loop.yield add %c at [b, j]
    }}
    %y = loop.nest "sub" [b: parallel 2, i: parallel n, j: parallel m] -> {STACK} {{
      %a = loop.read %x[b, i, j] : f32
      %t = loop.read %s[b, j] : f32
      %c = arith.subf %a, %t : f32
      loop.yield none %c at [b, i, j]
    }}
    loop.return %y : {STACK}
  }}""",
}


def test_wide_column_sums() -> None:
    """Rows wider than a tile, streamed, with every kind of rest."""
    sizes = ((0, 1100), (1, 1024), (8, 1025), (19, 2100), (24, 300))
    check(KERNELS["column sums"], [{"n": n, "m": m} for n, m in sizes])


@pytest.mark.slow
@pytest.mark.parametrize("name", DOWN)
def test_rows_across_memory(name: str) -> None:
    check(DOWN[name], COLUMNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_kernel_agrees_with_the_interpreter(name: str) -> None:
    check(f"builtin.module {{{KERNELS[name]}\n}}", ROWS)
