"""Matrices: Inverse and Det, by elimination with partial pivoting, in the elements' type (f32 for 16 bits), and CDist,
the distances between rows, which is not a contraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import same_as_input
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand_dims
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.requirements import Requirement, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure


def _pivot(p: Procedure, a: SSAValue, n: Expr, columns: Expr, k: Expr) -> Scalar:
    """Swaps row `k` with the row from `k` on that has the largest element in column `k`; returns true if the rows
    differ."""
    best, where = p.variable(p.load(a, [k, k]).abs(), "best"), p.variable(p.index(k), "where")
    with p.sequential(n, k + 1) as r:
        value = p.load(a, [r, k]).abs()
        with p.when(value > best.get()):
            best.set(value)
            where.set(p.index(r))
    other = where.get()
    with p.loop(columns) as j:
        mine, theirs = p.load(a, [k, j]), p.load(a, [other, j])
        p.store(mine, a, [other, j])
        p.store(theirs, a, [k, j])
    return other.ne(p.index(k))


def _subtract(p: Procedure, a: SSAValue, columns: Expr, k: Expr, r: Expr, divide: Scalar | None = None) -> None:
    """Subtracts from row `r` the multiple of row `k` given by its element in column `k`."""
    factor = p.load(a, [r, k])
    factor = factor if divide is None else factor / divide
    with p.loop(columns) as j:
        p.store(p.load(a, [r, j]) - factor * p.load(a, [k, j]), a, [r, j])


def _inverse(ctx: Lowering) -> list[SSAValue]:
    """Inverts by Gauss-Jordan elimination of the matrix beside the identity. The inverse of a singular matrix is not
    finite."""
    dims, wide = ctx.dims(0), ctx.wide_element()
    batch, n = product(dims[:-2]), dims[-1]
    shape = [batch, n, n]
    p = ctx.procedure([ctx.view(ctx.required(0), shape)], [tensor_of(ctx.out_element(), shape)])
    source, target = p.buffers
    b = p.parallel(batch)
    a = p.local(wide, [n, 2 * n], "matrix")
    with p.over([n, n]) as (r, j):
        p.store(p.load(source, [b, r, j]).to(wide), a, [r, j])
        p.store(p.index(r).eq(p.index(j)).to(wide), a, [r, j + n])
    with p.sequential(n) as k:
        _pivot(p, a, n, 2 * n, k)
        inverse = 1 / p.load(a, [k, k])
        with p.loop(2 * n) as j:
            p.store(p.load(a, [k, j]) * inverse, a, [k, j])
        with p.sequential(n) as r, p.when(p.index(r).ne(p.index(k))):
            _subtract(p, a, 2 * n, k, r)
    with p.over([n, n]) as (r, j):
        p.store(p.load(a, [r, j + n]), target, [b, r, j])
    return [ctx.view(p.end()[0], dims)]


def _det(ctx: Lowering) -> list[SSAValue]:
    """Computes the product of the pivots."""
    dims, wide = ctx.dims(0), ctx.wide_element()
    batch, n = product(dims[:-2]), dims[-1]
    shape = [batch, n, n]
    p = ctx.procedure([ctx.view(ctx.required(0), shape)], [tensor_of(ctx.out_element(), [batch])])
    source, target = p.buffers
    b = p.parallel(batch)
    a = p.local(wide, [n, n], "matrix")
    with p.over([n, n]) as (r, j):
        p.store(p.load(source, [b, r, j]).to(wide), a, [r, j])
    found = p.variable(p.const(1, wide), "product")
    with p.sequential(n) as k:
        swapped = _pivot(p, a, n, n, k)
        pivot = p.load(a, [k, k])
        value = found.get() * pivot
        found.set(swapped.select(-value, value))
        # A column of zeros needs no elimination, and makes the product 0.
        with p.when(pivot.ne(0)), p.sequential(n, k + 1) as r:
            _subtract(p, a, n, k, r, pivot)
    p.store(found.get(), target, [b])
    return [ctx.view(p.end()[0], dims[:-2])]


# -- CDist ------------------------------------------------------------------------------------------------------------


def _distances(ctx: Lowering) -> list[SSAValue]:
    """Computes the squared distance between each row of one operand and each row of the other, or its root."""
    left, right = ctx.required(0), ctx.required(1)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        apart = nest.read(left, [i[0], r[0]]) - nest.read(right, [i[1], r[0]])
        return apart * apart

    made = ctx.generate(ctx.out_dims(), point, over=[ctx.dims(0)[1]], combiner="add")
    if str(ctx.attr("metric", "sqeuclidean")) == "sqeuclidean":
        return [made]
    return [ctx.map(lambda x: x.sqrt(), made, part="root")]


def _infer_distances(ctx: InferContext) -> list[TensorInfo]:
    left, right = input_dims(ctx, 0), input_dims(ctx, 1)
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return [TensorInfo(element_type(ctx), None)]
    ctx.equate(left[1], right[1])
    return [TensorInfo(element_type(ctx), (left[0], right[0]))]


def _distances_reason(op: OnnxOp) -> str | None:
    left, right = operand_dims(op, 0), operand_dims(op, 1)
    if len(left) != 2 or len(right) != 2 or left[1] != right[1]:
        return "its two lists of rows are not known to have the same features"
    metric = str(op.attr("metric", "sqeuclidean"))
    return None if metric in ("euclidean", "sqeuclidean") else f"unknown metric {metric}"


def _distances_flops(op: OnnxOp) -> Expr:
    """3 × rows × rows of the second operand × columns"""
    return 3 * product(operand_dims(op, 0)) * operand_dims(op, 1)[0]


# -- tables -----------------------------------------------------------------------------------------------------------


def _infer_det(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    return [TensorInfo(element_type(ctx), None if dims is None else dims[:-2])]


def _reason(op: OnnxOp) -> str | None:
    return None if len(operand_dims(op, 0)) >= 2 else "its input is not a matrix"


def _requires(op: OnnxOp) -> list[Requirement]:
    rows, columns = operand_dims(op, 0)[-2:]
    return [equal(rows, columns, "its matrices are not square")]


def _flops(op: OnnxOp) -> Expr:
    """elements of the matrices × their size, in operations: an elimination"""
    dims = operand_dims(op, 0)
    return product(dims) * dims[-1]


SPECS: list[OpSpec] = [
    OpSpec(
        "Det",
        infer=_infer_det,
        lower=_det,
        legal=float_legal(_reason),
        requires=_requires,
        flops=_flops,
        kind="other",
    ),
    OpSpec(
        "com.microsoft.CDist",
        infer=_infer_distances,
        lower=_distances,
        legal=float_legal(_distances_reason),
        flops=_distances_flops,
        unprofitable=lambda op, estimate: "ONNX Runtime computes it with a product of matrices",
        kind="contraction",
    ),
    OpSpec(
        "com.microsoft.Inverse",
        infer=same_as_input(None),
        lower=_inverse,
        legal=float_legal(_reason),
        requires=_requires,
        flops=_flops,
        kind="other",
    ),
]
