"""Counts of a run, by pass: the rewrites of the rewrite budget, remarks, and the counts declared by passes.

A pass declares a count as an attribute of its class, and adds to it:

    class PlanBuffers(ModulePass):
        name = "plan-buffers"
        shared = Statistic("buffers in the memory of an earlier one")
        ...
            self.shared.add(ctx)

The rewrites of a pass with `one_rewrite`, and its remarks of the kinds `applied` and `missed`, are counted without a
declaration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from igniter.registry import load_pass, where_pass

if TYPE_CHECKING:
    from xdsl.context import Context

    from igniter.observation.units import UnitFilter

Form: TypeAlias = Literal["list", "kernels", "json"]
FORMS: tuple[Form, ...] = ("list", "kernels", "json")
"""`list`: each count added up over all kernels. `kernels`: kernel by kernel. `json`: the same, as JSON."""

REWRITES = "rewrites"
"""The name of the count of rewrites."""


@dataclass
class Statistics:
    """The counts of a run: by kernel ("" outside nested runs), pass and description."""

    counts: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])

    def add(self, unit: str, pass_name: str, counted: str, number: int = 1) -> None:
        """Adds to a count."""
        key = (unit, pass_name, counted)
        self.counts[key] = self.counts.get(key, 0) + number

    def by_pass(self, kernels: UnitFilter | None = None) -> dict[str, dict[str, int]]:
        """Returns the counts of each pass by description, added up over the selected kernels. Passes and descriptions
        are in the order of their first count."""
        found: dict[str, dict[str, int]] = {}
        for (unit, pass_name, counted), number in self.counts.items():
            if _selected(kernels, unit):
                counts = found.setdefault(pass_name, {})
                counts[counted] = counts.get(counted, 0) + number
        return found

    def by_unit(self, kernels: UnitFilter | None = None) -> dict[str, dict[str, dict[str, int]]]:
        """Returns the counts of each selected kernel, by pass and description."""
        units = dict.fromkeys(unit for unit, _, _ in self.counts if _selected(kernels, unit))
        return {unit: Statistics({k: n for k, n in self.counts.items() if k[0] == unit}).by_pass() for unit in units}

    def text(self, form: Form = "list", kernels: UnitFilter | None = None) -> str:
        """Returns the counts as text, with a final newline; JSON is a list of objects."""
        if form == "json":
            rows = [
                {"pass": pass_name, "kernel": unit, "what": _described(pass_name, counted), "count": number}
                for (unit, pass_name, counted), number in self.counts.items()
                if _selected(kernels, unit)
            ]
            return json.dumps(rows, indent=2) + "\n"
        if form == "list":
            return _lines(self.by_pass(kernels)) or "no pass counted anything\n"
        units = self.by_unit(kernels)
        return "".join(f"{f'@{unit}' if unit else 'the module'}\n{_lines(found, 2)}" for unit, found in units.items())


def _selected(kernels: UnitFilter | None, unit: str) -> bool:
    return not kernels or (bool(unit) and kernels.has(unit))


def _lines(found: Mapping[str, Mapping[str, int]], indent: int = 0) -> str:
    """Returns the lines of counts, pass by pass."""
    lines: list[str] = []
    for pass_name, counts in found.items():
        lines.append(f"{'':{indent}}{pass_name}")
        lines += [f"{'':{indent}}{number:>10}  {_described(pass_name, counted)}" for counted, number in counts.items()]
    return "".join(f"{line}\n" for line in lines)


def _described(pass_name: str, counted: str) -> str:
    """Returns the description of a count; for rewrites, with the pass's own description of one."""
    if counted != REWRITES or where_pass(pass_name) is None:
        return counted
    one = str(getattr(load_pass(pass_name), "one_rewrite", ""))
    return f"{counted}: {one}" if one else counted


class Statistic:
    """A count declared by a pass, with a description in the plural: "nests scheduled"."""

    def __init__(self, counted: str):
        self.counted = counted
        self.pass_name = ""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.pass_name = str(getattr(owner, "name", owner.__name__))

    def add(self, ctx: Context, number: int = 1) -> None:
        """Adds `number` to the count of this pass in the context, for the kernel of the nested run."""
        if number:
            count(ctx, self.pass_name, self.counted, number)


def declared(pass_type: type[object]) -> list[Statistic]:
    """Returns the counts declared by a pass."""
    return [found for found in vars(pass_type).values() if isinstance(found, Statistic)]


def count(ctx: Context, pass_name: str, counted: str, number: int = 1) -> None:
    """Adds to a count of the context, if it collects any."""
    found: object = getattr(ctx, "statistics", None)
    if isinstance(found, Statistics):
        found.add(unit_name(ctx), pass_name, counted, number)


def unit_name(ctx: Context | None) -> str:
    """Returns the name of the kernel whose nested run a context belongs to; "" outside nested runs."""
    unit = getattr(ctx, "unit", None)
    return "" if unit is None else str(unit.name)
