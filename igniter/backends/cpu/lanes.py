"""Expressions over lanes: lane-dependent names, their increments, and values as vectors."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.function import Function, divided
from igniter.backends.cpu.llvm_types import I64
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym.expr import ZERO, Call, Expr, Monomial, product
from igniter.dialects.sym.lowering import Lowering
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
    return _Lanes(f, lane, lanes, vectors, here or {}).lower(e)


class _Lanes(Lowering[Value]):
    """Expressions as vectors; the parts without lane-dependent names are computed as scalars."""

    coefficient_first = False

    def __init__(
        self, f: Function, lane: str | None, lanes: int, vectors: Mapping[str, Value], here: Mapping[str, Value]
    ):
        self._f = f
        self._lane = lane
        self._lanes = lanes
        self._vectors = vectors
        self._here = here
        self._type = I64.with_lanes(lanes)
        self._varying = names_of(vectors, lane)

    def lower(self, e: Expr) -> Value:
        fixed = Expr({m: c for m, c in e.terms if self._is_fixed(Expr({m: c}))})
        varying = e - fixed
        if not varying.terms:
            return self._scalar(fixed)
        total = super().lower(varying)
        return total if fixed == ZERO else self.add(total, self._scalar(fixed))

    def term(self, monomial: Monomial, coefficient: int) -> Value:
        fixed = [a for a in monomial if self._is_fixed(Expr({(a,): 1}))]
        term = super().term(tuple(a for a in monomial if a not in fixed), 1)
        scale = product([Expr.of(coefficient), *(Expr({(a,): 1}) for a in fixed)])
        if scale == 1:
            return term
        if scale.constant is not None and term.text == self._f.iota(self._type).text:
            return self._f.iota(self._type, scale.constant)
        return self.mul(term, self._scalar(scale))

    def _is_fixed(self, e: Expr) -> bool:
        return e.symbols.isdisjoint(self._varying)

    def _scalar(self, e: Expr) -> Value:
        return self._f.splat(self._f.expr(e, self._here), self._lanes)

    def constant(self, value: int) -> Value:
        return self._f.const(self._type, value)

    def symbol(self, name: str) -> Value:
        return self._f.iota(self._type) if name == self._lane else self._vectors[name]

    def add(self, a: Value, b: Value) -> Value:
        return self._f.binary("add nsw", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self._f.binary("mul nsw", a, b)

    def floordiv(self, a: Value, b: Value, call: Call) -> Value:
        return self._divide(a, b, call)

    def mod(self, a: Value, b: Value, call: Call) -> Value:
        return self._divide(a, b, call)

    def _divide(self, a: Value, b: Value, call: Call) -> Value:
        if call.args[1].constant is None:
            b = self.maximum(b, self._f.const(self._type, 1))
        return divided(call.fn, a, b, self.is_exact(call), self._f.binary, self._f.const(self._type, 63))

    def is_exact(self, call: Call) -> bool:
        with local_ranges(self._f, self._lane, self._lanes, len(self._vectors) + len(self._here)):
            return is_nonneg(call.args[0], self._f.ranges)

    def minimum(self, a: Value, b: Value) -> Value:
        return self._f.binary_intrinsic("smin", a, b)

    def maximum(self, a: Value, b: Value) -> Value:
        return self._f.binary_intrinsic("smax", a, b)
