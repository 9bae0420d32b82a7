"""Buffers in space `register`: one stack slot for each accessed place. LLVM always promotes these slots.

Every access has constant subscripts, so a buffer splits into slots, each a scalar or one vector. A slot is an alloca
with only whole loads and stores: SROA always promotes it. Two partially overlapping slots would need the memory in
between, so they are an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import Type
from igniter.dialects.loop import AllocOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import product


@dataclass
class RegisterBuffer:
    """One register buffer and its slots by (offset, lanes); lanes is 0 for a scalar."""

    label: str
    size: int
    owner: Function
    slots: dict[tuple[int, int], Value] = field(default_factory=dict[tuple[int, int], Value])


class RegisterFile:
    """The register buffers of one func."""

    def __init__(self, func: str):
        self.func = func
        self._buffers: dict[SSAValue, RegisterBuffer] = {}

    def holds(self, buffer: SSAValue) -> bool:
        return buffer in self._buffers

    def add(self, op: AllocOp, owner: Function) -> None:
        size = product(dims_of(op.result.type)).constant
        assert size is not None, "the verifier wants constant dims"
        self._buffers[op.result] = RegisterBuffer(op.label.data, size, owner)

    def slot(self, f: Function, op: Operation, buffer: SSAValue, offset: int, t: Type) -> Value:
        """Returns the alloca of `t` at element `offset`."""
        found = self._buffers[buffer]
        if found.owner is not f:
            raise EmitError(
                self.func, op, f"register buffer '{found.label}' lives outside the threads loop that accesses it"
            )
        key = (offset, t.lanes)
        if key not in found.slots:
            self._check(op, found, offset, t)
            found.slots[key] = f.alloca(str(t), 64, "r")
        return found.slots[key]

    def _check(self, op: Operation, buffer: RegisterBuffer, offset: int, t: Type) -> None:
        end = offset + max(t.lanes, 1)
        if offset < 0 or end > buffer.size:
            raise EmitError(
                self.func, op, f"elements {offset} to {end} of register buffer '{buffer.label}' of {buffer.size}"
            )
        for other, lanes in buffer.slots:
            if offset < other + max(lanes, 1) and other < end:
                raise EmitError(
                    self.func,
                    op,
                    f"register buffer '{buffer.label}' is accessed as elements {offset} to {end} here and as "
                    f"{other} to {other + max(lanes, 1)} elsewhere; the parts of a register buffer cannot overlap",
                )
