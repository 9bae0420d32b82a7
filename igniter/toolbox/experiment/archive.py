"""The archive of a run: one zip file for the evaluation of an artifact, from which tables are made again.

It has the records of the run without compiled models and inputs, the tables, the plots, and the models up to
`LARGEST_MODEL` bytes. Larger ones are named with their hash. A replay computes the tables from the raw times; with
models and `rerun`, everything is built and timed again, and the two results are set beside each other.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from igniter.errors import IgniterError
from igniter.runtime.digests import file_digest
from igniter.runtime.files import write_whole
from igniter.toolbox.experiment.records import read_index, result_of
from igniter.toolbox.experiment.results import ExperimentResult, Row
from igniter.toolbox.experiment.spec import ModelSpec, Spec
from igniter.toolbox.experiment.spec_reading import spec_of
from igniter.toolbox.experiment.store import EXPERIMENT, Files, read_record

ARCHIVE, TABLE = "experiment.zip", "results.csv"
OUTPUTS = (TABLE, "table.tex", "plot.svg", "plot.pdf", "spec.toml")
LARGEST_MODEL = 32 << 20


def write_archive(root: Path) -> Path:
    """Writes the archive of a run into its folder."""
    index = read_index(root)
    target = root / ARCHIVE
    temporary = root / f".{ARCHIVE}.tmp"
    models = _models(index)
    said = {**index, "models": {name: f"models/{path.name}" for name, path in models.items()}}
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(EXPERIMENT, json.dumps(said, indent=1))
            for path in _files(root, index):
                archive.write(root / path, path)
            for path in models.values():
                archive.write(path, f"models/{path.name}")
        write_whole(target, temporary.read_bytes())
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _models(index: Mapping[str, Any]) -> dict[str, Path]:
    """Returns the models of an archive, by name: files that are small enough, without files of weights beside them."""
    found: dict[str, Path] = {}
    for subject in index["subjects"]:
        path = Path(subject["path"])
        if subject["path"] and path.is_file() and path.stat().st_size <= LARGEST_MODEL:
            found[subject["name"]] = path
    return found


def _files(root: Path, index: Mapping[str, Any]) -> Iterator[str]:
    """Yields the files of a run that belong to its archive."""
    yield from (name for name in OUTPUTS if (root / name).is_file())
    builds: set[str] = set()
    for case in index["cases"]:
        folder = root / "cases" / case
        yield from sorted(p.relative_to(root).as_posix() for p in folder.glob("*.json"))
        said = read_record(root, f"cases/{case}/checks.json") or {}
        builds |= {build["build"] for build in said.get("builds", {}).values() if "build" in build}
    for build in sorted(builds):
        folder = root / "builds" / build
        found = [*folder.glob("*.json"), *folder.glob("ir/*")]
        yield from sorted(p.relative_to(root).as_posix() for p in found)


@dataclass(frozen=True)
class Replay:
    """An archive read again: its result, and whether its table came out as it is stored."""

    result: ExperimentResult
    reproduced: bool


def opened(path: str | Path) -> Files:
    """Returns the files of an archive, or of a folder of a run."""
    source = Path(path)
    if source.is_dir():
        return source
    try:
        return cast("Files", zipfile.Path(zipfile.ZipFile(source)))
    except (OSError, zipfile.BadZipFile) as error:
        raise IgniterError(f"cannot read the archive {source}: {error}") from error


def replay(path: str | Path) -> Replay:
    """Computes the tables of an archive from its raw times, and compares them with the stored ones."""
    root = opened(path)
    result = dataclasses.replace(result_of(root), folder=str(path))
    stored = root / TABLE
    return Replay(result, not stored.is_file() or stored.read_text(encoding="utf-8") == result.to_csv())


def unpack_spec(path: str | Path, folder: Path) -> Spec:
    """Returns the specification of an archive, to run it again in `folder`, where its models are written. Raises
    `IgniterError` for a model that is neither in the archive nor where the specification found it."""
    root = opened(path)
    index = read_index(root)
    spec = spec_of(index["spec"], str(path))
    models = tuple(_unpacked(subject, index.get("models", {}), path, folder) for subject in index["subjects"])
    return dataclasses.replace(spec, models=models, folder=index.get("folder", ""))


def _unpacked(subject: Mapping[str, Any], stored: Mapping[str, str], path: str | Path, folder: Path) -> ModelSpec:
    sizes = tuple(subject["sizes"])
    if subject["name"] in stored and zipfile.is_zipfile(path):
        target = folder / stored[subject["name"]]
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path) as archive:
            write_whole(target, archive.read(stored[subject["name"]]))
        return ModelSpec(str(target.resolve()), sizes)
    place = Path(subject["path"])
    if not place.is_file():
        raise IgniterError(
            f"the archive does not have the model '{subject['name']}', which is larger than "
            f"{LARGEST_MODEL >> 20} MB: put it at {place} (SHA-256 {subject['digest'][:16]}...)"
        )
    if file_digest(place) != subject["digest"]:
        raise IgniterError(f"{place} is another model than the archive's '{subject['name']}': their hashes differ")
    return ModelSpec(str(place), sizes)


@dataclass(frozen=True)
class Again:
    """A row of an archive beside the same row of another run."""

    before: Row
    after: Row

    @property
    def agrees(self) -> bool:
        """True if the verdicts are the same, or the intervals of the ratios overlap."""
        if self.before.status == self.after.status:
            return True
        a, b = self.before.ratio, self.after.ratio
        return a is not None and b is not None and a.low <= b.high and b.low <= a.high


def beside(before: ExperimentResult, after: ExperimentResult) -> Sequence[Again]:
    """Returns the rows of two runs of an experiment, side by side."""
    rows = {(row.case, row.variant): row for row in after.rows}
    return [Again(row, rows[row.case, row.variant]) for row in before.rows if (row.case, row.variant) in rows]
