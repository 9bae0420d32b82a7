"""Schedules of procedures for GPUs, by their algorithm (`igniter.dialects.loop.algorithms`).

* `prefix`: about a thousand elements per program. Rows side by side if the scan is along the contiguous dim, else
  columns side by side; a long dim is scanned block after block.
* `top`: blocks of ranked elements and others. A long row is first narrowed to its k candidates (`steps`) if the
  estimate is lower: comparing all elements of a row takes time in its square.
* `scatter`: a thousand elements per program, in three launches.
"""

from __future__ import annotations

from igniter.analysis.typical_sizes import MEMORY, typical_of
from igniter.dialects.loop import PrefixAttr, ProcedureOp, ScatterAttr, element_bytes
from igniter.dialects.loop.schedule import Launch, Loop, ScheduleAttr, Step
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr
from igniter.schedules.author import Choice

ELEMENTS = 1024
"""The elements of a block."""
LONGEST = 2048
"""The most steps of a block."""
SIDE = 64
"""The columns of a block: a line of memory and more."""
RANKED, COMPARED = 32, 64
"""The elements of a block of comparisons, and the others that each is compared with."""
NARROWED = 2048
"""The elements of a block of a row that is narrowed."""
COMPARISONS = 4e12
"""The comparisons of a GPU in a second; a fifth of the ops of an A100."""
BLOCK_SECONDS = 0.8e-6
"""The time of a program for a block of a row that is narrowed: two barriers, and loads from the cache."""
PROGRAMS = 108
"""The programs that narrow rows at once: an A100 has so many multiprocessors."""


def algorithm_choice(op: ProcedureOp) -> Choice:
    """Returns the launches of a procedure with an algorithm."""
    if isinstance(op.computes, ScatterAttr):
        loops = [_steps(name, ELEMENTS, grid=True) for name in op.computes.dims]
        return Choice({op.label: _schedule(loops, 4)}, f"three launches, blocks of {ELEMENTS}")
    schedule, what = _prefix(op) if isinstance(op.computes, PrefixAttr) else _top(op)
    return Choice({op.label: schedule}, what)


def _power(extent: Expr, most: int) -> int:
    """Returns the number of elements, rounded up to a power of two, at most `most`; `most` for an unknown extent."""
    known = extent.constant
    return most if known is None else min(most, 1 << max(0, known - 1).bit_length())


def _steps(name: str, lanes: int, *, grid: bool = False, looped: bool = False) -> tuple[list[Step], list[Step]]:
    """Returns the outer and the inner loop of a dim."""
    outer: list[Step] = [Loop(name, by=lanes, grid=grid)] if grid or looped else []
    inner: list[Step] = [Loop(name, vector=lanes)] if lanes > 1 else [] if outer else [Loop(name)]
    return outer, inner


def _schedule(loops: list[tuple[list[Step], list[Step]]], warps: int) -> ScheduleAttr:
    return ScheduleAttr(
        [*(s for outer, _ in loops for s in outer), *(s for _, inner in loops for s in inner), Launch(warps)]
    )


def _prefix(op: ProcedureOp) -> tuple[ScheduleAttr, str]:
    rows, steps, columns = dims_of(op.inputs[0].type)
    wide = _power(columns, SIDE)
    long = _power(steps, LONGEST if columns == ONE else ELEMENTS // wide)
    many = _power(rows, max(1, ELEMENTS // (long * wide)))
    looped = steps.constant is None or steps.constant > long
    size = many * long * wide
    loops = [
        _steps("rows", many, grid=True),
        _steps("columns", wide, grid=True),
        _steps("steps", long, looped=looped),
    ]
    sequence = ", in sequence" if looped else ""
    return _schedule(loops, 8 if size > ELEMENTS else 4), f"one launch, blocks of {many} x {long} x {wide}{sequence}"


def _top(op: ProcedureOp) -> tuple[ScheduleAttr, str]:
    rows, extent, _ = dims_of(op.inputs[0].type)
    kept = dims_of(op.outputs[0].type)[1]
    narrow = _narrows(op)
    ranked_extent = kept if narrow else extent
    ranked, others = _power(ranked_extent, RANKED), _power(ranked_extent, COMPARED)
    many = _power(rows, max(1, RANKED * COMPARED // (ranked * others)))
    known = ranked_extent.constant
    loops = [
        _steps("rows", many, grid=True),
        _steps("ranked", ranked, grid=True),
        _steps("columns", 1, grid=True),
        _steps("others", others, looped=known is None or known > others),
    ]
    if narrow:
        loops.append(_steps("steps", NARROWED, looped=True))
    what = "two launches, candidates first," if narrow else "one launch,"
    return _schedule(loops, 8 if narrow else 4), f"{what} blocks of {many} x {ranked} elements and {others} others"


def _narrows(op: ProcedureOp) -> bool:
    """True if a launch that finds the candidates pays, at the typical sizes."""
    rows, extent, columns = (typical_of(op).value(e, MEMORY) for e in dims_of(op.inputs[0].type))
    kept = typical_of(op).value(dims_of(op.outputs[0].type)[1], MEMORY)
    if dims_of(op.inputs[0].type)[1].constant is None:
        # The rows that are long are the ones to be quick for.
        extent = max(extent, NARROWED)
    whole = rows * columns * extent * extent / COMPARISONS
    passes = 4 * element_bytes(element_of(op.inputs[0].type)) + 2
    waves = -(-rows * columns // PROGRAMS)
    narrowing = waves * passes * -(-extent // NARROWED) * BLOCK_SECONDS
    return narrowing + rows * columns * kept * kept / COMPARISONS < whole
