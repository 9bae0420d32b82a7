"""Functions of one named op of `linalg`, with their meaning in NumPy.

The meanings are made from the names of the ops (`conv_2d_nhwc_hwcf` tells both layouts) and from einsum, not from the
table of the dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
NAMES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.bool_): "i1",
}
PRODUCTS = {
    "matmul": "mk,kn->mn",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "matvec": "mn,n->m",
    "vecmat": "m,mn->n",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "dot": "m,m->",
    "mmt4d": "mkac,nkbc->mnab",
    "batch_mmt4d": "hmkac,hnkbc->hmnab",
}
CONVOLUTIONS = (
    *("conv_1d_nwc_wcf", "conv_1d_ncw_fcw", "conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw"),
    *("conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw", "conv_2d_nhwgc_gfhwc", "conv_3d_ndhwc_dhwcf"),
    *("conv_3d_ncdhw_fcdhw", "depthwise_conv_1d_nwc_wc", "depthwise_conv_1d_ncw_cw", "depthwise_conv_1d_nwc_wcm"),
    *("depthwise_conv_2d_nchw_chw", "depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nhwc_hwcm"),
    *("depthwise_conv_3d_ndhwc_dhwc", "depthwise_conv_3d_ncdhw_cdhw", "depthwise_conv_3d_ndhwc_dhwcm"),
)
POOLS = tuple(
    f"pooling_{layout}_{kind}"
    for layout, kinds in {
        "nhwc": ("sum", "max", "max_unsigned", "min", "min_unsigned"),
        "nchw": ("sum", "max"),
        "nwc": ("sum", "max", "max_unsigned", "min", "min_unsigned"),
        "ncw": ("sum", "max"),
        "ndhwc": ("sum", "max", "min"),
    }.items()
    for kind in kinds
)
UNARY: Mapping[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "negf": np.negative,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x).astype(x.dtype),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "square": np.square,
    "tanh": np.tanh,
    "reciprocal": lambda x: (1 / x).astype(x.dtype),
}
BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "powf": np.power,
}


@dataclass(frozen=True)
class Case:
    """One function: its text, its arguments, and its result."""

    text: str
    inputs: tuple[Array, ...]
    result: Array


def tensor(a: Array | tuple[int, ...], kind: str = "", dynamic: bool = False) -> str:
    """Returns the type of an array, with dynamic dims if asked."""
    shape = a.shape if isinstance(a, np.ndarray) else a
    element = kind or NAMES[np.asarray(a).dtype]
    return f"tensor<{''.join('?x' if dynamic else f'{d}x' for d in shape)}{element}>"


def function(op: str, inputs: tuple[Array, ...], output: Array, attrs: str = "", dynamic: bool = False) -> str:
    """Returns a function of one op whose last argument is the initial value."""
    types = [tensor(a, dynamic=dynamic) for a in (*inputs, output)]
    names = [f"%x{k}" for k in range(len(inputs))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip((*names, "%init"), types, strict=True))
    ins = f"ins({', '.join(names)} : {', '.join(types[:-1])}) " if inputs else ""
    return (
        f"func.func @f({arguments}) -> {types[-1]} {{\n"
        f"  %r = linalg.{op} {attrs}{ins}outs(%init : {types[-1]}) -> {types[-1]}\n"
        f"  return %r : {types[-1]}\n}}\n"
    )


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Returns random values: small integers, or floats."""
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-9, 10, shape).astype(dtype)
    if np.dtype(dtype) == np.bool_:
        return rng.random(shape) < 0.5
    return rng.standard_normal(shape).astype(dtype)


def product_case(name: str, sizes: Mapping[str, int], dtype: Any, wide: Any, dynamic: bool = False) -> Case:
    """Returns a product with the given extents, added to an initial value."""
    rng = np.random.default_rng(len(name))
    spec = PRODUCTS[name]
    left, right, out = (tuple(sizes[x] for x in part) for part in spec.replace("->", ",").split(","))
    a, b, c = values(rng, left, dtype), values(rng, right, dtype), values(rng, out, wide)
    exact = np.float64 if np.dtype(wide).kind not in "iu" else np.int64
    total = np.einsum(spec, a.astype(exact), b.astype(exact)) + c.astype(exact)
    return Case(function(name, (a, b), c, dynamic=dynamic), (a, b, c), np.asarray(total).astype(wide))


def _windows(x: Array, layout: str, kernel: Mapping[str, int], stride: int, dilation: int) -> tuple[Array, str]:
    """Returns the windows of an input: each spatial dim becomes places, and a last dim of the window."""
    letters = layout
    for letter in [x for x in layout if x in "dhw"]:
        axis = letters.index(letter)
        size = kernel[letter]
        count = (x.shape[axis] - (size - 1) * dilation - 1) // stride + 1
        parts = [
            x.take(range(k * dilation, k * dilation + (count - 1) * stride + 1, stride), axis) for k in range(size)
        ]
        x = np.stack(parts, -1)
        letters = letters.replace(letter, letter.upper()) + letter
    return x, letters


def convolution_case(name: str, stride: int = 2, dilation: int = 1, dtype: Any = np.float32) -> Case:
    """Returns a convolution, by the layouts in its name."""
    rng = np.random.default_rng(len(name))
    image, weight = name.removesuffix("_q").split("_")[-2:]
    sizes = {"n": 2, "g": 2, "c": 3, "f": 4, "m": 2, "d": 2, "h": 3, "w": 2}
    x = values(rng, tuple({"d": 5, "h": 7, "w": 6}.get(k, sizes[k]) for k in image), dtype)
    w = values(rng, tuple(sizes[k] for k in weight), dtype)
    kernel = {k: sizes[k] for k in "dhw"}
    parts, letters = _windows(x.astype(np.float64), image, kernel, stride, dilation)
    out = "".join(k.upper() if k in "dhw" else "f" if k == "c" and "f" in weight else k for k in image)
    out += "m" if "m" in weight else ""
    made = np.einsum(f"{letters},{weight}->{out}", parts, w.astype(np.float64))
    c = values(rng, made.shape, dtype)
    rank = sum(k in "dhw" for k in image)
    attrs = f"{{dilations = dense<{dilation}> : tensor<{rank}xi64>, strides = dense<{stride}> : tensor<{rank}xi64>}} "
    return Case(function(name, (x, w), c, attrs), (x, w, c), (made + c).astype(dtype))


def pool_case(name: str, dtype: Any = np.float32, stride: int = 2) -> Case:
    """Returns a pooling, by the layout in its name."""
    rng = np.random.default_rng(len(name))
    _, image, kind = name.split("_", 2)
    x = values(rng, tuple({"n": 2, "c": 3, "d": 5, "h": 7, "w": 6}[k] for k in image), dtype)
    if np.dtype(dtype).kind == "f":
        x.reshape(-1)[3] = np.nan
    kernel = {"d": 2, "h": 3, "w": 2}
    spatial = [k for k in image if k in "dhw"]
    parts, letters = _windows(x, image, kernel, stride, 1)
    axes = tuple(range(len(image), len(letters)))
    unsigned = kind.endswith("_unsigned") and np.dtype(dtype).kind == "i"
    whole = parts.view(f"u{parts.dtype.itemsize}") if unsigned else parts
    fold = {"sum": np.sum, "max": np.max, "min": np.min}[kind.removesuffix("_unsigned")]
    made = np.asarray(fold(whole, axes)).astype(whole.dtype).view(dtype)
    start = made * 0 if kind == "sum" else (made.copy() if np.dtype(dtype).kind == "i" else np.full_like(made, 0.25))
    if kind != "sum" and np.dtype(dtype).kind == "f":
        made = np.maximum(made, start) if kind == "max" else np.minimum(made, start)
    window = np.zeros(tuple(kernel[k] for k in spatial), dtype)
    rank = len(spatial)
    attrs = f"{{dilations = dense<1> : tensor<{rank}xi64>, strides = dense<{stride}> : tensor<{rank}xi64>}} "
    start = np.where(np.isnan(start), 0, start).astype(dtype) if np.dtype(dtype).kind == "f" else start
    return Case(function(name, (x, window), start, attrs), (x, window, start), made)
