"""Ops to create tensors from shapes and numbers: Shape, Size, ConstantOfShape, Range, EyeLike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.attributes import TensorAttr
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, tidy
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import BY_CODE, element_of_dtype
from igniter.dialects.sym.expr import Expr, floordiv, maximum, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def infer_shape(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return infos(i64, [ctx.fresh("rank")])
    found = dims[slice(ctx.op.attr("start", 0), ctx.op.attr("end", len(dims)))]
    return [TensorInfo(i64, (Expr.of(len(found)),), found)]


def lower_shape(ctx: Lowering) -> list[SSAValue]:
    dims = ctx.dims(0)
    found = dims[slice(ctx.attr("start", 0), ctx.attr("end", len(dims)))]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        value = nest.index(found[-1] if found else 0)
        for k in reversed(range(len(found) - 1)):
            value = (nest.index(i[0]) <= k).select(nest.index(found[k]), value)
        return value

    return [ctx.generate(ctx.out_dims(), point)]


def infer_size(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    return [TensorInfo(i64, (), None if dims is None else (product(dims),))]


def lower_size(ctx: Lowering) -> list[SSAValue]:
    return [ctx.generate([], lambda nest, i: nest.index(product(ctx.dims(0))))]


# -- ConstantOfShape --------------------------------------------------------------------------------------------------


def fill_value(op: OnnxOp) -> tuple[int | float, Attribute]:
    """Returns the number and the element type of a ConstantOfShape."""
    value = op.attr("value")
    if value is None:
        return 0.0, f32

    number = value.reshape(-1)[0]
    return (int(number) if value.dtype.kind in "iub" else float(number)), element_of_dtype(value.dtype).attr


def infer_constant_of_shape(ctx: InferContext) -> list[TensorInfo]:
    value = ctx.op.attributes.get("value")
    element = value.data.element_type if isinstance(value, TensorAttr) else fill_value(ctx.op)[1]
    target, shape = ctx.values(0), input_dims(ctx, 0)
    if target is not None:
        return infos(element, target)
    rank = shape[0].constant if shape else None
    return infos(element, None if rank is None else [ctx.fresh(f"constant_{k}") for k in range(rank)])


def lower_constant_of_shape(ctx: Lowering) -> list[SSAValue]:
    return [ctx.splat(fill_value(ctx.op)[0], ctx.out_dims(), ctx.out_element())]


# -- Range ------------------------------------------------------------------------------------------------------------


def infer_range(ctx: InferContext) -> list[TensorInfo]:
    element = element_type(ctx)
    count = float_count(ctx) if is_float(element) else range_count(*(ctx.values(k) for k in range(3)))
    return infos(element, [ctx.fresh("range") if count is None else count])


def range_count(start: Dims | None, limit: Dims | None, delta: Dims | None) -> Expr | None:
    """Returns the number of elements of an integer Range; None if it is unknown."""
    step = delta[0].constant if delta else None
    if not start or not limit or not step:
        return None
    distance = limit[0] - start[0] if step > 0 else start[0] - limit[0]
    return tidy(maximum(Expr.of(0), floordiv(distance + (abs(step) - 1), Expr.of(abs(step)))))


def float_count(ctx: InferContext) -> Expr | None:
    bounds = [ctx.constant(k) for k in range(3)]
    numbers = [float(b.reshape(-1)[0]) for b in bounds if b is not None]
    if len(numbers) < 3 or numbers[2] == 0:
        return None
    start, limit, delta = numbers
    return Expr.of(max(0, math.ceil((limit - start) / delta)))


def lower_range(ctx: Lowering) -> list[SSAValue]:
    start, delta = ctx.required(0), ctx.required(2)
    first, step = ctx.values(0), ctx.values(2)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        element = ctx.out_element()
        if first and step and not is_float(element):
            return nest.index(first[0] + i[0] * step[0]).to(element)
        begin = nest.read(start, [Expr.of(0)] * len(ctx.dims(0)))
        by = nest.read(delta, [Expr.of(0)] * len(ctx.dims(2)))
        return begin + nest.index(i[0]).to(element) * by

    return [ctx.generate(ctx.out_dims(), point)]


# -- EyeLike ----------------------------------------------------------------------------------------------------------


def infer_eye_like(ctx: InferContext) -> list[TensorInfo]:
    code = ctx.op.attr("dtype")
    return infos(element_type(ctx) if code is None else BY_CODE[code].attr, input_dims(ctx, 0))


def lower_eye_like(ctx: Lowering) -> list[SSAValue]:
    k = ctx.attr("k", 0)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.index(i[1] - i[0]).eq(k).to(ctx.out_element())

    return [ctx.generate(ctx.out_dims(), point)]


SPECS: list[OpSpec] = [
    OpSpec("ConstantOfShape", infer_constant_of_shape, lower=lower_constant_of_shape, legal=legal(), kind="shape"),
    OpSpec("EyeLike", infer_eye_like, lower=lower_eye_like, legal=legal(), kind="shape"),
    OpSpec("Range", infer_range, lower=lower_range, legal=legal(), kind="shape"),
    OpSpec("Shape", infer_shape, lower=lower_shape, legal=legal(), kind="shape"),
    OpSpec("Size", infer_size, lower=lower_size, legal=legal(), kind="shape"),
]
