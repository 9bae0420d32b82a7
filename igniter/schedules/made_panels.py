"""Panels made from a weight during its multiplication: the floats decoded from codes of few bits.

    %w = loop.nest "panels" [p: parallel 192, b: .., k: .., l: parallel 16] -> .. { .. yield none at [p, b, k, l] }
    %y = loop.nest "product" [i: parallel rows, j: parallel 3072, d: reduction 768] -> .. {
      .. loop.read %v[j floordiv 16, d, j mod 16] ..                                    // %v a view of %w
    }

All rows share the panels, and one group of panels is enough at a time. So the two nests share a loop over groups of
panels, with columns outermost, and the intermediate is a group of panels in the second-level cache. No other axis of
the product may be outside this loop: all panels would be made again for each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from igniter.analysis.structured.contractions import Contraction, contraction_of, offset_of
from igniter.analysis.structured.nest_bodies import tensor_behind
from igniter.dialects.loop import KernelOp, NestOp, ViewOp
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, linearize
from igniter.dialects.sym.ranges import Ranges
from igniter.schedules.scheduling import Machine, vector_width

MOST_TASKS = 16
"""The most tasks of a product. Each task has panels of its own. Many tasks would need the memory of the whole weight,
and lines outside of all caches."""


MOST_UNROLLED = 16
"""The most unrolled steps: the numbers of a word or a byte, whose shifts are then constants."""


@dataclass(frozen=True)
class MadePanels:
    """The producer of a product's panels; `steps` of its first axis are a panel."""

    nest: NestOp
    steps: int


def made_panels(contraction: Contraction) -> MadePanels | None:
    """Returns the producer of the right factor of a product of weights, without other uses; `None` for an input or
    another intermediate."""
    value = tensor_behind(contraction.b.source)
    maker = value.owner
    if not isinstance(maker, NestOp) or maker.schedule is not None or len(maker.outputs) != 1:
        return None
    if any(a.kind != "parallel" for a in maker.axes) or maker.yield_op.clauses[0].combiner != "none":
        return None
    if any(not isinstance(tensor_behind(r.source), BlockArgument) for r in maker.reads) or not _is_read_once(maker):
        return None
    # A nest of one read is a copy in the order of its source.
    if len(maker.reads) < 2:
        return None
    axes = [a for a in maker.axes if a.extent != ONE]
    written = maker.yield_op.clauses[0].subscripts
    if len(axes) < 2 or written[0] != Expr.of(axes[0].name):
        return None
    offset = linearize(written, dims_of(maker.outputs[0].type))
    own, whole = offset.coefficient(axes[0].name), _panel_step(contraction)
    if own is None or own.constant is None or whole is None or own.constant == 0 or whole % own.constant:
        return None
    steps = whole // own.constant
    count = axes[0].extent.constant
    return MadePanels(maker, steps) if count is not None and count % steps == 0 else None


def makers_of(kernel: KernelOp) -> Iterator[NestOp]:
    """Yields the producers of panels in a kernel."""
    for nest in kernel.nests:
        found = contraction_of(nest) if nest.schedule is None else ""
        made = None if isinstance(found, str) else made_panels(found)
        if made is not None:
            yield made.nest


def _is_read_once(maker: NestOp) -> bool:
    """True if exactly one nest reads the results of a nest, through views or not."""
    todo: list[SSAValue] = [maker.outputs[0]]
    readers = set[NestOp]()
    while todo:
        for use in todo.pop().uses:
            if isinstance(use.operation, ViewOp):
                todo.append(use.operation.result)
                continue
            reader = use.operation.parent_op()
            if not isinstance(reader, NestOp):
                return False
            readers.add(reader)
    return len(readers) == 1


def _panel_step(contraction: Contraction) -> int | None:
    """Returns the distance between panels of the right factor, in elements."""
    product = contraction.b.parent_op()
    assert isinstance(product, NestOp)
    lanes = panel_lanes(element_of(product.outputs[0].type))
    axes = dict(product.axes_attr.ranges.axes)
    extent = product.axis(contraction.columns).extent
    axes |= {"$p": (ZERO, extent.ceildiv(lanes)), "$l": (ZERO, Expr.of(lanes))}
    at = {contraction.columns: Expr.of("$p") * lanes + Expr.of("$l")}
    step = offset_of(product, contraction.b, at, Ranges(axes)).coefficient("$p")
    return None if step is None else step.constant


def panels_of_a_task(made: MadePanels) -> int:
    """Returns the panels of a task when there are `MOST_TASKS` tasks."""
    count = next(a.extent.constant for a in made.nest.axes if a.extent != ONE)
    assert count is not None
    return -(-count // (made.steps * MOST_TASKS))


def grain_of(made: MadePanels, panels: int) -> int:
    """Returns the groups of `panels` panels in a task: each task has memory for one group."""
    count = next(a.extent.constant for a in made.nest.axes if a.extent != ONE)
    assert count is not None
    groups = -(-count // (panels * made.steps))
    return -(-groups // MOST_TASKS)


def maker_schedule(made: MadePanels, panels: int, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of the producer of panels, `panels` at a time, in the loop over columns of its product."""
    axes = [a.name for a in made.nest.axes if a.extent != ONE]
    first, last = axes[0], axes[-1]
    size, grain = panels * made.steps, grain_of(made, panels)
    shared = Loop(first, by=size, fuse=label, threads=grain)
    unrolled: set[str] = set()
    steps = 1
    for name in axes[1:-1][::-1]:
        steps *= made.nest.axis(name).extent.constant or MOST_UNROLLED + 1
        if steps > MOST_UNROLLED:
            break
        unrolled.add(name)
    ones = [Loop(a.name) for a in made.nest.axes if a.extent == ONE]
    inside = [Loop(first)] if size > 1 else []
    rest = [Loop(name, unroll=0 if name in unrolled else None) for name in axes[1:-1]]
    lanes = Loop(last, vector=vector_width(made.nest, machine, last), unroll=0)
    return ScheduleAttr([*ones, shared, *inside, *rest, lanes])


__all__ = ["MadePanels", "made_panels", "maker_schedule", "makers_of", "panels_of_a_task"]
