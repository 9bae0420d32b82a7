"""Converts the directives of schedules to the hints of loops and buffers, for `lower-to-loops`.

One of the following passes consumes each hint (`igniter/dialects/loop/hints.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from igniter.dialects.loop import ComputeOp
from igniter.dialects.loop.schedule import Loop
from igniter.errors import IgniterError
from igniter.schedules.scheduling import Below, put_below


def hints_inside(op: ComputeOp, axis: str) -> DictionaryAttr | None:
    """Returns the hints of a procedure's schedule for a loop in its body."""
    loops = () if op.schedule is None else op.schedule.loops
    return next((words_as_hints(loop) for loop in loops if loop.axis == axis), None)


def words_as_hints(loop: Loop) -> DictionaryAttr | None:
    """Returns the directives of a loop as hints; None if it has none."""
    found: dict[str, Attribute] = {}
    if loop.fuse:
        found["fuse"] = StringAttr(loop.fuse)
    if loop.slide:
        found["slide"] = StringAttr(loop.slide)
    if loop.threads is not None:
        found["threads"] = IntegerAttr(loop.threads, i64) if loop.threads else UnitAttr()
    if loop.vector:
        found["vector"] = IntegerAttr(loop.vector, i64)
    if loop.accumulators:
        found["accumulators"] = IntegerAttr(loop.accumulators, i64)
    if loop.prefetch:
        found["prefetch"] = UnitAttr()
    if loop.unroll is not None:
        found["unroll"] = IntegerAttr(loop.unroll, i64) if loop.unroll else UnitAttr()
    return DictionaryAttr(found) if found else None


def store_as_hints(op: ComputeOp) -> DictionaryAttr | None:
    """Returns the `store` directive of a nest's schedule as hints on the buffers of its results; None if it has
    none."""
    said = None if op.schedule is None else op.schedule.store
    if said is None:
        return None
    store, depth = said
    found: dict[str, Attribute] = {"depth": IntegerAttr(depth, i64)}
    if store.memory:
        found["memory"] = StringAttr(store.memory)
    return DictionaryAttr(found)


def inside_tiles(loops: Sequence[Loop]) -> dict[int, int]:
    """Maps each loop over blocks with a tail to the loop inside the block."""
    return {
        k: next(m for m, other in enumerate(loops) if m > k and other.axis == loop.axis)
        for k, loop in enumerate(loops)
        if loop.tail
    }


def tile_hints(op: ComputeOp, loops: Sequence[Loop], inner: Mapping[int, int]) -> dict[int, DictionaryAttr]:
    """Returns the hints of loops over blocks with a tail: the split, and the kind of loops to sink the inner loop
    below."""
    reductions = {a.name for a in op.axes if a.kind == "reduction"}
    below: dict[int, Below] = {}
    for k, q in inner.items():
        between = [m for m in range(k + 1, q) if m not in inner.values()]
        sums = [m for m in range(k + 1, len(loops)) if loops[m].axis in reductions and not loops[m].vector]
        last = bool(between) and between[-1] in sums and max(sums) < q
        below[k] = "reductions" if last else "loops" if between else ""
    _verify_places(op, loops, inner, below, reductions)
    found: dict[int, DictionaryAttr] = {}
    for k, q in inner.items():
        outer, words = words_as_hints(loops[k]), words_as_hints(loops[q])
        inside: dict[str, Attribute] = dict(words.data) if words is not None else {}
        if below[k]:
            inside["sink"] = UnitAttr() if below[k] == "reductions" else StringAttr("loops")
        split: dict[str, Attribute] = {
            "tile": IntegerAttr(loops[k].by, i64),
            "tail": StringAttr(loops[k].tail),
            "inner": DictionaryAttr(inside),
        }
        found[k] = DictionaryAttr({**(outer.data if outer is not None else {}), **split})
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
            "'tail', one is right inside its blocks, or below the last reduction, or below all loops that are neither "
            "vectors nor unrolled, the vector innermost; without 'tail' any order goes"
        )
