"""Quantisation: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, bit-exact with ONNX Runtime.

A scale, and a zero point of the same dims, applies to the tensor, to one index along an axis, or to one block of
elements along an axis. All ops are elementwise, so they fuse with neighbouring ops, and only bytes reach memory.

  q = clamp(x / scale, least - zero, greatest - zero) rounded half to even, + zero          NaN: least   x = (q - zero)
* scale

Floats of eight bits are codes too, with a scale and without a zero point: Cast rounds `x / scale` to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import bf16, f16, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop.attrs import SMALL_FLOATS
from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.scalar import int_bits, int_limits
from igniter.dialects.onnx.lowering.small_floats import FORMATS, encode
from igniter.dialects.onnx.ops.pointwise import elementwise_flops, ui8
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, normal_axis, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import BY_CODE
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv
from igniter.dialects.sym.requirements import FINE

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.context import Subscripts

WIDEST_BITS = 16
"""The widest integers to which floats are quantised."""

MAGIC = 12582912.0
"""The number 1.5 * 2^23: adding a float below 2^22 rounds it half to even, to an integer in the low bits of the sum."""
MAGIC_BITS = 0x4B400000


# -- scalars ----------------------------------------------------------------------------------------------------------


def quantized(x: Scalar, scale: Scalar, zero: Scalar | None, element: Attribute, saturate: bool = True) -> Scalar:
    """Returns `x` in steps of `scale` from `zero`, as an integer `element` of at most `WIDEST_BITS` bits, or as an
    8-bit float."""
    steps = x.widened().to(f32) / scale.widened().to(f32)
    if isinstance(element, SMALL_FLOATS):
        return encode(steps, element, saturate)
    least, greatest = int_limits(element)
    if zero is None or zero.number is not None:
        offset = 0 if zero is None else int(zero.number or 0)
        return (round_within(steps, least - offset, greatest - offset) + offset).to(element)
    whole = zero.to(i32)
    low, high = (whole * -1 + least).to(f32), (whole * -1 + greatest).to(f32)
    return (round_within(steps, low, high) + whole).to(element)


def round_within(x: Scalar, low: Scalar | float, high: Scalar | float) -> Scalar:
    """Returns `x` clamped to two whole numbers below 2^22, rounded half to even, as i32; `low` for NaN."""
    bounded = (x > low).select(x, low)
    bounded = (bounded < high).select(bounded, high)
    return (bounded + MAGIC).bits(i32) - MAGIC_BITS


def size_toward(v: Scalar, sign: int) -> Scalar:
    """Returns the distance of an f32 below (`sign` -1) or above 0, as its bits; 0 on the other side and for NaN.

    Magnitudes of floats compare like their bits; integer comparisons have instructions that floats with NaN lack.
    """
    toward = -v if sign < 0 else v
    return (toward > 0).select(toward, 0.0).bits(i32)


def extreme_of(size: Scalar, sign: int) -> Scalar:
    """Returns the extreme value with the greatest `size_toward`."""
    found = size.maximum(0).bits(f32)  # For no elements the greatest is the least integer.
    return 0.0 - found if sign < 0 else found


def range_scale(low: Scalar, high: Scalar) -> Scalar:
    """Returns the scale of a range that includes 0. As in ONNX Runtime, the range of 0 alone has scale 1."""
    return low.eq(high).select(1.0, (high - low) / 255.0)


def range_zero(low: Scalar, scale: Scalar) -> Scalar:
    """Returns the zero point, a u8, of a range that begins with `low`; 255 if its quotient with the scale is NaN."""
    start = 0.0 - low / scale
    return round_within((start < 255.0).select(start, 255.0), 0.0, 255.0).to(ui8)


def dequantized(q: Scalar, scale: Scalar, zero: Scalar | None) -> Scalar:
    """Returns the f32 value of an integer or an 8-bit float."""
    if isinstance(q.element, SMALL_FLOATS):
        return q.widened() * scale.widened().to(f32)
    whole = q.to(i32)
    if zero is not None and zero.number != 0:
        whole = whole - zero.to(i32)
    return whole.to(f32) * scale.widened().to(f32)


# -- where a scale applies --------------------------------------------------------------------------------------------


def parameter_at(nest: Nest, tensor: SSAValue, at: Subscripts, axis: int, block: int) -> Scalar:
    """Reads the scale or zero point of the element at `at`."""
    dims = dims_of(tensor.type)
    if all(d == ONE for d in dims) and not block:
        return nest.read(tensor, [ZERO] * len(dims))
    if len(dims) == 1 and not block:
        return nest.read(tensor, [at[axis]])
    where = list(at)
    where[axis] = floordiv(where[axis], Expr.of(block))
    return nest.read(tensor, where)


def axis_of(op: OnnxOp) -> int:
    return normal_axis(int(op.attr("axis", 1)), max(len(operand_dims(op, 0)), 2))


def block_of(op: OnnxOp) -> int:
    """Returns the elements of a block; 0 if scales apply to the tensor or an axis."""
    return int(op.attr("block_size", 0) or 0)


def parameters_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the scale or the zero point do not fit the data, or are not known to; None if they do."""
    dims, scale = operand_dims(op, 0), operand_dims(op, 1)
    if (
        operand(op, 2) is not None
        and operand_dims(op, 2) != scale
        and any(d != ONE for d in (*operand_dims(op, 2), *scale))
    ):
        return "its zero point and its scale have different dims"
    block = block_of(op)
    try:
        axis = axis_of(op)
    except ValueError as error:
        return str(error)
    if not block:
        single = all(d == ONE for d in scale)
        if single or (len(scale) == 1 and axis < len(dims) and scale[0] == dims[axis]):
            return None
        return f"its scales of dims {[str(d) for d in scale]} are not known to be one for each index along axis {axis}"
    wanted = [d.ceildiv(block) if k == axis else d for k, d in enumerate(dims)]
    if axis < len(dims) and list(scale) == wanted:
        return None
    return "it is not known to have one scale for each block"


def integer_reason(index: int, widest: int) -> Callable[[OnnxOp], str | None]:
    """Returns the check that an operand, or the result at index -1, has integers of at most `widest` bits, or 8-bit
    floats with a zero point of 0."""

    def check(op: OnnxOp) -> str | None:
        found = element_of((op.results[0] if index < 0 else op.operands[index]).type)
        if found in FORMATS:
            # Zero points of QuantizeLinear are not checked here.
            zero = operand(op, 2) if index == 0 else None
            known = constant_value(zero) if zero is not None else None
            if known is None or not known.view("uint8").any():
                return None
            return "zero points of 8-bit floats must be 0"
        if 1 < int_bits(found) <= widest:
            return None
        return f"quantisation to and from elements of type {found} is not supported yet"

    return check


def floats_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the quantised numbers or the scale have no kernel; None if they have one."""
    side = op.operands[0] if op.op_type == "QuantizeLinear" else op.results[0]
    for element in (element_of(side.type), element_of(op.operands[1].type)):
        if element not in (f32, f16, bf16) and not (side is op.operands[0] and element == i32):
            return f"quantisation of elements of type {element} is not supported yet"
    return None


# -- the ops ----------------------------------------------------------------------------------------------------------


def _fit(ctx: InferContext) -> None:
    """Equates the number of scales, if several in a vector, with the axis; a single one may apply
    to the whole tensor."""
    dims, scale = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None or scale is None or len(scale) != 1 or block_of(ctx.op):
        return
    size, axis = scale[0].constant, normal_axis(int(ctx.op.attr("axis", 1)), max(len(dims), 2))
    if size is not None and size > 1 and axis < len(dims):
        ctx.equate(dims[axis], scale[0])


def _quantize_infer(ctx: InferContext) -> list[TensorInfo]:
    _fit(ctx)
    zero = ctx.input(2)
    code = int(ctx.op.attr("output_dtype", 0) or 0)
    if zero is not None:
        element: Attribute = zero.element
    else:
        known = BY_CODE.get(code)
        element = ui8 if known is None else known.attr
    return infos(element, input_dims(ctx, 0))


def _dequantize_infer(ctx: InferContext) -> list[TensorInfo]:
    _fit(ctx)
    known = BY_CODE.get(int(ctx.op.attr("output_dtype", 0) or 0))
    return infos(element_type(ctx, 1) if known is None else known.attr, input_dims(ctx, 0))


def _parameters(ctx: Lowering, nest: Nest, at: Subscripts) -> tuple[Scalar, Scalar | None]:
    axis, block, zero = axis_of(ctx.op), block_of(ctx.op), ctx.input(2)
    scale = parameter_at(nest, ctx.required(1), at, axis, block)
    return scale, None if zero is None else parameter_at(nest, zero, at, axis, block)


def _quantize(ctx: Lowering) -> list[SSAValue]:
    x, element, saturate = ctx.required(0), ctx.out_element(), bool(ctx.attr("saturate", 1))

    def point(nest: Nest, at: Subscripts) -> Scalar:
        return quantized(nest.read(x, at), *_parameters(ctx, nest, at), element, saturate)

    return [ctx.generate(ctx.out_dims(), point)]


def _dequantize(ctx: Lowering) -> list[SSAValue]:
    x, zero = ctx.required(0), ctx.input(2)
    if zero is not None and ctx.element(0) in FORMATS and ctx.constant(2) is None:
        _check_zeros(ctx, zero)

    def point(nest: Nest, at: Subscripts) -> Scalar:
        return dequantized(nest.read(x, at), *_parameters(ctx, nest, at)).to(ctx.out_element())

    return [ctx.generate(ctx.out_dims(), point)]


def _check_zeros(ctx: Lowering, zero: SSAValue) -> None:
    """Makes a run end with an error, as in ONNX Runtime, if the zero point of an 8-bit float is not 0."""

    def wrong(nest: Nest, _: Subscripts, at: Subscripts) -> Scalar:
        code = nest.read(zero, at).bits(ui8).to(i64)
        return code.ne(0).select(code, nest.const(FINE, i64))

    found = ctx.generate([], wrong, over=dims_of(zero.type), combiner="max", element=i64, part="check")
    ctx.check(found, "zero points of 8-bit floats must be 0; one has the code")


def _dynamic_infer(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(ui8, input_dims(ctx, 0)), TensorInfo(f32, ()), TensorInfo(ui8, ())]


def _dynamic(ctx: Lowering) -> list[SSAValue | None]:
    x, dims = ctx.required(0), ctx.dims(0)
    scale, zero = dynamic_parameters(ctx, x)
    return [quantized_tensor(ctx, x, scale, zero, dims), scale, zero]


def dynamic_parameters(ctx: Lowering, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the scale (f32) and the zero point (u8), both rank 0, that divide the range of a tensor into 255 steps.

    The extremes of rows come first, next to the computation of the rows; then the extremes of these few values.
    """
    low, high = (_extreme(ctx, x, sign) for sign in (-1, 1))
    scale = ctx.map(range_scale, low, high, dims=(), element=f32, part="scale")
    return scale, ctx.map(range_zero, low, scale, dims=(), element=ui8, part="zero")


def quantized_tensor(ctx: Lowering, x: SSAValue, scale: SSAValue, zero: SSAValue, dims: Dims) -> SSAValue:
    """Returns a tensor quantised by one scale and one zero point, as u8."""
    return ctx.map(lambda v, s, z: quantized(v, s, z, ui8), x, scale, zero, dims=dims, element=ui8)


def _extreme(ctx: Lowering, x: SSAValue, sign: int) -> SSAValue:
    """Returns the least (`sign` -1) or the greatest element including 0, as f32 of rank 0. Ignores NaN."""
    dims = dims_of(x.type)

    def size(v: Scalar) -> Scalar:
        return size_toward(v, sign)

    part = "min" if sign < 0 else "max"
    last = len(dims) - 1
    if last > 0:
        rows = ctx.reduce("max", x, [last], size, keepdims=False, element=i32, part=f"{part}.row")
        bits = ctx.reduce("max", rows, range(last), keepdims=False, element=i32, part=part)
    else:
        bits = ctx.reduce("max", x, range(len(dims)), size, keepdims=False, element=i32, part=part)
    return ctx.map(lambda v: extreme_of(v, sign), bits, dims=(), element=f32, part=f"{part}.value")


def _dynamic_reason(op: OnnxOp) -> str | None:
    return None if element_of(op.operands[0].type) == f32 else "it quantises f32 only"


def _specs(domain: str) -> Sequence[OpSpec]:
    """Returns the specs of ONNX's ops and of their equivalents in ONNX Runtime, which supported more types earlier."""
    return (
        OpSpec(
            f"{domain}QuantizeLinear",
            infer=_quantize_infer,
            lower=_quantize,
            legal=legal(floats_reason, integer_reason(-1, WIDEST_BITS), parameters_reason),
            flops=elementwise_flops(8),
            kind="elementwise",
        ),
        OpSpec(
            f"{domain}DequantizeLinear",
            infer=_dequantize_infer,
            lower=_dequantize,
            legal=legal(floats_reason, integer_reason(0, 32), parameters_reason),
            flops=elementwise_flops(3),
            kind="elementwise",
        ),
    )


SPECS: list[OpSpec] = [
    *_specs(""),
    *_specs("com.microsoft."),
    OpSpec(
        "DynamicQuantizeLinear",
        infer=_dynamic_infer,
        lower=_dynamic,
        legal=legal(_dynamic_reason),
        flops=elementwise_flops(12),
        kind="elementwise",
    ),
]

__all__ = [
    "SPECS",
    "dequantized",
    "dynamic_parameters",
    "extreme_of",
    "parameter_at",
    "quantized",
    "quantized_tensor",
    "range_scale",
    "range_zero",
    "round_within",
    "size_toward",
]
