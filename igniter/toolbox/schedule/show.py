"""`igniter schedule`: cites, exports or imports schedules, and prints."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from igniter.analysis.fusion.author import make_author as fusion_author
from igniter.registry import all_fusion_authors, all_schedule_authors
from igniter.schedules.author import make_author as schedule_author
from igniter.schedules.citation import Citation, cite_author, cite_schedule
from igniter.targets import backend_for
from igniter.toolbox.output import console, parse_sizes, print_json
from igniter.toolbox.schedule.exchange import export_schedules, found_kernels, import_schedules
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.toolbox.tune.store import database_path
from igniter.transforms.structured.schedule_database import opened

if TYPE_CHECKING:
    from igniter.toolbox.schedule.exchange import Imported
    from igniter.toolbox.schedule.request import ScheduleRequest


def run(request: ScheduleRequest) -> int:
    """Performs the action and prints; returns 1 if a schedule was refused."""
    return {"cite": _cite, "export": _export, "import": _import}[request.action](request)


def _cite(request: ScheduleRequest) -> int:
    if request.file:
        target = backend_for(request.target).target_of(request.target)
        kernels = found_kernels(request.file, target, parse_sizes(request.sizes), request.kernel)
        found = {f"@{name}": cite_schedule(op) for name, op in kernels.items()}
    else:
        found = {f"{c.kind} {c.name}": c for c in _authors()}
    if request.json:
        print_json({place: citation.to_dict() for place, citation in found.items()})
    else:
        _table("of", [(place, citation, "") for place, citation in found.items()])
    return 0


def _authors() -> list[Citation]:
    return [
        *(cite_author(fusion_author(name)) for name in all_fusion_authors()),
        *(cite_author(schedule_author(name)) for name in all_schedule_authors()),
    ]


def _export(request: ScheduleRequest) -> int:
    target = backend_for(request.target).target_of(request.target)
    path = database_path(request.db)
    with ExitStack() as stack:
        database = stack.enter_context(opened(path)) if request.db or path.is_file() else None
        found = export_schedules(
            request.file,
            request.output,
            target,
            database,
            sizes=parse_sizes(request.sizes),
            kernel=request.kernel,
            author=request.author,
            citation=(request.cite_as, request.cite_version, request.source),
        )
    if request.json:
        print_json({"output": request.output, "kernels": [asdict(each) for each in found]})
    else:
        _table("kernel", [(f"@{e.kernel}", e.citation, e.origin) for e in found])
    return 0


def _import(request: ScheduleRequest) -> int:
    target = backend_for(request.target).target_of(request.target)
    path = database_path(request.db)
    with opened(path, create=True) as database:
        found = import_schedules(
            request.file,
            target,
            database,
            sizes=parse_sizes(request.sizes),
            kernel=request.kernel,
            threads=request.threads,
            executor=LocalExecutor() if request.timed else None,
        )
    if request.json:
        print_json({"db": str(path), "target": target.key, "kernels": [_facts(each) for each in found]})
    else:
        _table("kernel", [(f"@{e.kernel}", e.citation, _outcome(e)) for e in found])
    return int(any(each.entry is None for each in found))


def _facts(found: Imported) -> dict[str, object]:
    entry = None if found.entry is None else asdict(found.entry)
    return {"kernel": found.kernel, "citation": found.citation.to_dict(), "entry": entry, "reason": found.reason}


def _outcome(found: Imported) -> str:
    if found.entry is None:
        return f"refused, {found.reason}"
    if not found.entry.is_timed:
        return "added, not timed"
    return f"added, {found.entry.ratio:.2f} of the default's time (noise {found.entry.noise:.1%})"


def _table(first: str, rows: list[tuple[str, Citation, str]]) -> None:
    table = Table(first, "name", "version", "hash", "source", *(["outcome"] if any(r[2] for r in rows) else []))
    for place, citation, outcome in rows:
        texts = (place, citation.name or "-", citation.version or "-", citation.hash or "-", citation.source or "-")
        table.add_row(*map(escape, (*texts, *([outcome] if outcome else []))))
    console().print(table)
