"""Expressions as quasi-affine functions of isl, and random ones: what `test_expr_isl.py` compares with.

isl decides questions about all points of a domain, however large: a set is empty or it is not. A domain here has the
symbols (never negative), data (`DATA`), and axes in their ranges.

    python -m tests.dialects.isl_points [COUNT]    how often isl proves what Igniter does not
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import islpy as isl

from igniter.analysis.scheduled.loop_accesses import Access, _with_own_axes, same_iteration_only
from igniter.dialects.sym.expr import ZERO, Call, Expr, Sym, floordiv, maximum, minimum, mod
from igniter.dialects.sym.proofs import proven, upper_bound
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify
from igniter.dialects.sym.reindexing import is_injective

SYMBOLS = ("m", "n")
DATA = ("_0", "$0")
"""An indirect operand, and a value that a loop begins at: nothing is known of them."""
MOST_OPERATIONS = 400_000
"""What isl may take for one question."""

Tree = tuple[Any, ...]
"""`("const", 3)`, `("name", "i")`, or a function of trees: what an `Expr` is made of, before it is canonical."""


class TooHard(Exception):
    """A question that isl would take long to answer, or that is not quasi-affine."""


@dataclass(frozen=True)
class Points:
    """The space of some names, and functions over it."""

    names: tuple[str, ...]

    def _affine(self, name: str | None, value: int) -> isl.PwAff:
        space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(self.names))
        here = isl.LocalSpace.from_space(space)
        if name is None:
            return isl.PwAff.from_aff(isl.Aff.zero_on_domain(here).set_constant_val(isl.Val(value)))
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(here, isl.dim_type.set, self.names.index(name)))

    def tree(self, tree: Tree) -> isl.PwAff:
        """The function that a tree writes."""
        kind, *args = tree
        if kind in ("const", "name"):
            return self._affine(args[0] if kind == "name" else None, args[0] if kind == "const" else 0)
        return self._apply(kind, [self.tree(a) if isinstance(a, tuple) else self._affine(None, a) for a in args])

    def _apply(self, kind: str, args: Sequence[isl.PwAff]) -> isl.PwAff:
        a, b = args
        if kind in ("floordiv", "mod"):
            divisor = b.max_val()
            if not divisor.is_pos() or not divisor.eq(b.min_val()):
                raise TooHard("a divisor that is no positive number")
            return a.scale_down_val(divisor).floor() if kind == "floordiv" else a.mod_val(divisor)
        if kind == "scale":
            return a.mul(b)
        return {"add": a.add, "min": a.min, "max": a.max}[kind](b)

    def expr(self, e: Expr) -> isl.PwAff:
        """The function that an expression is; `TooHard` where it multiplies names."""
        total = self._affine(None, 0)
        for monomial, c in e.terms:
            if len(monomial) > 1:
                raise TooHard("a product of names")
            term = self._affine(None, c)
            for atom in monomial:
                term = term.mul(self._affine(atom.name, 0) if isinstance(atom, Sym) else self._call(atom))
            total = total.add(term)
        return total

    def _call(self, call: Call) -> isl.PwAff:
        first, *others = [self.expr(a) for a in call.args]
        for other in others:
            first = self._apply(call.fn, [first, other])
        return first

    def domain(self, ranges: Ranges, facts: Iterable[Expr] = ()) -> isl.Set:
        """Where the symbols are not negative, the axes are in their ranges, and the facts are not negative."""
        zero = self._affine(None, 0)
        domain = zero.domain()
        for name in self.names:
            if not name.startswith(("_", "$")) and name not in ranges.axes:
                domain = domain.intersect(self._affine(name, 0).ge_set(zero))
        for name, (first, end) in ranges.axes.items():
            axis = self._affine(name, 0)
            domain = domain.intersect(axis.ge_set(self.expr(first))).intersect(axis.lt_set(self.expr(end)))
        for fact in facts:
            domain = domain.intersect(self.expr(fact).ge_set(zero))
        return domain

    def least(self, e: Expr, domain: isl.Set) -> int | None:
        """The least value of `e` in a domain; None where there is none."""
        value = self.expr(e).intersect_domain(domain).min_val()
        return value.to_python() if value.is_int() else None


def empty(found: isl.Set) -> bool:
    """True if a set has no point."""
    return found.is_empty()


@contextmanager
def limited() -> Generator[None]:
    """A context in which isl gives up (`TooHard`) what it would take long to answer."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(MOST_OPERATIONS)
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        raise TooHard(str(error)) from error
    finally:
        context.set_max_operations(0)


# -- random ones ------------------------------------------------------------------------------------------------------


def random_tree(random: Random, names: Sequence[str], depth: int = 3) -> Tree:
    """Sums, multiples, quotients and remainders by numbers, and extrema."""
    kind = random.randint(0, 10) if depth else random.randint(0, 3)
    if kind == 0:
        return ("const", random.randint(-6, 12))
    if kind <= 3:
        return ("name", random.choice(names))
    a = random_tree(random, names, depth - 1)
    if kind == 4:
        return ("scale", a, random.choice((-4, -2, -1, 2, 3, 8)))
    if kind <= 6:
        return ("floordiv", a, random.choice((2, 3, 4, 8)))
    if kind == 7:
        return ("mod", a, random.choice((2, 3, 4, 8)))
    b = random_tree(random, names, depth - 1)
    return (("add", "min", "max")[kind - 8], a, b)


def built(tree: Tree) -> Expr:
    """The expression, by the operations that make it canonical."""
    kind, *args = tree
    if kind in ("const", "name"):
        return Expr.of(args[0])
    a, b = (built(x) if isinstance(x, tuple) else Expr.of(x) for x in args)
    functions = {"floordiv": floordiv, "mod": mod, "min": minimum, "max": maximum}
    return a + b if kind == "add" else a * b if kind == "scale" else functions[kind](a, b)


def random_ranges(random: Random, axes: Sequence[str] = ("i", "j"), numbers: bool = False) -> Ranges:
    """Ranges as loops have them: to a number, to a dim, over blocks of one, and within a block up to its edge."""
    found: dict[str, tuple[Expr, Expr]] = {}
    for axis in axes:
        outer, n = random.choice(list(found) or ["m"]), Expr.of(random.choice(SYMBOLS))
        block = random.choice((2, 4, 8))
        ends = [Expr.of(random.randint(1, 20)), n, n + random.randint(1, 3), n.ceildiv(block), floordiv(n, Expr.of(3))]
        ends.append(minimum(Expr.of(block), n - Expr.of(outer) * block))
        first = random.choice(
            (ZERO, ZERO, ZERO, Expr.of(random.randint(1, 3)), Expr.of(random.choice(SYMBOLS)), Expr.of("$0"))
        )
        end = ends[0] if numbers else random.choice(ends)
        found[axis] = (ZERO if numbers else first, end if first == ZERO or numbers else end + first)
    return Ranges(found)


def random_access(random: Random, inner: str) -> Access:
    """An access to a buffer of two dims in a loop over `i`, with a loop `inner` around it and one over `o` outside."""
    width = random.choice((4, 8, 16))
    dims = (Expr.of("n"), Expr.of(width))
    block = random.choice((1, 1, 2, 4))
    ends = (Expr.of(block), minimum(Expr.of(block), Expr.of("n") - Expr.of("i")), Expr.of(width))
    ranges = Ranges(
        {"o": (ZERO, Expr.of("m")), "i": (ZERO, Expr.of(random.choice(("n", 16)))), inner: (ZERO, random.choice(ends))}
    )
    i, k, o = (Expr.of(name) for name in ("i", inner, "o"))
    rows = (i, i * block + k, i + k, o, i + o, floordiv(i, Expr.of(block)), o * 2 + mod(i, Expr.of(2)), ZERO, i * 2 + o)
    columns = (k, ZERO, mod(i, Expr.of(width)), k + 1, i, o, mod(k + i, Expr.of(width)))
    subscripts = (random.choice(rows), random.choice(columns))
    return Access(None, dims, subscripts, ranges, True, True)  # type: ignore[arg-type]


def meetings(x: Access, y: Access, step: int) -> isl.Set:
    """Where `x` in one iteration of the loop over `i` and `y` in another touch one element. The loop over `o` is
    outside of both; what else `y` is in has names of its own."""
    other = {"i": Expr.of("i'")}
    points = Points((*SYMBOLS, *x.ranges.axes, *("i'" if n == "i" else n for n in y.ranges.axes if n != "o")))
    inside = {
        "i'" if name == "i" else name: (first.substitute(other), end.substitute(other))
        for name, (first, end) in y.ranges.axes.items()
    }
    domain = points.domain(Ranges({**x.ranges.axes, **inside}))
    for axis in ("i", "i'"):
        domain = domain.intersect(points.expr(mod(Expr.of(axis), Expr.of(step))).eq_set(points.expr(ZERO)))
    domain = domain.intersect(points.expr(Expr.of("i")).ne_set(points.expr(Expr.of("i'"))))
    for a, b in zip(x.subscripts, y.subscripts, strict=True):
        domain = domain.intersect(points.expr(a).eq_set(points.expr(b.substitute(other))))
    return domain


def random_writes(random: Random) -> tuple[list[Expr], dict[str, Expr]]:
    """Subscripts of a write over axes of numbers, and the extents."""
    extents = {axis: random.choice((1, 2, 3, 4, 8)) for axis in ("i", "j", "k")}
    i, j, k = (Expr.of(axis) for axis in extents)
    inner = extents["k"]
    choices = (
        *(i, j, k, i * inner + k, j * inner + k, (i * extents["j"] + j) * inner + k, i * 2 + j, i + j, i * 3 + 1, ZERO),
        *(floordiv(i + j, Expr.of(2)), mod(i + j, Expr.of(2)), floordiv(i, Expr.of(2)), mod(i, Expr.of(2)), -k + 7),
        *(Expr.of("n") + i, j * extents["i"] + i, k * extents["j"] + j),
    )
    count = random.randint(1, 3)
    return [random.choice(choices) for _ in range(count)], {axis: Expr.of(e) for axis, e in extents.items()}


def twins(subscripts: Sequence[Expr], extents: Mapping[str, Expr]) -> isl.Set:
    """Where two different points of the axes give equal subscripts."""
    other = {axis: Expr.of(f"{axis}'") for axis in extents}
    points = Points((*SYMBOLS, *extents, *(f"{axis}'" for axis in extents)))
    ranges = {axis: (ZERO, end) for axis, end in extents.items()}
    domain = points.domain(Ranges({**ranges, **{f"{axis}'": r for axis, r in ranges.items()}}))
    for s in subscripts:
        domain = domain.intersect(points.expr(s).eq_set(points.expr(s.substitute(other))))
    apart = domain.subtract(domain)
    for axis in extents:
        apart = apart.union(points.expr(Expr.of(axis)).ne_set(points.expr(other[axis])))
    return domain.intersect(apart)


# -- how much is not proven -------------------------------------------------------------------------------------------


def _count(title: str, asked: int, found: int) -> None:
    print(f"{title:<64} {found:>6} of {asked:>6} ({100 * found / max(1, asked):.0f} %)")


def main() -> None:
    """Print, for each kind of proof, how many of those that isl finds Igniter finds as well."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    totals: dict[str, list[int]] = {}

    def note(title: str, ours: bool) -> None:
        total = totals.setdefault(title, [0, 0])
        total[0] += 1
        total[1] += ours

    for seed in range(count):
        try:
            with limited():
                _compare(Random(seed), note)
        except TooHard:
            totals.setdefault("too hard for isl in the time given", [count, 0])[1] += 1
    for title, (asked, found) in totals.items():
        _count(title, asked, found)


def _compare(random: Random, note: Any) -> None:
    ranges = random_ranges(random)
    points = Points((*SYMBOLS, *DATA, *ranges.axes))
    x, y = random_access(random, "k"), random_access(random, "k")
    step = random.choice((1, 1, 2, 4))
    if empty(meetings(x, _with_own_axes(y, {"o", "i"}), step)):
        ours = same_iteration_only(x, "i", _with_own_axes(y, {"o", "i"}), "i", step)
        note("two iterations never meet (same_iteration_only)", ours)
        if x.dims == y.dims:
            note("  the same, of accesses to buffers of equal dims", ours)
    subscripts, extents = random_writes(random)
    if empty(twins(subscripts, extents)):
        note("points of a nest write different elements (is_injective)", is_injective(subscripts, extents))
    e = built(random_tree(random, (*SYMBOLS, *ranges.axes)))
    domain = points.domain(ranges)
    if empty(domain):
        return
    least = points.least(e, domain)
    if least is not None and e.constant is None:
        for slack, word in ((0, "e >= its least value"), (random.randint(1, 8), "e >= less than its least value")):
            note(f"{word} (is_nonneg)", is_nonneg(e - least + slack, ranges))
            note(f"{word} (proven)", proven(e - least + slack, ranges))
    least = points.least(-e, domain)
    if least is not None and e.constant is None:
        note("an upper bound (upper_bound)", upper_bound(e, ranges) is not None)
    same = points.expr(simplify(e, ranges))
    value = same.intersect_domain(domain).max_val()
    if value.is_int() and value.eq(same.intersect_domain(domain).min_val()):
        note("e is a number (simplify)", simplify(e, ranges).constant is not None)


if __name__ == "__main__":
    main()
