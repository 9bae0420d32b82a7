"""The shared library of a compiled model: built from an `ort.library` and its kernels, and read back without loading.

Every kernel is an object of its own, so that what was compiled before comes from the cache, whichever model it was
compiled for; so does the whole library when nothing in it is new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter._version import __version__
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache, cache_key
from igniter.runtime.files import write_whole

if TYPE_CHECKING:
    from igniter.backends.ort.launches import GpuCode
    from igniter.dialects.ort import LibraryOp, OpOp, ValuesOp
    from igniter.targets import Target


@dataclass(frozen=True)
class Library:
    """A shared library in memory; `domain` is that of its ops."""

    data: bytes
    domain: str
    ops: tuple[str, ...]
    info: Mapping[str, Any]

    @property
    def file_name(self) -> str:
        """`libigniter_HASH.so`, named like the domain so that different libraries never share a name."""
        return f"lib{self.domain.replace('.', '_')}.so"

    def write(self, path: str | Path) -> Path:
        """Write the library to a file, or into a folder under its own name.

        A file that is there is replaced, never written into: a process that has loaded it keeps what it loaded.
        """
        target = Path(path)
        if target.is_dir():
            target /= self.file_name
        write_whole(target, self.data)
        return target


def versions() -> dict[str, str]:
    """The versions that decide what code comes out."""
    import llvmlite
    import llvmlite.binding as llvm

    return {
        "igniter": __version__,
        "llvmlite": str(llvmlite.__version__),
        "llvm": ".".join(str(part) for part in cast("tuple[int, ...]", llvm.llvm_version_info)),
    }


def compile_object(text: str, target: Target, cache: Cache | None = None) -> bytes:
    """The object of a text, out of the cache where it is there."""
    from igniter.targets import backend_for

    backend = backend_for(target.name)
    key = cache_key("object", *backend.identity(target), text)
    data = cache.get(key) if cache is not None else None
    if data is None:
        data = backend.object_code(text, target)
        if cache is not None:
            cache.put(key, data)
    return data


@dataclass(frozen=True)
class LibraryPart:
    """What a library has for the targets of one backend."""

    ops: LibraryOp
    kernels: Mapping[Target, Sequence[str]]
    """The texts that define the funcs of the ops, once for each target."""
    provider: str = ""
    """The execution provider that the ops run in; "" is that of CPUs."""
    suffixes: Sequence[str] = ("",)
    """What the names of the funcs for each target end in."""

    def code(self) -> list[tuple[Target, str]]:
        """All that is compiled, with the target of each text."""
        from igniter.targets import backend_for

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
        """The target for what runs before it is known which machine it is on."""
        from igniter.targets import backend_for

        return backend_for(self.first.name).least(self.first)

    def launches(self) -> GpuCode | None:
        """What its code launches on a GPU; None where it is code for CPUs."""
        from igniter.backends.ort.launches import GpuCode
        from igniter.targets import backend_for

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
) -> Library:
    """The shared library of parts: of ops for CPUs, of ops that launch kernels of a GPU, or of both, of the same names,
    so that ONNX Runtime takes those of the execution provider that it has. Each part has an `ort.library` of its ops;
    what is in the library of the first besides (`ort.values`) is for all.

    Of several CPUs the library takes the best that the machine it is loaded on can run. With `sanitize`, the kernels
    are sanitized ones. `info` (JSON values: options, pipeline, target's name) is put into the library together with the
    versions. `IgniterError` says what LLVM or the linker did not like, or that no linker was found.
    """
    from igniter.backends.ort.cpu_choice import Variant
    from igniter.backends.ort.emit_library import ENTRY_POINT, INFO_SYMBOL, emit_library
    from igniter.dialects.ort import LibraryOp
    from igniter.runtime.linker import LOADER_SYMBOLS, find_linker, link_shared
    from igniter.targets import backend_for

    targets = [target for part in parts for target in part.kernels]
    # What runs before the CPU is known to be good enough must run on any.
    least = parts[-1].least()
    hosts = {t.triple for part in parts if not part.provider for t in part.kernels}
    if len(hosts | {part.least().triple for part in parts}) > 1:
        raise IgniterError(
            f"one library cannot be for {' and '.join(t.name for t in targets)}: they are different machines"
        )
    gpus = [gpu for part in parts if (gpu := part.launches()) is not None]
    gpu = gpus[0] if gpus else None
    cpus = [part for part in parts if not part.provider]
    variants = [Variant(t.name, t.level, s) for p in cpus for t, s in zip(p.kernels, p.suffixes, strict=True)]
    library = LibraryOp(parts[0].ops.sym_name.data, _ops_of_cpus(parts))
    described = {
        "versions": versions(),
        "targets": [dict(t.identity) for t in targets],
        **(info or {}),
    }
    modules = [each for part in parts for each in part.code()]
    code_texts = [text.encode() for _, text in modules]
    emitted = emit_library(library, least.triple, described, code_texts, variants, sanitize, gpu)
    linker = find_linker(least.triple)
    identities = {t: backend_for(t.name).identity(t) for t in targets}
    digests = [hashlib.sha256("\n".join([*identities[t], text]).encode()).digest() for t, text in modules]
    own = [text for identity in identities.values() for text in identity]
    key = cache_key("library", *own, " ".join(linker.command), emitted.text, *digests)
    data = cache.get(key) if cache is not None else None
    if data is None:
        objects = [compile_object(text, t, cache) for t, text in ((least, emitted.text), *modules)]
        besides = LOADER_SYMBOLS if gpu is not None else frozenset[str]()
        data = link_shared(objects, least.triple, (ENTRY_POINT, INFO_SYMBOL), linker, besides)
        if cache is not None:
            cache.put(key, data)
    return Library(data, emitted.domain, emitted.ops, library_info(data))


def _ops_of_cpus(parts: Sequence[LibraryPart]) -> list[OpOp | ValuesOp]:
    """The ops that run in the execution provider for CPUs, those that make carriers among them."""
    ops = [op for part in parts if not part.provider for op in part.ops.ops]
    return [op.clone() for op in (*ops, *parts[0].ops.values)]


def library_providers(path: str | Path) -> list[str]:
    """The execution providers that a library's ops run in, the best first; "" is that of CPUs. Nothing is asked of
    others' libraries."""
    try:
        return [str(name) for name in library_info(path).get("providers", [""])]
    except IgniterError:
        # ONNX Runtime says what is wrong with it.
        return [""]


OTHER_CPU = "and this CPU is"
"""A part of what a library says that is loaded on a CPU of too low a level (`igniter.backends.ort.cpu_choice`)."""


def other_system(path: str | Path) -> str | None:
    """Why this machine loads no library like the one at `path`: it is for another architecture or system; `None` where
    that is not so, or not known."""
    from igniter.targets import backend_for

    try:
        triples = [str(t["triple"]) for t in library_info(path).get("targets", ()) if "triple" in t]
    except IgniterError:
        return None
    host = backend_for("native").target_of("native").triple
    wrong = next((t for t in triples if _system(t) != _system(host)), None)
    if wrong is None:
        return None
    return f"{Path(path).name} is for {wrong}, and this machine is {host}: load it there"


def _system(triple: str) -> tuple[str, ...]:
    """The architecture and the system of a triple, without its vendor."""
    arch, _, rest = triple.partition("-")
    return arch, *rest.split("-")[1:2]


def library_info(library: bytes | str | Path) -> dict[str, Any]:
    """What a library says of itself: versions, options, target, ops.

    Read from the bytes of the file, so a library for any machine will do. `IgniterError` when it is not Igniter's.
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
