"""Convolutions followed by a scaling of their channels.

    %c = Conv(%x, %w, %b)                                          // f = scale / sqrt(var + epsilon)
    %y = BatchNormalization(%c, %scale, %bias, %mean, %var)   ->   %y = Conv(%x, %w * f, (%b - %mean) * f + %bias)

A ConvTranspose is treated alike; its weight has the channels of its result as second dim, for each of its groups.

Conditions: all operands but the image are constants of one type, and the factors are finite. They are computed in f64,
and each weight is rounded once. ONNX Runtime does the same (ConvBNFusion).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type

from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant
from igniter.dialects.onnx.weights import Weight
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, element, operand
from igniter.transforms.onnx.recompose.matching import is_closed

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

EPSILON = 1e-5
"""The default epsilon of a node without the attribute."""


@dataclass(frozen=True)
class ScaledChannels:
    """A weight whose channels are multiplied by one number each: `[channels, depth, window..]`, or for `transposed`
    groups `[groups * depth, channels of a group, window..]`."""

    source: Weight
    factors: tuple[float, ...]
    transposed: int = 0

    def compute(self) -> Array:
        plain, factors = self.source.array(), np.array(self.factors, np.float64)
        if self.transposed:
            apart = plain.reshape(self.transposed, -1, *plain.shape[1:])
            factors = factors.reshape(self.transposed, 1, -1, *(1 for _ in plain.shape[2:]))
            return (apart * factors).astype(plain.dtype).reshape(plain.shape)
        return (plain * factors.reshape(-1, *(1 for _ in plain.shape[1:]))).astype(plain.dtype)


def fold_normalization(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Folds a batch normalisation into a convolution."""
    conv, kind = defining(op.operands[0], "Conv", "ConvTranspose"), element(op.results[0])
    if conv is None or not is_closed(op, [conv]) or len(op.results) != 1 or op.attr("training_mode", 0):
        return None
    weight, bias = constant_weight(conv.operands[1]), operand(conv, 2)
    given = [constant_value(v) for v in op.operands[1:5]]
    added = np.zeros(1) if bias is None else constant_value(bias)
    if weight is None or weight.elided or added is None or len(given) != 4 or any(v is None for v in given):
        return None
    if not isinstance(kind, (Float32Type, Float64Type)) or not weight.element_type == kind == element(op.operands[0]):
        return None
    scale, offset, mean, variance = (np.asarray(v, np.float64).reshape(-1) for v in given if v is not None)
    groups = int(conv.attr("group", 1)) if conv.op_type == "ConvTranspose" else 0
    channels = weight.shape[1] * groups if groups else weight.shape[0]
    if any(v.size != channels for v in (scale, offset, mean, variance)):
        return None
    with np.errstate(all="ignore"):
        factors = scale / np.sqrt(variance + float(op.attr("epsilon", EPSILON)))
        sums = (added.astype(np.float64).reshape(-1) - mean) * factors + offset
    if not np.all(np.isfinite(factors)) or not np.all(np.isfinite(sums)):
        return None
    name = next((n for n in op.output_names if n), op.op_type)
    scaled = Weight(weight.shape, kind, derivation=ScaledChannels(weight, tuple(factors.tolist()), groups))
    made = make_constant(scaled, f"{name}.scaled")
    rw.insert(made)
    biased = rw.constant(sums.astype(np.float32 if isinstance(kind, Float32Type) else np.float64))
    attrs = {k: conv.attr(k) for k in conv.attributes if not k.startswith("igniter.")}
    return rw.op(conv.op_type, [conv.operands[0], made.results[0], biased], [op.results[0].type], attrs).results


RULES: Rules = {"BatchNormalization": [fold_normalization]}
