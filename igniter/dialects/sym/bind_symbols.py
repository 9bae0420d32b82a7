"""The binding of a kernel's symbols to the dims of its inputs.

A single-symbol dim binds its symbol at its first occurrence and is compared at later ones. Any other dim is evaluated
and compared once its symbols are bound. If exactly one symbol is unbound and the dim is `c*symbol + rest` with an
integer `c`, the equation is solved for it (`past + seq`, with `seq` bound elsewhere, gives `past`).

Required inputs are processed first. A symbol bound only by an optional input has its dim if the input is present, and 0
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from igniter.dialects.sym.expr import Expr


@dataclass(frozen=True)
class Bind:
    """Binds the symbol to the value of the dim, or compares the two if it is bound already."""

    input: int
    axis: int
    symbol: str


@dataclass(frozen=True)
class Check:
    """Compares the dim with the expression, whose symbols are bound."""

    input: int
    axis: int
    expr: Expr


@dataclass(frozen=True)
class Solve:
    """Solves `coefficient*symbol + rest == dim` for the symbol; the solution must be a non-negative integer."""

    input: int
    axis: int
    symbol: str
    coefficient: int
    rest: Expr


Step: TypeAlias = Bind | Check | Solve


@dataclass(frozen=True)
class Binding:
    """The steps in dependence order; `unsolved` lists the dims without a step."""

    steps: tuple[Step, ...]
    bound: frozenset[str]
    unsolved: tuple[tuple[int, int], ...]


def bind_symbols(inputs: Sequence[tuple[Sequence[Expr], bool]], known: Iterable[str] = ()) -> Binding:
    """Returns the steps to bind the symbols of `inputs`; each input is its dims and True if it is always present.

    `known` are symbols bound beforehand. Constant dims need no step.
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
