"""The attention ops that ONNX Runtime adds for encoders and decoders: Attention and MultiHeadAttention.

Keys are masked by numbers added to their scores: `mask_filter_value` for padding, the least finite number for keys
after the query. A fully masked query therefore attends to all keys, as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.context import Subscripts
from igniter.dialects.onnx.ops.attention import with_past
from igniter.dialects.onnx.ops.attention_nests import (
    Attention,
    AttentionDims,
    Heads,
    Mask,
    Point,
    Shapes,
    attend,
    dims_reason,
    equate_all,
    head_sizes,
    inferred_shapes,
    lowest,
    mask_reason,
    operand_shapes,
    read_by_key,
    shape_at,
    sized,
    unknown_infos,
    with_bias,
)
from igniter.dialects.onnx.ops.pointwise import computed_reason, float_attr
from igniter.dialects.onnx.ops.rules import element_type, legal, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


# -- masks ------------------------------------------------------------------------------------------------------------


def _padding_reason(mask: Dims | None, dims: AttentionDims, lengths: Sequence[Expr]) -> str | None:
    """Returns the reason why the meaning of a mask is unknown; the length of a one-dimensional mask determines its
    meaning."""
    if mask is None or (len(mask) == 1 and mask[0] in lengths):
        return None
    if mask[:-1] in ((dims.batch,), (dims.batch, dims.queries)):
        return None
    return f"unknown form of mask, with dims [{', '.join(map(str, mask))}]"


def _padding(ctx: Lowering, mask: SSAValue, dims: AttentionDims, nest: Nest, at: Point, score: Scalar) -> Scalar:
    """Returns 0 for an unmasked key, `mask_filter_value` for a masked one."""
    own = dims_of(mask.type)
    guards = [own[-1] - 1 - at.j] if own[-1] != dims.total else []
    if len(own) == 1:
        # One number per batch element: the end of its keys. A second row: their start.
        seen = nest.index(at.j) < nest.read(mask, [at.b]).to(i64)
        if own[0] == dims.batch * 2:
            seen = seen & (nest.index(at.j) >= nest.read(mask, [at.b + dims.batch]).to(i64))
    else:
        seen = nest.read(mask, [at.b, at.j] if len(own) == 2 else [at.b, at.i, at.j], guards=guards) > 0
    return seen.select(nest.const(0, score.element), float_attr(ctx, "mask_filter_value", -10000.0))


def _mask(ctx: Lowering, dims: AttentionDims, mask: SSAValue | None, bias: SSAValue | None) -> Mask | None:
    """Returns the combination of padding, causality and bias."""
    causal = int(ctx.attr("unidirectional", 0)) == 1 and dims.queries != ONE
    if mask is None and bias is None and not causal:
        return None

    def hidden(nest: Nest, at: Point, score: Scalar) -> Scalar | None:
        value = None if mask is None else _padding(ctx, mask, dims, nest, at, score)
        if not causal:
            return value
        seen = nest.index(at.i - at.j + dims.past) >= 0
        if dims.keys != dims.queries:
            # In ONNX Runtime the last query sees all keys, including keys after its position.
            seen = seen | (nest.index(at.i - dims.queries + 1) >= 0)
        return seen.select(nest.const(0, score.element) if value is None else value, lowest(score.element))

    def applied(nest: Nest, at: Point, score: Scalar) -> Scalar:
        value = hidden(nest, at, score)
        if bias is None:
            return score if value is None else score + value
        read = read_by_key(nest, bias, at, dims, lowest(score.element))
        return score + (read if value is None else read + value)

    return applied


# -- MultiHeadAttention -----------------------------------------------------------------------------------------------

NAMES = ("query", "key", "value", "bias", "padding mask", "attention bias", "past key", "past value")
BIAS, PADDING, SCORE_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, INDIRECTION = range(3, 10)


def _multi_head_dims(op: OnnxOp, shapes: Shapes) -> AttentionDims | str:
    query, key, value = (shape_at(shapes, k) for k in range(3))
    heads, past_key = int(op.attr("num_heads", 0)), shape_at(shapes, PAST_KEY)
    if query is None or key is None or value is None:
        return "its query, key and value are packed into one or two operands"
    if len(query) != 3 or len(key) != len(value) or len(key) not in (3, 4):
        return "its query, key or value is packed, or has a rank that ONNX Runtime rejects"
    if past_key is not None and (len(past_key) != 4 or len(key) == 4):
        return "it has both a past and keys of rank 4, or its past key does not have rank 4"
    apart = len(value) == 4
    sizes = head_sizes((query[2], heads), (value[3] * heads if apart else value[2], heads))
    if isinstance(sizes, str):
        return sizes
    past = ZERO if past_key is None else past_key[2]
    split, keys = Expr.of(heads), key[2] if apart else key[1]
    return AttentionDims(query[0], split, split, query[1], keys, past, *sizes, joined=True)


def _multi_head_infer(ctx: InferContext) -> list[TensorInfo]:
    element, shapes = element_type(ctx), inferred_shapes(ctx)
    if shapes is None:
        return unknown_infos(ctx, element, None)
    batched = [(k, 0) for k in (0, 1, 2, PAST_KEY, PAST_VALUE)]
    mask = shape_at(shapes, PADDING)
    equate_all(ctx, shapes, *batched, *([(PADDING, 0)] if mask is not None and len(mask) > 1 else []))
    equate_all(ctx, shapes, (1, 2), (2, 2)) if len(shape_at(shapes, 1) or ()) == 4 else equate_all(
        ctx, shapes, (1, 1), (2, 1)
    )
    equate_all(ctx, shapes, (PAST_KEY, 2), (PAST_VALUE, 2))
    dims = _multi_head_dims(ctx.op, inferred_shapes(ctx) or [])
    if isinstance(dims, str):
        return unknown_infos(ctx, element, (3, 4, 4))
    if mask is not None and len(mask) > 1:
        ctx.equate(mask[-1], dims.total)
    for index, size in ((PAST_KEY, dims.head), (PAST_VALUE, dims.value_head)):
        cached = shape_at(shapes, index)
        if cached is not None and len(cached) == 4:
            ctx.equate(cached[1], dims.heads)
            ctx.equate(cached[3], size)
    bias = shape_at(shapes, SCORE_BIAS)
    if bias:
        # ONNX Runtime broadcasts no bias along the keys.
        ctx.equate(bias[-1], dims.total)
    return [TensorInfo(element, d) for d in (dims.result, dims.present(dims.head), dims.present(dims.value_head))]


def _multi_head_reason(op: OnnxOp) -> str | None:
    shapes = operand_shapes(op)
    dims = _multi_head_dims(op, shapes)
    if isinstance(dims, str):
        return dims
    hidden, value_hidden = dims.heads * dims.head, dims.heads * dims.value_head
    apart = len(shape_at(shapes, 1) or ()) == 4
    wanted: dict[int, Dims] = {
        1: (dims.batch, dims.heads, dims.keys, dims.head) if apart else (dims.batch, dims.keys, hidden),
        2: (dims.batch, dims.heads, dims.keys, dims.value_head) if apart else (dims.batch, dims.keys, value_hidden),
        BIAS: (hidden * 2 + value_hidden,),
        PAST_KEY: (dims.batch, dims.heads, dims.past, dims.head),
        PAST_VALUE: (dims.batch, dims.heads, dims.past, dims.value_head),
    }
    reason = dims_reason(shapes, NAMES, wanted) or _padding_reason(
        shape_at(shapes, PADDING), dims, (dims.batch, dims.batch * 3 + 2)
    )
    if reason is None and (operand(op, PAST_KEY) is None) != (operand(op, PAST_VALUE) is None):
        return "it has only one of a past key and a past value"
    if reason is None and (operand(op, PAST_LENGTH) is not None or operand(op, INDIRECTION) is not None):
        return "its past and present share a buffer, or belong to a beam search"
    return reason or _score_bias_reason(shape_at(shapes, SCORE_BIAS), dims) or _scores_reason(op)


def _score_bias_reason(bias: Dims | None, dims: AttentionDims) -> str | None:
    return None if bias is None else mask_reason(bias, dims, "attention bias")


def _scores_reason(op: OnnxOp) -> str | None:
    outputs = op.outputs
    return "its scores are an output" if len(outputs) > 3 and outputs[3] is not None else None


def _multi_head(ctx: Lowering) -> list[SSAValue | None]:
    dims = _multi_head_dims(ctx.op, operand_shapes(ctx.op))
    if isinstance(dims, str):
        raise ctx.fail(dims)
    bias, hidden = ctx.input(BIAS), dims.heads * dims.head
    apart = len(ctx.dims(1)) == 4
    query = Heads(with_bias(ctx, ctx.required(0), bias, ZERO, "query"), dims.queries, dims.head, joined=True)
    inner = None if apart else bias
    key = Heads(with_bias(ctx, ctx.required(1), inner, hidden, "key"), dims.keys, dims.head, not apart)
    value = Heads(with_bias(ctx, ctx.required(2), inner, hidden * 2, "value"), dims.keys, dims.value_head, not apart)
    key, present_key = with_past(ctx, dims, ctx.input(PAST_KEY), key, ctx.wants(1), "present_key")
    value, present_value = with_past(ctx, dims, ctx.input(PAST_VALUE), value, ctx.wants(2), "present_value")
    mask = _mask(ctx, dims, ctx.input(PADDING), ctx.input(SCORE_BIAS))
    made = attend(ctx, Attention(dims, query, key, value, float_attr(ctx, "scale") or None, mask=mask))
    return [made.result, present_key, present_value]


def _multi_head_macs(op: OnnxOp) -> Expr:
    """batch × heads × queries × keys × (head size + head size of the values)"""
    return sized(_multi_head_dims(op, operand_shapes(op))).macs


def _multi_head_flops(op: OnnxOp) -> Expr:
    """2 × MACs + 14 × scores"""
    dims = _multi_head_dims(op, operand_shapes(op))
    return ONE if isinstance(dims, str) else dims.flops


# -- Attention --------------------------------------------------------------------------------------------------------

WEIGHTS, ATTENTION_BIAS, MASK, PAST, ATTENTION_SCORE_BIAS, ATTENTION_PAST_LENGTH = range(1, 7)


def _self_dims(op: OnnxOp, shapes: Shapes) -> AttentionDims | str:
    """Returns the sizes; queries, keys and values are, in this order, the columns of the product of
    input and weights."""
    given, weights, past = (shape_at(shapes, k) for k in (0, WEIGHTS, PAST))
    if given is None or weights is None or len(given) != 3 or len(weights) != 2:
        return "its input is not of rank 3, or its weights are not of rank 2"
    if past is not None and len(past) != 5:
        return f"its past has rank {len(past)}"
    heads, columns = int(op.attr("num_heads", 0)), weights[1].constant
    if columns is None:
        return f"it is not known how its {weights[1]} columns of weights are split"
    sizes: Sequence[int] = op.attr("qkv_hidden_sizes", None) or [columns // 3] * 3
    if len(sizes) != 3 or sizes[0] != sizes[1] or sum(sizes) != columns:
        return f"its {columns} columns of weights do not match queries, keys and values of {list(sizes)} features"
    found = head_sizes((Expr.of(sizes[0]), heads), (Expr.of(sizes[2]), heads))
    if isinstance(found, str):
        return found
    split = Expr.of(heads)
    length = ZERO if past is None else past[3]
    return AttentionDims(given[0], split, split, given[1], given[1], length, *found, joined=True)


def _present_dims(dims: AttentionDims) -> Dims:
    return (Expr.of(2), *dims.present(dims.head))


def _self_infer(ctx: InferContext) -> list[TensorInfo]:
    element, shapes = element_type(ctx), inferred_shapes(ctx)
    if shapes is None:
        return unknown_infos(ctx, element, None)
    equate_all(ctx, shapes, (0, 2), (WEIGHTS, 0))
    equate_all(ctx, shapes, (WEIGHTS, 1), (ATTENTION_BIAS, 0))
    equate_all(ctx, shapes, (0, 0), (PAST, 1))
    dims = _self_dims(ctx.op, inferred_shapes(ctx) or [])
    if isinstance(dims, str):
        return unknown_infos(ctx, element, (3, 5))
    mask = shape_at(shapes, MASK)
    if mask is not None and len(mask) in (2, 3) and mask[-1] != ONE:
        ctx.equate(mask[0], dims.batch)
        ctx.equate(mask[-1], dims.total)
    return [TensorInfo(element, dims.result), TensorInfo(element, _present_dims(dims))]


def _self_reason(op: OnnxOp) -> str | None:
    shapes = operand_shapes(op)
    dims = _self_dims(op, shapes)
    if isinstance(dims, str):
        return dims
    given, weights = operand_dims(op, 0), operand_dims(op, WEIGHTS)
    names = ("input", "weights", "bias", "mask", "past", "attention bias")
    wanted: dict[int, Dims] = {
        WEIGHTS: (given[2], weights[1]),
        ATTENTION_BIAS: (weights[1],),
        PAST: (Expr.of(2), dims.batch, dims.heads, dims.past, dims.head),
    }
    mask = shape_at(shapes, MASK)
    if mask is not None and _hides_nothing(mask):
        mask = None
    if int(op.attr("do_rotary", 0)) or int(op.attr("past_present_share_buffer", 0)):
        return "it rotates queries and keys, or its past and present share a buffer"
    outputs = op.outputs
    cached = operand(op, PAST) is not None or (len(outputs) > 1 and outputs[1] is not None)
    if cached and dims.head != dims.value_head:
        return "its keys and values in past and present have different sizes"
    return (
        dims_reason(shapes, names, wanted)
        or _padding_reason(mask, dims, (dims.batch, dims.batch * 2, dims.batch * 3 + 2))
        or _score_bias_reason(shape_at(shapes, ATTENTION_SCORE_BIAS), dims)
    )


def _hides_nothing(mask: Dims) -> bool:
    """True if a mask has one column: it masks all keys or none, with the same result."""
    return len(mask) == 2 and mask[1] == ONE


def _projected(ctx: Lowering) -> SSAValue:
    """Returns queries, keys and values side by side: [batch, position, columns]."""
    given, weights, bias = ctx.required(0), ctx.required(WEIGHTS), ctx.input(ATTENTION_BIAS)

    def point(nest: Nest, at: Subscripts, over: Subscripts) -> Scalar:
        return nest.read(given, [at[0], at[1], over[0]]) * nest.read(weights, [over[0], at[2]])

    batch, length, features = ctx.dims(0)
    dims, element = (batch, length, ctx.dims(WEIGHTS)[1]), element_of(given.type)
    made = ctx.generate(dims, point, over=[features], combiner="add", element=element, part="project")
    return with_bias(ctx, made, bias, ZERO, "bias")


def _self_present(ctx: Lowering, dims: AttentionDims, projected: SSAValue) -> SSAValue:
    """Returns past and new keys and values: [2, batch, heads, total, size]."""
    hidden, past = dims.heads * dims.head, ctx.input(PAST)

    def point(nest: Nest, at: Subscripts) -> Scalar:
        which, b, h, s, d = at
        later = s - dims.past
        column = hidden * (which + 1) + h * dims.head + d
        if past is None:
            return nest.read(projected, [b, s, column])
        value = nest.read(past, at, guards=[dims.past - 1 - s])
        return nest.read(projected, [b, later, column], guards=[later], otherwise=value)

    return ctx.generate(_present_dims(dims), point, part="present")


def _self_attention(ctx: Lowering) -> list[SSAValue | None]:
    dims = _self_dims(ctx.op, operand_shapes(ctx.op))
    if isinstance(dims, str):
        raise ctx.fail(dims)
    projected, hidden = _projected(ctx), dims.heads * dims.head
    query = Heads(projected, dims.queries, dims.head, joined=True)
    key = Heads(projected, dims.keys, dims.head, joined=True, first=hidden)
    value = Heads(projected, dims.keys, dims.value_head, joined=True, first=hidden * 2)
    present = None
    if ctx.wants(1) or ctx.input(PAST) is not None:
        present = _self_present(ctx, dims, projected)
    if present is not None and ctx.input(PAST) is not None:
        key = Heads(present, dims.total, dims.head, joined=False, lead=(ZERO,))
        value = Heads(present, dims.total, dims.value_head, joined=False, lead=(ONE,))
    mask = ctx.input(MASK)
    if mask is not None and _hides_nothing(dims_of(mask.type)):
        mask = None
    applied = _mask(ctx, dims, mask, ctx.input(ATTENTION_SCORE_BIAS))
    made = attend(ctx, Attention(dims, query, key, value, float_attr(ctx, "scale") or None, mask=applied))
    return [made.result, present]


def _self_macs(op: OnnxOp) -> Expr:
    """batch × heads × queries × keys × 2 × head size + rows × elements of the weights"""
    shapes = operand_shapes(op)
    dims, weights = sized(_self_dims(op, shapes)), shape_at(shapes, WEIGHTS)
    assert weights is not None
    return dims.macs + dims.batch * dims.queries * product(weights)


def _self_flops(op: OnnxOp) -> Expr:
    """2 × MACs + 14 × scores"""
    shapes = operand_shapes(op)
    dims = _self_dims(op, shapes)
    weights = shape_at(shapes, WEIGHTS)
    if isinstance(dims, str) or weights is None:
        return ONE
    return dims.flops + 2 * dims.batch * dims.queries * product(weights)


def _self_packs(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the weights of the projection."""
    return {WEIGHTS: (1, 0)}


SPECS: list[OpSpec] = [
    OpSpec(
        "com.microsoft.Attention",
        _self_infer,
        lower=_self_attention,
        legal=legal(computed_reason, _self_reason),
        macs=_self_macs,
        flops=_self_flops,
        packs=_self_packs,
        kind="contraction",
    ),
    OpSpec(
        "com.microsoft.MultiHeadAttention",
        _multi_head_infer,
        lower=_multi_head,
        legal=legal(computed_reason, _multi_head_reason),
        macs=_multi_head_macs,
        flops=_multi_head_flops,
        kind="contraction",
    ),
]
