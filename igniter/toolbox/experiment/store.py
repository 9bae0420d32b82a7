"""The files of a run: JSON records, each complete or absent, each with a key of what it was made from.

    experiment.json                the specification, the versions, the models and the comparisons
    builds/BUILD/build.json        the facts of a compiled variant, or the reason why there is none
    builds/BUILD/ir/LEVEL.mlir     its IR; remarks.json, report.json beside it; the compiled model in model/
    cases/CASE/case.json           the sizes of a comparison and its machine
    cases/CASE/checks.json         the comparison of outputs by variant, and what depends on the sizes
    cases/CASE/launch-0.json       raw times, one file for each launch of the processes

A record whose key is another one is taken for absent. So a run that continues does only what is missing, and never
mixes times of two machines or two versions.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, cast

from igniter._version import __version__, build_id
from igniter.runtime.files import write_whole
from igniter.targets import backend_for
from igniter.toolbox.experiment.spec import digest

EXPERIMENT = "experiment.json"
PACKAGES = ("numpy", "onnx", "onnxruntime", "xdsl", "llvmlite")
"""The packages whose versions a result names."""


class Files(Protocol):
    """A folder of files to read: `pathlib.Path` and `zipfile.Path` are."""

    def __truediv__(self, other: str, /) -> Files: ...

    def is_file(self) -> bool: ...

    def read_text(self, encoding: str | None = None) -> str: ...


@dataclass(frozen=True)
class Store:
    """The records in a folder."""

    root: Path

    def get(self, path: str, key: str) -> dict[str, Any] | None:
        """Returns a record with this key; `None` without one."""
        found = read_record(self.root, path)
        return found if found is not None and found.get("key") == key else None

    def put(self, path: str, key: str, value: dict[str, Any]) -> dict[str, Any]:
        """Writes a record in one step."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, json.dumps({"key": key, **value}, indent=1))
        return value

    def made(self, path: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns a record, made if it is absent."""
        found = self.get(path, key)
        return found if found is not None else self.put(path, key, make())


def read_record(root: Files, path: str) -> dict[str, Any] | None:
    """Returns a record; `None` if there is none, or none that is complete."""
    file = root
    for part in path.split("/"):
        file = file / part
    if not file.is_file():
        return None
    try:
        found: object = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def slug(*texts: str) -> str:
    """Returns a name for a folder: the letters and digits of texts, and a hash if others are lost."""
    plain = "--".join(re.sub(r"[^A-Za-z0-9_.=]+", "-", text).strip("-") for text in texts)[:80]
    return plain if plain == "--".join(texts) else f"{plain}-{digest(texts)[:6]}"


@cache
def machine() -> dict[str, Any]:
    """Returns the description of this machine."""
    model = backend_for("native").machine_for("native")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model.cpu,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "vector_bytes": model.vector_bytes,
        "l2_bytes": model.l2_bytes,
        "l3_bytes": model.l3_bytes,
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
    }


@cache
def versions() -> dict[str, str]:
    """Returns the versions of Igniter and of the packages that a result depends on."""
    found = {"igniter": __version__, "build": build_id(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _memory() -> int:
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
