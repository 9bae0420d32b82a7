"""Ops with data-dependent result sizes: NonZero, Compress, NonMaxSuppression (docs/explanation/values.md).

ONNX nodes or a counting node count the results first; the carrier holds the count, and the bound node fills a result of
this size. It never stores out of bounds, whatever it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.bound import BOUND_DOMAIN, COUNT_DOMAIN
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, normal_axis, operand_dims
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, minimum, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.procedure import Procedure, Variable

# -- NonZero ----------------------------------------------------------------------------------------------------------


def _infer_non_zero(ctx: InferContext) -> list[TensorInfo]:
    dims, values = input_dims(ctx, 0), input_dims(ctx, 1)
    return infos(i64, None if dims is None or values is None else [len(dims), values[1]])


def _lower_non_zero(ctx: Lowering) -> list[SSAValue]:
    dims = ctx.dims(0)
    p = ctx.procedure([ctx.required(0)], [ctx.output_type()])
    source, target = p.buffers
    found = p.variable(p.const(0, i64), "found")
    with p.in_order(dims) as at, p.when(p.load(source, at).to(i1)):
        here = found.get()
        for k, place in enumerate(at):
            p.store(p.index(place), target, [Expr.of(k), here])
        found.set(here + 1)
    return list(p.end())


# -- Compress ---------------------------------------------------------------------------------------------------------


def _infer_compress(ctx: InferContext) -> list[TensorInfo]:
    dims, values, axis = input_dims(ctx, 0), input_dims(ctx, 2), ctx.op.attributes.get("axis")
    if dims is None or values is None:
        return infos(element_type(ctx), None)
    if axis is None:
        return infos(element_type(ctx), values[1:])
    at = normal_axis(int(ctx.op.attr("axis")), len(dims))
    return infos(element_type(ctx), [*dims[:at], values[1], *dims[at + 1 :]])


def _compressed(op: OnnxOp) -> Expr:
    """Returns the maximum length of the condition."""
    dims = operand_dims(op, 0)
    axis = op.attributes.get("axis")
    return product(dims) if axis is None else dims[normal_axis(int(op.attr("axis")), len(dims))]


def _compress_requires(op: OnnxOp) -> list[Requirement]:
    """Limits the length of the condition. A shorter one is valid; with constant sizes, excess elements are ignored."""
    places, given = _compressed(op), operand_dims(op, 1)[0]
    if places.constant is not None and given.constant is not None:
        return []
    return [at_most(given, places, "its condition is longer than its input")]


def _lower_compress(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    flat = ctx.op.attributes.get("axis") is None
    axis = 0 if flat else normal_axis(int(ctx.attr("axis")), len(dims))
    count = ctx.out_dims()[axis]
    p = ctx.procedure([ctx.required(1)], [tensor_of(i64, [count])], part="places")
    condition, places = p.buffers
    found = p.variable(p.const(0, i64), "found")
    with p.sequential(minimum(ctx.dims(1)[0], _compressed(ctx.op))) as t, p.when(p.load(condition, [t])):
        p.store(p.index(t), places, [found.get()])
        found.set(found.get() + 1)
    (taken,) = p.end()
    source = ctx.view(x, [product(dims)]) if flat else x

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read_inside(source, [*i[:axis], nest.read(taken, [i[axis]]), *i[axis + 1 :]])

    return [ctx.generate(ctx.out_dims(), point)]


# -- NonMaxSuppression ------------------------------------------------------------------------------------------------


def _equate_boxes(ctx: InferContext) -> None:
    """Equates one score with each box of four coordinates."""
    boxes, scores = input_dims(ctx, 0), input_dims(ctx, 1)
    if boxes is not None and scores is not None and len(boxes) == len(scores) == 3:
        for a, b in ((boxes[2], Expr.of(4)), (boxes[0], scores[0]), (boxes[1], scores[2])):
            ctx.equate(a, b)


def _infer_count(ctx: InferContext) -> list[TensorInfo]:
    _equate_boxes(ctx)
    return infos(i64, [ONE])


def _infer_suppression(ctx: InferContext) -> list[TensorInfo]:
    _equate_boxes(ctx)
    values = input_dims(ctx, 5)
    return infos(i64, None if values is None else [values[1], 3])


def _suppression_reason(op: OnnxOp) -> str | None:
    boxes, scores = operand_dims(op, 0), operand_dims(op, 1)
    if len(boxes) != 3 or len(scores) != 3 or boxes[2] != Expr.of(4):
        return "its boxes or scores do not have rank 3, or a box does not have four numbers"
    if boxes[0] != scores[0] or boxes[1] != scores[2]:
        return "it is not known to have a score for each box"
    return None if all(element_of(op.operands[k].type) == f32 for k in (0, 1)) else "its boxes are not f32"


def _corners(p: Procedure, boxes: SSAValue, batch: Expr, box: Scalar | Expr, centred: bool) -> tuple[Scalar, ...]:
    """Returns the least and greatest coordinates of a box along both axes."""
    a, b, c, d = (p.load(boxes, [batch, box, Expr.of(k)]) for k in range(4))
    if centred:
        wide, high = c / 2, d / 2
        return a - wide, a + wide, b - high, b + high
    return b.minimum(d), b.maximum(d), a.minimum(c), a.maximum(c)


def _overlaps(one: Sequence[Scalar], other: Sequence[Scalar], threshold: Scalar) -> Scalar:
    """Returns true if the intersection of two boxes exceeds `threshold` of their union, computed in ONNX Runtime's
    order."""
    wide = one[1].minimum(other[1]) - one[0].maximum(other[0])
    high = one[3].minimum(other[3]) - one[2].maximum(other[2])
    both = wide * high
    areas = [(box[1] - box[0]) * (box[3] - box[2]) for box in (one, other)]
    union = areas[0] + areas[1] - both
    there = (wide > 0) & (high > 0) & (both > 0) & (areas[0] > 0) & (areas[1] > 0) & (union > 0)
    return there & (both / union > threshold)


def _suppress(ctx: Lowering, p: Procedure, keep: Callable[[Expr, Expr, Scalar], None]) -> None:
    """Calls `keep` for every selected box: in the order of scores, ties in the order of boxes, each box without overlap
    with an earlier selected one."""
    given = [ctx.input(k) for k in range(5)]
    buffers = iter(p.buffers)
    boxes, scores, limits, overlap, least = (next(buffers) if v is not None else None for v in given)
    assert boxes is not None and scores is not None
    batches, classes, count = ctx.dims(1)
    centred = bool(ctx.attr("center_point_box", 0))

    def scalar(buffer: SSAValue | None, otherwise: Scalar) -> Scalar:
        return otherwise if buffer is None else p.load(buffer, [ZERO] * len(dims_of(buffer.type)))

    limit, threshold = scalar(limits, p.const(0, i64)), scalar(overlap, p.const(0.0, f32))
    with p.sequential(batches) as b, p.sequential(classes) as c:
        chosen = p.local(i64, [count], "chosen")
        open_ = p.local(i64, [count], "open")
        with p.loop(count) as j:
            here = p.const(1, i64)
            if least is not None:
                here = (p.load(scores, [b, c, j]) > scalar(least, p.const(0.0, f32))).select(here, p.const(0, i64))
            p.store(here, open_, [j])
        number = p.variable(p.const(0, i64), "number")
        going = p.variable((limit > 0).select(p.const(1, i64), p.const(0, i64)), "going")
        with p.sequential(count, going=going):
            best = _best(p, scores, open_, (b, c), count)
            going.set((best >= 0).select(p.const(1, i64), p.const(0, i64)))
            with p.when(best >= 0):
                p.store(0, open_, [best])
                box = _corners(p, boxes, b, best, centred)
                free = p.variable(p.const(1, i64), "free")
                with p.sequential(number.get(), going=free) as k:
                    other = _corners(p, boxes, b, p.load(chosen, [p.index(k)]), centred)
                    free.set(_overlaps(box, other, threshold).select(p.const(0, i64), p.const(1, i64)))
                with p.when(free.get().ne(0)):
                    p.store(best, chosen, [number.get()])
                    keep(b, c, best)
                    number.set(number.get() + 1)
                    going.set((number.get() < limit).select(p.const(1, i64), p.const(0, i64)))


def _best(p: Procedure, scores: SSAValue, open_: SSAValue, at: tuple[Expr, Expr], count: Expr) -> Scalar:
    """Returns the first open box with the greatest score; -1 if none is open."""
    best: Variable = p.variable(p.const(-1, i64), "best")
    top: Variable = p.variable(p.const(0.0, f32), "top")
    with p.sequential(count) as j:
        score = p.load(scores, [*at, j])
        better = (best.get() < 0) | (score > top.get())
        with p.when(p.load(open_, [j]).ne(0) & better):
            best.set(p.index(j))
            top.set(score)
    return best.get()


def _given(ctx: Lowering) -> list[SSAValue]:
    return [v for v in (ctx.input(k) for k in range(5)) if v is not None]


def _count_boxes(ctx: Lowering) -> list[SSAValue]:
    p = ctx.procedure(_given(ctx), [ctx.output_type()], part="count")
    total = p.variable(p.const(0, i64), "total")
    _suppress(ctx, p, lambda b, c, box: total.set(total.get() + 1))
    p.store(total.get(), p.buffers[-1], [ZERO])
    return list(p.end())


def _select_boxes(ctx: Lowering) -> list[SSAValue]:
    p = ctx.procedure(_given(ctx), [ctx.output_type()])
    total = p.variable(p.const(0, i64), "total")

    def keep(batch: Expr, class_: Expr, box: Scalar) -> None:
        for k, value in enumerate((p.index(batch), p.index(class_), box)):
            p.store(value, p.buffers[-1], [total.get(), Expr.of(k)])
        total.set(total.get() + 1)

    _suppress(ctx, p, keep)
    return list(p.end())


def suppression_flops(op: OnnxOp) -> Expr:
    """4 × batch × classes × boxes × boxes: every pair is compared"""
    batches, classes, count = operand_dims(op, 1)
    return batches * classes * count * count * 4


SPECS: list[OpSpec] = [
    OpSpec(
        f"{BOUND_DOMAIN}.Compress",
        _infer_compress,
        lower=_lower_compress,
        legal=legal(),
        requires=_compress_requires,
        kind="movement",
    ),
    OpSpec(
        f"{BOUND_DOMAIN}.NonMaxSuppression",
        _infer_suppression,
        lower=_select_boxes,
        legal=legal(_suppression_reason),
        flops=suppression_flops,
        kind="reduction",
    ),
    OpSpec(f"{BOUND_DOMAIN}.NonZero", _infer_non_zero, lower=_lower_non_zero, legal=legal(computed_reason)),
    OpSpec(
        f"{COUNT_DOMAIN}.NonMaxSuppression",
        _infer_count,
        lower=_count_boxes,
        legal=legal(_suppression_reason),
        flops=suppression_flops,
        kind="reduction",
    ),
]
