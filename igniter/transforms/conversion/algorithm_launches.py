"""The launches of procedures, by their algorithm (`igniter.dialects.loop.algorithms`).

prefix   blocks of rows, steps and columns: a scan along the steps (`prefix_body.py`)
top      blocks of ranked elements and of others: the rank of an element is the number of others that come first,
         and the elements with a rank below k are stored at it (`ranking_body.py`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from igniter.dialects.loop import PrefixAttr, ScatterAttr, TopAttr
from igniter.dialects.sym import dims_of
from igniter.transforms.conversion.prefix_body import PrefixBody
from igniter.transforms.conversion.ranking_body import ranking_bodies
from igniter.transforms.conversion.scatter_body import scatter_bodies

if TYPE_CHECKING:
    from igniter.dialects.loop.schedule import Launch
    from igniter.schedules.launch_groups import LaunchGroup
    from igniter.transforms.conversion.algorithm_body import MakeDim, Scratch
    from igniter.transforms.conversion.launch_body import LaunchBody


def bodies_of(
    name: str, group: LaunchGroup, dim: MakeDim, scratch: Scratch, symbols: Sequence[str]
) -> Iterator[tuple[LaunchBody, Launch]]:
    """Yields the kernels of a procedure's launches, in their order, with their parameters."""
    procedure = group.procedure
    assert procedure is not None
    assert procedure.schedule is not None
    launch = procedure.schedule.launch
    assert launch is not None
    if isinstance(procedure.computes, PrefixAttr):
        rows, steps, columns = dims_of(procedure.inputs[0].type)
        dims = [dim("rows", rows), dim("steps", steps), dim("columns", columns)]
        yield PrefixBody(name, group, dims, symbols), launch
    elif isinstance(procedure.computes, TopAttr):
        for body in ranking_bodies(name, group, dim, scratch, symbols):
            yield body, launch
    elif isinstance(procedure.computes, ScatterAttr):
        for body in scatter_bodies(name, group, dim, scratch, symbols):
            yield body, launch
