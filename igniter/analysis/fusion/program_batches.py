"""The image-by-image steps of a program: a loop over the batch, instead of all elements at once.

A batch of images exceeds the caches: the result of a step is in memory when the next one reads it. One image may fit.
So steps with independent batch elements (`RegionOp.batched`) run in a loop over the batch, and their intermediates are
those of one image. Their weights are then read for each image, so this is profitable where images are large and weights
are small: the first half of a network. Of all runs of such steps, the one with the largest saving is taken (the bytes
kept in caches, less the weights), then the same is done before and behind it.

Small images, whose batch fits the caches, are left alone: a call for each would gain nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.batches import has_batch
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes
from igniter.dialects.fusion import DimsOp, ProgramOp, RegionOp, is_step
from igniter.dialects.loop import stored_bytes
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import symbols_of

PASSES = 2
"""The memory transfers of an intermediate between two steps: it is written and read."""


@dataclass(frozen=True)
class Batch:
    """Consecutive ops of a program, in order, and the symbol of their batch."""

    ops: tuple[Operation, ...]
    symbol: str


def batches_of(program: ProgramOp, machine: MachineModel, sizes: Mapping[str, int]) -> list[Batch]:
    """Returns the runs of steps of a program worth a loop over the batch, in order."""
    found: list[Batch] = []
    for ops, symbol in _runs(program):
        counts = _Counts(TypicalSizes(tuple({**sizes, symbol: 1}.items())))
        found += [Batch(chosen, symbol) for chosen in _worthwhile(ops, counts, large_image(machine))]
    return found


def large_image(machine: MachineModel) -> int:
    """Returns the least bytes of an image in a step for a loop over images: half of a second-level cache, and with many
    cores an eighth of all of theirs, since one image then has to be work for all of them."""
    return machine.l2_bytes * max(4, machine.cores) // 8


def _runs(program: ProgramOp) -> list[tuple[tuple[Operation, ...], str]]:
    """Returns the longest runs of ops batched along one symbol; they begin and end with a region."""
    runs: list[tuple[list[Operation], str]] = []
    for op in program.block.ops:
        if op.has_trait(IsTerminator) or isinstance(op, DimsOp) or (not op.operands and not is_step(op)):
            continue  # Nothing of it remains at run time.
        symbol = _batch_of(op)
        if runs and not is_step(op) and _follows(op, runs[-1][1]):
            runs[-1][0].append(op)
        elif symbol is None:
            runs.append(([], ""))
        elif runs and runs[-1][1] == symbol and _follows(op, symbol):
            runs[-1][0].append(op)
        else:
            runs.append(([op], symbol))
    trimmed = [(_trimmed(ops), symbol) for ops, symbol in runs]
    return [(ops, symbol) for ops, symbol in trimmed if len(ops) > 1]


def _trimmed(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    places = [k for k, op in enumerate(ops) if isinstance(op, RegionOp)]
    return tuple(ops[: places[-1] + 1]) if places else ()


def _batch_of(op: Operation) -> str | None:
    """Returns the symbol of a region's batch."""
    if not isinstance(op, RegionOp) or not op.batched:
        return None
    return dims_of(op.inputs[op.batched[0]].type)[0].symbol


def _follows(op: Operation, symbol: str) -> bool:
    """True if an op is batched along a symbol: a region, or a view of the elements of a batch."""
    if isinstance(op, RegionOp):
        own = {op.inputs[k] for k in op.batched}
        return all(has_batch(v, symbol) for v in (*own, *op.results)) and not any(
            symbol in symbols_of(dims_of(v.type)) for v in op.inputs if v not in own
        )
    if is_step(op) or len(op.results) != 1 or not symbol:
        return False
    source, result = op.operands[0], op.results[0]
    return has_batch(source, symbol) and has_batch(result, symbol)


# -- profit -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Counts:
    """Byte counts for one element of the batch."""

    sizes: TypicalSizes

    def bytes(self, value: SSAValue) -> int:
        return max(0, self.sizes.value(stored_bytes(value.type), MEMORY))

    def weights(self, op: Operation) -> int:
        """Returns the bytes read by a region beside its batch."""
        if not isinstance(op, RegionOp):
            return 0
        return sum(self.bytes(v) for k, v in enumerate(op.inputs) if k not in op.batched)

    def step(self, op: Operation) -> int:
        """Returns the bytes read and written by a region of a batch."""
        if not isinstance(op, RegionOp):
            return 0
        return sum(map(self.bytes, (*(op.inputs[k] for k in op.batched), *op.results)))


def _worthwhile(ops: tuple[Operation, ...], counts: _Counts, least: int) -> list[tuple[Operation, ...]]:
    """Returns the most profitable parts of a run with a step of more than `least` bytes."""
    if len(ops) < 2 or max(map(counts.step, ops)) <= least:
        return []
    place = {op: k for k, op in enumerate(ops)}
    weights = [0, *accumulate(counts.weights(op) for op in ops)]
    # A tensor stays within a part with its producer and all its readers.
    spans: list[tuple[int, int, int]] = []
    for first, op in enumerate(ops):
        for value in op.results if isinstance(op, RegionOp) else ():
            last = max((place.get(user, len(ops)) for user in _readers(value)), default=len(ops))
            spans.append((first, last, PASSES * counts.bytes(value)))
    best: tuple[int, int, int] | None = None
    for first in range(len(ops)):
        inside = sorted((last, size) for begin, last, size in spans if begin >= first and last < len(ops))
        saved, at = 0, 0
        for last in range(first + 1, len(ops)):
            while at < len(inside) and inside[at][0] <= last:
                saved += inside[at][1]
                at += 1
            gain = saved - (weights[last + 1] - weights[first])
            if isinstance(ops[last], RegionOp) and isinstance(ops[first], RegionOp) and gain > (best or (0,))[0]:
                best = gain, first, last
    if best is None:
        return []
    _, first, last = best
    chosen = ops[first : last + 1]
    large = max(map(counts.step, chosen)) > least
    before, behind = _worthwhile(ops[:first], counts, least), _worthwhile(ops[last + 1 :], counts, least)
    return [*before, *([chosen] if large else []), *behind]


def _readers(value: SSAValue) -> list[Operation]:
    """Returns the readers of a value, also through views."""
    found: list[Operation] = []
    for use in value.uses:
        user = use.operation
        is_view = len(user.results) == 1 and not is_step(user) and not user.has_trait(IsTerminator)
        found += [user, *(_readers(user.results[0]) if is_view else [])]
    return found
