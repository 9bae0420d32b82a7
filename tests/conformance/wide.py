"""A case of 16-bit floats in f32: what its result is before any rounding to 16 bits.

What a 16-bit case expects was computed by ONNX's reference, which rounds after every step inside of an op, and in an
order of its own. A kernel that rounds once is nearer to the true result than that, and differs from it by more than the
tolerance of the case. ONNX's own runner allows two units in the last place of bf16; here a result has to be within one
of the true one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
DIGITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance of 1 from the next number."""
LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
TYPES = ("to", "softmax_precision", "stash_type", "dtype", "output_dtype")
"""Attributes that name a type."""


def widened(model: onnx.ModelProto, feed: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model and its inputs with f32 in place of every 16-bit float."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph)
    narrow = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
    return wide, {k: v.astype(np.float32) if getattr(v, "dtype", None) in narrow else v for k, v in feed.items()}


def _widen_graph(graph: onnx.GraphProto) -> None:
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.HasField("tensor_type") and info.type.tensor_type.elem_type in NARROW:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    _widen_tensors(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensors([attribute.t])
            if attribute.HasField("g"):
                _widen_graph(attribute.g)
            if attribute.name in TYPES and attribute.i in NARROW:
                attribute.i = TensorProto.FLOAT


def _widen_tensors(tensors: Iterable[onnx.TensorProto]) -> None:
    for tensor in tensors:
        if tensor.data_type in NARROW:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


def within_units(actual: Any, exact: Any, units: int = 1) -> bool:
    """True if every 16-bit float of `actual` is within so many units in its last place of `exact`."""
    a, e = np.asarray(actual), np.asarray(exact)
    unit = DIGITS.get(a.dtype.name)
    if unit is None or a.shape != e.shape:
        return False
    a, e, least = a.astype(np.float64), e.astype(np.float64), LEAST[a.dtype.name]
    near = np.abs(a - e) <= units * (unit * np.abs(e) + least)
    return bool((near | (a == e) | (np.isnan(a) & np.isnan(e))).all())
