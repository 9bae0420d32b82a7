"""The compiled folders of an experiment's variants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.toolbox.experiment.records import read_index
from igniter.toolbox.experiment.store import read_record


@dataclass(frozen=True)
class Case:
    """A comparison of an experiment, for two of its variants."""

    model: str
    """The file of the model."""
    inputs: str
    """The file of its inputs."""
    folders: tuple[str, str]


def case_of(root: str, name: str, a: str, b: str) -> Case:
    """Returns a comparison of the experiment in a folder, for two of its variants. `name` is that of the comparison or
    its beginning, if no other begins like it; with one comparison, "" suffices.
    Raises `IgniterError` for an unknown comparison or variant."""
    folder = Path(root)
    index = read_index(folder)
    cases: list[str] = index["cases"]
    if not name and len(cases) > 1:
        raise IgniterError(f"{root} has several comparisons; --case: {', '.join(cases)}")
    beginning = [case for case in cases if case.startswith(name)]
    name = beginning[0] if len(beginning) == 1 else name
    about, checks = (read_record(folder, f"cases/{name}/{file}.json") for file in ("case", "checks"))
    if about is None or checks is None:
        raise IgniterError(f"{root} has no finished comparison '{name}'; it has: {', '.join(cases)}")
    builds: dict[str, dict[str, Any]] = checks["builds"]
    compiled = {v: str(folder / "builds" / found["build"] / "model") for v, found in builds.items() if "build" in found}
    for variant in (a, b):
        if variant not in compiled:
            raise IgniterError(f"{root} has no compiled variant '{variant}'; it has: {', '.join(compiled)}")
    paths = {subject["name"]: str(subject["path"]) for subject in index["subjects"]}
    return Case(paths[about["model"]], str(folder / "cases" / name / "inputs.npz"), (compiled[a], compiled[b]))
