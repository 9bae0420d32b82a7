"""Products of few rows by codes as sums by threads: the choice, and the blocks of a program.

A product of blocks has at least 16 rows. For one row, threads multiply without tensor cores, and a program reads whole
rows of codes. On an H100 (4096 x 4096, f16, one row) hand-written kernels take 0.0081 ms for codes of 4 bits, with
programs of 4 KiB in 2 warps, and 0.0083 for codes of 8 bits, with 4 KiB in one warp; those of 16 rows by tensor cores
take 0.0114 and 0.0117.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

from xdsl.dialects.builtin import i8

from igniter.analysis.structured.codes import coded_sum
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE
from igniter.schedules.launch_groups import LaunchGroup
from igniter.schedules.product_blocks import LAUNCH_SECONDS, UNPACKING, Figures, ProductSize
from igniter.schedules.split_sums import split_of

BY_THREADS = 0
"""The number of parts of a product that is sums by threads."""

MOST_ROWS = 4
"""The most rows that threads sum: each row reads all codes, from the cache."""

PROGRAM_BYTES = 4096
"""The codes of a program."""

LONGEST = 4096
"""The most depths of a block."""


def sum_seconds(size: ProductSize) -> float:
    """Returns the expected seconds of a product with codes, as sums by threads: each row unpacks all codes; infinity
    for too many rows."""
    if size.rows > MOST_ROWS:
        return inf
    numbers = size.columns * size.depth * size.count
    unpacked = (UNPACKING + 1) * size.rows * numbers / size.gpu.products[4]
    return LAUNCH_SECONDS + max(unpacked, numbers * size.code_bytes / size.gpu.memory)


def sums_by_threads(nest: NestOp, how: str, gpu: Figures) -> bool:
    """True if a product with codes has fewer rows than are worth a product of blocks, at its typical sizes."""
    found = coded_sum(nest)
    if found is None:
        return False
    sizes = {axis.name: typical_of(nest).known(axis.extent) for axis in nest.axes}
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(known) < len(sizes):
        return False
    rows = prod(known[name] for name in found.rows)
    split = split_of(nest, how, gpu)
    if rows <= 1 or split is None:
        return rows <= 1
    columns = prod(size for name, size in known.items() if name != found.axis) // rows
    size = ProductSize(rows, columns, known[found.axis], 1, 2, gpu=gpu, code_bytes=found.codes.bytes)
    return sum_seconds(size) < min(split.seconds.values())


@dataclass(frozen=True)
class SumBlocks:
    """The blocks of a launch with sums of codes."""

    lanes: dict[str, int]
    looped: set[str]
    warps: int


def blocks_of_codes(group: LaunchGroup) -> SumBlocks | None:
    """Returns the blocks of a launch whose first nest sums codes in groups (`split-codes`); `None` for others."""
    nest = group.members[0]
    sums = [axis for axis in nest.axes if axis.kind == "reduction"]
    columns = [axis for axis in nest.axes if axis.kind == "parallel"]
    if len(sums) != 2 or not columns or group.product is not None:
        return None
    (outer, groups), (inner, size) = ((axis.name, axis.extent.constant or 0) for axis in sums)
    parts = _parts(nest, outer, inner, size)
    if not parts:
        return None
    names, column = group.names[nest], columns[-1]
    lanes = dict.fromkeys(group.dims, 1)
    whole = max(1, LONGEST // (size * parts))
    lanes[names[inner]], lanes[names[outer]] = _power(size), min(whole, _power(groups))
    line = lanes[names[outer]] * lanes[names[inner]]
    lanes[names[column.name]] = max(1, min(PROGRAM_BYTES // line, _power(column.extent.constant or 1)))
    return SumBlocks(lanes, {names[outer]} if groups > whole else set(), 4 if parts > 1 else 2)


def _parts(nest: NestOp, outer: str, inner: str, size: int) -> int:
    """Returns the numbers of a byte, if groups of bytes along `outer` lie side by side, with the bytes of a group along
    `inner`; else 0."""
    steps: dict[bool, int] = {}
    for read in nest.reads:
        last = read.subscripts[-1] if read.subscripts else ONE
        if inner not in last.symbols:
            continue
        step, far = (last.coefficient(name) for name in (inner, outer))
        if step is None or far is None or step.constant is None or far != step * size:
            return 0
        is_byte = scalar_type(element_of(read.source.type)) == i8
        steps[is_byte] = max(steps.get(is_byte, 0), step.constant)
    return steps.get(False, 0) if steps.get(True) == 1 else 0


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()
