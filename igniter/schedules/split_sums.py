"""The number of parts into which a GPU splits a sum with too few results for its programs: split-K, and two-step
reductions.

Each part is another program. It costs memory for its results, and a launch for their sum. The gain is estimated as for
the blocks of products (`product_blocks.py`), at known or typical sizes. A product whose rows are known only at run time
is split in the variants of its kernel for few rows (`launch_variants.py`): with many rows a split costs more than it
gains with few. Other sums need a known or typical number of results; the reduction is assumed to have a typical length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from igniter.analysis.structured.codes import coded_product
from igniter.analysis.structured.dot_products import DotProduct, dot_product, run_of
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp, element_bytes
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of
from igniter.schedules.best_tile import best_tile
from igniter.schedules.product_blocks import (
    A100,
    LAUNCH_SECONDS,
    MEMORY_BYTES_A_SECOND,
    MULTIPROCESSORS,
    Figures,
    ProductSize,
    best_seconds,
)

PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
"""The candidate numbers of parts."""

SHORTEST_DEPTH = 256
"""The shortest part of a product's depth."""

STEP = 64
"""The steps of the depth that an even part of a window is a multiple of: the blocks of halves."""

SHORTEST_SUM = 4096
"""The shortest part of any other sum, along the contiguous dim."""

SHORTEST_COLUMN = 256
"""The shortest part across it."""

COLUMNS = 64
"""The sums of a program, across the contiguous dim."""

PROGRAM_BYTES_A_SECOND = 5e9
"""The read rate of a program with a sum over blocks: it waits for each block of 4 KiB. Measured on an H200: 13e9 for
few programs, and less where they share a memory as fast as an A100's."""

LIKELY = 256
"""The assumed value of a symbol without a typical size, along a reduction."""

WORTHWHILE = 1.25
"""The least speedup of a split."""


@dataclass(frozen=True)
class Split:
    """The splits of a nest's reduction."""

    axis: str
    seconds: Mapping[int, float]
    """The expected seconds by the number of parts; 1: unsplit."""

    @property
    def parts(self) -> int:
        """The fewest parts with about the best time, if the gain is worth it; else 1."""
        parts = best_tile(self.seconds, self.seconds.__getitem__, prefer=int, near=1.05)
        return parts if self.seconds[1] > WORTHWHILE * self.seconds[parts] else 1


def parts_of(nest: NestOp, how: str = "", gpu: Figures = A100) -> tuple[str, int] | None:
    """Returns the axis along which a nest is worth splitting, and the number of parts; `None` if it is best unsplit.
    `how` is the arithmetic of f32 products, if they use tensor cores; `gpu` has the figures for products."""
    split = split_of(nest, how, gpu)
    return None if split is None or split.parts == 1 else (split.axis, split.parts)


def unit_of(nest: NestOp) -> int:
    """Returns the number of which the lengths of a product's parts are multiples: a scale's block of codes, or 1."""
    coded = coded_product(nest)
    return 1 if coded is None else coded.unit


def split_of(nest: NestOp, how: str = "", gpu: Figures = A100) -> Split | None:
    """Returns the splits of a nest's reduction at its typical sizes; `None` if it has none or they are unknown."""
    sums = [a.name for a in nest.axes if a.kind == "reduction"]
    # Products of all elements overflow in one order, and are 0 in another.
    if not sums or any(c.otherwise is not None or c.combiner == "mul" for c in nest.yield_op.clauses):
        return None
    sizes = {axis.name: _known(nest, axis.extent) for axis in nest.axes}
    outputs = [sizes[a.name] for a in nest.axes if a.kind == "parallel"]
    if any(size is None or size < 1 for size in outputs):
        return None
    product = dot_product(nest)
    if product is not None:
        return _product_split(nest, product, sizes, how, gpu)
    lengths = {name: _likely(nest, nest.axis(name).extent) for name in sums}
    longest = max(sums, key=lambda name: lengths[name])
    return _sum_split(nest, prod(size or 1 for size in outputs), longest, lengths)


def _product_split(
    nest: NestOp, product: DotProduct, sizes: dict[str, int | None], how: str, gpu: Figures
) -> Split | None:
    depth = sizes[product.depth]
    if depth is None or any(size is None for size in sizes.values()):
        return None
    wide = (product.row, product.column)
    known = {name: size or 1 for name, size in sizes.items()}
    summed = prod(known[a.name] for a in nest.axes if a.kind == "reduction")
    others = prod(known[a.name] for a in nest.axes if a.kind == "parallel" and a.name not in wide)
    size, run = element_bytes(product.element), run_of(nest, product.depth)
    coded = coded_product(nest)
    if coded is not None:
        # Their quotients are of bytes and scales, not of a window.
        wide, run = (coded.dot.row, coded.dot.column), 0
    rows, columns, code_bytes = known[wide[0]], known[wide[1]], 0.0 if coded is None else coded.codes.bytes
    how = how if size == 4 else ""
    whole = ProductSize(rows, columns, summed, others, size, how, gpu, code_bytes=code_bytes, run=run)
    seconds = {1: best_seconds(whole)}
    for parts in _even_parts(depth, run) or PARTS:
        if depth >= parts * SHORTEST_DEPTH:
            seconds[parts] = best_seconds(whole.split(parts)) + whole.joining(parts)
    return Split(product.depth, seconds)


def _even_parts(depth: int, run: int) -> list[int]:
    """Returns the numbers of parts of a window with its channels, in whole blocks of the depth; empty without a window,
    or if there are none."""
    found = sorted({sides * p for sides in (1, 3, 9) for p in (1, *PARTS)} - {1})
    return [p for p in found if run and depth % (p * STEP) == 0]


def _sum_split(nest: NestOp, outputs: int, axis: str, lengths: dict[str, int]) -> Split:
    sizes = {a.name: lengths.get(a.name) or _known(nest, a.extent) or 1 for a in nest.axes}
    total, across = 0, False
    for read in nest.reads:
        used = symbols_of((*read.subscripts, *read.guards))
        count = prod(size for name, size in sizes.items() if name in used)
        total += count * element_bytes(element_of(read.source.type))
        # If a tensor is indexed by the results too, and the reduced axis is not its last dim, programs run down
        # columns.
        last = read.subscripts[-1].symbols if read.subscripts else frozenset[str]()
        across |= axis in used and count > lengths[axis] and axis not in last
    # Short rows share a program.
    programs = outputs // COLUMNS if across else min(outputs, outputs * prod(lengths.values()) // SHORTEST_SUM)

    def took(parts: int) -> float:
        some = max(1, programs) * parts
        reached = min(MEMORY_BYTES_A_SECOND * min(1.0, some / MULTIPROCESSORS), some * rate)
        return total / reached + (0.0 if parts == 1 else 2 * LAUNCH_SECONDS)

    rate = PROGRAM_BYTES_A_SECOND if across else MEMORY_BYTES_A_SECOND
    shortest = SHORTEST_COLUMN if across else SHORTEST_SUM
    return Split(axis, {p: took(p) for p in (1, *PARTS) if p == 1 or lengths[axis] >= p * shortest})


def _known(nest: NestOp, extent: Expr) -> int | None:
    return extent.constant if extent.constant is not None else typical_of(nest).known(extent)


def _likely(nest: NestOp, extent: Expr) -> int:
    return max(1, typical_of(nest).value(extent, LIKELY))
