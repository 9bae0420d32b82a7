"""A minimal reader of Apple's shared libraries: architecture, system, exports, imports and signature (Mach-O, 64-bit,
little-endian).

Field layouts are those of Apple's `mach-o/loader.h` and `mach-o/nlist.h`, and of `cs_blobs.h` for signatures.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

MAGIC, DYLIB = 0xFEEDFACF, 6
MACHINES = {0x01000007: "x86_64", 0x0100000C: "aarch64"}
PLATFORMS = {1: "macos", 2: "ios"}
_NUMBERS = {name: number for number, name in PLATFORMS.items()}
_SEGMENT, _SYMTAB, _LOAD_DYLIB, _ID_DYLIB, _SIGNATURE, _BUILD = 0x19, 0x2, 0xC, 0xD, 0x1D, 0x32
_STAB, _PRIVATE, _TYPE, _EXTERNAL = 0xE0, 0x10, 0x0E, 0x01
_SUPER_BLOB, _DIRECTORY, _AD_HOC, _SHA256 = 0xFADE0CC0, 0xFADE0C02, 0x2, 2


@dataclass(frozen=True)
class Dylib:
    """The load commands of a shared library."""

    machine: str
    system: str
    """`macos` or `ios`."""
    oldest: tuple[int, int]
    """The least version of the system."""
    name: str
    """The install name."""
    needed: tuple[str, ...]
    exported: tuple[str, ...]
    """Without the leading underscore."""
    undefined: tuple[str, ...]
    segments: tuple[tuple[str, int, int], ...]
    """Name, address and offset in the file."""
    signature: str
    """`ad hoc`, `signed`, or "" without one."""


def read_dylib(data: bytes) -> Dylib:
    """Parses a shared library; raises `ValueError` if it is not a 64-bit one, or truncated."""
    if len(data) < 32 or struct.unpack_from("<I", data)[0] != MAGIC:
        raise ValueError("not a 64-bit Mach-O file")
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"a damaged Mach-O file: {error}") from None


def marked(data: bytes, system: str, oldest: tuple[int, int]) -> bytes:
    """Returns an object or a library with another system and its least version in the load command for these; the
    hashes of an ad hoc signature are computed again."""
    result = bytearray(data)
    at, signature = 32, 0
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        if command == _BUILD:
            version = oldest[0] << 16 | oldest[1] << 8
            struct.pack_into("<III", result, at + 8, _NUMBERS[system], version, version)
        elif command == _SIGNATURE:
            signature = struct.unpack_from("<I", data, at + 8)[0]
        at += size
    if signature:
        _hash_again(result, signature)
    return bytes(result)


def _directory(data: bytes | bytearray, at: int) -> int:
    """Returns the place of the directory of hashes in a signature; raises `ValueError` if it has none."""
    magic, _, count = struct.unpack_from(">III", data, at)
    if magic != _SUPER_BLOB:
        raise ValueError("a signature of unknown form")
    for k in range(count):
        (offset,) = struct.unpack_from(">I", data, at + 12 + 8 * k + 4)
        if struct.unpack_from(">I", data, at + offset)[0] == _DIRECTORY:
            return at + offset
    raise ValueError("a signature without a directory of hashes")


def page_hashes(data: bytes | bytearray, at: int) -> tuple[int, int, list[bytes]]:
    """Returns the place of the hashes of a library's pages in the signature at `at`, the size of a hash, and the hashes
    that the pages have."""
    start = _directory(data, at)
    (hashes,) = struct.unpack_from(">I", data, start + 16)
    count, limit = struct.unpack_from(">II", data, start + 28)
    size, kind, _, page = struct.unpack_from(">BBBB", data, start + 36)
    if kind != _SHA256:
        raise ValueError("a signature with other hashes than SHA-256")
    pages = [bytes(data[k << page : min(limit, (k + 1) << page)]) for k in range(count)]
    return start + hashes, size, [hashlib.sha256(each).digest()[:size] for each in pages]


def _hash_again(data: bytearray, at: int) -> None:
    place, size, hashes = page_hashes(data, at)
    for k, each in enumerate(hashes):
        data[place + k * size : place + (k + 1) * size] = each


def _read(data: bytes) -> Dylib:
    _, cpu, _, kind, count, _, _, _ = struct.unpack_from("<8I", data)
    if kind != DYLIB:
        raise ValueError("not a shared library")
    names: dict[int, list[str]] = {_LOAD_DYLIB: [], _ID_DYLIB: []}
    segments: list[tuple[str, int, int]] = []
    exported: list[str] = []
    undefined: list[str] = []
    system, oldest, signature, at = "", 0, "", 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command in names:
            names[command].append(_string(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == _SEGMENT:
            address, _, offset = struct.unpack_from("<QQQ", data, at + 24)
            segments.append((data[at + 8 : at + 24].rstrip(b"\0").decode(), address, offset))
        elif command == _SYMTAB:
            exported, undefined = _symbols(data, *struct.unpack_from("<4I", data, at + 8))
        elif command == _BUILD:
            platform, oldest = struct.unpack_from("<II", data, at + 8)
            system = PLATFORMS.get(platform, str(platform))
        elif command == _SIGNATURE:
            signature = _signature(data, struct.unpack_from("<I", data, at + 8)[0])
        at += size
    return Dylib(
        machine=MACHINES.get(cpu, hex(cpu)),
        system=system,
        oldest=(oldest >> 16, oldest >> 8 & 0xFF),
        name="".join(names[_ID_DYLIB]),
        needed=tuple(names[_LOAD_DYLIB]),
        exported=tuple(sorted(exported)),
        undefined=tuple(sorted(undefined)),
        segments=tuple(segments),
        signature=signature,
    )


def _symbols(data: bytes, start: int, count: int, strings: int, _: int) -> tuple[list[str], list[str]]:
    exported: list[str] = []
    undefined: list[str] = []
    for k in range(count):
        name, kind, _, _, _ = struct.unpack_from("<IBBHQ", data, start + 16 * k)
        if kind & _STAB or kind & _PRIVATE or not kind & _EXTERNAL:
            continue
        (exported if kind & _TYPE else undefined).append(_string(data, strings + name).removeprefix("_"))
    return exported, undefined


def _signature(data: bytes, at: int) -> str:
    """Says who signed: a directory of hashes with the flag for ad hoc is signed by nobody."""
    (flags,) = struct.unpack_from(">I", data, _directory(data, at) + 12)
    place, size, hashes = page_hashes(data, at)
    if data[place : place + size * len(hashes)] != b"".join(hashes):
        raise ValueError("a signature of another content")
    return "ad hoc" if flags & _AD_HOC else "signed"


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")
