"""Expressions over the blocks of a launch: quotients of a block's elements as quotients of its first element.

A block of a dim has the elements `first + lane`, where `first` is a multiple of the number of lanes. If a divisor is a
multiple of that number, all elements of the block have one quotient, and only their remainders differ:

    k floordiv 128    ->    k.first floordiv 128                        blocks of 64, or of 128
    k mod 128         ->    k.first mod 128 + k.lane
    k floordiv 32     ->    k.first floordiv 32 + k.lane floordiv 32    blocks of 64
    k mod 32          ->    k.lane mod 32

So a program divides one number, outside the blocks, where an implicit product would divide every element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from igniter.dialects.loop import NestOp
from igniter.dialects.sym.expr import ONE, Atom, Call, Expr, Sym, call, floordiv, mod
from igniter.schedules.launch_groups import LaunchGroup

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim


def first_of(dim: str) -> str:
    """Returns the name of the first element of a dim's block."""
    return f"{dim}.first"


def lane_of(dim: str) -> str:
    """Returns the name of an element's place in a dim's block."""
    return f"{dim}.lane"


def divided_dims(products: Iterable[NestOp], group: LaunchGroup, dims: Sequence[Dim]) -> list[Dim]:
    """Returns the dims of blocks of an implicit product, which reads quotients of rows and depth; empty for other
    launches."""
    if group.attention is not None:
        return []
    atoms = [
        atom
        for nest in products
        for read in nest.reads
        for e in (*read.subscripts, *read.guards)
        for monomial, _ in e.terms
        for atom in monomial
    ]
    return [d for d in dims if d.lanes > 1] if any(isinstance(atom, Call) for atom in atoms) else []


def by_blocks(e: Expr, lanes: Mapping[str, int]) -> Expr:
    """Returns an expression with its quotients and remainders by the first elements of blocks, where possible. `lanes`
    are the lanes of each dim."""
    if e.symbols.isdisjoint(lanes):
        return e

    def replaced(atom: Atom) -> Expr:
        if isinstance(atom, Sym):
            return Expr.of(atom.name)
        args = [by_blocks(a, lanes) for a in atom.args]
        divided = _divided(atom.fn, args[0], args[1].constant, lanes) if atom.fn in ("floordiv", "mod") else None
        return call(atom.fn, args) if divided is None else divided

    return e.map_atoms(replaced)


def _divided(fn: str, x: Expr, divisor: int | None, lanes: Mapping[str, int]) -> Expr | None:
    """Returns a quotient or a remainder by the first element of a block; `None` if the block has several quotients."""
    for name in sorted(x.symbols & lanes.keys()):
        size, rest = lanes[name], x.without(name)
        aligned = all(factor % size == 0 for _, factor in rest.terms)
        if not divisor or x.coefficient(name) != ONE or not aligned:
            continue
        first, lane, by = Expr.of(first_of(name)) + rest, Expr.of(lane_of(name)), Expr.of(divisor)
        if divisor % size == 0:
            return floordiv(first, by) if fn == "floordiv" else mod(first, by) + lane
        if size % divisor == 0:
            return floordiv(first, by) + floordiv(lane, by) if fn == "floordiv" else mod(lane, by)
    return None
