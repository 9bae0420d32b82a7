"""A minimal reader of Windows's DLLs: machine, exports and imports (PE32+, little-endian).

Field layouts are those of Microsoft's "PE Format".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MACHINES = {0x8664: "x86_64", 0xAA64: "aarch64"}
_PE32_PLUS = 0x20B
_EXPORTS, _IMPORTS = 0, 1


@dataclass(frozen=True)
class Dll:
    """The tables of a DLL; `imported` are pairs of a library and a function."""

    machine: str
    exported: tuple[str, ...]
    imported: tuple[tuple[str, str], ...]
    timestamp: int


def read_dll(data: bytes) -> Dll:
    """Parses a DLL; raises `ValueError` if it is not a 64-bit one, or truncated."""
    if data[:2] != b"MZ":
        raise ValueError("not a DLL")
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"a damaged DLL: {error}") from None


def _read(data: bytes) -> Dll:
    (start,) = struct.unpack_from("<I", data, 60)
    if data[start : start + 4] != b"PE\0\0":
        raise ValueError("no PE header")
    machine, count, timestamp, _, _, optional, _ = struct.unpack_from("<HHIIIHH", data, start + 4)
    at = start + 24
    if struct.unpack_from("<H", data, at)[0] != _PE32_PLUS:
        raise ValueError("not a 64-bit one")
    folders = [struct.unpack_from("<II", data, at + 112 + 8 * k) for k in (_EXPORTS, _IMPORTS)]
    sections = [struct.unpack_from("<II", data, at + optional + 40 * k + 12) for k in range(count)]
    sizes = [struct.unpack_from("<II", data, at + optional + 40 * k + 16) for k in range(count)]
    places = [(address, size, offset) for (address, _), (size, offset) in zip(sections, sizes, strict=True)]

    def offset_of(address: int) -> int:
        found = next((o + address - a for a, s, o in places if a <= address < a + s), None)
        if found is None:
            raise ValueError("an address outside of all sections")
        return found

    exported = _exports(data, offset_of, folders[0][0]) if folders[0][1] else ()
    imported = tuple(_imports(data, offset_of, folders[1][0])) if folders[1][1] else ()
    return Dll(MACHINES.get(machine, hex(machine)), tuple(sorted(exported)), imported, timestamp)


def _exports(data: bytes, offset_of: Callable[[int], int], address: int) -> tuple[str, ...]:
    at = offset_of(address)
    (count,) = struct.unpack_from("<I", data, at + 24)
    (names,) = struct.unpack_from("<I", data, at + 32)
    listed = struct.unpack_from(f"<{count}I", data, offset_of(names)) if count else ()
    return tuple(_string(data, offset_of(each)) for each in listed)


def _imports(data: bytes, offset_of: Callable[[int], int], address: int) -> Iterator[tuple[str, str]]:
    at = offset_of(address)
    while True:
        lookup, _, _, name, _ = struct.unpack_from("<IIIII", data, at)
        if not name:
            return
        library, entry = _string(data, offset_of(name)), offset_of(lookup)
        while (value := struct.unpack_from("<Q", data, entry)[0]) != 0:
            by_number = value >> 63
            yield library, f"#{value & 0xFFFF}" if by_number else _string(data, offset_of(value) + 2)
            entry += 8
        at += 20


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")
