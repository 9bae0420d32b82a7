"""DynamicQuantizeLSTM of com.microsoft: an LSTM with products of bytes, as in ONNX Runtime on one thread.

One scale and zero point quantise the inputs of all steps to u8. At every step another pair quantises the states of the
whole batch: all sequences take each step together, and the recurrence has no parallel axis. On several threads ONNX
Runtime splits the batch and quantises each part separately, so its results depend on the number of threads.

  codes, scale, zero = the inputs, or the states, in 255 steps   sum[column]        = sum (codes[k] - zero) *
(weights[k, column] - weights' zero)       exact, in i32   product[column]    = sum[column] * (scale * weights'
scale[column])                     the gates add them, in f32

The rest of a cell is that of LSTM (`recurrent`); scales and zero points are those of DynamicQuantizeLinear
(`quantization`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i8, i32, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.ops.quantization import (
    dynamic_parameters,
    extreme_of,
    quantized,
    quantized_tensor,
    range_scale,
    range_zero,
    size_toward,
)
from igniter.dialects.onnx.ops.recurrent import (
    Direction,
    activations_reason,
    check_lengths,
    direction_count,
    lstm_cell,
    operand_shapes,
    recurrence,
    shapes_reason,
)
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, product
from igniter.dialects.sym.requirements import FINE

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

SIDES = (-1, 1)


def _infer(ctx: InferContext) -> list[TensorInfo]:
    x, given = input_dims(ctx, 0), ctx.op.attr("hidden_size")
    element = element_type(ctx)
    if x is None or len(x) != 3 or not given:
        return [TensorInfo(element, None)] * 3
    directions, hidden = Expr.of(direction_count(ctx.op)), Expr.of(int(given))
    for index, dims in _shapes(ctx.op, x, hidden).items():
        for have, want in zip(input_dims(ctx, index) or (), dims, strict=False):
            ctx.equate(have, want)
    state = TensorInfo(element, (directions, x[1], hidden))
    return [TensorInfo(element, (x[0], directions, x[1], hidden)), state, state]


def _shapes(op: OnnxOp, x: Dims, hidden: Expr) -> dict[int, Dims]:
    """Returns the dims of LSTM's operands, with the weights of a step transposed."""
    directions = Expr.of(direction_count(op))
    shapes = operand_shapes(op, x, directions, hidden)
    return {**shapes, 1: (directions, x[2], hidden * 4), 2: (directions, hidden, hidden * 4)}


# -- the inputs -------------------------------------------------------------------------------------------------------


def lower(ctx: Lowering) -> list[SSAValue | None]:
    hidden, lengths = ctx.dims(2)[1], ctx.input(4)
    check_lengths(ctx)
    for k in (9, 11):
        _check_zero_points(ctx, ctx.required(k))
    x, more = ctx.required(0), {"r": ctx.required(2), "r_scale": ctx.required(10), "r_zero": ctx.required(11)}
    if lengths is not None:
        more["longest"] = ctx.reduce(
            "max", lengths, [0], lambda n: n.to(i64), keepdims=False, element=i64, part="longest"
        )
        x = _within(ctx, x, more["longest"])
    scale, zero = dynamic_parameters(ctx, x)
    codes = quantized_tensor(ctx, x, scale, zero, ctx.dims(0))
    inputs = [_products(ctx, codes, scale, zero, hidden * 4, k) for k in range(direction_count(ctx.op))]
    return recurrence(ctx, hidden, inputs, more, _recur, together=True)


def _within(ctx: Lowering, x: SSAValue, longest: SSAValue) -> SSAValue:
    """Returns the input with zeros after the end of the longest sequence, which do not affect its range."""

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return (nest.index(i[0]) < nest.read(longest, [])).select(nest.read(x, i), 0.0)

    return ctx.generate(dims_of(x.type), point, part="within")


def _products(
    ctx: Lowering, codes: SSAValue, scale: SSAValue, zero: SSAValue, columns: Expr, direction: int
) -> SSAValue:
    """Returns the inputs of all steps times the weights of one direction, as f32."""
    dims, w, factors, zeros = ctx.dims(0), ctx.required(1), ctx.required(8), ctx.required(9)

    def product_of(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        code = nest.read(codes, [i[0], i[1], r[0]]).to(i32) - nest.read(zero, []).to(i32)
        own = nest.read(zeros, _parameter(zeros, direction, ZERO)).to(i32)
        return code * (nest.read(w, [direction, r[0], i[2]]).to(i32) - own)

    made = (*dims[:2], columns)
    sums = ctx.generate(made, product_of, over=[dims[2]], combiner="add", element=i32, part="inputs")

    def scaled(nest: Nest, i: Sequence[Expr]) -> Scalar:
        factor = nest.read(factors, _parameter(factors, direction, i[2]))
        return nest.read(sums, i).to(f32) * (nest.read(scale, []) * factor)

    return ctx.generate(made, scaled, part="inputs.scaled")


def _parameter(tensor: SSAValue, direction: int, column: Expr) -> list[Expr]:
    """Returns the subscripts of a scale or zero point with one number per direction, or one per column."""
    return [Expr.of(direction), column][: len(dims_of(tensor.type))]


def _check_zero_points(ctx: Lowering, zeros: SSAValue) -> None:
    """Makes a run end with an error, as in ONNX Runtime, if the zero points of columns differ; those of signed weights
    must be 0."""
    dims = dims_of(zeros.type)
    if len(dims) == 1:
        return
    signed = element_of(zeros.type) == i8

    def wrong(nest: Nest, _: Sequence[Expr], at: Sequence[Expr]) -> Scalar:
        value = nest.read(zeros, at).to(i64)
        common = 0 if signed else nest.read(zeros, [ZERO, ZERO]).to(i64)
        return value.ne(common).select(value, nest.const(FINE, i64))

    found = ctx.generate([], wrong, over=dims, combiner="max", element=i64, part="check")
    ctx.check(found, f"the zero points of all columns are {'0' if signed else 'one number'}; one is")


# -- the recurrence ---------------------------------------------------------------------------------------------------


def _recur(d: Direction) -> None:
    """Computes one direction: at each step it quantises the states of all sequences together, then
    updates each cell."""
    p, batch = d.p, d.together
    assert batch is not None
    state, cell = d.local("h"), d.local("c")
    with p.loop(batch) as b:
        own = replace(d, batch=b)
        own.start("h", state)
        own.start("c", cell)
    longest = d.buffers.get("longest")
    end = d.steps if longest is None else p.load(longest, []).maximum(0).minimum(p.index(d.steps))
    with p.sequential(end) as s:
        codes, scale = _quantised(d, batch, state, s)
        with p.loop(batch) as b:
            own = replace(d, batch=b)
            length = own.length()
            with p.when(*([] if length is None else [p.index(s) < length])):
                _step(own, state, cell, own.time(s, length), codes, scale)
    with p.loop(batch) as b:
        own = replace(d, batch=b)
        own.finish({"y_h": state, "y_c": cell}, own.length())


def _quantised(d: Direction, batch: Expr, state: SSAValue, s: Expr) -> tuple[SSAValue, Scalar]:
    """Returns the states before step `s` as i32 codes minus their zero point, `[batch, hidden]`, and their scale."""
    p = d.p

    def value(b: Expr, k: Expr) -> Scalar:
        found, length = p.load(state, [b, k]), replace(d, batch=b).length()
        # ONNX Runtime reads its output of the previous step, which is 0 after the end of a sequence.
        return found if length is None else (p.index(s) <= length).select(found, 0.0)

    sizes = [p.variable(p.const(0, i32), "size") for _ in SIDES]
    with p.fold(batch) as b, p.fold(d.hidden) as k:
        found = value(b, k)
        for sign, size in zip(SIDES, sizes, strict=True):
            p.accumulate("max", size_toward(found, sign), size.buffer, [])
    low, high = (extreme_of(size.get(), sign) for sign, size in zip(SIDES, sizes, strict=True))
    scale = range_scale(low, high)
    zero = range_zero(low, scale)
    codes = p.local(i32, [batch, d.hidden], "codes")
    with p.loop(batch) as b, p.loop(d.hidden) as k:
        p.store(quantized(value(b, k), scale, zero, ui8).to(i32) - zero.to(i32), codes, [b, k])
    return codes, scale


def _step(d: Direction, state: SSAValue, cell: SSAValue, t: Expr | Scalar, codes: SSAValue, scale: Scalar) -> None:
    """Computes one step of one sequence: its products with all columns, then its cell."""
    p, r, factors, zeros = d.p, d.buffers["r"], d.buffers["r_scale"], d.buffers["r_zero"]
    columns = d.hidden * 4
    sums, gates = p.local(i32, [columns], "sums"), p.local(f32, [columns], "gates")
    zero = p.load(zeros, _parameter(zeros, d.number, ZERO)).to(i32)
    with p.loop(columns) as j:
        p.store(0, sums, [j])
    # Columns are contiguous in memory, so they are the innermost loop.
    with p.fold(d.hidden) as k:
        code = p.load(codes, [d.batch, k])
        with p.loop(columns) as j:
            p.accumulate("add", code * (p.load(r, [d.number, k, j]).to(i32) - zero), sums, [j])
    with p.loop(columns) as j:
        factor = p.load(factors, _parameter(factors, d.number, j))
        p.store(p.load(sums, [j]).to(f32) * (scale * factor), gates, [j])
    lstm_cell(d, state, cell, t, lambda number, j: p.load(gates, [d.hidden * number + j]))
    d.show(state, t)


# -- legality, cost ---------------------------------------------------------------------------------------------------


def _reason(op: OnnxOp) -> str | None:
    x, hidden = operand_dims(op, 0), op.attr("hidden_size")
    if element_of(op.operands[0].type) != f32:
        return "it quantises f32 only"
    if op.attr("layout", 0):
        return "its batch is the first axis, which ONNX Runtime does not support"
    if len(x) != 3:
        return f"its input has {len(x)} dims"
    if not hidden:
        return "its hidden size is not given"
    if operand(op, 4) is not None and op.outputs[0] is None:
        return "its states after the end of a sequence influence a scale, unless all states are an output"
    shapes = _shapes(op, x, Expr.of(int(hidden)))
    return activations_reason(op) or shapes_reason(op, shapes) or _parameters_reason(op, shapes[1])


def _parameters_reason(op: OnnxOp, weights: Dims) -> str | None:
    """Returns the reason why the scales or zero points do not fit the weights, or are not known to; None if they do."""
    for name, scale, zero in (("W", 8, 9), ("R", 10, 11)):
        dims = operand_dims(op, scale)
        if dims not in (weights[:1], (weights[0], weights[2])):
            return f"the scales of {name} are not known to be one for each direction, or one for each of its columns"
        if operand_dims(op, zero) != dims:
            return f"the zero points and the scales of {name} have different dims"
    return None


def _macs(op: OnnxOp) -> Expr:
    """steps × batch × directions × gates × hidden × (input + hidden)"""
    x, r = operand_dims(op, 0), operand_dims(op, 2)
    return product((*x[:2], r[0], r[2], x[2] + r[1]))


SPECS: list[OpSpec] = [
    OpSpec(
        "com.microsoft.DynamicQuantizeLSTM",
        infer=_infer,
        lower=lower,
        legal=legal(_reason),
        macs=_macs,
        flops=twice(_macs),
        unprofitable=lambda op, estimate: "its products of bytes have no micro-kernel, and ONNX Runtime has one",
        kind="recurrent",
    )
]
