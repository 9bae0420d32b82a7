"""Loops over two joined axes, split for relations: `ij = 0 to n*m` with `ij floordiv m` and `ij mod m`.

isl divides by numbers only. A loop over `A*B` iterations, with its axis in quotients and remainders by `B`, is two
loops over `A` and `B` in the same order; the inner one carries the mark `JOINED`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Block, Operation

from igniter.dialects.loop import ForOp, FuncOp
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import ONE, ZERO, Atom, Call, Expr, call, floordiv, mod, split_quotient

JOINED = "igniter.joined"
"""The attribute of the inner loop of a split pair."""


def split_joined_loops(func: FuncOp) -> None:
    """Splits every joined loop of a kernel, in place, with a proof of equal iterations."""
    loops = [op for op in func.walk() if isinstance(op, ForOp)]
    while loops:
        loop = loops.pop(0)
        divisor = _divisor(loop)
        if divisor is None:
            continue
        loops = [*_split(loop, divisor), *loops]


def _split(loop: ForOp, divisor: Expr) -> list[ForOp]:
    outer, inner = f"{loop.axis}'q", f"{loop.axis}'r"
    quotient, remainder = Expr.of(outer), Expr.of(inner)
    axis, end = loop.axis, loop.end
    body, block = loop.block, Block()
    statements = list(body.ops)
    for op in statements:
        op.detach()
    block.add_ops(statements)
    made = ForOp(inner, 0, divisor, block, reduction=loop.is_reduction, grain=loop.grain)
    made.attributes[JOINED] = UnitAttr()
    body.add_op(made)
    loop.axis_attr = StringAttr(outer)
    loop.bounds = DimsAttr([ZERO, split_quotient(end, divisor)[0]])
    loop.step_attr = made.step_attr
    for op in statements:
        _rewrite(op, lambda e: replaced(e, axis, divisor, quotient, remainder))
    return [loop, made]


def _divisor(loop: ForOp) -> Expr | None:
    """Returns the least symbolic divisor of the axis, if it divides the number of iterations."""
    if loop.first != ZERO or loop.step != 1 or loop.indices or loop.is_sequential:
        return None
    found: list[Expr] = []

    def look(e: Expr) -> Expr:
        for monomial, _ in e.terms:
            for atom in monomial:
                if isinstance(atom, Call):
                    if atom.fn in ("floordiv", "mod") and atom.args[0].symbol == loop.axis:
                        found.append(atom.args[1])
                    for argument in atom.args:
                        look(argument)
        return e

    for op in loop.block.ops:
        _rewrite(op, look)
    divisors = [d for d in dict.fromkeys(found) if d.constant is None and split_quotient(loop.end, d)[1] == ZERO]
    least = [d for d in divisors if all(split_quotient(o, d)[1] == ZERO for o in divisors)]
    return least[0] if least else None


def replaced(e: Expr, axis: str, divisor: Expr, quotient: Expr, remainder: Expr) -> Expr:
    """Returns an expression with `axis` as `quotient*divisor + remainder`, where `0 <= remainder < divisor`."""
    if axis not in e.symbols:
        return e

    def of_atom(atom: Atom) -> Expr:
        if not isinstance(atom, Call):
            return quotient * divisor + remainder if atom.name == axis else Expr({(atom,): 1})
        if atom.fn in ("floordiv", "mod") and atom.args[0].symbol == axis:
            times, rest = split_quotient(atom.args[1], divisor)
            if rest == ZERO and atom.fn == "floordiv":
                return quotient if times == ONE else floordiv(quotient, times)
            if rest == ZERO:
                return remainder if times == ONE else mod(quotient, times) * divisor + remainder
        if atom.fn == "mod" and (inner := atom.args[0].call) is not None and inner.fn == "floordiv":
            return mod(replaced(atom.args[0], axis, divisor, quotient, remainder), atom.args[1])
        return call(atom.fn, [replaced(a, axis, divisor, quotient, remainder) for a in atom.args])

    return e.map_atoms(of_atom)


def _rewrite(op: Operation, rule: Callable[[Expr], Expr]) -> None:
    """Replaces every expression of an op and below."""
    for inner in op.walk():
        for key, attr in inner.properties.items():
            if isinstance(attr, DimsAttr):
                inner.properties[key] = DimsAttr([rule(e) for e in attr.data])
