"""Small models of many kinds, made on the spot, and trained ones that packages ship, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
NEWER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text: str, header: str = HEADER, **weights: np.ndarray) -> onnx.ModelProto:
    """A model in ONNX's text syntax, with initializers from arrays."""
    proto = parser.parse_model(header + text)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return proto


def _w(seed: int, *shape: int, scale: float | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0] if shape else 1))).astype(np.float32)


def mlp() -> onnx.ModelProto:
    text = """g (float[n, 24] x) => (float[n, 10] y) {
      a = Gemm (x, w1, b1)  r = Relu (a)  b = Gemm <transB = 1> (r, w2, b2)  t = Tanh (b)
      c = MatMul (t, w3)  y = Softmax <axis = -1> (c) }"""
    weights = {"w1": _w(1, 24, 32), "b1": _w(2, 32), "w2": _w(3, 16, 32), "b2": _w(4, 16), "w3": _w(5, 16, 10, scale=2)}
    return model(text, **weights)


def cnn() -> onnx.ModelProto:
    text = """g (float[n, 3, h, w] image) => (float[n, 5] y) {
      a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, k1, b1)  r = Relu (a)
      b = BatchNormalization (r, s, o, m, v)  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
      c = Conv <group = 8> (p, k2)  q = HardSwish (c)  z = GlobalAveragePool (q)  f = Flatten (z)
      y = Gemm (f, w, c0) }"""
    weights = {
        "k1": _w(1, 8, 3, 3, 3, scale=0.4), "b1": _w(2, 8), "s": 1 + _w(3, 8), "o": _w(4, 8), "m": _w(5, 8),
        "v": np.abs(_w(6, 8)) + 0.5, "k2": _w(7, 8, 1, 3, 3, scale=0.6), "w": _w(8, 8, 5, scale=2.0), "c0": _w(9, 5),
    }  # fmt: skip
    return model(text, **weights)


def attention() -> onnx.ModelProto:
    text = """g (int64[b, s] input_ids, int64[b, s] attention_mask) => (float[b, s, 16] y, float[b, s] best)
    <int64[4] heads = {0, 0, 2, 8}, int64[3] flat = {0, 0, 16}, float one = {1.0}, float low = {-10000.0},
     float scale = {0.35355}, int64[2] ax = {1, 2}> {
      e = Gather (table, input_ids)  n = LayerNormalization <axis = -1, epsilon = 0.00001> (e, g0, b0)
      q0 = MatMul (n, wq)  k0 = MatMul (n, wk)  v0 = MatMul (n, wv)
      q1 = Reshape (q0, heads)  k1 = Reshape (k0, heads)  v1 = Reshape (v0, heads)
      q = Transpose <perm = [0, 2, 1, 3]> (q1)  k = Transpose <perm = [0, 2, 3, 1]> (k1)
      v = Transpose <perm = [0, 2, 1, 3]> (v1)
      qk = MatMul (q, k)  s0 = Mul (qk, scale)
      mf = Cast <to = 1> (attention_mask)  mu = Unsqueeze (mf, ax)  inv = Sub (one, mu)  bias = Mul (inv, low)
      s1 = Add (s0, bias)  p = Softmax <axis = -1> (s1)
      o = MatMul (p, v)  ot = Transpose <perm = [0, 2, 1, 3]> (o)  o1 = Reshape (ot, flat)
      res = Add (e, o1)  h = MatMul (res, w1)  gl = Erf (h)  h2 = MatMul (gl, w2)  y = Add (res, h2)
      best = ReduceMax <axes = [-1], keepdims = 0> (y) }"""
    w = {
        "table": _w(0, 50, 16, scale=1),
        "g0": 1 + _w(1, 16),
        "b0": _w(2, 16),
        "w1": _w(6, 16, 32),
        "w2": _w(7, 32, 16),
    }
    return model(text, **w, **{name: _w(10 + i, 16, 16) for i, name in enumerate(("wq", "wk", "wv"))})


def arithmetic() -> onnx.ModelProto:
    text = """g (float[n, m] x, float[n, m] z) => (float[n, m] y, float[n] t) <float half = {0.5}, float two = {2.0}> {
      a = Sub (x, z)  b = Abs (z)  c = Add (b, half)  d = Div (a, c)  e = Pow (d, two)  f = Exp (x)  g = Log (c)
      h = Sub (f, g)  i = Add (h, e)  j = Sigmoid (i)  k = Mul (j, a)  l = Max (k, x)  y = Sub (l, half)
      t = ReduceSum <keepdims = 0> (y, one) }"""
    return model(text, one=np.array([1], np.int64))


def movement() -> onnx.ModelProto:
    text = """g (float[n, 6, m] x) => (float[n, r, c] y) {
      a = Slice (x, s0, s1, s2)  b = Transpose <perm = [0, 2, 1]> (x)  p = Pad <mode = "constant"> (b, pads, pv)
      q = Transpose <perm = [0, 2, 1]> (p)  d = Gather <axis = 1> (x, picks)  e = Concat <axis = 1> (a, d)
      f = Mul (e, rows)  g = Concat <axis = 1> (f, x)  h = Add (g, rest)  i = ReduceMean <axes = [1], keepdims = 1> (q)
      j = ReduceMean <axes = [2], keepdims = 1> (i)  y = Sub (h, j) }"""
    i64 = {
        "s0": [1], "s1": [4], "s2": [1], "pads": [0, 1, 2, 0, 3, 1], "picks": [5, 0, 2],
    }  # fmt: skip
    arrays = {name: np.array(v, np.int64) for name, v in i64.items()}
    return model(text, **arrays, pv=np.array(0.5, np.float32), rows=_w(1, 6, 1), rest=_w(2, 12, 1))


def recurrent() -> onnx.ModelProto:
    text = """g (float[t, n, 12] x) => (float[t, 1, n, 10] y, float[1, n, 10] h) {
      s = Tanh (x)  y, h, c = LSTM <hidden_size = 10> (s, w, r, b) }"""
    return model(text, w=_w(1, 1, 40, 12, scale=0.4), r=_w(2, 1, 40, 10, scale=0.4), b=_w(3, 1, 80, scale=0.3))


def quantised() -> onnx.ModelProto:
    text = """g (float[n, 32] x) => (float[n, 12] y)
    <float sx = {0.05}, uint8 zx = {120}, float sw = {0.01}, int8 zw = {0}> {
      q = QuantizeLinear (x, sx, zx)  d = DequantizeLinear (q, sx, zx)  w = DequantizeLinear (wq, sw, zw)
      m = MatMul (d, w)  b = Add (m, bias)  y = Relu (b) }"""
    wq = np.random.default_rng(1).integers(-127, 128, (32, 12)).astype(np.int8)
    return model(text, wq=wq, bias=_w(2, 12))


def choices() -> onnx.ModelProto:
    text = """g (float[n, 20] x)
      => (int64[n] best, float[n, 3] top, int64[n, 3] which, bool[n, 8] positive, int32[n, 8] whole)
    <int64[1] k = {3}, float zero = {0.0}, float many = {4.0}> {
      a = MatMul (x, w)  best = ArgMax <axis = 1, keepdims = 0> (a)  top, which = TopK (a, k)
      positive = Greater (a, zero)  m = Mul (a, many)  f = Floor (m)  whole = Cast <to = 6> (f) }"""
    return model(text, w=_w(1, 20, 8))


def upsample() -> onnx.ModelProto:
    text = """g (float[n, 4, h, w] x) => (float[n, 4, p, q] y) <float[4] scales = {1, 1, 2, 2}> {
      a = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , scales)
      b = Conv <pads = [1, 1, 1, 1]> (a, k)  s = Sigmoid (b)  y = Mul (s, a) }"""
    return model(text, k=_w(1, 4, 4, 3, 3, scale=0.3))


def integers() -> onnx.ModelProto:
    text = """g (int64[n, m] a, int32[n, m] b) => (int64[n, m] y, int32[m] t, bool[n, m] c) <int64 three = {3}> {
      w = Cast <to = 7> (b)  p = Mul (a, three)  q = Add (p, w)  y = Max (q, a)  c = Less (a, w)
      s = Sub (b, b2)  t = ReduceMax <axes = [0], keepdims = 0> (s) }"""
    return model(text, b2=np.array([7], np.int32))


BUILT: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f
    for f in (mlp, cnn, attention, arithmetic, movement, recurrent, quantised, choices, upsample, integers)
}
"""Every model with its name."""

TRAINED = (
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "silero_vad/data/silero_vad_16k_op15.onnx",
    "silero_vad/data/silero_vad_16k_sequence.onnx",
    "magika/models/standard_v3_3/model.onnx",
    "nudenet/320n.onnx",
)
"""Trained models, in the folders of their packages."""


def trained(folders: list[Path]) -> dict[str, Path]:
    """Those of `TRAINED` that lie somewhere in these folders."""
    found: dict[str, Path] = {}
    for name in TRAINED:
        for folder in folders:
            for path in (folder / name, *folder.glob(f"*/{name}")):
                if path.is_file():
                    found.setdefault(f"{name.split('/')[0]}:{path.stem}", path)
    return found
