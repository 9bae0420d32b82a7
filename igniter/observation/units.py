"""The filter of observers by kernel: `--filter-kernel=r3,attention*`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from igniter.observation import Unit

MAIN = "onnx.graph"
"""The op of a graph. A graph is the whole of a model, so a filter skips its name and looks into its body."""


@dataclass
class UnitFilter:
    """Selects kernels by name; without patterns it selects everything. Records all names in question."""

    patterns: tuple[str, ...] = ()
    seen: set[str] = field(default_factory=set[str])

    @staticmethod
    def of(texts: Iterable[str]) -> UnitFilter:
        """Returns the filter for comma-separated names and globs; an `@` in front of a name is dropped."""
        given = [part.strip().removeprefix("@") for text in texts for part in text.split(",")]
        return UnitFilter(tuple(filter(None, given)))

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def has(self, name: str) -> bool:
        """True if the kernel called `name` is selected."""
        self.seen.add(name)
        return not self.patterns or any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def has_unit(self, unit: Unit | None) -> bool:
        """True if a nested run is selected; with patterns, no pass over a whole module is."""
        return not self.patterns if unit is None else self.has(unit.name)

    def has_remark(self, unit: str, node: str, details: Mapping[str, Any]) -> bool:
        """True for a remark about a selected kernel: made in its nested run, about its region, or about it by name."""
        if not self.patterns:
            return True
        named = (unit, node.removeprefix("@").partition(".")[0], str(details.get("region", "")))
        return any(self.has(name) for name in named if name)

    def ops(self, module: ModuleOp) -> Iterator[Operation]:
        """Yields the ops of a module with selected names: kernels, and the regions inside of graphs."""
        for op in module.ops:
            inside = [r for r in op.walk() if r is not op and symbol_of(r)] if op.name == MAIN else [op]
            yield from (each for each in inside if self.has(symbol_of(each)))

    def require_seen(self) -> None:
        """Raises `IgniterError` if a pattern selected none of the recorded names."""
        for pattern in self.patterns:
            if not any(fnmatchcase(name, pattern) for name in self.seen):
                known = sorted(filter(None, self.seen))
                there = f"there are {', '.join(known)}" if known else "no pass of this run works on kernels"
                raise IgniterError(f"there is no kernel '{pattern}' for --filter-kernel; {there}")


def symbol_of(op: Operation) -> str:
    """Returns the symbol of an op; "" for an op without one."""
    found = op.properties.get("sym_name") or op.attributes.get("sym_name")
    data = getattr(found, "data", "")
    return data if isinstance(data, str) else ""
