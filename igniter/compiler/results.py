"""Finished results of compilations in the cache: an unchanged model is not compiled again, but copied.

The key of a result covers all its inputs: the bytes of the model and of its external data, the options, the target's
features, Igniter's files and the versions of the packages behind its results. The entry has the compiled folder's
files, the report, and, under a key of its own, the outcome of the verification. The code here imports nothing heavy:
finding a result is much faster than starting a compilation.

Ops, passes, patterns and authors of other packages are in no key; with any of these installed, results are neither
stored nor used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.compiler.artifact import Artifact, described_artifact, write_artifact
from igniter.compiler.in_place import in_place
from igniter.errors import IgniterError
from igniter.memory import peak_memory
from igniter.runtime.cache import Cache, cache_key
from igniter.runtime.digests import changed_since, file_digest, note_stored
from igniter.runtime.library import Library, library_info
from igniter.targets import parts_for

if TYPE_CHECKING:
    from igniter.compiler.compilation import CompileOptions

SHARE = 2
"""The limit of a result, as a divisor of the cache's size: a larger one would evict everything else."""
PACKAGES = ("archspec", "llvmlite", "numpy", "onnx", "onnxruntime", "xdsl")
OPTIONAL = ("triton",)
"""The packages needed only for some targets."""
GROUPS = (
    "backends",
    "dialects",
    "fusion_authors",
    "micro_kernels",
    "ops",
    "passes",
    "patterns",
    "pipelines",
    "schedule_authors",
)

Verify = Mapping[str, Any]
"""The arguments of `Artifact.verify`."""


class _Gone(Exception):
    """Raised for a part of a result that was evicted."""


@dataclass(frozen=True)
class Results:
    """The results of one model with one choice of options."""

    cache: Cache
    model: Path
    settings: str
    opened: int
    """The time of reading the model, in nanoseconds of the clock: a file changed later is not the compiled one."""

    @staticmethod
    def of(cache: Cache, model: Path, options: CompileOptions, strict: bool) -> Results | None:
        """Returns `None` if results are not cached: without a cache, or with code from outside that no key covers."""
        if cache.limit == 0 or not model.is_file() or _is_extended():
            return None

        parts = parts_for(options.target)
        targets = [target for part in parts for target in part.targets]
        # The machine follows from these, from the options and from archspec's version; building it takes longer.
        native = next((p.backend for p in parts if any(t.name == "native" for t in p.targets)), None)
        host = dict(native.host_figures()) if native is not None else {}
        settings = json.dumps([options.key(), repr(targets), host, strict, _versions()])
        return Results(cache, model, settings, time.time_ns())

    def key(self, digest: str) -> str | None:
        """Returns the key of the result for the model's digest; `None` for a model that was never compiled."""
        listed = self.cache.get(self._files_key(digest))
        if listed is None:
            return None
        try:
            data = [file_digest(self.model.parent / name, self.cache) for name in json.loads(listed)]
        except IgniterError:
            # The compilation reports missing external data.
            return None
        return cache_key("result", digest, json.dumps(data), self.settings)

    def _files_key(self, digest: str) -> str:
        return cache_key("external data", digest)

    # -- taking -------------------------------------------------------------------------------------------------------

    def take(self, output: Path | None, verify: Verify | None, load: bool = True) -> Artifact | None:
        """Returns the compiled model, put into `output` (or a temporary folder); `None` if the cache has none.

        If it was not verified with these options, it is verified before the folder is put in place. With `load`, a
        result that was never loaded is not used.
        """
        start = time.perf_counter()
        digest = file_digest(self.model, self.cache)
        key = self.key(digest)
        found = self.cache.get(key) if key is not None else None
        if key is None or found is None:
            return None
        entry = cast("dict[str, Any]", json.loads(found))
        if load and "loads" not in entry["report"]:
            return None
        known = self._verification(key, verify)

        def finish(artifact: Artifact) -> None:
            artifact.report["seconds"] = {"cache": round(time.perf_counter() - start, 4)}
            artifact.report["peak_memory"] = {"cache": peak_memory()}
            if known is not None:
                artifact.report["verification"] = known
            elif verify is not None:
                artifact.require_verified(verify)
                self.keep_verification(key, artifact, verify)

        if output is not None and (verify is None or known is not None):
            there = in_place(self._described(entry, digest), self._parts(key, entry), output, self.cache, finish)
            if there is not None:
                there.source = str(self.model)
                return there
        try:
            return self._restore(key, entry, output, digest, finish)
        except _Gone:
            return None

    def _described(self, entry: Mapping[str, Any], digest: str) -> dict[str, Any]:
        return described_artifact({**entry["report"], "from_cache": True}, entry["libraries"], self.model, digest)

    def _parts(self, key: str, entry: Mapping[str, Any]) -> dict[str, str]:
        """Returns the key of each file of a result."""
        return {name: _part(key, name) for name in (*entry["files"], *entry["libraries"])}

    def _restore(
        self,
        key: str,
        entry: Mapping[str, Any],
        output: Path | None,
        digest: str,
        finish: Callable[[Artifact], None],
    ) -> Artifact:
        libraries: list[Library] = []
        for name in entry["libraries"]:
            data = self.cache.get(_part(key, name))
            if data is None:
                raise _Gone
            info = library_info(data)
            libraries.append(Library(data, info["domain"], tuple(info["ops"]), info, name))

        def copy(path: Path) -> None:
            for name in entry["files"]:
                if not self.cache.get_file(_part(key, name), path.parent / name):
                    raise _Gone

        return write_artifact(
            output,
            save_model=copy,
            libraries=libraries,
            report={**entry["report"], "from_cache": True},
            source=self.model,
            finish=finish,
            digest=digest,
        )

    def _verification(self, key: str, verify: Verify | None) -> Any:
        name = _verification_key(key, verify)
        found = self.cache.get(name) if name is not None else None
        return None if found is None else json.loads(found)

    # -- keeping ------------------------------------------------------------------------------------------------------

    def keep(self, artifact: Artifact, external: Sequence[str], verify: Verify | None) -> None:
        """Stores a compiled model in the cache; `external` are the files of the original besides the model."""
        if any(changed_since(path, self.opened) for path in external) or changed_since(self.model, self.opened):
            return
        libraries = [path.name for path in artifact.libraries]
        written = [name for name in artifact.report["files"] if name != "report.json"]
        size = sum((artifact.folder / name).stat().st_size for name in written)
        if size * SHARE > self.cache.limit:
            return
        folder = os.path.abspath(self.model.parent)
        names = sorted(os.path.relpath(path, folder) for path in external)
        digest = file_digest(self.model, self.cache)
        self.cache.put(self._files_key(digest), json.dumps(names).encode())
        key = self.key(digest)
        if key is None or not all(self._keep_file(_part(key, n), artifact.folder / n) for n in written):
            return
        left_out = ("verification", "seconds", "peak_memory", "source")
        entry = {
            "files": [n for n in written if n not in libraries],
            "libraries": libraries,
            "report": {k: v for k, v in artifact.report.items() if k not in left_out},
        }
        self.cache.put(key, json.dumps(entry, default=str).encode())
        self.keep_verification(key, artifact, verify)

    def _keep_file(self, key: str, path: Path) -> bool:
        """Stores a file of a result; the same compile again finds it in its place."""
        status = path.stat()
        if not self.cache.put_file(key, path):
            return False
        note_stored(key, self.cache, status)
        return True

    def keep_verification(self, key: str, artifact: Artifact, verify: Verify | None) -> None:
        """Stores the outcome of the verification beside the result; an incomplete one is repeated next time."""
        name = _verification_key(key, verify)
        outcome = artifact.report.get("verification")
        if name is not None and outcome is not None and outcome.get("ok") and not outcome.get("without"):
            self.cache.put(name, json.dumps(outcome, default=str).encode())


def _part(key: str, name: str) -> str:
    return cache_key("result file", key, name)


def _verification_key(key: str, verify: Verify | None) -> str | None:
    """Returns the key, or `None` without verification, or with inputs of the caller's own."""
    if verify is None or verify.get("inputs") is not None:
        return None
    return cache_key("verification", key, json.dumps(dict(verify), sort_keys=True, default=str))


def _is_extended() -> bool:
    """True if other packages or this process have extended Igniter."""
    from igniter.registry import external

    ops = sys.modules.get("igniter.dialects.onnx.ops")
    return bool(getattr(ops, "_registered", None)) or any(external(group) for group in GROUPS)


def _versions() -> list[str]:
    from importlib.metadata import PackageNotFoundError, version

    found: list[str] = []
    for name in OPTIONAL:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            # ONNX Runtime has several distribution names.
            found.append(f"{name} {getattr(__import__(name), '__version__', '')}")
    return found
