"""Ops that write at indices from another tensor: Scatter, ScatterElements, ScatterND, TensorScatter, MaxUnpool.

Updates are applied in row-major order: of several to one element the last one wins, or they are combined in order, each
result rounded to the elements' type. Negative indices count from the end. An out-of-bounds update is skipped; an index
out of range ends the run with an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.loop import ScatterAttr
from igniter.dialects.onnx.ops.rules import (
    element_type,
    equate_length,
    infos,
    input_dims,
    known,
    legal,
    normal_axis,
    operand,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, product
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

REDUCTIONS = ("none", "add", "mul", "max", "min")


def counted_from_front(p: Procedure | Nest, index: Scalar, dim: Expr) -> Scalar:
    """Returns an index as an i64, counted from the front."""
    wide = index.to(i64)
    return wide if index.is_unsigned else (wide < 0).select(wide + p.index(dim), wide)


def update(p: Procedure, reduction: str, value: Scalar, target: SSAValue, at: Sequence[Expr | Scalar]) -> None:
    """Writes one update, or combines it with the old value. The old value remains only if it compares better, so with a
    NaN the later value wins, as in ONNX Runtime."""
    if reduction == "none":
        p.store(value, target, at)
        return
    old, new = p.load(target, at).widened(), value.widened()
    if reduction == "add":
        made = (old | new) if old.is_bool else old + new
    elif reduction == "mul":
        made = (old & new) if old.is_bool else old * new
    else:
        better = old > new if reduction == "max" else old < new
        made = better.select(old, new)
    p.store(made, target, at)


def _infer_like_data(ctx: InferContext) -> list[TensorInfo]:
    return infos(element_type(ctx), input_dims(ctx, 0))


# -- Scatter, ScatterElements -----------------------------------------------------------------------------------------


def lower_scatter_elements(ctx: Lowering) -> list[SSAValue]:
    """Uses the dims before the axis as points; updates along the axis are in order; those after it are contiguous and
    independent."""
    dims, given = ctx.dims(0), ctx.dims(1)
    axis = normal_axis(ctx.attr("axis", 0), len(dims))
    ctx.check_indices(ctx.required(1), dims[axis])
    p = ctx.procedure([ctx.required(k) for k in range(3)], [ctx.output_type()])
    data, indices, updates, target = p.buffers
    points = [p.parallel(d) for d in dims[:axis]]
    p.copy(data, target, [*points, *[None] * (len(dims) - axis)])
    inside = [u - 1 - i for u, i in zip(given, points, strict=False)]
    with p.when(*inside), p.sequential(given[axis]) as t, p.over(given[axis + 1 :]) as inner:
        place = [*points, t, *inner]
        index = counted_from_front(p, p.load(indices, place), dims[axis])
        update(p, _reduction(ctx.op), p.load(updates, place), target, [*points, index, *inner])
    return list(p.end(ScatterAttr(("along", axis)) if _reduction(ctx.op) == "none" else None))


def _reduction(op: OnnxOp) -> str:
    return str(op.attr("reduction", "none") or "none")


def scatter_elements_requires(op: OnnxOp) -> list[Requirement]:
    dims, indices, updates = (operand_dims(op, k) for k in range(3))
    axis = normal_axis(op.attr("axis", 0), len(dims))
    found = [
        equal(u, i, ("its updates and its indices have different dims")) for i, u in zip(indices, updates, strict=True)
    ]
    return found + [
        at_most(used, have, "its indices are longer than the data along an axis")
        for k, (have, used) in enumerate(zip(dims, indices, strict=True))
        if k != axis
    ]


def scatter_elements_reason(op: OnnxOp) -> str | None:
    dims, indices, updates = (operand_dims(op, k) for k in range(3))
    if not dims:
        return "it has no axis to scatter along"
    if len(dims) != len(indices) or len(indices) != len(updates):
        return f"data, indices and updates have {len(dims)}, {len(indices)} and {len(updates)} dims"
    return None if _reduction(op) in REDUCTIONS else f"unknown reduction '{_reduction(op)}'"


def _shown(dims: Sequence[Expr]) -> str:
    return f"[{', '.join(map(str, dims))}]"


# -- ScatterND --------------------------------------------------------------------------------------------------------


def lower_scatter_nd(ctx: Lowering) -> list[SSAValue]:
    dims, given = ctx.dims(0), ctx.dims(1)
    depth = given[-1].constant or 0
    for k in range(depth):
        ctx.check_indices(ctx.required(1), dims[k], "invalid index found", last=k)
    if depth == 1 and product(given) == ONE and _reduction(ctx.op) == "none":
        return [_one_row(ctx)]
    p = ctx.procedure([ctx.required(k) for k in range(3)], [ctx.output_type()])
    data, indices, updates, target = p.buffers
    p.copy(data, target)
    with p.in_order(given[:-1]) as at:
        where = [counted_from_front(p, p.load(indices, [*at, k]), dims[k]) for k in range(depth)]
        with p.within(*zip(where, dims, strict=False)), p.over(dims[depth:]) as inner:
            update(p, _reduction(ctx.op), p.load(updates, [*at, *inner]), target, [*where, *inner])
    return list(p.end(ScatterAttr(("positions", depth)) if _reduction(ctx.op) == "none" else None))


def _one_row(ctx: Lowering) -> SSAValue:
    """Returns the data with one row replaced, as a nest: transposes around it need no pass over the data, and a caller
    may have the row written in place."""
    data, indices, row = (ctx.required(k) for k in range(3))
    dims, rank = ctx.dims(0), len(ctx.dims(1))
    at = Expr.of("_0")

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        index = counted_from_front(nest, nest.read(indices, [ZERO] * rank), dims[0])
        place = [*[ZERO] * (rank - 1), *i[1:]]
        return nest.read(row, place, guards=[i[0] - at, at - i[0]], indices=[index], otherwise=nest.read(data, i))

    return ctx.generate(dims, point)


def scatter_nd_requires(op: OnnxOp) -> list[Requirement]:
    dims, indices, updates = (operand_dims(op, k) for k in range(3))
    wanted = (*indices[:-1], *dims[indices[-1].constant or 0 :])
    return [equal(u, w, "its updates do not fit its indices") for u, w in zip(updates, wanted, strict=True)]


def scatter_nd_reason(op: OnnxOp) -> str | None:
    dims, indices, updates = (operand_dims(op, k) for k in range(3))
    depth = indices[-1].constant if indices else None
    if depth is None:
        return f"the number of indices in one position ({indices[-1] if indices else 'none'}) is not constant"
    if depth > len(dims):
        return f"{depth} indices for {len(dims)} dims"
    if len(updates) != len(indices) - 1 + len(dims) - depth:
        return f"its updates have {len(updates)} dims"
    return None if _reduction(op) in REDUCTIONS else f"unknown reduction '{_reduction(op)}'"


# -- TensorScatter ----------------------------------------------------------------------------------------------------


def lower_tensor_scatter(ctx: Lowering) -> list[SSAValue]:
    """Reads, for every element of the result, its update or the cache."""
    past, new, begin = ctx.required(0), ctx.required(1), ctx.input(2)
    dims, given = ctx.dims(0), ctx.dims(1)
    axis = normal_axis(ctx.attr("axis", -2), len(dims))
    circular = str(ctx.attr("mode", "linear")) == "circular"
    size = maximum(dims[axis], Expr.of(1))
    if begin is not None:
        room = Expr.of(_ANY) if circular else dims[axis] - given[axis] + 1
        ctx.check_indices(begin, room, "its write indices are negative or too large for its cache", negative=False)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        first = nest.const(0, i64) if begin is None else nest.read(begin, [i[0]]).to(i64)
        old, index, at = nest.read(past, i), first, i[axis] - Expr.of("_0")
        if circular:
            distance = nest.index(i[axis]) - first.rem(nest.index(size))
            index, at = (distance < 0).select(distance + nest.index(dims[axis]), distance), Expr.of("_0")
        place = [*i[:axis], at, *i[axis + 1 :]]
        return nest.read(new, place, guards=[at, given[axis] - 1 - at], indices=[index], otherwise=old)

    return [ctx.generate(dims, point)]


_ANY = 1 << 62
"""The room for write indices with wraparound: larger than any index."""


def tensor_scatter_requires(op: OnnxOp) -> list[Requirement]:
    dims, given = operand_dims(op, 0), operand_dims(op, 1)
    axis = normal_axis(op.attr("axis", -2), len(dims))
    return [at_most(given[axis], dims[axis], "its update is longer than its cache")]


def tensor_scatter_reason(op: OnnxOp) -> str | None:
    dims, given = operand_dims(op, 0), operand_dims(op, 1)
    axis = normal_axis(op.attr("axis", -2), len(dims))
    if axis == 0:
        return "it scatters along the batch"
    if any(k != axis and a != b for k, (a, b) in enumerate(zip(dims, given, strict=True))):
        return f"its cache and update are not known to match ({_shown(dims)} and {_shown(given)})"
    begin = operand(op, 2)
    if begin is not None and operand_dims(op, 2) != dims[:1]:
        return "it is not known to have one index for each batch"
    return None


# -- MaxUnpool --------------------------------------------------------------------------------------------------------


def infer_max_unpool(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    if ctx.input(2) is not None:
        equate_length(ctx, 2, len(dims))
        given = ctx.values(2)
        if given is None:
            return infos(element_type(ctx), [ctx.fresh(f"unpooled_{k}") for k in range(len(dims))])
        return infos(element_type(ctx), given)
    return infos(element_type(ctx), unpooled_dims(ctx.op, dims))


def unpooled_dims(op: OnnxOp, dims: Sequence[Expr]) -> list[Expr]:
    """Returns the least dims reduced to `dims` by pooling."""
    spatial = len(dims) - 2
    kernel = op.attr("kernel_shape")
    strides = op.attr("strides") or [1] * spatial
    pads = op.attr("pads") or [0] * (2 * spatial)
    rest = [
        tidy((dims[k + 2] - 1) * int(strides[k]) + int(kernel[k]) - int(pads[k]) - int(pads[k + spatial]))
        for k in range(spatial)
    ]
    return [*dims[:2], *rest]


def lower_max_unpool(ctx: Lowering) -> list[SSAValue]:
    """Fills with zeros, then writes every element at its index, counted over the whole result."""
    count, total = product(ctx.dims(0)), product(ctx.out_dims())
    flat = tensor_of(ctx.out_element(), [total])
    ctx.check_indices(ctx.required(1), total, "its indices are out of bounds", negative=False)
    p = ctx.procedure([ctx.view(ctx.required(0), [count]), ctx.view(ctx.required(1), [count])], [flat])
    source, indices, target = p.buffers
    with p.loop(total) as j:
        p.store(0, target, [j])
    with p.sequential(count) as t:
        p.store(p.load(source, [t]), target, [p.load(indices, [t])])
    return [ctx.view(p.end()[0], ctx.out_dims())]


def max_unpool_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if operand_dims(op, 1) != dims:
        return "it is not known to have an index for each element"
    if operand(op, 2) is None:
        return None
    given = known(op, 2)
    if given is None:
        return "its output shape is known only at run time"
    return None if len(given) == len(dims) else "its output shape has a different rank"


def max_unpool_requires(op: OnnxOp) -> list[Requirement]:
    """Requires places in the pooled tensor, even without an image. A given shape must be at least the inferred one;
    ONNX Runtime's indices refer to the given shape."""
    dims = operand_dims(op, 0)
    least = unpooled_dims(op, dims)
    if operand(op, 2) is None:
        return [at_most(1, d, "no input of MaxPool gives these dims") for d in least[2:]]
    given = known(op, 2)
    if given is None:
        return []
    planes = [
        equal(a, b, "its output shape has a different batch or different channels")
        for a, b in zip(dims[:2], given[:2], strict=True)
    ]
    text = "its output shape is smaller than the pooled tensor"
    return [*planes, *(at_most(a, b, text) for a, b in zip(least[2:], given[2:], strict=True))]


SPECS: list[OpSpec] = [
    OpSpec(
        "MaxUnpool",
        infer_max_unpool,
        lower=lower_max_unpool,
        legal=legal(max_unpool_reason),
        requires=max_unpool_requires,
        kind="movement",
    ),
    *(
        OpSpec(
            name,
            _infer_like_data,
            lower=lower_scatter_elements,
            legal=legal(scatter_elements_reason),
            requires=scatter_elements_requires,
            kind="movement",
        )
        for name in ("Scatter", "ScatterElements")
    ),
    OpSpec(
        "ScatterND",
        _infer_like_data,
        lower=lower_scatter_nd,
        legal=legal(scatter_nd_reason),
        requires=scatter_nd_requires,
        kind="movement",
    ),
    OpSpec(
        "TensorScatter",
        _infer_like_data,
        lower=lower_tensor_scatter,
        legal=legal(tensor_scatter_reason),
        requires=tensor_scatter_requires,
        kind="movement",
    ),
]
