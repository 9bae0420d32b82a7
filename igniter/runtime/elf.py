"""A minimal ELF reader to check a shared library: its exports, imports and dependencies (64-bit, little-endian).

Field layouts are those of the System V gABI, chapters 4 and 5.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64"}

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")

_DYNSYM, _DYNAMIC_SECTION = 11, 6
_NEEDED, _SONAME, _RPATH, _RUNPATH, _BIND_NOW, _FLAGS = 1, 14, 15, 29, 24, 30
_BIND_NOW_FLAG = 0x8


@dataclass(frozen=True)
class SharedLibrary:
    """The content of the dynamic section of an ELF file."""

    machine: str
    exported: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[str, ...]
    paths: tuple[str, ...]
    """The soname and search paths."""
    bind_now: bool
    sections: tuple[str, ...]


def read_elf(data: bytes) -> SharedLibrary:
    """Parses an ELF file; raises `ValueError` if it is not a 64-bit little-endian one, or truncated."""
    if data[:4] != b"\x7fELF" or len(data) < _HEADER.size or data[4] != 2 or data[5] != 1:
        raise ValueError("not a 64-bit little-endian ELF file")
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"a damaged ELF file: {error}") from None


def _read(data: bytes) -> SharedLibrary:
    fields: tuple[int, ...] = _HEADER.unpack_from(data)
    machine, start, size, count, names_index = fields[2], fields[6], fields[11], fields[12], fields[13]
    sections: list[tuple[int, ...]] = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]
    exported: list[str] = []
    undefined: list[str] = []
    strings: dict[int, list[str]] = {_NEEDED: [], _SONAME: [], _RPATH: [], _RUNPATH: []}
    bind_now = False
    for kind, offset, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind == _DYNSYM:
            table = sections[link][4]
            for at in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):
                name, _, _, section, _, _ = _SYMBOL.unpack_from(data, at)
                (exported if section else undefined).append(_string(data, table + name))
        elif kind == _DYNAMIC_SECTION:
            table = sections[link][4]
            for at in range(offset, offset + length, _DYNAMIC.size):
                tag, value = _DYNAMIC.unpack_from(data, at)
                if tag in strings:
                    strings[tag].append(_string(data, table + value))
                bind_now |= tag == _BIND_NOW or (tag == _FLAGS and bool(value & _BIND_NOW_FLAG))
    names = sections[names_index][4]
    return SharedLibrary(
        machine=MACHINES.get(machine, str(machine)),
        exported=tuple(sorted(exported)),
        undefined=tuple(sorted(undefined)),
        needed=tuple(strings[_NEEDED]),
        paths=tuple(strings[_SONAME] + strings[_RPATH] + strings[_RUNPATH]),
        bind_now=bind_now,
        sections=tuple(_string(data, names + s[0]) for s in sections),
    )


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")
