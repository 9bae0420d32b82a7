"""What a `Module` can say of its model, and do to it, besides compiling: the toolbox in Python.

Each method is one verb of the command line (`docs/toolbox.md`). Those that look return frozen data and leave the module
as it is; those that change it run a pass of the same name in place and return the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.context import IgniterContext


class ModelTools:
    """The verbs of the toolbox, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext
