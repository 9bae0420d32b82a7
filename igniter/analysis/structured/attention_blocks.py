"""How large the blocks of an attention on a GPU are.

A program has a block of rows, all features, and goes along the keys block after block. Many rows load keys and values
less often; few are more programs, of which every multiprocessor should have one. The number of rows is the one that
loses least where symbols are small, middling and large, or at the sizes that are given.
"""

from __future__ import annotations

from math import log, prod

from igniter.analysis.structured.dot_products import LEAST, dot_product
from igniter.analysis.structured.launch_groups import AttentionDims, LaunchGroup, attention_dims
from igniter.analysis.structured.product_blocks import BYTES_A_SECOND, MULTIPROCESSORS, PRODUCTS_A_SECOND, TYPICAL
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import element_bytes
from igniter.dialects.loop.schedule import Launch
from igniter.dialects.sym.expr import Expr

ROWS = (16, 32, 64, 128)
ROWLESS_ELEMENTS = 4096
"""Of the keys that a step of decoding has at hand."""
STAGES = 2
"""The blocks of keys that are under way."""


def attention_blocks(group: LaunchGroup) -> tuple[dict[str, int], set[str], Launch]:
    """The lanes of each dim, those that programs go along block by block, and how a program runs."""
    attention, dims = group.attention, attention_dims(group)
    assert attention is not None and dims is not None
    inner = dot_product(attention.scores)
    size = element_bytes(inner.element) if inner is not None and dims.rows else 4
    features = max(LEAST, _power(group.dims[dims.features]))
    depth = max(LEAST, _power(group.dims[dims.depth]))
    # Sums, scores and weights are in registers at a time; without tensor cores all of the depth is, too.
    wide = max(features, depth)
    if size < 4:
        most, keys = 128 if wide <= 64 else 64 if wide <= 128 else 32, 64 if wide <= 64 else 32
    else:
        most, keys = LEAST, 32 if wide <= 128 else 16
    if not dims.rows:
        keys = max(LEAST, ROWLESS_ELEMENTS // wide)
    rows = _rows(group, dims, most, size) if dims.rows else 1
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
    return lanes, looped, Launch(8 if rows > 64 or wide > 128 else 4, STAGES)


def _rows(group: LaunchGroup, dims: AttentionDims, most: int, size: int) -> int:
    """The rows of a block."""
    attention = group.attention
    assert attention is not None
    candidates = [r for r in ROWS if r <= most]
    losses = dict.fromkeys(candidates, 0.0)
    for likely in TYPICAL:
        sizes = {d: max(1, typical_of(attention.values).value(e, likely)) for d, e in group.dims.items()}
        others = prod(sizes[d] for d in group.grid if d != dims.rows)
        work = sizes[dims.features] + sizes[dims.depth]
        seconds: dict[int, float] = {}
        for rows in candidates:
            programs = -(-sizes[dims.rows] // rows) * others
            # Half of the products of a block that is this low are lost.
            multiplied = (rows + 16) * work / (PRODUCTS_A_SECOND[size] / MULTIPROCESSORS)
            loaded = work * size / BYTES_A_SECOND
            seconds[rows] = -(-programs // MULTIPROCESSORS) * max(multiplied, loaded)
        best = min(seconds.values())
        for rows in candidates:
            losses[rows] += log(seconds[rows] / best)
    return min(candidates, key=lambda rows: (round(losses[rows], 9), -rows))


def _power(extent: Expr) -> int:
    """The lanes that have all of an extent."""
    known = extent.constant
    assert known is not None
    return 1 << max(0, known - 1).bit_length()
