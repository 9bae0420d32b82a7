"""`--verify-roundtrip`: printed IR reads back as the same IR, in both syntaxes."""

from __future__ import annotations

from difflib import ndiff

from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.generic_text import IrParser
from igniter.errors import IgniterError
from igniter.toolbox.ir_text import module_text


def require_roundtrip(ctx: IgniterContext, module: ModuleOp) -> None:
    """Raises `IgniterError` with the first line that changes when the printed module is read and printed again."""
    expected = module_text(module)
    for generic in (False, True):
        text = module_text(module, generic=generic)
        found = module_text(IrParser(ctx, text, "<printed IR>").parse_module())
        if found != expected:
            changed = [line for line in ndiff(expected.splitlines(), found.splitlines()) if line[0] in "+-"]
            syntax = "generic" if generic else "custom"
            raise IgniterError(f"IR printed in the {syntax} syntax reads back as other IR: " + "\n".join(changed[:2]))
