"""`loop.call` and `loop.clock` in LLVM IR: how one kernel runs another.

A kernel is called through its public entry, which takes its buffers and symbols as two arrays. The arrays are on the
stack of the caller, one pair for all its calls: a kernel reads them before it does anything else.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import Value, quote
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I64, PTR
from igniter.dialects.loop import CallOp, ClockOp, FuncOp

KERNEL_PARAMETERS = "ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context"


def emit_call(f: Function, op: CallOp) -> None:
    """Stores what the kernel is to work on and calls it."""
    if f.call_arrays is None:
        f.call_arrays = _make_arrays(f, op)
    buffers, symbols = f.call_arrays
    for k, buffer in enumerate(op.buffers):
        _store(f, buffers, k, f.find_pointer(buffer).value)
    for k, symbol in enumerate(op.symbols):
        _store(f, symbols, k, f.expr(f.prepare(symbol)))
    scratch = Value(PTR, "null") if op.scratch is None else f.find_pointer(op.scratch).value
    f.module.declare_kernel(op.callee)
    arguments = ", ".join(v.typed for v in (buffers, symbols, scratch))
    f.raw(f"call void @{quote(op.callee)}({arguments}, ptr %parallel_for, ptr %context)")


def emit_clock(f: Function, op: ClockOp) -> None:
    """The time stamp counter on x86; the virtual counter on Arm, whose cycle counter user code cannot read."""
    intrinsic = "llvm.readcyclecounter" if f.target.arch == "x86_64" else "llvm.readsteadycounter"
    f.values[op.result] = f.call(intrinsic, I64, [])


def _make_arrays(f: Function, op: CallOp) -> tuple[Value, Value]:
    """Arrays for the buffers and the symbols of the largest call of the func."""
    func = op.parent_op()
    while not isinstance(func, FuncOp):
        assert func is not None
        func = func.parent_op()
    calls = [c for c in func.walk() if isinstance(c, CallOp)]
    most_buffers, most_symbols = max(len(c.buffers) for c in calls), max(len(c.symbols) for c in calls)
    buffers = f.alloca(f"[{max(most_buffers, 1)} x ptr]", 8, "buffers")
    return buffers, f.alloca(f"[{max(most_symbols, 1)} x i64]", 8, "symbols")


def _store(f: Function, array: Value, index: int, value: Value) -> None:
    slot = f.emit(PTR, f"getelementptr {value.type}, {array.typed}, i64 {index}", "slot")
    f.raw(f"store {value.typed}, ptr {slot.text}, align 8")
