"""The body of micro-kernels on AMX tiles: one or two tiles of rows by one or two panels.

The sums are in the tiles 0 to 3 (2 x row + panel), the left factors in 4 and 5, the right ones in 6 and 7: the numbers
of `configure` (`tile_registers.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import I64
from igniter.backends.cpu.tile_calls import argument, offset
from igniter.backends.cpu.tile_registers import BYTES, HIGH, I8


@contextmanager
def counted(f: Builder, label: str, end: Value, step: int) -> Generator[Value]:
    """Emits a loop from 0 to `end` (> 0); yields the index."""
    before = f.block
    f.jump(f"{label}.body")
    f.start(f"{label}.body")
    after = Value(I64, f"%{label}.after")
    index = f.phi(I64, [(f.const(I64, 0), before), (after, f"{label}.end")])
    yield index
    f.jump(f"{label}.end")
    f.start(f"{label}.end")
    f.raw(f"{after.text} = add i64 {index.text}, {step}")
    f.branch(f.icmp("slt", after, end), f"{label}.body", f"{label}.done", f.module.loop_metadata())
    f.start(f"{label}.done")


class TileBlock(ABC):
    """Tiles of sums at `sums`: `high` tiles of rows by `wide` panels."""

    def __init__(self, f: Builder, label: str, high: int, wide: int, sums: Value):
        self.f = f
        self.label = label
        self.high = high
        self.wide = wide
        self.sums = sums

    def run(self, depth: Value, step: int, rounds: bool = False) -> None:
        """Sums over `depth`, a positive multiple of `step`, the depth of a tile; the argument `add` says if the sums in
        memory count. `rounds`: again for each of the argument `rounds`, a positive number."""
        f, label = self.f, self.label
        add, plain, start = (f"{label}.{part}" for part in ("add", "plain", "start"))
        f.branch(f.icmp("ne", argument("add"), f.const(I64, 0)), add, plain)
        f.start(add)
        self._move("llvm.x86.tileloadd64")
        f.jump(start)
        f.start(plain)
        for r in range(self.high):
            for p in range(self.wide):
                f.call_void("llvm.x86.tilezero", [f.const(I8, 2 * r + p)])
        f.jump(start)
        f.start(start)
        if rounds:
            with counted(f, f"{label}.s", argument("rounds"), 1) as s:
                self.start_round(s)
                with counted(f, f"{label}.k", depth, step) as k:
                    self.step(k)
        else:
            with counted(f, f"{label}.k", depth, step) as k:
                self.step(k)
        self._move("llvm.x86.tilestored64")

    def start_round(self, number: Value) -> None:
        """Emits the addresses of a round, in blocks that can have several."""
        raise NotImplementedError(f"{type(self).__name__} has no rounds")

    @abstractmethod
    def step(self, k: Value) -> None:
        """Emits the loads and products of one depth of a tile, from `k` on."""

    def load_left(self, r: int, place: Value, row: Value) -> None:
        """Loads rows of the left factor, `row` bytes apart."""
        self.f.call_void("llvm.x86.tileloadd64", [self.f.const(I8, 4 + r), place, row])

    def load_right(self, p: int, place: Value, row: Value) -> None:
        """Loads rows of a panel, `row` bytes apart."""
        self.f.call_void("llvm.x86.tileloadd64", [self.f.const(I8, 6 + p), place, row])

    def multiply(self, instruction: str, r: int, p: int) -> None:
        """Adds the product of a left factor and a panel to their sums."""
        tiles = [self.f.const(I8, k) for k in (2 * r + p, 4 + r, 6 + p)]
        self.f.call_void(f"llvm.x86.{instruction}", tiles)

    def _move(self, intrinsic: str) -> None:
        """Moves every tile of sums from or to memory."""
        f, step = self.f, argument("c_row")
        for r in range(self.high):
            row = offset(f, self.sums, f.binary("mul", step, f.const(I64, HIGH * r)))
            for p in range(self.wide):
                f.call_void(intrinsic, [f.const(I8, 2 * r + p), offset(f, row, f.const(I64, BYTES * p)), step])
