"""The blocks of a product on a GPU: those with the least expected time at typical sizes.

A program multiplies a block of rows by one of columns, a block of the depth at a time, with several of these in flight.
Large blocks load less for each product; small ones are more programs, and every multiprocessor should have one. A
multiprocessor runs its programs in sequence, each in the time of its products or of its loads, whichever is longer. On
sm_90 and sm_100 a step along the depth also has a least time; several programs on a multiprocessor wait at once.

The figures of a GPU (`Figures`) are measured ones for sm_90, and of data sheets for others; code for all GPUs since
sm_80 has those of an A100. On an H100 (4096^3, f16) blocks of 128 x 128 x 64 take 0.225 ms with 8 warps and 0.244 with
4, blocks of 128 x 256 x 64 0.207; 128 rows by 4096 x 4096 take 0.020 with blocks of 64 x 64 x 64 in 3 stages, 0.0137
with 64 x 64 x 128 in 4, and 0.017 with 128 x 32 x 128.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product as pairs

from igniter.analysis.structured.dot_products import LEAST
from igniter.schedules.best_tile import best_tile, loss_over

LATENCY = 0.6e-6
"""Seconds from a load to its data."""
LAUNCH_SECONDS = 2e-6
HELD = 4
"""The most programs that a multiprocessor is assumed to hold at once."""
TYPICAL = (1, 16, 256)
"""The assumed values of a symbol without a typical size."""
GROUP = 8
"""The blocks of rows that a group of programs covers."""
SIDES = (16, 32, 64, 128)
LINE = 128
"""The bytes of a row in one step along the depth: a line of memory."""
ASYNCHRONOUS_ROWS, SYNCHRONOUS = 64, 1.6
"""The fewest rows of an asynchronous product, and the time of others, relative to these."""
CODES_SUMS = 64 * 64
"""The most sums beside two lines of unpacked codes: with more, ptxas spills on sm_90."""
FEW_OPS = 20
"""The most operations on each sum after a product for which a thread has registers beside 128 sums."""
MAPPED_OPS, MAPPED_SUMS = 36, 128 * 128
"""The same for blocks that tensor maps load, which need no registers for addresses; and the least sums of a block for
which they were measured to be faster than loads by the threads."""
WAVE_SECONDS = 0.45e-6
"""The time of a program besides its loads, its products and the operations after them (sm_90)."""
STEP_SECONDS = 0.21e-6
"""The least time of a step along the depth: the products of a step wait for those of the step before (sm_90)."""
FIRST_SECONDS = 0.75e-6
"""The time from the first load of a program to its data, while others load too (sm_90)."""
MAPPED = 0.82
"""The time of steps with loads by tensor maps, relative to loads by the threads (sm_90)."""
STORING = 0.5
"""The bandwidth of memory for programs that store at their ends, relative to reads."""
REGISTERS, OTHER_REGISTERS = 65536, 50
"""The registers of a multiprocessor, and those of a thread besides its sums."""
UNPACKING = 4
"""The operations to make a factor of a code: shift, mask, subtract, convert, scale, round."""
BUSY_WARPS = 8
"""The warps of a multiprocessor that unpack at its full rate."""


@dataclass(frozen=True)
class Figures:
    """The figures of a GPU for products."""

    multiprocessors: int
    products: Mapping[int | str, float]
    """The multiply-adds a second of all multiprocessors with blocks of 32 x 32, by the bytes of a factor, or by the
    arithmetic of f32. Blocks of any size at most double them."""
    cache: float
    """The bytes a second that all multiprocessors load from the second-level cache."""
    shared: int = 99 << 10
    """The bytes of shared memory that a program may have."""
    shared_of_all: int = 164 << 10
    """The bytes of shared memory of a multiprocessor."""
    memory: float = 1.5e12
    """The bytes a second that kernels read from memory."""
    asynchronous: bool = False
    """True if tensor cores multiply blocks in shared memory while the warps go on (sm_90, sm_100): wide blocks and
    deep steps pay."""
    flat_warps: int = 4
    """The warps for blocks of 16 x 128: ptxas spills with 4 on sm_120."""
    descriptors: bool = False
    """True if loads by descriptors were measured to be faster, for large blocks of 16-bit factors."""
    thread_sums: int = 128 * 64
    """The most sums of a block that threads multiply without tensor cores."""


A100 = Figures(108, {1: 312e12, 2: 156e12, 4: 9.7e12, "tf32": 78e12, "tf32x3": 26e12}, 4e12)
"""Of the data sheet. Code for sm_80 runs on GPUs with 99 KB of shared memory for a program."""
H100 = Figures(
    132,
    {1: 470e12, 2: 235e12, 4: 19.5e12, "tf32": 118e12, "tf32x3": 29e12},
    13.3e12,
    227 << 10,
    228 << 10,
    2.8e12,
    True,
    descriptors=True,
)
"""Measured; `python -m benchmark.gpu_ranks` compares the resulting times with measured ones."""
B200 = Figures(
    148, {1: 1000e12, 2: 500e12, 4: 22e12, "tf32": 250e12, "tf32x3": 60e12}, 15e12, 227 << 10, 228 << 10, 6e12, True
)
"""The data sheet's peaks, by the shares that an H100 reaches."""
RTX5090 = Figures(
    170, {1: 210e12, 2: 105e12, 4: 30e12, "tf32": 52e12, "tf32x3": 17e12}, 6e12, 99 << 10, 100 << 10, flat_warps=2
)
"""Of the data sheet."""
RTX4090 = Figures(128, {1: 165e12, 2: 82e12, 4: 24e12, "tf32": 41e12, "tf32x3": 14e12}, 5e12, 99 << 10, 100 << 10)
"""Of the data sheet."""
AMD = replace(A100, thread_sums=32 * 32)
"""Of an A100, since none was at hand; blocks of 32 x 64 in f32 spill on gfx1100."""
FIGURES = {"sm_89": RTX4090, "sm_90": H100, "sm_100": B200, "sm_120": RTX5090}

MULTIPROCESSORS, PRODUCTS_A_SECOND = A100.multiprocessors, A100.products
BYTES_A_SECOND = A100.cache / A100.multiprocessors
CACHE_BYTES_A_SECOND = A100.cache
MEMORY_BYTES_A_SECOND = 1.5e12
"""The memory bandwidth reached by kernels on an A100."""


def figures_of(gpu: str) -> Figures:
    """Returns the figures of a GPU, `sm_90`, `gfx942` and the like; those of an A100 for unknown ones."""
    return FIGURES.get(gpu, AMD if gpu.startswith("gfx") else A100)


@dataclass(frozen=True, order=True)
class Blocks:
    """The blocks of a product."""

    rows: int
    columns: int
    depth_bytes: int = LINE
    """The bytes of a row in one step along the depth."""
    stages: int = 3
    """The steps in flight."""
    warps: int = 4
    maps: bool = False
    """True if tensor maps load the blocks."""

    @property
    def shared(self) -> int:
        """The bytes of shared memory for the steps in flight."""
        return self.stages * self.depth_bytes * (self.rows + self.columns)


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
    gpu: Figures = field(default=A100, repr=False)
    later: float = 0.0
    """The operations on each sum after the product."""
    code_bytes: float = 0.0
    """The bytes of an element of the columns' factor, if it is codes of few bits that threads unpack; else 0."""
    run: int = 0
    """The steps of the depth at one place of a window; 0 without a window."""
    mapped: bool = False
    """True if tensor maps can load both factors, and do so faster."""

    @property
    def by_threads(self) -> bool:
        """True if threads multiply, not tensor cores."""
        return self.bytes >= 4 and not self.how

    def split(self, parts: int) -> ProductSize:
        """Returns the products of the depth's parts."""
        mapped = self.mapped and parts == 1
        return replace(self, depth=-(-self.depth // parts), count=self.count * parts, mapped=mapped)

    def joining(self, parts: int) -> float:
        """Returns the seconds to store the sums of parts, and to add them in a launch of its own."""
        return LAUNCH_SECONDS + 2 * 4 * parts * self.rows * self.columns * self.count / self.gpu.cache

    def programs(self, blocks: Blocks) -> int:
        """Returns the number of programs."""
        return -(-self.rows // blocks.rows) * -(-self.columns // blocks.columns) * self.count

    def gains_by_groups(self, blocks: Blocks) -> bool:
        """True if the programs that run at once load fewer bytes with their blocks of rows in groups."""
        together, rows, columns = self.gpu.multiprocessors, blocks.rows, blocks.columns
        down, across = -(-self.rows // rows), -(-self.columns // columns)
        if down * across <= together:
            return False
        in_sequence = -(-together // across) * rows + min(across, together) * columns
        height = min(GROUP, down)
        wide = min(across, -(-together // height))
        in_groups = height * -(-together // (height * across)) * rows + wide * columns
        return in_groups < 0.9 * in_sequence

    @property
    def most_ops(self) -> int:
        """The most operations after the product with which blocks of 128 x 256 sums do not spill."""
        return MAPPED_OPS if self.mapped else FEW_OPS

    def with_maps(self, blocks: Blocks) -> Blocks:
        """Returns the blocks as this product loads them: by tensor maps where these are faster."""
        return replace(blocks, maps=self.mapped and blocks.rows * blocks.columns >= MAPPED_SUMS)

    def seconds(self, blocks: Blocks) -> float:
        """Returns the expected seconds with these blocks."""
        if self.gpu.asynchronous:
            return self._asynchronous(blocks)
        gpu, rows, columns = self.gpu, blocks.rows, blocks.columns
        programs = self.programs(blocks)
        waves = -(-programs // gpu.multiprocessors)
        # Each loaded row and column is used once for every column or row of the block.
        reuse = (1 + 32 / rows + 32 / columns) / 2
        multiplied = reuse * rows * columns / self._peak
        held = min(HELD, max(1, programs // gpu.multiprocessors), max(1, gpu.shared_of_all // blocks.shared))
        multiplied += self._unpacked(blocks, held)
        # Small blocks have too few loads in flight for a multiprocessor's full bandwidth.
        each = self._bytes_a_depth(blocks)
        under_way = (blocks.stages - 1) * blocks.depth_bytes / self.bytes * each * held
        rate = gpu.cache / gpu.multiprocessors
        loaded = each / rate * max(1.0, LATENCY * rate / under_way)
        return waves * self.depth * max(multiplied, loaded)

    @property
    def _peak(self) -> float:
        """The multiply-adds a second of a multiprocessor."""
        kind = self.how if self.bytes == 4 and self.how else min(4, self.bytes)
        return self.gpu.products[kind] / self.gpu.multiprocessors

    def _bytes_a_depth(self, blocks: Blocks) -> float:
        """Returns the bytes that a program loads for one depth."""
        return blocks.rows * self.bytes + blocks.columns * (self.code_bytes or self.bytes)

    def _unpacked(self, blocks: Blocks, held: int) -> float:
        """Returns the seconds to unpack the codes of one depth. Few warps wait for each other's results."""
        if not self.code_bytes:
            return 0.0
        idle = max(1.0, BUSY_WARPS / (held * blocks.warps))
        return UNPACKING * blocks.columns * self.gpu.multiprocessors / self.gpu.products[4] * idle

    def _asynchronous(self, blocks: Blocks) -> float:
        """Returns the expected seconds on sm_90 and sm_100. Programs on a multiprocessor share its products and loads,
        and wait for their own steps at the same time."""
        gpu, rows, columns = self.gpu, blocks.rows, blocks.columns
        each = -(-self.programs(blocks) // gpu.multiprocessors)
        held = self._held(blocks, each)
        rounds = -(-each // held)
        steps = -(-self.depth * self.bytes // blocks.depth_bytes)
        # An instruction has 64 rows or twice 64 and all columns: more rows do not help.
        reuse = (1 + 32 / min(rows, 128) + 32 / columns) / 2
        multiplied = reuse * rows * columns * (blocks.depth_bytes / self.bytes) / self._peak
        if rows < ASYNCHRONOUS_ROWS:
            multiplied *= SYNCHRONOUS
        rate = gpu.cache / gpu.multiprocessors
        loaded = blocks.depth_bytes / self.bytes * self._bytes_a_depth(blocks) / rate
        multiplied += blocks.depth_bytes / self.bytes * self._unpacked(blocks, held)
        # Loads in flight vary in number, so near the full bandwidth more of them still help a little.
        waited = FIRST_SECONDS / (loaded * (blocks.stages - 1) * held)
        step = max(multiplied, loaded * (1 + waited**4) ** 0.25)
        if blocks.stages < 3 and held == 1:
            # The memory of one step is read by its products until they are done.
            step = multiplied + loaded + LATENCY
        after = self.later * rows * columns * gpu.multiprocessors / gpu.products[4]
        apart = rounds if blocks.warps <= 4 else each
        around = rounds * (FIRST_SECONDS + (blocks.stages - 1) * loaded + WAVE_SECONDS) + apart * after
        taken = max(each * steps * step * (MAPPED if blocks.maps else 1.0), rounds * steps * STEP_SECONDS)
        return LAUNCH_SECONDS + max(taken + around, self._moved / (STORING * gpu.memory))

    def _held(self, blocks: Blocks, each: int) -> int:
        """Returns how many of `each` programs a multiprocessor holds at once, by shared memory and registers."""
        threads = 32 * blocks.warps
        registers = threads * (blocks.rows * blocks.columns // threads + OTHER_REGISTERS)
        return max(1, min(HELD, each, self.gpu.shared_of_all // blocks.shared, REGISTERS // registers))

    @property
    def _moved(self) -> int:
        """The bytes of the results and of the smaller factor; the larger one may overlap with itself, as windows of an
        image do, and is in the cache in part."""
        return (min(self.rows, self.columns) * self.depth + self.rows * self.columns) * self.count * self.bytes


def best_seconds(size: ProductSize) -> float:
    """Returns the seconds of a product with its best blocks."""
    return size.seconds(blocks_for([size]))


def blocks_for(sizes: Sequence[ProductSize]) -> Blocks:
    """Returns the blocks with the least loss over all `sizes`, assumed equally likely; among equals the largest, with
    the least shared memory."""
    candidates = _in_runs(_candidates(sizes), sizes[0])
    loss = loss_over([size.seconds for size in sizes], candidates)
    return best_tile(candidates, loss, prefer=lambda b: (-b.rows * b.columns, b.rows, b.columns, b.shared, -b.warps))


def _in_runs(blocks: list[Blocks], size: ProductSize) -> list[Blocks]:
    """Returns the blocks whose steps along the depth are inside of one place of a window, or the same with shorter
    steps. If a place has too few channels, every element of a block has a place and a mask of its own: small blocks
    leave registers for them."""
    if not size.run:
        return blocks
    whole = [b for b in blocks if size.run * size.bytes % b.depth_bytes == 0]
    shorter = (size.run & -size.run) * size.bytes
    if whole:
        return whole
    if shorter < LEAST * max(2, size.bytes):
        return [b for b in blocks if b.rows <= 64 and b.depth_bytes * b.rows <= 64 * LINE] or blocks
    return [replace(b, depth_bytes=shorter) for b in blocks if b.depth_bytes == min(c.depth_bytes for c in blocks)]


def _candidates(sizes: Sequence[ProductSize]) -> list[Blocks]:
    """Returns the blocks that fit the shared memory, and whose sums fit the registers."""
    first = sizes[0]
    gpu = first.gpu
    longest = (max(s.rows for s in sizes), max(s.columns for s in sizes))
    # On sm_100 blocks of 128 x 256 in TF32 spill with a bias.
    narrow = (first.bytes <= 2 or (first.how == "tf32" and gpu is H100)) and not first.code_bytes
    wide = (256,) if gpu.asynchronous and narrow and first.later <= first.most_ops else ()
    rows, columns = (
        [s for s in sides if s == LEAST or s < 2 * extent]
        for sides, extent in zip((SIDES, (*SIDES, *wide)), longest, strict=True)
    )
    if first.by_threads:
        # A thread holds the whole depth of its rows and columns in registers.
        return [
            Blocks(r, c, LINE // 2 if r == 128 else LINE, 3, 8 if r * c >= 64 * 64 else 4)
            for r, c in pairs(rows, columns)
            if c <= 64 and r * c <= gpu.thread_sums
        ]
    steps = ((LINE, 3), (LINE, 4), (2 * LINE, 3), (2 * LINE, 4)) if gpu.asynchronous else ((LINE, 3),)
    if first.code_bytes:
        # A line of the activations is a quarter of a line of codes.
        steps = ((LINE, 3), (2 * LINE, 3), (2 * LINE, 4))
    found = [
        Blocks(r, c, depth, stages, warps)
        for (r, c), (depth, stages) in pairs(pairs(rows, columns), steps)
        if (c < 256 or r == 128) and (not first.code_bytes or r * c <= CODES_SUMS or depth == LINE)
        for warps in ((gpu.flat_warps,) if (r, c) == (16, 128) else _warps(r * c, first))
    ]
    return [first.with_maps(blocks) for blocks in found if blocks.shared <= gpu.shared]


def _warps(sums: int, size: ProductSize) -> Sequence[int]:
    """Returns the numbers of warps to choose from for blocks of so many sums."""
    if sums > 64 * 128:
        few = size.gpu is H100 and sums == 128 * 128 and size.how == "tf32" and size.later <= FEW_OPS
        return (4,) if few else (8,)
    return (4,) if sums > 32 * 32 else (2,) if sums > 16 * 16 else (1,)
