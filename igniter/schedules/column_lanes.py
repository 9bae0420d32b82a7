"""Groups of nests whose vectors run along their last common axis: rows that are strided in memory, side by side."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from igniter.dialects.loop import Axis, NestOp, element_bytes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width
from igniter.schedules.vector_axes import strides_along


def column_lanes(group: Group, machine: Machine) -> int | None:
    """Returns the lanes of the group's last common axis, if that axis and not each nest's own should be the vector.

    That is so where the rows of a group are strided in memory: a softmax over the channels of `[batch, channel, time]`
    reads with a stride along its rows, and contiguously from row to row. The axis is moved last among the common ones.
    """
    if len(group.members) < 2 or not group.levels:
        return None
    inner = 0
    for nest in group.members:
        common = {names[nest.label] for _, names in group.levels}
        inner += min((_access_cost(nest, a.name, group) for a in nest.axes if a.name not in common), default=0)
    across = [sum(_access_cost(nest, names[nest.label], group) for nest in group.members) for _, names in group.levels]
    best = min(range(len(across)), key=lambda k: (across[k], -k))
    if across[best] >= inner or group.levels[best][0].constant == 1:
        return None
    group.levels.append(group.levels.pop(best))
    return min(vector_width(nest, machine, group.levels[-1][1][nest.label]) for nest in group.members)


def _access_cost(nest: NestOp, axis: str, group: Group) -> int:
    """Returns the cost of a nest's accesses with `axis` as the vector, in quarters of a vector access. It is 0 for a
    nest without loops inside the common ones, which runs once a row."""
    common = {names[nest.label] for _, names in group.levels}
    if all(a.name in common or a.extent == ONE for a in nest.axes):
        return 0
    cost = 0
    for value, stride in _group_strides(nest, axis):
        if stride == ZERO:
            cost += 1
        elif stride == ONE or _stays_in(value, group):
            cost += 4
        else:
            cost += 32
    return cost


def _group_strides(nest: NestOp, axis: str) -> list[tuple[SSAValue, Expr | None]]:
    """Returns every tensor that a nest reads or writes, with its stride along `axis`."""
    values = [*(op.source for op in nest.reads), *nest.outputs]
    return [(value, stride) for value, (stride, _) in zip(values, strides_along(nest, axis), strict=True)]


def _stays_in(value: SSAValue, group: Group) -> bool:
    """True if only the nests of a group use a value; they may then store it in any order."""
    return value.owner in group.members and all(use.operation.parent_op() in group.members for use in value.uses)


def _columns(group: Group, width: int, machine: Machine) -> int:
    """Returns the vectors in a tile of columns: enough independent sums to hide latency, and whole stretches of memory
    for the prefetcher; fewer where each of them keeps a long row."""
    kept = 0
    for nest in group.members:
        common = {names[nest.label] for _, names in group.levels}
        row = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name not in common).constant or 1
        kept += sum(row * element_bytes(element_of(r.type)) for r in nest.outputs if _stays_in(r, group))
    columns = machine.sum_chains
    while columns > 1 and kept * width * columns > machine.tile_bytes:
        columns //= 2
    return columns


def schedule_columns(nest: NestOp, group: Group, label: str, width: int, machine: Machine) -> ScheduleAttr:
    """Returns a schedule with the tiles of the last common axis below all loops inside it, as unrolled vectors."""
    common = [names[nest.label] for _, names in group.levels]
    inside = [a.name for kind in ("parallel", "reduction") for a in nest.axes if a.kind == kind]
    order = [*common, *(n for n in inside if n not in common)]
    plans = {n: AxisPlan(Loop(n, fuse=label)) for n in common}
    plans[common[0]].words = replace(plans[common[0]].words, threads=0)
    lanes = plans[common[-1]]
    lanes.tile, lanes.tail, lanes.below = width * _columns(group, width, machine), "peel", "loops"
    lanes.inner = Loop(common[-1], vector=width, unroll=0)
    across = _square_axis(nest, common[-1], group)
    if across is not None and (across.extent.constant or width) >= width:
        plans[across.name] = AxisPlan(inner=Loop(across.name, unroll=0), tile=width, tail="rest")
    return in_order(nest, order, plans)


def _square_axis(nest: NestOp, lanes: str, group: Group) -> Axis | None:
    """Returns an inner axis with contiguous accesses where those along `lanes` are strided: the two form squares, to be
    transposed in registers."""
    common = {names[nest.label] for _, names in group.levels}
    along = _group_strides(nest, lanes)
    for axis in nest.axes:
        if axis.name in common or axis.extent == ONE:
            continue
        for (value, here), (_, there) in zip(along, _group_strides(nest, axis.name), strict=True):
            if there == ONE and here not in (ZERO, ONE) and not _stays_in(value, group):
                return axis
    return None
