"""Rules for movement without effect: Transpose pairs, whole Slices, empty Pads, Expand and Tile to the same dims."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.rules import normal_axis
from igniter.dialects.onnx.ops.windows import dims_of_an_empty_first
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.transforms.onnx.canonicalization.checks import leave_checks
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    ints_of,
    known_dims,
    operand,
    same_dims,
)


def known_values(op: OnnxOp, index: int) -> Dims | None:
    """Returns the elements of an integer operand: those of a constant, or those recorded by `infer-shapes`; else
    None."""
    ints = ints_of(operand(op, index))
    if ints is not None:
        return tuple(Expr.of(v) for v in ints)
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    found = noted.data.get(str(index)) if isinstance(noted, DictionaryAttr) else None
    return found.data if isinstance(found, DimsAttr) else None


def _permutation(op: OnnxOp) -> list[int] | None:
    perm = op.attributes.get("perm")
    if perm is not None:
        return list(op.attr("perm"))
    dims = known_dims(op.operands[0])
    return list(range(len(dims)))[::-1] if dims is not None else None


def join_transposes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops an identity Transpose, and joins Transpose(Transpose(x))."""
    perm = _permutation(op)
    if perm is None:
        return None
    if perm == sorted(perm):
        return [op.operands[0]]
    inner = defining(op.operands[0], "Transpose")
    first = _permutation(inner) if inner is not None else None
    if inner is None or first is None:
        return None
    joined = [first[p] for p in perm]
    if joined == sorted(joined):
        return [inner.operands[0]]
    return rw.op("Transpose", [inner.operands[0]], [op.results[0].type], {"perm": joined}).results


def drop_whole_slice(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Slice of everything: steps of 1, every dim kept."""
    if not same_dims(op.operands[0], op.results[0]):
        return None
    if operand(op, 4) is None:
        return [op.operands[0]]
    steps = ints_of(operand(op, 4))
    return [op.operands[0]] if steps is not None and all(s == 1 for s in steps) else None


def drop_expand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops an Expand to the same dims."""
    return [op.operands[0]] if same_dims(op.operands[0], op.results[0]) and leave_checks(op) else None


def drop_tile(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Tile without repetition."""
    repeats = known_values(op, 1)
    return [op.operands[0]] if repeats is not None and all(r == 1 for r in repeats) else None


def drop_pad(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Pad by nothing. A wrapping Pad needs at least one element, and only the Pad checks it."""
    if op.attr("mode", "constant") == "wrap" and not _has_elements(op.operands[0]):
        return None
    in_attribute = op.attributes.get("pads") is not None or op.attributes.get("paddings") is not None
    if in_attribute:
        pads = [Expr.of(p) for p in op.attr("pads", op.attr("paddings", [1]))]
    else:
        found = known_values(op, 1)
        pads = list(found) if found is not None else None
    return [op.operands[0]] if pads is not None and all(p == 0 for p in pads) else None


def _has_elements(value: SSAValue) -> bool:
    dims = known_dims(value)
    return dims is not None and all(is_nonneg(d - 1) for d in dims)


def drop_split(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Split into one part."""
    alone = len(op.results) == 1 and same_dims(op.operands[0], op.results[0])
    return [op.operands[0]] if alone and leave_checks(op) else None


def drop_empty_parts(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops empty operands of a Concat."""
    found = [known_dims(v) for v in op.operands]
    shapes = [s for s in found if s is not None]
    if len(shapes) < len(found) or len(shapes) < 2:
        return None
    axis = op.attr("axis")
    if dims_of_an_empty_first(shapes, normal_axis(axis, len(shapes[0]))):
        return None
    kept = [v for v, s in zip(op.operands, shapes, strict=True) if s[axis] != 0]
    if len(kept) == len(shapes) or not kept or not leave_checks(op):
        return None
    return rw.op("Concat", kept, [op.results[0].type], {"axis": axis}).results


RULES: Rules = {
    "Transpose": [join_transposes],
    "Slice": [drop_whole_slice],
    "Expand": [drop_expand],
    "Tile": [drop_tile],
    "Pad": [drop_pad],
    "Split": [drop_split],
    "Concat": [drop_empty_parts],
}
