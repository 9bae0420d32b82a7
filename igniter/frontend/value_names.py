"""The names that exported values get, and which names a graph inside another may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue


@dataclass
class ValueNames:
    """The names of the values of one graph. `taken` are those that its values have or will have, `defined` those that
    a graph inside sees: it may use again a name that comes later in the graph around it."""

    outer: ValueNames | None
    by_value: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    taken: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])

    def find(self, value: SSAValue) -> str | None:
        """The name of a value of this graph or one around it."""
        scope: ValueNames | None = self
        while scope is not None:
            name = scope.by_value.get(value)
            if name is not None:
                return name
            scope = scope.outer
        return None

    def is_taken(self, name: str) -> bool:
        """Whether a new value of this graph may not have the name."""
        return name in self.taken or self.is_visible(name)

    def is_visible(self, name: str) -> bool:
        """Whether a graph around this one has defined the name."""
        scope = self.outer
        while scope is not None:
            if name in scope.defined:
                return True
            scope = scope.outer
        return False

    def give(self, value: SSAValue, name: str) -> None:
        """Name a value of this graph."""
        self.by_value[value] = name
        self.taken.add(name)

    def define(self, values: Iterable[SSAValue]) -> None:
        """Graphs inside see these values from here on."""
        self.defined.update(self.by_value[v] for v in values if v in self.by_value)
