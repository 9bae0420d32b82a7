"""`igniter experiment`: runs, continues or replays an experiment, and prints its table."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.toolbox.experiment.archive import ARCHIVE, beside, replay, unpack_spec
from igniter.toolbox.experiment.cluster import RayCluster
from igniter.toolbox.experiment.outputs import notes_of, table_of
from igniter.toolbox.experiment.plots import can_plot
from igniter.toolbox.experiment.runs import run_experiment, write_outputs
from igniter.toolbox.experiment.shipped import shipped_spec, shipped_specs, spec_named
from igniter.toolbox.experiment.spec import ModelSpec, Spec
from igniter.toolbox.output import console, parse_shapes, print_json, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from igniter.toolbox.experiment.request import ExperimentRequest
    from igniter.toolbox.experiment.results import ExperimentResult

COLOURS = {"faster": "green", "slower": "red", "failed": "red", "inconclusive": "yellow", "unavailable": "yellow"}


def run(request: ExperimentRequest) -> int:
    """Performs the request; returns the exit status: 1 if a variant failed, or if a replay gave another table."""
    if request.list_specs:
        return _list(request)
    if request.rerun and not request.replay:
        raise IgniterError("--rerun runs an archive again: give --replay ARCHIVE with it")
    if request.replay:
        return _replay(request)
    if not request.spec:
        raise IgniterError("give a specification (a .toml file, or a name of --list), --replay ARCHIVE, or --list")
    spec, text = spec_named(request.spec)
    spec = _changed(spec, request)
    folder = Path(request.output or f"{Path(request.spec).stem}.experiment")
    result = _run(spec, folder, text, request)
    _show(result, request, folder / ARCHIVE)
    return 1 if result.failures else 0


def _changed(spec: Spec, request: ExperimentRequest) -> Spec:
    """Returns the specification with what the command line says."""
    measure = spec.measure
    for name in ("rounds", "launches"):
        if getattr(request, name):
            measure = dataclasses.replace(measure, **{name: getattr(request, name)})
    if measure.rounds < 2:
        raise IgniterError("--rounds must be from 2 on: an interval needs several rounds")
    models = spec.models
    if request.models:
        sizes = tuple(parse_shapes(request.shapes) or [])
        models = tuple(
            ModelSpec(name if not Path(name).exists() else str(Path(name).resolve()), sizes) for name in request.models
        )
    elif request.shapes:
        raise IgniterError("--shape gives sizes to the models of --model; the specification has those of its models")
    return dataclasses.replace(spec, measure=measure, models=models)


def _run(spec: Spec, folder: Path, text: str, request: ExperimentRequest) -> ExperimentResult:
    with progress(spec.title, request.json, lines=True) as say:
        if request.ray is None:
            return run_experiment(spec, folder, say=say, text=text)
        with closing(RayCluster("" if request.ray == "local" else request.ray)) as cluster:
            return run_experiment(spec, folder, say=say, text=text, cluster=cluster)


def _list(request: ExperimentRequest) -> int:
    found = {name: shipped_spec(name) for name in shipped_specs()}
    if request.json:
        print_json({name: spec.to_dict() for name, spec in found.items()})
        return 0
    table = Table("name", "title", "variants", "models")
    for name, spec in found.items():
        variants, models = ", ".join(v.name for v in spec.variants), ", ".join(m.name for m in spec.models)
        table.add_row(name, *map(escape, (spec.title, variants, models)))
    console().print(table)
    return 0


def _replay(request: ExperimentRequest) -> int:
    given = [name for name in ("spec", "models", "shapes", "rounds", "launches") if getattr(request, name)]
    if given:
        raise IgniterError(f"--replay takes everything from the archive: leave out {', '.join(given)}")
    if not request.rerun:
        if request.ray is not None:
            raise IgniterError("--ray is for runs: give --rerun with --replay, or leave it out")
        found = replay(request.replay)
        if request.output:
            write_outputs(found.result, Path(request.output))
        _show(found.result, request, None)
        if not found.reproduced and not request.json:
            console(stderr=True).print("the stored table differs from that of the raw times", style="red")
        return 0 if found.reproduced else 1
    before = replay(request.replay).result
    folder = Path(request.output or f"{Path(request.replay).stem}.again")
    after = _run(unpack_spec(request.replay, folder), folder, "", request)
    rows = beside(before, after)
    if request.json:
        print_json({"before": before.to_dict(), "after": after.to_dict(), "agree": [row.agrees for row in rows]})
    else:
        table = Table("model", "variant", "archived", "", "again", "", "agree")
        for row in rows:
            cells = [_ratio(row.before), row.before.status, _ratio(row.after), row.after.status]
            verdict = "yes" if row.agrees else "[red]no"
            table.add_row(*map(escape, (row.before.model, row.before.variant, *cells)), verdict)
        console().print(table)
    return 1 if after.failures else 0


def _ratio(row: object) -> str:
    ratio = getattr(row, "ratio", None)
    return "" if ratio is None else f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=escape(title))
    for head in heads:
        table.add_column(head, no_wrap=head in ("variant", "time / base", "verdict"))
    for row in rows:
        if row[0]:
            table.add_section()
        table.add_row(*(f"[{COLOURS[cell]}]{cell}" if cell in COLOURS else escape(cell) for cell in row))
    return table


def _show(result: ExperimentResult, request: ExperimentRequest, archive: Path | None) -> None:
    if request.json:
        print_json(result.to_dict())
        return
    heads, rows = table_of(result)
    out = console()
    title = f"{result.title}: time relative to '{result.base}'"
    named = heads.index("variant") + 1
    told = heads.index("verdict") + 1 if "verdict" in heads else len(heads)
    out.print(_table(title, heads[:told], [row[:told] for row in rows]))
    if told < len(heads):
        # All columns in one table are too wide for a terminal.
        others = [[*row[:named], *row[told:]] for row in rows if any(row[told:])]
        out.print(_table("what was compiled", [*heads[:named], *heads[told:]], others))
    for note in notes_of(result):
        out.print(note, markup=False)
    if archive is None:
        return
    if not can_plot():
        out.print(f"no plots: they need matplotlib, {install_command('experiment')}", style="yellow", markup=False)
    out.print(str(archive), style="bold", markup=False)
