"""The expected time of an attention on a GPU with given blocks.

A program has a block of rows and loops over blocks of keys. In each step the tensor cores multiply the rows by the keys
and the weights by the values, and the warps compute the exponentials in between. One program does these in sequence. So
a multiprocessor that holds several programs multiplies for one and computes exponentials for another: the shorter part
is hidden in proportion to the root of the number of programs. Registers limit this number: the sums, the scores and the
weights of a block are in registers.

The figures are those of an H100, fitted to hand-written kernels with heads of 64 and 128 features, with and without a
causal mask (`python -m benchmark.gpu_ranks` compares). Types of 32 bits, and GPUs whose tensor cores do not multiply
asynchronously, have the simpler time of an A100.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from igniter.schedules.product_blocks import (
    A100,
    BYTES_A_SECOND,
    LAUNCH_SECONDS,
    MULTIPROCESSORS,
    PRODUCTS_A_SECOND,
    REGISTERS,
    Figures,
)

WIDE = 1.45
"""The multiply-adds of an attention's products in a second, relative to those of blocks of 32 x 32."""
SCORES = 3.25e10
"""The scores in a second for which a multiprocessor computes exponentials, maxima and sums."""
TURN_SECONDS = 6e-8
"""The time of a step's changes between products and exponentials."""
EXPOSED_SECONDS = 1.9e-7
"""The additional time of a step with two stages: the next keys are loaded after the products."""
WAVE_SECONDS = 2.5e-6
"""The time of a program before its first step and after its last."""
OTHER_REGISTERS = 40
"""The registers of a thread besides sums, scores and weights."""
MOST_REGISTERS = 255
FILLING = 0.75
"""The programs of a multiprocessor that fill the memory's bandwidth."""


@dataclass(frozen=True)
class AttentionTile:
    """The blocks of a program, and its launch parameters."""

    rows: int
    keys: int
    warps: int = 4
    stages: int = 3


@dataclass(frozen=True)
class AttentionSize:
    """An attention at typical sizes: `count` heads of rows by keys, with `depth` elements of a key and `features` of a
    value, of `bytes` bytes."""

    count: int
    rows: int
    keys: int
    depth: int
    features: int
    bytes: int
    how: str = ""
    """The arithmetic of f32 products, if they use tensor cores."""
    gpu: Figures = field(default=A100, repr=False)
    causal: bool = False
    """True if a row sees the keys up to its own position, on average half of them."""

    def seconds(self, tile: AttentionTile, parts: int = 1) -> float:
        """Returns the expected seconds with these blocks, with the keys of a head divided among `parts` programs."""
        if self.bytes == 2 and self.gpu.asynchronous:
            return self._asynchronous(tile, parts)
        work = self.depth + self.features
        # A block of so few rows wastes half of its products.
        multiplied = (tile.rows + 16) * work / (PRODUCTS_A_SECOND[self.how or self.bytes] / MULTIPROCESSORS)
        a_key = max(multiplied, work * self.bytes / BYTES_A_SECOND)
        waves = -(-self._programs(tile, parts) // MULTIPROCESSORS)
        return waves * -(-self.keys // parts) * a_key + (LAUNCH_SECONDS if parts > 1 else 0.0)

    def _programs(self, tile: AttentionTile, parts: int) -> int:
        return self.count * -(-self.rows // tile.rows) * parts

    def _asynchronous(self, tile: AttentionTile, parts: int) -> float:
        """Returns the expected seconds of 16-bit floats on sm_90 and sm_100."""
        gpu, rows, keys = self.gpu, tile.rows, tile.keys
        programs = self._programs(tile, parts)
        each = -(-programs // gpu.multiprocessors)
        held = min(each, self._held(tile))
        steps = -(-self.keys // parts // keys) or 1.0
        if self.causal:
            steps = steps / 2 + rows / keys / 2 + 0.5
        work = self.depth + self.features
        multiplied = max(rows, 32) * keys * work * gpu.multiprocessors / (WIDE * gpu.products[2])
        weighed = rows * keys / SCORES
        longer, shorter = max(multiplied, weighed), min(multiplied, weighed)
        turn = TURN_SECONDS + (EXPOSED_SECONDS if tile.stages < 3 else 0.0)
        loaded = keys * work * self.bytes * gpu.multiprocessors / gpu.cache
        step = max(longer + shorter / held**0.5 + turn / held, loaded)
        # Programs of different length even out over the multiprocessors.
        some = programs / gpu.multiprocessors if self.causal else each
        read = self.count * self.keys * work * self.bytes / gpu.memory
        read /= min(1.0, programs / (FILLING * gpu.multiprocessors))
        joining = LAUNCH_SECONDS + 2 * 4 * parts * self.count * self.rows * self.features / gpu.cache
        around = LAUNCH_SECONDS + -(-each // held) * WAVE_SECONDS + (joining if parts > 1 else 0.0)
        return around + max(some * steps * step, read)

    def _held(self, tile: AttentionTile) -> int:
        """Returns how many programs a multiprocessor holds at once, by registers and shared memory."""
        threads = 32 * tile.warps
        # The weights are of 16 bits, and are made while the scores are there.
        values = tile.rows * (self.features + 1.5 * tile.keys) / threads
        registers = threads * min(MOST_REGISTERS, values + OTHER_REGISTERS)
        held = tile.stages * tile.keys * (self.depth + self.features) + tile.rows * self.depth
        return max(1, min(int(REGISTERS / registers), self.gpu.shared_of_all // (held * self.bytes)))
