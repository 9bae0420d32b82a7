"""The ops of `affine`."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from itertools import product
from typing import Any

from xdsl.ir import Operation

from igniter.verification.mlir.affine import affine_function
from igniter.verification.mlir.arith_rules import FLOATS, INTEGERS
from igniter.verification.mlir.control_rules import number_of, returned
from igniter.verification.mlir.machine import (
    Execute,
    Machine,
    attr_of,
    ints_of,
    name_of,
    require_attr,
    rule,
    segments,
)
from igniter.verification.mlir.values import (
    DYNAMIC,
    POISON,
    MemRef,
    Undefined,
    Unsupported,
    array_of,
    bits_of,
    concrete,
    element_of,
    is_integer,
    rounding,
    shape_of,
    wrapped,
)


def _ints(values: Any) -> list[int]:
    return [concrete(value, "an operand of an affine map") for value in values]


@rule("affine.apply", "affine.min", "affine.max")
def apply(_: Machine, op: Operation) -> Execute:
    """Decodes the value of a map, or the least or largest of its results."""
    function = affine_function(require_attr(op, "map"))
    choose = max if name_of(op) == "affine.max" else min
    return lambda *operands: wrapped(choose(function(_ints(operands))), 64)


@rule("affine.for")
def for_loop(machine: Machine, op: Operation) -> Execute:
    """Decodes a loop: from the largest of its lower bounds to the least of its upper bounds."""
    lower, upper = (affine_function(require_attr(op, f"{name}BoundMap")) for name in ("lower", "upper"))
    step, body = number_of(op, "step"), op.regions[0]

    def run(*operands: Any) -> Any:
        first, last, initial = segments(op, operands)
        values = tuple(initial)
        for index in range(max(lower(_ints(first))), min(upper(_ints(last))), step):
            values = machine.run(body, (index, *values))[1]
        return returned(values, op)

    return run


_ATOMIC = (
    *("add", "add", "assign", "maximum", "maxs", "maxu", "minimum", "mins", "minu"),
    *("mul", "mul", "or", "and", "maxnum", "minnum"),
)
"""The kinds of atomic updates in the order of their numbers."""


def atomic(number: int, type_: Any) -> Any:
    """Returns the function of a kind of reduction in memory or in a parallel loop."""
    name = _ATOMIC[number] if number < len(_ATOMIC) else ""
    if name == "assign":
        return lambda _, new: new
    if is_integer(type_) and name in INTEGERS:
        bits = bits_of(type_)
        return lambda a, b: POISON if a is POISON or b is POISON else wrapped(INTEGERS[name](a, b, bits), bits)
    if not is_integer(type_) and name in FLOATS:
        round_ = rounding(type_)
        return lambda a, b: POISON if a is POISON or b is POISON else round_(FLOATS[name](a, b))
    raise Unsupported(f"a reduction of the kind {number}")


_IDENTITY = {"add": 0, "or": 0, "maxu": 0, "mul": 1, "and": -1, "minu": -1}


def _identity(number: int, type_: Any) -> Any:
    name = _ATOMIC[number]
    if not is_integer(type_):
        inf = float("inf")
        return {"add": 0.0, "mul": 1.0, "minimum": inf, "minnum": inf}.get(name, -inf)
    bits = bits_of(type_)
    if name in ("maxs", "mins"):
        return -(1 << (bits - 1)) if name == "maxs" else (1 << (bits - 1)) - 1
    return wrapped(_IDENTITY[name], bits)


@rule("affine.parallel")
def parallel(machine: Machine, op: Operation) -> Execute:
    """Decodes a parallel loop; its iterations run in order."""
    maps = [affine_function(require_attr(op, f"{name}BoundsMap")) for name in ("lower", "upper")]
    groups = [_groups(require_attr(op, f"{name}BoundsGroups")) for name in ("lower", "upper")]
    steps = ints_of(require_attr(op, "steps"))
    kinds = ints_of(attr_of(op, "reductions"))
    combine = [atomic(k, r.type) for k, r in zip(kinds, op.results, strict=True)]
    count = maps[0].dims + maps[0].symbols

    def run(*operands: Any) -> Any:
        bounds: list[list[int]] = []
        for map_, sizes, values, choose in zip(
            maps, groups, (operands[:count], operands[count:]), (max, min), strict=True
        ):
            results = iter(map_(_ints(values)))
            bounds.append([choose([next(results) for _ in range(size)]) for size in sizes])
        totals = [_identity(k, r.type) for k, r in zip(kinds, op.results, strict=True)]
        for point in product(*(range(a, b, s) for a, b, s in zip(*bounds, steps, strict=True))):
            parts = machine.run(op.regions[0], point)[1]
            totals = [f(total, part) for f, total, part in zip(combine, totals, parts, strict=True)]
        return returned(totals, op)

    return run


def _groups(attribute: Any) -> list[int]:
    return [int(v) for v in attribute.get_values()]


@rule("affine.if")
def if_(machine: Machine, op: Operation) -> Execute:
    """Decodes a conditional on a set."""
    condition = affine_function(require_attr(op, "condition"))

    def run(*operands: Any) -> Any:
        region = op.regions[0 if condition.contains(_ints(operands)) else 1]
        return returned(machine.run(region)[1] if region.blocks else (), op)

    return run


@rule("affine.load")
def load(_: Machine, op: Operation) -> Execute:
    """Decodes a load."""
    function = affine_function(require_attr(op, "map"))
    return lambda memref, *indices: memref.load(function(_ints(indices)))


@rule("affine.store")
def store(_: Machine, op: Operation) -> Execute:
    """Decodes a store."""
    function = affine_function(require_attr(op, "map"))
    return lambda value, memref, *indices: memref.store(value, function(_ints(indices)))


def vector_points(memref: MemRef, start: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns the indices of the elements of a vector, which covers the last dims of a memref."""
    outer, inner = start[: len(start) - len(shape)], start[len(start) - len(shape) :]
    return [(*outer, *(i + d for i, d in zip(inner, p, strict=True))) for p in product(*map(range, shape))]


@rule("affine.vector_load")
def vector_load(_: Machine, op: Operation) -> Execute:
    """Decodes a load of a vector."""
    function, shape = affine_function(require_attr(op, "map")), shape_of(op.results[0].type)

    def run(memref: MemRef, *indices: Any) -> Any:
        return array_of((memref.load(p) for p in vector_points(memref, function(_ints(indices)), shape)), shape)

    return run


@rule("affine.vector_store")
def vector_store(_: Machine, op: Operation) -> Execute:
    """Decodes a store of a vector."""
    function, shape = affine_function(require_attr(op, "map")), shape_of(op.operands[0].type)

    def run(value: Any, memref: MemRef, *indices: Any) -> None:
        points = vector_points(memref, function(_ints(indices)), shape)
        for point, scalar in zip(points, value.reshape(-1), strict=True):
            memref.store(scalar, point)

    return run


@rule("affine.prefetch")
def prefetch(_: Machine, op: Operation) -> Execute:
    """Decodes a prefetch: it does nothing."""
    return lambda *_: None


@rule("affine.delinearize_index")
def delinearize(_: Machine, op: Operation) -> Execute:
    """Decodes an index split by a basis."""
    static = ints_of(attr_of(op, "static_basis"))

    def run(index: Any, *dynamic: Any) -> Any:
        rest = iter(_ints(dynamic))
        basis = [next(rest) if n == DYNAMIC else n for n in static] or list(rest)
        left = concrete(index, "an index")
        parts: list[int] = []
        for size in reversed(basis[len(basis) - len(op.results) + 1 :]):
            if size <= 0:
                raise Undefined(f"a basis with {size}")
            parts.append(left % size)
            left //= size
        return returned([left, *reversed(parts)], op)

    return run


@rule("memref.atomic_rmw")
def atomic_rmw(_: Machine, op: Operation) -> Execute:
    """Decodes an update of an element. Its documentation and its lowering disagree about the result."""
    if next(iter(op.results[0].uses), None) is not None:
        raise Unsupported("the result of 'memref.atomic_rmw'")
    combine = atomic(number_of(op, "kind"), element_of(op.operands[0].type))

    def run(value: Any, memref: MemRef, *indices: Any) -> Any:
        old = memref.load(indices)
        new = combine(old, value)
        memref.store(new, indices)
        return new

    return run
