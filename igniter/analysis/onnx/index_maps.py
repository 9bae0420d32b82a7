"""Integer tensors as functions of their own subscripts: exporters compute positions and masks with them.

    %r = Range(0, seq)             %r[i] = i
    %u = Unsqueeze(%r) [0, 2]      %u[0, i, 0] = i
    %m = Mul(%u, 3)                %m[0, i, 0] = 3*i

The subscript of axis `k` is the symbol `#k`, from 0 to the dim. This can prove that a Gather by such a tensor is the
identity, and a comparison of two of them true everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, IntegerType, i1
from xdsl.ir import OpResult, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import ONE, ZERO, Expr, linearize
from igniter.dialects.sym.ranges import Ranges, is_nonneg
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element

MAX_CONSTANT = 1 << 16
"""The most elements of an analysed constant."""

DEPTH = 24


def axis(k: int) -> Expr:
    """Returns the subscript of axis `k`."""
    return Expr.of(f"#{k}")


def row_major(dims: Dims) -> Expr:
    """Returns the place of an element in row-major order, as a function of its subscripts."""
    return linearize([ZERO if d == ONE else axis(k) for k, d in enumerate(dims)], dims)


def index_map(value: SSAValue, depth: int = DEPTH) -> Expr | None:
    """Returns the element of an integer tensor as a function of its subscripts and the model's symbols."""
    dims = _dims(value)
    if dims is None or depth == 0 or not _is_integer(value):
        return None
    constant = _constant_map(value)
    if constant is not None:
        return constant
    owner = value.owner if isinstance(value, OpResult) else None
    if not isinstance(owner, OnnxOp) or owner.domain:
        return None
    rule = _RULES.get(owner.op_type)
    return rule(owner, depth - 1) if rule is not None else None


def holds_everywhere(value: SSAValue, depth: int = 4) -> bool:
    """True if a boolean tensor is proven to be true at every subscript."""
    constant = constant_weight(value)
    if constant is not None:
        return constant.element_type == i1 and constant.size <= MAX_CONSTANT and bool(constant.array().all())
    op = value.owner if isinstance(value, OpResult) else None
    if not isinstance(op, OnnxOp) or op.domain or depth == 0:
        return False
    if op.op_type in ("And", "Or"):
        both = [holds_everywhere(v, depth - 1) for v in op.operands]
        return all(both) if op.op_type == "And" else any(both)
    if op.op_type in ("Identity", "Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose"):
        return holds_everywhere(op.operands[0], depth - 1)
    dims = _dims(value)
    order = _ORDERS.get(op.op_type)
    if order is None or dims is None:
        return False
    a, b = (_operand_map(op, i, DEPTH, dims) for i in (0, 1))
    if a is None or b is None:
        return False
    return is_nonneg(order(a, b), Ranges({f"#{k}": (ZERO, d) for k, d in enumerate(dims)}))


_ORDERS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "GreaterOrEqual": lambda a, b: a - b,
    "Greater": lambda a, b: a - b - 1,
    "LessOrEqual": lambda a, b: b - a,
    "Less": lambda a, b: b - a - 1,
}


def _dims(value: SSAValue) -> Dims | None:
    return known_dims_of(value.type)


def _is_integer(value: SSAValue) -> bool:
    kind = tensor_element(value.type)
    return isinstance(kind, IntegerType) and kind.width.data in (32, 64)


def _constant_map(value: SSAValue) -> Expr | None:
    weight = constant_weight(value)
    if weight is not None and (weight.size > MAX_CONSTANT or weight.elided):
        return None
    array = constant_value(value)
    if array is None or array.size == 0:
        return None
    flat: list[int] = array.reshape(-1).tolist()
    if array.size == 1:
        return Expr.of(flat[0])
    wide = [k for k, d in enumerate(array.shape) if d != 1]
    step = flat[1] - flat[0]
    if len(wide) != 1 or flat != [flat[0] + step * i for i in range(len(flat))]:
        return None
    return axis(wide[0]) * step + flat[0]


def _noted(op: OnnxOp, index: int) -> Dims | None:
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    found = noted.data.get(str(index)) if isinstance(noted, DictionaryAttr) else None
    return found.data if isinstance(found, DimsAttr) else None


def operand_map(op: OnnxOp, index: int, depth: int = DEPTH) -> Expr | None:
    """Returns the map of an operand, as a function of the operand's own subscripts."""
    noted = _noted(op, index)
    if noted is not None and len(noted) == 1:
        return noted[0]
    return index_map(op.operands[index], depth)


def _operand_map(op: OnnxOp, index: int, depth: int, result: Dims) -> Expr | None:
    """Returns the map of an operand broadcast to `result`, as a function of the result's subscripts."""
    dims, found = _dims(op.operands[index]), operand_map(op, index, depth)
    if dims is None or found is None:
        return None
    shift = len(result) - len(dims)
    if any(d not in (ONE, result[k + shift]) for k, d in enumerate(dims)):
        return None
    return _renamed(found, {k: None if d == ONE else k + shift for k, d in enumerate(dims)})


def _renamed(e: Expr, places: dict[int, int | None]) -> Expr:
    return e.substitute({f"#{k}": ZERO if p is None else axis(p) for k, p in places.items()})


# -- rules ------------------------------------------------------------------------------------------------------------


def _range(op: OnnxOp, depth: int) -> Expr | None:
    start, step = operand_map(op, 0, depth), operand_map(op, 2, depth)
    if start is None or step is None or step.constant is None:
        return None
    return start + axis(0) * step


def _elementwise(fn: Callable[[Expr, Expr], Expr]) -> Callable[[OnnxOp, int], Expr | None]:
    def rule(op: OnnxOp, depth: int) -> Expr | None:
        dims = _dims(op.results[0])
        if dims is None or len(op.operands) != 2:
            return None
        a, b = (_operand_map(op, i, depth, dims) for i in (0, 1))
        return fn(a, b) if a is not None and b is not None else None

    return rule


def _same(op: OnnxOp, depth: int) -> Expr | None:
    return operand_map(op, 0, depth)


def _expand(op: OnnxOp, depth: int) -> Expr | None:
    dims = _dims(op.results[0])
    return None if dims is None else _operand_map(op, 0, depth, dims)


def _view(op: OnnxOp, depth: int) -> Expr | None:
    """Returns the map of a view that only adds and removes axes of 1, with the others in order."""
    source, result = _dims(op.operands[0]), _dims(op.results[0])
    found = operand_map(op, 0, depth)
    if source is None or result is None or found is None:
        return None
    before = [k for k, d in enumerate(source) if d != ONE]
    after = [k for k, d in enumerate(result) if d != ONE]
    if [source[k] for k in before] != [result[k] for k in after]:
        return None
    places: dict[int, int | None] = dict.fromkeys(range(len(source)))
    places.update(zip(before, after, strict=True))
    return _renamed(found, places)


def _transpose(op: OnnxOp, depth: int) -> Expr | None:
    found, dims = operand_map(op, 0, depth), _dims(op.operands[0])
    if found is None or dims is None:
        return None
    perm: Sequence[int] = op.attr("perm") or list(range(len(dims)))[::-1]
    return _renamed(found, {source: place for place, source in enumerate(perm)})


def _slice(op: OnnxOp, depth: int) -> Expr | None:
    """Returns the map of a slice with constant non-negative starts and steps of 1."""
    found, dims = operand_map(op, 0, depth), _dims(op.operands[0])
    given: list[Any] = [_ints(op, i) for i in (1, 3, 4)]
    starts, axes, steps = given
    if found is None or dims is None or starts is None or "starts" in op.attributes:
        return None
    if (axes is None and len(op.operands) > 3) or (steps is None and len(op.operands) > 4):
        return None
    axes = [a % len(dims) for a in axes] if axes is not None else list(range(len(starts)))
    if any(s < 0 for s in starts) or any(s != 1 for s in steps or ()):
        return None
    moved = {f"#{k}": axis(k) + start for k, start in zip(axes, starts, strict=True)}
    return found.substitute(moved)


def _ints(op: OnnxOp, index: int) -> list[int] | None:
    if index >= len(op.operands):
        return None
    noted = _noted(op, index)
    if noted is not None:
        known = [v.constant for v in noted]
        return [v for v in known if v is not None] if None not in known else None
    array = constant_value(op.operands[index])
    return [int(v) for v in array.reshape(-1).tolist()] if array is not None and array.dtype.kind in "iu" else None


_RULES: dict[str, Callable[[OnnxOp, int], Expr | None]] = {
    "Add": _elementwise(lambda a, b: a + b),
    "Cast": _same,
    "Expand": _expand,
    "Flatten": _view,
    "Identity": _same,
    "Mul": _elementwise(lambda a, b: a * b),
    "Range": _range,
    "Reshape": _view,
    "Slice": _slice,
    "Squeeze": _view,
    "Sub": _elementwise(lambda a, b: a - b),
    "Transpose": _transpose,
    "Unsqueeze": _view,
}
