"""Accesses of whole blocks of tensors, as descriptors make them.

A descriptor accesses a block at some subscripts of a tensor in memory, whose elements lie row after row. So the
subscripts of an access must be single dims of the launch with lanes, each over the whole size of the tensor's dim
(beyond it a load gives 0), or the same for all lanes. The strides of the tensor must be multiples of 16 bytes. If that
is not known before sizes are, `lacking` is an expression that is 0 where it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.ir import Attribute

from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, product
from igniter.dialects.triton.descriptors import LEAST_BYTES, descriptor_bytes, descriptor_reason


@dataclass(frozen=True)
class BlockAccess:
    """An access of a block of a tensor."""

    sizes: tuple[Expr, ...]
    """The sizes of the tensor, without dims of one element."""
    places: tuple[str | Expr, ...]
    """For each of these dims the dim of the launch whose block it has, or the subscript of all lanes."""
    shape: tuple[int, ...]
    """The elements of a block along these dims."""
    lacking: Expr
    """0 if a descriptor can be made of the tensor, positive otherwise."""

    @property
    def wide(self) -> tuple[str, ...]:
        """The dims of the launch with lanes, in the order of the tensor."""
        return tuple(place for place in self.places if isinstance(place, str))


def block_access(
    subscripts: Sequence[Expr],
    sizes: Sequence[Expr],
    element: Attribute,
    lanes: Mapping[str, int],
    extents: Mapping[str, Expr],
    grid: Set[str],
) -> BlockAccess | str:
    """Returns an access as one of a block, or the reason why it is none. `lanes` has the dims of the block; a program
    runs only if the dims of the `grid` have elements."""
    size = descriptor_bytes(element)
    if size is None:
        return f"there are no descriptors of elements of {element}"
    kept = [k for k, n in enumerate(sizes) if n != ONE]
    places: list[str | Expr] = []
    for k in kept:
        place = _place(subscripts[k], lanes)
        if place is None:
            return f"its subscript '{subscripts[k]}' is neither a dim of blocks nor the same for all lanes"
        if isinstance(place, str) and extents[place] != sizes[k]:
            return f"its dim of {sizes[k]} elements is read up to {extents[place]}"
        places.append(place)
    found = sorted(place for place in places if isinstance(place, str))
    if found != sorted(lanes):
        return f"it has the dims {', '.join(found)}, and the block {', '.join(sorted(lanes))}"
    shape = tuple(lanes[place] if isinstance(place, str) else 1 for place in places)
    reason = descriptor_reason(element, shape)
    if reason is not None:
        return reason
    filled = {extents[d] for d in grid}
    lacking = _lacking([sizes[k] for k in kept], size, filled)
    if lacking.constant not in (None, 0):
        return f"its rows are no multiple of {LEAST_BYTES} bytes, or it is empty"
    return BlockAccess(tuple(sizes[k] for k in kept), tuple(places), shape, lacking)


def _place(subscript: Expr, lanes: Mapping[str, int]) -> str | Expr | None:
    if subscript.symbol in lanes:
        return subscript.symbol
    return subscript if subscript.symbols.isdisjoint(lanes) else None


def _lacking(sizes: Sequence[Expr], bytes_of_element: int, filled: Set[Expr]) -> Expr:
    """Returns 0 for a tensor with elements and with strides of whole units, a positive number for others; the sizes
    `filled` are positive."""
    unit = max(1, LEAST_BYTES // bytes_of_element)
    found = ZERO
    for k in range(1, len(sizes)):
        found = found + product(sizes[k:]) % unit
    for n in (n for n in sizes if n not in filled):
        found = found + maximum(ONE - n, ZERO)
    return found
