"""From which dims of its inputs a kernel learns its symbols.

A dim that is one symbol binds it at its first occurrence and is compared afterwards. Any other dim is evaluated and
compared once its symbols are known; where exactly one is not, and the dim is `c*symbol + rest` with an integer `c`,
the equation is solved for it (`past + seq`, with `seq` known from elsewhere, gives `past`).

Inputs that are always there come first: what only an optional input could bind is bound by it when it is there, and
is 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from igniter.dialects.sym.expr import Expr


@dataclass(frozen=True)
class Bind:
    """The symbol gets the value of the dim, or, where it has one already, is compared with it."""

    input: int
    axis: int
    symbol: str


@dataclass(frozen=True)
class Check:
    """The dim must be equal to the expression, whose symbols are known by now."""

    input: int
    axis: int
    expr: Expr


@dataclass(frozen=True)
class Solve:
    """`coefficient*symbol + rest` is the dim: the symbol gets the value that makes it so, which must be a natural."""

    input: int
    axis: int
    symbol: str
    coefficient: int
    rest: Expr


Step: TypeAlias = Bind | Check | Solve


@dataclass(frozen=True)
class Binding:
    """The steps in an order in which each has what it needs; `unsolved` are the dims that no step could reach."""

    steps: tuple[Step, ...]
    bound: frozenset[str]
    unsolved: tuple[tuple[int, int], ...]


def bind_symbols(inputs: Sequence[tuple[Sequence[Expr], bool]], known: Iterable[str] = ()) -> Binding:
    """How to learn the symbols of `inputs`, each given as its dims and whether it is always present.

    `known` are symbols that have a value before any dim is looked at. Constant dims need no step.
    """
    steps: list[Step] = []
    bound = set(known)
    unsolved: list[tuple[int, int]] = []
    for always in (True, False):
        pending: list[tuple[int, int, Expr]] = []
        for i, (dims, present) in enumerate(inputs):
            if present != always:
                continue
            for axis, dim in enumerate(dims):
                if dim.constant is not None:
                    continue
                if dim.symbol is None:
                    pending.append((i, axis, dim))
                else:
                    steps.append(Bind(i, axis, dim.symbol))
                    bound.add(dim.symbol)
        while pending:
            left = [p for p in pending if not _step(*p, bound, steps)]
            if len(left) == len(pending):
                unsolved.extend((i, axis) for i, axis, _ in left)
                break
            pending = left
    return Binding(tuple(steps), frozenset(bound), tuple(unsolved))


def _step(i: int, axis: int, dim: Expr, bound: set[str], steps: list[Step]) -> bool:
    missing = sorted(dim.symbols - bound)
    if not missing:
        steps.append(Check(i, axis, dim))
        return True
    if len(missing) > 1:
        return False
    factor = dim.coefficient(missing[0])
    if factor is None or not factor.constant:
        return False
    steps.append(Solve(i, axis, missing[0], factor.constant, dim.without(missing[0])))
    bound.add(missing[0])
    return True
