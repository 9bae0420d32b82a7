"""The parser of IR: xDSL's, with an error at the first use of an undefined value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

UNDEFINED = "values used but not defined"
"""The start of xDSL's error, at the end of the file."""


SUGGESTIONS = 8
"""The number of values that may get a suggestion; each keeps a list of names."""


_SUFFIXES = re.compile(r"(_[0-9]+){2,}$")
"""The numeric suffixes of which xDSL strips the last one from the name of a value."""


class ReportingParser(Parser):
    """A parser of modules with an error at the first use of an undefined value.

    A value whose name has several numeric suffixes loses all of them: with one left, the value would be printed by the
    name of another value with its suffix.
    """

    def __init__(self, ctx: Context, input: str | bytes, name: str = "<unknown>") -> None:
        super().__init__(ctx, input, name)
        self._first_uses: dict[str, Span] = {}
        self._defined: dict[str, list[str]] = {}
        """The values defined at the first uses, for suggestions."""

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        if _SUFFIXES.search(name) and SSAValue.is_valid_name(name):
            for value in values:
                value.name_hint = _SUFFIXES.sub("", name) or None

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        found = super().parse_optional_unresolved_operand()
        if found is not None and found.operand_name not in self.ssa_values:
            self._first_uses.setdefault(found.operand_name, found.span)
            if len(self._defined) < SUGGESTIONS:
                self._defined.setdefault(found.operand_name, list(self.ssa_values))
        return found

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parses a module; an undefined value is a `ParseError` at its first use."""
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            missing = [name for name in self.forward_ssa_references if name in self._first_uses]
            if not missing or UNDEFINED not in str(error):
                raise
            missing.sort(key=lambda name: self._first_uses[name].start)
            raise ParseError(self._first_uses[missing[0]], self._message(missing)) from None

    def _message(self, missing: list[str]) -> str:
        first, *others = missing
        close = difflib.get_close_matches(first, self._defined.get(first, []), n=1)
        hint = f"; did you mean %{close[0]}?" if close else ""
        rest = f"; also undefined: {_listed(others)}" if others else ""
        return f"%{first} is used, but not defined{rest}{hint}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"%{name}" for name in names)
