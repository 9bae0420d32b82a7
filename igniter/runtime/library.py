"""The shared library of a compiled model: built from an `ort.library` and its kernels, and read back without loading.

Every kernel is an object of its own, so that what was compiled before comes from the cache, whichever model it was
compiled for; so does the whole library when nothing in it is new.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from igniter._version import __version__
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache, cache_key

if TYPE_CHECKING:
    from igniter.dialects.ort import LibraryOp

OPTIMIZATION_LEVEL = 2
_GLUE_FORMAT = 1


class TargetLike(Protocol):
    """What the code generator must know of a CPU."""

    @property
    def triple(self) -> str: ...
    @property
    def cpu(self) -> str: ...
    @property
    def features(self) -> str: ...


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
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.write_bytes(self.data)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return target


def versions() -> dict[str, str]:
    """The versions that decide what code comes out."""
    import llvmlite.binding as llvm

    return {
        "igniter": __version__,
        "llvm": ".".join(str(part) for part in cast("tuple[int, ...]", llvm.llvm_version_info)),
    }


def compile_object(text: str, target: TargetLike, cache: Cache | None = None) -> bytes:
    """The object file of an LLVM module for the target's CPU, position independent.

    `IgniterError` carries LLVM's words when it does not accept the module.
    """
    key = cache_key("object", *_code_identity(target), text)
    if cache is not None:
        found = cache.get(key)
        if found is not None:
            return found
    data = _compile(text, target)
    if cache is not None:
        cache.put(key, data)
    return data


def _code_identity(target: TargetLike) -> tuple[str, ...]:
    import llvmlite

    llvm_version = versions()["llvm"]
    return (llvmlite.__version__, llvm_version, target.triple, target.cpu, target.features, str(OPTIMIZATION_LEVEL))


def _compile(text: str, target: TargetLike) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
        module.triple = target.triple
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=OPTIMIZATION_LEVEL, reloc="pic", codemodel="default"
        )
    except RuntimeError as error:
        raise IgniterError(f"LLVM does not accept the code for {target.triple}: {error}") from error
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION_LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def build_library(
    library: LibraryOp,
    kernels: Sequence[str],
    target: TargetLike,
    *,
    info: Mapping[str, object] | None = None,
    cache: Cache | None = None,
) -> Library:
    """The shared library of `library`, with the kernels that the LLVM modules `kernels` define.

    `info` (JSON values: options, pipeline, target's name) is put into the library together with the versions.
    `IgniterError` says what LLVM or the linker did not like, or that no linker was found.
    """
    from igniter.backends.ort.emit_library import ENTRY_POINT, INFO_SYMBOL, emit_library
    from igniter.runtime.linker import find_linker, link_shared

    described = {
        "versions": versions(),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.features},
        **(info or {}),
    }
    modules = sorted(set(kernels))
    emitted = emit_library(library, target.triple, described, [text.encode() for text in modules])
    linker = find_linker(target.triple)
    parts = [hashlib.sha256(text.encode()).digest() for text in modules]
    key = cache_key("library", *_code_identity(target), " ".join(linker.command), emitted.text, *parts)
    data = cache.get(key) if cache is not None else None
    if data is None:
        objects = [compile_object(text, target, cache) for text in (emitted.text, *modules)]
        data = link_shared(objects, target.triple, (ENTRY_POINT, INFO_SYMBOL), linker)
        if cache is not None:
            cache.put(key, data)
    return Library(data, emitted.domain, emitted.ops, library_info(data))


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
