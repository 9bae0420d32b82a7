"""The sanitizer: kernels in which every access checks at run time that it is inside its buffer.

`igniter compile --sanitize` (`CompileOptions.sanitize`, or `IGNITER_SANITIZE=1` in the environment) enables it. The
check compares the address of the access, less the start of its buffer, with the size of the buffer in bytes; a vector
access checks each of its active lanes, a micro-kernel the least and the greatest address of each of its operands. An
access out of bounds is skipped (a load gives its value for failed guards), and a text about the access is stored in
`@igniter_violation`. The library reads this cell after the run and ends the call with an error; `CompiledFunc` raises
one.

The checks do not rely on the proofs of `igniter.analysis.structured.bounds`: a violation is a bug in them, in a
lowering, in a pass or in the emitter. A buffer in scratch memory outside the arena has the size 0. Prefetches are not
checked: they read nothing and cannot fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from igniter.analysis.scheduled.loop_accesses import base_of
from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I1, I64, Type
from igniter.backends.violations import DEFINITION, VIOLATION
from igniter.dialects.loop import element_bytes, stored_bytes
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.backends.cpu.accesses import Access


class Sanitizer:
    """The checks of one LLVM module."""

    def __init__(self) -> None:
        self._limits: dict[SSAValue, str] = {}
        """The name, in the scopes of functions, of every buffer's size in bytes."""
        self._sites = 0

    # -- buffers ------------------------------------------------------------------------------------------------------

    def add_buffer(self, f: Function, buffer: SSAValue) -> Value:
        """Records a buffer at its definition; returns its size in bytes."""
        size = f.expr(f.prepare(stored_bytes(buffer.type)))
        self._note(f, buffer, size)
        return size

    def add_scratch(self, f: Function, buffer: SSAValue, offset: Expr, arena: Expr) -> None:
        """Records a buffer in scratch memory; one outside the arena must not be accessed at all."""
        size = self.add_buffer(f, buffer)
        start = f.expr(f.prepare(offset))
        end = f.binary("add", start, size)
        inside = f.binary(
            "and",
            f.icmp("sge", start, f.const(I64, 0)),
            f.icmp("sle", end, f.expr(f.prepare(arena))),
        )
        self._note(f, buffer, f.select(inside, size, f.const(I64, 0)))

    def add_slice(self, f: Function, part: SSAValue, whole: SSAValue, offset: Expr) -> None:
        """Records a part of a buffer, which starts `offset` bytes into it: no access to it is allowed unless all of it
        is inside."""
        size, limit = self.add_buffer(f, part), self._limit(f, whole)
        start = f.expr(f.prepare(offset))
        inside = self._within(f, start, f.binary("add", start, size), limit)
        self._note(f, part, f.select(inside, size, f.const(I64, 0)))

    def _note(self, f: Function, buffer: SSAValue, size: Value) -> None:
        name = self._limits.setdefault(buffer, f"bytes of buffer {len(self._limits)}")
        f.scopes[-1].names[name] = size

    def _limit(self, f: Function, buffer: SSAValue) -> Value:
        return f.find_name(self._limits[base_of(buffer)])[0]

    # -- accesses -----------------------------------------------------------------------------------------------------

    def check(self, access: Access) -> Value:
        """Returns one bit: true if every active lane is in bounds. Otherwise reports the access."""
        f, buffer, size = access.f, access.buffer, element_bytes(access.element)
        pointers = access.addresses()
        start = self._address_of(f, f.find_pointer(buffer).value, access.lanes)
        limit = self._limit(f, buffer)
        limit = f.splat(limit, access.lanes) if access.lanes else limit
        offsets = f.binary("sub", self._integer(f, pointers), start)
        inside = self._within(f, offsets, f.binary("add", offsets, f.const(offsets.type, size)), limit)
        mask = access.active()
        bad = f.binary("and", mask, f.binary("xor", inside, f.const(inside.type, 1)))
        if access.lanes:
            bad = f.call(f"llvm.vector.reduce.or.{bad.type.mangled}", I1, [bad])
        where = ", ".join(map(str, access.op.subscripts))
        return self._report(f, access.op, access.func, f"'{access.op.name}' of {buffer.type} at [{where}]", bad)

    def check_tile(
        self,
        f: Function,
        op: Operation,
        func: str,
        operands: Sequence[tuple[str, SSAValue, Expr, int, Sequence[tuple[Expr, Expr]], Sequence[Expr]]],
    ) -> Value:
        """Checks a micro-kernel as `check` does. Each operand has its name, its buffer, its start (in bytes), the bytes
        accessed at each place, the steps along its names with the numbers of steps, and expressions that must be
        positive for any access."""
        bad = f.const(I1, 0)
        zero = f.const(I64, 0)
        for _, buffer, offset, width, steps, needed in operands:
            low = f.expr(f.prepare(offset))
            high = f.binary("add", low, f.const(I64, width))
            for step, count in steps:
                reach = f.expr(f.prepare(step * (count - 1)))
                low = f.binary("add", low, f.binary_intrinsic("smin", reach, zero))
                high = f.binary("add", high, f.binary_intrinsic("smax", reach, zero))
            outside = f.binary("xor", self._within(f, low, high, self._limit(f, buffer)), f.const(I1, 1))
            for count in needed:
                outside = f.binary("and", outside, f.icmp("sgt", f.expr(f.prepare(count)), zero))
            bad = f.binary("or", bad, outside)
        names = ", ".join(f"{name} {buffer.type}" for name, buffer, *_ in operands)
        return self._report(f, op, func, f"'{op.name}' of {names}", bad)

    def _within(self, f: Function, low: Value, high: Value, limit: Value) -> Value:
        return f.binary("and", f.icmp("sge", low, f.zero(low.type)), f.icmp("sle", high, limit))

    def _integer(self, f: Function, pointer: Value) -> Value:
        return f.emit(
            I64.with_lanes(pointer.type.lanes), f"ptrtoint {pointer.typed} to {Type('i64', pointer.type.lanes)}"
        )

    def _address_of(self, f: Function, pointer: Value, lanes: int) -> Value:
        start = self._integer(f, pointer)
        return f.splat(start, lanes) if lanes else start

    def _report(self, f: Function, op: Operation, func: str, what: str, bad: Value) -> Value:
        """Stores the text for the library, and returns a bit: true if the access may happen."""
        text = f"kernel '{func}': {what} is outside of its buffer".encode()
        name = f"@igniter_site.{self._sites}"
        self._sites += 1
        data = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in text)
        f.module.globals[name] = f'{name} = private unnamed_addr constant [{len(text) + 1} x i8] c"{data}\\00"'
        f.module.globals[VIOLATION] = DEFINITION
        report, done = f.label("outside"), f.label("checked")
        f.branch(bad, report, done)
        f.start(report)
        f.raw(f"store atomic ptr {name}, ptr @{VIOLATION} monotonic, align 8")
        f.jump(done)
        f.start(done)
        return f.binary("xor", bad, f.const(I1, 1))
