"""`Edit`, the base of passes for changes at a user's request.

An edit names values, nodes and dims as the model does. An unknown name is an error, with similar names as suggestions.
An edit without effect is an error too. Besides changing the IR, an edit describes its effect on users of the model:
`track` updates an `Interface`, for runs of the edited model beside the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.passes import ModulePass

from igniter.errors import IgniterError


@dataclass
class Interface:
    """The relation between the inputs and outputs of an edited model and the original's."""

    inputs: dict[str, str] = field(default_factory=dict[str, str])
    """The name of an input in the edited model, and in the original."""
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    """The name of an output in the edited model, and of its value in the original."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes of dims of the original at which the edited model runs."""
    dims: dict[str, str] = field(default_factory=dict[str, str])
    """Renamed dims of the edited model, with their original names."""
    freed: dict[str, int] = field(default_factory=dict[str, int])
    """Dims of the edited model, constant in the original."""
    equal: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Pairs of the original's dims, equal in the edited model."""
    values: dict[str, str] = field(default_factory=dict[str, str])
    """Renamed values: the new name, and the original's."""
    different: list[str] = field(default_factory=list[str])
    """Reasons why outputs may differ from the original's."""

    def original_value(self, name: str) -> str:
        """Returns the original's name for a value of the edited model."""
        return self.inputs.get(name, self.outputs.get(name, self.values.get(name, name)))

    def original_dim(self, symbol: str) -> str:
        """Returns the original's name for a dim of the edited model."""
        return self.dims.get(symbol, symbol)


@dataclass(frozen=True)
class Edit(ModulePass):
    """A pass that changes the meaning of a model, not only its implementation."""

    def track(self, interface: Interface) -> None:
        """Records the edit's changes in `interface`; called in the order of the edits."""


def paired(what: str, first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs two options of equal length. Raises `IgniterError` if lengths differ, both are empty, or a name is
    repeated."""
    if len(first) != len(second):
        raise IgniterError(
            f"{len(first)} and {len(second)} names are given for {what}: give one of each for every pair"
        )
    if not first:
        raise IgniterError(f"nothing is named for {what}")
    if twice := next((n for n in first if first.count(n) > 1), None):
        raise IgniterError(f"'{twice}' is named twice for {what}")
    return list(zip(first, second, strict=True))
