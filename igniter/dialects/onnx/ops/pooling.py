"""Pools: MaxPool, AveragePool, LpPool, their global forms, which are reductions, and LRN, a pool over channels.

Padding has no effect: for a maximum it is the least finite value, as in ONNX Runtime, and for a sum 0. A NaN in a
window makes its maximum NaN.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import bf16, f16, f32, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.scalar import Number, int_limits
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.means import count_of
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import computed_reason, float_attr, same_as_input
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand_dims
from igniter.dialects.onnx.ops.sliding import Slide, pool_slides
from igniter.dialects.onnx.registry import Dims, InferContext, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, linearize, maximum, product
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.loop import Combiner
    from igniter.dialects.onnx.base import OnnxOp

ScalarRule = Callable[[Scalar], Scalar]
LEAST: dict[object, float] = {
    bf16: -(2 - 2.0**-7) * 2.0**127,
    f16: -65504.0,
    f32: -(2 - 2.0**-23) * 2.0**127,
    f64: -sys.float_info.max,
}


# -- shapes -----------------------------------------------------------------------------------------------------------


def _infer(ctx: InferContext) -> list[TensorInfo]:
    data = input_dims(ctx, 0)
    dims = None if data is None else (*data[:2], *(s.count for s in pool_slides(ctx.op, data[2:])))
    return [TensorInfo(element_type(ctx), dims), TensorInfo(i64, dims)][: len(ctx.op.results)]


def _infer_global(ctx: InferContext) -> list[TensorInfo]:
    data = input_dims(ctx, 0)
    dims = None if data is None else (*data[:2], *(Expr.of(1) for _ in data[2:]))
    return [TensorInfo(element_type(ctx), dims)]


def _reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    kernel = op.attr("kernel_shape")
    if len(dims) < 3:
        return f"its input has rank {len(dims)} and no axes to slide over"
    if kernel is not None and len(kernel) != len(dims) - 2:
        return f"its windows have {len(kernel)} axes, but its input has {len(dims) - 2}"
    return None


# -- windows ----------------------------------------------------------------------------------------------------------


def _slides(ctx: Lowering) -> list[Slide]:
    return pool_slides(ctx.op, ctx.dims(0)[2:])


def _folded(ctx: Lowering, combiner: Combiner, rule: ScalarRule = lambda x: x, part: str = "") -> SSAValue:
    """Returns the fold of `rule` over the elements of each window; the padding has the identity of `combiner`."""
    x, slides = ctx.required(0), _slides(ctx)
    # The sum of codes is rounded to a code: its order is ONNX Runtime's.
    by_axes = goes_by_axes(slides) and not (ctx.kernel.blocks and _is_small(slides))
    if by_axes and not (combiner == "add" and _is_dequantized(ctx)):
        return _by_axes(ctx, x, slides, 2, combiner, rule, part)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        places, guards = _visited(nest, slides, i[2:], r)
        outside = None if combiner == "add" else _least(ctx)
        value = nest.read_inside(x, [*i[:2], *places], otherwise=outside, guards=guards)
        # GPUs have maxima of f16.
        return value if narrow else rule(value.widened())

    narrow = combiner == "max" and ctx.kernel.blocks and ctx.element(0) == f16
    return ctx.generate(ctx.out_dims(), point, over=[s.visited for s in slides], combiner=combiner, part=part)


AT_ONCE = 16
"""The largest window folded in one nest for programs on blocks of elements (GPUs): 4 x 4. For 5 x 5 two nests take half
of the estimated time."""


def _is_small(slides: Sequence[Slide]) -> bool:
    """True if windows have at most `AT_ONCE` elements."""
    elements = product(s.kernel for s in slides).constant
    return elements is not None and elements <= AT_ONCE


FEW = 9
"""The largest window folded at once where it moves in single steps: its elements are then shared in registers."""


def goes_by_axes(slides: Sequence[Slide]) -> bool:
    """True if windows are better folded axis by axis: 18 elements for a window of 9 x 9, in the place of 81.

    The windows must share elements and extend along several axes. One thread of a Zen 3, share of the time: maximum
    over 9 x 9 0.12, 5 x 5 0.85, 3 x 3 with stride 2 0.1; average over 3 x 3 with stride 2 0.6, with stride 1 1.25.
    """
    wide = [s for s in slides if s.kernel.constant is None or s.kernel.constant > 1]
    if len(wide) < 2 or not any(is_nonneg(s.kernel - s.stride - 1) for s in wide):
        return False
    elements = product(s.kernel for s in wide).constant
    return elements is None or elements > FEW or any(s.stride > 1 for s in wide)


def _by_axes(
    ctx: Lowering,
    x: SSAValue,
    slides: Sequence[Slide],
    first: int,
    combiner: Combiner,
    rule: ScalarRule = lambda x: x,
    part: str = "",
) -> SSAValue:
    """Returns the fold of `rule` over the elements of each window, axis by axis; `first` is the first spatial axis of
    `x`. The last axis comes last: its elements are contiguous in the results of the others."""
    wide = [k for k, s in enumerate(slides) if s.kernel != ONE or s.stride != 1 or s.low != ZERO or s.high != ZERO]
    outside = None if combiner == "add" else _least(ctx)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr], k: int, source: SSAValue) -> Scalar:
        axis = first + k
        places, guards = _visited(nest, [slides[k]], [i[axis]], r)
        at = [*i[:axis], *places, *i[axis + 1 :]]
        value = nest.read_inside(source, at, otherwise=outside, guards=guards).widened()
        return rule(value) if k == wide[0] else value

    for k in wide:
        dims = [slides[k].count if d == first + k else dim for d, dim in enumerate(dims_of(x.type))]
        name = part if k == wide[-1] else f"{part}.axis{k}".removeprefix(".")
        fold = functools.partial(point, k=k, source=x)
        x = ctx.generate(dims, fold, over=[slides[k].visited], combiner=combiner, part=name)
    return x


def _visited(
    nest: Nest, slides: Sequence[Slide], windows: Sequence[Expr], taps: Sequence[Expr]
) -> tuple[list[Expr], list[Expr]]:
    """Returns the position of an element of a window, and its guards that the axes of the nest do not prove."""
    found = [s.visit(p, k) for s, p, k in zip(slides, windows, taps, strict=True)]
    return [place for place, _ in found], nest.unproven([fact for _, facts in found for fact in facts])


def _least(ctx: Lowering) -> Number:
    element = ctx.element(0)
    return LEAST[element] if is_float(element) else int_limits(element)[0]


def _max_pool(ctx: Lowering) -> list[SSAValue | None]:
    best = ctx.rounded(_folded(ctx, "max"))
    return [best, _places(ctx, best) if ctx.wants(1) else None]


# -- NhwcMaxPool ------------------------------------------------------------------------------------------------------


def _infer_nhwc(ctx: InferContext) -> list[TensorInfo]:
    data = input_dims(ctx, 0)
    if data is None:
        return [TensorInfo(element_type(ctx), None)]
    counts = (s.count for s in pool_slides(ctx.op, data[1:-1]))
    return [TensorInfo(element_type(ctx), (data[0], *counts, data[-1]))]


def _nhwc_max_pool(ctx: Lowering) -> list[SSAValue]:
    x, slides = ctx.required(0), pool_slides(ctx.op, ctx.dims(0)[1:-1])

    if goes_by_axes(slides):
        return [ctx.rounded(_by_axes(ctx, x, slides, 1, "max"))]

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        places, guards = _visited(nest, slides, i[1:-1], r)
        return nest.read_inside(x, [i[0], *places, i[-1]], otherwise=_least(ctx), guards=guards)

    over = [s.visited for s in slides]
    return [ctx.rounded(ctx.generate(ctx.out_dims(), point, over=over, combiner="max"))]


# -- places of greatest elements --------------------------------------------------------------------------------------


def _places(ctx: Lowering, best: SSAValue) -> SSAValue:
    """Returns the place in the input of the first greatest element, or the first NaN, of every window.

    The search order is always row-major; `storage_order` only changes the numbering of places.
    """
    x, dims, slides = ctx.required(0), ctx.dims(0), _slides(ctx)
    behind = product(dims)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        places, guards = _visited(nest, slides, i[2:], r)
        at = [*i[:2], *places]
        value, top = nest.read_inside(x, at, otherwise=_least(ctx), guards=guards), nest.read(best, i)
        found = value.eq(top)
        if value.is_float:
            found = found | value.is_nan()
        for s, p in zip(slides, places, strict=True):
            if s.low != ZERO:
                found = found & (nest.index(p) >= 0)
            found = found & (nest.index(s.size - 1 - p) >= 0)
        for fact in guards:
            found = found & (nest.index(fact) >= 0)
        return found.select(nest.index(linearize(at, dims)), nest.index(behind))

    kernel = [s.visited for s in slides]
    first = ctx.generate(ctx.out_dims(1), point, over=kernel, combiner="min", element=i64, part="find")
    if int(ctx.attr("storage_order", 0)) == 0:
        return first
    return ctx.map(lambda flat: _column_major(flat, dims), first, element=i64, part="columns")


def _column_major(flat: Scalar, dims: Dims) -> Scalar:
    """Returns the column-major number, in the spatial dims, of the row-major place `flat`."""
    nest, found, rest = flat.nest, None, flat
    for k in reversed(range(2, len(dims))):
        size = nest.index(maximum(dims[k], Expr.of(1)))
        part = rest.rem(size) * nest.index(product(dims[2:k]))
        found, rest = part if found is None else found + part, rest / size
    whole = rest * nest.index(product(dims[2:]))
    return whole if found is None else found + whole


MOST_IN_ORDER = 16
"""The maximum number of elements in a window of codes for summation in order."""


def _average(ctx: Lowering) -> list[SSAValue]:
    slides, padded = _slides(ctx), bool(ctx.attr("count_include_pad", 0))
    sizes = [s.kernel.constant for s in slides]
    window = [range(n) for n in sizes if n is not None]
    in_order = _is_dequantized(ctx) and len(window) == len(sizes) and prod(map(len, window)) <= MOST_IN_ORDER
    by_columns = _is_summed_by_columns(ctx, slides)
    x = ctx.required(0)
    total = x if in_order else _folded(ctx, "add", part="sum")

    def sum_of(nest: Nest, i: Sequence[Expr]) -> Scalar:
        if not in_order:
            return nest.read(total, i)

        def read(at: Sequence[int]) -> Scalar:
            places = [s.at(p, Expr.of(k)) for s, p, k in zip(slides, i[2:], at, strict=True)]
            return nest.read_inside(x, [*i[:2], *places])

        if not by_columns:
            return functools.reduce(operator.add, map(read, itertools.product(*window)))
        columns = [[(*at, k) for at in itertools.product(*window[:-1])] for k in window[-1]]
        return functools.reduce(operator.add, [functools.reduce(operator.add, map(read, c)) for c in columns])

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        # Of a window that extends past the padding, only the elements inside count; in ORT's old kernels all count,
        # unless ceil_mode is set.
        fixed = padded and ctx.opset < 19 and not ctx.attr("ceil_mode", 0)
        counts = [s.kernel if fixed else s.inside(p, padded) for s, p in zip(slides, i[2:], strict=True)]
        value = sum_of(nest, i)
        return value / nest.index(product(maximum(c, Expr.of(1)) for c in counts)).to(value.element)

    return [ctx.generate(ctx.out_dims(), point)]


MOST_IN_COLUMNS = 32
"""The maximum extent of a window summed by columns in ONNX Runtime."""


def _is_summed_by_columns(ctx: Lowering, slides: Sequence[Slide]) -> bool:
    """True if ONNX Runtime sums each column of a window (over all but its last axis), then the columns. Its kernels
    before opset 19 do so for strides of 1 and 2 (MlasPool2DVectorKernel, MlasPool3DVectorKernel). Other kernels, and
    the one for counted padding under ceil_mode, sum a window row by row."""
    small = all(s.kernel.constant is not None and s.kernel.constant <= MOST_IN_COLUMNS for s in slides)
    by_rows = ctx.attr("ceil_mode", 0) and ctx.attr("count_include_pad", 0)
    return ctx.opset < 19 and not by_rows and len(slides) in (2, 3) and small and slides[-1].stride <= 2


def _is_dequantized(ctx: Lowering) -> bool:
    """True for f32 values of a DequantizeLinear in the same region. The average of codes often lies halfway between two
    codes, so its rounding depends on the order of summation; the lowering uses ONNX Runtime's
    (`_is_summed_by_columns`)."""
    before = ctx.op.operands[0].owner
    return isinstance(before, Operation) and before.name == "onnx.DequantizeLinear" and ctx.element(0) == f32


def _power(p: int) -> tuple[ScalarRule, ScalarRule]:
    """Returns `|x|^p` and its inverse, as functions."""
    if p == 1:
        return (lambda x: x.abs()), (lambda x: x)
    if p == 2:
        return (lambda x: x * x), (lambda x: x.sqrt())
    return (lambda x: x.abs().pow(float(p))), (lambda x: x.pow(1 / p))


def _lp_reason(op: OnnxOp) -> str | None:
    if int(op.attr("p", 2)) < 1:
        return "its p is 0 or less: padding would count"
    return _reason(op)


def _lp_pool(ctx: Lowering) -> list[SSAValue]:
    before, after = _power(int(ctx.attr("p", 2)))
    return [ctx.map(after, _folded(ctx, "add", before, part="sum"))]


# -- global pools -----------------------------------------------------------------------------------------------------


def _global(combiner: Combiner) -> LowerRule:
    def lower(ctx: Lowering) -> list[SSAValue]:
        return [ctx.rounded(ctx.reduce(combiner, ctx.required(0), range(2, len(ctx.dims(0)))))]

    return lower


def _global_average(ctx: Lowering) -> list[SSAValue]:
    axes = range(2, len(ctx.dims(0)))
    extents = [ctx.dims(0)[k] for k in axes]
    total = ctx.reduce("add", ctx.required(0), axes, part="sum", by_rows=True)
    return [ctx.map(lambda s: s / count_of(s.nest, extents, s), total)]


def _global_lp(ctx: Lowering) -> list[SSAValue]:
    before, after = _power(int(ctx.attr("p", 2)))
    total = ctx.reduce("add", ctx.required(0), range(2, len(ctx.dims(0))), before, part="sum", by_rows=True)
    return [ctx.map(after, total)]


# -- LRN --------------------------------------------------------------------------------------------------------------


def _local_response(ctx: Lowering) -> list[SSAValue]:
    """Computes `x / (bias + alpha/size * s) ** beta`, with `s` the sum of the squares of `size`
    neighbouring channels."""
    x, dims, size = ctx.required(0), ctx.dims(0), int(ctx.attr("size"))
    factor = float_attr(ctx, "alpha", 1e-4) / size
    beta, bias = float_attr(ctx, "beta", 0.75), float_attr(ctx, "bias", 1.0)

    def square(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        value = nest.read_inside(x, [i[0], i[1] + r[0] - (size - 1) // 2, *i[2:]]).widened()
        return value * value

    squares = ctx.generate(dims, square, over=[Expr.of(size)], combiner="add", part="squares")
    return [ctx.map(lambda v, s: v.widened() * (s * factor + bias).pow(-beta), x, squares)]


def _local_response_reason(op: OnnxOp) -> str | None:
    return (
        _reason(op)
        if int(op.attr("size")) % 2
        else ("ONNX Runtime places a window of an even number of channels differently")
    )


# -- tables -----------------------------------------------------------------------------------------------------------


def window_flops(op: OnnxOp) -> Expr:
    """elements of the result × elements of the window; of a global pool, elements of the input"""
    kernel = op.attr("kernel_shape")
    window = product(Expr.of(int(k)) for k in kernel) if kernel else Expr.of(1)
    return product(dims_of(op.results[0].type)) * window if kernel else product(operand_dims(op, 0))


def _requires(op: OnnxOp) -> list[Requirement]:
    """Requires non-empty input as ONNX Runtime does, which accepts an empty batch; for bytes it requires non-empty
    spatial dims."""
    batch, *rest = operand_dims(op, 0)
    least = product(rest[1:]) if _is_of_bytes(op) else maximum(product(rest), 1 - batch)
    return [at_most(1, least, "its input is empty")]


def _is_of_bytes(op: OnnxOp) -> bool:
    """True if ONNX Runtime fuses it to a QLinearGlobalAveragePool, judged by the nodes in the region."""
    before, after = op.operands[0].owner, [use.operation for use in op.results[0].uses]
    return (
        op.name == "onnx.GlobalAveragePool"
        and isinstance(before, Operation)
        and before.name == "onnx.DequantizeLinear"
        and all(user.name == "onnx.QuantizeLinear" or user.has_trait(IsTerminator) for user in after)
    )


SPECS: list[OpSpec] = [
    OpSpec(
        "AveragePool",
        _infer,
        lower=_average,
        legal=float_legal(_reason),
        requires=_requires,
        flops=window_flops,
        kind="reduction",
    ),
    OpSpec(
        "LpPool",
        _infer,
        lower=_lp_pool,
        legal=float_legal(_lp_reason),
        requires=_requires,
        flops=window_flops,
        kind="reduction",
    ),
    OpSpec(
        "MaxPool",
        _infer,
        lower=_max_pool,
        legal=legal(computed_reason, _reason),
        requires=_requires,
        flops=window_flops,
        kind="reduction",
    ),
    OpSpec(
        "com.microsoft.NhwcMaxPool",
        _infer_nhwc,
        lower=_nhwc_max_pool,
        legal=legal(computed_reason, _reason),
        requires=_requires,
        flops=window_flops,
        kind="reduction",
    ),
    OpSpec(
        "LRN",
        same_as_input(None),
        lower=_local_response,
        legal=float_legal(_local_response_reason),
        flops=counted("elements of the input × size", lambda op: product(operand_dims(op, 0)) * int(op.attr("size"))),
        kind="normalization",
    ),
    *(
        OpSpec(
            name,
            _infer_global,
            lower=lower,
            legal=float_legal(_reason),
            requires=_requires,
            flops=window_flops,
            kind="reduction",
        )
        for name, lower in (
            ("GlobalAveragePool", _global_average),
            ("GlobalLpPool", _global_lp),
            ("GlobalMaxPool", _global("max")),
        )
    ),
]
