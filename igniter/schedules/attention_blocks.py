"""The block sizes of an attention on a GPU.

A program has a block of rows and all features, and loops over blocks of keys. With many rows, keys and values are
loaded less often; with few, there are more programs, and every multiprocessor should have one. The number of rows
minimises the loss for small, middling and large symbols, or at the given sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, prod

from igniter.analysis.structured.attention_scores import score_of
from igniter.analysis.structured.dot_products import LEAST, dot_product
from igniter.analysis.structured.key_limits import key_limits
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import element_bytes
from igniter.dialects.loop.schedule import Launch
from igniter.dialects.sym.expr import ONE, Expr
from igniter.schedules.attention_time import AttentionSize, AttentionTile
from igniter.schedules.best_tile import best_tile, loss_over
from igniter.schedules.launch_groups import AttentionDims, LaunchGroup, attention_dims
from igniter.schedules.product_blocks import (
    A100,
    H100,
    TYPICAL,
    Figures,
)

ROWS = (16, 32, 64, 128)
ROWLESS_ELEMENTS = 4096
"""The elements of keys in one block of a decoding step."""
SHARE, LEAST_SHARE = 512, 256
"""The keys of a program if their number is unknown, and the fewest."""
PROGRAMS = 1.5
"""The programs of a multiprocessor that fill the memory's bandwidth, with blocks of keys in flight."""
ROWLESS_PROGRAMS = 8
"""The programs of a multiprocessor if each has a single row: each waits for its blocks of keys in sequence."""
STAGES = 3
"""The blocks of keys in flight, of 16-bit floats and heads of at most 128 features."""
MORE_STAGES = 4
"""The blocks of keys in flight with 16 rows and heads of at most 64 features: with 3, ptxas spills for sm_90."""
FEW_STAGES = 2
"""The blocks of keys in flight otherwise: they are larger."""
SIDE_BY_SIDE = 32
"""The heads whose programs of equal length run together under a causal mask: their keys stay in the cache."""


@dataclass(frozen=True)
class AttentionBlocks:
    """The blocks, loops and shares of an attention's launch."""

    lanes: dict[str, int]
    """The lanes of each dim."""
    looped: set[str]
    """The dims of programs' loops over blocks."""
    shares: dict[str, int]
    """The elements of each program, for dims that several programs share."""
    launch: Launch

    def __hash__(self) -> int:
        return hash((*self.lanes.items(), *self.shares.items(), self.launch))


def attention_blocks(group: LaunchGroup, products: str = "", gpu: Figures = A100) -> AttentionBlocks:
    """Returns the blocks of an attention on a GPU."""
    attention, dims = group.attention, attention_dims(group)
    assert attention is not None and dims is not None
    inner = dot_product(attention.scores)
    size = element_bytes(inner.element) if inner is not None and dims.rows else 4
    features = max(LEAST, _power(group.dims[dims.features]))
    depth = max(LEAST, _power(group.dims[dims.depth]))
    # Sums, scores and weights are in registers together; without tensor cores so is the whole depth.
    wide = max(features, depth)
    cores = products if inner is not None and dims.rows and size == 4 else ""
    if cores:
        most, keys = 64 if wide <= 64 else 32, 32
    elif size < 4:
        # Measured on sm_90: 64 rows are faster than 128 by 6% for heads of 64, as more programs run side by side.
        narrow = 64 if gpu is H100 else 128
        # Where warps hold the factors of products in registers too, 64 keys spill beside a mask and its loops.
        most, keys = narrow if wide <= 64 else 64 if wide <= 128 else 32, 64 if wide <= 128 and gpu.asynchronous else 32
    else:
        most, keys = LEAST, 32 if wide <= 128 else 16
    if not dims.rows:
        keys = max(LEAST, ROWLESS_ELEMENTS // wide)
    stages = STAGES if dims.rows and size < 4 and wide <= (128 if gpu.asynchronous else 64) else FEW_STAGES

    def tile(rows: int) -> AttentionTile:
        # Eight warps spilled 16 rows of heads of 160 features on sm_80 and sm_90; four have enough registers.
        many = rows > 64 or (wide > 128 and (rows > LEAST or size >= 4))
        return AttentionTile(rows, keys, 8 if many else 4, stages)

    rows = _rows(group, dims, most, AttentionSize(1, 1, 1, 1, 1, size, cores, gpu), tile) if dims.rows else 1
    lanes = dict.fromkeys(group.dims, 1)
    lanes.update({dims.keys: keys, dims.features: features, dims.depth: depth})
    if dims.rows:
        lanes[dims.rows] = rows
    count = group.dims[dims.keys].constant
    if count is not None and count <= keys:
        lanes[dims.keys] = max(LEAST, _power(group.dims[dims.keys]))
        looped = set[str]()
    else:
        looped = {dims.keys}
    shares = _shares(group, dims, rows, lanes[dims.keys], gpu) if looped else {}
    if stages == STAGES and rows == LEAST and wide <= 64:
        stages = MORE_STAGES
    together = SIDE_BY_SIDE if looped and _rows_differ(group, dims) else 1
    return AttentionBlocks(lanes, looped, shares, Launch(tile(rows).warps, stages, cores, together))


def _rows_differ(group: LaunchGroup, dims: AttentionDims) -> bool:
    """True if later rows see more keys, and rows are the last of several dims of the grid."""
    attention = group.attention
    assert attention is not None
    grid = [d for d in group.grid if group.dims[d] != ONE]
    if len(grid) < 2 or grid[-1] != dims.rows:
        return False
    found = key_limits(score_of(attention), attention, group.names, dims.rows, dims.keys)
    return any(limit.upper and limit.slope > 0 for limit in found.limits)


def attention_seconds(
    group: LaunchGroup, products: str = "", gpu: Figures = A100
) -> Callable[[AttentionBlocks], float]:
    """Returns the expected seconds of an attention with given blocks, at its typical sizes."""
    attention, dims = group.attention, attention_dims(group)
    assert attention is not None and dims is not None
    inner = dot_product(attention.scores)
    size = element_bytes(inner.element) if inner is not None and dims.rows else 4
    cores = products if inner is not None and dims.rows and size == 4 else ""
    found = _sized(group, dims, SHARE, AttentionSize(1, 1, 1, 1, 1, size, cores, gpu, _rows_differ(group, dims)))

    def seconds(blocks: AttentionBlocks) -> float:
        rows = blocks.lanes[dims.rows] if dims.rows else 1
        parts = -(-found.keys // min(found.keys, blocks.shares.get(dims.keys, found.keys)))
        return found.seconds(
            AttentionTile(rows, blocks.lanes[dims.keys], blocks.launch.warps, blocks.launch.stages), parts
        )

    return seconds


def _sized(group: LaunchGroup, dims: AttentionDims, likely: int, whole: AttentionSize) -> AttentionSize:
    """Returns an attention of `whole`'s type and GPU at its typical sizes; symbols without one are `likely`."""
    assert group.attention is not None
    known = typical_of(group.attention.values)
    sizes = {d: max(1, known.value(e, likely)) for d, e in group.dims.items()}
    count = prod(sizes[d] for d in group.grid if d != dims.rows)
    rows = sizes[dims.rows] if dims.rows else 1
    return replace(
        whole,
        count=count,
        rows=rows,
        keys=sizes[dims.keys],
        depth=sizes[dims.depth],
        features=sizes[dims.features],
    )


def _shares(group: LaunchGroup, dims: AttentionDims, rows: int, keys: int, gpu: Figures) -> dict[str, int]:
    """Returns the keys of a program if one block has all rows, as in a step of decoding: otherwise there are too few
    programs."""
    assert group.attention is not None
    own = group.dims[dims.rows].constant if dims.rows else 1
    if own is None or own > rows:
        return {}
    typical = typical_of(group.attention.values)
    extent = group.dims[dims.keys]
    count = extent.constant if extent.constant is not None else typical.known(extent)
    if count is None:
        return {dims.keys: max(keys, SHARE)}
    programs = prod(max(1, typical.value(group.dims[d], 1)) for d in group.grid if d != dims.rows)
    wanted = (PROGRAMS if dims.rows else ROWLESS_PROGRAMS) * gpu.multiprocessors
    parts = min(ceil(wanted / programs), count // LEAST_SHARE)
    return {dims.keys: max(keys, 1 << (-(-count // parts) - 1).bit_length())} if parts > 1 else {}


def _rows(
    group: LaunchGroup, dims: AttentionDims, most: int, whole: AttentionSize, tile: Callable[[int], AttentionTile]
) -> int:
    """Returns the rows of a block."""
    own = group.dims[dims.rows].constant
    candidates = [r for r in ROWS if r <= most and (own is None or r == LEAST or r < 2 * own)]

    def case(likely: int) -> Callable[[int], float]:
        size = _sized(group, dims, likely, whole)
        return lambda rows: size.seconds(tile(rows))

    return best_tile(candidates, loss_over([case(likely) for likely in TYPICAL], candidates), prefer=lambda rows: -rows)


def _power(extent: Expr) -> int:
    """Returns the lanes that cover a whole extent."""
    known = extent.constant
    assert known is not None
    return 1 << max(0, known - 1).bit_length()
