"""Expressions of symbols as Python code: the tree of an `Expr` is traversed once, so that each run is plain arithmetic.

    compile_shapes(("n", "m"), [(n, 4*m, n*m floordiv 2)], [n <= 512])

    def evaluate(s0, s1):
        t0 = 4*s1
        t1 = s0*s1
        t2 = t1//2
        if s0 > 512: return 0
        return ((s0, t0, t2),)

Each expression and each call in one is computed once. Python's integers are unbounded, so nothing overflows. Conditions
are tested in the order in which they are needed: a divisor before a division by it. If one fails, the function returns
the index of its `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.lowering import Lowering
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, is_defined

Dims = tuple[Expr, ...]
Evaluate = Callable[..., "tuple[tuple[int | None, ...], ...] | int"]


@dataclass(frozen=True)
class Check:
    """A test in each run that `left` is `relation` `right`; `about` names the source of the requirement, in words."""

    left: Expr
    relation: str
    right: Expr
    about: str


@dataclass(frozen=True)
class ShapeCode:
    """The compiled function of the symbols' sizes in order, and its checks."""

    evaluate: Evaluate
    checks: tuple[Check, ...]
    source: str


def compile_shapes(
    symbols: Sequence[str],
    shapes: Sequence[Dims],
    requirements: Sequence[Requirement] = (),
    names: Sequence[str] = (),
    nested: Sequence[bool] = (),
) -> ShapeCode:
    """Returns a function from the sizes of `symbols` to `shapes`. Dims with other symbols are `None`. A negative dim is
    rejected, with the entry of `names` whose shape has it; in `nested` shapes it is `None` instead, because their
    graph may not run."""
    writer = _Writer(symbols)
    for r in requirements:
        if r.symbols <= writer.known:
            about = r.text if r.node is None else f"{r.text} (node '{r.node}')"
            writer.check(Check(r.left, r.relation, r.right, about))
    rows = [
        writer.nested_shape(dims)
        if k < len(nested) and nested[k]
        else writer.shape(dims, names[k] if k < len(names) else "")
        for k, dims in enumerate(shapes)
    ]
    body = [*writer.lines, f"return ({''.join(f'{row}, ' for row in rows)})"]
    source = f"def evaluate({', '.join(writer.places.values())}):\n" + "".join(f"    {line}\n" for line in body)
    space: dict[str, Any] = {}
    # The text consists of integers and of names generated here: nothing of the model's is in it.
    exec(compile(source, "<shapes>", "exec"), space)
    return ShapeCode(space["evaluate"], tuple(writer.checks), source)


class _Writer(Lowering[str]):
    def __init__(self, symbols: Sequence[str]):
        self.places = {name: f"s{i}" for i, name in enumerate(symbols)}
        self.known = frozenset(symbols)
        self.lines: list[str] = []
        self.checks: list[Check] = []
        self._written: dict[Expr | Call, str] = {}
        self._checked: set[tuple[Expr, str, Expr]] = set()

    def shape(self, dims: Dims, name: str) -> str:
        """Returns a tuple of the dims' values, after writing their computation."""
        parts: list[str] = []
        for dim in dims:
            if not dim.symbols <= self.known:
                parts.append("None")
                continue
            parts.append(self.lower(dim))
            if not is_nonneg(dim):
                self.check(Check(Expr.of(0), "<=", dim, f"it is a dim of '{name}'" if name else "it is a dim"))
        return f"({''.join(f'{p}, ' for p in parts)})"

    def nested_shape(self, dims: Dims) -> str:
        """Returns the same without tests."""
        parts: list[str] = []
        for dim in dims:
            if not dim.symbols <= self.known or not is_defined(dim):
                parts.append("None")
                continue
            part = self.lower(dim)
            parts.append(part if is_nonneg(dim) else f"{part} if {part} >= 0 else None")
        return f"({''.join(f'{p}, ' for p in parts)})"

    def check(self, check: Check) -> None:
        """Writes a test, once for each fact."""
        fact = (check.left, check.relation, check.right)
        if fact in self._checked:
            return
        self._checked.add(fact)
        left, right = self.lower(check.left), self.lower(check.right)
        self.lines.append(f"if {left} {'!=' if check.relation == '==' else '>'} {right}: return {len(self.checks)}")
        self.checks.append(check)

    def lower(self, e: Expr) -> str:
        """Returns the name or integer of an expression's value, after writing its computation."""
        if e.constant is not None:
            return str(e.constant)
        if e.symbol is not None:
            return self.places[e.symbol]
        if e not in self._written:
            text = super().lower(e)
            self._written[e] = text if e.call is not None else self._name(text)
        return self._written[e]

    def call(self, call: Call) -> str:
        if call not in self._written:
            args = [self.lower(a) for a in call.args]
            if call.fn in ("floordiv", "mod") and not is_nonneg(call.args[1] - 1):
                self.check(Check(Expr.of(1), "<=", call.args[1], "something is divided by it"))
            self._written[call] = self._name(self.apply(call, args))
        return self._written[call]

    def constant(self, value: int) -> str:
        return str(value) if value >= 0 else f"({value})"

    def symbol(self, name: str) -> str:
        return self.places[name]

    def add(self, a: str, b: str) -> str:
        return f"{a} + {b}"

    def mul(self, a: str, b: str) -> str:
        return f"{a}*{b}"

    def floordiv(self, a: str, b: str, call: Call) -> str:
        return f"{a} // {b}"

    def mod(self, a: str, b: str, call: Call) -> str:
        return f"{a} % {b}"

    def minimum(self, a: str, b: str) -> str:
        return f"min({a}, {b})"

    def maximum(self, a: str, b: str) -> str:
        return f"max({a}, {b})"

    def _name(self, text: str) -> str:
        name = f"t{len(self._written)}_{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name
