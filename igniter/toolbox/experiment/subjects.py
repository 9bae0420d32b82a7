"""The models of an experiment, found by name.

A name is a file, a folder of models (every `.onnx` file in it), a shipped network (`networks.py`), or a model of the
benchmark (`benchmark/models` of Igniter's repository, where that can be imported).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.runtime.digests import file_digest
from igniter.toolbox.experiment.jobs import run_job
from igniter.toolbox.experiment.networks import NETWORKS
from igniter.toolbox.experiment.spec import ModelSpec, Spec

WORK = "igniter.toolbox.experiment.work"
PEERS = "igniter.toolbox.experiment.peers"


@dataclass(frozen=True)
class Subject:
    """A model of an experiment."""

    name: str
    path: str
    digest: str
    sizes: tuple[dict[str, int], ...]
    """The choices of sizes to run it at; one empty choice if none are given."""
    source: str = "file"
    """`file`, `network` or `benchmark`."""
    torch: tuple[str, ...] = ()
    """The torch module of a model of the benchmark, for peers that need it."""
    reason: str = ""
    """The reason why there is no such model, if its name is valid and it cannot be made."""


def subjects_of(spec: Spec, folder: Path, say: Callable[[str], object] = lambda _: None) -> list[Subject]:
    """Returns the models of a specification; those made by code are written to `folder`. Raises `IgniterError` for an
    unknown name."""
    found = [subject for asked in spec.models for subject in _subjects(asked, spec, folder, say)]
    names = [s.name for s in found]
    for name in names:
        if names.count(name) > 1:
            raise IgniterError(f"two models are called '{name}': rename one of the files")
    return found


def require_models(spec: Spec) -> None:
    """Raises `IgniterError` for a name without a model, before any work."""
    for asked in spec.models:
        _kind(asked.name, spec)


def _kind(name: str, spec: Spec) -> str:
    path = Path(spec.folder) / name
    # First: a shipped specification means the same wherever it is run.
    if name in NETWORKS:
        return "network"
    if path.is_file():
        return "file"
    if path.is_dir():
        return "folder"
    others = benchmark_models()
    if name in others:
        return "benchmark"
    known = [*NETWORKS, *others]
    close = difflib.get_close_matches(name, known, n=1)
    raise IgniterError(
        f"there is no model '{name}': neither the file {path} nor a network; networks are {', '.join(NETWORKS)}"
        + (f", and {len(others)} models of the benchmark" if others else "")
        + (f"; did you mean '{close[0]}'?" if close else "")
    )


def benchmark_models() -> Sequence[str]:
    """Returns the names of the benchmark's models; none if the benchmark or its packages are not installed."""
    if find_spec("benchmark") is None or find_spec("benchmark.models.subjects") is None:
        return ()
    try:
        names: Sequence[str] = import_module("benchmark.models.subjects").names()
    except ImportError:
        return ()
    return names


def _subjects(asked: ModelSpec, spec: Spec, folder: Path, say: Callable[[str], object]) -> list[Subject]:
    sizes = tuple(dict(case) for case in asked.sizes or spec.sizes) or ({},)
    kind, path = _kind(asked.name, spec), Path(spec.folder) / asked.name
    if kind == "file":
        return [_file(path, sizes)]
    if kind == "folder":
        files = sorted(path.glob("*.onnx"))
        if not files:
            raise IgniterError(f"the folder {path} has no model: no file in it ends in .onnx")
        return [_file(file, sizes) for file in files]
    say(f"writing {asked.name}")
    limit = spec.measure.limit
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "network":
        target = folder / f"{asked.name}.onnx"
        run_job(f"{WORK}:write_network", {"name": asked.name, "path": str(target)}, limit=limit)
        return [Subject(asked.name, str(target), file_digest(target), sizes, kind)]
    arguments = {"name": asked.name, "folder": str(folder)}
    try:
        made: dict[str, Any] = run_job(f"{PEERS}:write_model", arguments, limit=limit)
    except IgniterError as error:
        return [Subject(asked.name, "", "", sizes, kind, reason=error.message)]
    digest = file_digest(made["path"])
    return [Subject(asked.name, made["path"], digest, sizes, kind, tuple(made["torch"]))]


def _file(path: Path, sizes: tuple[dict[str, int], ...]) -> Subject:
    return Subject(path.stem, str(path.resolve()), file_digest(path), sizes)
