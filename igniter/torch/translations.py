"""Translations of ATen ops to ONNX that replace translations of PyTorch's exporter.

Attention becomes ONNX's op. The exporter writes products and a softmax, which differs in two ways:

    exporter                            eager                                   for
    ---------------------------------   -------------------------------------   ------------------------------------
    Softmax of -inf: NaN                0                                       queries whose keys are all masked
    as many heads of keys as queries    keys shared by groups of queries        fewer heads of keys than of queries
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from igniter.torch.names import torch

_LEAST = {"FLOAT": -1.7e38, "BFLOAT16": -1.7e38, "DOUBLE": -8.9e307}
"""Half of the least finite number of the types whose scores are of them or of f32."""


@cache
def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the functions that write ONNX nodes, by op."""
    return {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default: _attention()}


def _attention() -> Callable[..., Any]:
    script = import_module("onnxscript")
    ops: Any = script.opset23

    def attention(
        query: Any,
        key: Any,
        value: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        attn_mask: Any = None,
        scale: float | None = None,
    ) -> Any:
        """Writes an Attention, and zeros for the logarithms of the sums, which only the gradient reads."""
        mask = None if attn_mask is None else _mask(ops, attn_mask)
        if scale is not None and (scale <= 0 or query.dtype.name == "DOUBLE"):
            # The attribute is an f32, of which the runtime takes the square root.
            query, scale = ops.Mul(query, ops.CastLike(_double(ops, scale), query)), 1.0
        result, *_ = ops.Attention(query, key, value, mask, scale=scale, is_causal=int(is_causal))
        dims = ops.Shape(query, start=0, end=3)
        return result, ops.Expand(ops.Constant(value_float=0.0), ops.Gather(dims, ops.Constant(value_ints=[0, 2, 1])))

    return attention


def _mask(ops: Any, mask: Any) -> Any:
    """Returns a mask for Attention, which gives zeros if all keys have the least finite number as their scores. Eager
    does so for -inf alone, so the other numbers of the mask are at least half of that."""
    least = _LEAST.get(mask.dtype.name)
    if least is None:
        return mask
    bounded = ops.Max(mask, ops.CastLike(_double(ops, least), mask))
    return ops.Where(ops.IsInf(mask, detect_positive=0), mask, bounded)


def _double(ops: Any, value: float) -> Any:
    return ops.Constant(value=import_module("onnx").helper.make_tensor("number", 11, [], [value]))
