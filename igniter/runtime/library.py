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
    from igniter.dialects.ort import LibraryOp
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


def build_library(
    library: LibraryOp,
    kernels: Sequence[str],
    target: Target,
    *,
    more: Mapping[Target, Sequence[str]] | None = None,
    info: Mapping[str, object] | None = None,
    cache: Cache | None = None,
    sanitize: bool = False,
    provider: str = "",
) -> Library:
    """The shared library of `library`, with the kernels that the LLVM modules `kernels` define for `target`.

    `more` has the same kernels for other CPUs; the library then takes the best that the machine it is loaded on can
    run, and the names of kernels end in `variant_suffix`. With `sanitize`, the kernels are sanitized ones. `provider`
    takes the place of the execution provider that the backend's code runs in, where that is not the one for CPUs.
    `info` (JSON values: options, pipeline, target's name) is put
    into the library together with the versions. `IgniterError` says what LLVM or the linker did not like, or that no
    linker was found.
    """
    from igniter.backends.ort.cpu_choice import Variant
    from igniter.backends.ort.emit_library import ENTRY_POINT, INFO_SYMBOL, emit_library
    from igniter.backends.ort.launches import GpuCode
    from igniter.runtime.linker import LOADER_SYMBOLS, find_linker, link_shared
    from igniter.targets import backend_for

    backend = backend_for(target.name)
    code = {target: sorted(set(kernels)), **{t: sorted(set(texts)) for t, texts in (more or {}).items()}}
    for t, texts in code.items():
        texts += backend.needed(texts, t)
    launched = backend.launched(kernels)
    if len({t.triple for t in code}) > 1:
        raise IgniterError(
            f"one library cannot be for {' and '.join(t.name for t in code)}: they are different machines"
        )
    variants = [Variant(t.name, t.level, variant_suffix(k, len(code))) for k, t in enumerate(code)]
    gpu: GpuCode | None = None
    if launched:
        # Any CPU launches.
        variants = [Variant("any", 0)]
        names = dict.fromkeys(name for names in launched.values() for name in names)
        gpu = GpuCode(provider or backend.provider, list(names), launched)
    described = {
        "versions": versions(),
        "targets": [dict(t.identity) for t in code],
        **(info or {}),
    }
    modules = [(t, text) for t, texts in code.items() for text in texts]
    # What runs before the CPU is known to be good enough must run on any.
    least = backend.least(target)
    code_texts = [text.encode() for _, text in modules]
    emitted = emit_library(library, least.triple, described, code_texts, variants, sanitize, gpu)
    linker = find_linker(least.triple)
    parts = [hashlib.sha256("\n".join([*backend.identity(t), text]).encode()).digest() for t, text in modules]
    key = cache_key("library", *backend.identity(target), " ".join(linker.command), emitted.text, *parts)
    data = cache.get(key) if cache is not None else None
    if data is None:
        objects = [compile_object(text, t, cache) for t, text in ((least, emitted.text), *modules)]
        besides = LOADER_SYMBOLS if gpu is not None else frozenset[str]()
        data = link_shared(objects, least.triple, (ENTRY_POINT, INFO_SYMBOL), linker, besides)
        if cache is not None:
            cache.put(key, data)
    return Library(data, emitted.domain, emitted.ops, library_info(data))


def variant_suffix(number: int, count: int) -> str:
    """What the names of the kernels of one CPU end in, in a library for `count`."""
    return f".v{number}" if count > 1 else ""


def library_provider(path: str | Path) -> str:
    """The execution provider that a library's ops run in; "" is that of CPUs. Nothing is asked of others' libraries."""
    try:
        return str(library_info(path).get("provider", ""))
    except IgniterError:
        # ONNX Runtime says what is wrong with it.
        return ""


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
