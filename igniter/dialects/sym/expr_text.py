"""Expressions as text: `4*n + (m floordiv 2)`."""

from __future__ import annotations

import re
from typing import Protocol

from igniter.dialects.sym.expr import BARE, KEYWORDS, Expr, call

_TOKEN = re.compile(r'\s*(?:([A-Za-z_][A-Za-z0-9_$.]*)|(\d+)|("[^"]*")|([-+*(),]))')


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
        self._tokens.reverse()

    def peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def next(self) -> str:
        return self._tokens.pop() if self._tokens else ""


def parse_expr(tokens: Tokens) -> Expr:
    """One expression from the front of `tokens`; `ValueError` says what was expected."""
    result = _parse_product(tokens)
    while tokens.peek() in ("+", "-"):
        sign = tokens.next()
        right = _parse_product(tokens)
        result = result + right if sign == "+" else result - right
    return result


def _parse_product(tokens: Tokens) -> Expr:
    result = _parse_atom(tokens)
    while tokens.peek() in ("*", "floordiv", "mod"):
        operator = tokens.next()
        right = _parse_atom(tokens)
        result = result * right if operator == "*" else call(operator, [result, right])
    return result


def _parse_atom(tokens: Tokens) -> Expr:
    token = tokens.next()
    if token == "-":
        return -_parse_atom(tokens)
    if token == "(":
        result = parse_expr(tokens)
        _expect(tokens, ")")
        return result
    if token in ("min", "max") and tokens.peek() == "(":
        tokens.next()
        args = [parse_expr(tokens)]
        while tokens.peek() == ",":
            tokens.next()
            args.append(parse_expr(tokens))
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
