"""`triton`: Igniter's schedule author for GPUs.

Nests on the same blocks are a launch (`launch_groups.py`). A program has about a thousand elements:

* copies and elementwise nests: lanes along the contiguous dim of the results, and along the operands' if it is another,
  so both access whole lines;
* reduced rows: a whole row if it is short enough, else block after block, and as many rows as fill a block;
* reduced columns: lanes along the contiguous dim, and block after block along the reduction;
* products of blocks: a block of sums for a program, and block after block along the depth;
* attentions: a block of rows for a program, and block after block along the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.dot_products import LEAST
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import KernelOp, NestOp, element_bytes
from igniter.dialects.loop.schedule import PRODUCTS, Launch, Loop, ScheduleAttr, Step
from igniter.dialects.sym.expr import ONE, Expr
from igniter.schedules.attention_blocks import attention_blocks
from igniter.schedules.author import Choice, ScheduleAuthor
from igniter.schedules.launch_groups import LaunchGroup, launch_groups, renamed
from igniter.schedules.product_blocks import GROUP, TYPICAL, ProductSize, blocks_for

ELEMENTS = 1024
"""The elements of a block: eight for each thread of four warps."""

LONGEST_ROW = 4096
"""The most elements of a dim within one program; longer rows are processed in blocks."""

DEPTH_BYTES = 128
"""The most bytes of each row in one step of a product of blocks: a line of memory."""

STAGES = 3
"""The iterations of a product in flight."""

SIDE = 32
"""The least lanes along the contiguous dim: a warp reads them together."""


@dataclass(frozen=True)
class TritonAuthor(ScheduleAuthor):
    """Launches of nests that work on the same blocks, of about a thousand elements each"""

    name = "triton"

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        groups = launch_groups(kernel) if all(isinstance(op, NestOp) for op in kernel.computations) else []
        # The features of a machine give the requested arithmetic of products.
        products = machine.features if machine.features in PRODUCTS else ""
        return [_choice(group, f"l{k}", products) for k, group in enumerate(groups)]


def _choice(group: LaunchGroup, label: str, products: str) -> Choice:
    shares: dict[str, int] = {}
    if group.attention is not None:
        blocks = attention_blocks(group, products)
        lanes, looped, shares, launch = blocks.lanes, blocks.looped, blocks.shares, blocks.launch
    elif group.product is not None:
        sizes = _product_sizes(group, products)
        lanes, looped = _product_blocks(group, sizes)
        launch = _product_launch(group, lanes, products, sizes)
    else:
        lanes, looped = _blocks(group)
        launch = Launch(_warps(prod(lanes.values())), 1)
    ways = _Ways(lanes, looped, shares)
    schedules = {nest.label: _schedule(nest, group, ways, label, launch) for nest in group.members}
    told = " x ".join(str(lanes[d]) for d in group.dims if lanes[d] > 1) or "1"
    return Choice(schedules, f"one launch, blocks of {told}" + (", in sequence" if looped else ""))


def _product_sizes(group: LaunchGroup, products: str) -> list[ProductSize]:
    """Returns a product at its likely sizes, in rising order."""
    assert group.product is not None
    nest, dot = group.product
    wide = (group.names[nest][dot.row], group.names[nest][dot.column])
    found: list[ProductSize] = []
    for likely in TYPICAL:
        sizes = {d: max(1, typical_of(nest).value(e, likely)) for d, e in group.dims.items()}
        others, summed = (prod(sizes[d] for d in dims if d not in wide) for dims in (group.grid, group.reduced))
        size = element_bytes(dot.element)
        found.append(ProductSize(sizes[wide[0]], sizes[wide[1]], summed, others, size, products))
    return found


def _product_blocks(group: LaunchGroup, sizes: Sequence[ProductSize]) -> tuple[dict[str, int], set[str]]:
    """Returns the lanes of each dim of a product of blocks, and the dims of programs' loops."""
    assert group.product is not None
    nest, dot = group.product
    names, size = group.names[nest], element_bytes(dot.element)
    lanes = dict.fromkeys(group.dims, 1)
    depth = names[dot.depth]
    lanes.update(zip((names[dot.row], names[dot.column]), blocks_for(sizes), strict=True))
    least = LEAST if size > 1 else 2 * LEAST
    lanes[depth] = max(least, _power(group.dims[depth], DEPTH_BYTES // size))
    whole = group.dims[depth].constant
    looped = {d for d in group.reduced if group.dims[d] != ONE and d != depth}
    if whole is None or whole > lanes[depth]:
        looped.add(depth)
    return lanes, looped


def _product_launch(group: LaunchGroup, lanes: dict[str, int], products: str, sizes: Sequence[ProductSize]) -> Launch:
    """Returns the launch of a product: the sums fill the registers of the warps, and loads run ahead for the next
    blocks."""
    assert group.product is not None
    nest, dot = group.product
    block = lanes[group.names[nest][dot.row]], lanes[group.names[nest][dot.column]]
    sums = prod(block)
    # Groups are of the rows if these are the dim before the last.
    first = [group.names[nest][name] for name in (dot.row, dot.column)]
    last = [d for d in group.grid if group.dims[d] != ONE][-2:]
    together = GROUP if first == last and sizes[-1].gains_by_groups(block) else 1
    if element_bytes(dot.element) == 4 and not products:
        # Without tensor cores a thread holds the whole depth of its rows and columns in registers.
        warps = 8 if sums >= 64 * 64 and lanes[group.names[nest][dot.depth]] >= 32 else 4
        return Launch(warps, STAGES, group=together)
    warps = 8 if sums > 64 * 128 else 4 if sums > 32 * 32 else 2 if sums > 16 * 16 else 1
    return Launch(warps, STAGES, products if element_bytes(dot.element) == 4 else "", together)


def _warps(size: int) -> int:
    """Returns the number of warps: more for larger blocks, so a thread has eight to sixteen elements."""
    return 8 if size > 2 * ELEMENTS else 4 if size > ELEMENTS // 8 else 1


@dataclass(frozen=True)
class _Ways:
    """The lanes, loops and shares of a launch, by dim."""

    lanes: dict[str, int]
    looped: set[str]
    shares: dict[str, int]


def _schedule(nest: NestOp, group: LaunchGroup, ways: _Ways, label: str, launch: Launch) -> ScheduleAttr:
    names, lanes, looped = group.names[nest], ways.lanes, ways.looped
    outer: list[Step] = []
    inner: list[Step] = []
    for axis in nest.axes:
        dim = names[axis.name]
        grid, count = dim in group.grid, lanes[dim]
        if dim in ways.shares:
            outer.append(Loop(axis.name, by=ways.shares[dim], grid=True, fuse=label))
        if grid or dim in looped:
            outer.append(Loop(axis.name, by=count, grid=grid, fuse=label if grid else ""))
        if count > 1:
            inner.append(Loop(axis.name, vector=count))
        elif not grid and dim not in looped:
            inner.append(Loop(axis.name))
    return ScheduleAttr([*outer, *inner, launch])


def _blocks(group: LaunchGroup) -> tuple[dict[str, int], set[str]]:
    """Returns the lanes of each dim, and the dims of programs' loops over blocks."""
    beside = _side_by_side(group)
    lanes = dict.fromkeys(group.dims, 1)
    looped: set[str] = set()
    left = ELEMENTS
    grid = [d for d in group.grid if group.dims[d] != ONE]
    first = [d for d in beside if d in grid]
    if group.reduced:
        rows = not first or (beside and beside[0] in group.reduced)
        if not rows:
            lanes[first[0]] = _power(group.dims[first[0]], 2 * SIDE)
            left //= lanes[first[0]]
        for dim in sorted(group.reduced, key=lambda d: d not in beside):
            whole = group.dims[dim].constant
            room = LONGEST_ROW if rows and left == ELEMENTS else max(1, left)
            if whole is not None and whole <= room:
                lanes[dim] = _power(group.dims[dim], room)
            else:
                lanes[dim] = max(1, left)
                looped.add(dim)
            left = max(1, left // lanes[dim])
    else:
        for k, dim in enumerate(first):
            most = left if len(first) == 1 else (SIDE if k < len(first) - 1 else left)
            lanes[dim] = _power(group.dims[dim], max(1, most))
            left = max(1, left // lanes[dim])
    for dim in [d for d in reversed(grid) if lanes[d] == 1]:
        if left > 1:
            lanes[dim] = _power(group.dims[dim], left)
            left = max(1, left // lanes[dim])
    return lanes, looped


def _power(extent: Expr, most: int) -> int:
    """Returns the number of elements, rounded up to a power of two, at most `most`; `most` for an unknown extent."""
    known = extent.constant
    if known is None:
        return most
    return min(most, 1 << max(0, known - 1).bit_length())


def _side_by_side(group: LaunchGroup) -> list[str]:
    """Returns the contiguous dims of tensors with several dims, each once: those of the highest rank first, and of
    these results before operands. Row values made inside a launch, such as maxima, decide nothing."""
    accesses = [
        renamed(clause.subscripts, group.names[nest]) for nest in group.members for clause in nest.yield_op.clauses
    ]
    accesses += [
        renamed(read.subscripts, group.names[nest])
        for nest in group.members
        for read in nest.reads
        if not group.makes(read.source)
    ]
    wide = {d for d in group.dims if group.dims[d] != ONE}
    counts = [len({s for e in at for s in e.symbols} & wide) for at in accesses]
    found: dict[str, None] = {}
    for _, at in sorted(zip(counts, accesses, strict=True), key=lambda each: -each[0]):
        if at and len({s for e in at for s in e.symbols} & wide) >= min(2, len(wide)):
            for dim in (d for d in at[-1].symbols if d in wide and at[-1].coefficient(d) == ONE):
                found.setdefault(dim)
    return list(found)
