"""Kernels for aarch64, run on any machine by an emulator of the CPU (unicorn): code for a CPU that is not there.

The library is what the linker makes for the target. Each buffer ends right before a page that is not mapped, so that an
access past its end is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.target import Target, target_of
from igniter.runtime.linker import link_shared

Array = np.ndarray

PAGE = 1 << 16
CODE, HEAP, STACK = 1 << 32, 1 << 32 | 1 << 24, 1 << 40
STACK_BYTES = 1 << 20
END = 1 << 44
"""Where the kernel returns to."""

SERIAL = """
define void @serial(ptr %context, ptr %task, i64 %count, ptr %data) {
entry:
  %none = icmp sle i64 %count, 0
  br i1 %none, label %done, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  call void %task(ptr %data, i64 %i)
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
"""
"""A pool of one thread: the emulator cannot call back into Python and on from there."""

_RELATIVE = 1027  # R_AARCH64_RELATIVE, of the ELF supplement for the Arm 64-bit architecture
_LOAD, _DYNSYM, _RELA = 1, 11, 4


@dataclass
class Memory:
    """The memory of a call: pieces, each at the very end of its pages, and nothing behind them."""

    top: int = HEAP
    pieces: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])

    def add(self, data: bytes) -> int:
        """The address of a new piece."""
        self.top += pages(len(data))
        place = self.top - len(data)
        self.pieces.append((place, data))
        self.top += PAGE
        return place


def pages(size: int) -> int:
    """The bytes of the pages that hold so many."""
    return max(1, -(-size // PAGE)) * PAGE


class EmulatedFunc:
    """`igniter.backends.cpu.jit.CompiledFunc`, emulated."""

    def __init__(self, name: str, ir: str, target: Target, symbols: Sequence[str] = (), scratch: Any = None):
        self.symbols = tuple(symbols)
        self._scratch = scratch
        self._name = name
        objects = [compile_object(ir, target), _pool(target)]
        self._code, self._addresses = loaded(link_shared(objects, target.triple, [name, "serial"]))
        self._start()

    def __call__(self, *buffers: Array, threads: int = 1, **symbols: int) -> None:
        """Run on C-contiguous arrays, in place; with `threads` > 1, by tasks."""
        memory = Memory()
        places = [memory.add(b.tobytes()) for b in buffers]
        pointers = memory.add(struct.pack(f"<{len(places)}Q", *places))
        values = memory.add(struct.pack(f"<{len(self.symbols)}q", *(symbols[s] for s in self.symbols)))
        size = self._scratch.evaluate(dict(symbols)) if self._scratch is not None else 0
        scratch = memory.add(bytes(-(-size // 64) * 64))
        pool = self._addresses["serial"] if threads > 1 else 0
        read = [(place, b.nbytes) for place, b in zip(places, buffers, strict=True)]
        found = self._run(memory, (pointers, values, scratch, pool, 0), read)
        for buffer, data in zip(buffers, found, strict=True):
            buffer[...] = np.frombuffer(data, buffer.dtype).reshape(buffer.shape)

    def _start(self) -> None:
        """The setup for all calls."""
        import unicorn
        from unicorn import arm64_const as arm

        self._arm = arm
        self._cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._cpu.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
        # Floating point and vectors are off after a reset.
        self._cpu.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)
        self._cpu.mem_map(CODE, pages(len(self._code)))
        self._cpu.mem_write(CODE, self._code)
        self._cpu.mem_map(STACK, STACK_BYTES)
        self._cpu.mem_map(END, PAGE)

    def _run(self, memory: Memory, arguments: Sequence[int], read: Sequence[tuple[int, int]]) -> list[bytes]:
        """What is at the addresses of `read`, so many bytes each, after a call with five arguments."""
        arm, cpu = self._arm, self._cpu
        mapped: list[tuple[int, int]] = []
        try:
            for place, data in memory.pieces:
                size = pages(len(data))
                cpu.mem_map(place + len(data) - size, size)
                mapped.append((place + len(data) - size, size))
                cpu.mem_write(place, data)
            for number, value in enumerate(arguments):
                cpu.reg_write(arm.UC_ARM64_REG_X0 + number, value)
            cpu.reg_write(arm.UC_ARM64_REG_SP, STACK + STACK_BYTES)
            cpu.reg_write(arm.UC_ARM64_REG_LR, END)
            cpu.emu_start(self._addresses[self._name], END)
            return [bytes(cpu.mem_read(place, size)) if size else b"" for place, size in read]
        finally:
            for place, size in mapped:
                cpu.mem_unmap(place, size)


def loaded(data: bytes) -> tuple[bytes, dict[str, int]]:
    """The memory of a shared library that is loaded at `CODE`, and the addresses of what it exports."""
    segments, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    found = [struct.unpack_from("<IIQQQQQQ", data, segments + 56 * i) for i in range(count)]
    found = [s for s in found if s[0] == _LOAD]
    memory = bytearray(max(s[3] + s[6] for s in found))
    for _, _, offset, address, _, size, _, _ in found:
        memory[address : address + size] = data[offset : offset + size]
    addresses: dict[str, int] = {}
    start, (size, count) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        for at in range(offset, offset + length, 24):
            if kind == _DYNSYM:
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                text = sections[link][4] + name
                assert section or at == offset, "an undefined symbol"
                addresses[data[text : data.index(b"\0", text)].decode()] = CODE + value
            elif kind == _RELA:
                place, info, addend = struct.unpack_from("<QQq", data, at)
                assert info & 0xFFFFFFFF == _RELATIVE, "a relocation that no library of ours has"
                struct.pack_into("<Q", memory, place, CODE + addend)
    return bytes(memory), addresses


@cache
def _pool(target: Target) -> bytes:
    return compile_object(f'target triple = "{target.triple}"\n{SERIAL}', target)


def is_emulated(target: str) -> bool:
    """True if code for the target is run by the emulator."""
    return target_of(target).triple.startswith("aarch64") and not target_of("native").triple.startswith("aarch64")
