"""Matrix products: sizes, transposed operands, batches, broadcasts, and what exporters put around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import TensorProto

from benchmark.sweep.activations import activated
from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "products"


def graphs() -> Iterator[Graph]:
    """All products."""
    yield from by_weights()
    yield from of_inputs()
    yield from gemms()
    yield from transposed()
    yield from batched()
    yield from epilogues()
    yield from einsums()
    yield from shared()


def by_weights() -> Iterator[Graph]:
    for rows, depth, columns in [
        (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (32, 768, 768), (1, 768, 3072), (1, 2048, 1000),
        (1, 512, 10),
        (2, 1024, 1024), (4, 512, 2048), (7, 384, 384), (11, 256, 1024), (197, 384, 1152), (1024, 64, 64),
        (4096, 32, 32),
        (3136, 96, 288), (49, 768, 2304), (100, 256, 4), (1000, 3, 64), (2000, 7, 16), (512, 512, 1), (300, 40, 6625),
        (10, 10, 10), (8, 5000, 8), (50, 1, 256), (16, 16, 4096), (33, 65, 129),
    ]:  # fmt: skip
        yield Graph(GROUP, f"by a weight {rows}x{depth}x{columns}", _by_weight(rows, depth, columns))
    yield Graph(GROUP, "by a weight 1x8x128x768x768", _by_weight(128, 768, 768, batch=8))
    yield Graph(GROUP, "by a weight f16 32x512x512", _by_weight(32, 512, 512, kind=TensorProto.FLOAT16))
    yield Graph(GROUP, "by a weight f64 64x256x256", _by_weight(64, 256, 256, kind=TensorProto.DOUBLE))
    yield Graph(GROUP, "a weight on the left 256x256x784", _left_weight)
    yield Graph(GROUP, "a vector by a weight 768x768", _vector(first=True))
    yield Graph(GROUP, "a weight by a vector 768x768", _vector(first=False))


def _by_weight(rows: int, depth: int, columns: int, *, batch: int = 1, kind: int = TensorProto.FLOAT) -> Build:
    def build(g: Sketch) -> str:
        k, n, m = g.wide(depth), g.wide(columns), g.side(rows)
        weight = g.random(k, n, scale=k**-0.5)
        if kind != TensorProto.FLOAT:
            weight = g.learned(g.draw(k, n, scale=k**-0.5).astype("f2" if kind == TensorProto.FLOAT16 else "f8"))
        x = g.input("x", ("batch", batch), ("sequence", m), k, kind=kind)
        return g.op("MatMul", x, weight)

    return build


def _left_weight(g: Sketch) -> str:
    k, n = g.wide(256), g.side(784)
    return g.op("MatMul", g.random(k, k, scale=k**-0.5), g.input("x", ("batch", 1), k, ("places", n)))


def _vector(*, first: bool) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(768), g.wide(768)
        if first:
            return g.op("Relu", g.op("MatMul", g.input("x", k), g.random(k, n, scale=k**-0.5)))
        return g.op("Relu", g.op("MatMul", g.random(n, k, scale=k**-0.5), g.input("x", k)))

    return build


def of_inputs() -> Iterator[Graph]:
    for left, right in [
        ((128, 64), (64, 128)), ((8, 20000), (20000, 8)), ((20000, 8), (8, 8)), ((512, 512), (512, 512)),
        ((1, 512), (512, 512)),
        ((512, 1), (1, 512)), ((64, 64), (64, 1)), ((200, 3), (3, 200)), ((3, 3), (3, 10000)),
        ((8, 100000), (100000, 8)),
    ]:  # fmt: skip
        yield Graph(GROUP, f"of inputs {times(left)} by {times(right)}", _of_inputs(left, right))


def _of_inputs(left: Sequence[int], right: Sequence[int]) -> Build:
    def build(g: Sketch) -> str:
        m, k, n = g.side(left[0]), g.side(left[1]), g.side(right[1])
        x, y = g.input("x", ("m", m), ("k", k)), g.input("y", ("k", k), ("n", n))
        return g.op("MatMul", x, y)

    return build


def gemms() -> Iterator[Graph]:
    for a in (0, 1):
        for b in (0, 1):
            for how in ("weight", "input"):
                yield Graph(GROUP, f"Gemm transA {a} transB {b} by a {how} 96x256x192", _gemm(96, 256, 192, a, b, how))
    yield Graph(GROUP, "Gemm 1x2048x1000", _gemm(1, 2048, 1000, 0, 1, "weight"))
    yield Graph(GROUP, "Gemm 8x1280x1000", _gemm(8, 1280, 1000, 0, 1, "weight"))
    yield Graph(GROUP, "Gemm 64x4096x10", _gemm(64, 4096, 10, 0, 1, "weight"))
    yield Graph(GROUP, "Gemm alpha and beta 64x128x128", _gemm(64, 128, 128, 0, 1, "weight", alpha=0.5, beta=2.0))
    yield Graph(GROUP, "Gemm without a bias 64x128x128", _gemm(64, 128, 128, 0, 0, "weight", beta=None))
    for act in ("Relu", "Tanh", "Sigmoid"):
        yield Graph(GROUP, f"Gemm + {act} 16x512x512", _gemm(16, 512, 512, 0, 1, "weight", act=act))


def _gemm(
    rows: int, depth: int, columns: int, a: int, b: int, how: str, *, act: str = "", beta: float | None = 1.0,
    alpha: float = 1.0,
) -> Build:  # fmt: skip
    def build(g: Sketch) -> str:
        m, k, n = g.side(rows), g.wide(depth), g.wide(columns)
        x = g.input("x", *((k, ("batch", m)) if a else (("batch", m), k)))
        shape = (n, k) if b else (k, n)
        y = g.random(*shape, scale=k**-0.5) if how == "weight" else g.input("y", *shape, scale=k**-0.5)
        more: dict[str, Any] = {} if beta is None else {"beta": beta}
        bias = [] if beta is None else [g.random(n, scale=0.1)]
        return activated(g, g.op("Gemm", x, y, *bias, transA=a, transB=b, alpha=alpha, **more), act)

    return build


def transposed() -> Iterator[Graph]:
    """Products of which an operand is turned first."""
    for shape, other, which in [
        ((96, 50, 32), (96, 50, 32), "right"), ((8, 64, 64), (8, 64, 64), "left"),
        ((1, 12, 128, 64), (1, 12, 128, 64), "right"),
        ((1, 256, 256), (1, 256, 256), "both"), ((16, 3, 500), (16, 3, 500), "right"),
        ((4, 500, 64), (4, 500, 64), "left"),
    ]:  # fmt: skip
        yield Graph(GROUP, f"{which} turned {times(shape)} and {times(other)}", _turned(shape, which))
    yield Graph(GROUP, "result turned 128x256x256", _result_turned)
    yield Graph(GROUP, "channels first by a weight 256>128 on 20x20", _channels_first)


def _turned(shape: Sequence[int], which: str) -> Build:
    def build(g: Sketch) -> str:
        *lead, rows, depth = shape
        m, k = g.side(rows), g.side(depth)
        names = [("batch", lead[0]), *lead[1:]]
        perm = [*range(len(lead)), len(lead) + 1, len(lead)]
        # By the dim that the turned operands share: rows of both, or their depth.
        x = g.input("x", *names, ("m", m), ("k", k))
        y = g.input("y", *names, *((("n", m), ("k", k)) if which == "right" else (("m", m), ("k", k))))
        if which == "both":
            return g.op(
                "MatMul", g.op("Transpose", x, perm=perm), g.op("Transpose", g.op("Transpose", y, perm=perm), perm=perm)
            )
        if which == "left":
            return g.op("MatMul", g.op("Transpose", x, perm=perm), y)
        return g.op("MatMul", x, g.op("Transpose", y, perm=perm))

    return build


def _result_turned(g: Sketch) -> str:
    k = g.wide(256)
    product = g.op("MatMul", g.tokens(g.side(128), k), g.random(k, k, scale=k**-0.5))
    return g.op("Transpose", product, perm=[0, 2, 1])


def _channels_first(g: Sketch) -> str:
    c, m, side = g.wide(256), g.wide(128), g.side(20)
    rows = g.op("Transpose", g.image(c, side, side), perm=[0, 2, 3, 1])
    return g.op("Transpose", g.linear(rows, c, m), perm=[0, 3, 1, 2])


def batched() -> Iterator[Graph]:
    for left, right in [
        ((8, 4, 1024), (8, 1024, 4)), ((96, 50, 32), (96, 32, 50)), ((12, 128, 64), (12, 64, 128)),
        ((12, 128, 128), (12, 128, 64)),
        ((64, 49, 32), (64, 32, 49)), ((1000, 4, 4), (1000, 4, 4)), ((500, 3, 3), (500, 3, 1)),
        ((32, 1, 64), (32, 64, 512)),
        ((32, 1, 512), (32, 512, 64)), ((16, 16, 16), (16, 16, 16)), ((2, 300, 300), (2, 300, 32)),
        ((4, 1, 2000), (4, 2000, 4)),
    ]:  # fmt: skip
        yield Graph(GROUP, f"batched {times(left)} by {times(right)}", _batched(left, right))
    for left, right in [
        ((8, 64, 64), (64, 64)), ((64, 64), (8, 64, 64)), ((8, 1, 32, 64), (1, 4, 64, 32)),
        ((1, 12, 100, 64), (4, 1, 64, 100)),
    ]:  # fmt: skip
        yield Graph(GROUP, f"broadcast {times(left)} by {times(right)}", _broadcast(left, right))
    yield Graph(GROUP, "batched by weights 8x64x128 by 8x128x64", _batch_of_weights)


def _batched(left: Sequence[int], right: Sequence[int]) -> Build:
    def build(g: Sketch) -> str:
        b, m, k, n = g.side(left[0]), g.side(left[1]), g.side(left[2]), g.side(right[2])
        return g.op("MatMul", g.input("x", ("b", b), ("m", m), ("k", k)), g.input("y", ("b", b), ("k", k), ("n", n)))

    return build


def _broadcast(left: Sequence[int], right: Sequence[int]) -> Build:
    def build(g: Sketch) -> str:
        lead = ("batch", left[0]) if len(left) > len(right) or left[0] > 1 else left[0]
        return g.op("MatMul", g.input("x", lead, *left[1:]), g.input("y", *right))

    return build


def _batch_of_weights(g: Sketch) -> str:
    k = g.wide(128)
    return g.op("Relu", g.op("MatMul", g.input("x", 8, ("rows", g.side(64)), k), g.random(8, k, 64, scale=k**-0.5)))


def epilogues() -> Iterator[Graph]:
    for rows in (1, 64):
        for act in ("", "Relu", "Gelu", "Gelu by tanh", "SiLU", "Tanh"):
            yield Graph(GROUP, f"{rows}x384x768 + bias {act}".strip(), _with_activation(rows, act))
        yield Graph(GROUP, f"{rows}x384x384 + bias + residual", _with_residual(rows, norm=False))
        yield Graph(GROUP, f"{rows}x384x384 + bias + residual + LayerNormalization", _with_residual(rows, norm=True))
        yield Graph(GROUP, f"{rows}x256x688 SwiGLU", _swiglu(rows))
    yield Graph(GROUP, "100x256x2 + Softmax", _classified)
    yield Graph(GROUP, "perceptron of four layers 1x64", _perceptron(1))
    yield Graph(GROUP, "perceptron of four layers 256x64", _perceptron(256))


def _with_activation(rows: int, act: str) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(384), g.wide(768)
        return activated(g, g.linear(g.tokens(g.side(rows), k), k, n), act)

    return build


def _with_residual(rows: int, *, norm: bool) -> Build:
    def build(g: Sketch) -> str:
        k = g.wide(384)
        x = g.tokens(g.side(rows), k)
        y = g.op("Add", g.linear(x, k, k), x)
        return g.layer_norm(y, k) if norm else y

    return build


def _swiglu(rows: int) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(256), g.wide(688)
        x = g.tokens(g.side(rows), k)
        gate, up = (g.linear(x, k, n, bias=False) for _ in range(2))
        return g.linear(g.op("Mul", g.silu(gate), up), n, k, bias=False)

    return build


def _classified(g: Sketch) -> str:
    k = g.wide(256)
    return g.op("Softmax", g.linear(g.tokens(g.side(100), k), k, 2), axis=-1)


def _perceptron(rows: int) -> Build:
    def build(g: Sketch) -> str:
        widths = [g.wide(n) for n in (64, 256, 256, 64)]
        x = g.input("x", ("batch", g.side(rows)), widths[0])
        for before, after in zip(widths, [*widths[1:], 8], strict=True):
            x = g.op("Relu", g.op("Gemm", x, g.random(after, before, scale=before**-0.5), g.random(after), transB=1))
        return x

    return build


def einsums() -> Iterator[Graph]:
    for equation, left, right in [
        ("bhqd,bhkd->bhqk", (1, 8, 64, 32), (1, 8, 64, 32)), ("bhqk,bhkd->bhqd", (1, 8, 64, 64), (1, 8, 64, 32)),
        ("ij,jk->ik", (64, 128), (128, 64)), ("bij,bj->bi", (16, 64, 128), (16, 128)),
        ("bqhd,bkhd->bhqk", (1, 64, 8, 32), (1, 64, 8, 32)),
        ("bchw,bkhw->bck", (1, 64, 20, 20), (1, 16, 20, 20)), ("bnchw,bnkc->bnkhw", (1, 4, 32, 16, 16), (1, 4, 8, 32)),
        ("i,j->ij", (1000,), (32,)), ("nctkv,kvw->nctw", (1, 32, 30, 3, 25), (3, 25, 25)),
    ]:  # fmt: skip
        yield Graph(GROUP, f"Einsum {equation} {times(left)}", _einsum(equation, left, right))


def _einsum(equation: str, left: Sequence[int], right: Sequence[int]) -> Build:
    def build(g: Sketch) -> str:
        letters = equation.split("->")[0].split(",")
        operands = [
            g.input(name, *((f"d{c}", size) for c, size in zip(dims, shape, strict=True)))
            for name, dims, shape in zip("xy", letters, (left, right), strict=True)
        ]
        return g.op("Einsum", *operands, equation=equation)

    return build


def shared() -> Iterator[Graph]:
    """Products that share an operand."""
    for rows in (1, 128):
        yield Graph(GROUP, f"queries, keys and values {rows}x384", _three(rows))
    yield Graph(GROUP, "LayerNormalization + product 128x384x1152", _behind_norm)
    yield Graph(GROUP, "low rank 128x768x8x768 + product", _low_rank)


def _three(rows: int) -> Build:
    def build(g: Sketch) -> list[str]:
        k = g.wide(384)
        x = g.tokens(g.side(rows), k)
        return [g.linear(x, k, k) for _ in range(3)]

    return build


def _behind_norm(g: Sketch) -> str:
    k = g.wide(384)
    return g.linear(g.layer_norm(g.tokens(g.side(128), k), k), k, 3 * k)


def _low_rank(g: Sketch) -> str:
    k = g.wide(768)
    x = g.tokens(g.side(128), k)
    down = g.op("MatMul", x, g.random(k, 8, scale=k**-0.5))
    return g.op("Add", g.linear(x, k, k), g.op("MatMul", down, g.random(8, k, scale=0.3)))
