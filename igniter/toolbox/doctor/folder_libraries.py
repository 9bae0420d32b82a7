"""The checks of a folder's libraries, without loading them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.runtime.digests import file_digest
from igniter.runtime.elf import read_elf
from igniter.runtime.library import library_info, other_system
from igniter.targets import backend_for
from igniter.toolbox.doctor import Finding
from igniter.toolbox.doctor.folder_files import COPY, Folder, domain_of_file, other_domains

GROUP = "library"


def present(folder: Folder) -> Iterator[Finding]:
    """Checks that the libraries are there under their names, unchanged, and those of the model."""
    digests = folder.report.get("digests", {})
    for path in folder.libraries:
        if not path.is_file():
            yield _missing(folder, path)
        elif path.name in digests and file_digest(path) != digests[path.name]:
            says = "it was changed, or is truncated: its SHA-256 is not the one in report.json"
            yield Finding(GROUP, path.name, "problem", says, f"do not load it; {COPY}")
    missing = {path.stem for path in folder.libraries if not path.is_file()}
    for domain in other_domains(folder):
        if domain in missing or domain.replace("igniter.", "libigniter_") in missing:
            continue
        here = ", ".join(path.name for path in folder.libraries) or "none"
        says = f"model.onnx calls ops of {domain}, and the folder has another library: {here}"
        yield Finding(GROUP, "another library", "problem", says, f"the files are of two compilations: {COPY}")
    if not folder.libraries and not other_domains(folder):
        yield Finding(GROUP, "library", "ok", "none: every node runs in ONNX Runtime")


def _missing(folder: Folder, path: Path) -> Finding:
    """Describes a missing library: renamed, or gone."""
    for other in sorted(folder.path.iterdir()):
        if other.is_file() and domain_of_file(other) in (path.stem, path.stem.replace("libigniter_", "igniter.")):
            says = f"{path.name} is missing, and {other.name} is this library under another name"
            do = f"mv {other} {path}; or register {other.name}: ONNX Runtime accepts any name"
            return Finding(GROUP, path.name, "problem", says, do)
    return Finding(GROUP, path.name, "problem", f"{path.name} is missing: the ops of {path.stem} are in it", COPY)


def loadable(folder: Folder) -> Iterator[Finding]:
    """Checks that this machine can load the libraries: system, CPU, permissions, and the disk's."""
    for path in (p for p in folder.libraries if p.is_file()):
        reasons = list(_reasons(path))
        yield from reasons
        if not reasons:
            yield Finding(GROUP, path.name, "ok", f"{path.stat().st_size:,} bytes, for this machine")


def _reasons(path: Path) -> Iterator[Finding]:
    """Yields the reasons why this machine cannot load a library."""
    try:
        info = library_info(path)
    except IgniterError as error:
        yield Finding(GROUP, path.name, "problem", f"it is damaged: {error.message}", COPY)
        return
    elsewhere = other_system(path)
    if elsewhere is not None:
        target = backend_for("native").target_of("native").triple.partition("-")[0]
        do = f"compile for this machine: igniter compile MODEL --target=native (here: {target})"
        yield Finding(GROUP, path.name, "problem", elsewhere, do)
        return
    if path.suffix == ".so":
        try:
            read_elf(path.read_bytes())
        except ValueError as error:
            yield Finding(GROUP, path.name, "problem", f"it is truncated or damaged: {error}", COPY)
            return
    yield from _cpu(path, info.get("targets", ()))
    if not os.access(path, os.R_OK):
        yield Finding(GROUP, path.name, "problem", "this user may not read it", f"chmod a+r {path}")
    if hasattr(os, "statvfs") and os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0):
        says = f"{path.parent} is on a disk that is mounted 'noexec': the system loads no library from it"
        do = "copy the folder to another disk, or mount -o remount,exec"
        yield Finding(GROUP, path.name, "problem", says, do)


def _cpu(path: Path, targets: Sequence[Any]) -> Iterator[Finding]:
    """Checks that the CPU has what the code of at least one variant needs."""
    level, features = this_cpu()
    lacking: list[list[str]] = []
    for target in targets:
        if not str(target.get("triple", "")).startswith(("x86_64", "aarch64")):
            continue
        name = str(target.get("cpu", ""))
        backend = backend_for(name)
        missing = [f for f in backend.instructions(target) if f not in features]
        needed = backend.target_of(name).level if name and not target.get("features") else 0
        lacking.append(missing or ([name] if needed > level else []))
    if lacking and all(lacking):
        best = min(lacking, key=len)
        says = f"its code needs {', '.join(best[:8])}{', ...' if len(best) > 8 else ''}, and this CPU does not have it"
        do = "compile for this CPU, or for several: igniter compile MODEL --target=x86-64-v2,x86-64-v3,x86-64-v4"
        yield Finding(GROUP, path.name, "problem", says, do)


def this_cpu() -> tuple[int, frozenset[str]]:
    """Returns the psABI level of this CPU (0 on other machines), and its features that code may use."""
    backend = backend_for("native")
    target = backend.target_of("native")
    return target.level, frozenset(backend.instructions(target.identity))
