"""Into how many parts a GPU splits a sum whose results are too few programs: split-K, and reductions in two steps.

A part is a program more, and costs memory for its results, and a launch that adds them up. What is won is estimated as
for the blocks of products (`product_blocks.py`), at sizes that are known or given: a product whose rows only a run
knows is not split, as with many rows that would cost more than it wins with few. Of other sums the results have to be
known, and what is added up is taken to be as long as symbols typically are.
"""

from __future__ import annotations

from math import prod

from igniter.analysis.structured.dot_products import dot_product
from igniter.analysis.structured.product_blocks import (
    LAUNCH_SECONDS,
    MEMORY_BYTES_A_SECOND,
    MULTIPROCESSORS,
    ProductSize,
    best_seconds,
)
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp, element_bytes
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of

PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
"""What is tried."""

SHORTEST_DEPTH = 256
"""Of a part of a product."""

SHORTEST_SUM = 4096
"""Of a part of any other sum, along what lies side by side."""

SHORTEST_COLUMN = 256
"""And across it."""

COLUMNS = 64
"""Sums across what lies side by side that a program has."""

PROGRAM_BYTES_A_SECOND = 5e9
"""What a program reads that goes along what it sums block by block: it waits for each block of 4 KiB. Measured on an
H200: 13e9 where there are few, and less where they share a memory as fast as an A100's."""

LIKELY = 256
"""A symbol that nobody gave a size, along what is added up."""

WORTHWHILE = 1.25
"""How many times as long a sum has to take without parts."""


def parts_of(nest: NestOp, how: str = "") -> tuple[str, int] | None:
    """The axis along which a nest is worth splitting, and the parts; None where it is best as it is. `how` says how f32
    is multiplied, where that is not without tensor cores."""
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
        return _product_parts(nest, sizes, how)
    lengths = {name: _likely(nest, nest.axis(name).extent) for name in sums}
    longest = max(sums, key=lambda name: lengths[name])
    return _sum_parts(nest, prod(size or 1 for size in outputs), longest, lengths)


def _product_parts(nest: NestOp, sizes: dict[str, int | None], how: str) -> tuple[str, int] | None:
    product = dot_product(nest)
    assert product is not None
    depth = sizes[product.depth]
    if depth is None or any(size is None for size in sizes.values()):
        return None
    wide = (product.row, product.column)
    known = {name: size or 1 for name, size in sizes.items()}
    summed = prod(known[a.name] for a in nest.axes if a.kind == "reduction")
    others = prod(known[a.name] for a in nest.axes if a.kind == "parallel" and a.name not in wide)
    whole = ProductSize(known[wide[0]], known[wide[1]], summed, others, element_bytes(product.element), how)
    seconds = {1: best_seconds(whole)}
    for parts in PARTS:
        if depth >= parts * SHORTEST_DEPTH:
            seconds[parts] = best_seconds(whole.split(parts)) + whole.joining(parts)
    return _best(product.depth, seconds)


def _sum_parts(nest: NestOp, outputs: int, axis: str, lengths: dict[str, int]) -> tuple[str, int] | None:
    sizes = {a.name: lengths.get(a.name) or _known(nest, a.extent) or 1 for a in nest.axes}
    total, across = 0, False
    for read in nest.reads:
        used = symbols_of((*read.subscripts, *read.guards))
        count = prod(size for name, size in sizes.items() if name in used)
        total += count * element_bytes(element_of(read.source.type))
        # Where what is summed is not the last of a tensor that has the results too, programs go down columns.
        last = read.subscripts[-1].symbols if read.subscripts else frozenset[str]()
        across |= axis in used and count > lengths[axis] and axis not in last
    # Rows that are short share a program.
    programs = outputs // COLUMNS if across else min(outputs, outputs * prod(lengths.values()) // SHORTEST_SUM)

    def took(parts: int) -> float:
        some = max(1, programs) * parts
        reached = min(MEMORY_BYTES_A_SECOND * min(1.0, some / MULTIPROCESSORS), some * rate)
        return total / reached + (0.0 if parts == 1 else 2 * LAUNCH_SECONDS)

    rate = PROGRAM_BYTES_A_SECOND if across else MEMORY_BYTES_A_SECOND
    shortest = SHORTEST_COLUMN if across else SHORTEST_SUM
    seconds = {p: took(p) for p in (1, *PARTS) if p == 1 or lengths[axis] >= p * shortest}
    return _best(axis, seconds)


def _best(axis: str, seconds: dict[int, float]) -> tuple[str, int] | None:
    """The least parts of those that take about as long as the best, where that is worth it."""
    least = min(seconds.values())
    parts = min(p for p, s in seconds.items() if s <= 1.05 * least)
    return (axis, parts) if parts > 1 and seconds[1] > WORTHWHILE * seconds[parts] else None


def _known(nest: NestOp, extent: Expr) -> int | None:
    return extent.constant if extent.constant is not None else typical_of(nest).known(extent)


def _likely(nest: NestOp, extent: Expr) -> int:
    return max(1, typical_of(nest).value(extent, LIKELY))
