"""`--verify-diagnostics`: the errors expected by a test file.

    // expected-error {{found nothing to tile}}
    // expected-error @+1 {{expected a type}}

The text between the braces must occur in an error of the chunk. A position (`@+1`, `@-2`, `@below`, `@above`) is
checked for errors with a position: those of the parser.
"""

from __future__ import annotations

import dataclasses
import re

from xdsl.utils.exceptions import ParseError

_EXPECTED = re.compile(r"//\s*expected-error\s*(?:@(?P<at>[-+]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}")


def has_expectations(data: bytes) -> bool:
    """True if a chunk contains expected errors."""
    return b"expected-error" in data


def _messages(error: BaseException | None) -> list[str]:
    """Returns the texts of an error, its causes and notes."""
    found: list[str] = []
    while error is not None:
        found.extend([str(error), *getattr(error, "__notes__", ())])
        error = error.__cause__
    return found


def _line_of(error: BaseException | None) -> int | None:
    if not isinstance(error, ParseError):
        return None
    return dataclasses.replace(error.span, line_offset=0).get_location().line


def check_expected(data: bytes, failure: BaseException | None, offset: int) -> list[str]:
    """Returns the mismatches between `failure` and the expectations in the chunk; empty if it is as expected."""
    problems: list[str] = []
    said = "\n".join(_messages(failure))
    line = _line_of(failure)
    expected = 0
    for number, source in enumerate(data.decode().splitlines(), start=1):
        for match in _EXPECTED.finditer(source):
            expected += 1
            text, at = match["text"], match["at"]
            if text not in said:
                got = f"the error was: {said.strip()}" if failure is not None else "there was no error"
                problems.append(f"line {number + offset}: expected error '{text}' was not produced; {got}")
                continue
            shift = {None: 0, "above": -1, "below": 1}.get(at) if at in (None, "above", "below") else int(at or 0)
            if at is not None and line is not None and line != number + (shift or 0):
                problems.append(f"line {number + offset}: error '{text}' came from line {line + offset}")
    if expected == 0:
        problems.append(f"line {offset + 1}: an 'expected-error' comment without its {{{{text}}}}")
    return problems
