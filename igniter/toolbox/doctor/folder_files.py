"""A compiled folder, and the checks of its report, its model and its weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igniter.compiler.artifact import FORMAT, MODEL, REPORT
from igniter.dialects.library_names import PREFIX, is_library_domain
from igniter.errors import IgniterError
from igniter.frontend.stored_model import StoredModel, read_stored
from igniter.runtime.digests import file_digest
from igniter.runtime.library import library_info
from igniter.toolbox.doctor import Finding

COPY = "copy the whole folder again from where it was compiled, or compile the model again"


@dataclass(frozen=True)
class Folder:
    """A folder and what could be read of it."""

    path: Path
    report: Mapping[str, Any]
    """The content of `report.json`; empty if it cannot be read."""

    @property
    def libraries(self) -> list[Path]:
        """The libraries that the report names, or those in a folder without one."""
        if self.report:
            return [self.path / Path(name).name for name in self.report.get("libraries", ())]
        return sorted(p for p in self.path.glob(f"{PREFIX}*") if p.is_file())

    @property
    def model(self) -> Path:
        return self.path / MODEL

    def stored(self) -> StoredModel | None:
        """Returns the model; None if it cannot be read, which is a finding of its own."""
        try:
            return read_stored(str(self.model))
        except IgniterError:
            return None


def report(folder: Folder) -> Iterator[Finding]:
    """Checks that the folder has a report that this version reads."""
    if not folder.report:
        missing = not (folder.path / REPORT).exists()
        says = f"{REPORT} is missing" if missing else f"{REPORT} is not the report of a compiled model"
        says += ": the files cannot be compared with those that were compiled"
        yield Finding("folder", REPORT, "warning" if folder.model.is_file() else "problem", says, COPY)
        return
    made = folder.report.get("versions", {}).get("igniter", "?")
    if folder.report["igniter_artifact"] != FORMAT:
        says = f"its format is {folder.report['igniter_artifact']}, and this version of Igniter reads {FORMAT}"
        yield Finding("folder", REPORT, "warning", says, "examine it with the version that compiled it")
        return
    says = f"compiled by Igniter {made} for {folder.report.get('target', 'an unknown target')}"
    yield Finding("folder", REPORT, "ok", says)


def model(folder: Folder) -> Iterator[Finding]:
    """Checks that the model is there, whole, and the one that was compiled."""
    if not folder.model.is_file():
        yield Finding("model", MODEL, "problem", f"{MODEL} is missing", COPY)
        return
    size = folder.model.stat().st_size
    try:
        stored = read_stored(str(folder.model))
    except IgniterError as error:
        says = f"it cannot be read ({size:,} bytes): truncated, or not a model. {error.message}"
        yield Finding("model", MODEL, "problem", says, COPY)
        return
    expected = folder.report.get("digests", {}).get(MODEL)
    if not stored.domains:
        # An empty file, or one cut between two fields, is a valid message.
        yield Finding("model", MODEL, "problem", f"it has no node ({size:,} bytes): it is truncated", COPY)
    elif expected is not None and file_digest(folder.model) != expected:
        says = f"it was changed after it was compiled: its SHA-256 is not the one in {REPORT}"
        yield Finding("model", MODEL, "problem", says, f"{COPY}; edit the original model, not the compiled one")
    else:
        yield Finding("model", MODEL, "ok", f"{size:,} bytes{', as compiled' if expected is not None else ''}")


def weights(folder: Folder) -> Iterator[Finding]:
    """Checks that the files of the weights are there, and reach to the end of the last weight."""
    stored = folder.stored()
    needed: dict[str, int] = {}
    for tensor in stored.tensors if stored is not None else ():
        needed[tensor.file] = max(needed.get(tensor.file, 0), tensor.offset + (tensor.bytes or 0))
    for name, size in sorted(needed.items()):
        path = folder.path / name
        if not path.is_file():
            yield Finding("weights", name, "problem", f"{name} is missing: {MODEL} has its weights there", COPY)
        elif path.stat().st_size < size:
            says = f"it is truncated: {path.stat().st_size:,} bytes, and {MODEL} needs {size:,}"
            yield Finding("weights", name, "problem", says, COPY)
        elif not os.access(path, os.R_OK):
            yield Finding("weights", name, "problem", "this user may not read it", f"chmod a+r {path}")
        else:
            yield Finding("weights", name, "ok", f"{path.stat().st_size:,} bytes")


def other_domains(folder: Folder) -> list[str]:
    """Returns the domains of ops of the model without a library among those that the folder has."""
    stored = folder.stored()
    called = sorted(d for d in (stored.domains if stored is not None else ()) if is_library_domain(d))
    there = {domain for path in folder.path.iterdir() if (domain := domain_of_file(path)) is not None}
    return [domain for domain in called if domain not in there]


def domain_of_file(path: Path) -> str | None:
    """Returns the domain of the ops of a library; None for another file."""
    if path.suffix not in (".so", ".dll", ".dylib") and not path.name.startswith(PREFIX):
        return None
    try:
        return str(library_info(path)["domain"])
    except (IgniterError, KeyError):
        return None
