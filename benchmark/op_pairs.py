"""Two or three fused ops at a time beside ONNX Runtime: every kind of access, where it is easy to be slow.

    python -m benchmark.op_pairs [--threads 1 2] [--rounds 60] [--only NAME] [--json]

A wide look rather than a deep one: axes in the middle, permutations, strides, clamps, indices, joined and split dims,
dear functions. Whatever is below 1 by more than the control (`A/A`) is a bug of the cost model or of a schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort

from benchmark.beside_ort import Case, Graph, run, values

Build = Callable[[Graph], str]

IMAGE = (1, 64, 56, 56)
ROWS = (512, 2048)


def ints(g: Graph, *numbers: int) -> str:
    return g.constant(np.array(numbers, np.int64))


def case(name: str, build: Build, *shapes: tuple[int, ...]) -> Case:
    """A model of inputs x, y, ... of these shapes, the first dim dynamic."""
    g = Graph()
    inputs = dict(zip("xyz", shapes, strict=False))
    model = g.model({k: ["n", *s[1:]] for k, s in inputs.items()}, build(g), None)
    feeds = values(**inputs)
    (result,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    size = "x".join(map(str, shapes[0]))
    return Case(name, size, model, feeds, sum(f.nbytes for f in feeds.values()) + result.nbytes)


def scaled(g: Graph) -> str:
    return g.op("Mul", "x", g.weight(1))


def normalizations() -> list[Case]:
    def layer_norm(g: Graph) -> str:
        return g.op("LayerNormalization", scaled(g), g.weight(64, 56), g.weight(64, 56), axis=2)

    def batch_norm(g: Graph) -> str:
        stats = [g.weight(64), g.weight(64), g.weight(64), g.constant(np.full(64, 0.7, np.float32))]
        return g.op("Relu", g.op("BatchNormalization", "x", *stats))

    def group_norm(g: Graph) -> str:
        return g.op("Relu", g.op("GroupNormalization", "x", g.weight(8), g.weight(8), num_groups=8))

    def instance_norm(g: Graph) -> str:
        return g.op("Relu", g.op("InstanceNormalization", "x", g.weight(64), g.weight(64)))

    found = [
        case("batch norm + relu", batch_norm, IMAGE),
        case("instance norm + relu", instance_norm, IMAGE),
        case("group norm + relu", group_norm, IMAGE),
        case("layer norm, two axes", layer_norm, (4, 32, 64, 56)),
    ]
    for axis, shape in ((1, IMAGE), (2, IMAGE), (-1, (128, 1000))):
        found.append(case(f"softmax {axis}", lambda g, a=axis: g.op("Softmax", scaled(g), axis=a), shape))
    for axis, shape in ((1, (8, 1000, 16)), (-1, (128, 1000))):
        found.append(case(f"log softmax {axis}", lambda g, a=axis: g.op("LogSoftmax", scaled(g), axis=a), shape))
    for axis, shape in ((1, (8, 64, 784)), (-1, (512, 768))):

        def l2(g: Graph, a: int = axis) -> str:
            return g.op("Div", "x", g.op("ReduceL2", "x", ints(g, a), keepdims=1))

        found.append(case(f"l2 norm {axis}", l2, shape))
    return found


def reductions() -> list[Case]:
    def reduced(kind: str, *axes: int, then: str | None = None) -> Build:
        def build(g: Graph) -> str:
            result = g.op(kind, "x", *([ints(g, *axes)] if axes else []), keepdims=1)
            return g.op(then, "x", result) if then in ("Add", "Sub", "Mul") else g.op(then or "Abs", result)

        return build

    def squares(g: Graph) -> str:
        return g.op("ReduceSum", g.op("Mul", "x", "x"), keepdims=0)

    def largest(axis: int) -> Build:
        return lambda g: g.op("Cast", g.op("ArgMax", scaled(g), axis=axis), to=1)

    return [
        case("mean 2,3 * x", reduced("ReduceMean", 2, 3, then="Mul"), IMAGE),
        case("x - mean 1", reduced("ReduceMean", 1, then="Sub"), IMAGE),
        case("sqrt max 1", reduced("ReduceMax", 1, then="Sqrt"), IMAGE),
        case("x + sum 2", reduced("ReduceSum", 2, then="Add"), IMAGE),
        case("tanh sum 0,2,3", reduced("ReduceSum", 0, 2, 3, then="Tanh"), (8, 64, 28, 28)),
        case("x - mean", reduced("ReduceMean", then="Sub"), (512, 1024)),
        case("sum of squares", squares, (1024, 1024)),
        case("arg max -1", largest(-1), (512, 1000)),
        case("arg max 1", largest(1), (8, 64, 784)),
    ]


def movements() -> list[Case]:
    def permuted(*perm: int, then: str = "Relu") -> Build:
        return lambda g: g.op(then, g.op("Transpose", "x", perm=perm))

    def rearranged(split: tuple[int, ...], perm: tuple[int, ...], to: tuple[int, ...], first: str = "Relu") -> Build:
        def build(g: Graph) -> str:
            parts = g.op("Transpose", g.op("Reshape", g.op(first, "x"), ints(g, *split)), perm=perm)
            return g.op("Reshape", parts, ints(g, *to)) if to else parts

        return build

    def sliced(axis: int, start: int, step: int) -> Build:
        end = (1 << 30) * (1 if step > 0 else -1)
        return lambda g: g.op("Relu", g.op("Slice", "x", ints(g, start), ints(g, end), ints(g, axis), ints(g, step)))

    def padded(mode: str) -> Build:
        return lambda g: g.op("Relu", g.op("Pad", "x", ints(g, 0, 0, 1, 1, 0, 0, 1, 1), mode=mode))

    def joined(axis: int) -> Build:
        return lambda g: g.op("Relu", g.op("Concat", "x", "y", axis=axis))

    def gated(g: Graph) -> str:
        left = g.op("Split", "x", outputs=2, axis=-1, num_outputs=2)
        return g.op("Mul", left, g.op("Sigmoid", f"{left}_1"))

    def rotary(g: Graph) -> str:
        low = g.op("Slice", "x", ints(g, 0), ints(g, 32), ints(g, -1))
        high = g.op("Slice", "x", ints(g, 32), ints(g, 64), ints(g, -1))
        turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
        return g.op("Add", g.op("Mul", "x", g.weight(64, 64)), g.op("Mul", turned, g.weight(64, 64)))

    found: list[Case] = []
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (1, 0, 2, 3), (0, 2, 1, 3), (2, 3, 0, 1)):
        found += [case(f"transpose {''.join(map(str, perm))}", permuted(*perm), s) for s in (IMAGE, (2, 128, 12, 64))]
    heads = (0, 2, 1, 3), (0, 2, 3, 1)
    found += [
        case("image to planes", permuted(0, 3, 1, 2, then="Abs"), (1, 224, 224, 3)),
        case("planes to image", permuted(0, 2, 3, 1, then="Abs"), (1, 3, 224, 224)),
        *(case(f"heads {''.join(map(str, p))}", rearranged((1, -1, 12, 64), p, ()), (128, 768)) for p in heads),
        case("windows", rearranged((1, 8, 7, 8, 7, 96), (0, 1, 3, 2, 4, 5), ()), (1, 56, 56, 96)),
        case("channel shuffle", rearranged((1, 4, 16, 56, 56), (0, 2, 1, 3, 4), (1, 64, 56, 56)), IMAGE),
        case("pixel shuffle", rearranged((1, 16, 2, 2, 56, 56), (0, 1, 4, 2, 5, 3), (1, 16, 112, 112)), IMAGE),
        case("space to depth", rearranged((1, 64, 28, 2, 28, 2), (0, 1, 3, 5, 2, 4), (1, 256, 28, 28)), IMAGE),
        case("slice step 2", sliced(-1, 0, 2), ROWS),
        case("slice step -1", sliced(-1, -1, -1), ROWS),
        case("slice rows", sliced(0, 1, 3), ROWS),
        *(case(f"pad {mode}", padded(mode), IMAGE) for mode in ("constant", "reflect", "edge", "wrap")),
        case("concat 1", joined(1), IMAGE, (1, 32, 56, 56)),
        case("concat -1", joined(-1), (128, 768), (128, 768)),
        case("concat -1, odd", joined(-1), (1000, 33), (1000, 31)),
        case("split, gate", gated, ROWS),
        case("rotary", rotary, (1, 12, 64, 64)),
        case("tile", lambda g: g.op("Mul", g.op("Tile", "x", ints(g, 1, 4)), g.weight(1)), (512, 512)),
        case("expand", lambda g: g.op("Add", g.op("Expand", "x", ints(g, *IMAGE)), g.weight(56)), (1, 64, 1, 1)),
        case("lower triangle", lambda g: g.op("Relu", g.op("Trilu", "x", upper=0)), (12, 256, 256)),
    ]
    return found


def indexed() -> list[Case]:
    draw = np.random.default_rng(0).integers

    def gathered(axis: int, then: str) -> Build:
        def build(g: Graph) -> str:
            picked = g.op("Gather", "x", g.constant(draw(0, 768, 256)), axis=axis)
            return g.op(then, picked, g.weight(picked_width(axis)))

        return build

    def picked_width(axis: int) -> int:
        return 768 if axis == 0 else 256

    def elements(g: Graph) -> str:
        return g.op("Relu", g.op("GatherElements", "x", g.constant(draw(0, 768, (1000, 64))), axis=1))

    def points(g: Graph) -> str:
        return g.op("Relu", g.op("GatherND", "x", g.constant(draw(0, 500, (300, 2)))))

    def sums(g: Graph) -> str:
        return g.op("Relu", g.op("CumSum", "x", g.constant(np.int64(1))))

    return [
        case("gather rows", gathered(0, "Add"), (1000, 768)),
        case("gather columns", gathered(1, "Add"), (1000, 768)),
        case("gather elements", elements, (1000, 768)),
        case("gather points", points, (512, 512, 16)),
        case("running sum", sums, (64, 200)),
        case("short running sum", sums, (64, 16)),
    ]


def elementwise() -> list[Case]:
    def one(kind: str, **attrs: Any) -> Build:
        return lambda g: g.op("Add", "x", g.op(kind, "x", **attrs))

    def through(element: int) -> Build:
        return lambda g: g.op("Cast", g.op("Cast", g.op("Abs", "x"), to=element), to=1)

    def where(g: Graph) -> str:
        positive = g.op("Greater", "x", g.constant(np.float32(0)))
        return g.op("Where", positive, "x", g.op("Mul", "x", g.constant(np.float32(0.1))))

    def clipped(g: Graph) -> str:
        return g.op("Round", g.op("Clip", "x", g.constant(np.float32(-1)), g.constant(np.float32(1))))

    def outer(g: Graph) -> str:
        return g.op("Exp", g.op("Sub", g.op("Unsqueeze", "x", ints(g, 1)), g.op("Unsqueeze", "x", ints(g, 0))))

    def double(g: Graph) -> str:
        return g.op("Cast", g.op("Exp", g.op("Cast", "x", to=11)), to=1)

    def powers(g: Graph) -> str:
        return g.op("Erf", g.op("Pow", "x", g.constant(np.float32(2))))

    plain = ("Sigmoid", "HardSwish", "Mish", "Softplus", "Tanh", "Sin", "Exp", "Erf", "Gelu")
    return [
        *(case(f"x + {kind}", one(kind), IMAGE) for kind in plain),
        case("erf of a power", powers, IMAGE),
        case("where", where, IMAGE),
        case("clip, round", clipped, IMAGE),
        case("cast i32", through(6), IMAGE),
        case("cast u8", through(2), IMAGE),
        case("double exp", double, IMAGE),
        case("outer difference", outer, (512,)),
        case("bias of channels", lambda g: g.op("Relu", g.op("Add", "x", g.weight(64, 1, 1))), IMAGE),
        case("one row", lambda g: g.op("Relu", g.op("Add", "x", g.weight(64))), (1, 64)),
    ]


def cases() -> list[Case]:
    return [*normalizations(), *reductions(), *movements(), *indexed(), *elementwise()]


if __name__ == "__main__":
    run(cases(), __doc__)
