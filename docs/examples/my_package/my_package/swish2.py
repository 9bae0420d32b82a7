"""`my.Swish2`, x * sigmoid(2x): its description for Igniter, and a pattern that forms it."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, f64

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.lowering import Scalar
from igniter.dialects.onnx.ops import register
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import product
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, defining
from igniter.transforms.onnx.recompose.matching import is_closed, is_number


def infer(ctx: InferContext) -> list[TensorInfo]:
    """Returns the type and dims of the operand for the result."""
    x = ctx.input(0)
    assert x is not None
    return [TensorInfo(x.element, x.dims)]


def fold(op: OnnxOp, arrays: list[np.ndarray | None]) -> list[np.ndarray]:
    """Returns x * sigmoid(2x) for arrays. Verification compares the lowering with it."""
    (x,) = arrays
    assert x is not None
    return [np.asarray(x * (1 + np.tanh(x)) / 2, x.dtype)]


def legal(op: OnnxOp) -> str | None:
    """Returns the reason why a node cannot be lowered, or None. `--explain` prints it."""
    if element_of(op.operands[0].type) in (f32, f64):
        return None
    return "it is lowered for f32 and f64 only"


def swish2(x: Scalar) -> Scalar:
    """Computes one element: operators and methods of `Scalar` append the ops of a nest's body."""
    return x / ((x * -2).exp() + 1)


register(
    OpSpec(
        "my.Swish2",
        infer=infer,
        legal=legal,
        fold=fold,
        lower=lambda ctx: [ctx.map(swish2)],
        flops=lambda op: product(dims_of(op.results[0].type)) * 12,
        kind="elementwise",
    )
)


def form_swish2(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Rewrites x * sigmoid(x * 2) -> Swish2(x) if the intermediate values have no other use."""
    for x, other in (op.operands, reversed(op.operands)):
        sigmoid = defining(other, "Sigmoid")
        double = defining(sigmoid.operands[0], "Mul") if sigmoid is not None else None
        if sigmoid is None or double is None or double.operands[0] is not x or not is_number(double.operands[1], 2.0):
            continue
        if is_closed(op, (sigmoid, double)):
            return rewriter.op("my.Swish2", [x], [op.results[0].type]).results
    return None


RULES = {"Mul": (form_swish2,)}
