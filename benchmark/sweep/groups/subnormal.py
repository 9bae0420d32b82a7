"""Weights and values below the smallest normal number of f32 (1.18e-38), as training with weight decay leaves them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmark.sweep.graph import Build, Graph, Sketch
from benchmark.sweep.groups.conv import DEPTHWISE

GROUP = "subnormal"


def graphs() -> Iterator[Graph]:
    """All graphs with subnormal numbers."""
    for share in (0.001, 0.01, 0.2):
        for kind, inputs, outputs, side, k, groups in [
            ("pointwise", 192, 96, 20, 1, 1), ("window", 64, 64, 20, 3, 1), ("depthwise", 96, 96, 20, 3, DEPTHWISE),
        ]:  # fmt: skip
            named = f"{kind} {k}x{k} {inputs}>{outputs} on {side}, {share:.1%} of the weights"
            yield Graph(GROUP, named, _conv(inputs, outputs, side, k, groups, share))
        yield Graph(GROUP, f"product 32x384x384, {share:.1%} of the weights", _product(share))
    yield Graph(GROUP, "whole dead channels 1x1 192>96 on 20", _dead)
    yield Graph(GROUP, "tail of Exp 64x1000", _tail)
    yield Graph(GROUP, "tail of Softmax + product 64x256x64", _softmax_tail)


def _with_subnormals(g: Sketch, values: np.ndarray, share: float) -> str:
    """Adds a weight of which a share is subnormal."""
    tiny = (g.draw(*values.shape) * 1e-39).astype(np.float32)
    return g.learned(np.where(g.rng.random(values.shape) < share, tiny, values).astype(np.float32))


def _conv(inputs: int, outputs: int, side: int, k: int, groups: int, share: float) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(inputs), g.side(side)
        m, each = (c, 1) if groups == DEPTHWISE else (g.wide(outputs), c)
        weight = _with_subnormals(g, g.draw(m, each, k, k, scale=(each * k * k) ** -0.5), share)
        how = {"kernel_shape": [k, k], "pads": [k // 2] * 4, "group": c if groups == DEPTHWISE else 1}
        return g.op("Relu", g.op("Conv", g.image(c, n, n), weight, g.random(m, scale=0.1), **how))

    return build


def _product(share: float) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(384), g.wide(384)
        weight = _with_subnormals(g, g.draw(k, n, scale=k**-0.5), share)
        return g.op("Add", g.op("MatMul", g.tokens(g.side(32), k), weight), g.random(n, scale=0.1))

    return build


def _dead(g: Sketch) -> str:
    c, m, n = g.wide(192), g.wide(96), g.side(20)
    weight = g.draw(m, c, 1, 1, scale=c**-0.5)
    weight[:, ::4] *= np.float32(1e-38)
    x = g.image(c, n, n)
    return g.op("Relu", g.op("Conv", x, g.learned(weight), g.random(m, scale=0.1), kernel_shape=[1, 1]))


def _tail(g: Sketch) -> str:
    """Most results are subnormal: exp(-88) and less."""
    x = g.input("x", ("batch", 64), g.side(1000), around=-92.0, scale=3.0)
    return g.op("Mul", g.op("Exp", x), g.number(0.5))


def _softmax_tail(g: Sketch) -> str:
    n = g.side(256)
    x = g.op("Softmax", g.input("x", ("batch", 64), n, scale=40.0), axis=-1)
    return g.op("MatMul", x, g.random(n, 64, scale=0.1))
