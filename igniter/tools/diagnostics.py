"""`--verify-diagnostics`: the errors that a test file says it expects.

    // expected-error {{found nothing to tile}}
    // expected-error @+1 {{expected a type}}

The text between the braces must occur in an error of the chunk. A position (`@+1`, `@-2`, `@below`, `@above`) is
checked for errors that have one: those of the parser.
"""

from __future__ import annotations

import dataclasses
import re

from xdsl.utils.exceptions import ParseError

_EXPECTED = re.compile(r"//\s*expected-error\s*(?:@(?P<at>[-+]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}")


def has_expectations(data: bytes) -> bool:
    """Whether a chunk says which errors it expects."""
    return b"expected-error" in data


def _messages(error: BaseException | None) -> list[str]:
    """What an error says, and what its causes and notes say."""
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
    """What is wrong with `failure`, given the expectations in the chunk; nothing when it is as expected."""
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
