"""LayerNormalization and RMSNormalization that exporters decompose.

    d = x - mean(x)                                     n = LayerNormalization(x, ones)
    n = d / sqrt(mean(d*d) + epsilon)            ->
    y = n * scale + bias                                y = LayerNormalization(x, scale, bias)

and without the mean, RMSNormalization. The mean is over the last axes, kept as 1; epsilon is one number. The root may
be a Sqrt, a Pow by 0.5 or -0.5, as a divisor or under 1, or a Reciprocal. Scale and bias have the dims of the
normalised axes. A variance computed as mean(x*x) - mean(x)^2 is numerically different, and stays. Three rules combine:
the first makes the op with a scale of ones, the others add its scale and its bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.types import element_type
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    element,
    known_dims,
    operand,
    same_dims,
)
from igniter.transforms.onnx.recompose.matching import either_way, is_closed, is_number, number, trailing

SINCE = {"LayerNormalization": 17, "RMSNormalization": 23}
_FLOATS = ("float16", "bfloat16", "float", "double")


@dataclass(frozen=True)
class _Root:
    """The operands of `1 / sqrt(mean(squared) + epsilon)` or of its inverse."""

    mean: OnnxOp
    epsilon: float
    nodes: list[OnnxOp]


def _square_root(value: SSAValue, power: float) -> _Root | None:
    """Matches `value` as `(mean(..) + epsilon) ** power`, for 0.5 and -0.5."""
    if power < 0:
        inverse = defining(value, "Reciprocal", "Div")
        if inverse is not None:
            below = inverse.operands[0] if inverse.op_type == "Reciprocal" else inverse.operands[1]
            if inverse.op_type == "Div" and not is_number(inverse.operands[0], 1.0):
                return None
            found = _square_root(below, 0.5)
            return _Root(found.mean, found.epsilon, [inverse, *found.nodes]) if found is not None else None
    op = defining(value, "Sqrt", "Pow")
    if op is None or (op.op_type == "Sqrt" and power < 0):
        return None
    if op.op_type == "Pow" and number(op.operands[1]) != power:
        return None
    add = defining(op.operands[0], "Add")
    for mean_value, constant in either_way(add) if add is not None else ():
        mean, epsilon = defining(mean_value, "ReduceMean"), number(constant)
        if add is not None and mean is not None and epsilon is not None and epsilon >= 0:
            return _Root(mean, epsilon, [op, add, mean])
    return None


def _squared(value: SSAValue) -> tuple[SSAValue, OnnxOp] | None:
    """Returns `d` for `d*d` or `d ** 2`."""
    op = defining(value, "Mul", "Pow")
    if op is None:
        return None
    square = op.operands[0] is op.operands[1] if op.op_type == "Mul" else number(op.operands[1]) == 2
    return (op.operands[0], op) if square else None


def _divided(op: OnnxOp) -> list[tuple[SSAValue, _Root]]:
    """Returns the ways to read a node as `d / sqrt(mean + epsilon)`."""
    if op.op_type == "Div":
        root = _square_root(op.operands[1], 0.5)
        return [(op.operands[0], root)] if root is not None else []
    return [(d, root) for d, r in either_way(op) if (root := _square_root(r, -0.5)) is not None]


def form_normalization(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a division by the root of a mean of squares."""
    for d, root in _divided(op):
        square = _squared(root.mean.operands[0])
        count = trailing(root.mean)
        if square is None or square[0] is not d or count is None or not same_dims(d, op.results[0]):
            continue
        nodes = [*root.nodes, square[1]]
        centred = _centred(d, count)
        name, x = "RMSNormalization", d
        if centred is not None:
            name, x = "LayerNormalization", centred[0]
            nodes.extend(centred[1])
        made = _form(op, rw, name, x, count, root.epsilon, nodes)
        if made is not None:
            return made
    return None


def _centred(d: SSAValue, count: int) -> tuple[SSAValue, list[OnnxOp]] | None:
    """Returns `x` for `d = x - mean(x)` over the last `count` axes."""
    sub = defining(d, "Sub")
    mean = defining(sub.operands[1], "ReduceMean") if sub is not None else None
    if sub is None or mean is None or mean.operands[0] is not sub.operands[0] or trailing(mean) != count:
        return None
    return sub.operands[0], [sub, mean]


def _form(
    op: OnnxOp, rw: Rewriter, name: str, x: SSAValue, count: int, epsilon: float, nodes: list[OnnxOp]
) -> Replacement | None:
    dims, kind = known_dims(x), element(x)
    if dims is None or kind is None or element_type(kind).onnx_name not in _FLOATS or not is_closed(op, nodes):
        return None
    sizes = [d.constant for d in dims[-count:]]
    if any(s is None for s in sizes):
        return None
    if op.opset < SINCE[name]:
        rw.want_opset(SINCE[name])
        return None
    ones = rw.constant(np.ones([s or 0 for s in sizes], dtype=element_type(kind).dtype))
    attrs = {"axis": -count, "epsilon": epsilon}
    return rw.op(name, [x, ones], [op.results[0].type], attrs).results


def take_scale(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Merges a product with the scale."""
    for value, scale in either_way(op):
        norm = defining(value, *SINCE)
        if norm is None or operand(norm, 2) is not None or not is_closed(op, [norm]):
            continue
        ones = constant_value(operand(norm, 1))
        if ones is None or not (ones == 1).all() or not same_dims(value, op.results[0]):
            continue
        if not same_dims(scale, operand(norm, 1)) or element(scale) != element(op.results[0]):
            continue
        return rw.op(norm.op_type, [norm.operands[0], scale], [op.results[0].type], _attributes(norm)).results
    return None


def take_bias(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Merges a sum with the bias."""
    for value, bias in either_way(op):
        norm = defining(value, "LayerNormalization")
        if norm is None or operand(norm, 2) is not None or not is_closed(op, [norm]):
            continue
        if not same_dims(bias, operand(norm, 1)) or not same_dims(value, op.results[0]):
            continue
        if element(bias) != element(op.results[0]):
            continue
        inputs = [norm.operands[0], norm.operands[1], bias]
        return rw.op("LayerNormalization", inputs, [op.results[0].type], _attributes(norm)).results
    return None


def _attributes(norm: OnnxOp) -> dict[str, object]:
    return {k: v for k, v in norm.attributes.items() if not k.startswith("igniter.")}


RULES: Rules = {
    "Div": [form_normalization],
    "Mul": [form_normalization, take_scale],
    "Add": [take_bias],
}
