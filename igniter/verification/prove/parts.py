"""The points of reductions: nested folds as one set of points.

A sum of sums is one sum, in any order (reassociation). So is a sum of `x + y`: the points of `x` and those of `y`. The
latter repeats values, such as a bias in each point, and these have no unique partner; so it is done only if `splits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.loop.combiners import combining_op
from igniter.errors import IgniterError
from igniter.verification.prove.integers import Limits, Relation, isl
from igniter.verification.prove.values import Apply, Case, Fold, Number, Pick, Space, Value, is_neutral


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a flat fold: its points, and their values."""

    points: Relation
    """From the fold's space to a tuple of this part alone."""
    value: Value
    at: Relation
    """From that tuple to the space of the value."""


class Parts:
    """The points of folds, each computed once."""

    def __init__(self, limits: Limits, distributes: bool):
        self.limits = limits
        self.distributes = distributes
        self.splits = False
        """Operands of the combining op in a point are points of their own."""
        self.has_ops = False
        """Whether some point is such an op."""
        self.flat: dict[tuple[int, str, bool], tuple[list[Part], bool]] = {}
        self.kept: list[Value] = []
        self.count = 0

    def of(self, value: Value, combiner: Combiner, element: Attribute) -> list[Part]:
        """Returns the points of a fold, with nested folds of the same combiner and neutral values removed."""
        key = id(value), combiner, self.splits
        if key not in self.flat:
            self.kept.append(value)
            before, self.has_ops = self.has_ops, False
            self.flat[key] = self._parts(value, combiner, element), self.has_ops
            self.has_ops = before
        parts, has_ops = self.flat[key]
        self.has_ops |= has_ops
        return parts

    def _parts(self, value: Value, combiner: Combiner, element: Attribute) -> list[Part]:
        self.limits.check()
        if isinstance(value, Number) and is_neutral(value, combiner, element):
            return []
        if isinstance(value, Fold) and value.combiner == combiner:
            return [p for c in value.cases for p in self._through(c.relation, c.value, combiner, element)]
        if isinstance(value, Pick):
            return [p for c in value.cases for p in self._picked(c, combiner, element)]
        if isinstance(value, Apply) and value.op[0] == _op_of(combiner, element):
            self.has_ops = True
            if self.splits:
                return [p for arg in value.args for p in self._renamed(self.of(arg, combiner, element))]
        if self.distributes and combiner == "add" and isinstance(value, Apply) and value.op[0] == "arith.mulf":
            scaled = self._distributed(value, element)
            if scaled is not None:
                return scaled
        identity = value.space.domain.identity()
        return self._renamed([Part(identity, value, identity)])

    def factors(self, value: Value) -> list[Part]:
        """Returns the factors of a product of floats."""
        before, self.splits = self.splits, True
        found = self.of(value, "mul", Float32Type())
        self.splits = before
        return found

    def _distributed(self, value: Apply, element: Attribute) -> list[Part] | None:
        """Returns the points of a sum with a scale, each with the scale; None if no operand is a sum."""
        for k, operand in enumerate(value.args):
            parts = self.of(operand, "add", element)
            if all(p.points.is_single_valued() for p in parts) or not all(p.points.is_injective() for p in parts):
                continue
            scale, found = value.args[1 - k], list[Part]()
            for part in self._renamed(parts):
                points = part.points.range()
                kind = isl().dim_type.set
                ids = tuple(f"q{i}" for i in range(points.dim(kind)))
                space = Space(points.get_tuple_name(), ids, {}, points)
                one = Pick(space, (Case("sum", part.at, part.value),))
                other = Pick(space, (Case("scale", part.points.reverse(), scale),))
                found.append(Part(part.points, Apply(space, value.op, (one, other)), points.identity()))
            return self._renamed(found)
        return None

    def _renamed(self, parts: Sequence[Part]) -> list[Part]:
        """Returns parts with tuples of their own, because a value may be added twice."""
        found: list[Part] = []
        kinds = isl().dim_type
        for part in parts:
            self.count += 1
            name = f"P{self.count}"
            points, at = part.points.set_tuple_name(kinds.out, name), part.at.set_tuple_name(kinds.in_, name)
            found.append(Part(points, part.value, at))
        return found

    def _through(self, relation: Relation, value: Value, combiner: Combiner, element: Attribute) -> list[Part]:
        """Returns the points of the values behind the `relation` of a fold."""
        parts = self.of(value, combiner, element)
        if not relation.is_single_valued() and not all(p.points.is_injective() for p in parts):
            # One sum is added several times: each time is a point.
            identity = relation.range().identity()
            return self._renamed([Part(relation, value, identity)])
        found = [replace(p, points=relation.apply_range(p.points)) for p in parts]
        return self._renamed([p for p in found if not p.points.is_empty()])

    def _picked(self, case: Case, combiner: Combiner, element: Attribute) -> list[Part]:
        """Returns the points of one case of a pick. A value that is no fold is one point of each reader."""
        found: list[Part] = []
        for part in self.of(case.value, combiner, element):
            points = case.relation.apply_range(part.points)
            if points.is_empty():
                continue
            if part.points.is_single_valued():
                own = points.domain().identity()
                found.append(Part(own, part.value, points.apply_range(part.at)))
            else:
                found.append(replace(part, points=points))
        return self._renamed(found)


def _op_of(combiner: Combiner, element: Attribute) -> str:
    try:
        return combining_op(combiner, element).name
    except IgniterError:
        return ""
