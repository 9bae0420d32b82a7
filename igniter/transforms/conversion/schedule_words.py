"""The words of schedules that `lower-to-loops` leaves on its loops and buffers, for later passes to consume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from igniter.dialects.loop import ComputeOp
from igniter.dialects.loop.schedule import Loop
from igniter.dialects.loop.storage import Storage
from igniter.dialects.loop.words import NO_WORDS, Below, LoopWords, carried
from igniter.errors import IgniterError
from igniter.schedules.primitives import put_below


def words_inside(op: ComputeOp, axis: str) -> LoopWords:
    """Returns the words of a procedure's schedule for a loop in its body."""
    loops = () if op.schedule is None else op.schedule.loops
    return next((carried(loop) for loop in loops if loop.axis == axis), NO_WORDS)


def storage_of(op: ComputeOp) -> Storage | None:
    """Returns the place of a nest's results, as its schedule gives it by `store`; None if it does not."""
    if op.schedule is None or op.schedule.store is None:
        return None
    store, depth = op.schedule.store
    return Storage(depth, store.memory)


def inside_tiles(loops: Sequence[Loop]) -> dict[int, int]:
    """Maps each loop over blocks with a tail to the loop inside the block."""
    return {
        k: next(m for m, other in enumerate(loops) if m > k and other.axis == loop.axis)
        for k, loop in enumerate(loops)
        if loop.tail
    }


def tile_words(op: ComputeOp, loops: Sequence[Loop], inner: Mapping[int, int]) -> dict[int, LoopWords]:
    """Returns the words of loops over blocks with a tail: the split, and the kind of loops to sink the inner loop
    below."""
    reductions = {a.name for a in op.axes if a.kind == "reduction"}
    below: dict[int, Below] = {}
    for k, q in inner.items():
        between = [m for m in range(k + 1, q) if m not in inner.values()]
        sums = [m for m in range(k + 1, len(loops)) if loops[m].axis in reductions and not loops[m].vector]
        last = bool(between) and between[-1] in sums and max(sums) < q
        below[k] = "reductions" if last else "loops" if between else ""
    _verify_places(op, loops, inner, below, reductions)
    found: dict[int, LoopWords] = {}
    for k, q in inner.items():
        inside = replace(carried(loops[q]), sink=below[k])
        split = {"by": loops[k].by, "tail": loops[k].tail, "inside": inside if inside != NO_WORDS else None}
        found[k] = replace(carried(loops[k]), **split)
    return found


def _verify_places(
    op: ComputeOp, loops: Sequence[Loop], inner: Mapping[int, int], below: Mapping[int, Below], reductions: Set[str]
) -> None:
    """Raises unless the loops inside tiles are where `sink-loops` moves them."""
    steps: list[Loop] = []
    sunk: list[tuple[Loop, int, Below]] = []
    for k, loop in enumerate(loops):
        if k in inner.values():
            continue
        steps.append(loop)
        if k in inner:
            if below[k]:
                sunk.append((loops[inner[k]], len(steps), below[k]))
            else:
                steps.append(loops[inner[k]])
    if put_below(steps, sunk, reductions) != list(loops):
        names = ", ".join(f"'{loops[k].axis}'" for k in inner)
        raise IgniterError(
            f"lower-to-loops: nest '{op.label}': the loops inside the blocks of {names} cannot be in this order. With "
            "'tail', such a loop must be directly inside its blocks, or below the last reduction, or below all loops "
            "that are neither vectors nor unrolled (the vector innermost); without 'tail', any order is allowed"
        )
