"""The plug-ins of a variant: folders with packages, found by the variant's processes and by no others.

A package is known to Igniter by its entry points, which an installation writes. Here a folder suffices: one with
metadata (`NAME.dist-info`), or with a `pyproject.toml`, whose entry points are written into a folder of the run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.plugin_files import project_of
from igniter.runtime.files import write_whole


def environment_with(plugins: Sequence[str], folder: Path, site: Path) -> dict[str, str] | None:
    """Returns the environment of processes with plug-ins, relative to `folder`; their metadata go to `site`. `None`
    without plug-ins: this process's own."""
    if not plugins:
        return None
    paths = [path for plugin in plugins for path in _paths(_folder(plugin, folder), site)]
    paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def plugin_digest(plugins: Sequence[str], folder: Path) -> str:
    """Returns a hash of the files of plug-ins; "" without any."""
    found = hashlib.sha256()
    for plugin in plugins:
        root = _folder(plugin, folder)
        for file in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".toml", ".txt")):
            found.update(str(file.relative_to(root)).encode())
            found.update(file.read_bytes())
    return found.hexdigest()[:16] if plugins else ""


def _folder(plugin: str, folder: Path) -> Path:
    root = folder / plugin
    if not root.is_dir():
        raise IgniterError(f"there is no folder {root} for the plug-in '{plugin}'")
    return root.resolve()


def _paths(root: Path, site: Path) -> list[str]:
    source = root / "src" if (root / "src").is_dir() else root
    if any(root.glob("*.dist-info")):
        return [str(source)]
    project = project_of(root)
    return [str(project.source), str(_metadata(project.metadata, project.points, site))]


def _metadata(described: Mapping[str, Any], points: Mapping[str, Mapping[str, str]], site: Path) -> Path:
    """Writes the metadata of a package, as an installation does; returns the folder for the path."""
    name, version = str(described.get("name", "plugin")), str(described.get("version", "0"))
    folder = site / name
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    write_whole(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write_whole(info / "entry_points.txt", "\n".join(_lines(points)) + "\n")
    return folder


def _lines(points: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    for group, named in points.items():
        yield f"[{group}]"
        yield from (f"{name} = {place}" for name, place in named.items())
