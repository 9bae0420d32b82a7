"""Ops that read at indices from another tensor: Gather and its variants, Trilu, OneHot.

Negative indices count from the end, as in ONNX. An index out of range ends the run with an error, as in ONNX Runtime;
the kernel detects it during the run and never reads out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.rules import (
    constants,
    element_type,
    infos,
    input_dims,
    known,
    legal,
    normal_axis,
    operand,
    operand_dims,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def from_front(nest: Nest, index: Scalar, dim: Expr) -> Scalar:
    """Returns `index` as an i64, counted from the front."""
    wide = index.to(i64)
    if index.is_unsigned:
        return wide
    return (wide < 0).select(wide + nest.index(dim), wide)


def read_at(nest: Nest, x: SSAValue, dims: Dims, subscripts: Sequence[Expr | Scalar]) -> Scalar:
    """Reads an element of `x` whose subscripts partly come from a tensor; 0 if one is out of range."""
    indices: list[Scalar] = []
    exprs: list[Expr] = []
    guards: list[Expr] = []
    for subscript, dim in zip(subscripts, dims, strict=True):
        if isinstance(subscript, Scalar):
            name = Expr.of(f"_{len(indices)}")
            indices.append(from_front(nest, subscript, dim))
            guards += [name, dim - 1 - name]
            exprs.append(name)
        else:
            exprs.append(subscript)
    return nest.read(x, exprs, guards=guards, indices=indices)


# -- Gather -----------------------------------------------------------------------------------------------------------


def infer_gather(ctx: InferContext) -> list[TensorInfo]:
    dims, indices = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None or indices is None:
        return unknown_rank(ctx)
    axis = normal_axis(ctx.op.attr("axis", 0), len(dims))
    return infos(element_type(ctx), [*dims[:axis], *indices, *dims[axis + 1 :]])


def lower_gather(ctx: Lowering) -> list[SSAValue]:
    x, dims, index = ctx.required(0), ctx.dims(0), ctx.required(1)
    axis, rank = normal_axis(ctx.attr("axis", 0), len(dims)), len(ctx.dims(1))
    fixed = constant_index(ctx.values(1), dims[axis])
    if ctx.values(1) is None:
        ctx.check_indices(index, dims[axis])

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        at = fixed if fixed is not None else nest.read(index, i[axis : axis + rank])
        return read_at(nest, x, dims, [*i[:axis], at, *i[axis + rank :]])

    return [ctx.generate(ctx.out_dims(), point)]


def gather_requires(op: OnnxOp) -> list[Requirement]:
    """Requires known indices to be in range; a run checks the others as data."""
    dims = operand_dims(op, 0)
    return index_requires(known(op, 1), dims[normal_axis(op.attr("axis", 0), len(dims))])


def index_requires(values: Dims | None, dim: Expr) -> list[Requirement]:
    """Requires known indices to be in [-dim, dim - 1]."""
    text = "indices element out of data bounds"
    return [r for v in dict.fromkeys(values or ()) for r in (at_most(v, dim - 1, text), at_most(-dim, v, text))]


def constant_index(values: Dims | None, dim: Expr) -> Expr | None:
    """Returns the index of a Gather if there is one, known and in range; else None."""
    numbers = constants(values)
    if numbers is None or len(numbers) != 1:
        return None
    at = Expr.of(numbers[0]) if numbers[0] >= 0 else dim + numbers[0]
    return at if is_nonneg(at) and is_nonneg(dim - 1 - at) else None


# -- GatherElements, GatherND -----------------------------------------------------------------------------------------


def infer_gather_elements(ctx: InferContext) -> list[TensorInfo]:
    return infos(element_type(ctx), input_dims(ctx, 1))


def lower_gather_elements(ctx: Lowering) -> list[SSAValue]:
    x, dims, index = ctx.required(0), ctx.dims(0), ctx.required(1)
    axis = normal_axis(ctx.attr("axis", 0), len(dims))
    ctx.check_indices(index, dims[axis])

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return read_at(nest, x, dims, [*i[:axis], nest.read(index, i), *i[axis + 1 :]])

    return [ctx.generate(ctx.out_dims(), point)]


def gather_elements_requires(op: OnnxOp) -> list[Requirement]:
    """Requires indices no longer than the data along all other axes."""
    dims, shape = operand_dims(op, 0), operand_dims(op, 1)
    axis = normal_axis(op.attr("axis", 0), len(dims))
    text = "its indices have more elements than the data along an axis"
    return [at_most(u, d, text) for k, (d, u) in enumerate(zip(dims, shape, strict=True)) if k != axis]


def infer_gather_nd(ctx: InferContext) -> list[TensorInfo]:
    dims, indices = input_dims(ctx, 0), input_dims(ctx, 1)
    depth = indices[-1].constant if indices else None
    if dims is None or indices is None or depth is None:
        return unknown_rank(ctx)
    batch = ctx.op.attr("batch_dims", 0)
    return infos(element_type(ctx), [*indices[:-1], *dims[batch + depth :]])


def gather_nd_reason(op: OnnxOp) -> str | None:
    dims, shape = operand_dims(op, 0), operand_dims(op, 1)
    if shape[-1].constant is None:
        return f"the number of indices in one position ({shape[-1]}) is not constant"
    for k in range(op.attr("batch_dims", 0)):
        if dims[k] != shape[k]:
            return f"data and indices are not known to be equal along batch axis {k} ({dims[k]} and {shape[k]})"
    return None


def lower_gather_nd(ctx: Lowering) -> list[SSAValue]:
    x, dims, index = ctx.required(0), ctx.dims(0), ctx.required(1)
    batch, rank = int(ctx.attr("batch_dims", 0)), len(ctx.dims(1))
    depth = ctx.dims(1)[-1].constant or 0
    for k in range(depth):
        ctx.check_indices(index, dims[batch + k], last=k, each=dims[batch + depth :])

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        at = [nest.read(index, [*i[: rank - 1], Expr.of(k)]) for k in range(depth)]
        return read_at(nest, x, dims, [*i[:batch], *at, *i[rank - 1 :]])

    return [ctx.generate(ctx.out_dims(), point)]


# -- Trilu ------------------------------------------------------------------------------------------------------------


def infer_trilu(ctx: InferContext) -> list[TensorInfo]:
    return infos(element_type(ctx), input_dims(ctx, 0))


def lower_trilu(ctx: Lowering) -> list[SSAValue]:
    x, diagonal = ctx.required(0), ctx.input(1)
    values = ctx.values(1)
    sign = 1 if ctx.attr("upper", 1) else -1

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        indices: list[Scalar] = []
        k = ZERO
        if values is not None:
            k = values[0]
        elif diagonal is not None:
            k = Expr.of("_0")
            indices.append(nest.read(diagonal, [ZERO] * len(ctx.dims(1))))
        return nest.read(x, i, guards=[(i[-1] - i[-2] - k) * sign], indices=indices)

    return [ctx.generate(ctx.out_dims(), point)]


# -- OneHot -----------------------------------------------------------------------------------------------------------


def infer_one_hot(ctx: InferContext) -> list[TensorInfo]:
    dims, depth = input_dims(ctx, 0), ctx.values(1)
    given = ctx.constant(1)
    if depth is None and given is not None:
        # The depth may have any numeric type.
        depth = (Expr.of(int(given.reshape(-1)[0])),)
    if dims is None:
        return [TensorInfo(element_type(ctx, 2), None)]
    axis = normal_axis(ctx.op.attr("axis", -1), len(dims) + 1)
    size = ctx.fresh("depth") if depth is None else depth[0]
    return infos(element_type(ctx, 2), [*dims[:axis], size, *dims[axis:]])


def one_hot_reason(op: OnnxOp) -> str | None:
    if known(op, 1) is not None or constant_value(operand(op, 1)) is not None:
        return None
    return "its depth is known only at run time"


def lower_one_hot(ctx: Lowering) -> list[SSAValue]:
    index, values = ctx.required(0), ctx.required(2)
    axis = normal_axis(ctx.attr("axis", -1), len(ctx.dims(0)) + 1)
    depth = ctx.out_dims()[axis]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        at = nest.read(index, [*i[:axis], *i[axis + 1 :]])
        hot = from_front(nest, at.to(i64), depth).eq(nest.index(i[axis]))
        return hot.select(nest.read(values, [ONE]), nest.read(values, [ZERO]))

    return [ctx.generate(ctx.out_dims(), point)]


SPECS: list[OpSpec] = [
    OpSpec("Gather", infer_gather, lower=lower_gather, legal=legal(), requires=gather_requires, kind="movement"),
    OpSpec(
        "GatherElements",
        infer_gather_elements,
        lower=lower_gather_elements,
        legal=legal(),
        requires=gather_elements_requires,
        kind="movement",
    ),
    OpSpec("GatherND", infer_gather_nd, lower=lower_gather_nd, legal=legal(gather_nd_reason), kind="movement"),
    OpSpec(
        "com.microsoft.GatherND", infer_gather_nd, lower=lower_gather_nd, legal=legal(gather_nd_reason), kind="movement"
    ),
    OpSpec("OneHot", infer_one_hot, lower=lower_one_hot, legal=legal(one_hot_reason), kind="movement"),
    OpSpec("Trilu", infer_trilu, lower=lower_trilu, legal=legal(), kind="movement"),
    OpSpec("com.microsoft.Trilu", infer_trilu, lower=lower_trilu, legal=legal(), kind="movement"),
]
