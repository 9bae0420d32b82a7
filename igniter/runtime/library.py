"""The shared library of a compiled model: built from an `ort.library` and its kernels, and read without loading.

Every kernel is an object of its own, reusable from the cache for any model; the cache also provides the whole library
if all of it is known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter._version import __version__
from igniter.dialects.library_names import file_name
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache, cache_key
from igniter.runtime.files import write_whole
from igniter.systems import LINUX, architecture_of, system_of
from igniter.targets import backend_for

if TYPE_CHECKING:
    from igniter.backends.ort.launches import GpuCode
    from igniter.dialects.ort import LibraryOp, OpOp, ValuesOp
    from igniter.targets import Target


@dataclass(frozen=True)
class Library:
    """A shared library in memory; `domain` is the domain of its ops."""

    data: bytes
    domain: str
    ops: tuple[str, ...]
    info: Mapping[str, Any]
    file_name: str
    """`libigniter_HASH.so`, or the system's suffix: the domain is the stem."""

    def write(self, path: str | Path) -> Path:
        """Writes the library to a file, or into a folder under its own name.

        An existing file is replaced, never written into: a process that has loaded it keeps the old content.
        """
        target = Path(path)
        if target.is_dir():
            target /= self.file_name
        write_whole(target, self.data)
        return target


def versions() -> dict[str, str]:
    """Returns the versions of the packages behind the code."""
    import llvmlite
    import llvmlite.binding as llvm

    return {
        "igniter": __version__,
        "llvmlite": str(llvmlite.__version__),
        "llvm": ".".join(str(part) for part in cast("tuple[int, ...]", llvm.llvm_version_info)),
    }


def object_key(text: str, target: Target) -> str:
    """Returns the cache key of the object of a text."""
    return cache_key("object", *backend_for(target.name).identity(target), text)


def compile_object(text: str, target: Target, cache: Cache | None = None) -> bytes:
    """Returns the object of a text, from the cache if it is there."""
    key = object_key(text, target)
    data = cache.get(key) if cache is not None else None
    if data is None:
        data = backend_for(target.name).object_code(text, target)
        if cache is not None:
            cache.put(key, data)
    return data


@dataclass(frozen=True)
class LibraryPart:
    """The content of a library for the targets of one backend."""

    ops: LibraryOp
    kernels: Mapping[Target, Sequence[str]]
    """The texts with the funcs of the ops, once for each target."""
    provider: str = ""
    """The execution provider of the ops; "" is the provider of CPUs."""
    suffixes: Sequence[str] = ("",)
    """The suffixes of the funcs' names, one for each target."""

    def code(self) -> list[tuple[Target, str]]:
        """Returns all code of the part, with the target of each text."""
        found: list[tuple[Target, str]] = []
        for target, kernels in self.kernels.items():
            texts = sorted(set(kernels))
            found += [(target, t) for t in (*texts, *backend_for(target.name).needed(texts, target))]
        return found

    @property
    def first(self) -> Target:
        """The first target."""
        return next(iter(self.kernels))

    def least(self) -> Target:
        """Returns the target for code with an unknown machine."""
        return backend_for(self.first.name).least(self.first)

    def launches(self) -> GpuCode | None:
        """Returns the GPU kernels launched by its code; None for CPU code."""
        from igniter.backends.ort.launches import GpuCode

        ((target, texts), *_) = self.kernels.items()
        launched = backend_for(target.name).launched(texts)
        if not launched:
            return None
        names = dict.fromkeys(name for names in launched.values() for name in names)
        return GpuCode(self.provider, self.ops.ops, list(names), launched, self.suffixes[0])


def build_library(
    *parts: LibraryPart,
    info: Mapping[str, object] | None = None,
    cache: Cache | None = None,
    sanitize: bool = False,
    flush: bool = False,
    debug_info: bool = False,
) -> Library:
    """Builds a shared library from parts: ops for CPUs, ops with launches of GPU kernels, or both, with the same names;
    then ONNX Runtime uses those of its execution provider. Each part has an `ort.library` of its ops; the other content
    of the first one's library (`ort.values`) is shared.

    Of several CPU variants the library selects the best one for the machine at load time. With `sanitize`, the kernels
    are sanitized ones; with `flush`, kernels on CPUs take subnormal numbers for 0; with `debug_info`, the linker keeps
    the debug information of the code. `info` (JSON values: options,
    pipeline, target's name) is stored in the library together with the versions. Raises `IgniterError` with the error
    of LLVM or the linker, or if no linker is found.
    """
    from igniter.backends.ort.cpu_choice import Variant
    from igniter.backends.ort.emit_library import ENTRY_POINT, INFO_SYMBOL, emit_library
    from igniter.dialects.ort import LibraryOp
    from igniter.runtime.linker import LOADER_SYMBOLS, find_linker, link_shared

    targets = [target for part in parts for target in part.kernels]
    # Code before the check of the CPU must run on any CPU.
    least = parts[-1].least()
    hosts = {t.triple for part in parts if not part.provider for t in part.kernels}
    if len(hosts | {part.least().triple for part in parts}) > 1:
        raise IgniterError(
            f"one library cannot serve {' and '.join(t.name for t in targets)}: they are different machines"
        )
    gpus = [gpu for part in parts if (gpu := part.launches()) is not None]
    gpu = gpus[0] if gpus else None
    cpus = [part for part in parts if not part.provider]
    variants = [
        Variant(t.name, t.level, s, tuple(backend_for(t.name).instructions(t.identity)))
        for p in cpus
        for t, s in zip(p.kernels, p.suffixes, strict=True)
    ]
    library = LibraryOp(parts[0].ops.sym_name.data, _ops_of_cpus(parts))
    described = {
        "versions": versions(),
        "targets": [dict(t.identity) for t in targets],
        **(info or {}),
    }
    modules = [each for part in parts for each in part.code()]
    code_texts = [text.encode() for _, text in modules]
    emitted = emit_library(library, least.triple, described, code_texts, variants, sanitize, gpu, flush)
    if gpu is not None and system_of(least.triple) is not LINUX:
        raise IgniterError(f"kernels for GPUs are launched by libraries for Linux, not for {least.triple}")
    linker = find_linker(least.triple)
    identities = {t: backend_for(t.name).identity(t) for t in targets}
    digests = [hashlib.sha256("\n".join([*identities[t], text]).encode()).digest() for t, text in modules]
    own = [text for identity in identities.values() for text in identity]
    key = cache_key("library", *own, " ".join(linker.command), str(debug_info), emitted.text, *digests)
    data = cache.get(key) if cache is not None else None
    if data is None:
        objects = [compile_object(text, t, cache) for t, text in ((least, emitted.text), *modules)]
        besides = LOADER_SYMBOLS if gpu is not None else frozenset[str]()
        exports = (ENTRY_POINT, INFO_SYMBOL)
        data = link_shared(objects, least.triple, exports, linker, besides, debug_info, emitted.domain)
        if cache is not None:
            cache.put(key, data)
    return Library(data, emitted.domain, emitted.ops, library_info(data), file_name(emitted.domain, least.triple))


def _ops_of_cpus(parts: Sequence[LibraryPart]) -> list[OpOp | ValuesOp]:
    """Returns the ops for the CPU execution provider, including the ops for carriers."""
    ops = [op for part in parts if not part.provider for op in part.ops.ops]
    return [op.clone() for op in (*ops, *parts[0].ops.values)]


def library_providers(path: str | Path) -> list[str]:
    """Returns the execution providers of a library's ops, the best first; "" is the provider of CPUs. Libraries not
    made by Igniter are not examined."""
    try:
        return [str(name) for name in library_info(path).get("providers", [""])]
    except IgniterError:
        # ONNX Runtime reports the error in it.
        return [""]


OTHER_CPU = "and this CPU is"
"""A part of a library's error on a CPU of too low a level, or without a feature (`igniter.backends.ort.cpu_choice`)."""


def other_system(path: str | Path) -> str | None:
    """Returns the reason why this machine cannot load the library at `path`: it is for another architecture or system;
    `None` if it is not, or unknown."""
    try:
        triples = [str(t["triple"]) for t in library_info(path).get("targets", ()) if "triple" in t]
    except IgniterError:
        return None
    host = backend_for("native").target_of("native").triple
    wrong = next((t for t in triples if _system(t) != _system(host)), None)
    if wrong is None:
        return None
    return f"{Path(path).name} is for {wrong}, and this machine is {host}; load it on such a machine"


def _system(triple: str) -> tuple[str, str]:
    """Returns the architecture and the system of a triple, without its vendor and version."""
    system = system_of(triple)
    return architecture_of(triple), system.name if system is not None else triple


def library_info(library: bytes | str | Path) -> dict[str, Any]:
    """Returns the information in a library: versions, options, target, ops.

    Read from the bytes of the file, so the library can be for any machine. Raises `IgniterError` if it is not
    Igniter's.
    """
    where = "the library"
    if not isinstance(library, bytes):
        where = str(library)
        try:
            library = Path(library).read_bytes()
        except OSError as error:
            raise IgniterError(f"cannot read {where}: {error.strerror}") from error
    start = library.find(b'{"igniter_library_info":')
    end = library.find(b"\0", start)
    if start < 0 or end < 0:
        raise IgniterError(f"{where} is not a library that Igniter made")
    try:
        found: Any = json.loads(library[start:end])
    except ValueError as error:
        raise IgniterError(f"{where} is damaged: its description cannot be read ({error})") from error
    return cast("dict[str, Any]", found)
