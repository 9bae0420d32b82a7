"""Expressions over lanes: lane-dependent names, their increments, and values as vectors."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I64
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym.expr import ZERO, Call, Expr, Sym
from igniter.dialects.sym.ranges import is_nonneg

Condition = Value | bool

ANYTHING = (Expr.of(-(1 << 62)), Expr.of(1 << 62))
"""The range of an indirect operand: without it an `Expr` takes every name for a dim, never negative."""


def names_of(vectors: Mapping[str, Value], lane: str | None) -> set[str]:
    """Returns the names with a value for each lane."""
    return set(vectors) if lane is None else {*vectors, lane}


@contextmanager
def local_ranges(f: Function, lane: str | None, lanes: int, indices: int) -> Generator[None]:
    """Declares the lane variable, and the indirect operands with an unknown range, as names for the block."""
    names = [f"{INDIRECT_PREFIX}{k}" for k in range(indices)]
    f.axes.update(dict.fromkeys(names, ANYTHING))
    if lane is not None:
        names.append(lane)
        f.axes[lane] = (ZERO, Expr.of(lanes))
    try:
        yield
    finally:
        for name in names:
            del f.axes[name]


def growth(e: Expr, lane: str) -> tuple[int | None, int | None]:
    """Returns the largest rise and the largest fall of `e` from one lane to the next; None: unknown."""
    up: int | None = 0
    down: int | None = 0
    for monomial, factor in e.terms:
        if lane not in Expr({monomial: 1}).symbols:
            continue
        atom = monomial[0]
        rise: int | None = None
        fall: int | None = None
        if len(monomial) == 1 and isinstance(atom, Call):
            rises, falls = zip(*(growth(a, lane) for a in atom.args), strict=True)
            if atom.fn in ("min", "max"):
                rise = None if None in rises else max(rises)
                fall = None if None in falls else max(falls)
            elif atom.fn == "mod" and lane not in atom.args[1].symbols:
                rise = rises[0] if falls[0] == 0 else None
        elif len(monomial) == 1:
            rise, fall = 1, 0
        if factor < 0:
            rise, fall = fall, rise
        up = None if up is None or rise is None else up + rise * abs(factor)
        down = None if down is None or fall is None else down + fall * abs(factor)
    return up, down


def scalar_guard(f: Function, guards: Sequence[Expr], here: Mapping[str, Value]) -> Condition:
    """Returns a condition: every guard, prepared, is >= 0."""
    condition: Condition = True
    for guard in guards:
        if is_nonneg(guard, f.ranges):
            continue
        if is_nonneg(-guard - 1, f.ranges):
            return False
        bit = f.icmp("sge", f.expr(guard, here), f.const(I64, 0))
        condition = bit if condition is True else f.binary("and", condition, bit)  # pyright: ignore
    return condition


def lane_values(
    f: Function,
    e: Expr,
    lane: str | None,
    lanes: int,
    vectors: Mapping[str, Value],
    here: Mapping[str, Value] | None = None,
) -> Value:
    """Returns the value of `e` for every lane, as a vector of i64."""
    here = here or {}
    t = I64.with_lanes(lanes)
    varying = names_of(vectors, lane)
    total: Value | None = None
    fixed = ZERO
    for monomial, c in e.terms:
        if not Expr({monomial: c}).symbols & varying:
            fixed = fixed + Expr({monomial: c})
            continue
        term: Value | None = None
        scale = Expr.of(c)
        for atom in monomial:
            whole = Expr({(atom,): 1})
            if not whole.symbols & varying:
                scale = scale * whole
                continue
            if isinstance(atom, Sym):
                factor = f.iota(t) if atom.name == lane else vectors[atom.name]
            else:
                factor = _lane_call(f, atom, lane, lanes, vectors, here)
            term = factor if term is None else f.binary("mul nsw", term, factor)
        assert term is not None
        if scale != 1:
            if scale.constant is not None and term.text == f.iota(t).text:
                term = f.iota(t, scale.constant)
            else:
                term = f.binary("mul nsw", term, f.splat(f.expr(scale, here), lanes))
        total = term if total is None else f.binary("add nsw", total, term)
    if total is None:
        return f.splat(f.expr(fixed, here), lanes)
    return total if fixed == ZERO else f.binary("add nsw", total, f.splat(f.expr(fixed, here), lanes))


def _lane_call(
    f: Function, atom: Call, lane: str | None, lanes: int, vectors: Mapping[str, Value], here: Mapping[str, Value]
) -> Value:
    args = [lane_values(f, a, lane, lanes, vectors, here) for a in atom.args]
    if atom.fn in ("min", "max"):
        result = args[0]
        for other in args[1:]:
            result = f.binary_intrinsic(f"s{atom.fn}", result, other)
        return result
    dividend, divisor = args
    t = dividend.type
    if atom.args[1].constant is None:
        divisor = f.binary_intrinsic("smax", divisor, f.const(t, 1))
    with local_ranges(f, lane, lanes, len(vectors) + len(here)):
        nonneg = is_nonneg(atom.args[0], f.ranges)
    if nonneg:
        return f.binary("udiv" if atom.fn == "floordiv" else "urem", dividend, divisor)
    remainder = f.binary("srem", dividend, divisor)
    negative = f.binary("ashr", remainder, f.const(t, 63))
    if atom.fn == "mod":
        return f.binary("add", remainder, f.binary("and", negative, divisor))
    return f.binary("add nsw", f.binary("sdiv", dividend, divisor), negative)
