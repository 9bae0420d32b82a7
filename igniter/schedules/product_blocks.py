"""The block sizes of a product on a GPU: those with the least expected time at typical sizes.

A program multiplies a block of rows by one of columns. Large blocks load less for each product; small ones are more
programs, and every multiprocessor should have one. A multiprocessor runs its programs in sequence, each in the time of
its products or of its loads, whichever is longer. The figures are those of an A100 by its data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as pairs

from igniter.analysis.structured.dot_products import LEAST
from igniter.schedules.best_tile import best_tile, loss_over

MULTIPROCESSORS = 108
CACHE_BYTES_A_SECOND = 4e12
MEMORY_BYTES_A_SECOND = 1.5e12
"""The memory bandwidth reached by kernels."""
BYTES_A_SECOND = CACHE_BYTES_A_SECOND / MULTIPROCESSORS
"""The bytes a second that one multiprocessor loads from the second-level cache."""
LATENCY = 0.6e-6
"""Seconds from a load to its data."""
LINE, STAGES_UNDER_WAY, HELD = 128, 2, 4
"""Bytes of a row or column in one load, loads in flight, programs of a multiprocessor."""
LAUNCH_SECONDS = 2e-6
PRODUCTS_A_SECOND: Mapping[int | str, float] = {1: 312e12, 2: 156e12, 4: 9.7e12, "tf32": 78e12, "tf32x3": 26e12}
"""Multiply-adds a second of all multiprocessors, by the bytes of a factor, or by the arithmetic of f32."""
TYPICAL = (1, 16, 256)
"""The assumed values of a symbol without a typical size."""
GROUP = 8
"""The blocks of rows that a group of programs covers."""
SIDES = (16, 32, 64, 128)
NARROW_SIDE, WIDE_SIDE = 128, 64
"""The most rows and columns, for elements of at most sixteen bits, and for others: more sums exceed the registers."""


@dataclass(frozen=True)
class ProductSize:
    """A product at typical sizes: `count` products of rows by depth by columns, of elements of `bytes` bytes."""

    rows: int
    columns: int
    depth: int
    count: int
    bytes: int
    how: str = ""
    """The arithmetic of f32 products, if they use tensor cores."""

    def split(self, parts: int) -> ProductSize:
        """Returns the products of the depth's parts."""
        return replace(self, depth=-(-self.depth // parts), count=self.count * parts)

    def joining(self, parts: int) -> float:
        """Returns the seconds to store the sums of parts, and to add them in a launch of its own."""
        return LAUNCH_SECONDS + 2 * 4 * parts * self.rows * self.columns * self.count / CACHE_BYTES_A_SECOND

    def gains_by_groups(self, block: tuple[int, int]) -> bool:
        """True if the programs that run at once load fewer bytes with their blocks of rows in groups."""
        rows, columns = block
        down, across = -(-self.rows // rows), -(-self.columns // columns)
        if down * across <= MULTIPROCESSORS:
            return False
        in_sequence = -(-MULTIPROCESSORS // across) * rows + min(across, MULTIPROCESSORS) * columns
        height = min(GROUP, down)
        wide = min(across, -(-MULTIPROCESSORS // height))
        in_groups = height * -(-MULTIPROCESSORS // (height * across)) * rows + wide * columns
        return in_groups < 0.9 * in_sequence

    def seconds(self, block: tuple[int, int]) -> float:
        """Returns the expected seconds with blocks of the given rows and columns."""
        rows, columns = block
        programs = -(-self.rows // rows) * -(-self.columns // columns) * self.count
        # Each loaded row and column is used once for every column or row of the block.
        reuse = (1 + 32 / rows + 32 / columns) / 2
        peak = PRODUCTS_A_SECOND[self.how if self.bytes == 4 and self.how else self.bytes]
        multiplied = reuse * rows * columns / (peak / MULTIPROCESSORS)
        # Small blocks have too few loads in flight for a multiprocessor's full bandwidth.
        under_way = STAGES_UNDER_WAY * LINE * (rows + columns) * min(HELD, max(1, programs // MULTIPROCESSORS))
        busy = min(1.0, under_way / (LATENCY * BYTES_A_SECOND))
        loaded = (rows + columns) * self.bytes / (BYTES_A_SECOND * busy)
        return -(-programs // MULTIPROCESSORS) * self.depth * max(multiplied, loaded)


def best_seconds(size: ProductSize) -> float:
    """Returns the seconds of a product with its best blocks."""
    return size.seconds(blocks_for([size]))


def blocks_for(sizes: Sequence[ProductSize]) -> tuple[int, int]:
    """Returns the rows and columns of the blocks with the least loss over all `sizes`, assumed equally likely; among
    equals the largest."""
    most = NARROW_SIDE if sizes[0].bytes < 4 or sizes[0].how else WIDE_SIDE
    sides = [s for s in SIDES if s <= most]
    longest = (max(s.rows for s in sizes), max(s.columns for s in sizes))
    rows, columns = ([s for s in sides if s == LEAST or s < 2 * extent] for extent in longest)
    candidates = list(pairs(rows, columns))
    loss = loss_over([size.seconds for size in sizes], candidates)
    return best_tile(candidates, loss, prefer=lambda pair: (-pair[0] * pair[1], pair))
