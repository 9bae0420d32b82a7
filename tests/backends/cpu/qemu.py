"""Kernels for aarch64 with instructions that the emulator's CPU is too old for (`smmla`, `bfdot`), run by qemu.

A call is a program of its own, without a library, whose file is written here: the code, each buffer right before a page
that is not mapped, and a few instructions that call the kernel and write the buffers to the standard output.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .emulator import CODE, PAGE, EmulatedFunc, Memory, pages

PROGRAMS = ("qemu-aarch64-static", "qemu-aarch64")
OLDEST = (6, 1)
"""The first version whose CPU `max` has i8mm and bf16."""

TIMEOUT = 120

WRITE, EXIT = 64, 93
"""Linux's numbers of system calls."""

CALL, SYSTEM_CALL = 0xD63F0000 | 9 << 5, 0xD4000001
"""`blr x9` and `svc #0`."""


@cache
def missing_qemu() -> str | None:
    """Why kernels cannot be run by qemu; None where they can."""
    program = _program()
    if program is None:
        return "the emulator's CPU is older than these instructions: install qemu-user-static (apt-get) to run them"
    told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False).stdout
    version = re.search(r"version (\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        return f"{program} is older than these instructions, which qemu has from {OLDEST[0]}.{OLDEST[1]} on"
    return None


def _program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class QemuFunc(EmulatedFunc):
    """`EmulatedFunc`, on a CPU with all that qemu has."""

    def _start(self) -> None:
        """Each call is a process of its own."""

    def _run(self, memory: Memory, arguments: Sequence[int], read: Sequence[tuple[int, int]]) -> list[bytes]:
        program = _program()
        assert program is not None
        entry = CODE + pages(len(self._code)) + PAGE
        starting = _starting(self._addresses[self._name], arguments, read)
        file = _executable(entry, [(CODE, self._code), (entry, starting), *memory.pieces])
        with tempfile.TemporaryDirectory(prefix="igniter-qemu-") as folder:
            path = Path(folder) / "call"
            path.write_bytes(file)
            path.chmod(0o700)
            command = [program, "-cpu", "max", str(path)]
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, env=dict(os.environ))
        assert done.returncode == 0, f"qemu: {done.returncode} {done.stderr.decode(errors='replace')}"
        found: list[bytes] = []
        at = 0
        for _, size in read:
            found.append(done.stdout[at : at + size])
            at += size
        assert at == len(done.stdout)
        return found


def _starting(function: int, arguments: Sequence[int], read: Sequence[tuple[int, int]]) -> bytes:
    """Code that calls a function, writes what is to be read, and ends."""
    steps: list[tuple[dict[int, int], int]] = [({9: function, **dict(enumerate(arguments))}, CALL)]
    steps += [({0: 1, 1: place, 2: size, 8: WRITE}, SYSTEM_CALL) for place, size in read]
    steps.append(({0: 0, 8: EXIT}, SYSTEM_CALL))
    length = sum(len(registers) + 1 for registers, _ in steps)
    length += length % 2
    code: list[int] = []
    values: list[int] = []
    for registers, then in steps:
        for register, value in registers.items():
            # `ldr xN, value`, of which the code says how many words on that is.
            away = length + 2 * len(values) - len(code)
            code.append(0x58000000 | away << 5 | register)
            values.append(value)
        code.append(then)
    code += [0] * (length - len(code))
    return struct.pack(f"<{length}I{len(values)}Q", *code, *values)


def _executable(entry: int, pieces: Sequence[tuple[int, bytes]]) -> bytes:
    """An ELF file for aarch64 with each piece at its address, all to be read, written and run."""
    header = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
    kept = [(place, data) for place, data in pieces if data]
    first = header[0].size
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    file = bytearray(header[0].pack(identity, 2, 183, 1, entry, first, 0, 0, first, 56, len(kept), 64, 0, 0))
    file += bytes(header[1].size * len(kept))
    for n, (place, data) in enumerate(kept):
        file += bytes((place - len(file)) % 4096)
        header[1].pack_into(file, first + 56 * n, 1, 7, len(file), place, place, len(data), len(data), 4096)
        file += data
    return bytes(file)
