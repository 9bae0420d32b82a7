"""Expressions as text: `4*n + (m floordiv 2)`.

Text comes from files, so its nesting and the size of the result are bounded; a `ValueError` names the bound.
"""

from __future__ import annotations

import re
from typing import Protocol

from igniter.dialects.sym.expr import BARE, KEYWORDS, Expr, call

_TOKEN = re.compile(r'\s*(?:([A-Za-z_][A-Za-z0-9_$.]*)|(\d+)|("[^"]*")|([-+*(),]))')

MAX_NESTING = 64
"""The maximum nesting of parentheses, calls and signs. Expressions of dims have at most `MAX_DEPTH` calls."""
MAX_PRODUCT = 4096
"""The maximum number of terms of an expanded product."""
MAX_TOKENS = 2000
"""The maximum number of tokens of a text; adding its terms takes quadratic time."""
MAX_ARGUMENTS = 64
"""The maximum number of arguments of a minimum or maximum, which are compared pairwise."""


class Tokens(Protocol):
    """A stream of token texts; `peek` gives "" at the end."""

    def peek(self) -> str: ...
    def next(self) -> str: ...


class TextTokens:
    """The tokens of a string."""

    def __init__(self, text: str):
        self._tokens: list[str] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"unexpected {text[position:]!r} in expression {text!r}")
            self._tokens.append(match.group(match.lastindex or 0))
            position = match.end()
            if len(self._tokens) > MAX_TOKENS:
                raise ValueError(f"an expression has at most {MAX_TOKENS} names, numbers and signs")
        self._tokens.reverse()

    def peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def next(self) -> str:
        return self._tokens.pop() if self._tokens else ""


def parse_expr(tokens: Tokens, depth: int = 0) -> Expr:
    """Parses one expression at the front of `tokens`, nested in `depth` others; raises `ValueError` with the expected
    token."""
    if depth > MAX_NESTING:
        raise ValueError(f"expressions are nested at most {MAX_NESTING} deep")
    result = _parse_product(tokens, depth)
    while tokens.peek() in ("+", "-"):
        sign = tokens.next()
        right = _parse_product(tokens, depth)
        result = result + right if sign == "+" else result - right
    return result


def _parse_product(tokens: Tokens, depth: int) -> Expr:
    result = _parse_atom(tokens, depth)
    while tokens.peek() in ("*", "floordiv", "mod"):
        operator = tokens.next()
        right = _parse_atom(tokens, depth)
        if operator == "*":
            if len(result.terms) * len(right.terms) > MAX_PRODUCT:
                raise ValueError(f"a product of sums has more than {MAX_PRODUCT} terms")
            result = result * right
        else:
            result = call(operator, [result, right])
        if result.depth > MAX_NESTING:
            raise ValueError(f"quotients are nested at most {MAX_NESTING} deep")
    return result


def _parse_atom(tokens: Tokens, depth: int) -> Expr:
    token = tokens.next()
    if token == "-":
        signs = 1
        while tokens.peek() == "-":
            tokens.next()
            signs += 1
        inner = _parse_atom(tokens, depth)
        return -inner if signs % 2 else inner
    if token == "(":
        result = parse_expr(tokens, depth + 1)
        _expect(tokens, ")")
        return result
    if token in ("min", "max") and tokens.peek() == "(":
        tokens.next()
        args = [parse_expr(tokens, depth + 1)]
        while tokens.peek() == ",":
            tokens.next()
            args.append(parse_expr(tokens, depth + 1))
            if len(args) > MAX_ARGUMENTS:
                raise ValueError(f"a {token}imum has at most {MAX_ARGUMENTS} arguments")
        _expect(tokens, ")")
        return call(token, args)
    if token.isdigit():
        return Expr.of(int(token))
    if token.startswith('"'):
        return Expr.of(token[1:-1])
    if BARE.fullmatch(token) and token not in KEYWORDS:
        return Expr.of(token)
    raise ValueError(f"expected an integer expression, found {token!r}")


def _expect(tokens: Tokens, text: str) -> None:
    found = tokens.next()
    if found != text:
        raise ValueError(f"expected {text!r} in an expression, found {found!r}")
