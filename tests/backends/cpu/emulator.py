"""Kernels for aarch64, run on any machine by an emulator of the CPU (unicorn): code for a CPU that is not there.

The library is what the linker makes for the target. Each buffer ends right before a page that is not mapped, so that an
access past its end is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.target import Target, target_of
from igniter.runtime.linker import link_shared

Array = np.ndarray

PAGE = 1 << 16
CODE, HEAP, STACK = 1 << 32, 1 << 36, 1 << 40
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


class EmulatedFunc:
    """`igniter.backends.cpu.jit.CompiledFunc`, emulated."""

    def __init__(self, name: str, ir: str, target: Target, symbols: Sequence[str] = (), scratch: Any = None):
        import unicorn
        from unicorn import arm64_const as arm

        self.symbols = tuple(symbols)
        self._scratch = scratch
        self._name = name
        self._arm = arm
        self._cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._cpu.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
        # Floating point and vectors are off after a reset.
        self._cpu.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)
        objects = [compile_object(ir, target), _pool(target)]
        self._addresses = self._load(link_shared(objects, target.triple, [name, "serial"]))
        self._cpu.mem_map(STACK, STACK_BYTES)
        self._cpu.mem_map(END, PAGE)
        self._mapped: list[tuple[int, int]] = []

    def _load(self, data: bytes) -> dict[str, int]:
        """Maps the segments of a shared library; the addresses of what it exports."""
        segments, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
        loaded = [struct.unpack_from("<IIQQQQQQ", data, segments + 56 * i) for i in range(count)]
        loaded = [s for s in loaded if s[0] == _LOAD]
        end = max(s[3] + s[6] for s in loaded)
        self._cpu.mem_map(CODE, -(-end // PAGE) * PAGE)
        for _, _, offset, address, _, size, _, _ in loaded:
            self._cpu.mem_write(CODE + address, data[offset : offset + size])
        found: dict[str, int] = {}
        start, (size, count) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
        for _, kind, _, _, offset, length, link, *_ in sections:
            for at in range(offset, offset + length, 24):
                if kind == _DYNSYM:
                    name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                    text = sections[link][4] + name
                    assert section or at == offset, "an undefined symbol"
                    found[data[text : data.index(b"\0", text)].decode()] = CODE + value
                elif kind == _RELA:
                    place, info, addend = struct.unpack_from("<QQq", data, at)
                    assert info & 0xFFFFFFFF == _RELATIVE, "a relocation that no library of ours has"
                    self._cpu.mem_write(CODE + place, struct.pack("<Q", CODE + addend))
        return found

    def __call__(self, *buffers: Array, threads: int = 1, **symbols: int) -> None:
        """Run on C-contiguous arrays, in place; with `threads` > 1, by tasks."""
        arm, cpu = self._arm, self._cpu
        self._top = HEAP
        try:
            places = [self._map(b.tobytes()) for b in buffers]
            pointers = self._map(struct.pack(f"<{len(places)}Q", *places))
            values = self._map(struct.pack(f"<{len(self.symbols)}q", *(symbols[s] for s in self.symbols)))
            size = self._scratch.evaluate(dict(symbols)) if self._scratch is not None else 0
            scratch = self._map(bytes(-(-size // 64) * 64))
            pool = self._addresses["serial"] if threads > 1 else 0
            for number, value in enumerate((pointers, values, scratch, pool, 0)):
                cpu.reg_write(arm.UC_ARM64_REG_X0 + number, value)
            cpu.reg_write(arm.UC_ARM64_REG_SP, STACK + STACK_BYTES)
            cpu.reg_write(arm.UC_ARM64_REG_LR, END)
            cpu.emu_start(self._addresses[self._name], END)
            for buffer, place in zip(buffers, places, strict=True):
                data = cpu.mem_read(place, buffer.nbytes) if buffer.nbytes else b""
                buffer[...] = np.frombuffer(data, buffer.dtype).reshape(buffer.shape)
        finally:
            for place, size in self._mapped:
                cpu.mem_unmap(place, size)
            self._mapped.clear()

    def _map(self, data: bytes) -> int:
        """Memory with `data` at its very end, and nothing behind it."""
        size = max(1, -(-len(data) // PAGE)) * PAGE
        self._cpu.mem_map(self._top, size)
        self._mapped.append((self._top, size))
        place = self._top + size - len(data)
        self._cpu.mem_write(place, data)
        self._top += size + PAGE
        return place


@cache
def _pool(target: Target) -> bytes:
    return compile_object(f'target triple = "{target.triple}"\n{SERIAL}', target)


def is_emulated(target: str) -> bool:
    """Whether code for the target is run by the emulator."""
    return target_of(target).triple.startswith("aarch64") and not target_of("native").triple.startswith("aarch64")
