"""The link of a DLL: options for `lld-link`, and the imports from the system's libraries.

The imports are an import library, written here, so no SDK is needed. It is an archive whose members have the short
form of "PE Format" (Import Library Format): a header, the name of the function, and the name of the library.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from igniter.runtime.coff import read_dll
from igniter.systems import WINDOWS

OUTPUT = "library.dll"
DATA = frozenset({"igniter_library_info"})
"""The exports that are data."""

IMPORTS = "imports.lib"

_MACHINE = {"x86_64": (0x8664, "x64")}
_CODE_BY_NAME = 1 << 2


def arguments(folder: Path, arch: str, exports: Sequence[str], debug_info: bool) -> list[str]:
    """Returns the options of a link, without the objects; writes the imports to `folder`."""
    _, machine = _MACHINE[arch]
    (folder / IMPORTS).write_bytes(import_library(arch, WINDOWS.provided))
    return [
        *("/dll", "/noentry", "/nologo", f"/machine:{machine}", f"/out:{OUTPUT}", "/noimplib", "/nodefaultlib"),
        # The timestamp is a hash of the content.
        *("/Brepro", "/opt:ref", "/opt:noicf", *(["/debug:dwarf"] if debug_info else [])),
        *(f"/export:{name}{',DATA' if name in DATA else ''}" for name in exports),
        IMPORTS,
    ]


def import_library(arch: str, provided: Mapping[str, Sequence[str]]) -> bytes:
    """Returns an import library for functions by DLL."""
    number, _ = _MACHINE[arch]
    pairs = [(function, library) for library, functions in provided.items() for function in functions]
    return _archive({function: _import(number, function, library) for function, library in pairs})


def _import(machine: int, function: str, library: str) -> bytes:
    names = function.encode() + b"\0" + library.encode() + b"\0"
    return struct.pack("<HHHHIIHH", 0, 0xFFFF, 0, machine, 0, len(names), 0, _CODE_BY_NAME) + names


def _archive(members: Mapping[str, bytes]) -> bytes:
    """Returns an archive of members, each with one symbol, and the index of the symbols (`ar`'s format of System V)."""
    names = b"".join(name.encode() + b"\0" for name in members)
    at, offsets, body = 8 + _padded(60 + 4 + 4 * len(members) + len(names)), list[int](), b""
    for data in members.values():
        offsets.append(at + len(body))
        body += _member("import/", data)
    index = struct.pack(f">{1 + len(members)}I", len(members), *offsets) + names
    return b"!<arch>\n" + _member("/", index) + body


def _member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return (header + data).ljust(_padded(len(header) + len(data)), b"\n")


def _padded(size: int) -> int:
    return size + size % 2


def facts(library: bytes) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Returns the architecture, the exports, and the imports that no library of Windows provides."""
    found = read_dll(library)
    wrong = [name for dll, name in found.imported if name not in WINDOWS.provided.get(dll, ())]
    return found.machine, found.exported, tuple(wrong)
