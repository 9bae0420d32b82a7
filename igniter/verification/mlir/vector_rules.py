"""The ops of `vector` that stay in registers."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from igniter.verification.mlir.affine import affine_function
from igniter.verification.mlir.arith_rules import FLOATS, INTEGERS
from igniter.verification.mlir.machine import (
    Execute,
    Machine,
    attr_of,
    ints_of,
    name_of,
    require_attr,
    rule,
    rules,
)
from igniter.verification.mlir.values import (
    DYNAMIC,
    POISON,
    Array,
    Unsupported,
    array_of,
    bits_of,
    concrete,
    element_of,
    elementwise,
    filled,
    from_bits,
    is_array,
    is_integer,
    rounding,
    shape_of,
    to_bits,
    unsigned,
    wrapped,
)

Combine = Callable[[Any, Any], Any]


def combining(attribute: Attribute, type_: Attribute) -> Combine:
    """Returns the scalar function of a combining kind."""
    found = re.search(r"kind<\s*(\w+)\s*>", str(attribute))
    name = found.group(1) if found else ""
    if is_integer(type_):
        function, bits = INTEGERS.get(name.replace("ui", "u").replace("si", "s")), bits_of(type_)
        if function is not None:
            return lambda a, b: POISON if a is POISON or b is POISON else wrapped(function(a, b, bits), bits)
    else:
        floats, round_ = FLOATS.get(name.removesuffix("f")), rounding(type_)
        if floats is not None:
            return lambda a, b: POISON if a is POISON or b is POISON else round_(floats(a, b))
    raise Unsupported(f"the reduction {attribute} of {type_}")


def scalars(value: Any) -> list[Any]:
    """Returns the elements of an array in row-major order."""
    return list(value.reshape(-1))


def unwrapped(array: Any, op: Operation) -> Any:
    """Returns a result as its type asks: a scalar, or an array."""
    is_vector = isinstance(op.results[0].type, (builtin.VectorType, builtin.TensorType))
    return array if is_vector or not is_array(array) else array[()]


# -- shapes ------------------------------------------------------------------------------------------------------------


@rule("vector.broadcast", "vector.splat", "tensor.splat")
def broadcast(_: Machine, op: Operation) -> Execute:
    """Decodes a broadcast of a scalar or of dims of size 1."""
    shape = shape_of(op.results[0].type)

    def run(value: Any, *_: Any) -> Array:
        if DYNAMIC in shape:
            raise Unsupported("a splat of unknown size")
        if not is_array(value):
            return filled(value, shape)
        return np.broadcast_to(value, shape).copy()

    return run


@rule("vector.shape_cast")
def shape_cast(_: Machine, op: Operation) -> Execute:
    """Decodes a change of dims."""
    shape = shape_of(op.results[0].type)
    return lambda value: value.reshape(shape)


@rule("vector.transpose")
def transpose(_: Machine, op: Operation) -> Execute:
    """Decodes a permutation of dims."""
    order = ints_of(require_attr(op, "permutation", "transp"))
    return lambda value: value.transpose(order)


def _position(op: Operation, dynamic: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...] | None:
    rest = iter(dynamic)
    found: list[int] = []
    for n, size in zip(ints_of(require_attr(op, "static_position")), shape, strict=False):
        index = next(rest) if n == DYNAMIC else n
        if index is POISON or not 0 <= index < size:
            return None
        found.append(index)
    return tuple(found)


@rule("vector.extract")
def extract(_: Machine, op: Operation) -> Execute:
    """Decodes the extraction of a part; a position out of bounds gives poison."""

    def run(source: Array, *dynamic: Any) -> Any:
        place = _position(op, dynamic, source.shape)
        type_ = op.results[0].type
        if place is None:
            return filled(POISON, shape_of(type_)) if isinstance(type_, builtin.VectorType) else POISON
        return unwrapped(source[place], op)

    return run


@rule("vector.insert")
def insert(_: Machine, op: Operation) -> Execute:
    """Decodes the insertion of a part; a position out of bounds gives poison."""

    def run(part: Any, target: Array, *dynamic: Any) -> Array:
        place = _position(op, dynamic, target.shape)
        if place is None:
            return filled(POISON, target.shape)
        made = target.copy()
        made[place] = part[()] if is_array(part) and not part.shape else part
        return made

    return run


@rule("vector.extractelement", "llvm.extractelement")
def extract_element(_: Machine, op: Operation) -> Execute:
    """Decodes the extraction of an element."""
    signless = _position_bits(op, 1)

    def run(source: Array, *place: Any) -> Any:
        if not place:
            return source[()]
        index = signless(place[0])
        return source[index] if index is not POISON and index < len(source) else POISON

    return run


@rule("vector.insertelement", "llvm.insertelement")
def insert_element(_: Machine, op: Operation) -> Execute:
    """Decodes the insertion of an element."""
    signless = _position_bits(op, 2)

    def run(scalar: Any, target: Any, *place: Any) -> Array:
        # The twin in `llvm` has the vector first.
        vector, value = (target, scalar) if is_array(target) else (scalar, target)
        index: Any = signless(place[0]) if place else ()
        if index is POISON or (place and index >= len(vector)):
            return filled(POISON, vector.shape)
        made = vector.copy()
        made[index] = value
        return made

    return run


def _position_bits(op: Operation, place: int) -> Callable[[Any], Any]:
    if len(op.operands) <= place:
        return lambda value: value
    bits = bits_of(op.operands[place].type)
    return lambda value: POISON if value is POISON else unsigned(value, bits)


def _box(op: Operation, sizes: Sequence[int]) -> tuple[slice, ...]:
    offsets, strides = ints_of(require_attr(op, "offsets")), ints_of(require_attr(op, "strides"))
    return tuple(slice(o, o + n * s, s) for o, n, s in zip(offsets, sizes, strides, strict=False))


@rule("vector.extract_strided_slice")
def extract_slice(_: Machine, op: Operation) -> Execute:
    """Decodes the extraction of a box."""
    box = _box(op, ints_of(require_attr(op, "sizes")))
    return lambda source: source[box].copy()


@rule("vector.insert_strided_slice")
def insert_slice(_: Machine, op: Operation) -> Execute:
    """Decodes the insertion of a box, which covers the last dims of the target."""

    def run(source: Array, target: Array) -> Array:
        made = target.copy()
        offsets = ints_of(require_attr(op, "offsets"))
        lead = len(target.shape) - len(source.shape)
        place = tuple(slice(o, o + n) for o, n in zip(offsets, (*[1] * lead, *source.shape), strict=True))
        made[place] = source.reshape((*[1] * lead, *source.shape))
        return made

    return run


@rule("vector.shuffle", "llvm.shufflevector")
def shuffle(_: Machine, op: Operation) -> Execute:
    """Decodes a selection of the rows of two vectors."""
    mask = ints_of(require_attr(op, "mask"))

    def run(a: Array, b: Array) -> Array:
        both = [*a, *b] if a.shape else [a[()], b[()]]
        if len(a.shape) > 1:
            return np.stack([both[i] for i in mask])
        return array_of((both[i] if i >= 0 else POISON for i in mask), (len(mask),))

    return run


@rule("vector.interleave")
def interleave(_: Machine, op: Operation) -> Execute:
    """Decodes an interleaving along the last dim."""
    shape = shape_of(op.results[0].type)
    return lambda a, b: np.stack([a, b], axis=-1).reshape(shape)


@rule("vector.deinterleave")
def deinterleave(_: Machine, op: Operation) -> Execute:
    """Decodes a split of the last dim in its even and odd elements."""
    return lambda a: (a[..., ::2].copy(), a[..., 1::2].copy())


@rule("vector.from_elements", "tensor.from_elements")
def from_elements(_: Machine, op: Operation) -> Execute:
    """Decodes a vector or tensor of scalars."""
    shape = shape_of(op.results[0].type)
    return lambda *elements: array_of(elements, shape)


@rule("vector.bitcast")
def bitcast(_: Machine, op: Operation) -> Execute:
    """Decodes a reinterpretation of the bits of the last dim, the first element lowest."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    shape, old, new = shape_of(op.results[0].type), bits_of(source), bits_of(target)

    def row(values: list[Any]) -> list[Any]:
        if old == new:
            return [POISON if v is POISON else from_bits(to_bits(v, source), target) for v in values]
        if any(v is POISON for v in values):
            return [POISON] * (len(values) * old // new)
        bits = sum(to_bits(v, source) << (old * i) for i, v in enumerate(values))
        return [from_bits(bits >> (new * i), target) for i in range(len(values) * old // new)]

    def run(value: Array) -> Array:
        rows = value.reshape(-1, value.shape[-1] if value.shape else 1)
        return array_of((x for r in rows for x in row(list(r))), shape)

    return run


# -- masks -------------------------------------------------------------------------------------------------------------


@rule("vector.create_mask")
def create_mask(_: Machine, op: Operation) -> Execute:
    """Decodes a mask of the elements below a bound in every dim."""
    shape = shape_of(op.results[0].type)

    def run(*bounds: Any) -> Array:
        if any(b is POISON for b in bounds):
            return filled(POISON, shape)
        return _box_mask(shape, bounds)

    return run


@rule("vector.constant_mask")
def constant_mask(_: Machine, op: Operation) -> Execute:
    """Decodes a mask with constant bounds."""
    mask = _box_mask(shape_of(op.results[0].type), ints_of(require_attr(op, "mask_dim_sizes")))
    return lambda: mask


def _box_mask(shape: Sequence[int], bounds: Sequence[int]) -> Array:
    points = product(*map(range, shape))
    return array_of((int(all(i < b for i, b in zip(p, bounds, strict=True))) for p in points), shape)


Masked = Callable[..., Any]
MASKED: dict[str, Callable[[Machine, Operation], Masked]] = {}
"""Rules of ops that may be in a `vector.mask`: they return a function whose first parameter is the mask or `None`."""


def masked_rule(name: str) -> Callable[[Callable[[Machine, Operation], Masked]], Any]:
    """Registers the rule of an op that `vector.mask` may surround."""

    def register(function: Callable[[Machine, Operation], Masked]) -> Any:
        MASKED[name] = function

        def alone(machine: Machine, op: Operation) -> Execute:
            run = function(machine, op)
            return lambda *operands: run(None, *operands)

        rule(name)(alone)
        return function

    return register


@rule("vector.mask")
def mask(machine: Machine, op: Operation) -> Execute:
    """Decodes an op under a mask. Without an op in the region, its values are the results."""
    rules()
    (block,) = op.regions[0].blocks
    *inner, end = block.ops
    if len(op.operands) > 1:
        raise Unsupported("'vector.mask' with a value for masked-off elements")
    if not inner:
        return lambda _: _values(machine, end.operands, op)
    if len(inner) > 1 or name_of(inner[0]) not in MASKED:
        raise Unsupported(f"'vector.mask' around '{name_of(inner[0])}'")
    (only,) = inner
    run = MASKED[name_of(only)](machine, only)

    def masked(lanes: Array) -> Any:
        value = run(lanes, *(machine.value(v) for v in only.operands))
        for result in only.results:
            machine.bind(result, value)
        return _values(machine, end.operands, op)

    return masked


def _values(machine: Machine, operands: Sequence[Any], op: Operation) -> Any:
    found = [machine.value(v) for v in operands]
    return found[0] if len(op.results) == 1 else tuple(found)


def lane(mask: Any, what: str = "a mask") -> bool:
    """Returns an element of a mask."""
    return bool(concrete(mask, what))


# -- reductions --------------------------------------------------------------------------------------------------------


@masked_rule("vector.reduction")
def reduction(_: Machine, op: Operation) -> Masked:
    """Decodes a reduction of a vector to a scalar, with or without an initial value."""
    combine = combining(require_attr(op, "kind"), op.results[0].type)
    type_ = op.results[0].type

    def run(mask: Any, source: Array, *initial: Any) -> Any:
        values = scalars(source)
        if mask is not None:
            values = [v for v, m in zip(values, scalars(mask), strict=True) if lane(m)]
        if not values and not initial:
            return neutral(require_attr(op, "kind"), type_)
        return reduce(combine, [*initial, *values])

    return run


def neutral(kind: Attribute, type_: Attribute) -> Any:
    """Returns the value that a reduction of no elements has."""
    found = re.search(r"kind<\s*(\w+)\s*>", str(kind))
    name = found.group(1) if found else ""
    if not is_integer(type_):
        infinity = float("inf")
        by_name = {"add": -0.0, "mul": 1.0, "minimumf": infinity, "minnumf": infinity}
        return by_name.get(name, -infinity)
    bits = bits_of(type_)
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    by_name = {"mul": 1, "and": -1, "minui": -1, "minsi": most, "maxsi": least}
    return wrapped(by_name.get(name, 0), bits)


@masked_rule("vector.multi_reduction")
def multi_reduction(_: Machine, op: Operation) -> Masked:
    """Decodes a reduction of some dims. Every element combines with the initial value, also without such dims."""
    combine = combining(require_attr(op, "kind"), element_of(op.results[0].type))
    dims = ints_of(require_attr(op, "reduction_dims"))

    def run(mask: Any, source: Array, initial: Any) -> Any:
        kept = [axis for axis in range(source.ndim) if axis not in dims]
        made = initial.copy() if is_array(initial) else filled(initial, ())
        for point in product(*map(range, source.shape)):
            if mask is None or lane(mask[point]):
                place = tuple(point[axis] for axis in kept)
                made[place] = combine(made[place], source[point])
        return unwrapped(made, op)

    return run


@masked_rule("vector.contract")
def contract(_: Machine, op: Operation) -> Masked:
    """Decodes a contraction: products summed over the reduction iterators."""
    maps = require_attr(op, "indexing_maps")
    assert isinstance(maps, builtin.ArrayAttr)
    left, right, out = (affine_function(m) for m in maps.data)
    type_ = element_of(op.results[0].type)
    combine = combining(require_attr(op, "kind"), type_)

    def run(mask: Any, a: Array, b: Array, initial: Any) -> Any:
        sizes = [0] * left.dims
        unit = [tuple(int(i == d) for i in range(left.dims)) for d in range(left.dims)]
        for function, operand in ((left, a), (right, b)):
            for d in range(left.dims):
                for axis, (one, zero) in enumerate(zip(function(unit[d]), function([0] * left.dims), strict=True)):
                    if one != zero:
                        sizes[d] = operand.shape[axis]
        made = initial.copy() if is_array(initial) else filled(initial, ())
        for point in product(*map(range, sizes)):
            if mask is None or lane(mask[point]):
                x, y, place = a[left(point)], b[right(point)], out(point)
                made[place] = combine(made[place], _times(x, y, type_))
        return unwrapped(made, op)

    return run


def _times(a: Any, b: Any, type_: Attribute) -> Any:
    if a is POISON or b is POISON:
        return POISON
    return wrapped(a * b, bits_of(type_)) if is_integer(type_) else rounding(type_)(a * b)


@masked_rule("vector.outerproduct")
def outer_product(_: Machine, op: Operation) -> Masked:
    """Decodes an outer product, or the product with a scalar, added to an initial value."""
    type_ = element_of(op.results[0].type)
    kind = attr_of(op, "kind")
    combine = combining(kind, type_) if kind is not None else None

    def run(mask: Any, a: Array, b: Any, *initial: Array) -> Array:
        made = filled(0, shape_of(op.results[0].type))
        for point in product(*map(range, made.shape)):
            value = _times(a[point[0]], b[point[1]] if is_array(b) else b, type_)
            if initial and combine is not None:
                value = combine(initial[0][point], value)
            if mask is not None and not lane(mask[point]):
                value = initial[0][point] if initial else POISON
            made[point] = value
        return made

    return run


@rule("vector.scan")
def scan(_: Machine, op: Operation) -> Execute:
    """Decodes a running reduction along a dim."""
    combine = combining(require_attr(op, "kind"), element_of(op.results[0].type))
    (axis,) = ints_of(builtin.ArrayAttr([require_attr(op, "reduction_dim")]))
    inclusive = "true" in str(require_attr(op, "inclusive"))

    def run(source: Array, initial: Array) -> Any:
        made, last = source.copy(), initial
        for i in range(source.shape[axis]):
            place = (*[slice(None)] * axis, i)
            before, last = last, _paired(combine, last, source[place])
            made[place] = last if inclusive else before
        return made, last

    return run


def _paired(combine: Combine, a: Any, b: Any) -> Any:
    return elementwise(combine, a, b)


@rule("vector.print")
def print_(_: Machine, op: Operation) -> Execute:
    """Refuses output: the check compares results."""
    raise Unsupported("'vector.print'")
