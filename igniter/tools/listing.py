"""`igniter-opt --list-passes`, `--list-pipelines`, `--show-dialects`, `--list-fusion-authors` and
`--list-schedule-authors`; with `=json`, passes and pipelines for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from igniter.pipelines import PIPELINES, find_pipeline
from igniter.registry import (
    DIALECTS,
    all_fusion_authors,
    all_passes,
    all_schedule_authors,
    external,
    load_fusion_author,
    load_pass,
    load_schedule_author,
)
from igniter.rewrite_budget import what_counts
from igniter.tools.describing import options_of, summary_of, to_dict

if TYPE_CHECKING:
    from xdsl.utils.arg_spec import ArgSpecConvertible


def list_passes(stream: IO[str], form: str = "text") -> None:
    """Prints every pass with its one-line summary and its options."""
    if form == "json":
        rows = [to_dict(name, load_pass(name), where) for name, where in all_passes().items()]
        print(json.dumps(rows, indent=2), file=stream)
        return
    _list({name: load_pass(name) for name in all_passes()}, stream)


def list_fusion_authors(stream: IO[str], form: str = "text") -> None:
    """Prints every fusion author with its one-line summary and its options."""
    _list({name: load_fusion_author(name) for name in all_fusion_authors()}, stream)


def list_schedule_authors(stream: IO[str], form: str = "text") -> None:
    """Prints every schedule author with its one-line summary and its options."""
    _list({name: load_schedule_author(name) for name in all_schedule_authors()}, stream)


def _list(found: Mapping[str, type[ArgSpecConvertible]], stream: IO[str]) -> None:
    width = max(map(len, found))
    for name, kind_of in found.items():
        print(f"{name:<{width}}  {summary_of(kind_of)}", file=stream)
        for option in options_of(kind_of):
            print(f"{'':<{width}}    {option}", file=stream)
        if what_counts(kind_of):
            print(f"{'':<{width}}    one rewrite: {what_counts(kind_of)}", file=stream)


def list_pipelines(stream: IO[str], form: str = "text") -> None:
    """Prints every named pipeline with its passes."""
    if form == "json":
        names = [*PIPELINES, *external("pipelines")]
        print(json.dumps({name: list(find_pipeline(name) or ()) for name in names}, indent=2), file=stream)
        return
    for name, passes in PIPELINES.items():
        print(f"{name}\n    {', '.join(passes)}", file=stream)
    for name, where in external("pipelines").items():
        print(f"{name}\n    from {where}", file=stream)


def show_dialects(stream: IO[str], form: str = "text") -> None:
    """Prints the name of every dialect and its class."""
    found = {**external("dialects"), **DIALECTS}
    for name, where in sorted(found.items()):
        print(f"{name:<{max(map(len, found))}}  {where}", file=stream)
