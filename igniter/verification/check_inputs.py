"""Random inputs for graphs, regions and kernels from their IR types, for checking passes against each other.

Symbols get small, distinct sizes, to detect a mix-up of two dims. Integers that index a constant (the table of a
`Gather`) are in bounds; other integers are 0 or 1, accepted by every mask, type id and index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.fusion import GroupOp
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement
from igniter.errors import IgniterError

SIZES = (2, 3, 5, 7, 4, 6)


@dataclass(frozen=True)
class TypedInput:
    """The facts about one input: its name, its tensor type, and for integers the exclusive upper bound."""

    name: str
    type: Attribute
    bound: int = 2


def default_sizes(types: Iterable[Attribute]) -> dict[str, int]:
    """Returns a size for every symbol of the types, by the order of first occurrence."""
    names: dict[str, None] = {}
    for tensor in types:
        for dim in dims_of(tensor):
            names.update(dict.fromkeys(sorted(dim.symbols)))
    return {name: SIZES[i % len(SIZES)] for i, name in enumerate(names)}


MOST_SCALE = 512


def sizes_without_empties(
    types: Sequence[Attribute],
    ops: Sequence[Operation],
    requires: Sequence[Requirement],
    known: Mapping[str, int],
) -> dict[str, int]:
    """Returns sizes for the symbols of the types: those of `known`, and small distinct ones for the rest, large enough
    for no tensor in `ops` to be empty and all of `requires` to hold. Unsatisfiable requirements fail later, in the
    run."""
    base = default_sizes(types)
    shaped = [v.type for op in ops for v in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args))]
    dims = [d for t in (*types, *shaped) for d in _dims(t)]
    scale = 1
    while scale <= MOST_SCALE:
        sizes = {name: known.get(name, size * scale) for name, size in base.items()}
        if all(_is_positive(d, sizes) for d in dims) and all(_holds(r, sizes) for r in requires):
            return sizes
        scale *= 2
    return {name: known.get(name, size) for name, size in base.items()}


def sizes_of(types: Sequence[Attribute], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """Returns the sizes of symbols, from tensors of these types and shapes."""
    found: dict[str, int] = {}
    for tensor, shape in zip(types, shapes, strict=True):
        for dim, size in zip(_dims(tensor), shape, strict=False):
            if dim.symbol is not None:
                found.setdefault(dim.symbol, size)
    return found


def shape_of(tensor: Attribute, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the shape of a tensor at these sizes; () for other values."""
    return tuple(d.evaluate(sizes) for d in _dims(tensor))


def _dims(shaped: Attribute) -> Sequence[Expr]:
    try:
        return dims_of(shaped)
    except ValueError:
        return ()


def _is_positive(dim: Expr, sizes: Mapping[str, int]) -> bool:
    """True if a dim is > 0; a dim of unknown symbols counts as positive."""
    if not dim.symbols <= set(sizes):
        return True
    try:
        return dim.evaluate(sizes) > 0
    except ZeroDivisionError:
        return False


def _holds(requirement: Requirement, sizes: Mapping[str, int]) -> bool:
    return not requirement.symbols <= set(sizes) or requirement.holds(sizes)


def random_arrays(inputs: Sequence[TypedInput], sizes: Mapping[str, int], seed: int) -> list[np.ndarray[Any, Any]]:
    """Returns one array for each input, with `sizes` for the symbols; `IgniterError` names an unsupported input."""
    rng = np.random.default_rng(seed)
    return [_random(each, sizes, rng) for each in inputs]


def _random(each: TypedInput, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    try:
        shape = tuple(dim.evaluate(dict(sizes)) for dim in dims_of(each.type))
        dtype = BY_ATTR[element_of(each.type)].dtype
    except (KeyError, ValueError) as error:
        raise IgniterError(f"no random value can be made for input '{each.name}' of type {each.type}: {error}")
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.8)
    if dtype.kind in "iu":
        # With only two values, mostly ones: a mask with most of its row hidden tests little.
        drawn = rng.random(shape) < 0.8 if each.bound <= 2 else rng.integers(0, each.bound, shape)
        return np.asarray(drawn).astype(dtype)
    if dtype.kind == "O":
        return np.asarray(rng.integers(0, 100, shape)).astype(str).astype(object)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def inputs_of(names: Sequence[str], values: Sequence[SSAValue]) -> list[TypedInput]:
    """Returns the inputs for a graph's or a region's arguments, integers bounded by the indexed axes."""
    return [TypedInput(name, value.type, index_bound(value)) for name, value in zip(names, values, strict=True)]


_PASSING = {"Cast", "Unsqueeze", "Squeeze", "Reshape", "Identity", "Flatten", "Slice", "Expand"}


def index_bound(value: SSAValue, depth: int = 4) -> int:
    """Returns the smallest size of a constant's axis indexed by `value`; 2 if it indexes none."""
    bounds: list[int] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, GroupOp):
            bounds.append(index_bound(op.block.args[use.index], depth))
        if not isinstance(op, OnnxOp):
            continue
        if op.op_type == "Equal" and (listed := constant_weight(op.operands[1 - use.index])) is not None:
            # Compared with 0, 1, 2, ...: a decomposed one-hot.
            bounds.append(int(listed.array().max(initial=0)) + 1 if listed.strings is None else 2)
        elif op.op_type.startswith("Gather") and use.index == 1:
            bounds.append(_indexed_size(op))
        elif op.op_type in _PASSING and use.index == 0 and depth:
            bounds.append(index_bound(op.results[0], depth - 1))
    known = [b for b in bounds if b > 2]
    return min(known) if known else 2


def _indexed_size(op: OnnxOp) -> int:
    if op.op_type != "Gather":
        return 2
    try:
        axis: int = op.attr("axis", 0)
        size = dims_of(op.operands[0].type)[axis].constant
    except (ValueError, IndexError):
        return 2
    return 2 if size is None else size
