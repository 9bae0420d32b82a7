"""Tokens of LLVM assembly, for rewriting a line without changing the rest of it.

The tokens of a text, joined, are the text: blanks and comments are tokens as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Tokens = list[str]

_TOKEN = re.compile(r'[%@$!c#]?"[^"]*"|;[^\n]*|\s+|[()\[\]{}<>,=]|[^\s()\[\]{}<>,="]+')
_OPEN, _CLOSE = "([{<", ")]}>"


def tokens_of(text: str) -> Tokens:
    """Returns the tokens of a line or of a whole text."""
    return _TOKEN.findall(text)


def closing(tokens: Sequence[str], at: int) -> int:
    """Returns the position of the bracket that closes the one at `at`."""
    depth = 0
    for k in range(at, len(tokens)):
        if tokens[k] in _OPEN:
            depth += 1
        elif tokens[k] in _CLOSE:
            depth -= 1
            if depth == 0:
                return k
    raise ValueError(f"a bracket is not closed: {''.join(tokens)}")


def split_list(tokens: Sequence[str]) -> list[Tokens]:
    """Splits at the commas outside of brackets; the parts have no blanks around them."""
    parts: list[Tokens] = []
    part: Tokens = []
    depth = 0
    for token in tokens:
        if token == "," and depth == 0:
            parts.append(_trimmed(part))
            part = []
            continue
        depth += (token in _OPEN) - (token in _CLOSE)
        part.append(token)
    part = _trimmed(part)
    return [*parts, part] if part or parts else []


def _trimmed(tokens: Tokens) -> Tokens:
    start, end = 0, len(tokens)
    while start < end and tokens[start].isspace():
        start += 1
    while end > start and tokens[end - 1].isspace():
        end -= 1
    return tokens[start:end]


@dataclass
class Callee:
    """The use of a function in a line: a call, or its declaration."""

    before: Tokens
    name: str
    args: list[Tokens]
    after: Tokens

    @property
    def is_declaration(self) -> bool:
        return self.before[:1] == ["declare"]

    @property
    def result(self) -> str:
        """The type before the name."""
        kept = _trimmed(self.before)
        if kept[-1] != ">":
            return kept[-1]
        return "".join(kept[_opening(kept, len(kept) - 1) :])

    def text(self) -> str:
        args = ", ".join("".join(a) for a in self.args)
        return f"{''.join(self.before)}@{self.name}({args}){''.join(self.after)}"


def callee_of(line: str, prefix: str) -> Callee | None:
    """Returns the first function of a line whose name has the prefix; `None` without one."""
    tokens = tokens_of(line)
    for k, token in enumerate(tokens[:-1]):
        if token.startswith(f"@{prefix}") and tokens[k + 1] == "(":
            end = closing(tokens, k + 1)
            return Callee(tokens[:k], token[1:], split_list(tokens[k + 2 : end]), tokens[end + 1 :])
    return None


def type_of(arg: Sequence[str]) -> str:
    """Returns the type of an argument: its first word, or its vector type."""
    return "".join(arg[: closing(arg, 0) + 1]) if arg[0] == "<" else arg[0]


def _opening(tokens: Sequence[str], at: int) -> int:
    """Returns the position of the bracket that the one at `at` closes."""
    depth = 0
    for k in range(at, -1, -1):
        if tokens[k] in _CLOSE:
            depth += 1
        elif tokens[k] in _OPEN:
            depth -= 1
            if depth == 0:
                return k
    raise ValueError(f"a bracket is not opened: {''.join(tokens)}")


def spell_splats(line: str) -> str:
    """Writes every `splat (T c)` as a list of its elements; their number is that of the last vector type before it."""
    if "splat" not in line:
        return line
    tokens = tokens_of(line)
    result: Tokens = []
    k = 0
    while k < len(tokens):
        if tokens[k] != "splat":
            result.append(tokens[k])
            k += 1
            continue
        start = next(i for i in range(k + 1, len(tokens)) if tokens[i] == "(")
        end = closing(tokens, start)
        element = "".join(tokens[start + 1 : end])
        result.append(f"<{', '.join([element] * _lanes_before(result))}>")
        k = end + 1
    return "".join(result)


def _lanes_before(tokens: Sequence[str]) -> int:
    """Returns the number of lanes of the last vector type (`<16 x float>`) among the tokens."""
    for k in range(len(tokens) - 5, -1, -1):
        if tokens[k] == "<" and tokens[k + 1].isdecimal() and tokens[k + 3] == "x":
            return int(tokens[k + 1])
    raise ValueError(f"no vector type stands before 'splat': {''.join(tokens)}")
