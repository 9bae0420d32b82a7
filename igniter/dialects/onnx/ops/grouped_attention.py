"""GroupQueryAttention of com.microsoft: decoder attention over a cache filled to a different length for each batch
element.

The new keys and values are written at `seqlens_k + 1 - queries`, the end of a batch element's cache. A query sees its
own position and earlier ones. In a prompt padded at its end, queries do not see the padding, and padding queries see
the same keys as the last query.

Past and present may be longer than `total_sequence_length`: a caller who passes one buffer for all steps
(`past_present_share_buffer` of onnxruntime-genai) gives it the longest length. Attention covers the first
`total_sequence_length` rows, so time grows with the number of keys, not with the buffer. By its definition
`total_sequence_length` is the largest number of keys of a batch element; a run with more is an error.

A cache of a window (`sliding_window_cache`) holds the latest keys only: `windowed_cache.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.context import Subscripts
from igniter.dialects.onnx.ops.attention import heads_reason
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
    head_size,
    inferred_shapes,
    lowest,
    mask_reason,
    operand_shapes,
    read_by_key,
    shape_at,
    sized,
    unknown_infos,
)
from igniter.dialects.onnx.ops.pointwise import computed_reason, float_attr
from igniter.dialects.onnx.ops.quantized_cache import (
    KEY_SCALE,
    VALUE_SCALE,
    Codes,
    is_quantized,
    quantized_reason,
    row_size,
)
from igniter.dialects.onnx.ops.rotary import angle_at, rotated
from igniter.dialects.onnx.ops.rules import element_type, known, legal, operand, tidy
from igniter.dialects.onnx.ops.windowed_cache import Window, slides
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import FINE, Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

NAMES = (
    *("query", "key", "value", "past key", "past value", "lengths", "total length"),
    *("cosines", "sines", "positions", "attention bias", "head sink"),
)
PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK = range(3, 12)


# -- dims -------------------------------------------------------------------------------------------------------------


def _features(op: OnnxOp, shapes: Shapes) -> Expr | str:
    """Returns the features of a head; the query also has the heads of keys and values if these are packed."""
    query, heads = shape_at(shapes, 0), int(op.attr("num_heads", 0))
    if query is None or len(query) != 3:
        return "its query does not have rank 3"
    return head_size(query[2], heads + (2 * int(op.attr("kv_num_heads", 0)) if shape_at(shapes, 1) is None else 0))


def _dims(op: OnnxOp, shapes: Shapes, total: Dims | None, one_token: bool = False) -> AttentionDims | str:
    """Returns the sizes; `past` is the number of keys without the new ones. `total` is the total length, if known.
    `one_token`: for runs of at most one token."""
    query, key, past = (shape_at(shapes, k) for k in (0, 1, PAST_KEY))
    heads, shared = int(op.attr("num_heads", 0)), int(op.attr("kv_num_heads", 0))
    if query is None or len(query) != 3 or (key is not None and len(key) != 3):
        return "its query or its key does not have rank 3"
    if past is not None and len(past) != 4:
        return f"its past key has rank {len(past)}"
    size = _features(op, shapes)
    if isinstance(size, str):
        return size
    if total is None or len(total) != 1:
        return "its total sequence length is known only at run time, so the size of its present is unknown"
    buffer, keys = ZERO if past is None else past[2], total[0]
    split = Expr.of(heads), Expr.of(shared)
    if slides(op):
        # Attention covers the rows of the cache that hold keys, and the new ones, which are among them for one token.
        rows = minimum(buffer, keys) - query[1] if one_token else minimum(buffer, keys - query[1])
        return AttentionDims(query[0], *split, query[1], query[1], tidy(rows), size, size, joined=True, buffer=buffer)
    rows = None if is_nonneg(keys - buffer) else tidy(maximum(keys, buffer))
    return AttentionDims(query[0], *split, query[1], query[1], keys - query[1], size, size, joined=True, buffer=rows)


def _infer(ctx: InferContext) -> list[TensorInfo]:
    element, shapes = element_type(ctx), inferred_shapes(ctx)
    if shapes is None:
        return unknown_infos(ctx, element, None)
    equate_all(ctx, shapes, (0, 0), (1, 0), (2, 0), (PAST_KEY, 0), (PAST_VALUE, 0), (LENGTHS, 0))
    equate_all(ctx, shapes, (0, 1), (1, 1), (2, 1))
    equate_all(ctx, shapes, (PAST_KEY, 2), (PAST_VALUE, 2))
    equate_all(ctx, shapes, (COS, 0), (SIN, 0))
    _equate_features(ctx, shapes)
    shapes = inferred_shapes(ctx) or []
    dims = _dims(ctx.op, shapes, ctx.values(TOTAL))
    if not isinstance(dims, str):
        rows = dims.present(row_size(ctx.op, dims.head))
        return [TensorInfo(element, dims.result), *(TensorInfo(_cached_type(ctx), rows) for _ in range(2))]
    results, query = unknown_infos(ctx, element, (3, 4, 4)), shape_at(shapes, 0)
    results[1:] = [replace(info, element=_cached_type(ctx)) for info in results[1:]]
    if query is not None and shape_at(shapes, 1) is not None:
        results[0] = TensorInfo(element, query)
    return results


def _cached_type(ctx: InferContext) -> Attribute:
    return element_type(ctx) if operand(ctx.op, PAST_KEY) is None else element_type(ctx, PAST_KEY)


def _equate_features(ctx: InferContext, shapes: Shapes) -> None:
    """Records that a row of the cache has the features of a head, or their bytes. ONNX Runtime rejects other rows."""
    size = _features(ctx.op, shapes)
    if isinstance(size, str):
        return
    for cache in (shape_at(shapes, PAST_KEY), shape_at(shapes, PAST_VALUE)):
        if cache is not None and len(cache) == 4:
            ctx.equate(cache[3], row_size(ctx.op, size))


# -- legality ---------------------------------------------------------------------------------------------------------


def _reason(op: OnnxOp) -> str | None:
    shapes = operand_shapes(op)
    dims = _dims(op, shapes, known(op, TOTAL))
    if isinstance(dims, str):
        return dims
    hidden, past = dims.kv_heads * dims.head, shape_at(shapes, PAST_KEY)
    cached = (dims.batch, dims.kv_heads, past[2] if past is not None else ZERO, row_size(op, dims.head))
    wanted: dict[int, Dims] = {
        1: (dims.batch, dims.queries, hidden),
        2: (dims.batch, dims.queries, hidden),
        PAST_KEY: cached,
        PAST_VALUE: cached,
        LENGTHS: (dims.batch,),
        POSITIONS: (dims.batch, dims.queries),
        SINK: (dims.heads,),
    }
    reason = heads_reason(dims) or dims_reason(shapes, NAMES, wanted) or _form_reason(op) or _rotary_reason(op, dims)
    reason = reason or quantized_reason(op, PAST_KEY, dims)
    bias = shape_at(shapes, BIAS)
    return reason or (None if bias is None else mask_reason(bias, dims, "attention bias"))


def _form_reason(op: OnnxOp) -> str | None:
    """Returns the reason why ONNX Runtime keeps this form of the op; None if it has a kernel."""
    if (operand(op, 1) is None) != (operand(op, 2) is None) or (
        (operand(op, PAST_KEY) is None) != (operand(op, PAST_VALUE) is None)
    ):
        return "it has only one of a key and a value, or of a past key and a past value"
    if operand(op, LENGTHS) is None:
        return "it has no sequence lengths"
    outputs = op.outputs
    if len(outputs) > 3 and outputs[3] is not None:
        return "its scores are an output"
    if any(operand(op, k) is not None for k in range(VALUE_SCALE + 1, 17)):
        return "its keys are normalised, or its queries are padded"
    if slides(op) and (operand(op, PAST_KEY) is None or operand(op, BIAS) is not None):
        return "its cache slides, and it has no past, or a bias for keys that left the cache"
    window = int(op.attr("local_window_size", -1))
    if window == 0 or (slides(op) and (window < 0 or not int(op.attr("causal", 1)))):
        return "its window is empty, or its cache slides without one"
    return None


def _requires(op: OnnxOp) -> list[Requirement]:
    """Requires a cache that slides to have room for its window."""
    past = shape_at(operand_shapes(op), PAST_KEY)
    if not slides(op) or past is None:
        return []
    return [at_most(int(op.attr("local_window_size", -1)), past[2], "its cache has fewer rows than its window")]


def _rotary_reason(op: OnnxOp, dims: AttentionDims) -> str | None:
    if not int(op.attr("do_rotary", 0)):
        return None
    tables = [operand(op, k) for k in (COS, SIN)]
    shapes = [dims_of(t.type) for t in tables if t is not None]
    width = shapes[0][-1].constant if len(shapes) == 2 and shapes[0] == shapes[1] and len(shapes[0]) == 2 else None
    if not width or 2 * width > (dims.head.constant or 0):
        return "its cosines and sines are not known to match pairs of its features"
    return None


# -- lowering ---------------------------------------------------------------------------------------------------------


def _before(ctx: Lowering, dims: AttentionDims) -> Callable[[Nest, Expr], Scalar]:
    """Returns a function that reads the number of keys of batch element `b` before the new ones: none at the start of a
    prompt, padded or not."""
    lengths = ctx.required(LENGTHS)

    def before(nest: Nest, b: Expr) -> Scalar:
        return (nest.read(lengths, [b]).to(i64) + nest.index(ONE - dims.queries)).maximum(0)

    return before


def _present(ctx: Lowering, dims: AttentionDims, past: SSAValue | None, new: Heads, part: str) -> SSAValue:
    """Returns the past, the new keys or values after it, and zeros up to the end of the buffer."""
    return appended(ctx, dims.present(new.size), past, new, _before(ctx, dims), part)


def appended(
    ctx: Lowering, shape: Dims, past: SSAValue | None, new: Heads, before: Callable[[Nest, Expr], Scalar], part: str
) -> SSAValue:
    """Returns the first `before` rows of the past of each batch element, the new ones after them, and zeros."""

    def point(nest: Nest, at: Subscripts) -> Scalar:
        b, h, s, d = at
        end, name = before(nest, b), Expr.of("_0")
        later = s - name
        value: Scalar | None = None
        if past is not None:
            # A length beyond the past must not be read; ONNX Runtime rejects it.
            guards = [name - 1 - s, dims_of(past.type)[2] - 1 - s]
            value = nest.read(past, at, guards=guards, indices=[end])
        guards = [later, new.length - 1 - later]
        subscripts = new.subscripts(b, h, later, d)
        return nest.read(new.tensor, subscripts, guards=guards, otherwise=value, indices=[end])

    return ctx.generate(shape, point, element=element_of(new.tensor.type), part=part)


def _check_lengths(ctx: Lowering, dims: AttentionDims) -> None:
    """Makes a run end with an error if a batch element has more keys than `total_sequence_length`. In a present of that
    length the additional keys have no rows."""
    lengths = ctx.required(LENGTHS)
    total = (ctx.values(TOTAL) or (dims.total,))[0]
    if dims.buffer is None:
        return

    def wrong(nest: Nest, _: Subscripts, at: Subscripts) -> Scalar:
        length = nest.read(lengths, at).to(i64)
        return (length >= nest.index(total)).select(length, nest.const(FINE, i64))

    found = ctx.generate([], wrong, over=dims_of(lengths.type), combiner="max", element=i64, part="check")
    ctx.check(found, "an element of seqlens_k is not less than total_sequence_length", (-ONE, total - 1))


def _mask(ctx: Lowering, dims: AttentionDims, cached: Window | None) -> Mask:
    """Returns the mask of a query: it sees the keys of its batch element up to its own, within the window. No bias of
    the others brings a hidden key back, as in ONNX Runtime."""
    before, bias, lengths = _before(ctx, dims), ctx.input(BIAS), ctx.required(LENGTHS)
    window = int(ctx.attr("local_window_size", -1))
    causal = int(ctx.attr("causal", 1)) == 1

    def mask(nest: Nest, at: Point, score: Scalar) -> Scalar:
        value = score if bias is None else score + read_by_key(nest, bias, at, dims, lowest(score.element))
        key, last = nest.index(at.j), nest.read(lengths, [at.b]).to(i64)
        first = before(nest, at.b)
        if cached is not None:
            # Rows of the cache, in the place of positions.
            first, last = cached.before(nest, at.b), last - first + cached.before(nest, at.b)
        own = nest.index(at.i) + first
        seen = key <= (own.minimum(last) if causal else last)
        if causal and window > 0:
            seen = seen & (key > own - window)
        return seen.select(value, -math.inf)

    return mask


def _operands(ctx: Lowering, dims: AttentionDims) -> tuple[Heads, Heads, Heads]:
    """Returns queries, keys and values: three operands, or columns of one."""
    query, key, value = ctx.required(0), ctx.input(1), ctx.input(2)

    def heads(tensor: SSAValue, first: Expr) -> Heads:
        return Heads(tensor, dims.queries, dims.head, joined=True, first=first)

    if key is not None and value is not None:
        return heads(query, ZERO), heads(key, ZERO), heads(value, ZERO)
    columns = dims.heads * dims.head, (dims.heads + dims.kv_heads) * dims.head
    return heads(query, ZERO), heads(query, columns[0]), heads(query, columns[1])


def _position(ctx: Lowering, dims: AttentionDims) -> Callable[[Nest, Expr, Expr], Scalar | Expr]:
    """Returns a function that reads the position of new key `s` of batch element `b`. Of given positions, ONNX Runtime
    takes the first one of the batch for a first prompt, and counts from there."""
    before, given, total = _before(ctx, dims), ctx.input(POSITIONS), ctx.values(TOTAL)

    def position(nest: Nest, b: Expr, s: Expr) -> Scalar:
        if given is None:
            return before(nest, b) + nest.index(s)
        own = nest.read(given, [b, s])
        if total is None or total[0] == dims.queries:
            return nest.read(given, [ZERO, ZERO]) + nest.index(s)
        prompt = nest.index(total[0]).eq(nest.index(dims.queries))
        return prompt.select(nest.read(given, [ZERO, ZERO]) + nest.index(s), own)

    return position


def _sink(ctx: Lowering, dims: AttentionDims) -> SSAValue | float | None:
    """Returns the score that adds to the sum of a softmax and has no value: one of each head, or 0."""
    given = ctx.input(SINK)
    if given is not None:
        return ctx.view(given, (ONE, dims.heads, ONE, ONE))
    return 0.0 if int(ctx.attr("smooth_softmax", 0)) > 0 else None


def _lower(ctx: Lowering) -> list[SSAValue | None]:
    dims = _dims(ctx.op, operand_shapes(ctx.op), ctx.values(TOTAL), ctx.kernel.one_token)
    if isinstance(dims, str):
        raise ctx.fail(dims)
    query, key, value = _operands(ctx, dims)
    _check_lengths(ctx, dims)
    if int(ctx.attr("do_rotary", 0)):
        tables = ctx.required(COS), ctx.required(SIN)
        angle = angle_at(*tables, _position(ctx, dims))
        pairs, interleaved = dims_of(tables[0].type)[1], int(ctx.attr("rotary_interleaved", 0)) == 1
        query = rotated(ctx, query, dims.heads, pairs, interleaved, angle, "query")
        key = rotated(ctx, key, dims.kv_heads, pairs, interleaved, angle, "key")
    codes = [Codes.of(ctx, k) for k in (KEY_SCALE, VALUE_SCALE)] if is_quantized(ctx.op) else []
    if codes:
        named = zip(codes, (key, value), ("key_codes", "value_codes"), strict=True)
        key, value = (each.quantized(ctx, dims, new, part) for each, new, part in named)
    pasts = (ctx.input(PAST_KEY), key, "present_key"), (ctx.input(PAST_VALUE), value, "present_value")
    cached = Window.of(ctx, dims, ctx.required(LENGTHS)) if slides(ctx.op) else None
    if cached is not None and cached.one_token:
        assert pasts[0][0] is not None and pasts[1][0] is not None
        presents = seen = [cached.updated(ctx, past, new, dims.total, part) for past, new, part in pasts if past]
    elif cached is None:
        presents = seen = [_present(ctx, dims, *past) for past in pasts]
    else:
        shape = (*dims.present(dims.head)[:2], dims.total, key.size)
        seen = [appended(ctx, shape, past, new, cached.before, f"{part}.rows") for past, new, part in pasts]
        presents = [cached.present(ctx, rows, part) for rows, (_, _, part) in zip(seen, pasts, strict=True)]
    if codes:
        query = codes[0].scaled(ctx, dims, query)
        named = zip(codes, seen, ("keys", "values"), strict=True)
        seen = [each.numbers(ctx, dims, made, part) for each, made, part in named]
    key, value = (
        replace(new, tensor=made, size=dims.head, length=dims.total, joined=False, first=ZERO)
        for new, made in zip((key, value), seen, strict=True)
    )
    scale, softcap = float_attr(ctx, "scale") or None, float_attr(ctx, "softcap")
    # Padding farther from the last query than the window is fully masked.
    fully_masked = lowest(ctx.element(0)) if int(ctx.attr("local_window_size", -1)) > 0 else None
    mask, sink = _mask(ctx, dims, cached), _sink(ctx, dims)
    unscaled = partial(codes[1].unscaled, ctx, dims) if codes else None
    given = Attention(dims, query, key, value, scale, softcap, mask, fully_masked, sink, unscaled)
    return [attend(ctx, given).result, *presents]


def _macs(op: OnnxOp) -> Expr:
    """batch × heads × queries × keys × (head size + head size of the values)"""
    return sized(_dims(op, operand_shapes(op), known(op, TOTAL))).macs


def _flops(op: OnnxOp) -> Expr:
    """2 × MACs + 14 × scores"""
    dims = _dims(op, operand_shapes(op), known(op, TOTAL))
    return ONE if isinstance(dims, str) else dims.flops


SPECS: list[OpSpec] = [
    OpSpec(
        "com.microsoft.GroupQueryAttention",
        _infer,
        lower=_lower,
        legal=legal(computed_reason, _reason),
        requires=_requires,
        macs=_macs,
        flops=_flops,
        kind="contraction",
    ),
]
