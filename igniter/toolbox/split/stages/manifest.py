"""`manifest.json` of a folder of stages: the models with their inputs and outputs.

    {"version": 1, "kind": "pipeline", "inputs": ["x"], "outputs": ["y"],
     "stages": [{"name": "stage0", "model": "stage0.onnx", "inputs": ["x"], "outputs": ["h"], ...}, ...]}

A value has one name everywhere, its name in the whole model. Stages run in order; each reads inputs of the whole model
and results of earlier stages. In a folder of `kind` `tensor` the models are ranks; they run side by side and
synchronise at the collectives named in them (`igniter.collective.AllReduce`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole

FILE = "manifest.json"
VERSION = 1


@dataclass(frozen=True)
class Stage:
    """One model of a folder. `costs` are its flops, bytes or seconds, if they were counted."""

    name: str
    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int = 0
    costs: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Segment:
    """The work of every rank between two collectives: the models, one a rank, and the sums after it."""

    models: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reduces: dict[str, str] = field(default_factory=dict[str, str])
    """The name of a sum over all ranks, and the name of each rank's part of it."""


@dataclass(frozen=True)
class Manifest:
    """The content of a folder of stages."""

    kind: Literal["pipeline", "tensor"]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes behind the costs."""
    folder: Path = Path()
    segments: tuple[Segment, ...] = ()
    """The segments of ranks, in order."""

    def places(self) -> list[list[str]]:
        """Returns the models of each stage, or of each rank: each list must be in one place."""
        if self.kind == "pipeline":
            return [[s.model] for s in self.stages]
        return [[s.models[rank] for s in self.segments] for rank in range(len(self.stages))]

    def flows(self) -> list[dict[str, Any]]:
        """Returns each value between stages: its name, its stage, and the stages that read it."""
        made = {name: s.name for s in self.stages for name in s.outputs}
        readers: dict[str, list[str]] = {}
        for stage in self.stages:
            for name in stage.inputs:
                if name in made:
                    readers.setdefault(name, []).append(stage.name)
        return [{"value": name, "from": made[name], "to": to} for name, to in readers.items()]

    def path(self, stage: Stage) -> Path:
        """Returns the path of a stage's model."""
        return self.folder / stage.model

    def write(self) -> Path:
        """Writes the manifest into the folder of the models."""
        data: dict[str, Any] = {"version": VERSION, "kind": self.kind}
        data |= {"inputs": list(self.inputs), "outputs": list(self.outputs), "sizes": self.sizes}
        data["stages"] = [asdict(s) for s in self.stages]
        if self.kind == "pipeline":
            data["flows"] = self.flows()
        else:
            data["segments"] = [asdict(s) for s in self.segments]
        path = self.folder / FILE
        write_whole(path, json.dumps(data, indent=2) + "\n")
        return path


def read_manifest(folder: str | Path) -> Manifest:
    """Reads the manifest of a folder; raises `IgniterError` if it is missing, or models are missing."""
    where = Path(folder)
    path = where / FILE if where.is_dir() else where
    try:
        data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise IgniterError(f"{folder} is no folder of stages: there is no {FILE} ({error.strerror})") from error
    except ValueError as error:
        raise IgniterError(f"{path} is no JSON: {error}") from error
    if data.get("version") != VERSION:
        raise IgniterError(f"{path} has version {data.get('version')}, and {VERSION} is what is read")
    try:
        stages = [
            Stage(s["name"], s["model"], tuple(s["inputs"]), tuple(s["outputs"]), s.get("nodes", 0), s.get("costs", {}))
            for s in data["stages"]
        ]
        segments = [
            Segment(tuple(s["models"]), tuple(s["inputs"]), tuple(s["outputs"]), s["reduces"])
            for s in data.get("segments", ())
        ]
        names = tuple(data["inputs"]), tuple(data["outputs"])
        sizes = data.get("sizes", {})
        found = Manifest(data["kind"], *names, tuple(stages), sizes, path.parent, tuple(segments))
    except (KeyError, TypeError) as error:
        raise IgniterError(f"{path} is not a manifest of stages: {error!r} is missing or wrong") from error
    models = [*(s.model for s in found.stages), *(m for s in found.segments for m in s.models)]
    missing = [m for m in models if not (found.folder / m).is_file()]
    if missing:
        raise IgniterError(f"{folder} has no {', '.join(missing)}, which its {FILE} names")
    _require_order(found)
    return found


def _require_order(manifest: Manifest) -> None:
    if manifest.kind != "pipeline":
        return
    known = set(manifest.inputs)
    for stage in manifest.stages:
        for name in stage.inputs:
            if name not in known:
                raise IgniterError(f"stage {stage.name} reads '{name}', which no stage before it computes")
        known.update(stage.outputs)
    for name in manifest.outputs:
        if name not in known:
            raise IgniterError(f"no stage computes the output '{name}'")


def last_reader(stages: Sequence[Stage], outputs: Sequence[str]) -> dict[str, int]:
    """Returns for every value the position of its last reader among the stages; an output counts as read after the last
    stage."""
    found: dict[str, int] = {}
    for i, stage in enumerate(stages):
        for name in stage.inputs:
            found[name] = i
    return {**found, **dict.fromkeys(outputs, len(stages))}
