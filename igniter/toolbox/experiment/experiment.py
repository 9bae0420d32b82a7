"""`igniter.experiment`: an experiment from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any

from igniter.compiler.arguments import require_shapes
from igniter.toolbox.experiment.cluster import RayCluster
from igniter.toolbox.experiment.results import ExperimentResult
from igniter.toolbox.experiment.runs import run_experiment
from igniter.toolbox.experiment.shipped import spec_named
from igniter.toolbox.experiment.spec import ModelSpec
from igniter.toolbox.experiment.spec_reading import spec_of


def experiment(
    spec: str | PathLike[str] | Mapping[str, Any],
    folder: str | PathLike[str] | None = None,
    *,
    models: Sequence[str | PathLike[str]] | None = None,
    shapes: Sequence[Mapping[str, int]] = (),
    ray: str | None = None,
    progress: Callable[[str], object] = lambda _: None,
) -> ExperimentResult:
    """Runs an experiment, or continues the one in `folder`; returns its rows, which a notebook shows as a table.

    `spec` is a TOML file, the name of a shipped specification (`fusion`, `schedules`, `peers`), or its content as a
    mapping. `folder` is `SPEC.experiment` by default. `models`, at sizes `shapes`, replace those of the specification.
    `ray` is the address of a Ray cluster, "auto" or "local". `progress` gets a line for each step. Raises
    `IgniterError` for an invalid specification; a variant that fails is a row with the reason.
    """
    require_shapes("experiment", shapes)
    if isinstance(spec, Mapping):
        found, text, name = spec_of(spec), "", "experiment"
        found = dataclasses.replace(found, folder=str(Path.cwd()))
    else:
        found, text = spec_named(str(spec))
        name = Path(spec).stem
    if models is not None:
        named = [str(Path(m).resolve()) if Path(m).exists() else str(m) for m in models]
        found = dataclasses.replace(found, models=tuple(ModelSpec(m, tuple(shapes)) for m in named))
    root = Path(folder) if folder is not None else Path(f"{name}.experiment")
    if ray is None:
        return run_experiment(found, root, say=progress, text=text)
    with closing(RayCluster("" if ray == "local" else ray)) as cluster:
        return run_experiment(found, root, say=progress, text=text, cluster=cluster)
