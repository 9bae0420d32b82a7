"""IR as text."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer


def module_text(module: ModuleOp, *, generic: bool = False) -> str:
    """Returns the module as text, with a final newline."""
    out = StringIO()
    printer = Printer(stream=out, print_generic_format=generic)
    printer.print_op(module)
    return out.getvalue() + "\n"
