"""`igniter machine`: the machine model of schedules, the source of each figure, and measurements."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.analysis.machine import figures, override
from igniter.registry import BACKENDS, external, load_backend
from igniter.runtime.files import write_whole
from igniter.targets import backend_for, read_machine
from igniter.toolbox.output import console, print_json, progress

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.toolbox.machine.measurement import Measurement
    from igniter.toolbox.machine.request import MachineRequest


def run(asked: MachineRequest) -> None:
    """Builds the model, measures the machine on request, and prints or writes both."""
    if asked.list_targets:
        _print_targets(asked.json)
        return
    model = backend_for(asked.target).machine_for(asked.target, read_machine(asked.machine) if asked.machine else ())
    found: Measurement | None = None
    if asked.measure:
        from igniter.toolbox.machine.measurement import measure

        with progress("measuring", asked.json) as step:
            found = measure(model, step)
    if asked.output:
        written = override(model, found.given()) if found is not None else model
        write_whole(asked.output, jsonlib.dumps(written.to_dict(), indent=2, ensure_ascii=False) + "\n")
    if asked.json:
        print_json(_described(model, found))
        return
    _print(model, found)
    if asked.output:
        console().print(f"[bold]{asked.output}")


def _print_targets(as_json: bool) -> None:
    """Prints the names of the targets of every backend, and the optional features of those that have the same."""
    found: dict[str, dict[str, Any]] = {}
    for name in {**BACKENDS, **external("backends")}:
        backend = load_backend(name)()
        named = list(backend.target_names())
        features: dict[tuple[str, ...], list[str]] = {}
        for target in named:
            own = tuple(each.rpartition("+")[2] for each in backend.target_names(f"{target}+"))
            if own:
                features.setdefault(own, []).append(target)
        found[name] = {"targets": named, "features": [{"of": of, "features": own} for own, of in features.items()]}
    if as_json:
        print_json(found)
        return
    for name, listed in found.items():
        lines = [", ".join(listed["targets"])]
        for group in listed["features"]:
            first, *others = group["of"]
            of = f"{first} and {len(others)} others" if others else first
            lines.append(f"features of {of}, as in {first}+{group['features'][0]}: {', '.join(group['features'])}")
        console().print(f"{name}:", markup=False)
        for line in lines:
            console().print(f"  {line}", markup=False)


def _described(model: MachineModel, found: Measurement | None) -> dict[str, Any]:
    described: dict[str, Any] = {"machine": model.to_dict(), "key": model.key()}
    if found is not None:
        described["measured"] = found.values
        described["not_measured"] = found.missing
        described["reading"] = [{"bytes": size, "bytes_cycle": rate} for size, rate in found.reading.items()]
        described["seconds"] = found.seconds
    return described


def _print(model: MachineModel, found: Measurement | None) -> None:
    out = console()
    columns = ["figure", "value", *(["measured"] if found is not None else []), "unit", "source", "what it is"]
    table = Table(*columns)
    for figure in figures():
        if figure.name == "op_cycles":
            continue
        value = getattr(model, figure.name)
        cells = [figure.name, shown(value, figure.metadata["unit"])]
        if found is not None:
            cells.append(
                shown(found.values[figure.name], figure.metadata["unit"]) if figure.name in found.values else ""
            )
        cells += [figure.metadata["unit"], model.source_of(figure.name), figure.metadata["about"]]
        table.add_row(*map(escape, cells))
    out.print(table)
    _print_ops(model, found)
    if found is None:
        return
    reading = ", ".join(f"{shown(size, 'bytes')} {rate:.3g}" for size, rate in found.reading.items())
    out.print(f"bytes a cycle that a buffer is read with, by its size: {reading}", markup=False)
    for name, reason in found.missing.items():
        out.print(f"{name} was not measured: {reason}", markup=False)
    out.print(f"measured in {found.seconds:.1f} seconds; what is compiled changes where --machine names the file of -o")


def _print_ops(model: MachineModel, found: Measurement | None) -> None:
    """Prints the cycles of ops, as a table of its own."""
    measured: dict[str, int] = found.values.get("op_cycles", {}) if found is not None else {}
    ops = [
        f"{op.partition('.')[2]} {cycles}" + (f" ({measured[op]})" if op in measured else "")
        for op, cycles in model.op_cycles
    ]
    what = ", measured ones in brackets" if measured else ""
    console().print(
        f"op_cycles ({model.source_of('op_cycles')}), cycles of a vector{what}: {', '.join(ops)}", markup=False
    )


def shown(value: object, unit: str) -> str:
    """Returns a readable figure: whole KiB and MiB, yes and no, no insignificant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and unit == "bytes" and value >= 1 << 10:
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0 or value >= 4 * size:
                return f"{value / size:.4g} {name}"
    return f"{value:g}" if isinstance(value, float) else str(value)
