"""`igniter-opt --list-passes` and `--list-pipelines`."""

from __future__ import annotations

import inspect
import sys
from typing import IO, TYPE_CHECKING, Any

from igniter.pipelines import PIPELINES
from igniter.registry import all_passes, external, load_pass
from igniter.rewrites import what_counts

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def summary_of(documented: Any) -> str:
    """The first sentence of a class's docstring, or of its module's where the class has none of its own."""
    text = str(getattr(documented, "__doc__", None) or "")
    if not text or text.startswith(f"{documented.__name__}("):  # what @dataclass puts where there is none
        text = sys.modules[documented.__module__].__doc__ or ""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".")


def options_of(pass_type: type[ModulePass]) -> list[tuple[str, str, str]]:
    """Name, type and default of each option, as written in a pipeline."""
    import dataclasses

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
    """Every pass with its one-line summary, its options, and what counts as one rewrite."""
    names = all_passes()
    width = max(map(len, names))
    for name in names:
        pass_type = load_pass(name)
        print(f"{name:<{width}}  {summary_of(pass_type)}", file=stream)
        for option, kind, default in options_of(pass_type):
            print(f"{'':<{width}}    {option}: {kind} = {default}", file=stream)
        if what_counts(pass_type):
            print(f"{'':<{width}}    one rewrite: {what_counts(pass_type)}", file=stream)


def list_pipelines(stream: IO[str]) -> None:
    """Every named pipeline with its passes."""
    for name, passes in PIPELINES.items():
        print(f"{name}\n    {', '.join(passes)}", file=stream)
    for name, where in external("pipelines").items():
        print(f"{name}\n    from {where}", file=stream)
