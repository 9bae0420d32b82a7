"""Reshape, Flatten, Squeeze and Unsqueeze: what only looks at the same elements under other dims.

The result of such a node is told by its dims alone, so a chain of them is one Reshape, and none where the dims come
back. A Reshape gets a constant target wherever one says the same, with 0 for a dim that stays at its place and one -1:
after that nothing asks for the shape arithmetic which computed the target.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.analysis.expr import Expr, is_nonneg
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import Dims
from igniter.transforms.canonicalization.movement import known_values
from igniter.transforms.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    ints_of,
    known_dims,
    operand,
)

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def constant_target(source: Dims, result: Dims, wild: Sequence[bool] = ()) -> list[int] | None:
    """The constant operand that makes Reshape turn `source` into `result` in every run; `None` where there is none.

    -1 stands for the one dim that is neither an integer nor kept at its place. A tensor without elements does not tell
    which dim -1 is, so the other dims have to be positive; except where `wild` says that the model wrote -1 itself.
    """
    target: list[int] = []
    for i, dim in enumerate(result):
        if dim.constant is not None and dim.constant > 0:
            target.append(dim.constant)
        elif i < len(source) and source[i] == dim:
            target.append(0)
        else:
            target.append(-1)
    if target.count(-1) > 1:
        return None
    if -1 in target:
        if any(d.constant == 0 for d in result):
            return None
        place = target.index(-1)
        written = place < len(wild) and wild[place]
        others = [d for i, d in enumerate(result) if i != place]
        if not written and not all(is_nonneg(d - 1) for d in others):
            return None
    return target


def drop_view(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """A view of a view, or of any tensor, that has the dims of its source"""
    source = op.operands[0]
    result = known_dims(op.results[0])
    if result is None:
        return None
    if known_dims(source) == result:
        return [source]
    inner = defining(source, *VIEWS)
    if inner is not None and known_dims(inner.operands[0]) == result:
        return [inner.operands[0]]
    return None


def join_views(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """A Reshape of a view, or a view of a Reshape, is one Reshape"""
    inner = defining(op.operands[0], *VIEWS)
    if inner is None or "Reshape" not in (op.op_type, inner.op_type):
        return None
    source, result = known_dims(inner.operands[0]), known_dims(op.results[0])
    if source is None or result is None or op.opset < 5:
        return None
    target = constant_target(source, result, _written(op))
    if target is None:
        return None
    return _reshape(op, rw, target, inner)


def make_target_constant(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Reshape with a computed target that a constant can say"""
    if op.opset < 5 or ints_of(operand(op, 1)) is not None:
        return None
    source, result = known_dims(op.operands[0]), known_dims(op.results[0])
    if source is None or result is None:
        return None
    target = constant_target(source, result, _written(op))
    return _reshape(op, rw, target, op) if target is not None else None


def _written(op: OnnxOp) -> list[bool]:
    """Which dims of the result the model itself leaves to -1."""
    if op.op_type != "Reshape":
        return []
    values = known_values(op, 1)
    return [v == -1 for v in values] if values is not None else []


def _reshape(op: OnnxOp, rw: Rewriter, target: Sequence[int], source: OnnxOp) -> Replacement:
    import numpy as np

    shape = rw.constant(np.array(target, dtype=np.int64))
    return rw.op("Reshape", [source.operands[0], shape], [op.results[0].type]).results


def drop_whole_gather(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Gather of index 0 along an axis of one: the tensor without that axis"""
    indices = known_values(op, 1)
    dims, result = known_dims(op.operands[0]), known_dims(op.results[0])
    if indices is None or dims is None or result is None or list(indices) != [Expr.of(0)]:
        return None
    if dims[op.attr("axis", 0)] != 1 or op.opset < 13:
        return None
    target = constant_target(dims, result)
    return _reshape(op, rw, target, op) if target is not None else None


RULES: Rules = {
    "Reshape": [drop_view, join_views, make_target_constant],
    **{name: [drop_view, join_views] for name in ("Flatten", "Squeeze", "Unsqueeze")},
    "Gather": [drop_whole_gather],
}
