"""Memory-bound kernels beside ONNX Runtime, on the same inputs in one interleaved run (`beside_ort.py`).

python -m benchmark.fused_kernels [--threads 1 2] [--rounds 60] [--only NAME] [--json]
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmark.beside_ort import Case, Graph, run, values


def bias_gelu(rows: int, width: int) -> Case:
    def build(fused: bool) -> onnx.ModelProto:
        g = Graph()
        if fused:
            y = g.op("BiasGelu", "x", g.weight(width), domain="com.microsoft")
        else:
            s = g.op("Add", "x", g.weight(width))
            e = g.op("Erf", g.op("Div", s, g.constant(np.float32(2**0.5))))
            y = g.op("Mul", g.op("Mul", s, g.op("Add", e, g.constant(np.float32(1)))), g.constant(np.float32(0.5)))
        return g.model({"x": ["n", width]}, y, ["n", width])

    return Case("bias + Gelu", f"{rows}x{width}", build(False), values(x=(rows, width)), 8 * rows * width, build(True))


def residual_layernorm(rows: int, width: int) -> Case:
    def build(fused: bool) -> onnx.ModelProto:
        g = Graph()
        if fused:
            y = g.op(
                "SkipLayerNormalization", "x", "r", g.weight(width), g.weight(width), domain="com.microsoft",
                epsilon=1e-5,
            )  # fmt: skip
        else:
            y = g.op("LayerNormalization", g.op("Add", "x", "r"), g.weight(width), g.weight(width))
        return g.model({"x": ["b", "n", width], "r": ["b", "n", width]}, y, ["b", "n", width])

    feeds = values(x=(1, rows, width), r=(1, rows, width))
    return Case("residual + LayerNorm", f"{rows}x{width}", build(False), feeds, 12 * rows * width, build(True))


def mask_softmax(heads: int, length: int) -> Case:
    g = Graph()
    s = g.op("Div", "x", g.constant(np.float32(8)))
    y = g.op("Softmax", g.op("Add", s, "mask"), axis=-1)
    model = g.model({"x": ["b", heads, "s", "t"], "mask": ["b", 1, 1, "t"]}, y, ["b", heads, "s", "t"])
    feeds = values(x=(1, heads, length, length), mask=(1, 1, 1, length))
    return Case("mask + softmax", f"{heads}x{length}x{length}", model, feeds, 8 * heads * length * length)


def rmsnorm_swiglu(rows: int, width: int) -> Case:
    g = Graph()
    square = g.op("Mul", "x", "x")
    mean = g.op("ReduceMean", square, g.constant(np.array([-1])), keepdims=1)
    root = g.op("Sqrt", g.op("Add", mean, g.constant(np.float32(1e-6))))
    normal = g.op("Mul", g.op("Div", "x", root), g.weight(width))
    y = g.op("Mul", g.op("Mul", normal, g.op("Sigmoid", normal)), "u")
    model = g.model({"x": ["n", width], "u": ["n", width]}, y, ["n", width])
    return Case(
        "RMSNorm + SwiGLU", f"{rows}x{width}", model, values(x=(rows, width), u=(rows, width)), 12 * rows * width
    )


def chain(length: int, elements: int) -> Case:
    g = Graph()
    v = "x"
    for k in range(length):
        kind = ("Add", "Mul", "Sub", "Max", "Relu")[k % 5]
        v = g.op(kind, v) if kind == "Relu" else g.op(kind, v, g.weight(1))
    return Case(
        f"chain of {length}", f"{elements}", g.model({"x": ["n"]}, v, ["n"]), values(x=(elements,)), 8 * elements
    )


def transpose_add(rows: int, columns: int) -> Case:
    g = Graph()
    y = g.op("Add", g.op("Transpose", "x", perm=[1, 0]), "y")
    model = g.model({"x": ["n", "m"], "y": ["m", "n"]}, y, ["m", "n"])
    feeds = values(x=(rows, columns), y=(columns, rows))
    return Case("transpose + add", f"{rows}x{columns}", model, feeds, 12 * rows * columns)


def column_sum(rows: int, columns: int) -> Case:
    g = Graph()
    y = g.op("ReduceSum", "x", g.constant(np.array([0])), keepdims=0)
    return Case(
        "column sum", f"{rows}x{columns}", g.model({"x": ["n", "m"]}, y, ["m"]), values(x=(rows, columns)),
        4 * rows * columns,
    )  # fmt: skip


def channels_layernorm(channels: int, length: int, back: bool) -> Case:
    """A normalisation of what a convolution leaves, where the channels are not the last axis."""
    g = Graph()
    rows = g.op("Transpose", g.op("Add", "x", "r"), perm=[0, 2, 1])
    y = g.op("LayerNormalization", rows, g.weight(channels), g.weight(channels))
    if back:
        y = g.op("Transpose", y, perm=[0, 2, 1])
    shape = ["b", channels, "n"]
    model = g.model({"x": shape, "r": shape}, y, shape if back else ["b", "n", channels])
    feeds = values(x=(1, channels, length), r=(1, channels, length))
    name = "LayerNorm, channels" if back else "LayerNorm, to rows"
    return Case(name, f"{channels}x{length}", model, feeds, 12 * channels * length)


def channels_softmax(channels: int, length: int) -> Case:
    g = Graph()
    shape = ["b", channels, "n"]
    model = g.model({"x": shape}, g.op("Softmax", "x", axis=1), shape)
    feeds = values(x=(1, channels, length))
    return Case("softmax, channels", f"{channels}x{length}", model, feeds, 8 * channels * length)


def cases() -> list[Case]:
    found: list[Case] = []
    for rows, width in ((8, 512), (128, 768), (128, 3072), (2048, 3072)):
        found.append(bias_gelu(rows, width))
    for rows, width in ((8, 512), (128, 768), (1024, 768), (4096, 1024)):
        found += [residual_layernorm(rows, width), rmsnorm_swiglu(rows, width)]
    found += [mask_softmax(heads, length) for heads, length in ((4, 32), (12, 128), (12, 200), (12, 512))]
    found += [chain(n, size) for n in (1, 5, 10, 25, 50, 100) for size in (4096, 98304, 1 << 22)]
    found += [transpose_add(n, m) for n, m in ((128, 64), (512, 512), (1000, 3000))]
    for channels, length in ((768, 32), (768, 128), (96, 3136), (768, 1024)):
        found += [channels_layernorm(channels, length, back) for back in (True, False)]
        found.append(channels_softmax(channels, length))
    found += [column_sum(n, m) for n, m in ((128, 768), (1024, 1024), (4096, 3000))]
    return found


if __name__ == "__main__":
    run(cases(), __doc__)
