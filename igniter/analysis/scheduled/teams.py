"""For which programs threads stay together: what is decided about their entry.

A program that enters the thread pool once, and not once a step, saves what waking threads costs; one that is short does
not get that back. Its weights are what is known of how long it takes.
"""

from __future__ import annotations

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import CallOp, ForOp, FuncOp, Team, element_bytes
from igniter.dialects.sym import dims_of, element_of


def team_for(func: FuncOp, machine: MachineModel) -> Team | None:
    """The team that is worth keeping for a program on `machine`: as many runs of the pool as a loop has tasks at most,
    since no step has work for more."""
    # A call in a loop is many.
    calls = sum(2 if isinstance(op.parent_op(), ForOp) else 1 for op in func.walk() if isinstance(op, CallOp))
    inputs = func.block.args[: len(func.block.args) - func.output_count]
    total = 0
    for arg in inputs:
        size = element_bytes(element_of(arg.type))
        for dim in dims_of(arg.type):
            size *= dim.constant or 0
        total += size
    return Team(machine.most_tasks, machine.idle_looks) if calls > 1 and total >= machine.team_bytes else None
