"""Thread teams: the programs whose threads stay together, decided at their entry.

A program that enters the thread pool once, and not once a step, saves the cost of waking threads; a short program does
not regain the cost. The size of its weights is the only known estimate of its duration.
"""

from __future__ import annotations

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import CallOp, ForOp, FuncOp, Team, stored_bytes


def team_for(func: FuncOp, machine: MachineModel) -> Team | None:
    """Returns the team worth keeping for a program on `machine`: at most as many runs of the pool as a loop has tasks,
    since no step has work for more."""
    # A call in a loop counts as several.
    calls = sum(2 if isinstance(op.parent_op(), ForOp) else 1 for op in func.walk() if isinstance(op, CallOp))
    inputs = func.block.args[: len(func.block.args) - func.output_count]
    # A symbolic size counts as 0.
    total = sum(stored_bytes(arg.type).constant or 0 for arg in inputs)
    return Team(machine.most_tasks, machine.idle_looks) if calls > 1 and total >= machine.team_bytes else None
