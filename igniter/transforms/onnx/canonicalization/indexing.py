"""Rules for Gathers by computed positions, and for masks wider than necessary.

Exporters write `mask[b, s]` as a Gather by a tensor of positions from Range, Mul, Add and Expand. If these positions
are all of the data in order, the Gather is a view of the data. An always true comparison of positions is no condition.
If broadcasting would widen an operand anyway, it is computed as narrow as possible: the mask of every attention layer
is then a row instead of a square.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue

from igniter.analysis.onnx.index_maps import holds_everywhere, index_map, operand_map, row_major
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr, linearize, product
from igniter.transforms.onnx.canonicalization.arithmetic import BROADCASTING
from igniter.transforms.onnx.canonicalization.views import VIEWS, view_of
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    broadcast,
    defining,
    element,
    known_dims,
    same_dims,
)


def _view_of_source(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Returns the data, or the source of its views, with the dims of the result; None if one node cannot do it."""
    source: SSAValue | None = op.operands[0]
    while source is not None:
        made = view_of(rw, source, op.results[0].type, opset=op.opset)
        if made is not None:
            return [made]
        inner = defining(source, *VIEWS)
        source = inner.operands[0] if inner is not None else None
    return None


def gather_everything(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces a Gather of all positions along an axis, in order."""
    data, indices, result = (known_dims(v) for v in (*op.operands, op.results[0]))
    if data is None or indices is None or result is None:
        return None
    if product(indices) != data[op.attr("axis", 0)] or operand_map(op, 1) != row_major(indices):
        return None
    return _view_of_source(op, rw)


def gather_everything_nd(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces a GatherND of all positions, in order, whose subscripts are a Concat."""
    data, indices, result = (known_dims(v) for v in (*op.operands, op.results[0]))
    concat = defining(op.operands[1], "Concat")
    if data is None or indices is None or result is None or concat is None or op.attr("batch_dims", 0):
        return None
    count = len(concat.operands)
    if concat.attr("axis") not in (-1, len(indices) - 1) or indices[-1] != count or not indices[:-1]:
        return None
    subscripts: list[Expr] = []
    for part in concat.operands:
        dims, found = known_dims(part), index_map(part)
        if dims is None or found is None or dims != (*indices[:-1], Expr.of(1)):
            return None
        subscripts.append(found.substitute({f"#{len(dims) - 1}": Expr.of(0)}))
    outer = data[:count]
    if product(indices[:-1]) != product(outer) or linearize(subscripts, outer) != row_major(indices[:-1]):
        return None
    return _view_of_source(op, rw)


def drop_true(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops `x and true` for an always true comparison of positions."""
    for i in (0, 1):
        if same_dims(op.operands[1 - i], op.results[0]) and holds_everywhere(op.operands[i]):
            return [op.operands[1 - i]]
    return None


@dataclass(frozen=True)
class _Narrow:
    """A value computed with smaller dims that broadcast to its own: `value` unchanged, or `op` on narrower operands."""

    dims: Dims
    value: SSAValue | None = None
    op: OnnxOp | None = None
    operands: tuple[_Narrow, ...] = ()


_Found = dict[tuple[SSAValue, int], _Narrow | None]
"""The results by value and depth: values that meet again are examined once."""


def _narrowed(value: SSAValue, memo: _Found, depth: int = 6) -> _Narrow | None:
    place = value, depth
    if place not in memo:
        memo[place] = _narrowest(value, memo, depth)
    return memo[place]


def _narrowest(value: SSAValue, memo: _Found, depth: int) -> _Narrow | None:
    dims = known_dims(value)
    if dims is None:
        return None
    kept = _Narrow(dims, value)
    op = defining(value, "Expand", *BROADCASTING) if depth else None
    if op is None:
        return kept
    if op.op_type == "Expand":
        return _narrowed(op.operands[0], memo, depth - 1)
    if op.op_type == "And":
        for i in (0, 1):
            if holds_everywhere(op.operands[i]):
                return _narrowed(op.operands[1 - i], memo, depth - 1)
    operands = [_narrowed(v, memo, depth - 1) for v in op.operands]
    known = [o for o in operands if o is not None]
    if len(known) != len(operands):
        return kept
    smaller = broadcast([o.dims for o in known])
    if smaller is None or smaller == dims:
        return kept
    return _Narrow(smaller, None, op, tuple(known))


def _build(narrow: _Narrow, rw: Rewriter) -> SSAValue:
    if narrow.value is not None:
        return narrow.value
    op = narrow.op
    assert op is not None
    result = op.results[0]
    known = rw.memo.get(result)
    if known is not None and rw.is_alive(known):
        return known
    operands = [_build(o, rw) for o in narrow.operands]
    kind = element(result)
    assert kind is not None
    attrs = {k: v for k, v in op.attributes.items() if k != VALUES_ATTRIBUTE}
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    if isinstance(noted, DictionaryAttr):
        kept = {k: v for k, v in noted.data.items() if operands[int(k)] is op.operands[int(k)]}
        attrs.update({VALUES_ATTRIBUTE: DictionaryAttr(kept)} if kept else {})
    made = rw.op(op.op_type, operands, [tensor_of(kind, narrow.dims)], attrs, before=op).results[0]
    rw.memo[result] = made
    return made


def read_narrow(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Computes an operand narrower if it broadcasts to the same result."""
    result = known_dims(op.results[0])
    if result is None:
        return None
    changed = False
    for i, value in enumerate(op.operands):
        if defining(value, *BROADCASTING) is None:
            continue
        narrow = _narrowed(value, {})
        if narrow is None or narrow.dims == known_dims(value):
            continue
        shapes = [narrow.dims if j == i else known_dims(v) for j, v in enumerate(op.operands)]
        known = [s for s in shapes if s is not None]
        if len(known) == len(shapes) and broadcast(known) == result:
            rw.set_operand(op, i, _build(narrow, rw))
            changed = True
    return list(op.results) if changed else None


RULES: Rules = {
    "Gather": [gather_everything],
    "GatherND": [gather_everything_nd],
    **{name: [read_narrow] for name in BROADCASTING if name not in ("And",)},
    "And": [drop_true, read_narrow],
}
