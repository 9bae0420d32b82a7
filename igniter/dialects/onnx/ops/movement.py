"""Ops of pure data movement: views, permutations and copies. Slices and joins are in `windows.py`, reads with indices
in `indexing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering
from igniter.dialects.onnx.lowering.broadcast import broadcast_reason, is_capped
from igniter.dialects.onnx.ops.rules import (
    attr_or_input,
    broadcast,
    constants,
    element_type,
    equate_length,
    infos,
    input_dims,
    known,
    legal,
    needs_values,
    normal_axis,
    operand_dims,
    same_count,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, product
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, at_most, equal, one_or

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

    Array = np.ndarray[Any, Any]

# -- views ------------------------------------------------------------------------------------------------------------


def infer_reshape(ctx: InferContext) -> list[TensorInfo]:
    dims, target = input_dims(ctx, 0), attr_or_input(ctx.op, "shape", ctx.values(1))
    if target is None:
        shape = input_dims(ctx, 1)
        rank = shape[0].constant if shape else None
        return infos(element_type(ctx), None if rank is None else [ctx.fresh(f"reshape_{k}") for k in range(rank)])
    result: list[Expr] = []
    keep = not ctx.op.attr("allowzero", 0)
    for k, size in enumerate(target):
        if size == ZERO and keep:
            if dims is None:
                result.append(ctx.fresh(f"reshape_{k}"))
                continue
            size = dims[k]
        result.append(size)
    open_dims = [k for k, size in enumerate(result) if size.constant == -1]
    if open_dims:
        rest = product(d for d in result if d.constant != -1)
        # The input may have no elements: then -1 follows from the rule for a zero dim kept from the input.
        if dims is None or (rest.constant == 0):
            result[open_dims[0]] = ZERO if dims is not None else ctx.fresh("reshape")
        else:
            result[open_dims[0]] = tidy(_quotient(dims, [d for d in result if d.constant != -1]))
    return infos(element_type(ctx), result)


def _quotient(dims: Sequence[Expr], divisors: Sequence[Expr]) -> Expr:
    """Returns the quotient of the products of `dims` and `divisors`, after cancelling common factors."""
    left: list[Expr] = list(dims)
    right: list[Expr] = []
    for d in divisors:
        if d in left:
            left.remove(d)
        else:
            right.append(d)
    return floordiv(product(left), product(right))


def infer_flatten(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return infos(element_type(ctx), [ctx.fresh("flatten_0"), ctx.fresh("flatten_1")])
    axis = ctx.op.attr("axis", 1)
    axis = axis + len(dims) if axis < 0 else axis
    return infos(element_type(ctx), [product(dims[:axis]), product(dims[axis:])])


def infer_squeeze(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    axes = constants(attr_or_input(ctx.op, "axes", ctx.values(1)))
    if dims is None or (axes is None and ctx.input(1) is not None):
        return unknown_rank(ctx)
    if not axes:  # ONNX Runtime treats an empty list as absent
        if any(d.constant is None for d in dims):
            # The rank depends on the symbols: a dim of 1 is dropped.
            return unknown_rank(ctx)
        dropped = {k for k, d in enumerate(dims) if d == ONE}
    else:
        dropped = {normal_axis(a, len(dims)) for a in axes}
        for k in dropped:
            ctx.equate(dims[k], ONE)
    return infos(element_type(ctx), [d for k, d in enumerate(dims) if k not in dropped])


def infer_unsqueeze(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    axes = constants(attr_or_input(ctx.op, "axes", ctx.values(1)))
    if dims is None or axes is None:
        return unknown_rank(ctx)
    rank = len(dims) + len(axes)
    places = {normal_axis(a, rank) for a in axes}
    rest = iter(dims)
    return infos(element_type(ctx), [ONE if k in places else next(rest) for k in range(rank)])


def lower_view(ctx: Lowering) -> list[SSAValue]:
    return [ctx.view(ctx.required(0), ctx.out_dims())]


def reshape_requires(op: OnnxOp) -> list[Requirement]:
    """Requires an equal number of elements, a whole number for -1, and for a computed 0 the size of its dim."""
    before, after = operand_dims(op, 0), dims_of(op.results[0].type)
    text = "the input cannot be reshaped to the requested shape"
    found = [equal(product(before), product(after), text)]
    target = attr_or_input(op, "shape", known(op, 1)) or ()
    keep = not op.attr("allowzero", 0)
    for k, size in enumerate(target):
        if size.constant == -1:
            found.append(at_most(1, product((*after[:k], *after[k + 1 :])), text))
        elif keep and k >= len(before):
            found.append(at_most(1, size, text))
        elif keep and size.constant is None and size != before[k]:
            found.append(at_most(1, maximum(size, 1 - before[k]), text))
    return found


def view_reason(op: OnnxOp) -> str | None:
    before, after = operand_dims(op, 0), dims_of(op.results[0].type)
    if same_count(before, after):
        return None
    return f"[{_text(before)}] and [{_text(after)}] are not known to have the same number of elements"


def reshape_reason(op: OnnxOp) -> str | None:
    """Returns a reason only for unknown or constant shapes; runs check shapes known as expressions:
    `reshape_requires`."""
    if attr_or_input(op, "shape", known(op, 1)) is None:
        return view_reason(op)
    counts = [product(d).constant for d in (operand_dims(op, 0), dims_of(op.results[0].type))]
    return view_reason(op) if None not in counts else None


def _text(dims: Sequence[Expr]) -> str:
    return ", ".join(map(str, dims))


# -- Transpose, Expand, Tile ------------------------------------------------------------------------------------------


def permutation(op: OnnxOp, rank: int) -> list[int]:
    given = op.attr("perm")
    return [normal_axis(p, rank) for p in given] if given is not None else list(range(rank))[::-1]


def infer_transpose(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    return infos(element_type(ctx), [dims[p] for p in permutation(ctx.op, len(dims))])


def lower_transpose(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    places = permutation(ctx.op, len(dims))
    wide = [p for p in places if dims[p] != ONE]
    if wide == sorted(wide):
        return [ctx.view(x, ctx.out_dims())]
    inverse = [places.index(d) for d in range(len(dims))]
    return [ctx.generate(ctx.out_dims(), lambda nest, i: nest.read(x, [i[p] for p in inverse]))]


def fold_transpose(op: OnnxOp, operands: Sequence[Array | None]) -> list[Array] | None:
    """Computes a transpose of a constant. ONNX Runtime would first read a copy of it from a serialised model."""
    x = operands[0]
    # Other kinds are types that NumPy does not have.
    if x is None or x.dtype.kind not in "fiub":
        return None
    return [np.ascontiguousarray(np.transpose(x, permutation(op, x.ndim)))]


def infer_expand(ctx: InferContext) -> list[TensorInfo]:
    dims, target = input_dims(ctx, 0), ctx.values(1)
    if dims is None or target is None:
        shape = input_dims(ctx, 1)
        rank = shape[0].constant if shape else None
        if dims is None or rank is None:
            return unknown_rank(ctx)
        return infos(element_type(ctx), [ctx.fresh(f"expand_{k}") for k in range(max(rank, len(dims)))])
    if not ctx.optimistic:
        dims = _within(dims, target)
    return infos(element_type(ctx), broadcast(ctx, [dims, target], "expand"))


def _within(dims: Dims, target: Dims) -> Dims:
    """Returns the dims, with 1 for a symbolic dim that the requested one is never less than: `seq` beside
    `seq + past`. The result has the requested dim, as every run checks (`expand_requires`)."""
    missing = len(target) - len(dims)
    asked = (*dims[: max(0, -missing)], *target[max(0, missing) :])
    return tuple(
        ONE if d != a and d.constant is None and a.constant is None and is_nonneg(a - d) else d
        for d, a in zip(dims, asked, strict=True)
    )


def _is_requested(op: OnnxOp) -> bool:
    """True if each dim of the result is the requested one, so that those of the operand are equal to it or 1."""
    asked, after = known(op, 1) or (), dims_of(op.results[0].type)
    return len(asked) == len(after) and all(a == r for a, r in zip(asked, after, strict=True))


def expand_reason(op: OnnxOp) -> str | None:
    return broadcast_reason([operand_dims(op, 0)], dims_of(op.results[0].type), capped=_is_requested(op))


def expand_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a requested dim to be the result's, or 1; and a dim of the operand that only a run knows, likewise."""
    after, text = dims_of(op.results[0].type), "its shape does not broadcast"
    asked = (known(op, 1) or ())[::-1]
    found = [one_or(a, r, text) for a, r in zip(asked, after[::-1], strict=False)]
    before = operand_dims(op, 0)[::-1]
    return [*found, *(one_or(d, r, text) for d, r in zip(before, after[::-1], strict=False) if is_capped(d, r))]


def lower_expand(ctx: Lowering) -> list[SSAValue]:
    x, dims, capped = ctx.required(0), ctx.out_dims(), _is_requested(ctx.op)
    return [ctx.generate(dims, lambda nest, at: ctx.read_broadcast(nest, x, at, dims, capped))]


def infer_tile(ctx: InferContext) -> list[TensorInfo]:
    dims, repeats = input_dims(ctx, 0), ctx.values(1)
    if dims is None:
        return unknown_rank(ctx)
    if ctx.op.opset >= 6:
        equate_length(ctx, 1, len(dims))
    if repeats is None:
        return infos(element_type(ctx), [ctx.fresh(f"tile_{k}") for k in range(len(dims))])
    return infos(element_type(ctx), [d * r for d, r in zip(dims, repeats, strict=True)])


def lower_tile(ctx: Lowering) -> list[SSAValue]:
    x, dims, repeats = ctx.required(0), ctx.dims(0), ctx.values(1) or ()
    if any(d == ZERO for d in ctx.out_dims()):
        return [ctx.generate(ctx.out_dims(), lambda nest, i: nest.const(0, ctx.out_element()))]
    nest = ctx.nest()
    # One axis for the copies and one within a copy: no division in the read.
    pairs = [p for pair in zip(repeats, dims, strict=True) for p in pair]
    axes = nest.axes(pairs)
    (tiled,) = nest.finish(("none", nest.read(x, axes[1::2]), axes, tensor_of(ctx.out_element(), pairs)))
    return [ctx.view(tiled, ctx.out_dims())]


# -- DepthToSpace, SpaceToDepth ---------------------------------------------------------------------------------------


def infer_depth_to_space(ctx: InferContext) -> list[TensorInfo]:
    dims, block = input_dims(ctx, 0), ctx.op.attr("blocksize")
    if dims is None:
        return infos(element_type(ctx), [ctx.fresh(f"depth_to_space_{k}") for k in range(4)])
    n, c, h, w = dims
    return infos(element_type(ctx), [n, tidy(floordiv(c, Expr.of(block * block))), h * block, w * block])


def depth_to_space_requires(op: OnnxOp) -> list[Requirement]:
    block = op.attr("blocksize")
    depth, result = operand_dims(op, 0)[1], dims_of(op.results[0].type)[1]
    return [equal(depth, result * (block * block), "the depth is not a multiple of the block")]


def lower_depth_to_space(ctx: Lowering) -> list[SSAValue]:
    block, mode = ctx.attr("blocksize"), ctx.attr("mode", "DCR")
    n, _, h, w = ctx.dims(0)
    depth = ctx.out_dims()[1]
    split = [n, block, block, depth, h, w] if mode == "DCR" else [n, depth, block, block, h, w]
    x = ctx.view(ctx.required(0), split)
    nest = ctx.nest()
    b, d, y, dy, z, dz = axes = nest.axes([n, depth, h, block, w, block])
    value = nest.read(x, [b, dy, dz, d, y, z] if mode == "DCR" else [b, d, dy, dz, y, z])
    # A place and the offset in its block are separate dims: later nests can have axes for both.
    apart = tensor_of(ctx.out_element(), [n, depth, h, Expr.of(block), w, Expr.of(block)])
    (made,) = nest.finish(("none", value, axes, apart))
    return [ctx.view(made, ctx.out_dims())]


def infer_space_to_depth(ctx: InferContext) -> list[TensorInfo]:
    dims, block = input_dims(ctx, 0), Expr.of(ctx.op.attr("blocksize"))
    if dims is None:
        return infos(element_type(ctx), [ctx.fresh(f"space_to_depth_{k}") for k in range(4)])
    n, c, h, w = dims
    return infos(element_type(ctx), [n, c * block * block, tidy(floordiv(h, block)), tidy(floordiv(w, block))])


def space_to_depth_requires(op: OnnxOp) -> list[Requirement]:
    block, before, after = op.attr("blocksize"), operand_dims(op, 0), dims_of(op.results[0].type)
    return [equal(before[k], after[k] * block, "the size is not a multiple of the block") for k in (2, 3)]


def lower_space_to_depth(ctx: Lowering) -> list[SSAValue]:
    x, block = ctx.required(0), ctx.attr("blocksize")
    n, c, _, _ = ctx.dims(0)
    h, w = ctx.out_dims()[2:]
    nest = ctx.nest()
    b, dy, dz, d, y, z = nest.axes([n, block, block, c, h, w])
    value = nest.read(x, [b, d, y * block + dy, z * block + dz])
    place = dy * block + dz
    # Since opset 26 the mode selects the faster index, place or depth.
    channel = d * (block * block) + place if ctx.attr("mode", "DCR") == "CRD" else place * c + d
    return list(nest.finish(("none", value, [b, channel, y, z], ctx.output_type())))


SPECS: list[OpSpec] = [
    OpSpec(
        "DepthToSpace",
        infer_depth_to_space,
        lower=lower_depth_to_space,
        legal=legal(),
        requires=depth_to_space_requires,
        kind="movement",
    ),
    OpSpec(
        "Expand",
        infer_expand,
        lower=lower_expand,
        legal=legal(expand_reason),
        requires=expand_requires,
        kind="movement",
    ),
    OpSpec("Flatten", infer_flatten, lower=lower_view, legal=legal(view_reason), kind="movement"),
    OpSpec(
        "Reshape",
        infer_reshape,
        lower=lower_view,
        legal=legal(reshape_reason),
        requires=reshape_requires,
        kind="movement",
    ),
    OpSpec(
        "SpaceToDepth",
        infer_space_to_depth,
        lower=lower_space_to_depth,
        legal=legal(),
        requires=space_to_depth_requires,
        kind="movement",
    ),
    OpSpec("Squeeze", infer_squeeze, lower=lower_view, legal=legal(view_reason), kind="movement"),
    OpSpec("Tile", infer_tile, lower=lower_tile, legal=legal(needs_values(1, "repeats")), kind="movement"),
    OpSpec("Transpose", infer_transpose, fold=fold_transpose, lower=lower_transpose, legal=legal(), kind="movement"),
    OpSpec("Unsqueeze", infer_unsqueeze, lower=lower_view, legal=legal(view_reason), kind="movement"),
    OpSpec("com.microsoft.ExpandDims", infer_unsqueeze, lower=lower_view, legal=legal(view_reason), kind="movement"),
]
