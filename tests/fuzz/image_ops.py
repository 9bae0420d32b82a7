"""One rule for each thing that networks of images are made of; `Refused` where one does not apply.

A rule chooses among all attributes that its op has, and leaves to ONNX Runtime to say which of them fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.graph import Value
from tests.fuzz.images import ImageBuilder, Refused

Rule = Callable[[ImageBuilder], None]
RULES: list[tuple[Rule, int]] = []


def rule(weight: int) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.append((function, weight))
        return function

    return register


# -- windows ----------------------------------------------------------------------------------------------------------


def window(b: ImageBuilder) -> list[int]:
    """The shape of a window: mostly square, mostly odd."""
    if b.chance(0.3):
        return [1] * b.spatial
    if b.chance(0.6):
        return [b.rng.choice((3, 3, 3, 5, 2, 7))] * b.spatial
    return [b.rng.choice((1, 2, 3, 4, 5, 7)) for _ in range(b.spatial)]


def steps(b: ImageBuilder, likely: float) -> list[int]:
    """Strides or dilations."""
    if not b.chance(likely):
        return [1] * b.spatial
    return [2] * b.spatial if b.chance(0.6) else [b.rng.choice((1, 2, 3)) for _ in range(b.spatial)]


def padding(b: ImageBuilder, kernel: Sequence[int], dilations: Sequence[int] | None = None) -> dict[str, Any]:
    """Attributes for what is added around an image: as much as keeps its size, none, anything, or as ORT finds."""
    reach = [(k - 1) * d for k, d in zip(kernel, dilations or [1] * b.spatial, strict=True)]
    kind = b.rng.random()
    if kind < 0.45:
        return {"pads": [r // 2 for r in reach] * 2}
    if kind < 0.6:
        return {}
    if kind < 0.8:
        return {"auto_pad": b.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    return {"pads": [b.rng.randint(0, min(3, k)) for k in (*kernel, *kernel)]}


def some(b: ImageBuilder, attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes that say what is so without them are left out, sometimes."""
    plain = {"strides", "dilations"}
    return {k: v for k, v in attrs.items() if k not in plain or any(s != 1 for s in v) or b.chance(0.5)}


def convolve(b: ImageBuilder, x: Value, out: int, group: int, kernel: Sequence[int], **attrs: Any) -> Value:
    """A convolution whose results are about as large as its image."""
    depth = b.channels(x) // group
    weight = b.normal([out, depth, *kernel], 1 / np.sqrt(max(1, depth * np.prod(kernel))))
    inputs: list[Value] = [x, weight]
    if b.chance(0.6):
        inputs.append(b.normal([out]))
    places = max(int(np.prod(s[2:])) * s[0] for s in b.shapes(x))
    if places * out * depth * int(np.prod(kernel)) > b.measure.products:
        raise Refused("too many products")
    if b.chance(0.7):
        attrs["kernel_shape"] = list(kernel)
    if group != 1 or b.chance(0.3):
        attrs["group"] = group
    return b.add("Conv", inputs, **attrs)


@rule(30)
def convolution(b: ImageBuilder) -> None:
    x = b.pick()
    channels = b.channels(x)
    kernel, out, group = window(b), b.rng.choice(b.measure.channels), 1
    kind = b.rng.random()
    if kind < 0.25:
        group, out = channels, channels * b.rng.choice((1, 1, 1, 2, 3))
    elif kind < 0.4:
        group = b.rng.choice([g for g in (1, 2, 3, 4, 8, 16) if channels % g == 0])
        out = group * b.rng.choice((1, 2, 3, 4, 8))
    dilations = steps(b, 0.15)
    attrs = some(b, {"strides": steps(b, 0.35), "dilations": dilations, **padding(b, kernel, dilations)})
    y = convolve(b, x, out, group, kernel, **attrs)
    if b.chance(0.3):
        normalise(b, y)
    if b.chance(0.6):
        activate(b, b.values[-1])


@rule(4)
def inverted_bottleneck(b: ImageBuilder) -> None:
    """1x1, depthwise, 1x1 and the image again, as mobile networks have it."""
    x = b.pick()
    channels, kernel = b.channels(x), [b.rng.choice((3, 5))] * b.spatial
    wide = convolve(b, x, channels * b.rng.choice((1, 2, 4)), 1, [1] * b.spatial)
    y = activate(b, wide)
    y = convolve(b, y, b.channels(y), b.channels(y), kernel, pads=[kernel[0] // 2] * (2 * b.spatial))
    y = activate(b, y)
    if b.chance(0.4):
        y = excite(b, y)
    y = convolve(b, y, channels, 1, [1] * b.spatial)
    b.add("Add", [y, x] if b.chance(0.5) else [x, y])


@rule(6)
def transposed_convolution(b: ImageBuilder) -> None:
    x = b.pick()
    channels = b.channels(x)
    group = b.rng.choice([g for g in (1, 1, 1, 2, 3, 4, channels) if channels % g == 0])
    out, kernel, strides = b.rng.choice((1, 2, 3, 4, 8)), window(b), steps(b, 0.7)
    weight = b.normal([channels, out, *kernel], 1 / np.sqrt(max(1, channels // group)))
    inputs = [x, weight, *([b.normal([out * group])] if b.chance(0.5) else [])]
    dilations = steps(b, 0.1)
    attrs = some(b, {"strides": strides, "dilations": dilations, **padding(b, kernel, dilations)})
    if b.chance(0.3):
        attrs["output_padding"] = [b.rng.randint(0, max(s - 1, 0)) for s in strides]
    places = max(int(np.prod(s[2:])) * s[0] for s in b.shapes(x))
    if places * channels * out * int(np.prod(kernel)) > b.measure.products:
        raise Refused("too many products")
    b.add("ConvTranspose", inputs, group=group, **attrs)


@rule(12)
def pool(b: ImageBuilder) -> None:
    x = b.pick()
    op = b.rng.choice(("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"))
    kernel = [k if k > 1 else 2 for k in window(b)] if b.chance(0.8) else window(b)
    dilated = (op == "MaxPool" and b.opset >= 10) or b.opset >= 19
    dilations = steps(b, 0.2 if dilated else 0.0)
    attrs = {"kernel_shape": kernel, **some(b, {"strides": steps(b, 0.6)}), **padding(b, kernel, dilations)}
    if any(d != 1 for d in dilations):
        attrs["dilations"] = dilations
    if b.opset >= (18 if op == "LpPool" else 10) and b.chance(0.4):
        attrs["ceil_mode"] = 1
    if op == "AveragePool" and b.chance(0.4):
        attrs["count_include_pad"] = 1
    if op == "LpPool":
        attrs["p"] = b.rng.choice((1, 2, 3))
        x = b.add("Abs", [x])
    # Which of equal elements is the largest may hang on the last bit of what was computed.
    indices = op == "MaxPool" and x in b.inputs and b.chance(0.3)
    b.add(op, [x], 2 if indices else 1, **attrs)


@rule(4)
def global_pool(b: ImageBuilder) -> None:
    x = b.pick()
    y = b.add(b.rng.choice(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")), [x])
    if b.chance(0.5):
        flat = b.add("Flatten", [y])
        classes = b.rng.choice((1, 5, 10, 32))
        weight = b.normal([classes, b.channels(y)], 0.3)
        b.add("Gemm", [flat, weight, b.normal([classes])], transB=1)


# -- elementwise ------------------------------------------------------------------------------------------------------


def activate(b: ImageBuilder, x: Value) -> Value:
    """An activation function, of one node or several."""
    op = b.rng.choice(
        ("Relu", "Relu", "Relu", "Clip", "Clip", "HardSwish", "HardSigmoid", "LeakyRelu", "PRelu", "Sigmoid", "Tanh",
         "Elu", "Softplus", "Silu", "Gelu", "Mish")
    )  # fmt: skip
    if op == "Clip":
        return clipped(b, x, 0.0, 6.0)
    if op == "PRelu":
        shape = b.rng.choice(([b.channels(x)] + [1] * b.spatial, [1], [1] * b.spatial))
        return b.add(op, [x, b.uniform(shape, -0.5, 0.5)])
    if op == "Silu":
        return b.add("Mul", [x, b.add("Sigmoid", [x])])
    if op == "Mish":
        return b.add("Mul", [x, b.add("Tanh", [b.add("Softplus", [x])])])
    if op == "Gelu":
        erf = b.add("Erf", [b.add("Mul", [x, b.scalar(0.7071, "f32")])])
        return b.add("Mul", [x, b.add("Add", [erf, b.scalar(1.0, "f32")])])
    if op == "HardSwish" and b.opset < 14:
        gate = clipped(b, b.add("Add", [x, b.scalar(3.0, "f32")]), 0.0, 6.0)
        return b.add("Div", [b.add("Mul", [x, gate]), b.scalar(6.0, "f32")])
    return b.add(op, [x])


def clipped(b: ImageBuilder, x: Value, low: float, high: float) -> Value:
    if b.opset < 11:
        return b.add("Clip", [x], min=low, max=high)
    return b.add("Clip", [x, b.scalar(low, "f32"), b.scalar(high, "f32")])


@rule(6)
def activation(b: ImageBuilder) -> None:
    activate(b, b.pick())


@rule(6)
def by_channel(b: ImageBuilder) -> None:
    """With a number, or with one for each channel, row or column."""
    x = b.pick()
    shape = [1 if d.constant is None or b.chance(0.3) else d.constant for d in x.dims]
    shape = b.rng.choice(([], [1, b.channels(x)] + [1] * b.spatial, shape[1:], shape[b.spatial + 1 :]))
    op = b.rng.choice(("Add", "Mul", "Sub", "Div", "Max", "Min"))
    other = b.uniform(shape, 0.5, 2.0) if op == "Div" else b.normal(shape)
    b.add(op, [x, other] if op == "Div" or b.chance(0.6) else [other, x])


@rule(10)
def residual(b: ImageBuilder) -> None:
    """With an image of the same shape, or one that a convolution gives its channels."""
    x = b.pick()
    same = [v for v in b.images() if b.shapes(v) == b.shapes(x) and v is not x]
    if same and b.chance(0.8):
        y = b.rng.choice(same)
    else:
        y = convolve(b, x, b.channels(x), 1, [3] * b.spatial, pads=[1] * (2 * b.spatial))
    y = b.add(b.rng.choice(("Add", "Add", "Add", "Mul", "Max", "Sub")), [y, x] if b.chance(0.5) else [x, y])
    if b.chance(0.5):
        activate(b, y)


def excite(b: ImageBuilder, x: Value) -> Value:
    """Squeeze and excite: channels weighed by what the whole image says."""
    channels = b.channels(x)
    if b.chance(0.5):
        y = b.add("GlobalAveragePool", [x])
    else:
        y = reduced(b, "ReduceMean", x, list(range(2, x.rank)))
    inner = max(1, channels // b.rng.choice((1, 2, 4)))
    y = activate(b, convolve(b, y, inner, 1, [1] * b.spatial))
    y = b.add(b.rng.choice(("Sigmoid", "HardSigmoid")), [convolve(b, y, channels, 1, [1] * b.spatial)])
    return b.add("Mul", [x, y] if b.chance(0.5) else [y, x])


def reduced(b: ImageBuilder, op: str, x: Value, axes: list[int], keep: int = 1) -> Value:
    if b.opset >= (13 if op == "ReduceSum" else 18):
        return b.add(op, [x, b.ints(axes)], keepdims=keep)
    return b.add(op, [x], axes=axes, keepdims=keep)


@rule(4)
def squeeze_and_excite(b: ImageBuilder) -> None:
    excite(b, b.pick())


# -- normalisations and reductions ------------------------------------------------------------------------------------


def normalise(b: ImageBuilder, x: Value) -> Value:
    channels = b.channels(x)
    scale, bias, mean = (b.normal([channels]) for _ in range(3))
    return b.add("BatchNormalization", [x, scale, bias, mean, b.uniform([channels], 0.5, 2)])


@rule(4)
def batch_norm(b: ImageBuilder) -> None:
    normalise(b, b.pick())


@rule(5)
def norm(b: ImageBuilder) -> None:
    """Over places, over groups of channels, or over channels."""
    x = b.pick()
    channels = b.channels(x)
    kind = b.rng.choice(("instance", "group", "groups", "lrn", "layer", "l2"))
    groups = b.rng.choice([g for g in (1, 2, 4, 8, channels) if channels % g == 0])
    shape = [channels] + [1] * b.spatial
    # One place less its mean divides rounding errors by epsilon, so epsilon is not small here.
    if kind == "instance":
        b.add("InstanceNormalization", [x, b.normal([channels]), b.normal([channels])], epsilon=0.1)
    elif kind == "group":
        flat = b.add("Reshape", [x, b.ints([0, groups, -1])])
        ones, zeros = (b.weight(np.full([groups], v), "f32") for v in (1.0, 0.0))
        y = b.add("InstanceNormalization", [flat, ones, zeros], epsilon=0.1)
        y = b.add("Reshape", [y, b.add("Shape", [x])])
        b.add("Add", [b.add("Mul", [y, b.normal(shape)]), b.normal(shape)])
    elif kind == "groups":
        size = channels if b.opset >= 21 else groups
        affine = [b.normal([size]), b.normal([size])]
        b.add("GroupNormalization", [x, *affine], num_groups=groups, epsilon=0.1)
    elif kind == "lrn":
        b.add("LRN", [x], size=b.rng.choice((1, 3, 5)), alpha=0.1, beta=0.75, bias=1.0)
    elif kind == "layer":
        y = b.add("Transpose", [x], perm=[0, *range(2, x.rank), 1])
        y = b.add("LayerNormalization", [y, b.normal([channels]), b.normal([channels])], epsilon=0.1)
        b.add("Transpose", [y], perm=[0, x.rank - 1, *range(1, x.rank - 1)])
    else:
        norm_of = b.add("Sqrt", [b.add("Add", [reduced(b, "ReduceSumSquare", x, [1]), b.scalar(0.1, "f32")])])
        b.add("Div", [x, norm_of])


@rule(3)
def reduction(b: ImageBuilder) -> None:
    x = b.pick()
    axes = b.rng.choice((list(range(2, x.rank)), [1], [2], [x.rank - 1], [-1, 1]))
    reduced(b, b.rng.choice(("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2")), x, axes, int(b.chance(0.7)))


@rule(2)
def softmax(b: ImageBuilder) -> None:
    x = b.pick()
    b.add("Softmax", [x], axis=b.rng.choice((1, -1, 2)))


# -- other places and other sizes -------------------------------------------------------------------------------------


@rule(8)
def resize(b: ImageBuilder) -> None:
    x = b.pick()
    if b.opset < 11:
        scales = b.weight(np.array([1, 1, *(b.rng.choice((1, 2, 2, 3)) for _ in range(b.spatial))]), "f32")
        b.add("Upsample", [x, scales], mode=b.rng.choice(("nearest", "linear")))
        return
    mode = b.rng.choice(("nearest", "nearest", "linear", "linear", "cubic"))
    where = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": b.rng.choice(where)}
    if mode == "nearest":
        attrs["nearest_mode"] = b.rng.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    if mode == "cubic":
        attrs |= {"cubic_coeff_a": -0.5, "exclude_outside": int(b.chance(0.3))}
    if b.opset >= 18 and b.chance(0.15) and mode != "nearest":
        attrs["antialias"] = 1
    empty = "" if b.opset >= 13 else b.weight(np.zeros([0]), "f32")
    kind = b.rng.random()
    if kind < 0.55:
        factor = b.rng.choice((2.0, 2.0, 3.0, 0.5, 1.5))
        scales = [1.0, 1.0, *(factor if b.chance(0.8) else b.rng.choice((1.0, 0.7, 2.0)) for _ in range(b.spatial))]
        b.add("Resize", [x, empty, b.weight(np.array(scales), "f32")], **attrs)
        return
    if kind < 0.75:
        if b.shapes(x)[0][:2] != b.shapes(x)[-1][:2]:
            raise Refused("the batch is no number")
        sizes = b.ints([*b.shapes(x)[0][:2], *(b.rng.choice((1, 4, 7, 16)) for _ in range(b.spatial))])
    else:
        # To the size of another image, as feature pyramids do.
        other = b.pick(lambda v: v is not x)
        head = sliced(b, b.add("Shape", [x]), [0], [2], [0])
        tail = sliced(b, b.add("Shape", [other]), [2], [x.rank], [0])
        sizes = b.add("Concat", [head, tail], axis=0).name
    b.add("Resize", [x, empty, "" if b.opset >= 13 else b.weight(np.zeros([0]), "f32"), sizes], **attrs)


def sliced(b: ImageBuilder, x: Value, starts: list[int], ends: list[int], axes: list[int]) -> Value:
    if b.opset < 10:
        return b.add("Slice", [x], starts=starts, ends=ends, axes=axes)
    return b.add("Slice", [x, b.ints(starts), b.ints(ends), b.ints(axes)])


@rule(5)
def slice_(b: ImageBuilder) -> None:
    """Of channels, or of places."""
    x = b.pick()
    axes = sorted(b.rng.sample(range(1, x.rank), b.rng.randint(1, 2)))
    starts = [b.rng.choice((0, 0, 1, 2, -3)) for _ in axes]
    ends = [b.rng.choice((2**31 - 1, 2**31 - 1, -1, 3, 8)) for _ in axes]
    if b.opset >= 10 and b.chance(0.4):
        step = [b.rng.choice((1, 2, 2, 3, -1)) for _ in axes]
        starts, ends = ([0 if s > 0 else -1 for s in step], [2**31 - 1 if s > 0 else -(2**31) for s in step])
        b.add("Slice", [x, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(step)])
    else:
        sliced(b, x, starts, ends, axes)


@rule(5)
def pad(b: ImageBuilder) -> None:
    x = b.pick()
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else [])
    mode = b.rng.choice(modes)
    low, high = ([b.rng.choice((0, 1, 1, 2, 3)) if b.chance(0.7) else 0 for _ in range(b.spatial)] for _ in range(2))
    ends = [[0, 0, *low], [0, 0, *high]]
    if b.chance(0.15):
        ends[b.rng.randrange(2)][1] = b.rng.choice((1, 3))
    if mode == "constant" and b.chance(0.15):
        ends[b.rng.randrange(2)][-1] = -1
    value = b.rng.choice((0.0, 0.0, 1.5))
    if b.opset < 11:
        b.add("Pad", [x], pads=[*ends[0], *ends[1]], mode=mode, value=value)
    else:
        inputs: list[Value | str] = [x, b.ints([*ends[0], *ends[1]])]
        b.add("Pad", inputs + ([b.scalar(value, "f32")] if value or b.chance(0.3) else []), mode=mode)


@rule(8)
def concat(b: ImageBuilder) -> None:
    x = b.pick()
    axis = 1 if b.chance(0.8) else b.rng.randrange(x.rank)

    def rest(value: Value) -> list[tuple[int, ...]]:
        return [s[:axis] + s[axis + 1 :] for s in b.shapes(value)]

    fitting = [v for v in b.images() if rest(v) == rest(x)]
    parts = [x, *(b.rng.choice(fitting) for _ in range(b.rng.randint(1, 3)))]
    b.rng.shuffle(parts)
    b.add("Concat", parts, axis=axis)


@rule(4)
def split(b: ImageBuilder) -> None:
    """In channels; the parts are put together again in another order, or each has its convolution."""
    x = b.pick()
    channels = b.channels(x)
    if channels < 2:
        raise Refused("one channel")
    cut = b.rng.randint(1, channels - 1)
    if b.opset >= 13:
        parts = b.add_all("Split", [x, b.ints([cut, channels - cut])], 2, axis=1)
    else:
        parts = b.add_all("Split", [x], 2, axis=1, split=[cut, channels - cut])
    if b.chance(0.5):
        parts = [convolve(b, p, b.channels(p), 1, [3] * b.spatial, pads=[1] * (2 * b.spatial)) for p in parts]
    b.add("Concat", parts[::-1], axis=1)


@rule(3)
def depth_and_space(b: ImageBuilder) -> None:
    x = b.pick()
    block = b.rng.choice((2, 2, 3))
    if b.chance(0.5):
        b.add("SpaceToDepth", [x], blocksize=block)
    elif b.opset >= 11:
        b.add("DepthToSpace", [x], blocksize=block, mode=b.rng.choice(("DCR", "CRD")))
    else:
        b.add("DepthToSpace", [x], blocksize=block)


@rule(3)
def shuffle(b: ImageBuilder) -> None:
    """Channels of groups, in turn: Reshape, Transpose, Reshape back."""
    x = b.pick()
    channels = b.channels(x)
    groups = b.rng.choice([g for g in (2, 3, 4, 1) if channels % g == 0])
    shape = b.shapes(x)
    unknown = [k for k in range(2, x.rank) if len({s[k] for s in shape}) > 1 or x.dims[k].constant is None]
    if len(unknown) > 1:
        tail = sliced(b, b.add("Shape", [x]), [2], [x.rank], [0])
        head = b.weight(np.array([0, groups, channels // groups]), "i64")
        back = b.weight(np.array([0, channels]), "i64")
        split_, joined = (b.add("Concat", [part, tail], axis=0).name for part in (head, back))
    else:
        places = [-1 if k in unknown else shape[0][k] for k in range(2, x.rank)]
        split_, joined = b.ints([0, groups, channels // groups, *places]), b.ints([0, channels, *places])
    y = b.add("Reshape", [x, split_])
    y = b.add("Transpose", [y], perm=[0, 2, 1, *range(3, x.rank + 1)])
    b.add("Reshape", [y, joined])


@rule(4)
def tokens(b: ImageBuilder) -> None:
    """Places as the rows of a matrix: flat, channels last, a product, and an image again, sometimes."""
    x = b.pick()
    channels = b.channels(x)
    y = b.add("Transpose", [b.add("Reshape", [x, b.ints([0, channels, -1])])], perm=[0, 2, 1])
    if b.chance(0.7):
        width = channels if b.chance(0.6) else b.rng.choice(b.measure.channels)
        y = b.add("MatMul", [y, b.normal([channels, width], 1 / np.sqrt(channels))])
        if width != channels:
            return
    if b.chance(0.6):
        y = b.add("Transpose", [y], perm=[0, 2, 1])
        b.add("Reshape", [y, b.add("Shape", [x])])


@rule(3)
def transposed(b: ImageBuilder) -> None:
    """Channels last, something there, and back, sometimes; or any other order."""
    x = b.pick()
    if b.chance(0.3):
        b.add("Transpose", [x], perm=b.rng.sample(range(x.rank), x.rank))
        return
    y = b.add("Transpose", [x], perm=[0, *range(2, x.rank), 1])
    channels = b.channels(x)
    if b.chance(0.5):
        y = b.add("MatMul", [y, b.normal([channels, channels], 1 / np.sqrt(channels))])
        y = b.add("Add", [y, b.normal([channels])])
    if b.chance(0.7):
        b.add("Transpose", [y], perm=[0, x.rank - 1, *range(1, x.rank - 1)])


@rule(2)
def flatten(b: ImageBuilder) -> None:
    x = b.pick()
    b.add("Flatten", [x], axis=b.rng.choice((1, 1, 2, 0, x.rank)))


@rule(1)
def other_rank(b: ImageBuilder) -> None:
    """An axis more or less, and the image again."""
    x = b.pick()
    shape = b.add("Shape", [x])
    y = b.add("Reshape", [x, b.ints([-1])])
    b.add("Reshape", [b.add(b.rng.choice(("Relu", "Neg")), [y]), shape])
