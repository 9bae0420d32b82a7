"""Completions for the values of options. Nothing here reads a model or has a slow import."""

from __future__ import annotations

from dataclasses import fields


def targets(incomplete: str) -> list[str]:
    """Returns completions of `incomplete` in a list of targets: of the last one, and of the features added to it.
    Targets of backends other than the CPU's are offered once their name is written, because the list may take long."""
    from igniter.registry import BACKENDS, external, load_backend
    from igniter.targets import DEFAULT

    before, comma, last = incomplete.rpartition(",")
    names: list[str] = []
    for backend in {**external("backends"), **BACKENDS}:
        if backend == DEFAULT or last.startswith(backend):
            names += load_backend(backend)().target_names(last)
        elif backend.startswith(last):
            names.append(backend)
    return [f"{before}{comma}{name}" for name in dict.fromkeys(names) if name not in before.split(",")]


def fusion_authors(incomplete: str) -> list[str]:
    """Returns the names of the fusion authors."""
    from igniter.registry import all_fusion_authors

    return [name for name in all_fusion_authors() if name.startswith(incomplete)]


def pipeline(incomplete: str) -> list[str]:
    """Returns completions of `incomplete` in a pipeline: a pass or a named pipeline, or, inside a brace, an option of
    its pass."""
    start = _last_element(incomplete)
    before, element = incomplete[:start], incomplete[start:]
    name, brace, options = element.partition("{")
    if not brace:
        from igniter.pipelines import PIPELINES
        from igniter.registry import all_passes, external

        known = [*PIPELINES, *external("pipelines"), *all_passes()]
        return [f"{before}{each}" for each in dict.fromkeys(known) if each.startswith(name)]
    given, space, option = options.rpartition(" ")
    return [f"{before}{name}{{{given}{space}{each}" for each in pass_options(name) if each.startswith(option)]


def pass_options(name: str) -> list[str]:
    """Returns the options of a pass, each with its equals sign; an empty list for an unknown pass."""
    from igniter.registry import load_pass, where_pass

    if where_pass(name) is None:
        return []
    return [f"{field.name.replace('_', '-')}=" for field in fields(load_pass(name)) if field.name != "name"]


def _last_element(text: str) -> int:
    """Returns the start of the last pass in a pipeline: after the last comma outside braces."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "," and not depth:
            start = at + 1
    return start
