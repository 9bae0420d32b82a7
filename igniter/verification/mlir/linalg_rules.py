"""The ops of `linalg` on tensors and memrefs: every op with a region and indexing maps, and a few without."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Operation

from igniter.verification.mlir.affine import AffineFunction, affine_function
from igniter.verification.mlir.control_rules import returned
from igniter.verification.mlir.machine import Execute, Machine, int_of, ints_of, require_attr, rule
from igniter.verification.mlir.values import Array, MemRef, Undefined, Unsupported


def sizes_of(value: Any) -> tuple[int, ...]:
    """Returns the sizes of an operand; a scalar has none."""
    return value.sizes if isinstance(value, MemRef) else getattr(value, "shape", ())


def element(value: Any, point: tuple[int, ...]) -> Any:
    """Returns an element of an operand."""
    if isinstance(value, MemRef):
        return value.load(point)
    return value[point] if hasattr(value, "shape") else value


def domain(maps: Sequence[AffineFunction], operands: Sequence[Any]) -> list[int]:
    """Returns the sizes of the loops: those of operands that a loop indexes alone.

    Raises `Undefined` if the operands do not fit to each other.
    """
    dims = maps[0].dims
    zero = [0] * dims
    units = [[int(i == d) for i in range(dims)] for d in range(dims)]
    found: list[int | None] = [None] * dims
    for function, operand in zip(maps, operands, strict=True):
        base, moved = function(zero), [function(u) for u in units]
        for axis, size in enumerate(sizes_of(operand)):
            steps = [m[axis] - base[axis] for m in moved]
            alone = [d for d, step in enumerate(steps) if step]
            if len(alone) != 1 or steps[alone[0]] != 1 or base[axis]:
                continue
            d = alone[0]
            if found[d] not in (None, size):
                raise Undefined(f"operands of a linalg op with {found[d]} and {size} elements along loop {d}")
            found[d] = size
    if None in found:
        raise Unsupported("a linalg op with a loop that no operand's size gives")
    return [size for size in found if size is not None]


@rule("linalg.index")
def index(machine: Machine, op: Operation) -> Execute:
    """Decodes the number of an iteration."""
    dim = int_of(require_attr(op, "dim"))
    return lambda: machine.iteration[dim]


def _maps(op: Operation) -> list[AffineFunction]:
    attribute = require_attr(op, "indexing_maps", "linalg.memoized_indexing_maps")
    assert isinstance(attribute, builtin.ArrayAttr)
    return [affine_function(m) for m in attribute.data]


def structured(machine: Machine, op: Operation) -> Execute:
    """Decodes an op with maps and a region: one run of the region per iteration, in order."""
    maps, count = _maps(op), ints_of(require_attr(op, "operandSegmentSizes"))[0]
    region = op.regions[0]

    def run(*operands: Any) -> Any:
        outs = [v if isinstance(v, MemRef) else v.copy() for v in operands[count:]]
        current = [*operands[:count], *outs]
        used = maps[: len(current)]
        outer = machine.iteration
        for point in product(*map(range, domain(used, current))):
            places = [function(point) for function in used]
            machine.iteration = point
            args = [element(v, place) for v, place in zip(current, places, strict=True)]
            results = machine.run(region, args)[1]
            for out, place, result in zip(outs, places[count:], results, strict=True):
                if isinstance(out, MemRef):
                    out.store(result, place)
                else:
                    out[place] = result
        machine.iteration = outer
        tensors: list[Array] = [v for v in outs if not isinstance(v, MemRef)]
        return returned(tensors, op) if op.results else None

    return run


_NAMED = """
    generic matmul matmul_transpose_a matmul_transpose_b batch_matmul batch_matmul_transpose_a
    batch_matmul_transpose_b matvec vecmat dot conv_1d conv_2d conv_3d conv_1d_nwc_wcf conv_1d_ncw_fcw
    conv_2d_nhwc_hwcf conv_2d_nchw_fchw conv_2d_nhwc_fhwc depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nchw_chw
    pooling_nhwc_sum pooling_nhwc_max pooling_nhwc_min pooling_nchw_sum pooling_nchw_max
    add sub mul div max min exp log abs ceil floor negf sqrt rsqrt square tanh erf powf select reciprocal round
    elemwise_unary elemwise_binary quantized_matmul copy
"""
"""The ops with indexing maps and a region."""


@rule(*(f"linalg.{name}" for name in _NAMED.split()))
def named(machine: Machine, op: Operation) -> Execute:
    """Decodes a generic or named op."""
    return structured(machine, op)


@rule("linalg.fill")
def fill(_: Machine, op: Operation) -> Execute:
    """Decodes a fill."""

    def run(value: Any, out: Any) -> Any:
        if isinstance(out, MemRef):
            for point in out.points():
                out.store(value, point)
            return None
        made = out.copy()
        made.fill(value)
        return made

    return run


def _write(out: Any, values: Array) -> Any:
    if sizes_of(out) != values.shape:
        raise Undefined(f"operands of a linalg op with the sizes {list(values.shape)} and {list(sizes_of(out))}")
    if isinstance(out, MemRef):
        out.fill_from(values)
        return None
    return values.copy()


def _array(value: Any) -> Array:
    return value.array() if isinstance(value, MemRef) else value


@rule("linalg.transpose")
def transpose(_: Machine, op: Operation) -> Execute:
    """Decodes a permutation of dims."""
    order = ints_of(require_attr(op, "permutation"))
    return lambda source, out: _write(out, _array(source).transpose(order))


@rule("linalg.broadcast")
def broadcast(_: Machine, op: Operation) -> Execute:
    """Decodes a broadcast along new dims."""
    added = ints_of(require_attr(op, "dimensions"))

    def run(source: Any, out: Any) -> Any:
        made, old = _array(out).copy(), _array(source)
        for point in product(*map(range, made.shape)):
            place = tuple(i for axis, i in enumerate(point) if axis not in added)
            if len(place) != old.ndim or any(i >= n for i, n in zip(place, old.shape, strict=True)):
                raise Undefined("a broadcast between sizes that do not fit")
            made[point] = old[place]
        return _write(out, made)

    return run


@rule("linalg.map")
def map_(machine: Machine, op: Operation) -> Execute:
    """Decodes an elementwise op with a region."""

    def run(*operands: Any) -> Any:
        *sources, out = operands
        made = _array(out).copy()
        for point in product(*map(range, made.shape)):
            made[point] = machine.run(op.regions[0], [element(s, point) for s in sources])[1][0]
        return _write(out, made)

    return run


@rule("linalg.reduce")
def reduce_(machine: Machine, op: Operation) -> Execute:
    """Decodes a reduction with a region."""
    dims = ints_of(require_attr(op, "dimensions"))

    def run(*operands: Any) -> Any:
        half = len(operands) // 2
        sources, outs = operands[:half], operands[half:]
        made = [_array(out).copy() for out in outs]
        for point in product(*map(range, sizes_of(sources[0]))):
            place = tuple(i for axis, i in enumerate(point) if axis not in dims)
            args = [*(element(s, point) for s in sources), *(m[place] for m in made)]
            for m, result in zip(made, machine.run(op.regions[0], args)[1], strict=True):
                m[place] = result
        written = [_write(out, m) for out, m in zip(outs, made, strict=True)]
        return returned(written, op) if op.results else None

    return run
