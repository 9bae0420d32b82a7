"""ONNX's Attention, of opset 23 and later.

Where the specification and ONNX Runtime differ, the lowering follows ONNX Runtime: a masked key has the least finite
number as its score, and a query whose keys are all masked gives zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.attention_nests import (
    Attention,
    AttentionDims,
    Heads,
    Mask,
    Point,
    Shapes,
    appended,
    attend,
    dims_reason,
    equate_all,
    head_sizes,
    inferred_shapes,
    lowest,
    mask_reason,
    operand_shapes,
    read_by_key,
    shape_at,
    sized,
    unknown_infos,
)
from igniter.dialects.onnx.ops.pointwise import computed_reason, float_attr
from igniter.dialects.onnx.ops.rules import element_type, legal, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

NAMES = ("query", "key", "value", "mask", "past key", "past value", "lengths")
MASK, PAST_KEY, PAST_VALUE, LENGTHS = 3, 4, 5, 6


# -- dims -------------------------------------------------------------------------------------------------------------


def attention_dims(op: OnnxOp, shapes: Shapes) -> AttentionDims | str:
    """Returns the sizes, computed from the operands' dims; or the reason why they are unknown."""
    query, key, value = (shape_at(shapes, k) for k in range(3))
    if query is None or key is None or value is None:
        return "it lacks its query, key or value"
    ranks = {len(query), len(key), len(value)}
    if ranks not in ({3}, {4}):
        return "its query, key and value do not all have rank 3 or all have rank 4"
    past_key = shape_at(shapes, PAST_KEY)
    if past_key is not None and len(past_key) != 4:
        return f"its past key has rank {len(past_key)}"
    past = ZERO if past_key is None else past_key[2]
    if ranks == {4}:
        batch, heads, queries, size = query
        return AttentionDims(batch, heads, key[1], queries, key[2], past, size, value[3], joined=False)
    heads, kv_heads = int(op.attr("q_num_heads", 0)), int(op.attr("kv_num_heads", 0))
    sizes = head_sizes((query[2], heads), (value[2], kv_heads))
    if isinstance(sizes, str):
        return sizes
    split = Expr.of(heads), Expr.of(kv_heads)
    return AttentionDims(query[0], *split, query[1], key[1], past, *sizes, joined=True)


def _infer(ctx: InferContext) -> list[TensorInfo]:
    element, shapes = element_type(ctx), inferred_shapes(ctx)
    if shapes is None:
        return unknown_infos(ctx, element, None)
    equate_all(ctx, shapes, (0, 0), (1, 0), (2, 0), (PAST_KEY, 0), (PAST_VALUE, 0), (LENGTHS, 0))
    equate_all(ctx, shapes, (PAST_KEY, 2), (PAST_VALUE, 2))
    if len(shapes[0] or ()) == 4:
        equate_all(ctx, shapes, (1, 2), (2, 2))
        equate_all(ctx, shapes, (1, 1), (2, 1), (PAST_KEY, 1), (PAST_VALUE, 1))
        equate_all(ctx, shapes, (0, 3), (1, 3), (PAST_KEY, 3))
        equate_all(ctx, shapes, (2, 3), (PAST_VALUE, 3))
    else:
        equate_all(ctx, shapes, (1, 1), (2, 1))
    dims = attention_dims(ctx.op, inferred_shapes(ctx) or [])
    if isinstance(dims, str):
        return unknown_infos(ctx, element, (len(shapes[0] or ()), 4, 4, 4))
    made = (dims.result, dims.present(dims.head), dims.present(dims.value_head), dims.scores)
    return [TensorInfo(element, d) for d in made]


# -- legality ---------------------------------------------------------------------------------------------------------


def _reason(op: OnnxOp) -> str | None:
    shapes = operand_shapes(op)
    dims = attention_dims(op, shapes)
    if isinstance(dims, str):
        return dims
    reason = heads_reason(dims) or dims_reason(shapes, NAMES, _wanted(dims)) or _attributes_reason(op)
    if reason is None and operand(op, MASK) is not None:
        reason = mask_reason(operand_dims(op, MASK), dims, "mask")
    return reason or _outputs_reason(op, dims)


def heads_reason(dims: AttentionDims) -> str | None:
    """Returns the reason why the heads are not known to share the key and value heads evenly; None if they are."""
    heads, shared = dims.heads.constant, dims.kv_heads.constant
    if dims.heads == dims.kv_heads or (heads is not None and shared and heads % shared == 0):
        return None
    return f"{dims.heads} query heads are not known to be a multiple of the {dims.kv_heads} heads of keys and values"


def _wanted(dims: AttentionDims) -> dict[int, Dims]:
    pasts = {
        PAST_KEY: (dims.batch, dims.kv_heads, dims.past, dims.head),
        PAST_VALUE: (dims.batch, dims.kv_heads, dims.past, dims.value_head),
        LENGTHS: (dims.batch,),
    }
    if dims.joined:
        return {
            1: (dims.batch, dims.keys, dims.kv_heads * dims.head),
            2: (dims.batch, dims.keys, dims.kv_heads * dims.value_head),
            **pasts,
        }
    return {
        1: (dims.batch, dims.kv_heads, dims.keys, dims.head),
        2: (dims.batch, dims.kv_heads, dims.keys, dims.value_head),
        **pasts,
    }


def _attributes_reason(op: OnnxOp) -> str | None:
    scale = op.attributes.get("scale")
    if scale is not None and float(op.attr("scale")) <= 0:
        return "its scale is not positive"
    if operand(op, LENGTHS) is not None and operand(op, PAST_KEY) is not None:
        return "it has both a past and lengths without padding"
    if (operand(op, PAST_KEY) is None) != (operand(op, PAST_VALUE) is None):
        return "it has only one of a past key and a past value"
    return None


def _outputs_reason(op: OnnxOp, dims: AttentionDims) -> str | None:
    """Rejects masked scores as an output: for masked keys they are -inf in ONNX and the least finite number in ONNX
    Runtime."""
    outputs, mask = op.outputs, operand(op, MASK)
    if len(outputs) < 4 or outputs[3] is None or int(op.attr("qk_matmul_output_mode", 0)) != 2:
        return None
    windowed = max(int(op.attr(f"{side}_window_size", -1)) for side in ("left", "right")) >= 0
    plain = mask is None or (element_of(mask.type) != i1 and dims_of(mask.type)[-1] == dims.total)
    if plain and not windowed and not int(op.attr("is_causal", 0)) and operand(op, LENGTHS) is None:
        return None
    return "its masked scores are an output, and ONNX Runtime writes a finite number for the -inf of masked keys"


# -- lowering ---------------------------------------------------------------------------------------------------------


def _lower(ctx: Lowering) -> list[SSAValue | None]:
    dims = attention_dims(ctx.op, operand_shapes(ctx.op))
    if isinstance(dims, str):
        raise ctx.fail(dims)
    query = Heads(ctx.required(0), dims.queries, dims.head, dims.joined)
    key = Heads(ctx.required(1), dims.keys, dims.head, dims.joined)
    value = Heads(ctx.required(2), dims.keys, dims.value_head, dims.joined)
    key, present_key = with_past(ctx, dims, ctx.input(PAST_KEY), key, ctx.wants(1), "key")
    value, present_value = with_past(ctx, dims, ctx.input(PAST_VALUE), value, ctx.wants(2), "value")
    scale = None if ctx.op.attributes.get("scale") is None else float_attr(ctx, "scale")
    mask = _mask(ctx, dims)
    # With a causal mask alone, each row sees at least one key.
    hides = any(ctx.input(k) is not None for k in (MASK, LENGTHS)) or _window(ctx, "left") or _window(ctx, "right")
    fully_masked = lowest(ctx.element(0)) if hides else None
    made = attend(ctx, Attention(dims, query, key, value, scale, float_attr(ctx, "softcap"), mask, fully_masked))
    mode = int(ctx.attr("qk_matmul_output_mode", 0))
    stage = ctx.rounded(made.stages[mode], 3) if ctx.wants(3) else None
    return [made.result, present_key, present_value, stage]


def with_past(
    ctx: Lowering, dims: AttentionDims, past: SSAValue | None, new: Heads, wanted: bool, part: str
) -> tuple[Heads, SSAValue | None]:
    """Returns the keys or values with the past before them, and the present as an output if `wanted`."""
    if past is None and not wanted:
        return new, None
    if past is None and not new.joined:
        return new, new.tensor
    present = appended(ctx, dims, past, new, part)
    # Without a past, the input is read in place, and the present is only an output.
    return (new if past is None else Heads(present, dims.total, new.size, joined=False)), present


def _window(ctx: Lowering, side: str) -> bool:
    return int(ctx.attr(f"{side}_window_size", -1)) >= 0


def _mask(ctx: Lowering, dims: AttentionDims) -> Mask | None:
    """Returns the combination of everything that masks or biases keys: the mask, causality, the window, padding."""
    tensor, lengths = ctx.input(MASK), ctx.input(LENGTHS)
    is_causal = int(ctx.attr("is_causal", 0)) == 1
    left, right = (int(ctx.attr(f"{side}_window_size", -1)) for side in ("left", "right"))
    hidden = lowest(ctx.element(0))
    if tensor is None and lengths is None and not is_causal and max(left, right) < 0:
        return None

    def seen(nest: Nest, at: Point) -> list[Scalar]:
        """Returns the conditions under which a query sees a key; the queries come after the past."""
        ahead = nest.index(at.j - at.i - dims.past)
        if lengths is not None:
            ahead = nest.index(at.j - at.i + dims.queries) - nest.read(lengths, [at.b])
        bounds = [ahead <= 0] if is_causal else []
        bounds += [ahead >= -left] if left >= 0 else []
        return [*bounds, ahead <= right] if right >= 0 else bounds

    def mask(nest: Nest, at: Point, score: Scalar) -> Scalar:
        bias = None if tensor is None else _read_mask(nest, tensor, at, dims, score.element)
        for each in seen(nest, at):
            bias = each.select(nest.const(0, score.element) if bias is None else bias, hidden)
        value = score if bias is None else score + bias
        if lengths is not None:
            value = (nest.read(lengths, [at.b]) > nest.index(at.j)).select(value, hidden)
        return value

    return mask


def _read_mask(nest: Nest, tensor: SSAValue, at: Point, dims: AttentionDims, element: Attribute) -> Scalar:
    """Reads the mask as a bias; it masks the keys beyond its last dim, which may be shorter than the keys."""
    if element_of(tensor.type) != i1:
        return read_by_key(nest, tensor, at, dims, lowest(element))
    return read_by_key(nest, tensor, at, dims).select(nest.const(0, element), lowest(element))


def _types_reason(op: OnnxOp) -> str | None:
    element = element_of(op.operands[0].type)
    if not is_float(element):
        return f"only floats are supported, not {element}"
    mask = operand(op, MASK)
    if mask is not None and element_of(mask.type) not in (i1, element):
        return f"its mask has elements of {element_of(mask.type)}"
    return None


def _flops(op: OnnxOp) -> Expr:
    """2 × MACs + 14 × scores"""
    dims = attention_dims(op, operand_shapes(op))
    return ONE if isinstance(dims, str) else dims.flops


def _macs(op: OnnxOp) -> Expr:
    """batch × heads × queries × keys × (head size + head size of the values)"""
    return sized(attention_dims(op, operand_shapes(op))).macs


def _requires(op: OnnxOp) -> list[Requirement]:
    """Requires positive sizes, as ONNX Runtime does, with or without a past."""
    sizes = dict.fromkeys(d for index in range(3) for d in operand_dims(op, index))
    return [at_most(1, d, "its query, key or value has no elements") for d in sizes]


SPECS: list[OpSpec] = [
    OpSpec(
        "Attention",
        _infer,
        lower=_lower,
        legal=legal(computed_reason, _types_reason, _reason),
        requires=_requires,
        macs=_macs,
        flops=_flops,
        kind="contraction",
    ),
]
