"""Ops that move elements, compute shapes, sample, or choose elements by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.fuzz.wild.nodes import rule
from tests.fuzz.wild.pool import FLOATS, INTEGERS, Pool

NUMBERS = (*FLOATS, *INTEGERS)


@rule(2)
def crop_or_pad(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None or p.opset < 18:
        return False
    axes = sorted(p.rng.sample(range(p.values[x].ndim), p.rng.randint(1, p.values[x].ndim)))
    return p.try_node("CenterCropPad", [x, p.ints(*(p.rng.randint(1, 9) for _ in axes))], axes=axes)


@rule(2)
def reverse(p: Pool) -> bool:
    x = p.pick(ranks=(2, 3, 4))
    if x is None:
        return False
    time = p.rng.randrange(2)
    length, batch = p.shape(x)[time], p.shape(x)[1 - time]
    lengths = p.weight(p.data.integers(1, max(length, 1) + 1, batch), np.int64)
    return p.try_node("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time)


@rule(2)
def scatter(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3))
    if x is None or 0 in p.shape(x):
        return False
    axis = p.axis(x)
    shape = [p.rng.randint(1, d) for d in p.shape(x)]
    size = p.shape(x)[axis]
    indices = p.data.integers(-size if p.opset >= 11 else 0, size, shape)
    name = p.weight(indices, np.int64)
    if p.chance(0.5):
        name = p.input(np.int64, shape)
        p.values[name] = np.asarray(indices, np.int64)
    updates = p.input(p.values[x].dtype, shape) if p.chance(0.5) else p.weight(p.array(p.values[x].dtype, shape))
    return p.try_node("Scatter" if p.opset < 11 else "ScatterElements", [x, name, updates], axis=axis)


@rule(2)
def scatter_rows(p: Pool) -> bool:
    """Updates and indices that are inputs."""
    x = p.pick(ranks=(1, 2, 3))
    if x is None or 0 in p.shape(x) or p.opset < 11:
        return False
    last, count = p.rng.randint(1, p.values[x].ndim), p.rng.choice([1, 3])
    indices = p.input(np.int64, (count, last))
    p.values[indices] = np.stack([p.data.integers(-d, d, (count,)) for d in p.shape(x)[:last]], -1)
    if p.chance(0.4):
        return p.try_node("GatherND", [x, indices])
    return p.try_node("ScatterND", [x, indices, p.input(p.values[x].dtype, (count, *p.shape(x)[last:]))])


@rule(1)
def batched_gather(p: Pool) -> bool:
    x = p.pick(ranks=(2, 3, 4))
    if x is None or 0 in p.shape(x) or p.opset < 12:
        return False
    shape = p.shape(x)
    indices = p.data.integers(-shape[1], shape[1], (shape[0], p.rng.choice([1, 2]), 1))
    return p.try_node("GatherND", [x, p.weight(indices, np.int64)], batch_dims=1)


@rule(1)
def cache_scatter(p: Pool) -> bool:
    x = p.pick(FLOATS, (3, 4))
    if x is None or p.opset < 24 or not p.shape(x)[-2]:
        return False
    shape = p.shape(x)
    length = p.rng.randint(1, shape[-2])
    update = p.weight(p.array(p.values[x].dtype, (*shape[:-2], length, shape[-1])))
    where = p.weight(p.data.integers(0, shape[-2] - length + 1, shape[0]), np.int64)
    mode = p.rng.choice(["linear", "circular"])
    return p.try_node("TensorScatter", [x, update, where], mode=mode, axis=-2)


@rule(1)
def columns(p: Pool) -> bool:
    x = p.pick(FLOATS, (3,))
    if x is None or p.opset < 18:
        return False
    image = p.ints(p.rng.choice([2, 3, 4]), p.rng.choice([2, 4, 5]))
    block = p.ints(p.rng.choice([1, 2]), p.rng.choice([1, 2]))
    return p.try_node("Col2Im", [x, image, block], pads=[p.rng.randrange(2) for _ in range(4)])


@rule(3)
def chosen(p: Pool) -> bool:
    """Results whose sizes depend on data."""
    op = p.rng.choice(["NonZero", "Compress", "Unique"])
    x = p.pick(ranks=(1, 2, 3))
    if x is None:
        return False
    if op == "NonZero":
        return p.try_node(op, [x])
    axis: dict[str, Any] = {"axis": p.axis(x)} if p.chance(0.6) else {}
    if op == "Unique":
        return p.opset >= 11 and p.try_node(op, [x], p.rng.choice([1, 4]), sorted=p.rng.randrange(2), **axis)
    size = p.shape(x)[axis["axis"]] if axis else p.values[x].size
    flags = p.array(np.bool_, (p.rng.randint(0, size),))
    return p.try_node(op, [x, p.weight(flags)], **axis)


@rule(4)
def computed_shapes(p: Pool) -> bool:
    """Shapes as values: parts of them, arithmetic with them, and what is made with them."""
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None:
        return False
    attrs: dict[str, Any] = {}
    if p.opset >= 15 and p.chance(0.4):
        attrs = {"start": p.rng.randrange(2), **({"end": -1} if p.chance(0.5) else {})}
    if not p.try_node("Shape", [x], **attrs):
        return False
    shape = p.last()
    kind = p.rng.randrange(6)
    if kind == 0:
        value = helper.make_tensor("value", p.rng.choice([1, 6, 7, 9, 2]), [1], [1])
        return p.try_node("ConstantOfShape", [shape], value=value)
    if kind == 1:
        other = p.pick()
        return other is not None and p.try_node(p.rng.choice(["Expand", "Reshape", "Tile"]), [other, shape])
    if not p.try_node("Gather", [shape, p.weight(p.rng.choice([0, -1]), np.int64)]):
        return True
    size = p.last()
    if kind == 2 and p.opset >= 11:
        step = p.weight(p.rng.choice([1, 2]), np.int64)
        return p.try_node("Range", [p.weight(p.rng.choice([0, 1]), np.int64), size, step])
    if kind == 3:
        return p.try_node(p.rng.choice(["Mul", "Add", "Sub", "Div"]), [size, p.weight(p.rng.choice([2, 3]), np.int64)])
    if kind == 4:
        return p.try_node("Cast", [size], to=p.rng.choice([1, 6]))
    if not p.try_node(
        "Unsqueeze", [size, p.ints(0)] if p.opset >= 13 else [size], **({} if p.opset >= 13 else {"axes": [0]})
    ):
        return True
    if not p.try_node("Concat", [p.last(), p.ints(-1)], axis=0):
        return True
    return p.try_node("Reshape", [p.pick() or x, p.last()])


@rule(1)
def filled(p: Pool) -> bool:
    x = p.pick(ranks=(2,))
    if p.chance(0.5):
        return x is not None and p.try_node("EyeLike", [x], k=p.rng.randint(-2, 2), dtype=p.rng.choice([1, 6, 7, 11]))
    dtype = p.rng.choice([np.int64, np.int32, np.float32, np.float64])
    given = [p.rng.choice([0, 1, 2]), p.rng.choice([5, 9]), p.rng.choice([1, 2, 3])]
    names = [p.weight(v, dtype) for v in given]
    if p.chance(0.5):
        names[1] = p.input(dtype, ())
        p.values[names[1]] = np.asarray(given[1], dtype)
    return p.opset >= 11 and p.try_node("Range", names)


@rule(1)
def running_products(p: Pool) -> bool:
    x = p.pick(NUMBERS, (1, 2, 3))
    attrs = {"exclusive": p.rng.randrange(2), "reverse": p.rng.randrange(2)}
    return x is not None and p.try_node("CumProd", [x, p.weight(p.axis(x), np.int64)], **attrs)


@rule(1)
def dropped(p: Pool) -> bool:
    x = p.pick(FLOATS)
    return x is not None and p.try_node("Dropout", [x], p.rng.choice([1, 2]))


@rule(1)
def bit_cast(p: Pool) -> bool:
    x = p.pick()
    return x is not None and p.try_node("BitCast", [x], to=p.rng.choice([1, 6, 10, 5, 12, 16]))


@rule(2)
def sampled(p: Pool) -> bool:
    x = p.pick((np.float32, np.float64), (4,))
    if x is None or 0 in p.shape(x):
        return False
    shape, dtype = p.shape(x), p.values[x].dtype
    kind = p.rng.randrange(3)
    if kind == 0 and p.opset >= 16:
        grid = p.weight(p.array(dtype, (shape[0], 2, 3, 2)) / np.asarray(4, dtype))
        modes = ["linear", "nearest", "cubic"] if p.opset >= 20 else ["bilinear", "nearest", "bicubic"]
        attrs = {
            "mode": p.rng.choice(modes),
            "padding_mode": p.rng.choice(["zeros", "border", "reflection"]),
            "align_corners": p.rng.randrange(2),
        }
        return p.try_node("GridSample", [x, grid], **attrs)
    if kind == 1 and p.opset >= 20:
        theta = p.weight(p.array(dtype, (2, 2, 3)))
        return p.try_node("AffineGrid", [theta, p.ints(2, 1, 3, 4)], align_corners=p.rng.randrange(2))
    boxes = p.weight(np.abs(p.array(dtype, (3, 4))) % np.asarray(4, dtype))
    batch = p.weight(p.data.integers(0, shape[0], 3), np.int64)
    attrs = {"output_height": 2, "output_width": 3, "sampling_ratio": p.rng.choice([0, 2]), "spatial_scale": 0.5}
    return p.opset >= 10 and p.try_node("RoiAlign", [x, boxes, batch], mode=p.rng.choice(["avg", "max"]), **attrs)


@rule(1)
def deformed(p: Pool) -> bool:
    x = p.pick((np.float32,), (4,))
    if x is None or p.opset < 19 or min(p.shape(x)) < 2:
        return False
    batch, channels, height, width = p.shape(x)
    offset = p.weight(p.array(np.float32, (batch, 8, height - 1, width - 1)))
    weight = p.weight(p.array(np.float32, (2, channels, 2, 2)))
    return p.try_node("DeformConv", [x, weight, offset], kernel_shape=[2, 2], pads=[0] * 4)
