"""Equal dims of a model: a union-find over symbols, with integers and expressions as representatives.

`resolve` gives the canonical form of a dim. Of two equal symbols, a graph input's is kept, else the older one; an
integer beats every symbol. An equation without a solution for a symbol (`a*b == c*d`) is dropped, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from igniter.dialects.sym.expr import Atom, Call, Expr, Sym, call
from igniter.dialects.sym.requirements import Requirement, equal


class DimEqualities:
    """Equal dims, collected during inference. `version` grows with every new fact."""

    def __init__(self, inputs: Iterable[str] = (), *, solve_inputs: bool = False):
        self.solve_inputs = solve_inputs
        """True if a dim of an input may become an expression over others: `total` becomes `past + new`."""
        self._inputs = {name: i for i, name in enumerate(dict.fromkeys(inputs))}
        self._bound: dict[str, Expr] = {}
        self._calls: dict[Call, tuple[Expr, str | None]] = {}
        self._age: dict[str, int] = {}
        self._local: list[set[str]] = []
        self._known: dict[Expr, Expr] = {}
        self._known_at = 0
        """The canonical forms found so far, and their version."""
        self.version = 0
        self.scopes = 0
        """The count of opened and closed nested graphs."""
        self.node: str | None = None
        """The node whose rule runs."""

    @property
    def assumptions(self) -> list[Requirement]:
        """The equalities of every valid run that the dims of inputs do not show. A violation must be rejected, as ORT
        would have rejected it at the node with the requirement."""
        text = "its dims are inconsistent"
        return [
            equal(Expr({(atom,): 1}), self.resolve(value), text).at(node) for atom, (value, node) in self._calls.items()
        ]

    def declare(self, name: str) -> None:
        """Declares a symbol; it belongs to the open nested graph, if any."""
        self._age.setdefault(name, len(self._age))
        if self._local:
            self._local[-1].add(name)

    def enter(self) -> None:
        """Opens a nested graph. It may not run at all, so its requirements bind only symbols declared inside it."""
        self._local.append(set())
        self.scopes += 1

    def leave(self) -> frozenset[str]:
        """Closes the nested graph; returns its own symbols, meaningless outside."""
        self.scopes += 1
        return frozenset(self._local.pop())

    def resolve(self, e: Expr) -> Expr:
        """Returns the canonical form of `e`."""
        if not self.version:
            return e
        if self._known_at != self.version:
            self._known, self._known_at = {}, self.version
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._resolved(e)
        return found

    def _resolved(self, e: Expr) -> Expr:
        while True:
            bound = {name: self._bound[name] for name in e.symbols if name in self._bound}
            replaced = e.substitute(bound) if bound else e
            if self._calls:
                replaced = self._without_calls(replaced)
            if replaced is e or replaced == e:
                return e
            e = replaced

    def _without_calls(self, e: Expr) -> Expr:
        if not any(isinstance(a, Call) for m, _ in e.terms for a in m):
            return e

        def rewrite(atom: Atom) -> Expr:
            if isinstance(atom, Sym):
                return Expr.of(atom.name)
            known = self._calls.get(atom)
            return known[0] if known is not None else call(atom.fn, [self._without_calls(x) for x in atom.args])

        return e.map_atoms(rewrite)

    def equate(self, a: Expr, b: Expr) -> None:
        """Records `a == b`, if it can be solved for one symbol or call."""
        a, b = self.resolve(a), self.resolve(b)
        if a == b:
            return
        if a.symbol is not None and b.symbol is not None:
            first, second = sorted((a.symbol, b.symbol), key=self._rank)
            if not self._bind(second, Expr.of(first)):
                self._bind(first, Expr.of(second))
            return
        for one, other in ((a, b), (b, a)):
            if one.symbol is not None and self._fits(one.symbol, other) and self._bind(one.symbol, other):
                return
        self._solve(a - b)
        self._solve_for_call(a - b)

    def _solve_for_call(self, zero: Expr) -> None:
        """Records a simpler equal of a call in `zero == 0`: in `max(0, s - 1) + 1 == s`, `s - 1`."""
        if self._local and not zero.symbols <= self._local[-1]:
            return
        candidates = [(m[0], c) for m, c in zero.terms if len(m) == 1 and isinstance(m[0], Call) and abs(c) == 1]
        for atom, factor in sorted(candidates, key=lambda item: -len(str(item[0]))):
            assert isinstance(atom, Call)
            value = (Expr({(atom,): factor}) - zero) * factor
            if len(str(value)) < len(str(atom)) and str(atom) not in str(value):
                self._calls[atom] = (value, self.node)
                self.version += 1
                return

    def _solve(self, zero: Expr) -> None:
        """Binds the one symbol of `scale*symbol + offset == 0`, where the solution is a dim."""
        if len(zero.symbols) != 1:
            return
        (name,) = zero.symbols
        scale, offset = zero.coefficient(name), zero.without(name).constant
        if scale is None or offset is None or not scale.constant:
            return
        value, rest = divmod(-offset, scale.constant)
        if rest == 0 and value >= 0:
            self._bind(name, Expr.of(value))

    def _fits(self, name: str, value: Expr) -> bool:
        # An input's symbol stays a symbol: kernels read its value from a dim equal to it.
        if value.constant is not None:
            return value.constant >= 0
        return (self.solve_inputs or name not in self._inputs) and name not in value.symbols

    def _bind(self, name: str, value: Expr) -> bool:
        if self._local and name not in self._local[-1]:
            return False
        self._bound[name] = value
        self.version += 1
        return True

    def _rank(self, name: str) -> tuple[int, int]:
        if name in self._inputs:
            return (0, self._inputs[name])
        return (1, self._age.get(name, len(self._age)))


def symbol_names(dims: Iterable[Expr]) -> list[str]:
    """Returns the symbols of some dims in the order of their appearance, plain ones before those inside expressions."""
    dims = list(dims)
    plain = [d.symbol for d in dims if d.symbol is not None]
    inner = [a.name for d in dims for m, _ in d.terms for a in m if isinstance(a, Sym)]
    rest = [name for d in dims for name in sorted(d.symbols)]
    return list(dict.fromkeys([*plain, *inner, *rest]))
