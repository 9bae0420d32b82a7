"""Sizes of several dims at once, `--sweep batch=1,8 --sweep seq=64,128`, and tables of the results at each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from igniter.errors import IgniterError

MOST_POINTS = 10_000
"""The limit of a sweep: each point takes seconds, so more are probably a typo."""


def parse_sweep(texts: Sequence[str]) -> dict[str, list[int]]:
    """Parses `["batch=1,8 seq=64,128"]`, or the same in several texts, to the sizes of each dim; raises `IgniterError`
    for an invalid size, and for a repeated dim or size."""
    swept: dict[str, list[int]] = {}
    for part in (part for text in texts for part in text.split()):
        name, equals, values = part.partition("=")
        sizes = values.split(",")
        if not equals or not name or not all(size.isdecimal() for size in sizes):
            raise IgniterError(f"'{part}' is no dim with its sizes: write dim=number,number,... as in seq=64,128,512")
        if name in swept:
            raise IgniterError(f"--sweep gives '{name}' sizes twice: write all of them behind one '{name}='")
        swept[name] = [int(size) for size in sizes]
        twice = [size for size in swept[name] if swept[name].count(size) > 1]
        if twice:
            raise IgniterError(f"'{part}' has {twice[0]} twice")
    if texts and not swept:
        raise IgniterError("--sweep names no dim: write dim=number,number,... as in seq=64,128,512")
    return swept


def sweep_points(swept: Mapping[str, Sequence[int]], fixed: Sequence[Mapping[str, int]] = ()) -> list[dict[str, int]]:
    """Returns the product of all sizes, the last dim changing fastest, at each choice of `fixed` sizes of other
    dims."""
    both = sorted({name for case in fixed for name in case} & swept.keys())
    if both:
        raise IgniterError(f"--shape and --sweep both give sizes of {', '.join(both)}: name a dim in one of them")
    found = [
        {**case, **dict(zip(swept, sizes, strict=True))}
        for case in fixed or [{}]
        for sizes in itertools.product(*swept.values())
    ]
    if len(found) > MOST_POINTS:
        raise IgniterError(f"--sweep asks for {len(found):,} choices of sizes, and {MOST_POINTS:,} are the most")
    return found
