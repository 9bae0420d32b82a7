"""How large the blocks of a product on a GPU are: the ones that are expected to take least time at typical sizes.

A program multiplies a block of rows by one of columns. Large blocks load less for each product; small ones are more
programs, of which every multiprocessor should have one. A multiprocessor does its programs one after the other, each in
the time of its products or of its loads, whichever is longer; figures are those of an A100 by its data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as pairs
from math import log

from igniter.analysis.structured.dot_products import LEAST

MULTIPROCESSORS = 108
CACHE_BYTES_A_SECOND = 4e12
MEMORY_BYTES_A_SECOND = 1.5e12
"""That kernels reach."""
BYTES_A_SECOND = CACHE_BYTES_A_SECOND / MULTIPROCESSORS
"""That one multiprocessor loads of the second-level cache."""
LATENCY = 0.6e-6
"""Seconds from a load to its data."""
LINE, STAGES_UNDER_WAY, HELD = 128, 2, 4
"""Bytes of a row or column that are loaded at a time, how often they are under way, programs of a multiprocessor."""
LAUNCH_SECONDS = 2e-6
PRODUCTS_A_SECOND: Mapping[int | str, float] = {1: 312e12, 2: 156e12, 4: 9.7e12, "tf32": 78e12, "tf32x3": 26e12}
"""Multiply-adds of all of them, by the bytes of what is multiplied, or by how f32 is."""
TYPICAL = (1, 16, 256)
"""What a symbol that nobody gave a size may be."""
SIDES = (16, 32, 64, 128)
NARROW_SIDE, WIDE_SIDE = 128, 64
"""The most rows and columns, of elements of sixteen bits or fewer, and of others: more sums than registers hold."""


@dataclass(frozen=True)
class ProductSize:
    """A product at typical sizes: `count` products of rows by depth by columns, of elements of so many bytes."""

    rows: int
    columns: int
    depth: int
    count: int
    bytes: int
    how: str = ""
    """How f32 is multiplied, where that is not without tensor cores."""

    def split(self, parts: int) -> ProductSize:
        """The product of a part of the depth, as often as there are parts."""
        return replace(self, depth=-(-self.depth // parts), count=self.count * parts)

    def joining(self, parts: int) -> float:
        """The seconds that it takes to store the sums of parts, and to add them up in a launch of its own."""
        return LAUNCH_SECONDS + 2 * 4 * parts * self.rows * self.columns * self.count / CACHE_BYTES_A_SECOND

    def seconds(self, rows: int, columns: int) -> float:
        """What blocks of so many rows and columns are expected to take."""
        programs = -(-self.rows // rows) * -(-self.columns // columns) * self.count
        # Each row and column that is at hand serves as many products as the block has of the other.
        reuse = (1 + 32 / rows + 32 / columns) / 2
        peak = PRODUCTS_A_SECOND[self.how if self.bytes == 4 and self.how else self.bytes]
        multiplied = reuse * rows * columns / (peak / MULTIPROCESSORS)
        # Loads of small blocks are too few under way for a multiprocessor to get all that it could.
        under_way = STAGES_UNDER_WAY * LINE * (rows + columns) * min(HELD, max(1, programs // MULTIPROCESSORS))
        busy = min(1.0, under_way / (LATENCY * BYTES_A_SECOND))
        loaded = (rows + columns) * self.bytes / (BYTES_A_SECOND * busy)
        return -(-programs // MULTIPROCESSORS) * self.depth * max(multiplied, loaded)


def best_seconds(size: ProductSize) -> float:
    """What a product takes with the blocks that are best for it."""
    rows, columns = blocks_for([size])
    return size.seconds(rows, columns)


def blocks_for(sizes: Sequence[ProductSize]) -> tuple[int, int]:
    """The rows and columns of the blocks that lose least over all `sizes`, which are equally likely; of those that lose
    the same, the largest."""
    most = NARROW_SIDE if sizes[0].bytes < 4 or sizes[0].how else WIDE_SIDE
    sides = [s for s in SIDES if s <= most]
    longest = (max(s.rows for s in sizes), max(s.columns for s in sizes))
    rows, columns = ([s for s in sides if s == LEAST or s < 2 * extent] for extent in longest)
    candidates = list(pairs(rows, columns))
    losses = dict.fromkeys(candidates, 0.0)
    for size in sizes:
        best = min(size.seconds(*pair) for pair in candidates)
        for pair in candidates:
            losses[pair] += log(size.seconds(*pair) / best)
    return min(candidates, key=lambda pair: (round(losses[pair], 9), -pair[0] * pair[1], pair))
