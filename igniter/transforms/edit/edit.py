"""`Edit`, the base of passes that change a model because a user asks for it.

An edit names values, nodes and dims as the model does. A name that is not there is an error that says which are like
it, and so is an edit that would change nothing. Beside changing the IR, an edit says what it means for who runs the
model: `track` turns an `Interface`, from which the edited model is run beside the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.passes import ModulePass

from igniter.errors import IgniterError


@dataclass
class Interface:
    """How the inputs and outputs of an edited model relate to the original's."""

    inputs: dict[str, str] = field(default_factory=dict[str, str])
    """The name of an input in the edited model, and in the original."""
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    """The name of an output in the edited model, and that of the value in the original."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes that dims of the original have where the edited model runs."""
    dims: dict[str, str] = field(default_factory=dict[str, str])
    """Dims of the edited model that have another name than in the original."""
    freed: dict[str, int] = field(default_factory=dict[str, int])
    """Dims of the edited model that are numbers in the original."""
    equal: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Dims of the original that are equal in the edited model."""
    values: dict[str, str] = field(default_factory=dict[str, str])
    """Values that are renamed: the new name, and the original's."""
    different: list[str] = field(default_factory=list[str])
    """Why outputs may have other values than the original's."""

    def original_value(self, name: str) -> str:
        """What the original calls a value of the edited model."""
        return self.inputs.get(name, self.outputs.get(name, self.values.get(name, name)))

    def original_dim(self, symbol: str) -> str:
        """What the original calls a dim of the edited model."""
        return self.dims.get(symbol, symbol)


@dataclass(frozen=True)
class Edit(ModulePass):
    """A pass that changes what a model is, not only how it is computed."""

    def track(self, interface: Interface) -> None:
        """Notes in `interface` what the edit changes in it; called in the order in which edits run."""


def paired(what: str, first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    """Two options of a pass, of equal length, as pairs; `IgniterError` where they are not, or there is none."""
    if len(first) != len(second):
        raise IgniterError(
            f"{len(first)} and {len(second)} names are given for {what}: give one of each for every pair"
        )
    if not first:
        raise IgniterError(f"nothing is named for {what}")
    if twice := next((n for n in first if first.count(n) > 1), None):
        raise IgniterError(f"'{twice}' is named twice for {what}")
    return list(zip(first, second, strict=True))
