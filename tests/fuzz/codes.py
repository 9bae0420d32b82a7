"""Random graphs of quantised ops, DequantizeLinear -> op -> QuantizeLinear, whose codes are to be *equal*.

ONNX says in which order f32 is rounded between two codes: the scale first, the op, the step last. ONNX Runtime without
its own rewriting does that, and so must a kernel. Scales are small multiples of each other, as those of exporters often
are, and codes are all that there are, so that many numbers lie between two codes to within a rounding.

Left out are ops whose own rounding differs from library to library (exponentials, sums over many elements).
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from igniter.dialects.sym.expr import Expr
from tests.fuzz.generator import fusion_of
from tests.fuzz.graph import Array, Case, GraphBuilder, Value, make_feed, make_model

RATIOS = (0.25, 0.5, 1, 1, 1, 2, 4, 1 / 3, 2 / 3, 4 / 3, 3, 2 / 5, 6, 2 / 7, 8 / 3)
Emit = Callable[[GraphBuilder, list[Value]], Value]


def make_codes_case(seed: int) -> Case:
    """The model of a seed: always the same."""
    rng = random.Random(seed)
    b = GraphBuilder(rng, rng.choice((13, 17, 19)))
    base = np.exp(rng.uniform(-6, 0))
    batch = Expr.of("n") if rng.random() < 0.5 else Expr.of(rng.choice((1, 2)))
    dims = (batch, Expr.of(rng.choice((1, 3, 4, 8))), Expr.of(rng.choice((4, 7, 16))), Expr.of(rng.choice((4, 8, 17))))
    for _ in range(rng.randint(1, 2)):
        b.input(rng.choice(("u8", "i8")), dims, True)
    made: list[Value] = []
    for _ in range(rng.choice((1, 2, 4))):
        same = [v for v in (*b.inputs, *made) if v.dims == dims]
        found = _block(b, rng.choice(same), same, base)
        made.append(found)
    model = make_model(b, made)
    sizes = [{"n": 2, "m": 1}]
    feeds = tuple(_all_codes(b, make_feed(b, model, s)) for s in sizes)
    return Case(seed, model, feeds, tuple(sizes), fusion_of(seed))


def _all_codes(b: GraphBuilder, feed: dict[str, Array]) -> dict[str, Array]:
    """Inputs of every code that there is, rather than of the small integers of other graphs."""
    kinds = {k: np.iinfo(v.dtype) for k, v in feed.items()}
    return {
        k: b.data.integers(kinds[k].min, kinds[k].max, v.shape, v.dtype, endpoint=True) for k, v in sorted(feed.items())
    }


def _block(b: GraphBuilder, x: Value, others: list[Value], base: float) -> Value:
    """Codes dequantised, one op, and its result quantised."""
    name, count, emit = b.rng.choice(BLOCKS)
    taken = [x, *(b.rng.choice(others) for _ in range(count - 1))]
    parameters = _parameters(b, taken[0].type, base)
    # Of an op that only moves numbers the result often has the scale of its operand.
    shared = b.rng.random() < 0.5
    wide = [_dequantize(b, v, parameters if shared else _parameters(b, v.type, base)) for v in taken]
    result = emit(b, wide)
    kind = b.rng.choice(("u8", "i8")) if name != "Same" else x.type
    last = parameters if shared and kind == taken[0].type else _parameters(b, kind, base)
    (made,) = b.node("QuantizeLinear", [result.name, *last], [(kind, result.dims, True, 256.0)])
    return made


def _parameters(b: GraphBuilder, kind: str, base: float) -> tuple[str, str]:
    """A scale, that is a multiple of the base one or not, and a zero point."""
    scale = base * b.rng.choice(RATIOS) if b.rng.random() < 0.8 else np.exp(b.rng.uniform(-6, 0))
    low, high = (0, 255) if kind == "u8" else (-128, 127)
    zero = b.rng.choice((low, 0, (low + high + 1) // 2, b.rng.randint(low, high)))
    return b.scalar(scale, "f32"), b.scalar(zero, kind)


def _dequantize(b: GraphBuilder, x: Value, parameters: tuple[str, str]) -> Value:
    (made,) = b.node("DequantizeLinear", [x.name, *parameters], [("f32", x.dims, False, 256.0)])
    return made


def _plain(op: str, **attrs: object) -> Emit:
    def emit(b: GraphBuilder, x: list[Value]) -> Value:
        (made,) = b.node(op, [v.name for v in x], [("f32", x[0].dims, False, 256.0)], **attrs)
        return made

    return emit


def _concat(b: GraphBuilder, x: list[Value]) -> Value:
    dims = (x[0].dims[0], x[0].dims[1] * len(x), *x[0].dims[2:])
    (made,) = b.node("Concat", [v.name for v in x], [("f32", dims, False, 256.0)], axis=1)
    return made


def _pool(op: str) -> Emit:
    def emit(b: GraphBuilder, x: list[Value]) -> Value:
        size, stride = b.rng.choice((2, 3)), b.rng.choice((1, 2))
        pad = b.rng.choice((0, size // 2))
        padded = b.rng.randint(0, 1) if op == "AveragePool" else 0
        attrs = {"count_include_pad": 1} if padded else {}
        dims = (*x[0].dims[:2], *((d + 2 * pad - size) // stride + 1 for d in x[0].dims[2:]))
        (made,) = b.node(
            op,
            [x[0].name],
            [("f32", dims, False, 256.0)],
            kernel_shape=[size] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            **attrs,
        )
        return made

    return emit


def _transpose(b: GraphBuilder, x: list[Value]) -> Value:
    order = [0, *b.rng.sample((1, 2, 3), 3)]
    (made,) = b.node("Transpose", [x[0].name], [("f32", [x[0].dims[k] for k in order], False, 256.0)], perm=order)
    return made


def _reshape(b: GraphBuilder, x: list[Value]) -> Value:
    batch, *rest = x[0].dims
    dims = (batch, rest[0] * rest[1] * rest[2])
    (made,) = b.node("Reshape", [x[0].name, b.ints([0, -1])], [("f32", dims, False, 256.0)])
    return made


def _resize(b: GraphBuilder, x: list[Value]) -> Value:
    factor = b.weight(np.array([1, 1, 2, 2], np.float32), "f32").name
    dims = (*x[0].dims[:2], *(d * 2 for d in x[0].dims[2:]))
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (made,) = b.node("Resize", [x[0].name, "", factor], [("f32", dims, False, 256.0)], **attrs)
    return made


def _clip(b: GraphBuilder, x: list[Value]) -> Value:
    low = b.rng.choice((0.0, 0.0, -b.rng.random()))
    limits = [b.scalar(low, "f32"), b.scalar(b.rng.choice((6.0, 1.0, 10 * b.rng.random())), "f32")]
    (made,) = b.node("Clip", [x[0].name, *limits], [("f32", x[0].dims, False, 256.0)])
    return made


def _slopes(b: GraphBuilder, x: list[Value]) -> Value:
    count = x[0].dims[1].constant or 1
    slope = b.weight(b.data.random((count, 1, 1)).astype(np.float32), "f32").name
    (made,) = b.node("PRelu", [x[0].name, slope], [("f32", x[0].dims, False, 256.0)])
    return made


BLOCKS: list[tuple[str, int, Emit]] = [
    ("Add", 2, _plain("Add")),
    ("Add", 2, _plain("Add")),
    ("Sub", 2, _plain("Sub")),
    ("Mul", 2, _plain("Mul")),
    ("Max", 2, _plain("Max")),
    ("Min", 2, _plain("Min")),
    ("Concat", 2, _concat),
    ("Concat", 3, _concat),
    ("AveragePool", 1, _pool("AveragePool")),
    ("AveragePool", 1, _pool("AveragePool")),
    ("MaxPool", 1, _pool("MaxPool")),
    ("LeakyRelu", 1, _plain("LeakyRelu", alpha=0.1)),
    ("Relu", 1, _plain("Relu")),
    ("Neg", 1, _plain("Neg")),
    ("Abs", 1, _plain("Abs")),
    ("HardSigmoid", 1, _plain("HardSigmoid")),
    ("Same", 1, _plain("Identity")),
    ("Clip", 1, _clip),
    ("PRelu", 1, _slopes),
    ("Transpose", 1, _transpose),
    ("Reshape", 1, _reshape),
    ("Resize", 1, _resize),
]
"""Ops by name, with the number of their operands."""
