"""Shape arithmetic: the elements of small integer tensors as expressions over the model's symbols.

    %s = Shape(%x)              [batch, seq, 768]
    %b = Gather(%s, 0)          batch
    %n = Mul(%b, 12)            12*batch
    %t = Concat(%n, [-1, 64])   [12*batch, -1, 64]

Values are numpy arrays of objects, each an `Expr`, or `None` for an unknown element, so that numpy itself moves the
elements. Conditions are elements too, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute

from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum, mod, product
from igniter.dialects.sym.ranges import NO_RANGES, is_nonneg, simplify

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.registry import Dims

    Array: TypeAlias = np.ndarray[Any, Any]

MAX_ELEMENTS = 128
"""The most elements: bigger tensors are data, not shapes."""


class ValueContext(Protocol):
    """A rule's view of its node."""

    op: OnnxOp

    def elements(self, index: int) -> Array | None:
        """Returns the operand's elements; `None` when nothing is known of them."""
        ...

    def shape(self, index: int) -> Dims | None:
        """Returns the operand's dims; `None` when its rank is not known."""
        ...

    def element(self, index: int) -> Attribute | None:
        """Returns the operand's element type; `None` when it is not known."""
        ...

    def constant(self, index: int) -> Array | None:
        """Returns the operand's value, when it is a constant of any type."""
        ...


Rule = Callable[[ValueContext], "Array | list[Array] | None"]


def symbolic_values(ctx: ValueContext) -> list[Array | None]:
    """Returns the elements of each result of the node, where its op is shape arithmetic on known elements."""
    count = len(ctx.op.results)
    rule = RULES.get(ctx.op.op_type) if ctx.op.domain == "" else None
    found = rule(ctx) if rule is not None else None
    if found is None:
        return [None] * count
    results = found if isinstance(found, list) else [found]
    kept = [r if r.size <= MAX_ELEMENTS and any(e is not None for e in r.flat) else None for r in results[:count]]
    return kept + [None] * (count - len(kept))


def as_elements(values: Sequence[Expr | None], dims: Sequence[int]) -> Array:
    """Returns an array of elements."""
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array.reshape(tuple(dims))


def known_elements(array: Array) -> Dims | None:
    """Returns the elements in row-major order, when all of them are known."""
    flat = tuple(array.flat)
    return None if any(e is None for e in flat) else flat


def elements_of(array: Array) -> Array | None:
    """Returns the elements of a constant of integers or booleans, if it is small enough."""
    dtype = array.dtype
    # A dtype's name is rebuilt on each access.
    if array.size > MAX_ELEMENTS or not (dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize in (4, 8))):
        return None
    return as_elements([Expr.of(int(v)) for v in array.reshape(-1).tolist()], array.shape)


# -- elementwise ------------------------------------------------------------------------------------------------------


def _lift(fn: Callable[..., Expr | None]) -> Callable[..., Array]:
    """Lifts `fn` to broadcast arrays; an unknown element gives an unknown element."""

    def known(*args: Expr | None) -> Expr | None:
        if any(a is None for a in args):
            return None
        result = fn(*args)
        # Near the end of int32 the run wraps around, and expressions do not.
        if result is None or (result.constant is not None and abs(result.constant) >= 2**31):
            return None
        return simplify(result, NO_RANGES)

    return _pointwise(known)


def _pointwise(fn: Callable[..., Expr | None]) -> Callable[..., Array]:
    def apply(*arrays: Array) -> Array:
        grids = np.broadcast_arrays(*arrays)
        values = [fn(*args) for args in zip(*(g.flat for g in grids), strict=True)]
        return as_elements(values, grids[0].shape)

    return apply


def _unary(fn: Callable[[Expr], Expr | None]) -> Rule:
    return _elementwise(fn)


def _binary(fn: Callable[[Expr, Expr], Expr | None]) -> Rule:
    return _elementwise(fn)


def _elementwise(fn: Callable[..., Expr | None]) -> Rule:
    lifted = _lift(fn)

    def rule(ctx: ValueContext) -> Array | None:
        arrays = [ctx.elements(i) for i in range(len(ctx.op.operands))]
        given = [a for a in arrays if a is not None]
        return lifted(*given) if given and len(given) == len(arrays) else None

    return rule


def _variadic(fn: Callable[[Expr, Expr], Expr | None]) -> Rule:
    lifted = _lift(fn)

    def rule(ctx: ValueContext) -> Array | None:
        result = ctx.elements(0)
        for i in range(1, len(ctx.op.operands)):
            other = ctx.elements(i)
            result = lifted(result, other) if result is not None and other is not None else None
        return result

    return rule


def _quotient(a: Expr, b: Expr) -> Expr | None:
    # ONNX rounds towards zero and floordiv downwards: the same where nothing is negative.
    if a.constant is not None and b.constant:
        q = abs(a.constant) // abs(b.constant)
        return Expr.of(q if (a.constant < 0) == (b.constant < 0) else -q)
    return floordiv(a, b) if is_nonneg(a) and _is_divisor(b) else None


def _is_divisor(b: Expr) -> bool:
    return is_nonneg(b) and b.constant != 0


def _equal(a: Expr, b: Expr) -> Expr | None:
    if a == b:
        return ONE
    return ZERO if is_nonneg(a - b - 1) or is_nonneg(b - a - 1) else None


def _less(a: Expr, b: Expr) -> Expr | None:
    if is_nonneg(b - a - 1):
        return ONE
    return ZERO if is_nonneg(a - b) else None


def _negated(e: Expr | None) -> Expr | None:
    return None if e is None else ONE - e


def _absolute(e: Expr) -> Expr | None:
    if is_nonneg(e):
        return e
    return -e if is_nonneg(-e) else None


def _sign(e: Expr) -> Expr | None:
    if e.constant is not None:
        return Expr.of((e.constant > 0) - (e.constant < 0))
    return ONE if is_nonneg(e - 1) else None


def _select(condition: Expr | None, a: Expr | None, b: Expr | None) -> Expr | None:
    if condition is None or condition.constant is None:
        return a if a is not None and a == b else None
    return a if condition.constant else b


def _where(ctx: ValueContext) -> Array | None:
    condition, a, b = (_or_unknown(ctx, i) for i in range(3))
    if condition is None or a is None or b is None:
        return None
    return _pointwise(_select)(condition, a, b)


def _or_unknown(ctx: ValueContext, index: int) -> Array | None:
    """Returns the elements, all unknown where only the shape is known."""
    found = ctx.elements(index)
    dims = _static(ctx.shape(index))
    if found is not None or dims is None or _size(dims) > MAX_ELEMENTS:
        return found
    return as_elements([None] * _size(dims), dims)


def _static(dims: Dims | None) -> list[int] | None:
    known = [d.constant for d in dims if d.constant is not None] if dims is not None else None
    return known if known is not None and dims is not None and len(known) == len(dims) else None


def _size(dims: Sequence[int]) -> int:
    size = 1
    for d in dims:
        size *= d
    return size


def _cast(ctx: ValueContext) -> Array | None:
    codes: dict[Any, Attribute] = {6: i32, 7: i64, 9: i1}
    return _converted(ctx, codes.get(ctx.op.attr("to")))


def _cast_like(ctx: ValueContext) -> Array | None:
    return _converted(ctx, ctx.element(1))


def _converted(ctx: ValueContext, target: Attribute | None) -> Array | None:
    """Returns the elements in int32, int64 or bool; other types would round them, or are not used in shape
    arithmetic."""
    if target not in (i1, i32, i64):
        return None
    found = _elements_or_floats(ctx, int if target != i1 else lambda value: int(value != 0))
    if found is None or target == i64:
        # Every element already is an int64; the ends of a Slice are the largest ones.
        return found
    return _lift(_is_not_zero if target == i1 else _itself)(found)


def _elements_or_floats(ctx: ValueContext, convert: Callable[[float], int]) -> Array | None:
    """Returns the operand's elements; those of a small float constant are converted."""
    found = ctx.elements(0)
    if found is not None:
        return found
    floats = ctx.constant(0)
    if floats is None or floats.dtype.kind != "f" or floats.size > MAX_ELEMENTS:
        return None
    values = [float(v) for v in floats.reshape(-1).tolist()]
    # ONNX does not define a conversion out of range.
    if not all(abs(v) < 2**31 for v in values):
        return None
    return as_elements([Expr.of(convert(v)) for v in values], floats.shape)


def _is_not_zero(e: Expr) -> Expr | None:
    return _negated(_equal(e, ZERO))


def _itself(e: Expr) -> Expr | None:
    return e


# -- movement ---------------------------------------------------------------------------------------------------------


def _shape(ctx: ValueContext) -> Array | None:
    dims = ctx.shape(0)
    if dims is None:
        return None
    start, end = ctx.op.attr("start", 0), ctx.op.attr("end", len(dims))
    picked = list(dims)[slice(start, end)]
    return as_elements(picked, [len(picked)])


def _size_of(ctx: ValueContext) -> Array | None:
    dims = ctx.shape(0)
    return None if dims is None else as_elements([product(dims)], [])


def _same(ctx: ValueContext) -> Array | None:
    return ctx.elements(0)


def _ints(ctx: ValueContext, index: int) -> list[int] | None:
    """Returns the operand's elements as integers, when they are."""
    found = ctx.elements(index) if index < len(ctx.op.operands) else None
    if found is None:
        return None
    values = [e.constant for e in found.flat if e is not None]
    ints = [v for v in values if v is not None]
    return ints if len(ints) == found.size else None


def _gather(ctx: ValueContext) -> Array | None:
    data, indices = ctx.elements(0), ctx.elements(1)
    flat = _ints(ctx, 1)
    if data is None or indices is None or flat is None:
        return None

    axis = ctx.op.attr("axis", 0)
    if any(not -data.shape[axis] <= i < data.shape[axis] for i in flat):
        return None
    picked: Any = np.take(data, np.array(flat, dtype=np.int64).reshape(indices.shape), axis=axis)
    # Taking one element of an array of objects gives the object.
    return cast("Array", picked) if isinstance(picked, np.ndarray) else as_elements([picked], [])


def _concat(ctx: ValueContext) -> Array | None:
    parts = [_or_unknown(ctx, i) for i in range(len(ctx.op.operands))]
    given = [p for p in parts if p is not None]
    if not given or len(given) < len(parts):
        return None
    # ONNX Runtime ignores the dims of empty operands beside others.
    filled = [p for p in given if p.size] or given
    axis = ctx.op.attr("axis") % max(filled[0].ndim, 1)
    around = {(*p.shape[:axis], *p.shape[axis + 1 :]) for p in filled}
    return np.concatenate(filled, axis=axis) if len(around) == 1 else None


def _axes(ctx: ValueContext) -> list[int] | None:
    """Returns the axes, an attribute in old opsets and an operand in new ones; `None` where none are given."""
    given = ctx.op.attr("axes")
    return list(given) if given is not None else _ints(ctx, 1)


def _unsqueeze(ctx: ValueContext) -> Array | None:
    data, axes = ctx.elements(0), _axes(ctx)
    if data is None or axes is None:
        return None
    rank = data.ndim + len(axes)
    places = {a % rank for a in axes}
    rest = iter(data.shape)
    return data.reshape([1 if i in places else next(rest) for i in range(rank)])


def _squeeze(ctx: ValueContext) -> Array | None:
    data, axes = ctx.elements(0), _axes(ctx)
    if data is None or (axes is None and len(ctx.op.inputs) > 1):
        return None
    places = {a % data.ndim for a in axes} if axes else {i for i, d in enumerate(data.shape) if d == 1}
    return data.reshape([d for i, d in enumerate(data.shape) if i not in places])


def _reshape(ctx: ValueContext) -> Array | None:
    data, target = ctx.elements(0), _ints(ctx, 1)
    if data is None or target is None:
        return None
    keep = not ctx.op.attr("allowzero", 0)
    dims = [data.shape[i] if d == 0 and keep and i < data.ndim else d for i, d in enumerate(target)]
    return data.reshape(dims)


def _transpose(ctx: ValueContext) -> Array | None:
    data = ctx.elements(0)
    return None if data is None else data.transpose(ctx.op.attr("perm"))


def _slice(ctx: ValueContext) -> Array | None:
    data = ctx.elements(0)
    if data is None:
        return None
    op = ctx.op
    in_attributes = "starts" in op.attributes
    starts, ends = (op.attr("starts"), op.attr("ends")) if in_attributes else (_ints(ctx, 1), _ints(ctx, 2))
    if starts is None or ends is None:
        return None
    axes = op.attr("axes") if in_attributes else _ints(ctx, 3)
    steps = None if in_attributes else _ints(ctx, 4)
    given = [] if in_attributes else op.inputs
    if any(len(given) > i and given[i] is not None and v is None for i, v in ((3, axes), (4, steps))):
        return None
    picks = [slice(None)] * data.ndim
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axes[i] if axes is not None else i
        picks[axis] = _python_slice(start, end, steps[i] if steps is not None else 1, data.shape[axis])
    return data[tuple(picks)]


def _python_slice(start: int, end: int, step: int, dim: int) -> slice:
    start, end = (v + dim if v < 0 else v for v in (start, end))
    if step > 0:
        return slice(max(0, min(start, dim)), max(0, min(end, dim)), step)
    # Backwards, the greatest i32 and i64 mean the end too, as in ONNX Runtime.
    last = -1 if end in ((1 << 31) - 1, (1 << 63) - 1) else max(-1, min(end, dim - 1))
    return slice(max(0, min(start, dim - 1)), None if last < 0 else last, step)


def _split(ctx: ValueContext) -> list[Array] | None:
    data = ctx.elements(0)
    if data is None:
        return None
    axis, count = ctx.op.attr("axis", 0), len(ctx.op.results)
    given = ctx.op.attr("split")
    sizes = list(given) if given is not None else _ints(ctx, 1)
    if sizes is None:
        if len(ctx.op.inputs) > 1:
            return None
        whole = -(-data.shape[axis] // count)
        sizes = [min(whole, data.shape[axis] - whole * i) for i in range(count)]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return list(np.split(data, ends, axis=axis))


def _expand(ctx: ValueContext) -> Array | None:
    data, target = ctx.elements(0), _ints(ctx, 1)
    if data is None or target is None or _size(target) > MAX_ELEMENTS:
        return None
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(target)))


def _tile(ctx: ValueContext) -> Array | None:
    data, repeats = ctx.elements(0), _ints(ctx, 1)
    if data is None or repeats is None or _size(repeats) * data.size > MAX_ELEMENTS:
        return None
    return np.tile(data, repeats)


def _constant_of_shape(ctx: ValueContext) -> Array | None:
    dims = _ints(ctx, 0)
    value = ctx.op.attr("value")
    array = np.zeros(1, np.float32) if value is None else value
    if dims is None or _size(dims) > MAX_ELEMENTS or array.dtype.name not in ("int32", "int64", "bool"):
        return None
    return as_elements([Expr.of(int(array.reshape(-1)[0]))] * _size(dims), dims)


def _range(ctx: ValueContext) -> Array | None:
    bounds = [_ints(ctx, i) for i in range(3)]
    given = [b[0] for b in bounds if b]
    if len(given) != 3 or given[2] == 0 or len(range(*given)) > MAX_ELEMENTS:
        return None
    values = [Expr.of(v) for v in range(*given)]
    return as_elements(values, [len(values)])


def _reduction(fn: Callable[[Expr, Expr], Expr], empty: Expr | None) -> Rule:
    def rule(ctx: ValueContext) -> Array | None:
        data = ctx.elements(0)
        axes = _axes(ctx)
        if data is None or data.ndim > 1 or (axes is None and len(ctx.op.inputs) > 1):
            return None
        if not axes and ctx.op.attr("noop_with_empty_axes", 0):
            return data
        values = known_elements(data)
        if values is None or (not values and empty is None):
            return None
        total = values[0] if values else empty
        assert total is not None
        for value in values[1:]:
            total = fn(total, value)
        return as_elements([total], [1] * data.ndim if ctx.op.attr("keepdims", 1) else [])

    return rule


def _modulo(a: Expr, b: Expr) -> Expr | None:
    return mod(a, b) if is_nonneg(a) and _is_divisor(b) else None


RULES: dict[str, Rule] = {
    "Abs": _unary(_absolute),
    "Add": _binary(lambda a, b: a + b),
    "And": _binary(minimum),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _binary(_quotient),
    "Equal": _binary(_equal),
    "Expand": _expand,
    "Gather": _gather,
    "Greater": _binary(lambda a, b: _less(b, a)),
    "GreaterOrEqual": _binary(lambda a, b: _negated(_less(a, b))),
    "Identity": _same,
    "Less": _binary(_less),
    "LessOrEqual": _binary(lambda a, b: _negated(_less(b, a))),
    "Max": _variadic(maximum),
    "Min": _variadic(minimum),
    "Mod": _binary(_modulo),
    "Mul": _binary(lambda a, b: a * b),
    "Neg": _unary(lambda a: -a),
    "Not": _unary(_negated),
    "Or": _binary(maximum),
    "Range": _range,
    "ReduceMax": _reduction(maximum, None),
    "ReduceMin": _reduction(minimum, None),
    "ReduceProd": _reduction(lambda a, b: a * b, ONE),
    "ReduceSum": _reduction(lambda a, b: a + b, ZERO),
    "Reshape": _reshape,
    "Shape": _shape,
    "Sign": _unary(_sign),
    "Size": _size_of,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _binary(lambda a, b: a - b),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
