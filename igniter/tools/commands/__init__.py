"""What the commands of the toolbox take, by group; `igniter.tools.main` has those that compile, verify and time.

Each module has an `add_to(app)`. What a command does is in the module of its name in `igniter.tools.cli`.
"""

from __future__ import annotations

import typer

from igniter.tools.commands import edit


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool, in the order in which its help lists them."""
    edit.add_to(app)
