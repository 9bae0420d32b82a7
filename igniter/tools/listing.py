"""`igniter-opt --list-passes`, `--list-pipelines`, `--list-fusion-authors` and `--list-schedule-authors`."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from igniter.pipelines import PIPELINES
from igniter.registry import (
    all_fusion_authors,
    all_passes,
    all_schedule_authors,
    external,
    load_fusion_author,
    load_pass,
    load_schedule_author,
)
from igniter.rewrite_budget import what_counts

if TYPE_CHECKING:
    from xdsl.utils.arg_spec import ArgSpecConvertible


def summary_of(documented: Any) -> str:
    """Returns the first sentence of a class's docstring, or of its module's if the class has none."""
    text = str(getattr(documented, "__doc__", None) or "")
    if not text or text.startswith(f"{documented.__name__}("):  # the default docstring of @dataclass
        text = sys.modules[documented.__module__].__doc__ or ""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".")


def options_of(pass_type: type[ArgSpecConvertible]) -> list[tuple[str, str, str]]:
    """Returns name, type and default of each option, as written in a pipeline."""
    rows: list[tuple[str, str, str]] = []
    for option in dataclasses.fields(pass_type):
        if option.default is not dataclasses.MISSING:
            default = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
        elif option.default_factory is not dataclasses.MISSING:
            default = str(option.default_factory())
        else:
            default = "required"
        rows.append((option.name.replace("_", "-"), str(option.type), default))
    return rows


def list_passes(stream: IO[str]) -> None:
    """Prints every pass with its one-line summary and its options."""
    _list({name: load_pass(name) for name in all_passes()}, stream)


def list_fusion_authors(stream: IO[str]) -> None:
    """Prints every fusion author with its one-line summary and its options."""
    _list({name: load_fusion_author(name) for name in all_fusion_authors()}, stream)


def list_schedule_authors(stream: IO[str]) -> None:
    """Prints every schedule author with its one-line summary and its options."""
    _list({name: load_schedule_author(name) for name in all_schedule_authors()}, stream)


def _list(found: Mapping[str, type[ArgSpecConvertible]], stream: IO[str]) -> None:
    width = max(map(len, found))
    for name, kind_of in found.items():
        print(f"{name:<{width}}  {summary_of(kind_of)}", file=stream)
        for option, kind, default in options_of(kind_of):
            print(f"{'':<{width}}    {option}: {kind} = {default}", file=stream)
        if what_counts(kind_of):
            print(f"{'':<{width}}    one rewrite: {what_counts(kind_of)}", file=stream)


def list_pipelines(stream: IO[str]) -> None:
    """Prints every named pipeline with its passes."""
    for name, passes in PIPELINES.items():
        print(f"{name}\n    {', '.join(passes)}", file=stream)
    for name, where in external("pipelines").items():
        print(f"{name}\n    from {where}", file=stream)
