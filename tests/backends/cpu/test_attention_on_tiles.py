"""Products of computed bf16 on AMX tiles: an attention from its nests to the numbers, with the tiles in Python."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from igniter.backends.cpu import direct_tiles
from igniter.dialects.loop import TileProductOp

from .test_tile_kernels import Guarded, runs_here
from .tile_emulator import TARGET, compiled_on_tiles, scheduled_for_tiles, tiles

Array = np.ndarray
BF16 = ml_dtypes.bfloat16

pytestmark = pytest.mark.skipif(not runs_here(TARGET), reason="the bodies with vectors are of x86-64-v3")


@dataclass(frozen=True)
class Attention:
    """Heads of `dim` features, `shared` of them for one head of keys; `n` keys, None: a symbol."""

    n: int | None
    dim: int
    heads: int = 2
    shared: int = 1
    causal: bool = False

    def text(self) -> str:
        n = "n" if self.n is None else str(self.n)
        size = "?" if self.n is None else n

        def of(element: str, *dims: str | int) -> str:
            shape = "x".join(size if d == "n" else str(d) for d in dims)
            where = ", ".join(n if d == "n" else str(d) for d in dims)
            return f"tensor<{shape}x{element}{f', #sym.dims<{where}>' if self.n is None else ''}>"

        h, d, kv = self.heads, self.dim, self.heads // self.shared
        q, k, out = of("bf16", h, "n", d), of("bf16", kv, "n", d), of("f32", h, "n", d)
        s, p, r, m = of("f32", h, "n", "n"), of("bf16", h, "n", "n"), of("f32", h, "n"), of("f32", "n")
        axes = f"h: parallel {h}, i: parallel {n}"
        key = f"h floordiv {self.shared}" if self.shared > 1 else "h"
        bound = """
            %low = arith.constant 0xff800000 : f32
            %none = arith.constant 0 : i64
            %ahead = loop.index i - j : i64
            %seen = arith.cmpi sge, %ahead, %none : i64
            %kept = arith.select %seen, %masked, %low : f32"""
        after = (bound, "%kept") if self.causal else ("", "%masked")
        symbols = "n" if self.n is None else ""
        return f"""
        loop.kernel @attention symbols [{symbols}] (%q: {q}, %k: {k}, %v: {k}, %m: {m}) -> ({out}) {{
          %s = loop.nest "scores" [{axes}, j: parallel {n}, d: reduction {d}] -> {s} {{
            %a = loop.read %q[h, i, d] : bf16
            %b = loop.read %k[{key}, j, d] : bf16
            %x = arith.extf %a : bf16 to f32
            %y = arith.extf %b : bf16 to f32
            %z = arith.mulf %x, %y : f32
            loop.yield add %z at [h, i, j]
          }}
          %t = loop.nest "mask" [{axes}, j: parallel {n}] -> {s} {{
            %a = loop.read %s[h, i, j] : f32
            %b = loop.read %m[j] : f32
            %scale = arith.constant 0.25 : f32
            %scaled = arith.mulf %a, %scale : f32
            %masked = arith.addf %scaled, %b : f32{after[0]}
            loop.yield none {after[1]} at [h, i, j]
          }}
          %top = loop.nest "top" [{axes}, j: reduction {n}] -> {r} {{
            %a = loop.read %t[h, i, j] : f32
            loop.yield max %a at [h, i]
          }}
          %e = loop.nest "exp" [{axes}, j: parallel {n}] -> {s} {{
            %a = loop.read %t[h, i, j] : f32
            %b = loop.read %top[h, i] : f32
            %x = arith.subf %a, %b : f32
            %y = math.exp %x : f32
            loop.yield none %y at [h, i, j]
          }}
          %sum = loop.nest "sum" [{axes}, j: reduction {n}] -> {r} {{
            %a = loop.read %e[h, i, j] : f32
            loop.yield add %a at [h, i]
          }}
          %p = loop.nest "weights" [{axes}, j: parallel {n}] -> {p} {{
            %a = loop.read %e[h, i, j] : f32
            %b = loop.read %sum[h, i] : f32
            %x = arith.divf %a, %b : f32
            %y = arith.truncf %x : f32 to bf16
            loop.yield none %y at [h, i, j]
          }}
          %o = loop.nest "out" [{axes}, f: parallel {d}, j: reduction {n}] -> {out} {{
            %a = loop.read %p[h, i, j] : bf16
            %b = loop.read %v[{key}, j, f] : bf16
            %x = arith.extf %a : bf16 to f32
            %y = arith.extf %b : bf16 to f32
            %z = arith.mulf %x, %y : f32
            loop.yield add %z at [h, i, f]
          }}
          loop.return %o : {out}
        }}"""

    def reference(self, q: Array, k: Array, v: Array, m: Array) -> Array:
        k, v = (np.repeat(x.astype(np.float64), self.shared, 0) for x in (k, v))
        scores = np.einsum("hid,hjd->hij", q.astype(np.float64), k) * 0.25 + m
        if self.causal:
            n = m.size
            scores = np.where(np.arange(n) <= np.arange(n)[:, None], scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("hij,hjf->hif", weights.astype(np.float32).astype(BF16).astype(np.float64), v)


def check(attention: Attention, sizes: tuple[int, ...]) -> None:
    """Runs an attention at some numbers of keys; both products must have the micro-kernel for tiles."""
    func = scheduled_for_tiles(attention.text())
    products = [op for op in func.walk() if isinstance(op, TileProductOp)]
    assert [op.tile[0] for op in products] == [32, 32]
    run, registers, pages = compiled_on_tiles(func), tiles(), Guarded()
    for n in sizes:
        rng = np.random.default_rng(n)
        h, d = attention.heads, attention.dim
        q, k, v = (
            (rng.standard_normal((heads, n, d)) / d**0.25).astype(BF16)
            for heads in (h, h // attention.shared, h // attention.shared)
        )
        m = np.where(rng.random(n) < 0.2, -1e4, 0).astype(np.float32)
        m[0] = 0
        found = np.full((h, n, d), np.nan, np.float32)
        registers.products = 0
        buffers = [pages.copy(x) for x in (q, k, v, m, found)]
        run(*buffers, **({"n": n} if attention.n is None else {}))
        # A weight that f64 rounds the other way differs by a relative 2^-8.
        np.testing.assert_allclose(buffers[-1], attention.reference(q, k, v, m), 0, 2e-3)
        # Vectors multiply fewer rows, and a depth below a tile's.
        assert (registers.products > 0) == (n >= direct_tiles.FEWEST and max(n + n % 2, d) >= 2 * direct_tiles.GROUPS)


@pytest.mark.slow
@pytest.mark.parametrize("attention", [Attention(None, 32, 1, causal=True), Attention(19, 80, 2, 2)])
def test_attention(attention: Attention) -> None:
    """Masks, causal bounds, grouped heads; an even number of keys, odd ones, and fewer than a tile's."""
    check(attention, (19,) if attention.n is not None else (1, 3, 37))


@pytest.mark.full
@pytest.mark.parametrize("dim", (16, 32, 64, 80, 128, 20))
@pytest.mark.parametrize("n", (None, 12, 31, 32, 65, 128))
@pytest.mark.parametrize(("shared", "causal"), ((1, False), (1, True), (2, True)))
def test_attentions(n: int | None, dim: int, shared: int, causal: bool) -> None:
    sizes = (1, 2, 5, 16, 31, 32, 33, 47, 64, 97) if n is None else (n,)
    check(Attention(n, dim, 2, shared, causal), sizes)
