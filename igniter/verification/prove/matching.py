"""Candidates for equal points: the pairs of instances of two values with equal input elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr

from igniter.verification.prove.integers import Relation, Relations, coalesced, isl
from igniter.verification.prove.values import (
    Apply,
    Fold,
    Input,
    Named,
    Number,
    Pick,
    Pin,
    Position,
    Space,
    Value,
    Whole,
    is_same_number,
)

if TYPE_CHECKING:
    from igniter.verification.prove.equality import Equality

COMMUTATIVE = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"),
    )
)
"""Ops whose operands may be in any order."""


class Matching:
    """The candidates of pairs of values."""

    def __init__(self, equality: Equality):
        self.equality = equality
        self.known: dict[tuple[int, int, bool, bool], Relation | None] = {}

    def of(self, a: Value, b: Value, *, exact: bool) -> Relation | None:
        """Returns all possibly equal pairs of instances; None if nothing is known.

        With `exact`, folds within values count too: otherwise they are taken to be equal everywhere.
        """
        key = id(a), id(b), exact, self.equality.parts.splits
        if key not in self.known:
            self.equality.limits.check()
            self.equality.kept += [a, b]
            self.known[key] = self._of(a, b, exact)
        return self.known[key]

    def _of(self, a: Value, b: Value, exact: bool) -> Relation | None:
        if isinstance(a, Pick) and isinstance(b, Pick) and a.pin is not None and b.pin is not None:
            return self._pinned(a, b, exact)
        if isinstance(a, Pick):
            found = [(c.relation, self.of(c.value, b, exact=exact)) for c in a.cases]
            return _joined(a, b, [None if r is None else c.apply_range(r) for c, r in found])
        if isinstance(b, Pick):
            found = [(c.relation, self.of(a, c.value, exact=exact)) for c in b.cases]
            return _joined(a, b, [None if r is None else r.apply_range(c.reverse()) for c, r in found])
        if isinstance(a, Named) or isinstance(b, Named):
            return self._named(a, b, exact)
        if isinstance(a, Fold) or isinstance(b, Fold):
            return self._folds(a, b) if exact else None
        if isinstance(a, Apply) and isinstance(b, Apply):
            return self._applied(a, b, exact)
        return None if isinstance(a, Whole) and isinstance(b, Whole) else equal_leaves(a, b)

    def _named(self, a: Value, b: Value, exact: bool) -> Relation | None:
        if isinstance(a, Named) and isinstance(b, Named) and a.key == b.key:
            return meet(a.access, b.access)
        left, right = (v.opened() if isinstance(v, Named) else v for v in (a, b))
        return self.of(left, right, exact=exact)

    def _applied(self, a: Apply, b: Apply, exact: bool) -> Relation | None:
        if a.op != b.op or len(a.args) != len(b.args):
            return none(a.space, b.space)
        if self.equality.distributes and a.op[0] == "arith.mulf":
            return self._products(a, b, exact)
        found = self._args(a.args, b.args, exact)
        if str(a.op[0]) in COMMUTATIVE and len(a.args) == 2 and found is not None and found.is_empty():
            found = self._args(a.args, b.args[::-1], exact)
        return found

    def _products(self, a: Apply, b: Apply, exact: bool) -> Relation | None:
        """Returns the pairs of instances of two products with a possible partner for each factor of the first."""
        found: Any = None
        for x in self.equality.parts.factors(a):
            partners: list[Relation | None] = []
            for y in self.equality.parts.factors(b):
                guess = self.of(x.value, y.value, exact=exact)
                left, right = x.points.apply_range(x.at), y.points.apply_range(y.at)
                partners.append(None if guess is None else left.apply_range(guess).apply_range(right.reverse()))
            each = _joined(a, b, partners)
            if each is not None:
                found = each if found is None else found.intersect(each)
        return found

    def _args(self, left: Sequence[Value], right: Sequence[Value], exact: bool) -> Relation | None:
        found: Any = None
        for x, y in zip(left, right, strict=True):
            each = self.of(x, y, exact=exact)
            if each is None:
                continue
            found = each if found is None else found.intersect(each)
            if found.is_empty():
                break
        return found

    def _pinned(self, a: Pick, b: Pick, exact: bool) -> Relation | None:
        """Compares guarded reads: masked elements of one array are equal only to themselves. So the points of a
        reduction stay apart."""
        assert a.pin is not None and b.pin is not None
        found: list[Relation | None] = []
        for x in a.cases:
            for y in b.cases:
                inner = self.of(x.value, y.value, exact=exact)
                if inner is None:
                    inner = everything(x.value.space, y.value.space)
                each = x.relation.apply_range(inner).apply_range(y.relation.reverse())
                if x.key == y.key == "masked":
                    each = _of_masked(a.pin, b.pin, each)
                found.append(each)
        return _joined(a, b, found)

    def _folds(self, a: Value, b: Value) -> Relation | None:
        """Returns the pairs of instances with some equal points in both folds, or with none in either."""
        fold = a if isinstance(a, Fold) else b
        assert isinstance(fold, Fold)
        if isinstance(a, Fold) and isinstance(b, Fold) and a.combiner != b.combiner:
            return none(a.space, b.space)
        left, right = (self.equality.parts.of(v, fold.combiner, fold.element) for v in (a, b))
        mine, theirs = union([p.points for p in left]), union([p.points for p in right])
        found: list[Relation | None] = []
        for relation in maps(_empty_both(a.space, b.space, mine, theirs)):
            found.append(relation)
        for x in left:
            for y in right:
                guess = self.of(x.value, y.value, exact=True)
                if guess is None:
                    return None
                points = x.at.apply_range(guess).apply_range(y.at.reverse())
                found.append(x.points.apply_range(points).apply_range(y.points.reverse()))
        return _joined(a, b, found)


def equal_leaves(a: Value, b: Value) -> Relation:
    """Returns the equal pairs of instances of two values without operands."""
    if isinstance(a, Input) and isinstance(b, Input) and a.array == b.array:
        return meet(a.access, b.access)
    if isinstance(a, Number) and isinstance(b, Number) and is_same_number(a.attr, b.attr):
        return everything(a.space, b.space)
    if isinstance(a, Position) and isinstance(b, Position):
        return meet(a.access, b.access)
    if isinstance(a, Position) and isinstance(b, Number):
        return meet(a.access, _constant(b))
    if isinstance(a, Number) and isinstance(b, Position):
        return meet(_constant(a), b.access)
    return none(a.space, b.space)


def shown(value: Value) -> str:
    """Returns a value in a few words."""
    if isinstance(value, Number):
        return f"the constant {value.attr}"
    if isinstance(value, Input):
        return f"input {value.array[0]}"
    if isinstance(value, Apply):
        return f"'{value.op[0]}'"
    if isinstance(value, Position):
        return "an index"
    return "a sum" if isinstance(value, Fold) else "an element"


def _constant(number: Number) -> Relation:
    if not isinstance(number.attr, IntegerAttr):
        return isl().Map.empty(isl().Map(f"{{ {number.space.text} -> Z[0] }}").get_space())
    return isl().Map(f"{{ {number.space.text} -> Z[{number.attr.value.data}] }}")


def meet(a: Relation, b: Relation) -> Relation:
    """Returns the pairs with a common element."""
    return a.apply_range(b.reverse())


def _of_masked(a: Pin, b: Pin, pairs: Relation) -> Relation:
    """Returns the pairs of masked points with the same element of one array, else with equal guards."""
    if a.label == b.label and _meet_in_one_array(a.access, b.access):
        return pairs.intersect(meet(a.access, b.access))
    if len(a.guards) == len(b.guards):
        for x, y in zip(a.guards, b.guards, strict=True):
            pairs = pairs.intersect(meet(x, y))
    return pairs


def _meet_in_one_array(a: Relation, b: Relation) -> bool:
    """True if the accesses have as many subscripts: a buffer in a loop has more, and may have the label of another."""
    kind = isl().dim_type.out
    return a.dim(kind) == b.dim(kind)


def everything(a: Space, b: Space) -> Relation:
    """Returns all pairs of instances."""
    right = ", ".join(f"{i}_" for i in b.ids)
    return isl().Map(f"{{ {a.text} -> {b.name}[{right}] }}")


def none(a: Space, b: Space) -> Relation:
    """Returns no pair of instances."""
    return isl().Map.empty(everything(a, b).get_space())


def _joined(a: Value, b: Value, relations: Sequence[Relation | None]) -> Relation | None:
    found = none(a.space, b.space)
    for relation in relations:
        if relation is None:
            return None
        found = found.union(relation)
    return coalesced(found) if len(relations) > 1 else found


def empty() -> Relations:
    """Returns the empty union of relations."""
    return isl().UnionMap("{ }")


def union(relations: Sequence[Relation]) -> Relations:
    """Returns the union of relations between any spaces."""
    found = empty()
    for relation in relations:
        found = found.union(relation.to_union_map())
    return found


def maps(relations: Relations) -> list[Relation]:
    """Returns the relations of a union."""
    found: list[Relation] = []
    relations.foreach_map(found.append)
    return found


def _empty_both(a: Space, b: Space, mine: Relations, theirs: Relations) -> Relations:
    """Returns the pairs of instances without any point: both folds are the identity."""
    left = a.domain.to_union_set().subtract(mine.domain())
    right = b.domain.to_union_set().subtract(theirs.domain())
    return isl().UnionMap.from_domain_and_range(left, right)
