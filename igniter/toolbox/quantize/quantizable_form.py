"""The form in which a model is quantised: functions inlined, and one node per convolution.

    %c = onnx.Conv(%x, %w)
    %y = onnx.BatchNormalization(%c, ...)    ->    %y = onnx.Conv(%x, %w * f, %b)
    %y = onnx.Add(%c, %constant)             ->    %y = onnx.Conv(%x, %w, %constant)

A convolution between codes has one range for its result and one rounding; every separate op after it adds another.
Folded normalisations need none. A node keeps the name of its convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import Float32Type, ModuleOp

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.structure import FunctionOp, main_graph
from igniter.toolbox.quantize.quantization_plan import QUANTIZED
from igniter.transforms.onnx.infer_shapes import InferShapes
from igniter.transforms.onnx.inline_functions import InlineFunctions
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, element, known_dims, operand
from igniter.transforms.onnx.recompose.convolutions import fold_normalization
from igniter.transforms.onnx.recompose.matching import is_closed

if TYPE_CHECKING:
    from xdsl.context import Context

CONVOLUTIONS = ("Conv", "ConvTranspose")


def quantizable_form(ctx: Context, module: ModuleOp) -> None:
    """Rewrites a module with inferred shapes, in place."""
    if any(isinstance(op, FunctionOp) and _has_candidates(op) for op in module.ops):
        InlineFunctions().apply(ctx, module)
        InferShapes().apply(ctx, module)
    rewriter = Rewriter(RULES)
    rewriter.run(op for op in main_graph(module).body.ops if isinstance(op, OnnxOp))


def _has_candidates(function: FunctionOp) -> bool:
    return any(isinstance(op, OnnxOp) and op.qualified_name in QUANTIZED for op in function.walk())


def _normalization(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    conv, made = defining(op.operands[0], *CONVOLUTIONS), fold_normalization(op, rw)
    return None if made is None or conv is None else _named(conv, made)


def _addition(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Folds the addition of a number per channel into a convolution."""
    conv, added = defining(op.operands[0], *CONVOLUTIONS), constant_value(op.operands[1])
    if conv is None or added is None or not is_closed(op, [conv]):
        return None
    dims, bias = known_dims(conv.results[0]), operand(conv, 2)
    before = np.zeros(1, np.float32) if bias is None else constant_value(bias)
    if dims is None or before is None or not isinstance(element(op.results[0]), Float32Type):
        return None
    channels, rank = dims[1].constant, len(dims)
    if channels is None or added.ndim > rank or added.size not in (1, channels):
        return None
    aligned = (1,) * (rank - added.ndim) + added.shape
    if added.size != 1 and aligned[1] != channels:
        return None
    summed = np.broadcast_to(before.reshape(-1).astype(np.float64) + added.reshape(-1), (channels,)).astype(np.float32)
    if not np.isfinite(summed).all():
        return None
    attrs = {k: conv.attr(k) for k in conv.attributes if not k.startswith("igniter.")}
    inputs = [conv.operands[0], conv.operands[1], rw.constant(summed)]
    return _named(conv, rw.op(conv.op_type, inputs, [op.results[0].type], attrs).results)


def _named(conv: OnnxOp, values: Replacement) -> Replacement:
    for value in values:
        owner = value.owner if value is not None else None
        if isinstance(owner, OnnxOp) and conv.node_name:
            owner.properties["node_name"] = conv.properties["node_name"]
    return values


RULES: Rules = {"BatchNormalization": [_normalization], "Add": [_addition]}

__all__ = ["quantizable_form"]
