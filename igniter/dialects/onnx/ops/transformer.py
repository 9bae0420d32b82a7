"""The transformer ops of ONNX Runtime: a residual, or embeddings, followed by a normalisation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.normalization import layer_norm_of, norm_spec, rms_norm_of, trailing_reason
from igniter.dialects.onnx.ops.pointwise import float_attr
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, Expr
from igniter.dialects.sym.requirements import Requirement, at_most, equal, one_or

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import Subscripts


# -- residuals ----------------------------------------------------------------------------------


def _skip_sum(ctx: Lowering, bias_index: int) -> SSAValue:
    """Returns `input + skip + bias`; the skip may lack the batch dim."""
    x, skip, bias = ctx.required(0), ctx.required(1), ctx.input(bias_index)
    element, dims = ctx.element(0), ctx.dims(0)
    if bias is None:
        return ctx.map(lambda a, b: a + b, x, skip, element=element, dims=dims, part="skip")
    return ctx.map(lambda a, b, c: a + b + c, x, skip, bias, element=element, dims=dims, part="skip")


def _skip_layer_norm(ctx: Lowering) -> list[SSAValue | None]:
    total = _skip_sum(ctx, 4)
    made, _, _ = layer_norm_of(ctx, total, ctx.required(2), ctx.input(3), float_attr(ctx, "epsilon", 1e-12))
    return [made, None, None, total if ctx.wants(3) else None]


def _skip_rms_norm(ctx: Lowering) -> list[SSAValue | None]:
    total = _skip_sum(ctx, 3)
    made, _ = rms_norm_of(ctx, total, ctx.required(2), float_attr(ctx, "epsilon", 1e-12))
    return [made, None, None, total if ctx.wants(3) else None]


def _skip_infer(ctx: InferContext) -> list[TensorInfo]:
    dims, own = input_dims(ctx, 0), element_type(ctx)
    rows = None if dims is None else (*dims[:-1], ONE)
    return [TensorInfo(own, dims), TensorInfo(f32, rows), TensorInfo(f32, rows), TensorInfo(own, dims)]


def _skip_reason(op: OnnxOp) -> str | None:
    outputs = op.outputs
    if any(v is not None and v.first_use is not None for v in outputs[1:3]):
        return "its mean and deviation are outputs for training, which ONNX Runtime does not compute"
    if len(operand_dims(op, 1)) not in (2, 3):
        return "the added tensor is neither a batch nor a single sequence"
    return trailing_reason(op)


def _skip_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a skip with the dims of the input, or one sequence for the whole batch."""
    dims, skip = operand_dims(op, 0), operand_dims(op, 1)
    text = "the added tensor does not have the dims of the input"
    found = [at_most(1, dims[-1], "its rows are empty")]
    found += [equal(a, b, text) for a, b in zip(skip[-2:], dims[-2:], strict=True)]
    return found if len(skip) < 3 or len(dims) < 3 else [*found, one_or(skip[0], dims[0], text)]


# -- embeddings -------------------------------------------------------------------------------------------------------


def _embed(ctx: Lowering) -> list[SSAValue | None]:
    """Computes the normalised sum of the embeddings of words, positions and segments, and the number of unmasked
    tokens.

    An id outside its table ends the run with an error, as in ONNX Runtime.
    """
    batch, length = ctx.dims(0)
    dims = (batch, length, ctx.dims(2)[1])
    words, positions, segments = ctx.required(2), ctx.required(3), ctx.input(4)
    for ids, table in ((0, words), (8, positions), (1, segments)):
        given = ctx.input(ids)
        if given is not None and table is not None:
            ctx.check_indices(given, dims_of(table.type)[0], "input index out of range", negative=False)

    def point(nest: Nest, at: Subscripts) -> Scalar:
        places = ctx.input(8)
        place = at[1] if places is None else ctx.read_broadcast(nest, places, at[:2], dims[:2])
        found = _row(nest, words, nest.read(ctx.required(0), at[:2]), at[2])
        ids = ctx.input(1)
        if segments is not None and ids is not None:
            found = found + _row(nest, segments, nest.read(ids, at[:2]), at[2])
        return found + _row(nest, positions, place, at[2])

    total = ctx.generate(dims, point, element=ctx.element(2), part="sum")
    made, _, _ = layer_norm_of(ctx, total, ctx.required(5), ctx.input(6), float_attr(ctx, "epsilon", 1e-12))
    return [made, _mask_index(ctx) if ctx.wants(1) else None, total if ctx.wants(2) else None]


def _row(nest: Nest, table: SSAValue, row: Scalar | Expr, column: Expr) -> Scalar:
    last = dims_of(table.type)[0] - 1
    if isinstance(row, Expr):
        return nest.read(table, [row, column], guards=[last - row])
    name = Expr.of("_0")
    return nest.read(table, [name, column], guards=[name, last - name], indices=[row])


def _mask_index(ctx: Lowering) -> SSAValue:
    """Returns the number of ones in each row of the mask; 0 without a mask."""
    mask = ctx.input(7)
    if mask is None:
        return ctx.splat(0, ctx.dims(0)[:1], i32)
    return ctx.reduce("add", mask, [1], lambda m: m.eq(1).to(i32), keepdims=False, element=i32, part="mask")


def _embed_infer(ctx: InferContext) -> list[TensorInfo]:
    ids, table, element = input_dims(ctx, 0), input_dims(ctx, 2), element_type(ctx, 2)
    if ids is None or table is None:
        return [TensorInfo(element, None), TensorInfo(i32, None), TensorInfo(element, None)]
    dims = (*ids, table[1])
    return [TensorInfo(element, dims), TensorInfo(i32, ids[:1]), TensorInfo(element, dims)]


def _embed_requires(op: OnnxOp) -> list[Requirement]:
    """Requires, without explicit positions, an embedding for every position of the sequence."""
    if operand(op, 8) is not None:
        return []
    return [at_most(operand_dims(op, 0)[1], operand_dims(op, 3)[0], "it does not have an embedding for every position")]


def _embed_reason(op: OnnxOp) -> str | None:
    shapes: list[Dims] = [() if v is None else dims_of(v.type) for v in op.inputs]
    if len(shapes[0]) != 2 or any(len(shapes[k]) != 2 for k in (2, 3)):
        return "its ids or its tables do not have rank 2"
    if len(shapes) > 8 and shapes[8] and shapes[8] != shapes[0] and shapes[8] != (ONE, shapes[0][1]):
        return "its positions do not have the dims of its ids"
    if shapes[1] and shapes[1] != shapes[0]:
        return "its segments do not have the dims of its ids"
    if any(shape and shape[-1] != shapes[2][1] for shape in (shapes[3], shapes[4], *shapes[5:7])):
        return "its tables do not all have the same width"
    return None


SPECS: list[OpSpec] = [
    replace(
        norm_spec("com.microsoft.EmbedLayerNormalization", _embed, _embed_reason, _embed_infer),
        requires=_embed_requires,
    ),
    norm_spec(
        "com.microsoft.SkipLayerNormalization", _skip_layer_norm, _skip_reason, _skip_infer, requires=_skip_requires
    ),
    norm_spec(
        "com.microsoft.SkipSimplifiedLayerNormalization", _skip_rms_norm, _skip_reason, _skip_infer, 6, _skip_requires
    ),
]
