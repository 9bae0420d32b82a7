"""Plug-ins that are not installed: Python files and folders of packages, named by `$IGNITER_PLUGINS`.

    IGNITER_PLUGINS=my_pass.py igniter reduce model.onnx -p my-pass
    igniter-opt --load=docs/examples/my_package model.onnx -p hoist-once

A file is imported; its passes, dialects, authors, backends and micro-kernels are found by their classes, and the
`OpSpec`s that it registers are known from then on. A folder has a `pyproject.toml`, whose entry points count as those
of an installed package; its modules are in the folder, or in `src`. The environment carries the names to the processes
that a tool starts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tomllib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from igniter.crashes import crash_text
from igniter.errors import IgniterError

VARIABLE = "IGNITER_PLUGINS"

CLASSES = {
    "xdsl.passes.ModulePass": "passes",
    "igniter.analysis.fusion.author.FusionAuthor": "fusion_authors",
    "igniter.schedules.author.ScheduleAuthor": "schedule_authors",
    "igniter.targets.Backend": "backends",
}
"""The group of entry points for the classes of a file, by their base."""
OBJECTS = {"xdsl.ir.core.Dialect": "dialects", "igniter.backends.cpu.micro_kernels.CpuMicroKernel": "micro_kernels"}
"""The group for the objects of a file, by their class."""


@dataclass(frozen=True)
class Plugin:
    """A loaded file or folder."""

    name: str
    version: str
    points: Mapping[str, Mapping[str, str]]
    """The places of its objects by group and name."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True)
class Project:
    """A folder with a package: the folder of its modules, its metadata, and its entry points by group."""

    source: Path
    metadata: Mapping[str, Any]
    points: Mapping[str, Mapping[str, str]]
    """The groups of Igniter, with their prefix `igniter.`."""


def paths() -> tuple[Path, ...]:
    """Returns the files and folders that the environment names."""
    return tuple(Path(text).resolve() for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text)


def load_plugins() -> list[Plugin]:
    """Loads the files and folders of the environment; raises `IgniterError` for one that is no plug-in."""
    return [_folder(path) if path.is_dir() else _file(path) for path in paths()]


@contextmanager
def named(more: Iterable[str]) -> Generator[None]:
    """Adds files and folders to the environment during the block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = os.pathsep.join([*(str(Path(path).resolve()) for path in more), *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def project_of(root: Path) -> Project:
    """Returns the package in a folder; raises `IgniterError` if it has no entry points for Igniter."""
    described = root / "pyproject.toml"
    if not described.is_file():
        raise IgniterError(f"{root} is no plug-in: it has no pyproject.toml")
    try:
        metadata: dict[str, Any] = tomllib.loads(described.read_text(encoding="utf-8")).get("project", {})
    except tomllib.TOMLDecodeError as error:
        raise IgniterError(f"{described} is not TOML: {error}") from error
    points: Mapping[str, Mapping[str, str]] = metadata.get("entry-points", {})
    own = {group: named for group, named in points.items() if group.startswith("igniter.")}
    if not own:
        raise IgniterError(
            f'{described} has no entry points for Igniter, such as [project.entry-points."igniter.passes"]'
        )
    return Project(root / "src" if (root / "src").is_dir() else root, metadata, own)


def digest_of(modules: Iterable[str]) -> str:
    """Returns a hash of the sources of modules and packages, by their names; a missing one counts by its name."""
    found = hashlib.sha256()
    for name in modules:
        found.update(name.encode())
        for file in _sources(name):
            found.update(file.read_bytes())
    return found.hexdigest()


def _sources(name: str) -> list[Path]:
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    if spec is None:
        return []
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    if folders:
        return sorted(file for folder in folders for file in folder.rglob("*.py"))
    return [Path(spec.origin)] if spec.origin is not None and Path(spec.origin).is_file() else []


def _folder(path: Path) -> Plugin:
    project = project_of(path)
    if str(project.source) not in sys.path:
        sys.path.insert(0, str(project.source))
    points = {group.removeprefix("igniter."): named for group, named in project.points.items()}
    return Plugin(str(project.metadata.get("name", path.name)), str(project.metadata.get("version", "0")), points)


def _file(path: Path) -> Plugin:
    if path.suffix != ".py" or not path.is_file():
        raise IgniterError(f"{path} is no plug-in: give a Python file, or a folder with a pyproject.toml")
    module = _imported(path)
    points: dict[str, dict[str, str]] = {"ops": {path.stem: path.stem}}
    for attribute, value in vars(module).items():
        group = _group_of(module, value)
        if group:
            points.setdefault(group, {})[str(value.name)] = f"{path.stem}:{attribute}"
    return Plugin(path.name, "", points)


def _imported(path: Path) -> ModuleType:
    """Imports a file as the module of its name, so that `importlib` finds it under this name later."""
    found = sys.modules.get(path.stem)
    if found is not None and getattr(found, "__file__", None) == str(path):
        return found
    if found is not None or path.stem in sys.stdlib_module_names or importlib.util.find_spec(path.stem) is not None:
        raise IgniterError(f"{path} has the name of another module, '{path.stem}': rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # Anything that the code of a user raises.
        del sys.modules[path.stem]
        failed = IgniterError(f"the plug-in {path} cannot be loaded: {crash_text(error)}")
        failed.exit_status = 4
        raise failed from error
    return module


def _group_of(module: ModuleType, value: object) -> str:
    """Returns the group of an object that a file defines; "" for another object, and for one that it imports."""
    if isinstance(value, type):
        if value.__module__ != module.__name__ or not isinstance(getattr(value, "name", None), str):
            return ""
        return next((group for base in value.__mro__ if (group := CLASSES.get(_path_of(base)))), "")
    return OBJECTS.get(_path_of(type(value)), "")


def _path_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
