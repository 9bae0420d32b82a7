"""Running sums and products along an axis: CumSum, CumProd.

The cost is linear in the number of elements. A scan along an axis other than the last vectorises over the inner dims.
Sums are rounded once per element, in the elements' own type (in f32 for 16-bit floats, whose results are rounded once),
in the order of the axis, as in ONNX Runtime. For an axis known only at run time, the kernel contains a scan for each
axis and selects one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.loop import PrefixAttr
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.pointwise import computed_reason, operand_count
from igniter.dialects.onnx.ops.rules import constants, element_type, input_dims, known, legal, normal_axis, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.loop import Combiner
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

Step = Callable[["Scalar", "Scalar"], "Scalar"]


def _infer(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(element_type(ctx), input_dims(ctx, 0))]


def known_axis(op: OnnxOp) -> int | None:
    """Returns the axis counted from the front if it is known at compile time; else None."""
    axes = constants(known(op, 1))
    return normal_axis(axes[0], len(operand_dims(op, 0))) if axes else None


def scan(combiner: Combiner, identity: int, step: Step) -> Callable[[Lowering], list[SSAValue]]:
    """Returns the lowering of a scan that combines with `step`, starting from `identity`."""

    def lower(ctx: Lowering) -> list[SSAValue]:
        dims, axis = ctx.dims(0), known_axis(ctx.op)
        if axis is not None:
            return [_known(ctx, dims, axis, (combiner, identity, step))]
        return [_any_axis(ctx, dims, identity, step)]

    return lower


def _known(ctx: Lowering, dims: Dims, axis: int, how: tuple[Combiner, int, Step]) -> SSAValue:
    """Scans along one axis: the dims before it are points, those after it are contiguous."""
    combiner, identity, step = how
    shape = (product(dims[:axis]), dims[axis], product(dims[axis + 1 :]))
    p = ctx.procedure([ctx.view(ctx.required(0), shape)], [tensor_of(ctx.out_element(), shape)])
    _scan(ctx, p, [p.parallel(shape[0])], shape, identity, step)
    exclusive, reverse = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
    return ctx.view(p.end(PrefixAttr.of(combiner, exclusive=exclusive, reverse=reverse))[0], dims)


def _any_axis(ctx: Lowering, dims: Dims, identity: int, step: Step) -> SSAValue:
    """Scans along the axis in the second operand."""
    p = ctx.procedure([ctx.required(0), ctx.required(1)], [ctx.output_type()])
    source, given, target = p.buffers
    axis = p.load(given, [0] * len(ctx.dims(1))).to(i64)
    axis = (axis < 0).select(axis + len(dims), axis)
    for k in range(len(dims)):
        with p.when(axis.eq(k)), p.over([d for i, d in enumerate(dims) if i != k]) as at:
            _along(ctx, p, lambda t, k=k, at=at: [*at[:k], t, *at[k:]], dims[k], (source, target), identity, step)
    return p.end()[0]


def _along(
    ctx: Lowering,
    p: Procedure,
    place: Callable[[Expr], Sequence[Expr]],
    extent: Expr,
    buffers: tuple[SSAValue, SSAValue],
    identity: int,
    step: Step,
) -> None:
    """Computes one scan, of the elements at `place(t)`."""
    source, target = buffers
    exclusive, reverse = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
    total = p.variable(p.const(identity, compute_type(ctx.element(0))), "total")
    with p.sequential(extent) as t:
        at = place(extent - 1 - t if reverse else t)
        before = total.get()
        after = step(before, p.load(source, at))
        total.set(after)
        p.store(before if exclusive else after, target, at)


def _scan(ctx: Lowering, p: Procedure, outer: list[Expr], shape: Dims, identity: int, step: Step) -> None:
    """Computes scans of `shape[1]` steps at the points `outer`: one for each of the inner elements."""
    source, target = p.buffers
    if shape[2] == ONE:
        _along(ctx, p, lambda t: [*outer, t, Expr.of(0)], shape[1], (source, target), identity, step)
        return
    exclusive, reverse = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
    totals = p.local(compute_type(ctx.element(0)), [shape[2]], "totals")
    with p.loop(shape[2]) as j:
        p.store(identity, totals, [j])
    with p.sequential(shape[1]) as t, p.loop(shape[2]) as j:
        at = [*outer, shape[1] - 1 - t if reverse else t, j]
        before = p.load(totals, [j])
        after = step(before, p.load(source, at))
        p.store(after, totals, [j])
        p.store(before if exclusive else after, target, at)


def _axis_reason(op: OnnxOp) -> str | None:
    return None if operand_dims(op, 0) else "it has no axis to run along"


def _spec(name: str, combiner: Combiner, identity: int, step: Step) -> OpSpec:
    return OpSpec(
        name,
        infer=_infer,
        lower=scan(combiner, identity, step),
        legal=legal(computed_reason, _axis_reason),
        flops=counted("elements of the input", operand_count),
        kind="reduction",
    )


SPECS: list[OpSpec] = [
    _spec("CumProd", "mul", 1, lambda total, x: total * x),
    _spec("CumSum", "add", 0, lambda total, x: total + x),
]
