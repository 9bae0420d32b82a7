"""Rotary position embeddings of ONNX and of ONNX Runtime: pairs of features of a head rotated by an angle per position.

The two features of a pair are an axis of extent 2. Feature `p` becomes `x[p]*cos ± x[1 - p]*sin`, so one nest computes
both, and vectors run along the other features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.context import Subscripts
from igniter.dialects.onnx.ops.attention_nests import Heads, head_size
from igniter.dialects.onnx.ops.indexing import read_at
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import elementwise_flops
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, InferRule, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv
from igniter.dialects.sym.requirements import Requirement, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

Angle = Callable[[Nest, Expr, Expr, Expr], tuple[Scalar, Scalar]]
"""A function from pair `d`, position `s` and batch element `b` to cosine and sine."""


def rotated(
    ctx: Lowering, x: Heads, heads: Expr, pairs: Expr, interleaved: bool, angle: Angle, part: str = ""
) -> Heads:
    """Returns the heads with their first `2*pairs` features rotated and the others unchanged, in the same layout."""
    dims = dims_of(x.tensor.type)
    outer = (dims[0], dims[1], heads) if x.joined else dims[:3]
    whole = pairs * 2 == x.size
    nest = ctx.nest(part if whole else f"{part}_turned".strip("_"))
    first, second, third = nest.axes(outer)
    b, h, s = (first, third, second) if x.joined else (first, second, third)
    lanes = (pairs, Expr.of(2)) if interleaved else (Expr.of(2), pairs)
    if interleaved:
        d = nest.parallel(pairs)
        p = nest.parallel(2)
    else:
        p = nest.parallel(2)
        d = nest.parallel(pairs)

    def feature(which: Expr) -> Expr:
        return d * 2 + which if interleaved else which * pairs + d

    cos, sin = angle(nest, b, s, d)
    own, other = (x.read(nest, b, h, s, feature(k)) for k in (p, ONE - p))
    turned = other * sin
    value = own * cos + nest.index(p).eq(0).select(-turned, turned)
    places = [d, p] if interleaved else [p, d]
    target = tensor_of(element_of(x.tensor.type), (*outer, *lanes))
    (made,) = nest.finish(("none", value, [first, second, third, *places], target))
    if not whole:
        made = _with_rest(ctx, ctx.view(made, (*outer, pairs * 2)), x, part)
    tensor = ctx.view(made, (dims[0], dims[1], heads * x.size) if x.joined else dims)
    return Heads(tensor, x.length, x.size, x.joined)


def _with_rest(ctx: Lowering, turned: SSAValue, x: Heads, part: str) -> SSAValue:
    """Returns the rotated features followed by the unrotated ones."""
    outer, size = dims_of(turned.type)[:3], dims_of(turned.type)[3]

    def point(nest: Nest, at: Subscripts) -> Scalar:
        b, h, s = (at[0], at[2], at[1]) if x.joined else (at[0], at[1], at[2])
        rest = nest.read(x.tensor, x.subscripts(b, h, s, at[3]), guards=[at[3] - size])
        return nest.read(turned, at, guards=[size - 1 - at[3]], otherwise=rest)

    return ctx.generate((*outer, x.size), point, element=element_of(turned.type), part=part)


def angle_at(cos: SSAValue, sin: SSAValue, position: Callable[[Nest, Expr, Expr], Scalar | Expr]) -> Angle:
    """Returns the angles from tables with a row per position; 0 for a position without a row (an error in ONNX
    Runtime)."""

    def angle(nest: Nest, b: Expr, s: Expr, d: Expr) -> tuple[Scalar, Scalar]:
        row = position(nest, b, s)
        return read_at(nest, cos, dims_of(cos.type), [row, d]), read_at(nest, sin, dims_of(sin.type), [row, d])

    return angle


# -- the ops ----------------------------------------------------------------------------------------------------------


def _places(op: OnnxOp) -> tuple[int, int, int]:
    """Returns the indices of the operands for positions, cosines and sines."""
    return (1, 2, 3) if op.domain else (3, 1, 2)


def _heads(op: OnnxOp) -> tuple[Expr, Expr] | str:
    """Returns the number of heads and their features; or the reason why they are unknown."""
    dims, cos = operand_dims(op, 0), operand_dims(op, _places(op)[1])
    if len(dims) == 4:
        return dims[1], dims[3]
    if len(dims) != 3 or not cos:
        return "its input does not have rank 3 or 4"
    heads, width = int(op.attr("num_heads", 0)), cos[-1].constant
    if heads:
        size = head_size(dims[2], heads)
        return size if isinstance(size, str) else (Expr.of(heads), size)
    if not op.domain or not width or int(op.attr("rotary_embedding_dim", 0)) or dims[2].constant is None:
        return "it has no attribute for its number of heads"
    count = floordiv(dims[2], Expr.of(2 * width))
    return (count, Expr.of(2 * width)) if dims[2].constant % (2 * width) == 0 else "its number of heads is not known"


def _pairs(op: OnnxOp, size: Expr) -> Expr:
    turned = int(op.attr("rotary_embedding_dim", 0))
    return floordiv(Expr.of(turned) if turned else size, Expr.of(2))


def _reason(op: OnnxOp) -> str | None:
    found = _heads(op)
    if isinstance(found, str):
        return found
    turned = int(op.attr("rotary_embedding_dim", 0))
    size = found[1].constant
    if not size or size % 2 or turned % 2 or not 0 <= turned <= size:
        return f"{turned or found[1]} of the {found[1]} features of a head are not known to form pairs"
    if op.domain and (int(op.attr("is_packed_batching", 0)) or float(op.attr("scale", 1.0)) != 1.0):
        return "its batch is packed, or its positions are scaled"
    return _tables_reason(op, Expr.of((turned or size) // 2))


def _tables_reason(op: OnnxOp, pairs: Expr) -> str | None:
    dims, (positions, *tables) = operand_dims(op, 0), _places(op)
    rows = (dims[0], dims[2] if len(dims) == 4 else dims[1])
    for table in tables:
        have = operand_dims(op, table)
        wanted: tuple[Dims, ...] = ((*rows, pairs),) if operand(op, positions) is None else ((have[0], pairs),)
        if have not in wanted:
            return f"its cosines and sines of dims [{', '.join(map(str, have))}] are not known to match {pairs} pairs"
    if operand(op, positions) is None:
        return None
    have = operand_dims(op, positions)
    if have == rows or (op.domain and have == (ONE,)):
        return None
    return f"its positions of dims [{', '.join(map(str, have))}] are not known to match its input"


def _requires(op: OnnxOp) -> list[Requirement]:
    cos, sin = (operand_dims(op, table) for table in _places(op)[1:])
    return [equal(a, b, "its cosines and sines do not have the same shape") for a, b in zip(cos, sin, strict=True)]


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims, positions = input_dims(ctx, 0), input_dims(ctx, _places(ctx.op)[0])
    if dims is not None and len(dims) in (3, 4) and positions is not None and len(positions) == 2:
        ctx.equate(dims[0], positions[0])
        ctx.equate(dims[-2] if len(dims) == 4 else dims[1], positions[1])
    return [TensorInfo(element_type(ctx), input_dims(ctx, 0))]


def _lower(ctx: Lowering) -> list[SSAValue]:
    found = _heads(ctx.op)
    if isinstance(found, str):
        raise ctx.fail(found)
    heads, size = found
    dims = ctx.dims(0)
    where, cos, sin = _places(ctx.op)
    x = Heads(ctx.required(0), dims[1] if len(dims) == 3 else dims[2], size, joined=len(dims) == 3)
    positions, tables = ctx.input(where), (ctx.required(cos), ctx.required(sin))
    if positions is not None:
        # A single position belongs to the first element of the sequence.
        behind = x.length - 1 if len(dims_of(positions.type)) == 1 else 0
        text = "position_ids are out of the range of the cosines"
        ctx.check_indices(positions, dims_of(tables[0].type)[0] - behind, text, negative=False)

    def by_batch(nest: Nest, b: Expr, s: Expr, d: Expr) -> tuple[Scalar, Scalar]:
        return nest.read(tables[0], [b, s, d]), nest.read(tables[1], [b, s, d])

    def position(nest: Nest, b: Expr, s: Expr) -> Scalar:
        assert positions is not None
        if len(dims_of(positions.type)) == 1:
            return nest.read(positions, [Expr.of(0)]) + nest.index(s)
        return nest.read(positions, [b, s])

    angle = by_batch if positions is None else angle_at(*tables, position)
    interleaved = int(ctx.attr("interleaved", 0)) == 1
    return [rotated(ctx, x, heads, _pairs(ctx.op, size), interleaved, angle).tensor]


# -- MRotaryEmbedding -------------------------------------------------------------------------------------------------


def _stream_sizes(op: OnnxOp) -> list[int]:
    sizes: list[int] = op.attr("mrope_section") or []
    return [int(v) for v in sizes]


def _stream_reason(op: OnnxOp) -> str | None:
    found = _heads(op)
    if isinstance(found, str):
        return found
    turned, size = int(op.attr("rotary_embedding_dim", 0)), found[1].constant
    if not size or size % 2 or turned % 2 or not 0 <= turned <= size:
        return f"{turned or found[1]} of the {found[1]} features of a head are not known to form pairs"
    if int(op.attr("is_packed_batching", 0)) or float(op.attr("scale", 1.0)) != 1.0:
        return "its batch is packed, or its positions are scaled"
    pairs, sizes = (turned or size) // 2, _stream_sizes(op)
    if len(sizes) != 3 or sum(sizes) != pairs or int(op.attr("mrope_layout", 0)) not in (0, 1):
        return f"its sections {sizes} do not add up to {pairs} pairs"
    if any(operand_dims(op, k)[1:] != (Expr.of(pairs),) for k in (2, 3)) or operand_dims(op, 2) != operand_dims(op, 3):
        return f"its cosines and sines are not known to match {pairs} pairs"
    dims = operand_dims(op, 0)
    rows = (dims[0], dims[2] if len(dims) == 4 else dims[1])
    return None if operand_dims(op, 1) == (Expr.of(3), *rows) else "its positions are not known to match its input"


def _lower_streams(ctx: Lowering) -> list[SSAValue]:
    """Rotates every pair by its position in time, height or width."""
    found = _heads(ctx.op)
    if isinstance(found, str):
        raise ctx.fail(found)
    heads, size = found
    dims, (_, rows, columns) = ctx.dims(0), _stream_sizes(ctx.op)
    first = _stream_sizes(ctx.op)[0]
    x = Heads(ctx.required(0), dims[1] if len(dims) == 3 else dims[2], size, joined=len(dims) == 3)
    positions, tables = ctx.required(1), (ctx.required(2), ctx.required(3))
    text = "position_ids are out of the range of the cosines"
    ctx.check_indices(positions, dims_of(tables[0].type)[0], text, negative=False)

    def stream(nest: Nest, d: Expr) -> Scalar:
        place = nest.index(d)
        if not int(ctx.attr("mrope_layout", 0)):
            return (place < first).select(nest.index(0), (place < first + rows).select(nest.index(1), nest.index(2)))
        turn = place.rem(3)
        high, wide = turn.eq(1) & (place < 3 * rows), turn.eq(2) & (place < 3 * columns)
        return high.select(nest.index(1), wide.select(nest.index(2), nest.index(0)))

    def turn_of(table: SSAValue, part: str) -> SSAValue:
        """Returns the cosine or the sine of every pair at every position, shared by all heads."""

        def point(nest: Nest, i: Subscripts) -> Scalar:
            at = nest.read_inside(positions, [stream(nest, i[2]), *i[:2]])
            return read_at(nest, table, dims_of(table.type), [at, i[2]])

        shape = (*dims_of(positions.type)[1:], _pairs(ctx.op, size))
        return ctx.generate(shape, point, element=element_of(table.type), part=part)

    turns = [turn_of(table, part) for table, part in zip(tables, ("cos", "sin"), strict=True)]

    def angle(nest: Nest, b: Expr, s: Expr, d: Expr) -> tuple[Scalar, Scalar]:
        return nest.read(turns[0], [b, s, d]), nest.read(turns[1], [b, s, d])

    interleaved = int(ctx.attr("interleaved", 0)) == 1
    return [rotated(ctx, x, heads, _pairs(ctx.op, size), interleaved, angle).tensor]


def _infer_streams(ctx: InferContext) -> list[TensorInfo]:
    dims, positions = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is not None and len(dims) in (3, 4) and positions is not None and len(positions) == 3:
        ctx.equate(dims[0], positions[1])
        ctx.equate(dims[-2] if len(dims) == 4 else dims[1], positions[2])
    return [TensorInfo(element_type(ctx), input_dims(ctx, 0))]


def _spec(
    name: str, infer: InferRule = _infer, lower: LowerRule = _lower, reason: Callable[[OnnxOp], str | None] = _reason
) -> OpSpec:
    return OpSpec(
        name,
        infer,
        lower=lower,
        legal=float_legal(reason),
        requires=_requires,
        flops=elementwise_flops(4),
        kind="elementwise",
    )


SPECS: list[OpSpec] = [
    _spec("RotaryEmbedding"),
    _spec("com.microsoft.MRotaryEmbedding", _infer_streams, _lower_streams, _stream_reason),
    _spec("com.microsoft.RotaryEmbedding"),
]
