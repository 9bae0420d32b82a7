"""The options of the toolbox's commands, by group; `igniter.tools.main` has those for compiling, verifying and timing.

Each module has an `add_to(app)`. The work of a command is in the module of its name in `igniter.tools.cli`.
"""

from __future__ import annotations

import typer

from igniter.tools.commands import diff, edit, fuse, installation, plan, profile, report, shapes, split, torch, weights


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool, in the order of its help."""
    shapes.add_to(app)
    profile.add_to(app)
    plan.add_to(app)
    diff.add_to(app)
    report.add_to(app)
    edit.add_to(app)
    fuse.add_to(app)
    weights.add_to(app)
    split.add_to(app)
    torch.add_to(app)
    installation.add_to(app)
