"""`triton`: Igniter's schedule author for GPUs.

Nests on the same blocks are a launch (`launch_groups.py`). A program has about a thousand elements:

* copies and elementwise nests: lanes along the contiguous dim of the results, and along the operands' if it is another,
  so both access whole lines;
* reduced rows: a whole row if it is short enough, else block after block, and as many rows as fill a block;
* reduced columns: lanes along the contiguous dim, and block after block along the reduction;
* products of blocks: a block of sums for a program, and block after block along the depth;
* attentions: a block of rows for a program, and block after block along the keys;
* procedures: by their algorithm (`algorithm_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.codes import coded_product, coded_sum
from igniter.analysis.structured.dot_products import LEAST, dot_product, run_of
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import KernelOp, NestOp, ProcedureOp, element_bytes
from igniter.dialects.loop.schedule import PRODUCTS, Launch, Loop, ScheduleAttr, Step
from igniter.dialects.sym.expr import ONE, Expr, product
from igniter.schedules.algorithm_blocks import algorithm_choice
from igniter.schedules.attention_blocks import AttentionBlocks, attention_blocks, attention_seconds
from igniter.schedules.author import Choice, ScheduleAuthor
from igniter.schedules.code_sums import BY_THREADS, blocks_of_codes, sum_seconds
from igniter.schedules.descriptor_use import has_descriptors
from igniter.schedules.launch_groups import LaunchGroup, attention_dims, launch_groups, renamed
from igniter.schedules.launch_variants import Decider, Decision, launch_variants
from igniter.schedules.measured_launches import MeasuredLaunch, measured_launch
from igniter.schedules.product_blocks import (
    FIGURES,
    GROUP,
    TYPICAL,
    Blocks,
    Figures,
    ProductSize,
    blocks_for,
    figures_of,
)
from igniter.schedules.size_variants import USUAL_VARIANTS, SizeVariants
from igniter.schedules.split_sums import split_of
from igniter.schedules.window_blocks import fullest, window_dims

ELEMENTS = 1024
"""The elements of a block: eight for each thread of four warps."""

LONGEST_ROW = 4096
"""The most elements of a dim within one program; longer rows are processed in blocks."""

OP_COST = {"loop.read": 2, "loop.yield": 2, "math.erf": 14, "math.exp": 8, "math.tanh": 24, "arith.divf": 10}
"""The costs of ops after a product with more than one instruction."""

RESIDUAL_COST = 21
"""The cost of a block beside the sums of f32, such as a residual's: it takes the registers of many operations. Blocks
of 128 x 256 spill 856 bytes with one."""

WINDOW_SIDE = 8
"""The longest side of a window whose elements a program visits one after the other."""

PLAIN_OPS = 6
"""The operations that round a sum."""

SIDE = 32
"""The least lanes along the contiguous dim: a warp reads them together."""


@dataclass(frozen=True)
class TritonAuthor(ScheduleAuthor):
    """Launches of nests that work on the same blocks, of about a thousand elements each"""

    name = "triton"

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        if any(isinstance(op, ProcedureOp) and op.computes is None for op in kernel.computations):
            # `lower-to-triton` refuses the kernel.
            return []
        groups = launch_groups(kernel)
        # The features of a machine give the requested arithmetic of products.
        products = machine.features if machine.features in PRODUCTS else ""
        return [_choice(group, f"l{k}", products, figures_of(machine.cpu)) for k, group in enumerate(groups)]

    def variants(self, kernel: KernelOp, machine: MachineModel) -> SizeVariants | None:
        products = machine.features if machine.features in PRODUCTS else ""
        most = USUAL_VARIANTS + any(coded_sum(nest) is not None for nest in kernel.nests)
        return launch_variants(kernel, lambda copy: list(_deciders(copy, products, figures_of(machine.cpu))), most)


def _deciders(kernel: KernelOp, products: str, gpu: Figures) -> Iterator[Decider]:
    """Returns the decisions for a kernel that depend on its sizes: the blocks of products and attentions, and the parts
    of sums."""
    groups = launch_groups(kernel)
    inside: set[NestOp] = set()
    for group in groups:
        extent = product(group.dims[d] for d in group.grid if group.dims[d].symbols)
        if group.attention is not None:
            inside.update(group.attention.members)
            yield Decider(extent, partial(_decide_attention, group, products, gpu))
        elif group.product is not None:
            inside.add(group.product[0])
            yield Decider(extent, partial(_decide_product, group, products, gpu))
    for nest in kernel.nests:
        if nest not in inside and any(axis.kind == "reduction" for axis in nest.axes):
            extent = product(axis.extent for axis in nest.axes if axis.extent.symbols and axis.kind == "parallel")
            yield Decider(extent, partial(_decide_parts, nest))


def _decide_attention(group: LaunchGroup, products: str, gpu: Figures) -> Decision:
    return Decision(attention_blocks(group, products, gpu), attention_seconds(group, products, gpu))


def _decide_product(group: LaunchGroup, products: str, gpu: Figures) -> Decision:
    """Decides the number of parts of the depth, and the blocks of a part; or sums by threads, of codes for few rows."""
    assert group.product is not None
    size = _product_sizes(group, products, gpu)[0]
    split = split_of(group.product[0], products, gpu)
    parts = 1 if split is None else split.parts

    def seconds(choice: tuple[int, Blocks]) -> float:
        some, blocks = choice
        if some == BY_THREADS:
            return sum_seconds(size)
        return size.seconds(blocks) if some == 1 else size.split(some).seconds(blocks) + size.joining(some)

    best = parts, blocks_for([size.split(parts)])
    threads = BY_THREADS, best[1]
    has_codes = coded_sum(group.product[0]) is not None and size.code_bytes
    return Decision(threads if has_codes and seconds(threads) < seconds(best) else best, seconds)


def _decide_parts(nest: NestOp) -> Decision:
    """Decides the number of parts of any other sum."""
    split = split_of(nest)
    if split is None:
        return Decision(1, lambda _: 0.0)

    def seconds(parts: int) -> float:
        # Too long for so many parts: as without a split.
        return split.seconds.get(parts, split.seconds[1])

    return Decision(split.parts, seconds)


def _choice(group: LaunchGroup, label: str, products: str, gpu: Figures) -> Choice:
    if group.procedure is not None:
        return algorithm_choice(group.procedure)
    ways = ways_of(group, products, gpu)
    told = " x ".join(str(ways.lanes[d]) for d in group.dims if ways.lanes[d] > 1) or "1"
    in_sequence = ", in sequence" if ways.looped else ""
    return Choice(schedules_of(group, ways, label), f"one launch, blocks of {told}{in_sequence}")


@dataclass(frozen=True)
class Ways:
    """The lanes, loops and shares of a launch, by dim, and its parameters."""

    lanes: dict[str, int]
    looped: set[str]
    shares: dict[str, int]
    launch: Launch
    unrolled: frozenset[str] = frozenset()
    """The dims of windows, folded element by element."""


def ways_of(group: LaunchGroup, products: str, gpu: Figures) -> Ways:
    """Returns the author's choice for a launch: a measured one, or the one with the least expected time."""
    ways = _expected_ways(group, products, gpu)
    found = _measured(group, gpu)
    if found is None or ways.shares:
        return ways
    if group.attention is not None:
        if ways.launch.group > 1:
            return ways  # A causal one.
        dims = attention_dims(group)
        assert dims is not None
        blocks = {dims.rows: found.rows, dims.keys: found.columns}
    else:
        assert group.product is not None
        nest, dot = group.product
        rows, columns = wide_dims(group)
        blocks = {rows: found.rows, columns: found.columns, group.names[nest][dot.depth]: found.depth}
    launch = replace(ways.launch, warps=found.warps, stages=found.stages, descriptors=found.descriptors)
    return Ways({**ways.lanes, **blocks}, ways.looped, {}, launch)


def _measured(group: LaunchGroup, gpu: Figures) -> MeasuredLaunch | None:
    """Returns the measured launch for a group: a product alone, or an attention that reads nothing but queries, keys
    and values."""
    name = next((name for name, figures in FIGURES.items() if figures is gpu), "")
    read = {read.source for nest in group.members for read in nest.reads if not group.makes(read.source)}
    if group.attention is not None:
        dims, inner = attention_dims(group), dot_product(group.attention.scores)
        if dims is None or inner is None or not dims.rows or len(read) != len("qkv"):
            return None
        kind, wide, element = "attention", (dims.rows, dims.keys, dims.depth), inner.element
        others = [d for d in group.grid if d != dims.rows]
    elif group.product is not None and len(read) == len("ab") and _later(group) <= PLAIN_OPS and has_descriptors(group):
        nest, dot = group.product
        kind, wide, element = "product", (*wide_dims(group), group.names[nest][dot.depth]), dot.element
        others = [d for d in group.dims if d not in wide]
    else:
        return None
    typical = typical_of(group.members[0])
    sizes = {d: typical.known(e) for d, e in group.dims.items()}
    if any(size is None for size in sizes.values()):
        return None
    known = {d: size for d, size in sizes.items() if size is not None}
    places = (prod(known[d] for d in others), *(known[d] for d in wide))
    return measured_launch(name, kind, places, element_bytes(element))


def _expected_ways(group: LaunchGroup, products: str, gpu: Figures) -> Ways:
    if group.attention is not None:
        blocks = attention_blocks(group, products, gpu)
        return Ways(blocks.lanes, blocks.looped, blocks.shares, blocks.launch)
    if group.product is not None:
        sizes = _product_sizes(group, products, gpu)
        blocks = blocks_for(sizes)
        lanes, looped = _product_lanes(group, blocks)
        return Ways(lanes, looped, {}, _product_launch(group, blocks, sizes))
    sums = blocks_of_codes(group)
    if sums is not None:
        return Ways(sums.lanes, sums.looped, {}, Launch(sums.warps, 1))
    windows = window_dims(group)
    lanes, looped = _blocks(group, windows)
    return Ways(lanes, looped, {}, Launch(_warps(prod(lanes.values())), 1), windows)


def expected_seconds_of(group: LaunchGroup, ways: Ways, products: str, gpu: Figures) -> float | None:
    """Returns the expected seconds of a launch at its typical sizes, by the times that choose the author's blocks; None
    for a launch without products."""
    if group.attention is not None:
        return attention_seconds(group, products, gpu)(
            AttentionBlocks(ways.lanes, ways.looped, ways.shares, ways.launch)
        )
    if group.product is None:
        return None
    nest, dot = group.product
    rows, columns = (ways.lanes[d] for d in wide_dims(group))
    depth_bytes = ways.lanes[group.names[nest][dot.depth]] * element_bytes(dot.element)
    blocks = Blocks(rows, columns, depth_bytes, ways.launch.stages, ways.launch.warps, ways.launch.descriptors)
    return _product_sizes(group, products, gpu)[-1].seconds(blocks)


def schedules_of(group: LaunchGroup, ways: Ways, label: str) -> dict[str, ScheduleAttr]:
    """Returns the schedules of the nests of a launch, by label."""
    return {nest.label: _schedule(nest, group, ways, label) for nest in group.members}


def wide_dims(group: LaunchGroup) -> tuple[str, str]:
    """Returns the dims of the blocks of sums, in the order of the launch's dims: that of `tt.dot`."""
    assert group.product is not None
    nest, dot = group.product
    order = list(group.dims)
    first, second = sorted((group.names[nest][dot.row], group.names[nest][dot.column]), key=order.index)
    return first, second


def _product_sizes(group: LaunchGroup, products: str, gpu: Figures) -> list[ProductSize]:
    """Returns a product at its likely sizes, in rising order."""
    assert group.product is not None
    nest, dot = group.product
    wide, size = wide_dims(group), element_bytes(dot.element)
    later = _later(group)
    if size == 4:
        later += RESIDUAL_COST * _residuals(group, set(wide))
    found: list[ProductSize] = []
    code_bytes = _code_bytes(group, wide[1])
    mapped = gpu.descriptors and size == 2 and has_descriptors(group)
    for likely in TYPICAL:
        sizes = {d: max(1, typical_of(nest).value(e, likely)) for d, e in group.dims.items()}
        others, summed = (prod(sizes[d] for d in dims if d not in wide) for dims in (group.grid, group.reduced))
        how = products if size == 4 else ""
        # Codes have quotients too, but no window.
        more = later, code_bytes, 0 if code_bytes else run_of(nest, dot.depth), mapped
        found.append(ProductSize(sizes[wide[0]], sizes[wide[1]], summed, others, size, how, gpu, *more))
    return found


def _residuals(group: LaunchGroup, wide: set[str]) -> int:
    """Returns the number of tensors of which nests after a product read a block beside the sums."""
    reads = [(read, group.names[nest]) for nest in group.members[1:] for read in nest.reads]
    given = {read.source: renamed(read.subscripts, names) for read, names in reads if not group.makes(read.source)}
    return sum(wide <= {name for e in at for name in e.symbols} for at in given.values())


def _later(group: LaunchGroup) -> float:
    """Returns the operations on each sum after a product."""
    return float(sum(OP_COST.get(op.name, 1) for each in group.members[1:] for op in each.block.ops))


def _code_bytes(group: LaunchGroup, columns: str) -> float:
    """Returns the bytes of an element of a product's columns, if they are codes; else 0."""
    assert group.product is not None
    nest = group.product[0]
    coded = coded_product(nest)
    return coded.codes.bytes if coded is not None and group.names[nest][coded.dot.column] == columns else 0.0


def _product_lanes(group: LaunchGroup, blocks: Blocks) -> tuple[dict[str, int], set[str]]:
    """Returns the lanes of each dim of a product of blocks, and the dims of programs' loops."""
    assert group.product is not None
    nest, dot = group.product
    size = element_bytes(dot.element)
    lanes = dict.fromkeys(group.dims, 1)
    depth = group.names[nest][dot.depth]
    lanes.update(zip(wide_dims(group), (blocks.rows, blocks.columns), strict=True))
    least = LEAST if size > 1 else 2 * LEAST
    lanes[depth] = max(least, _power(group.dims[depth], blocks.depth_bytes // size))
    whole = group.dims[depth].constant
    looped = {d for d in group.reduced if group.dims[d] != ONE and d != depth}
    if whole is None or whole > lanes[depth]:
        looped.add(depth)
    return lanes, looped


def _product_launch(group: LaunchGroup, blocks: Blocks, sizes: Sequence[ProductSize]) -> Launch:
    """Returns the launch of a product: the sums fill the registers of the warps, and loads run ahead for the next
    blocks."""
    # Groups are of the rows if these are the dim before the last of the grid.
    last = tuple(d for d in group.grid if group.dims[d] != ONE)[-2:]
    together = GROUP if wide_dims(group) == last and sizes[-1].gains_by_groups(blocks) else 1
    return Launch(blocks.warps, blocks.stages, sizes[-1].how, together, blocks.maps)


def _warps(size: int) -> int:
    """Returns the number of warps: more for larger blocks, so a thread has eight to sixteen elements."""
    return 8 if size > 2 * ELEMENTS else 4 if size > ELEMENTS // 8 else 1


def _schedule(nest: NestOp, group: LaunchGroup, ways: Ways, label: str) -> ScheduleAttr:
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
        elif dim in ways.unrolled:
            inner.append(Loop(axis.name, unroll=0))
        elif not grid and dim not in looped:
            inner.append(Loop(axis.name))
    return ScheduleAttr([*outer, *inner, ways.launch])


def _blocks(group: LaunchGroup, windows: frozenset[str]) -> tuple[dict[str, int], set[str]]:
    """Returns the lanes of each dim, and the dims of programs' loops over blocks; windows have no lanes."""
    beside = [dim for dim in _side_by_side(group) if dim not in windows]
    reduced = group.reduced - windows
    lanes = dict.fromkeys(group.dims, 1)
    looped: set[str] = set()
    left = ELEMENTS
    grid = [d for d in group.grid if group.dims[d] != ONE]
    first = [d for d in beside if d in grid]
    if reduced:
        rows = not first or (beside and beside[0] in reduced)
        if not rows:
            lanes[first[0]] = _power(group.dims[first[0]], 2 * SIDE)
            left //= lanes[first[0]]
        window = not rows and _is_window(group)
        looped |= {d for d in reduced if window and group.dims[d] != ONE}
        for dim in [] if window else sorted(reduced, key=lambda d: d not in beside):
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
            lanes[dim] = fullest(group.dims[dim], left) if windows else _power(group.dims[dim], left)
            left = max(1, left // lanes[dim])
    return lanes, looped


def _is_window(group: LaunchGroup) -> bool:
    """True if a launch reduces along several short dims: the window of a pool or of a depthwise convolution. Programs
    visit its elements one after the other, each for a block of results: as lanes they would be rounded up to powers of
    two, and leave few results for a program."""
    sizes = [group.dims[d].constant for d in group.reduced if group.dims[d] != ONE]
    return len(sizes) > 1 and all(size is not None and size <= WINDOW_SIDE for size in sizes)


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
