"""Shape rules of ops of com.microsoft that quantisers and converters write and that have no lowering: without them, all
that follows these ops would have no shape."""

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
    """The operands are 0 and 3: what lies between are scales and zero points."""
    a, b = input_dims(ctx, 0), input_dims(ctx, 3)
    return infos(element_type(ctx), None if a is None or b is None else broadcast(ctx, [a, b], "sum"))


def _infer_product(a: int, b: int, element: int, otherwise: Attribute | None = None) -> InferRule:
    """Rows of operand `a` by columns of the matrix `b`, of the element type of `element`, or `otherwise` without it."""

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
    """Queries, keys and values are a third of the columns each."""
    given, weights = input_dims(ctx, 0), input_dims(ctx, 1)
    whole = given is not None and weights is not None and len(given) == 3 and len(weights) == 2
    width = floordiv(weights[1], Expr.of(3)) if whole and weights is not None else None
    first = infos(element_type(ctx, 3), None if given is None or width is None else (*given[:2], width))
    return [*first, *infos(element_type(ctx, 3), *([None] * (len(ctx.op.results) - 1)))]


def _infer_global_pool(ctx: InferContext) -> list[TensorInfo]:
    """One place is left of an image, whose channels are the second dim or the last one."""
    dims = input_dims(ctx, 0)
    if dims is None or len(dims) < 2:
        return infos(element_type(ctx), None)
    channel = len(dims) - 1 if ctx.op.attr("channels_last", 0) else 1
    return infos(element_type(ctx), [d if k in (0, channel) else ONE for k, d in enumerate(dims)])


def _infer_concat(ctx: InferContext) -> list[TensorInfo]:
    """Behind scale and zero point of the result come triples of a tensor, its scale and its zero point."""
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
    """Each text becomes a row, as long as the one with the most tokens."""
    dims = input_dims(ctx, 0)
    return infos(element_type(ctx), None if dims is None else (*dims, ctx.fresh("tokens")))


INFER: dict[str, InferRule] = {
    "QLinearConcat": _infer_concat,
    "QLinearGlobalAveragePool": _infer_global_pool,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _infer_pair),
    **dict.fromkeys(("BiasSoftmax", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), same_as_input(None)),
    "DynamicQuantizeMatMul": _infer_product(0, 1, 0),
    "MatMulIntegerToFloat": _infer_product(0, 1, 2),
    "QAttention": _infer_quantized_attention,
    "QGemm": _infer_product(0, 3, 8, f32),
    "Tokenizer": _infer_tokens,
}
"""The rules by the names of the ops."""
