"""The values of a kernel as functions of its inputs, the common form of both levels.

    value ::= Number | Position(expr) | Input(array, access) | Apply(op, values) | Pick(cases) | Fold(combiner, cases)
            | Named(array, access)

A value lives in a *space*: it has one instance for each point of it, such as an iteration of loops and a lane of a
vector. A case is a relation from the instances of one value to those of another. A `Pick` has at most one case for an
instance: the last store to the loaded element. A `Fold` combines the values of all its cases, in any
order: a set of points and not a sequence, so splitting, reordering and unrolling a reduction leave it unchanged.

This is the form of Verdoolaege, Janssens and Bruynooghe, "Equivalence checking of static affine programs using widening
to handle recurrences" (TOPLAS 2012), with folds as in Iooss, Alias and Rajopadhye, "On program equivalence with
reductions" (SAS 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.loop.combiners import identity, neutral
from igniter.dialects.sym.expr import Expr
from igniter.verification.prove.integers import Points, Relation


@dataclass(frozen=True, eq=False)
class Space:
    """A set of instances: a tuple of isl with one dim for each loop, and one for the lane of a vector."""

    name: str
    ids: tuple[str, ...]
    """The names of the dims in relations."""
    env: dict[str, str]
    """The text of each axis of the IR."""
    domain: Points
    lane: str | None = None
    """The dim of the lane; None for scalars."""

    @property
    def text(self) -> str:
        """The tuple: `C3[x0, x1]`."""
        return f"{self.name}[{', '.join(self.ids)}]"

    def named(self, name: str) -> str:
        """Returns the tuple under another name."""
        return f"{name}[{', '.join(self.ids)}]"


@dataclass(frozen=True, eq=False)
class Number:
    """A constant."""

    space: Space
    attr: Attribute


@dataclass(frozen=True, eq=False)
class Position:
    """The value of an expression over axes and sizes, as an integer."""

    space: Space
    access: Relation
    """From an instance to the one-dimensional tuple `Z[value]`."""


@dataclass(frozen=True, eq=False)
class Input:
    """An element of an input of the kernel."""

    space: Space
    array: tuple[object, ...]
    """The identity of the array: the number of the argument, and the dims of the read."""
    access: Relation


@dataclass(frozen=True, eq=False)
class Apply:
    """An op on values of the same space."""

    space: Space
    op: tuple[object, ...]
    args: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """The instances of another value, from those of one."""

    key: str
    """The name of the statement; distinct in a program."""
    relation: Relation
    """From the space of the user to that of `value`."""
    value: Value


@dataclass(frozen=True, eq=False)
class Pin:
    """The access of a guarded read, by which masked points of a reduction are told apart."""

    label: str
    access: Relation
    """From an instance to the element, the tuple `A`."""
    guards: tuple[Relation, ...]
    """From an instance to the value of each guard, the tuple `Z`."""


@dataclass(frozen=True, eq=False)
class Pick:
    """The value of at most one case."""

    space: Space
    cases: tuple[Case, ...]
    pin: Pin | None = None
    """The access of a guarded read."""


@dataclass(frozen=True, eq=False)
class Fold:
    """All values of the cases, combined."""

    space: Space
    combiner: Combiner
    element: Attribute
    cases: tuple[Case, ...]


@dataclass(frozen=True, eq=False)
class Whole:
    """All elements of a computed array, for a read at a subscript by data: an operand of the read."""

    space: Space
    dims: tuple[Expr, ...]
    elements: Relation
    """From an instance to the elements of its array."""
    subscripts: Relation
    """From an element to its subscripts, the tuple `E`."""
    value: Value
    """The value of an element."""


@dataclass(frozen=True, eq=False)
class Named:
    """An element of an array that both programs compute; the proof of equal arrays comes first (`cuts`)."""

    space: Space
    key: str
    """The name of the array in both programs."""
    access: Relation
    """From an instance to the subscripts of the element: a tuple with the name of the array."""
    opened: Callable[[], Value]
    """Returns the same value as a function of other values."""


Value: TypeAlias = "Number | Position | Input | Apply | Pick | Fold | Whole | Named"


@dataclass
class Output:
    """One result of a kernel."""

    dims: tuple[Expr, ...]
    value: Value
    """Its space has the subscripts of an element."""


@dataclass
class Problem:
    """A fact without a proof."""

    what: str
    """The check: 'bounds', 'writes', 'threads', 'values'."""
    reason: str
    sizes: Points | None = None
    """The failing sizes; None if unknown."""


@dataclass
class Program:
    """A kernel as values."""

    outputs: list[Output]
    problems: list[Problem] = field(default_factory=list[Problem])
    checked: dict[str, int] = field(default_factory=dict[str, int])
    """The number of facts proven, by check."""


def is_same_number(a: Attribute, b: Attribute) -> bool:
    """True for constants of equal bits; NaNs are equal."""
    return _bits(a) == _bits(b)


def _bits(number: Attribute) -> tuple[str, str]:
    """Returns the type and the value of a constant; the text of a float distinguishes -0.0 and 0.0."""
    if isinstance(number, (FloatAttr, IntegerAttr)):
        found = cast("FloatAttr[Any] | IntegerAttr[Any]", number)
        return str(found.type), repr(found.value.data)
    return "", str(number)


def is_neutral(number: Number, combiner: Combiner, element: Attribute) -> bool:
    """True if folding a number in changes nothing, up to the sign of a zero sum."""
    found = [identity(combiner, element).value, neutral(combiner, element).value]
    return any(is_same_number(number.attr, n) for n in found)


def cases_of(value: Value) -> Sequence[Case]:
    """Returns the cases of a pick or a fold; none for other values."""
    return value.cases if isinstance(value, (Pick, Fold)) else ()
