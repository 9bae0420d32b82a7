"""Ops that move data: Transpose, Concat, Split, Slice, Pad, Gather, Scatter, Tile, DepthToSpace, Resize."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from benchmark.sweep.activations import activated
from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "moves"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def graphs() -> Iterator[Graph]:
    """All moves."""
    yield from transposes()
    yield from joins()
    yield from cuts()
    yield from pads()
    yield from lookups()
    yield from scatters()
    yield from repeats()
    yield from blocks()
    yield from resizes()


def _input(g: Sketch, shape: Sequence[int], name: str = "x", **more: Any) -> str:
    dims = [g.side(s) for s in shape]
    return g.input(name, ("batch", dims[0]), *dims[1:], **more)


# -- Transpose ---------------------------------------------------------------------------------------------------------


def transposes() -> Iterator[Graph]:
    for shape, perm in [
        ((1000, 500), (1, 0)), ((8, 200, 300), (0, 2, 1)), ((8, 200, 300), (1, 0, 2)), ((8, 200, 300), (2, 1, 0)),
        ((8, 200, 300), (1, 2, 0)), ((8, 200, 300), (2, 0, 1)), ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 56, 56, 64), (0, 3, 1, 2)),
        ((1, 3, 224, 224), (0, 2, 3, 1)), ((1, 224, 224, 3), (0, 3, 1, 2)), ((1, 128, 12, 64), (0, 2, 1, 3)),
        ((1, 12, 128, 64), (0, 1, 3, 2)), ((1, 128, 12, 64), (0, 2, 3, 1)), ((4, 64, 20, 20), (3, 2, 1, 0)),
        ((1, 8, 7, 8, 7, 96), (0, 1, 3, 2, 4, 5)), ((1, 2, 58, 28, 28), (0, 2, 1, 3, 4)),
        ((1, 3, 85, 20, 20), (0, 1, 3, 4, 2)),
        ((1, 64, 64, 32), (0, 2, 1, 3)), ((100000, 2), (1, 0)), ((2, 100000), (1, 0)),
        ((1, 197, 3, 6, 64), (2, 0, 3, 1, 4)),
    ]:  # fmt: skip
        named = f"Transpose {times(perm)} of {times(shape)}"
        yield Graph(GROUP, named, _turned(shape, perm, ""))
    for shape, perm in [((1, 64, 56, 56), (0, 2, 3, 1)), ((1, 128, 12, 64), (0, 2, 1, 3)), ((500, 300), (1, 0))]:
        yield Graph(GROUP, f"Transpose {times(perm)} of {times(shape)} + Relu", _turned(shape, perm, "Relu"))
    yield Graph(GROUP, "Transpose 1x0 of 500x1000 of bytes", _turned((500, 1000), (1, 0), "", TensorProto.UINT8))
    yield Graph(GROUP, "channel shuffle of 2 groups 116 on 28x28", _shuffled)
    yield Graph(GROUP, "windows of 7x7 of 56x56x96", _windows)
    yield Graph(GROUP, "image of bytes to planes 224x224", _planes)


def _turned(shape: Sequence[int], perm: Sequence[int], act: str, kind: int = FLOAT) -> Build:
    return lambda g: activated(g, g.op("Transpose", _input(g, shape, kind=kind), perm=list(perm)), act)


def _shuffled(g: Sketch) -> str:
    c = g.wide(116, 2)
    x = g.image(c, 28, 28)
    apart = g.op("Transpose", g.reshape(x, 0, 2, c // 2, 28, -1), perm=[0, 2, 1, 3, 4])
    return g.op("Relu", g.reshape(apart, 0, c, 28, -1))


def _windows(g: Sketch) -> str:
    c = g.wide(96)
    x = g.input("x", ("batch", 1), 56, 56, c)
    return g.reshape(g.op("Transpose", g.reshape(x, -1, 8, 7, 8, 7, c), perm=[0, 1, 3, 2, 4, 5]), -1, 49, c)


def _planes(g: Sketch) -> str:
    side = g.side(224)
    x = g.input("x", ("batch", 1), side, side, 3, kind=TensorProto.UINT8, below=256)
    planes = g.op("Transpose", g.cast(x, FLOAT), perm=[0, 3, 1, 2])
    mean, scale = g.constant(g.draw(3, 1, 1, around=120.0)), g.constant(g.draw(3, 1, 1, scale=0.001, around=0.017))
    return g.op("Mul", g.op("Sub", planes, mean), scale)


# -- Concat, Split, Slice ----------------------------------------------------------------------------------------------


def joins() -> Iterator[Graph]:
    for count, shape, axis in [
        (2, (1, 64, 28, 28), 1), (3, (1, 85, 400), 2), (4, (1, 32, 28, 28), 1), (10, (8, 100), 1), (100, (1, 16), 1),
        (100, (64, 8), 0), (100, (64, 8), 1), (32, (1, 4, 28, 28), 1), (2, (1, 128, 768), 1), (2, (500, 3), 1),
        (3, (1, 20, 20, 2), 3),
    ]:  # fmt: skip
        yield Graph(GROUP, f"Concat of {count} over {axis} of {times(shape)}", _joined(count, shape, axis, ""))
    yield Graph(GROUP, "Concat of 2 over 1 of 1x64x28x28 + Relu", _joined(2, (1, 64, 28, 28), 1, "Relu"))
    yield Graph(GROUP, "Concat of 8 over 1 of 1x16x28x28 + Sigmoid", _joined(8, (1, 16, 28, 28), 1, "Sigmoid"))
    yield Graph(GROUP, "class token before 1x196x384", _class_token)


def _joined(count: int, shape: Sequence[int], axis: int, act: str) -> Build:
    def build(g: Sketch) -> str:
        dims = [g.side(s) for s in shape]
        lead = dims[0] if axis == 0 else ("batch", dims[0])
        parts = [g.input(f"x{k}", lead, *dims[1:]) for k in range(count)]
        return activated(g, g.op("Concat", *parts, axis=axis), act)

    return build


def _class_token(g: Sketch) -> str:
    width = g.wide(384)
    x = g.tokens(g.side(196), width)
    token = g.op("Expand", g.random(1, 1, width), g.op("Concat", g.dim(x, 0), g.integers(1, 1), axis=0))
    return g.op("Concat", token, x, axis=1)


def cuts() -> Iterator[Graph]:
    for shape, axis, parts in [
        ((1, 128, 28, 28), 1, 2),
        ((1, 128, 1152), 2, 3),
        ((64, 1000), 1, 10),
        ((8, 100, 4), 2, 4),
    ]:
        yield Graph(GROUP, f"Split in {parts} over {axis} of {times(shape)}", _split(shape, axis, parts, ""))
    yield Graph(GROUP, "Split in 2 + gate 1x128x1024", _gated)
    yield Graph(GROUP, "Split in 2 over 1 of 1x128x28x28 + Relu", _split((1, 128, 28, 28), 1, 2, "Relu"))
    for shape, axes, starts, ends, steps in [
        ((1, 64, 56, 56), (2, 3), (1, 1), (-1, -1), (1, 1)), ((1, 64, 56, 56), (2, 3), (0, 0), (2**31, 2**31), (2, 2)),
        ((1, 64, 56, 56), (3,), (-1,), (-(2**31),), (-1,)), ((1, 128, 768), (1,), (0,), (1,), (1,)),
        ((1000, 500), (1,), (0,), (250,), (1,)),
        ((1000, 500), (1,), (0,), (2**31,), (2,)), ((1000, 500), (0,), (100,), (900,), (1,)),
        ((1, 3, 224, 224), (1,), (2,), (-(2**31),), (-1,)),
    ]:  # fmt: skip
        named = f"Slice {times(axes)} from {times(starts)} by {times(steps)} of {times(shape)}"
        yield Graph(GROUP, named, _sliced(shape, axes, starts, ends, steps, ""))
    yield Graph(
        GROUP,
        "Slice 2x3 by 2x2 of 1x64x56x56 + Relu",
        _sliced((1, 64, 56, 56), (2, 3), (0, 0), (2**31,) * 2, (2, 2), "Relu"),
    )
    yield Graph(GROUP, "focus of 1x3x160x160", _focus)
    yield Graph(GROUP, "patches merged 56x56x96", _merged)
    yield Graph(GROUP, "rolled windows 56x56x96", _rolled)


def _split(shape: Sequence[int], axis: int, parts: int, act: str) -> Build:
    def build(g: Sketch) -> list[str]:
        dims = [g.side(s, parts if d == axis else 1) for d, s in enumerate(shape)]
        x = g.input("x", ("batch", dims[0]), *dims[1:])
        pieces = g.ops("Split", x, count=parts, axis=axis, num_outputs=parts)
        return [activated(g, piece, act) for piece in pieces]

    return build


def _gated(g: Sketch) -> str:
    first, second = g.ops("Split", g.tokens(g.side(128), g.wide(1024, 2)), count=2, axis=-1, num_outputs=2)
    return g.op("Mul", first, g.op("Sigmoid", second))


def _sliced(
    shape: Sequence[int],
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int],
    act: str,
) -> Build:
    def build(g: Sketch) -> str:
        x = g.input("x", ("batch", shape[0]), *(s if s <= 3 else max(g.side(s), 2) for s in shape[1:]))
        cut = g.op("Slice", x, g.integers(*starts), g.integers(*ends), g.integers(*axes), g.integers(*steps))
        return activated(g, cut, act)

    return build


def _quarters(g: Sketch, x: str, axes: tuple[int, int]) -> list[str]:
    found: list[str] = []
    for column in (0, 1):
        for row in (0, 1):
            part = x
            for axis, start in zip(axes, (row, column), strict=True):
                part = g.op("Slice", part, g.integers(start), g.integers(2**31), g.integers(axis), g.integers(2))
            found.append(part)
    return found


def _focus(g: Sketch) -> str:
    """YOLOv5's: every second row and column, four times."""
    side = g.side(160, 2)
    return g.op("Concat", *_quarters(g, g.input("x", ("batch", 1), 3, side, side), (2, 3)), axis=1)


def _merged(g: Sketch) -> str:
    c = g.wide(96)
    joined = g.op("Concat", *_quarters(g, g.input("x", ("batch", 1), 56, 56, c), (1, 2)), axis=-1)
    return g.layer_norm(g.reshape(joined, 0, -1, 4 * c), 4 * c)


def _rolled(g: Sketch) -> str:
    x = g.input("x", ("batch", 1), 56, 56, g.wide(96))
    for axis in (1, 2):
        tail = g.op("Slice", x, g.integers(3), g.integers(2**31), g.integers(axis))
        x = g.op("Concat", tail, g.op("Slice", x, g.integers(0), g.integers(3), g.integers(axis)), axis=axis)
    return x


# -- Pad ---------------------------------------------------------------------------------------------------------------


def pads() -> Iterator[Graph]:
    for mode in ("constant", "reflect", "edge", "wrap"):
        for shape, margins in [
            ((1, 64, 56, 56), (0, 0, 1, 1, 0, 0, 1, 1)), ((1, 3, 224, 224), (0, 0, 3, 3, 0, 0, 3, 3)),
            ((1, 64, 1000), (0, 0, 8, 0, 0, 8)),
        ]:  # fmt: skip
            yield Graph(GROUP, f"Pad {mode} {times(margins)} of {times(shape)}", _padded(mode, shape, margins, ""))
    yield Graph(
        GROUP,
        "Pad constant of 1x64x56x56 + Relu",
        _padded("constant", (1, 64, 56, 56), (0, 0, 0, 0, 0, 0, 1, 1), "Relu"),
    )
    yield Graph(GROUP, "Pad reflect of a signal 1x16000", _padded("reflect", (1, 16000), (0, 200, 0, 200), ""))
    yield Graph(
        GROUP,
        "Pad constant negative of 1x64x56x56",
        _padded("constant", (1, 64, 56, 56), (0, 0, -1, -1, 0, 0, -1, -1), ""),
    )


def _padded(mode: str, shape: Sequence[int], margins: Sequence[int], act: str) -> Build:
    def build(g: Sketch) -> str:
        g.use_opset(19)
        return activated(g, g.op("Pad", _input(g, shape), g.integers(*margins), mode=mode), act)

    return build


# -- Gather, Scatter ---------------------------------------------------------------------------------------------------


def lookups() -> Iterator[Graph]:
    for rows, width, length in [(30522, 128, 128), (1000, 512, 32), (5000, 8, 500), (77, 768, 77), (256, 1, 4096)]:
        yield Graph(GROUP, f"embedding {rows}x{width} of {length}", _embedding(rows, width, length))
    yield Graph(GROUP, "three embeddings + norm 128x256", _embeddings)
    for shape, count, axis in [
        ((1, 64, 56, 56), 28, 3),
        ((1, 64, 56, 56), 32, 1),
        ((1, 128, 384), 50, 1),
        ((200, 200), 100, 0),
    ]:
        yield Graph(GROUP, f"Gather {count} over {axis} of {times(shape)}", _gathered(shape, count, axis))
    yield Graph(GROUP, "Gather one of 1x197x384", _first_token)
    yield Graph(GROUP, "GatherND 100 of 1x64x400", _gathered_nd)
    for shape, count, axis in [((8, 1000), 100, 1), ((1, 400, 64), 100, 1)]:
        yield Graph(
            GROUP, f"GatherElements {count} over {axis} of {times(shape)}", _gathered_elements(shape, count, axis)
        )


def _embedding(rows: int, width: int, length: int) -> Build:
    def build(g: Sketch) -> str:
        ids = g.input("ids", ("batch", 1), ("sequence", g.side(length)), kind=INT64, below=rows)
        return g.op("Gather", g.random(rows, g.wide(width)), ids)

    return build


def _embeddings(g: Sketch) -> str:
    width, n = g.wide(256), g.side(128)
    ids = g.input("ids", ("batch", 1), ("sequence", n), kind=INT64, below=2000)
    types = g.input("types", ("batch", 1), ("sequence", n), kind=INT64, below=2)
    places = g.op("Slice", g.constant(np.arange(512)[None]), g.integers(0), g.dim(ids, 1), g.integers(1))
    words = g.op("Add", g.op("Gather", g.random(2000, width), ids), g.op("Gather", g.random(2, width), types))
    return g.layer_norm(g.op("Add", words, g.op("Gather", g.random(512, width), places)), width)


def _gathered(shape: Sequence[int], count: int, axis: int) -> Build:
    def build(g: Sketch) -> str:
        indices = g.integers(*(int(k) for k in g.rng.integers(0, shape[axis], count)))
        dims = [("batch", shape[0]) if axis else shape[0], *shape[1:]]
        return g.op("Gather", g.input("x", *dims), indices, axis=axis)

    return build


def _first_token(g: Sketch) -> str:
    return g.op("Tanh", g.op("Gather", g.tokens(g.side(197), g.wide(384)), g.scalar(0), axis=1))


def _gathered_nd(g: Sketch) -> str:
    x = g.op("Transpose", g.input("x", ("batch", 1), 64, 400), perm=[0, 2, 1])
    indices = g.input("indices", ("batch", 1), ("found", g.side(100)), 1, kind=INT64, below=300)
    return g.op("GatherND", x, indices, batch_dims=1)


def _gathered_elements(shape: Sequence[int], count: int, axis: int) -> Build:
    def build(g: Sketch) -> str:
        dims = [("batch", shape[0]), *shape[1:]]
        found = [("found", count) if d == axis else dim for d, dim in enumerate(dims)]
        x, indices = g.input("x", *dims), g.input("indices", *found, kind=INT64, below=shape[axis])
        return g.op("GatherElements", x, indices, axis=axis)

    return build


def scatters() -> Iterator[Graph]:
    yield Graph(GROUP, "ScatterND of 32 rows in 128x64", _scattered_rows)
    yield Graph(GROUP, "ScatterElements over 1 of 64x100 in 64x1000", _scattered_elements)
    yield Graph(GROUP, "ScatterND of a slice in 1x64x56x56", _scattered_slice)


def _scattered_rows(g: Sketch) -> str:
    width = g.wide(64)
    indices = g.constant(np.arange(0, 128, 4, dtype=np.int64)[:, None])
    return g.op("ScatterND", g.input("x", 128, width), indices, g.input("y", 32, width))


def _scattered_elements(g: Sketch) -> str:
    places = g.constant(np.tile(np.arange(0, 1000, 10, dtype=np.int64), (64, 1)))
    return g.op("ScatterElements", g.input("x", 64, 1000), places, g.input("y", 64, 100), axis=1)


def _scattered_slice(g: Sketch) -> str:
    """`x[:, 0] = y` as exported."""
    c = g.wide(64)
    x, y = g.input("x", 1, c, 56, 56), g.input("y", 1, 56, 56)
    return g.op(
        "ScatterND", x, g.constant(np.array([[[0, 0]]], np.int64)), g.op("Unsqueeze", g.op("Relu", y), g.integers(1))
    )


# -- Tile, Expand, blocks, Resize --------------------------------------------------------------------------------------


def repeats() -> Iterator[Graph]:
    for shape, count in [
        ((1, 64, 28, 28), (1, 1, 2, 2)),
        ((8, 100), (1, 10)),
        ((1, 1, 400), (1, 64, 1)),
        ((1000, 1), (1, 64)),
    ]:
        yield Graph(GROUP, f"Tile {times(count)} of {times(shape)}", _tiled(shape, count))
        wide = [s * c for s, c in zip(shape, count, strict=True)]
        if all(s == 1 or c == 1 for s, c in zip(shape, count, strict=True)):
            yield Graph(GROUP, f"Expand {times(shape)} to {times(wide)}", _expanded(shape, wide))
    yield Graph(GROUP, "Expand + Mul 1x64x1x1 to 1x64x56x56", _expanded_gate)


def _tiled(shape: Sequence[int], count: Sequence[int]) -> Build:
    return lambda g: g.op("Tile", _input(g, shape), g.integers(*count))


def _expanded(shape: Sequence[int], wide: Sequence[int]) -> Build:
    return lambda g: g.op("Expand", g.input("x", *shape), g.integers(*wide))


def _expanded_gate(g: Sketch) -> str:
    c = g.wide(64)
    x = g.image(c, g.side(56), g.side(56))
    return g.op("Mul", x, g.op("Expand", g.input("gate", ("batch", 1), c, 1, 1), g.op("Shape", x)))


def blocks() -> Iterator[Graph]:
    for channels, side, size, mode in [(64, 28, 2, "DCR"), (64, 28, 2, "CRD"), (48, 40, 4, "CRD"), (12, 112, 2, "DCR")]:
        yield Graph(
            GROUP, f"DepthToSpace {mode} {size} of {channels}x{side}x{side}", _to_space(channels, side, size, mode)
        )
    yield Graph(
        GROUP, "SpaceToDepth 2 of 16x56x56", lambda g: g.op("SpaceToDepth", g.image(g.wide(16), 56, 56), blocksize=2)
    )
    yield Graph(GROUP, "pixel shuffle in parts 2 of 64x28x28", _pixel_shuffle)


def _to_space(channels: int, side: int, size: int, mode: str) -> Build:
    def build(g: Sketch) -> str:
        c = g.wide(channels, size * size)
        return g.op("DepthToSpace", g.image(c, g.side(side), g.side(side)), blocksize=size, mode=mode)

    return build


def _pixel_shuffle(g: Sketch) -> str:
    c = g.wide(64, 4)
    x = g.input("x", ("batch", 1), c, 28, 28)
    apart = g.op("Transpose", g.reshape(x, -1, c // 4, 2, 2, 28, 28), perm=[0, 1, 4, 2, 5, 3])
    return g.op("Relu", g.reshape(apart, -1, c // 4, 56, 56))


def resizes() -> Iterator[Graph]:
    for mode, transform, scale in [
        ("nearest", "asymmetric", 2.0), ("nearest", "asymmetric", 4.0), ("nearest", "half_pixel", 0.5),
        ("linear", "half_pixel", 2.0),
        ("linear", "align_corners", 2.0), ("linear", "asymmetric", 2.0), ("linear", "pytorch_half_pixel", 4.0),
        ("linear", "half_pixel", 0.5),
        ("cubic", "half_pixel", 2.0), ("nearest", "asymmetric", 1.5),
    ]:  # fmt: skip
        named = f"Resize {mode} {transform} by {scale:g} of 64x28x28"
        yield Graph(GROUP, named, _resized(mode, transform, scale))
    yield Graph(GROUP, "Resize linear to 224x224 of 3x160x160", _resized_to((224, 224), 3, 160))
    yield Graph(GROUP, "Resize linear to 65x65 of 256x1x1", _resized_to((65, 65), 256, 1))
    yield Graph(GROUP, "Resize linear to 14x14 of 64x33x33", _resized_to((14, 14), 64, 33))
    yield Graph(GROUP, "Resize nearest by 2 + Add of 64x28x28", _resized_sum)


def _resized(mode: str, transform: str, scale: float) -> Build:
    def build(g: Sketch) -> str:
        how: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": transform}
        how |= {"nearest_mode": "floor"} if mode == "nearest" else {}
        how |= {"cubic_coeff_a": -0.75} if mode == "cubic" else {}
        x = g.image(g.wide(64), g.side(28), g.side(28))
        return g.op("Resize", x, "", g.numbers(1.0, 1.0, scale, scale), **how)

    return build


def _resized_to(sides: Sequence[int], channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        x = g.image(g.wide(channels), g.side(side), g.side(side))
        sizes = g.op(
            "Concat", g.op("Slice", g.op("Shape", x), g.integers(0), g.integers(2)), g.integers(*sides), axis=0
        )
        return g.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")

    return build


def _resized_sum(g: Sketch) -> str:
    c, side = g.wide(64), g.side(28)
    x = g.input("x", ("batch", 1), c, ("height", side), ("width", side))
    y = g.input("y", ("batch", 1), c, ("2*height", 2 * side), ("2*width", 2 * side))
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.op("Add", g.op("Resize", x, "", g.numbers(1.0, 1.0, 2.0, 2.0), **how), y)
