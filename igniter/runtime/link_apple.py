"""The link of a library for macOS or iOS, by zig's linker or, on macOS, by Apple's.

zig has the names of macOS's system library and signs ad hoc, which Macs with Apple's CPUs require. It has none for iOS,
whose system library has the same path and the same functions. So a library for iOS is linked as one for macOS, and its
load command for the system is replaced afterwards (`marked`); no SDK is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from igniter.runtime.macho import marked, read_dylib
from igniter.systems import IOS, MACOS, System, architecture_of

OUTPUT = "library.dylib"
LINKERS = frozenset({"_mh_dylib_header", "__dso_handle"})
"""The names that zig's linker adds to the exports."""


def arguments(folder: Path, triple: str, system: System, exports: Sequence[str], name: str, zig: bool) -> list[str]:
    """Returns the options of a compiler driver, without the objects."""
    options = ["-nostdlib", f"-Wl,-install_name,@rpath/{name}.dylib", "-o", OUTPUT]
    if zig:
        arch = architecture_of(triple)
        major, minor = version_of(MACOS.triples[arch] if system is IOS else triple)
        return ["-target", f"{arch}-macos.{major}.{minor}", "-shared", *options]
    (folder / "exports.txt").write_text("".join(f"_{each}\n" for each in exports))
    named = ["-Wl,-dead_strip", "-Wl,-exported_symbols_list,exports.txt", "-lSystem"]
    return ["-dynamiclib", f"--target={triple}", *options, *named]


def version_of(triple: str) -> tuple[int, int]:
    """Returns the version of the system in a triple."""
    version = triple.rpartition("-")[2].lstrip("abcdefghijklmnopqrstuvwxyz")
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def taken(data: bytes, system: System) -> bytes:
    """Returns an object as zig takes it."""
    return marked(data, MACOS.name, version_of(MACOS.triples["aarch64"])) if system is IOS else data


def given(library: bytes, system: System, triple: str) -> bytes:
    """Returns a library linked by zig as one for its system."""
    return marked(library, IOS.name, version_of(triple)) if system is IOS else library


def facts(library: bytes, system: System) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Returns the architecture, the exports, and the functions that the system does not provide."""
    found = read_dylib(library)
    if found.system != system.name:
        raise ValueError(f"a library for {found.system or 'an unknown system'}")
    own = {"dyld_stub_binder", *system.functions}
    exported = tuple(n for n in found.exported if n not in LINKERS)
    return found.machine, exported, tuple(n for n in found.undefined if n not in own)
