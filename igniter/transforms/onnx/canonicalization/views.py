"""Rules for Reshape, Flatten, Squeeze and Unsqueeze: new dims for the same elements.

The dims alone determine the result of such a node, so a chain of them is one Reshape, or nothing if the dims are the
original ones. A Reshape gets an equivalent constant target if there is one, with 0 for a dim that stays at its place
and at most one -1; then the shape arithmetic for the target is unused.

The checks of a removed view stay (`checks.py`): for example the divisibility by 3 for a Reshape to [3, -1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.transforms.onnx.canonicalization.checks import leave_checks
from igniter.transforms.onnx.canonicalization.movement import known_values
from igniter.transforms.onnx.onnx_rewriting import (
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
    """Returns the constant operand with which Reshape turns `source` into `result` in every run; `None` if there is
    none.

    -1 is the one dim that is neither an integer nor kept at its place. In a tensor without elements, -1 is ambiguous,
    so the other dims must be positive, unless the model itself wrote -1, as given by `wild`.
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


def view_of(
    rw: Rewriter, source: SSAValue, type_: Attribute, wild: Sequence[bool] = (), opset: int = 13
) -> SSAValue | None:
    """Returns `source` with the dims of `type_`: by a Reshape with a constant target, or by a Squeeze or Unsqueeze of
    axes; `None` if one node cannot do it for all runs."""
    dims, result = known_dims(source), dims_of(type_)
    if dims is None:
        return None
    if dims == result:
        return source
    # An empty target is legal, but ONNX Runtime's own inference takes it for an unknown one.
    target = constant_target(dims, result, wild) if result else None
    if target is not None and opset >= 5:
        shape = rw.constant(np_ints(target))
        return rw.op("Reshape", [source, shape], [type_]).results[0]
    for name, fewer, more in (("Unsqueeze", dims, result), ("Squeeze", result, dims)):
        axes = _added_ones(fewer, more)
        if axes is not None and opset >= 13:
            return rw.op(name, [source, rw.constant(np_ints(axes))], [type_]).results[0]
        if axes is not None:
            return rw.op(name, [source], [type_], {"axes": axes}).results[0]
    return None


def np_ints(values: Sequence[int]) -> np.ndarray[Any, Any]:
    """Returns the integers as an int64 array."""
    return np.array(values, dtype=np.int64)


def _added_ones(fewer: Dims, more: Dims) -> list[int] | None:
    """Returns the axes of size 1 that turn `fewer` into `more`."""
    axes: list[int] = []
    place = 0
    for i, dim in enumerate(more):
        if place < len(fewer) and fewer[place] == dim:
            place += 1
        elif dim == 1:
            axes.append(i)
        else:
            return None
    return axes if place == len(fewer) else None


def drop_view(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a view, or two views in sequence, with the dims of the source."""
    source = op.operands[0]
    result = known_dims(op.results[0])
    if result is None:
        return None
    if known_dims(source) == result:
        return [source] if leave_checks(op) else None
    inner = defining(source, *VIEWS)
    if inner is not None and known_dims(inner.operands[0]) == result:
        return [inner.operands[0]] if leave_checks(op, inner) else None
    return None


def join_views(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Joins a view of a view to one view."""
    inner = defining(op.operands[0], *VIEWS)
    if inner is None or known_dims(op.results[0]) is None:
        return None
    made = view_of(rw, inner.operands[0], op.results[0].type, _written(op), op.opset)
    return None if made is None or not leave_checks(op, inner) else [made]


def make_target_constant(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces the computed target of a Reshape by an equivalent constant."""
    if op.opset < 5 or ints_of(operand(op, 1)) is not None or known_dims(op.results[0]) is None:
        return None
    made = view_of(rw, op.operands[0], op.results[0].type, _written(op), op.opset)
    return None if made is None or not leave_checks(op) else [made]


def _written(op: OnnxOp) -> list[bool]:
    """Returns for each dim of the result True if the model itself wrote -1."""
    if op.op_type != "Reshape":
        return []
    values = known_values(op, 1)
    return [v == -1 for v in values] if values is not None else []


def range_of_scalars(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Makes the operands of a Range scalars. ONNX Runtime accepts tensors of one element only while their rank is
    unknown."""
    element = tensor_element(op.results[0].type)
    if element is None or all(known_dims(v) in (None, ()) for v in op.operands):
        return None
    scalar = tensor_of(element, ())
    scalars = [v if known_dims(v) in (None, ()) else view_of(rw, v, scalar, opset=op.opset) for v in op.operands]
    if None in scalars:
        return None
    return rw.op("Range", scalars, [op.results[0].type]).results


RULES: Rules = {
    "Range": [range_of_scalars],
    "Reshape": [drop_view, join_views, make_target_constant],
    **{name: [drop_view, join_views] for name in ("Flatten", "Squeeze", "Unsqueeze")},
}
