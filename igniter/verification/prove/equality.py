"""The equality of values: two values as the same function of the inputs, at pairs of their instances.

`Equality.failures(a, b, pairs)` descends both values at once and returns the sizes of a pair of instances without a
proof of equality; none is a proof. Where two folds meet, their points need a partner: each point of one fold has
exactly one point of the other with an equal value. Candidates come from `Matching`: it solves the equality of
the input elements of points. The descent then proves the candidates.

Sound and incomplete: a pair without a proof may be equal.

Rewrites within an equality: operands of commutative ops in any order, `fma(a, b, c)` as `a*b + c`, folds of folds with
one combiner (reassociation), and sums of a fold and a value as one fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from igniter.verification.prove.integers import Limits, NotDecided, Points, Relation, Relations, Sizes, coalesced
from igniter.verification.prove.matching import COMMUTATIVE, Matching, empty, equal_leaves, meet, shown, union
from igniter.verification.prove.parts import Part, Parts
from igniter.verification.prove.reshapes import reshape
from igniter.verification.prove.values import (
    Apply,
    Fold,
    Input,
    Named,
    Pick,
    Value,
    Whole,
)


@dataclass(frozen=True)
class Failure:
    """A pair of values without a proof of equality."""

    reason: str
    sizes: Points | None
    """The sizes of the failure; None if unknown."""


class Equality:
    """The equalities between the values of two programs."""

    def __init__(self, limits: Limits, sizes: Sizes, distributes: bool = False):
        self.limits = limits
        self.distributes = distributes
        """Scales of sums may be inside or outside of them, and factors in any order."""
        self.symbols = sizes
        self.sizes: Points = sizes.context()
        """All valid sizes of the kernel."""
        self.shown: dict[tuple[int, int], list[Relation]] = {}
        self.open: set[tuple[int, int]] = set()
        self.kept: list[Value] = []
        self.parts = Parts(limits, distributes)
        self.matching = Matching(self)

    def failures(self, a: Value, b: Value, pairs: Relation) -> Failure | None:
        """Returns the first reason why the values of some pair are not shown to be equal; None if all are."""
        self.limits.check()
        pairs = coalesced(pairs)
        if pairs.is_empty():
            return None
        key = id(a), id(b)
        if any(pairs.is_subset(known) for known in self.shown.get(key, ())):
            return None
        if key in self.open:
            raise NotDecided("a value depends on itself in earlier iterations (a recurrence)")
        self.open.add(key)
        found = self._failures(a, b, pairs)
        self.open.discard(key)
        self.kept += [a, b]
        if found is None:
            self.shown.setdefault(key, []).append(pairs)
        return found

    def _failures(self, a: Value, b: Value, pairs: Relation) -> Failure | None:
        if isinstance(a, Pick):
            return _first(self.failures(c.value, b, c.relation.reverse().apply_range(pairs)) for c in a.cases)
        if isinstance(b, Pick):
            return _first(self.failures(a, c.value, pairs.apply_range(c.relation)) for c in b.cases)
        if isinstance(a, Named) or isinstance(b, Named):
            return self._named(a, b, pairs)
        if isinstance(a, Fold) or isinstance(b, Fold):
            return self._folds(a, b, pairs)
        if isinstance(a, Apply) and isinstance(b, Apply):
            return self._applied(a, b, pairs)
        if isinstance(a, Whole) and isinstance(b, Whole):
            return self._wholes(a, b, pairs)
        missing = pairs.subtract(equal_leaves(a, b)).intersect_params(self.sizes)
        return None if missing.is_empty() else Failure(_difference(a, b), missing.params())

    def _named(self, a: Value, b: Value, pairs: Relation) -> Failure | None:
        if isinstance(a, Named) and isinstance(b, Named) and a.key == b.key:
            pairs = pairs.subtract(meet(a.access, b.access)).intersect_params(self.sizes)
        left, right = (v.opened() if isinstance(v, Named) else v for v in (a, b))
        return None if pairs.is_empty() else self.failures(left, right, pairs)

    def _applied(self, a: Apply, b: Apply, pairs: Relation) -> Failure | None:
        if a.op != b.op or len(a.args) != len(b.args):
            missing = pairs.intersect_params(self.sizes)
            return None if missing.is_empty() else Failure(_difference(a, b), missing.params())
        found = self._args(a.args, b.args, pairs)
        if found is not None and str(a.op[0]) in COMMUTATIVE and len(a.args) == 2:
            if self._args(a.args, b.args[::-1], pairs) is None:
                return None
            if self.distributes and a.op[0] == "arith.mulf":
                return self._match(self.parts.factors(a), self.parts.factors(b), pairs, exact=False)
        return found

    def _args(self, left: Sequence[Value], right: Sequence[Value], pairs: Relation) -> Failure | None:
        return _first(self.failures(x, y, pairs) for x, y in zip(left, right, strict=True))

    def _wholes(self, a: Whole, b: Whole, pairs: Relation) -> Failure | None:
        """Compares two arrays element by element."""
        within = a.elements.reverse().apply_range(pairs).apply_range(b.elements)
        left = a.subscripts
        if a.dims != b.dims:
            try:
                left = left.apply_range(reshape(self.symbols, a.dims, b.dims, "E", "E"))
            except NotDecided:
                return Failure("an array of another shape", pairs.params())
        return self.failures(a.value, b.value, within.intersect(meet(left, b.subscripts)))

    # -- folds --------------------------------------------------------------------------------------------------------

    def _folds(self, a: Value, b: Value, pairs: Relation) -> Failure | None:
        fold = a if isinstance(a, Fold) else b
        assert isinstance(fold, Fold)
        if isinstance(a, Fold) and isinstance(b, Fold) and a.combiner != b.combiner:
            return Failure(f"a reduction with '{b.combiner}' instead of '{a.combiner}'", pairs.params())
        before, self.parts.splits, self.parts.has_ops = self.parts.splits, False, False
        try:
            found = self._points(a, b, fold, pairs)
            if found is not None and self.parts.has_ops:
                self.parts.splits = True
                found = self._points(a, b, fold, pairs)
        finally:
            self.parts.splits = before
        return found

    def _points(self, a: Value, b: Value, fold: Fold, pairs: Relation) -> Failure | None:
        left, right = (self.parts.of(v, fold.combiner, fold.element) for v in (a, b))
        found = self._match(left, right, pairs, exact=False)
        if found is not None:
            exact = self._match(left, right, pairs, exact=True)
            return None if exact is None else found
        return None

    def _match(self, left: Sequence[Part], right: Sequence[Part], pairs: Relation, *, exact: bool) -> Failure | None:
        """Returns why the points of two folds are not in bijection for some pair; None if they are for all."""
        mine, theirs = union([p.points for p in left]), union([p.points for p in right])
        wanted: Relations = pairs.to_union_map()
        equal: Relations = empty()
        found: list[tuple[Part, Part, Relation]] = []
        for x in left:
            reached = x.points.reverse().apply_range(pairs)
            for y in right:
                # The points of both within one pair of instances.
                near = reached.apply_range(y.points)
                if near.is_empty():
                    continue
                guess = self.matching.of(x.value, y.value, exact=exact)
                if guess is not None:
                    near = near.intersect(x.at.apply_range(guess).apply_range(y.at.reverse()))
                if not near.is_empty():
                    equal = equal.union(near.to_union_map())
                    found.append((x, y, near))
        unpaired = self._unpaired(mine, theirs, equal, wanted, "is missing") or self._unpaired(
            theirs, mine, equal.reverse(), wanted.reverse(), "is too many"
        )
        if unpaired is not None and not found and left and right:
            # Not the number of points differs, but their values.
            return replace(unpaired, reason=f"the points of a reduction differ: {self._difference(left, right, pairs)}")
        return (
            unpaired
            or self._ambiguous(equal, theirs)
            or self._ambiguous(equal.reverse(), mine)
            or _first(
                self.failures(x.value, y.value, x.at.reverse().apply_range(near).apply_range(y.at))
                for x, y, near in found
            )
        )

    def _difference(self, left: Sequence[Part], right: Sequence[Part], pairs: Relation) -> str:
        """Returns the difference between the values of two folds without any equal points, in words."""
        for x in left:
            for y in right:
                near = x.at.reverse().apply_range(x.points.reverse()).apply_range(pairs)
                near = near.apply_range(y.points).apply_range(y.at)
                found = None if near.is_empty() else self.failures(x.value, y.value, near)
                if found is not None:
                    return found.reason
        return "no two are equal"

    def _unpaired(
        self, mine: Relations, theirs: Relations, equal: Relations, wanted: Relations, what: str
    ) -> Failure | None:
        """Returns a failure if a point of `mine` has no equal point of `theirs` in some pair of instances."""
        needed = mine.reverse().apply_range(wanted)
        missing = needed.subtract(equal.apply_range(theirs.reverse())).intersect_params(self.sizes)
        return None if missing.is_empty() else Failure(f"a point of a reduction {what}", missing.params())

    def _ambiguous(self, equal: Relations, theirs: Relations) -> Failure | None:
        """Returns a failure if a point has several equal points within one instance."""
        if equal.is_single_valued():
            return None
        # Equal points q of p, each with its instances: [p -> instance] -> q.
        each = equal.reverse().range_product(theirs.reverse()).reverse()
        if each.is_single_valued():
            return None
        return Failure("several points of a reduction read the same elements", None)


def _first(found: Iterable[Failure | None]) -> Failure | None:
    return next((f for f in found if f is not None), None)


def _difference(a: Value, b: Value) -> str:
    """Returns the difference of two values in words."""
    left, right = shown(a), shown(b)
    if left == right:
        return f"another element of {left}" if isinstance(a, Input) else f"another value of {left}"
    return f"{right} instead of {left}"
