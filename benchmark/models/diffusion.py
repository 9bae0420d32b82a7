"""The networks of Stable Diffusion 1.x written out by code: the UNet of a step, and the decoder from latents to images.

Fewer `channels`, in multiples of 32 as groups are 32, make smaller ones of the same structure.
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmark.models.builder import Layers, Map

GROUPS, HEADS = 32, 8
WORDS, TEXT = 77, 768
"""The length of the text that images are made for, and what a word of it has."""
MULTIPLES = (1, 2, 4, 4)
"""Of the channels, what each stage of the UNet and of the decoder has."""


def unet(size: int = 64, channels: int = 320, **how: bool) -> onnx.ModelProto:
    """One step of the UNet: `sample` of [batch, 4, size, size], `timestep` of [batch] and the text to a noise.

    `size` is a multiple of 8. Of 320 channels it has 860 million parameters, which are 3.4 GB.
    """
    b = Layers(**how)
    x = b.image(size, 4, "sample")
    time, width = _time(b, b.input("timestep", "batch"), channels), 4 * channels
    text = b.input("encoder_hidden_states", "batch", WORDS, TEXT)

    def block(x: Map, outputs: int, attends: bool) -> Map:
        x = _residual(b, x, outputs, time, width)
        return _attends(b, x, text) if attends else x

    kept = [x := b.conv(x, channels, 3, norm=False)]
    for stage, multiple in enumerate(MULTIPLES):
        for _ in range(2):
            kept.append(x := block(x, multiple * channels, stage < 3))
        if stage < 3:
            kept.append(x := b.conv(x, x.channels, 3, 2, norm=False))
    x = block(block(x, x.channels, True), x.channels, False)
    for stage, multiple in enumerate(reversed(MULTIPLES)):
        for _ in range(3):
            x = block(b.concat(x, kept.pop()), multiple * channels, stage > 0)
        if stage < 3:
            x = _upsampled(b, x)
    return b.model(b.conv(_group_norm(b, x, "Silu"), 4, 3, norm=False).name)


def vae_decoder(size: int = 64, channels: int = 128, **how: bool) -> onnx.ModelProto:
    """The decoder: `x`, latents of [batch, 4, size, size], to images eight times as wide and high."""
    b = Layers(epsilon=1e-6, **how)
    x = b.conv(b.conv(b.image(size, 4), 4, norm=False), 4 * channels, 3, norm=False)
    x = _residual(b, x, x.channels)
    rows = _to_rows(b, _group_norm(b, x))
    found = b.attention(*(b.linear(rows, x.channels, x.channels) for _ in range(3)), x.channels, 1)
    x = b.add(_to_map(b, b.linear(found, x.channels, x.channels), x), x)
    x = _residual(b, x, x.channels)
    for stage, multiple in enumerate(reversed(MULTIPLES)):
        for _ in range(3):
            x = _residual(b, x, multiple * channels)
        if stage < 3:
            x = _upsampled(b, x)
    return b.model(b.conv(_group_norm(b, x, "Silu"), 3, 3, norm=False).name)


def _time(b: Layers, step: str, channels: int) -> str:
    """What the blocks are told of the step, [batch, 4 * channels]."""
    rates = np.exp(-np.log(10000) * np.arange(channels // 2) / (channels // 2)).astype(np.float32)
    phases = b.op("Mul", b.op("Unsqueeze", step, b.integers(1)), b.constant(rates[None]))
    waves = b.op("Concat", b.op("Cos", phases), b.op("Sin", phases), axis=1)
    return b.dense(b.dense(waves, channels, 4 * channels, "Silu"), 4 * channels, 4 * channels)


def _residual(b: Layers, x: Map, outputs: int, time: str = "", width: int = 0) -> Map:
    """Two convolutions, the step's part between them, and what goes past."""
    made = b.conv(_group_norm(b, x, "Silu"), outputs, 3, norm=False)
    if time:
        told = b.op("Unsqueeze", b.dense(b.silu(time), width, outputs), b.integers(2, 3))
        made = made._replace(name=b.op("Add", made.name, told))
    made = b.conv(_group_norm(b, made, "Silu"), outputs, 3, norm=False)
    return b.add(x if x.channels == outputs else b.conv(x, outputs, norm=False), made)


def _attends(b: Layers, x: Map, text: str) -> Map:
    """A transformer block over the pixels: attention among them, to the text, and a gated layer."""
    width = x.channels
    inside = b.conv(_group_norm(b, x, epsilon=1e-6), width, norm=False)
    rows = _to_rows(b, inside)
    for sequence, features in (("", width), (text, TEXT)):
        queries = b.layer_norm(rows, width)
        q = b.linear(queries, width, width, bias=False)
        k, v = (b.linear(sequence or queries, features, width, bias=False) for _ in range(2))
        rows = b.op("Add", b.linear(b.attention(q, k, v, width, HEADS), width, width), rows)
    wide = b.linear(b.layer_norm(rows, width), width, 8 * width)
    value, gate = b.ops("Split", wide, b.integers(4 * width, 4 * width), count=2, axis=2)
    rows = b.op("Add", b.linear(b.op("Mul", value, b.gelu(gate)), 4 * width, width), rows)
    return b.add(b.conv(_to_map(b, rows, inside), width, norm=False), x)


def _group_norm(b: Layers, x: Map, act: str = "", epsilon: float | None = None) -> Map:
    """GroupNorm as exporters write it before opset 18."""
    groups = b.op("Reshape", x.name, b.integers(0, GROUPS, -1))
    ones, zeros = (b.constant(np.full(GROUPS, value, np.float32)) for value in (1, 0))
    normal = b.op("InstanceNormalization", groups, ones, zeros, epsilon=epsilon or b.epsilon)
    normal = b.op("Reshape", normal, b.integers(0, x.channels, x.size, x.size))
    scaled = b.op("Mul", normal, b.random(x.channels, 1, 1, scale=0.1, around=1.0))
    return b.act(x._replace(name=b.op("Add", scaled, b.random(x.channels, 1, 1, scale=0.1))), act)


def _upsampled(b: Layers, x: Map) -> Map:
    return b.conv(b.doubled(x), x.channels, 3, norm=False)


def _to_rows(b: Layers, x: Map) -> str:
    """Pixels as a sequence: [batch, size * size, channels]."""
    return b.op("Reshape", b.to_rows(x), b.integers(0, x.size**2, x.channels))


def _to_map(b: Layers, rows: str, like: Map) -> Map:
    apart = b.op("Reshape", rows, b.integers(0, like.size, like.size, like.channels))
    return b.to_map(apart, like.channels, like.size)
