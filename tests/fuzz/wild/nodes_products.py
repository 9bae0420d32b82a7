"""Products, convolutions, pools, normalisations and what else networks are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.wild.nodes import rule
from tests.fuzz.wild.pool import FLOATS, Pool


def window_attrs(p: Pool, rank: int) -> dict[str, Any]:
    """Strides, dilations and pads of a convolution or a pool."""
    attrs: dict[str, Any] = {
        "strides": [p.rng.choice([1, 1, 2, 3]) for _ in range(rank)],
        "dilations": [p.rng.choice([1, 1, 1, 2]) for _ in range(rank)],
    }
    kind = p.rng.random()
    if kind < 0.2:
        attrs["auto_pad"] = p.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif kind < 0.8:
        attrs["pads"] = [p.rng.choice([0, 0, 1, 2]) for _ in range(2 * rank)]
    return attrs


@rule(8)
def products(p: Pool) -> bool:
    x = p.pick((*FLOATS, np.int32, np.uint32, np.int64, np.uint64), (1, 2, 3, 4))
    if x is None:
        return False
    dtype, depth = p.values[x].dtype, p.shape(x)[-1]
    other = [n for n, v in p.values.items() if v.dtype == dtype and v.ndim >= 2 and v.shape[-2] == depth]
    y = (
        p.rng.choice(other)
        if other and p.chance(0.4)
        else p.weight(p.array(dtype, (*p.shape(x)[:-2][: p.rng.randrange(3)], depth, p.rng.choice([1, 3, 8, 17]))))
    )
    if p.values[x].ndim == 2 and p.values[y].ndim == 2 and p.chance(0.4):
        bias = [p.weight(p.array(dtype, p.rng.choice([p.shape(y)[-1:], (1,), (), (p.shape(x)[0], 1)])))]
        attrs = {"alpha": p.rng.choice([1.0, 0.5]), "beta": p.rng.choice([1.0, 0.0, 0.5])}
        return p.try_node("Gemm", [x, y, *(bias if p.chance(0.7) else [])], **attrs)
    return p.try_node("MatMul", [x, y] if p.chance(0.9) else [y, x])


@rule(2)
def transposed_products(p: Pool) -> bool:
    x = p.pick(FLOATS, (2, 3))
    if x is None:
        return False
    dtype, (rows, columns) = p.values[x].dtype, p.shape(x)[-2:]
    left, right = p.rng.randrange(2), p.rng.randrange(2)
    inner, outer = (rows if left else columns), p.rng.choice([1, 3, 9])
    y = p.weight(p.array(dtype, (outer, inner) if right else (inner, outer)))
    if p.chance(0.5) and p.values[x].ndim == 2:
        return p.try_node("Gemm", [x, y], transA=left, transB=right)
    return p.try_node("com.microsoft.FusedMatMul", [x, y], transA=left, transB=right, alpha=p.rng.choice([1.0, 0.25]))


EQUATIONS = (
    *("ij,jk->ik", "ij->ji", "ij->i", "bij,bjk->bik", "ij,ij->", "i,j->ij", "bij->bj", "ii->i", "ij,kj->ik"),
    *("bij,bkj->bik", "...ij->...ji", "ij,j->i", "ijk->", "bhid,bhjd->bhij", "i,i->i", "ij,jk,kl->il"),
)


@rule(3)
def einsum(p: Pool) -> bool:
    equation = p.rng.choice(EQUATIONS)
    terms = equation.split("->")[0].replace("...", "").split(",")
    found = [p.pick((*FLOATS, np.int32, np.int64), (len(t),)) for t in terms]
    names = [n for n in found if n is not None]
    return len(names) == len(terms) and p.opset >= 12 and p.try_node("Einsum", names, equation=equation)


@rule(6)
def convolution(p: Pool) -> bool:
    x = p.pick(FLOATS, (3, 4, 5))
    if x is None or not p.shape(x)[1]:
        return False
    dtype, channels, rank = p.values[x].dtype, p.shape(x)[1], p.values[x].ndim - 2
    window = [p.rng.choice([1, 2, 3]) for _ in range(rank)]
    group = channels if p.chance(0.3) else 1
    made = p.rng.choice([1, 2, 5])
    bias = p.chance(0.5)
    if p.chance(0.25):
        weight = p.weight(p.array(dtype, (channels, made, *window)))
        attrs = window_attrs(p, rank)
        if p.chance(0.3):
            attrs["output_padding"] = [p.rng.randrange(2) for _ in range(rank)]
        more = [p.weight(p.array(dtype, (made * group,)))] if bias else []
        return p.try_node("ConvTranspose", [x, weight, *more], group=group, **attrs)
    weight = p.weight(p.array(dtype, (made * group, channels // group, *window)))
    more = [p.weight(p.array(dtype, (made * group,)))] if bias else []
    if p.chance(0.15):
        attrs = {**window_attrs(p, rank), "activation": p.rng.choice(["Relu", "Sigmoid", "Tanh"])}
        return p.try_node("com.microsoft.FusedConv", [x, weight, *more], group=group, **attrs)
    return p.try_node("Conv", [x, weight, *more], group=group, **window_attrs(p, rank))


@rule(5)
def pools(p: Pool) -> bool:
    x = p.pick((*FLOATS, np.int8, np.uint8), (3, 4, 5))
    if x is None:
        return False
    rank = p.values[x].ndim - 2
    op = p.rng.choice(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "LRN"])
    if op == "LRN":
        return p.try_node(op, [x], size=p.rng.choice([1, 3, 4]), alpha=0.01, bias=p.rng.choice([1.0, 2.0]))
    if op.startswith("Global"):
        return p.try_node(op, [x])
    attrs: dict[str, Any] = {"kernel_shape": [p.rng.choice([1, 2, 3]) for _ in range(rank)], **window_attrs(p, rank)}
    if op == "LpPool":
        attrs["p"] = p.rng.choice([1, 2, 3])
    if p.opset >= (18 if op == "LpPool" else 10):
        attrs["ceil_mode"] = p.rng.randrange(2)
    if p.opset < (19 if op == "AveragePool" else 18 if op == "LpPool" else 10):
        attrs.pop("dilations")
    if op == "AveragePool":
        attrs["count_include_pad"] = p.rng.randrange(2)
    if op == "MaxPool" and p.chance(0.3):
        return p.try_node(op, [x], 2, storage_order=p.rng.randrange(2), **attrs)
    return p.try_node(op, [x], **attrs)


@rule(1)
def unpool(p: Pool) -> bool:
    x = p.pick((np.float32,), (4,))
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if x is None or not p.try_node("MaxPool", [x], 2, **attrs):
        return False
    return p.try_node("MaxUnpool", [p.last(2), p.last(1)], **attrs)


@rule(4)
def resize(p: Pool) -> bool:
    x = p.pick((*FLOATS, np.uint8, np.int8, np.int32), (2, 3, 4))
    if x is None:
        return False
    shape = p.shape(x)
    kept = max(len(shape) - 2, 0)
    factors = [1.0] * kept + [p.rng.choice([0.5, 1.0, 2.0, 1.5, 0.7]) for _ in shape[kept:]]
    if p.opset < 11:
        scales = p.weight(np.array(factors, np.float32))
        mode = p.rng.choice(["nearest", "linear"])
        return p.try_node("Resize" if p.opset >= 10 else "Upsample", [x, scales], mode=mode)
    attrs: dict[str, Any] = {
        "mode": p.rng.choice(["nearest", "linear", "cubic"]),
        "coordinate_transformation_mode": p.rng.choice(
            ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
        ),
    }
    if attrs["mode"] == "nearest":
        attrs["nearest_mode"] = p.rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if attrs["mode"] == "cubic" and p.chance(0.3):
        attrs.update(cubic_coeff_a=-0.5, exclude_outside=p.rng.randrange(2))
    if p.opset >= 18 and p.chance(0.2):
        attrs["antialias"] = 1
    if p.opset >= 18 and p.chance(0.3):
        axes = list(range(kept, len(shape)))
        attrs["axes"] = axes
        factors = factors[kept:]
        if p.chance(0.5):
            attrs["keep_aspect_ratio_policy"] = p.rng.choice(["stretch", "not_larger", "not_smaller"])
            return p.try_node("Resize", [x, "", "", p.ints(*(p.rng.randint(1, 9) for _ in axes))], **attrs)
    elif p.chance(0.4):
        sizes = p.ints(*shape[:kept], *(p.rng.randint(1, 9) for _ in shape[kept:]))
        return p.try_node("Resize", [x, "", "", sizes], **attrs)
    return p.try_node("Resize", [x, "", p.weight(np.array(factors, np.float32))], **attrs)


@rule(6)
def norms(p: Pool) -> bool:
    x = p.pick(FLOATS, (2, 3, 4))
    if x is None:
        return False
    dtype, shape = p.values[x].dtype, p.shape(x)
    op = p.rng.choice(["layer", "layer", "rms", "simple", "instance", "batch", "group", "moments", "skip", "skip_rms"])
    last = p.rng.randint(1, len(shape)) if p.chance(0.3) else 1

    def rows(of: tuple[int, ...]) -> str:
        return p.weight(p.array(dtype, of))

    if op in ("layer", "rms", "simple"):
        name = {"layer": "LayerNormalization", "rms": "RMSNormalization", "simple": "SimplifiedLayerNormalization"}[op]
        more = [rows(shape[-last:])] if op == "layer" and p.chance(0.7) else []
        outputs = p.rng.choice([1, 1, 1, 3]) if op == "layer" else 1
        return p.try_node(name, [x, rows(shape[-last:]), *more], outputs, axis=-last)
    if op.startswith("skip"):
        name = "SkipLayerNormalization" if op == "skip" else "SkipSimplifiedLayerNormalization"
        skip = p.input(dtype, shape) if p.chance(0.5) else rows(shape)
        more = [rows(shape[-1:])] if op == "skip" else []
        return p.try_node(f"com.microsoft.{name}", [x, skip, rows(shape[-1:]), *more], epsilon=1e-5)
    if op == "moments":
        axes = sorted(p.rng.sample(range(len(shape)), p.rng.randint(1, len(shape))))
        return p.try_node("MeanVarianceNormalization", [x], axes=axes)
    scale, bias = rows(shape[1:2]), rows(shape[1:2])
    if op == "instance":
        return p.try_node("InstanceNormalization", [x, scale, bias])
    if op == "group":
        groups = p.rng.choice([g for g in (1, 2, 3, 4) if shape[1] % g == 0])
        if p.opset < 21:
            scale, bias = rows((groups,)), rows((groups,))
        return p.try_node("GroupNormalization", [x, scale, bias], num_groups=groups)
    mean, variance = rows(shape[1:2]), p.weight(np.abs(p.array(dtype, shape[1:2])) + np.asarray(0.5, dtype))
    return p.try_node("BatchNormalization", [x, scale, bias, mean, variance])


@rule(2)
def biased(p: Pool) -> bool:
    x = p.pick(FLOATS, (1, 2, 3))
    if x is None:
        return False
    bias = p.weight(p.array(p.values[x].dtype, p.shape(x)[-1:]))
    op = p.rng.choice(["BiasGelu", "FastGelu", "Gelu", "QuickGelu"])
    attrs = {"alpha": p.rng.choice([1.0, 1.702])} if op == "QuickGelu" else {}
    return p.try_node(f"com.microsoft.{op}", [x, bias] if "Bias" in op or "Fast" in op else [x], **attrs)


@rule(1)
def losses(p: Pool) -> bool:
    x = p.pick(FLOATS, (2, 3, 4))
    if x is None or not p.shape(x)[1]:
        return False
    shape = p.shape(x)
    labels = p.data.integers(0, shape[1], (shape[0], *shape[2:]))
    label = p.weight(labels, np.int64)
    if p.chance(0.3):
        label = p.input(np.int64, labels.shape)
        p.values[label] = np.asarray(labels, np.int64)
    weights = [p.weight(np.abs(p.array(p.values[x].dtype, shape[1:2])) + np.asarray(0.5, p.values[x].dtype))]
    attrs: dict[str, Any] = {"reduction": p.rng.choice(["none", "sum", "mean"])}
    if p.chance(0.3):
        attrs["ignore_index"] = p.rng.choice([0, -1])
    op = p.rng.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    return p.try_node(op, [x, label, *(weights if p.chance(0.5) else [])], **attrs)


@rule(1)
def fourier(p: Pool) -> bool:
    if p.chance(0.3):
        size = p.weight(p.rng.randint(1, 12), np.int64)
        op = p.rng.choice(["HannWindow", "HammingWindow", "BlackmanWindow"])
        return p.opset >= 17 and p.try_node(op, [size], periodic=p.rng.randrange(2))
    x = p.pick(FLOATS, (2, 3))
    if x is None:
        return False
    inverse = p.rng.randrange(2)
    if not p.try_node(
        "Unsqueeze", [x, p.ints(-1)] if p.opset >= 13 else [x], **({} if p.opset >= 13 else {"axes": [-1]})
    ):
        return False
    signal = p.last()
    attrs = {"onesided": 0 if inverse else p.rng.randrange(2), "inverse": inverse}
    if p.opset < 20:
        return p.try_node("DFT", [signal], axis=1, **attrs)
    return p.try_node("DFT", [signal, "", p.weight(1, np.int64)], **attrs)


@rule(2)
def embeddings(p: Pool) -> bool:
    """Rows of a table by ids, which are data."""
    rows, width = p.rng.choice([3, 8, 17]), p.rng.choice([1, 4, 8])
    ids = p.input(p.rng.choice([np.int64, np.int32]), p.rng.choice([(2, 3), (4,), (1, 5)]))
    p.values[ids] = p.data.integers(0, rows, p.shape(ids)).astype(p.values[ids].dtype)
    return p.try_node("Gather", [p.weight(p.array(p.rng.choice(FLOATS), (rows, width))), ids])
