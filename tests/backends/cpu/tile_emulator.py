"""AMX without AMX: the micro-kernels on tiles, with every tile instruction replaced by a call of Python.

The bodies with vectors are those of x86-64-v3. The instructions follow the pseudocode of Intel's *Software Developer's
Manual*, volume 2: `TDPBF16PS` adds the products of the even elements of a row, and those of the odd ones, then both
sums to the result; every addition rounds to nearest, and subnormal numbers count as 0.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding as llvm

import igniter
from igniter.backends.cpu import direct_tiles, half_tiles
from igniter.backends.cpu.builder import LlvmModule
from igniter.backends.cpu.codegen import link_modules
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.jit import CompiledFunc
from igniter.backends.cpu.machine import machine_for
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.tile_bodies import TileKind, TileSize, add_bodies
from igniter.backends.cpu.tile_kernels import emit_tile_kernel, parse_name, required, tile_name
from igniter.backends.cpu.tile_registers import GRANTED, STATE
from igniter.dialects.loop import FuncOp

TARGET = "x86-64-v3"
LEAST_NORMAL = np.float32(2.0**-126)

I8, I64, PTR = ctypes.c_int8, ctypes.c_int64, ctypes.c_void_p


def _flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < LEAST_NORMAL, np.copysign(np.float32(0), values), values)


class Tiles:
    """The eight tile registers, and the instructions on them."""

    def __init__(self) -> None:
        self.rows = [0] * 8
        self.bytes = [0] * 8
        self.data = np.zeros((8, 16, 64), np.uint8)
        self.products = 0
        """The tile products since the last reset."""
        self.configurations = 0
        """The configurations since the last reset."""

    def ldtilecfg(self, place: int) -> None:
        config = np.ctypeslib.as_array((ctypes.c_uint8 * 64).from_address(place))
        assert config[0] == 1, "the palette"
        self.bytes = [int(b) for b in config[16:32].view(np.uint16)]
        self.rows = [int(r) for r in config[48:56]]
        assert max(self.bytes) <= 64 and max(self.rows) <= 16
        self.data[...] = 0

        self.configurations += 1

    def sttilecfg(self, place: int) -> None:
        config = np.ctypeslib.as_array((ctypes.c_uint8 * 64).from_address(place))
        config[...] = 0
        if max(self.rows):
            config[0] = 1
            config[16:32] = np.array(self.bytes, np.uint16).view(np.uint8)
            config[48:56] = self.rows

    def tilezero(self, tile: int) -> None:
        self.data[tile] = 0

    def tileloadd64(self, tile: int, place: int, step: int) -> None:
        self.data[tile] = 0
        for row in range(self.rows[tile]):
            source = (ctypes.c_uint8 * self.bytes[tile]).from_address(place + row * step)
            self.data[tile, row, : self.bytes[tile]] = np.ctypeslib.as_array(source)

    def tilestored64(self, tile: int, place: int, step: int) -> None:
        for row in range(self.rows[tile]):
            ctypes.memmove(place + row * step, self.data[tile, row].ctypes.data, self.bytes[tile])

    def tilerelease(self) -> None:
        self.rows, self.bytes = [0] * 8, [0] * 8

    def _factors(self, sums: int, left: int, right: int) -> tuple[int, int, int]:
        """Returns the rows, the groups of depth and the columns of a product; refuses what the CPU refuses."""
        groups, columns = self.bytes[left] // 4, self.bytes[sums] // 4
        assert self.rows[sums] == self.rows[left] and self.bytes[right] == self.bytes[sums]
        assert self.rows[right] == groups, "the depths differ"
        assert len({sums, left, right}) == 3
        self.products += 1
        return self.rows[sums], groups, columns

    def tdpbf16ps(self, sums: int, left: int, right: int) -> None:
        rows, groups, columns = self._factors(sums, left, right)
        halves = [self.data[t].view(np.uint16).astype(np.uint32) << 16 for t in (left, right)]
        a, b = (_flushed(h.view(np.float32)) for h in halves)
        c = self.data[sums].view(np.float32)
        halves_of_sums = np.zeros((2, rows, columns), np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            for k in range(groups):
                for part in (0, 1):
                    exact = a[:rows, 2 * k + part, None].astype(np.float64) * b[k, part : 2 * columns : 2]
                    halves_of_sums[part] = halves_of_sums[part] + exact
            c[:rows, :columns] += halves_of_sums[0] + halves_of_sums[1]

    def _bytes(self, sums: int, left: int, right: int, kind: type[np.generic]) -> None:
        rows, groups, columns = self._factors(sums, left, right)
        a = self.data[left].view(kind)[:rows, : 4 * groups].astype(np.int32).reshape(rows, groups, 4)
        b = self.data[right].view(np.int8)[:groups, : 4 * columns].astype(np.int32).reshape(groups, columns, 4)
        self.data[sums].view(np.int32)[:rows, :columns] += np.einsum("rkg,kcg->rc", a, b)

    def tdpbusd(self, sums: int, left: int, right: int) -> None:
        self._bytes(sums, left, right, np.uint8)

    def tdpbssd(self, sums: int, left: int, right: int) -> None:
        self._bytes(sums, left, right, np.int8)


_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "ldtilecfg": (PTR,),
    "sttilecfg": (PTR,),
    "tilezero": (I8,),
    "tileloadd64": (I8, PTR, I64),
    "tilestored64": (I8, PTR, I64),
    "tilerelease": (),
    "tdpbf16ps": (I8, I8, I8),
    "tdpbusd": (I8, I8, I8),
    "tdpbssd": (I8, I8, I8),
}


@cache
def tiles() -> Tiles:
    """Returns the registers; the first call makes their instructions known to the JIT."""
    found = Tiles()
    for name, parameters in _PARAMETERS.items():
        method: Callable[..., None] = getattr(found, name)
        callback = ctypes.CFUNCTYPE(None, *parameters)(method)
        _kept.append(callback)
        address = ctypes.cast(callback, PTR).value
        assert address is not None
        llvm.add_symbol(f"emulated.{name}", address)
    return found


_kept: list[Any] = []
"""The callbacks, which live as long as the code that calls them."""


def emulated_kernel(kind: TileKind, size: TileSize) -> str:
    """Returns the module of a micro-kernel on tiles, under its name for `TARGET`, that calls `tiles()`."""
    tiles()
    target = target_of(TARGET)
    module, name = LlvmModule(target), tile_name(kind.name, size, target)
    if kind.name == "f32f16":
        half_tiles.add_half_tiles(module, name, size.panels)
        for width in half_tiles.widths_of(size.panels):
            add_bodies(module, f"{name}.vectors.{width}", kind, TileSize(half_tiles.STRIPE, width))
    else:
        direct_tiles.add_direct_tiles(module, name, size, kind.kernel)
        add_bodies(module, f"{name}.stripe", kind, TileSize(direct_tiles.STRIPE, size.panels, size.rounds))
    text = module.text()
    for each in _PARAMETERS:
        text = text.replace(f"@llvm.x86.{each}(", f"@emulated.{each}(")
    known = f"@{STATE} = weak hidden global i32 "
    assert f"{known}0" in text and "llvm.x86.t" not in text
    return text.replace(f"{known}0", f"{known}{GRANTED}")


def scheduled_for_tiles(text: str) -> FuncOp:
    """Returns the scheduled kernel of `TARGET` with AMX."""
    module = igniter.parse(text)
    module.ctx.machine = replace(machine_for(target_of(TARGET)), half_tiles=True, byte_tiles=True)
    module.run_passes("cpu-schedule")
    return next(op for op in module.ir.walk() if isinstance(op, FuncOp))


def compiled_on_tiles(func: FuncOp) -> CompiledFunc:
    """Compiles a scheduled kernel with micro-kernels that call `tiles()`."""
    target = target_of(TARGET)
    ir = emit_llvm(func, target)
    parts: list[str] = []
    for name in required(ir):
        parsed = parse_name(name)
        assert parsed is not None
        on_tiles = parsed[1].rows == direct_tiles.ROWS
        parts.append(emulated_kernel(*parsed) if on_tiles else emit_tile_kernel(name, target))
    return CompiledFunc(func.sym_name.data, link_modules([ir, *parts]), target, func.symbol_names, func.scratch_bytes)
