"""Primitives: changes of the steps of one nest's schedule.

    steps = plain(nest)                          [i, j, k]
    steps = split(steps, "j", 48)                [i, j by 48, j, k]
    steps = with_words(steps, "j", vector=16)    [i, j by 48, j vector 16, k]

Authors, the tuner and people (`igniter.Schedule`) change schedules with them. The name of a loop is its axis, or its
axis and its blocks: `"j"`, `"j by 48"`. A primitive returns new steps; it raises `IgniterError` for an unknown loop.
The verifier of nests checks the result (`igniter/dialects/loop/schedule.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

from igniter.dialects.loop import ComputeOp
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr, Step, Store
from igniter.dialects.loop.storage import Memory
from igniter.dialects.loop.words import TABLE, Below, Tail, known, near
from igniter.errors import IgniterError, did_you_mean


def plain(op: ComputeOp) -> ScheduleAttr:
    """Returns the plain schedule of a nest: one loop an axis, parallel ones first."""
    return ScheduleAttr([Loop(a.name) for a in sorted(op.axes, key=lambda a: a.kind == "reduction")])


def name_of(loop: Loop) -> str:
    """Returns the name of a loop: its axis, or its axis and its blocks."""
    return loop.axis if loop.by == 1 else f"{loop.axis} by {loop.by}"


def loops_of(steps: Iterable[Step]) -> list[Loop]:
    """Returns the loops among the steps."""
    return [step for step in steps if isinstance(step, Loop)]


def find(steps: Sequence[Step], name: str) -> tuple[int, Loop]:
    """Returns the place of a loop, and the loop; raises `IgniterError` with the loops that there are."""
    for place, step in enumerate(steps):
        if isinstance(step, Loop) and name_of(step) == name:
            return place, step
    known = [name_of(loop) for loop in loops_of(steps)]
    raise IgniterError(f"has no loop '{name}'; it has: {', '.join(known)}{did_you_mean(name, known)}")


def split(steps: Sequence[Step], name: str, by: int, tail: Tail = "") -> list[Step]:
    """Returns the steps with a loop split into one over blocks of `by` iterations and, right inside, one over the
    iterations of a block. Words such as `threads` and `fuse` stay with the outer loop."""
    place, old = find(steps, name)
    moved = {row.attribute: getattr(old, row.attribute) for row in TABLE.values() if row.outer}
    outer = Loop(old.axis, by=by, tail=tail, **moved)
    inner = replace(old, **{row.attribute: getattr(Loop(""), row.attribute) for row in TABLE.values() if row.outer})
    return [*steps[:place], outer, inner, *steps[place + 1 :]]


def reorder(steps: Sequence[Step], *names: str) -> list[Step]:
    """Returns the steps with the named loops in this order, at their places together."""
    found = [find(steps, name) for name in names]
    if len({place for place, _ in found}) < len(names):
        raise IgniterError(f"has loops named twice: {', '.join(names)}")
    result = list(steps)
    for place, (_, loop) in zip(sorted(place for place, _ in found), found, strict=True):
        result[place] = loop
    return result


def with_words(steps: Sequence[Step], name: str, **words: Any) -> list[Step]:
    """Returns the steps with words of a loop set, by their fields in `Words`; raises `IgniterError` for a word that
    there is not."""
    place, loop = find(steps, name)
    for word in words:
        fields = [row.attribute for row in TABLE.values()]
        if word not in fields:
            raise IgniterError(f"cannot have '{word}' on loop '{name}'{near(word, fields) or known(fields)}")
    return [*steps[:place], replace(loop, **words), *steps[place + 1 :]]


def tensorize(steps: Sequence[Step], product: Product) -> list[Step]:
    """Returns the steps with a micro-kernel in place of the loops over the remaining iterations of its axes; the loops
    over its rows and columns after it copy the tile."""
    rest = [s for s in steps if not (isinstance(s, Loop) and s.axis == product.depth and s.by == 1)]
    tile = (product.rows, product.columns)
    copies = (k for k, s in enumerate(rest) if isinstance(s, Loop) and s.axis in tile and s.by == 1)
    place = next(copies, len(rest))
    return [*rest[:place], product, *rest[place:]]


def store_at(steps: Sequence[Step], name: str, memory: Memory = "") -> list[Step]:
    """Returns the steps with the result stored inside the named loop, or for the whole kernel if the name is empty."""
    place = find(steps, name)[0] + 1 if name else 0
    rest = [(k, s) for k, s in enumerate(steps) if not isinstance(s, Store)]
    return [*(s for k, s in rest if k < place), Store(memory), *(s for k, s in rest if k >= place)]


def on_threads(steps: Sequence[Step], parallel: Set[str], grain: int = 0) -> list[Step]:
    """Returns the steps with the outermost loop over one of the `parallel` axes on the thread pool, unless its
    iterations are lanes."""
    place = next((k for k, s in enumerate(steps) if isinstance(s, Loop) and s.axis in parallel), None)
    return [
        replace(s, threads=grain) if k == place and isinstance(s, Loop) and not s.vector else s
        for k, s in enumerate(steps)
    ]


def put_below(steps: Sequence[Loop], sunk: Sequence[tuple[Loop, int, Below]], reductions: Set[str]) -> list[Loop]:
    """Sinks the loops inside tiles, each given with its least position, below the loops that must be outside them;
    among loops at one position the vector comes last."""
    places: list[tuple[int, Loop]] = []
    for inner, least, below in sunk:
        place = least
        for k, step in enumerate(steps[least:], least):
            bare = not step.vector and (below == "reductions" or step.unroll is None)
            if bare and (below == "loops" or (below == "reductions" and step.axis in reductions)):
                place = k + 1
        places.append((place, inner))
    found = list(steps)
    for place, inner in sorted(places, key=lambda x: (x[0], x[1].vector > 0))[::-1]:
        found.insert(place, inner)
    return found
