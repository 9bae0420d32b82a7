"""A run of an experiment: its comparisons one after the other, then tables, plots and the archive.

Everything is in one folder (`store.py`). A run that was interrupted continues when it is started again in the same
folder; a changed specification keeps what it still needs.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.experiment import peers
from igniter.toolbox.experiment.archive import TABLE, write_archive
from igniter.toolbox.experiment.comparison import LOCAL, Case, Comparison, cases_of
from igniter.toolbox.experiment.plots import can_plot, save_plots
from igniter.toolbox.experiment.records import FORMAT, result_of
from igniter.toolbox.experiment.results import ExperimentResult
from igniter.toolbox.experiment.spec import Spec
from igniter.toolbox.experiment.store import EXPERIMENT, Store, read_record, versions
from igniter.toolbox.experiment.subjects import Subject, require_models, subjects_of

Say = Callable[[str], object]


class Cluster(Protocol):
    """Machines that comparisons are spread over."""

    def run(self, spec: Spec, cases: list[Case], store: Store, say: Say) -> None:
        """Runs comparisons, and writes their records into the store."""
        ...


def run_experiment(
    spec: Spec, folder: str | Path, *, say: Say = lambda _: None, text: str = "", cluster: Cluster | None = None
) -> ExperimentResult:
    """Runs an experiment in a folder, or continues it; returns its result. `text` is the specification as written."""
    root = Path(folder)
    require_models(spec)
    require_folder(root)
    root.mkdir(parents=True, exist_ok=True)
    store = Store(root.resolve())
    subjects = subjects_of(spec, store.root / "models", say)
    cases = cases_of(spec, subjects)
    _write_index(spec, store, subjects, cases, text)
    if cluster is not None:
        cluster.run(spec, cases, store, say)
    else:
        for case in cases:
            Comparison(spec, case, store, say).run()
    result = dataclasses.replace(result_of(store.root), folder=str(root))
    write_outputs(result, root)
    write_archive(root)
    return result


def write_outputs(result: ExperimentResult, folder: Path) -> list[Path]:
    """Writes the tables of a result, and its plots where matplotlib is installed; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / TABLE, result.to_csv())
    write_whole(folder / "table.tex", result.to_latex())
    plots = save_plots(result.figure(), folder) if can_plot() else []
    return [folder / TABLE, folder / "table.tex", *plots]


def require_folder(root: Path) -> None:
    """Raises `IgniterError` for a folder with other things in it. Models alone are those of an archive, which a rerun
    writes first."""
    if not root.exists() or (root.is_dir() and {place.name for place in root.iterdir()} <= {"models"}):
        return
    if not root.is_dir() or read_record(root, EXPERIMENT) is None:
        raise IgniterError(f"{root} is there and is no experiment: give -o another folder")


def _write_index(spec: Spec, store: Store, subjects: list[Subject], cases: list[Case], text: str) -> None:
    used = {v.system for v in spec.variants if v.system not in LOCAL}
    found = {peer: peers.version_of(peer) for peer in sorted(used) if peers.unavailable(peer) is None}
    index = {
        "format": FORMAT,
        "spec": spec.to_dict(),
        "folder": spec.folder,
        "versions": {**versions(), **found},
        "subjects": [asdict(subject) for subject in subjects],
        "cases": [case.id for case in cases],
    }
    if text:
        write_whole(store.root / "spec.toml", text)
    write_whole(store.root / EXPERIMENT, json.dumps(index, indent=1))
