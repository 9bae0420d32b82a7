"""Schedules of bands: a procedure, a contraction of its results, and a procedure on the sums, band by band.

    %v = loop.procedure "input" [i: ..] (%x = ..) -> (%t : tensor<14x36x16x64xf32>) { .. store .., %t[i, ..] }
    %m = loop.nest "points" [i: .., p: .., t: .., o: .., c: reduction 64] { .. yield add .. at [i, p, t, o] }
    %r = loop.procedure "output" [i: .., a: ..] (%s = %m) -> (%u : tensor<14x4x..xf32>) { .. store .., %u[i, a, ..] }
    %y = loop.nest "image" [h: parallel 224, ..] { read %r[h floordiv 16, (h floordiv 4) mod 4, ..] .. }

This is a convolution in tiles (`igniter.dialects.onnx.ops.winograd`). Batch axes of the contraction along which its
weight is the same are *bands* where all four have them. The outer loops of the four become one, and the intermediates
are as large as a band. Inside these loops the last two share the other axes of the second procedure, so a reader of its
results works on each tile while it is in the first-level cache. Such a nest iterates over elements where the procedure
iterates over tiles and bands, so its loops have blocks of the same size.

Inside a band the contraction is a product for each of the remaining batch axes, as others are (`products.py`),
and procedures keep the order of their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from igniter.analysis.structured.contractions import Contraction
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import KernelOp, NestOp, ProcedureOp, ReadOp, stored_bytes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr, Step
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product, symbols_of
from igniter.schedules.author import Choice
from igniter.schedules.primitives import on_threads, with_words
from igniter.schedules.procedures import schedule_procedure
from igniter.schedules.products import band_product_schedule, worthwhile_contraction
from igniter.schedules.scheduling import Machine, vector_width


@dataclass(frozen=True)
class Ending:
    """A reader of the results of tiles; `levels` has, for each axis of the second procedure, the nest's own axis and
    the number of its elements in one step of the procedure's."""

    nest: NestOp
    levels: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Bands:
    """The four stages. `common` are the axes of bands: of the first procedure, the contraction and the second."""

    first: ProcedureOp
    nest: NestOp
    contraction: Contraction
    second: ProcedureOp
    common: tuple[tuple[str, str, str], ...]
    endings: tuple[Ending, ...] = field(default=())


def bands_of(kernel: KernelOp) -> Iterator[Bands]:
    """Yields the contractions of a kernel between two procedures."""
    for nest in kernel.nests:
        contraction = worthwhile_contraction(nest)
        if contraction is None or contraction.rows is None:
            continue
        first = contraction.a.source.owner
        readers = {use.operation for use in nest.outputs[0].uses}
        second = next(iter(readers), None)
        if not isinstance(first, ProcedureOp) or not isinstance(second, ProcedureOp) or len(readers) > 1:
            continue
        if first.schedule is None and second.schedule is None and len(second.outputs) == 1:
            common = tuple(_common_axes(first, nest, contraction, second))
            yield Bands(first, nest, contraction, second, common, tuple(_endings(second, len(common))))


def _common_axes(
    first: ProcedureOp, nest: NestOp, contraction: Contraction, second: ProcedureOp
) -> Iterator[tuple[str, str, str]]:
    """Yields the common outermost axes of all three."""
    weight = symbols_of(contraction.b.subscripts)
    written = nest.yield_op.clauses[0].subscripts
    buffer = first.written_buffers[first.outputs.index(contraction.a.source)]  # pyright: ignore[reportArgumentType]
    source = second.read_buffers[second.inputs.index(nest.outputs[0])]
    for mine, name, theirs in zip(first.axes, contraction.batch, second.axes, strict=False):
        extent = nest.axis(name).extent
        made = contraction.a.subscripts[first.place_of(mine.name, buffer) or 0].symbol
        taken = written[second.place_of(theirs.name, source) or 0].symbol
        if name in weight or made != name or taken != name or not mine.extent == extent == theirs.extent:
            return
        yield mine.name, name, theirs.name


def _endings(second: ProcedureOp, least: int) -> Iterator[Ending]:
    """Yields the candidates for work on each finished tile of a procedure, or at least on each band."""
    result = second.outputs[0]
    for nest in dict.fromkeys(use.operation.parent_op() for use in result.uses):
        if not isinstance(nest, NestOp) or nest.schedule is not None or any(a.kind != "parallel" for a in nest.axes):
            continue
        reads = [op for op in nest.reads if op.source is result]
        found = {tuple(_levels(second, nest, read)) for read in reads}
        levels = found.pop()
        if not found and len(levels) >= max(1, least) and not any(read.indices for read in reads):
            yield Ending(nest, levels)


def _levels(second: ProcedureOp, nest: NestOp, read: ReadOp) -> Iterator[tuple[str, int]]:
    """Yields, for the leading axes of a procedure that a reader of its result iterates over as well, the reader's axis
    and the number of its elements in one step."""
    blocks: dict[str, int] = {}
    extents = {axis.name: axis.extent for axis in nest.axes}
    for axis in second.axes:
        place = second.place_of(axis.name, second.written_buffers[0])
        step = None if place is None else _step(read.subscripts[place])
        # A symbolic size may occur in place of a step along an axis.
        if step is None or step[0] not in extents:
            return
        name, size = step
        # Inside a block of an outer level, or along the whole axis.
        along = Expr.of(blocks[name]) if name in blocks else extents[name]
        if along.ceildiv(size) != axis.extent or (name in blocks and blocks[name] % size):
            return
        blocks[name] = size
        yield step


def _step(e: Expr) -> tuple[str, int] | None:
    """Returns the axis and the `n` of `axis`, `axis floordiv n` or one of these `mod` something."""
    if e.symbol is not None:
        return e.symbol, 1
    if e.call is None or e.call.fn not in ("floordiv", "mod"):
        return None
    inner = _step(e.call.args[0])
    divisor = e.call.args[1].constant
    if inner is None or e.call.fn == "mod":
        return inner
    return None if divisor is None else (inner[0], inner[1] * divisor)


# -- schedules --------------------------------------------------------------------------------------------------------


def band_choices(kernel: KernelOp, machine: Machine) -> list[Choice]:
    """Returns the schedules of all bands of a kernel."""
    found = list(bands_of(kernel))
    # A reader of several bands is computed with the last: the other results are complete there.
    last = {ending.nest: k for k, bands in enumerate(found) for ending in bands.endings}
    own = [tuple(e for e in bands.endings if last[e.nest] == k) for k, bands in enumerate(found)]
    return [
        _choose(_shared(replace(bands, endings=own[k]), machine), f"b{k}", machine) for k, bands in enumerate(found)
    ]


SHARED_BAND = 2.5
"""The largest intermediates of an image in one band, in second-level caches, that are kept for all images. The threads
then share each stage of an image. A ResNet-50 of symbolic batch takes 0.9 of the time at batch 1 (two threads of a Zen
3), where one thread computed 256 channels of 14 x 14 (2.3 caches) and 512 of 7 x 7 (2.0) alone. Four images of these
take as long as before on one thread, but 128 of 28 x 28 (3.5) 1.09 times as long."""


def _shared(bands: Bands, machine: Machine) -> Bands:
    """Returns the bands, or none where a symbolic batch may be 1 and an image is one band: a single task."""
    batch, size = product(bands.nest.axis(name).extent for _, name, _ in bands.common), ZERO
    for value in (bands.contraction.a.source, bands.nest.outputs[0]):
        size += stored_bytes(value.type)
    if batch.symbol is None or size.symbols != batch.symbols or typical_of(bands.nest).value(batch, 1) != 1:
        return bands
    caches = machine.l2_bytes * max(2, machine.cores) / 2
    fits = size.evaluate({batch.symbol: 1}) <= SHARED_BAND * caches
    return replace(bands, common=()) if fits else bands


def _choose(bands: Bands, label: str, machine: Machine) -> Choice:
    count = len(bands.common)
    outer = [name for _, name, _ in bands.common]
    found = {
        bands.first.label: _of_procedure(bands.first, count, label, machine),
        bands.nest.label: band_product_schedule(bands.nest, bands.contraction, outer, label, machine),
        bands.second.label: _of_procedure(bands.second, len(bands.second.axes), label, machine),
    }
    for ending in bands.endings:
        found[ending.nest.label] = _of_ending(ending, label, machine)
    what = "band by band" if count else "as one band"
    return Choice(found, f"tiles are formed, multiplied and split up {what}")


def _of_procedure(op: ProcedureOp, count: int, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of a procedure whose first `count` axes are common."""
    plain = schedule_procedure(op, machine)
    common = {a.name for a in op.axes[:count]}
    return ScheduleAttr([replace(loop, fuse=label) if loop.axis in common else loop for loop in plain.loops])


def _of_ending(ending: Ending, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of a nest on tiles: blocks of its axes, and inside them vectors along the contiguous dim,
    the last of the tiles' results."""
    nest = ending.nest
    outer = [Loop(name, by=step, fuse=label) for name, step in ending.levels]
    # A last step of one element is a level itself; otherwise a loop over the elements of the last block remains.
    last = dict(ending.levels)
    inside = [Loop(name) for name, step in last.items() if step > 1]
    rest = [Loop(a.name) for a in nest.axes if a.name not in last and a.extent != ONE]
    ones = [Loop(a.name) for a in nest.axes if a.name not in last and a.extent == ONE]
    steps: list[Step] = [*outer, *inside, *rest]
    if rest:
        lanes = rest[-1].axis
        steps = with_words(steps, lanes, vector=vector_width(nest, machine, lanes))
    return ScheduleAttr([*ones, *on_threads(steps, {a.name for a in nest.axes})])
