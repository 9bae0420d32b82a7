"""Shape rules of com.microsoft ops without a lowering, written by quantisers, converters and builders of language
models: without these rules, all following ops would lack shapes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from igniter.dialects.onnx.ops.pointwise import same_as_input
from igniter.dialects.onnx.ops.rules import (
    broadcast,
    element_type,
    infos,
    input_dims,
    normal_axis,
    operand,
)
from igniter.dialects.onnx.registry import InferContext, InferRule, TensorInfo
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv


def _infer_pair(ctx: InferContext) -> list[TensorInfo]:
    """Infers from operands 0 and 3; scales and zero points are in between."""
    a, b = input_dims(ctx, 0), input_dims(ctx, 3)
    return infos(element_type(ctx), None if a is None or b is None else broadcast(ctx, [a, b], "sum"))


def _infer_product(a: int, b: int, element: int, otherwise: Attribute | None = None) -> InferRule:
    """Returns the rule of rows of operand `a` times the matrix `b`, with the element type of operand `element`, or
    `otherwise` if that is omitted."""

    def rule(ctx: InferContext) -> list[TensorInfo]:
        left, right = input_dims(ctx, a), input_dims(ctx, b)
        kind = otherwise if otherwise is not None and operand(ctx.op, element) is None else element_type(ctx, element)
        if left is None or right is None or len(right) != 2:
            return infos(kind, None)
        depth, columns = right[::-1] if ctx.op.attr("transB", 0) else right
        ctx.equate(left[-1], depth)
        return infos(kind, (*left[:-1], columns))

    return rule


def _infer_quantized_attention(ctx: InferContext) -> list[TensorInfo]:
    """Infers queries, keys and values as a third of the columns each."""
    given, weights = input_dims(ctx, 0), input_dims(ctx, 1)
    whole = given is not None and weights is not None and len(given) == 3 and len(weights) == 2
    width = floordiv(weights[1], Expr.of(3)) if whole and weights is not None else None
    first = infos(element_type(ctx, 3), None if given is None or width is None else (*given[:2], width))
    return [*first, *infos(element_type(ctx, 3), *([None] * (len(ctx.op.results) - 1)))]


def _infer_global_pool(ctx: InferContext) -> list[TensorInfo]:
    """Infers one place for each channel of an image; channels are the second or the last dim."""
    dims = input_dims(ctx, 0)
    if dims is None or len(dims) < 2:
        return infos(element_type(ctx), None)
    channel = len(dims) - 1 if ctx.op.attr("channels_last", 0) else 1
    return infos(element_type(ctx), [d if k in (0, channel) else ONE for k, d in enumerate(dims)])


def _infer_concat(ctx: InferContext) -> list[TensorInfo]:
    """Infers from triples of a tensor, its scale and its zero point, after the result's scale and zero point."""
    shapes = [input_dims(ctx, k) for k in range(2, len(ctx.op.inputs), 3)]
    known_shapes = [s for s in shapes if s is not None]
    kind = element_type(ctx, 1)
    if not known_shapes or len(known_shapes) < len(shapes):
        return infos(kind, None)
    axis = normal_axis(int(ctx.op.attr("axis")), len(known_shapes[0]))
    dims = list(known_shapes[0])
    dims[axis] = sum((s[axis] for s in known_shapes), ZERO)
    return infos(kind, dims)


def _infer_tokens(ctx: InferContext) -> list[TensorInfo]:
    """Infers a row for each text, as long as the longest one in tokens."""
    dims = input_dims(ctx, 0)
    return infos(element_type(ctx), None if dims is None else (*dims, ctx.fresh("tokens")))


INFER: dict[str, InferRule] = {
    "QLinearConcat": _infer_concat,
    "QLinearGlobalAveragePool": _infer_global_pool,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _infer_pair),
    **dict.fromkeys(
        ("BiasSoftmax", "MoE", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE"), same_as_input(None)
    ),
    "DynamicQuantizeMatMul": _infer_product(0, 1, 0),
    "MatMulIntegerToFloat": _infer_product(0, 1, 2),
    "QAttention": _infer_quantized_attention,
    "QGemm": _infer_product(0, 3, 8, f32),
    "Tokenizer": _infer_tokens,
}
"""The rules by op name."""
