"""The names of exported values, and the names available to a graph inside another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue


@dataclass
class ValueNames:
    """The names of the values of one graph. `taken` are the names of all its values, also of later ones; `defined` are
    the names visible to a graph inside, which may reuse a later name of the graph around it."""

    outer: ValueNames | None
    by_value: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    taken: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])

    def find(self, value: SSAValue) -> str | None:
        """Returns the name of a value of this graph or one around it."""
        scope: ValueNames | None = self
        while scope is not None:
            name = scope.by_value.get(value)
            if name is not None:
                return name
            scope = scope.outer
        return None

    def is_taken(self, name: str) -> bool:
        """True if the name is unavailable to a new value of this graph."""
        return name in self.taken or self.is_visible(name)

    def is_visible(self, name: str) -> bool:
        """True if a graph around this one has defined the name."""
        scope = self.outer
        while scope is not None:
            if name in scope.defined:
                return True
            scope = scope.outer
        return False

    def give(self, value: SSAValue, name: str) -> None:
        """Names a value of this graph."""
        self.by_value[value] = name
        self.taken.add(name)

    def define(self, values: Iterable[SSAValue]) -> None:
        """Makes these values visible to graphs inside from here on."""
        self.defined.update(self.by_value[v] for v in values if v in self.by_value)
