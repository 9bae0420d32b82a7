"""IR as text."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from igniter.dialects.generic_text import GenericPrinter


def module_text(module: ModuleOp, *, generic: bool = False) -> str:
    """Returns the module as text, with a final newline."""
    out = StringIO()
    printer = GenericPrinter(stream=out, print_generic_format=True) if generic else Printer(stream=out)
    printer.print_op(module)
    return out.getvalue() + "\n"
