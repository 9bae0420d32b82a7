"""`loop.call`, `loop.launch` and `loop.clock` in LLVM IR: calls of one kernel by another.

A kernel is called through its public entry, with two arrays for its buffers and symbols. The arrays are on the stack of
the caller, one pair for all its calls: a kernel reads them before it does anything else. The parameters of launches on
a GPU are passed in the same way (`igniter.backends.launches`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from igniter.backends.cpu.builder import Value, quote
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I32, I64, PTR
from igniter.backends.launches import LAUNCH, MAP_ALIGNMENT, MAP_BYTES, NULL_PARAMETERS, slot_symbol
from igniter.dialects.loop import CallOp, ClockOp, FuncOp, LaunchOp
from igniter.dialects.sym.expr import Expr, product

KERNEL_PARAMETERS = "ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context"


def emit_call(f: Function, op: CallOp) -> None:
    """Stores the arguments of the kernel and calls it."""
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


def emit_launch(f: Function, op: LaunchOp) -> None:
    """Stores the parameters of a GPU kernel and launches it: its buffers, which are addresses on the GPU, its symbols,
    its descriptors, and null for the parameters that Triton adds."""
    if f.launch_arrays is None:
        most = max(_parameters(each) for each in _func_of(op).walk() if isinstance(each, LaunchOp))
        kind = f"[{most} x ptr]"
        f.launch_arrays = f.alloca(kind, 8, "parameters"), f.alloca(kind, 8, "addresses")
    parameters, addresses = f.launch_arrays
    values = [f.find_pointer(buffer).value for buffer in op.addressed]
    values += [f.expr(f.prepare(symbol)) for symbol in op.symbols]
    places = [_store(f, parameters, k, value) for k, value in enumerate(values)]
    for buffer, sizes in zip(op.mapped, op.maps, strict=True):
        places += _store_descriptor(f, parameters, len(places), f.find_pointer(buffer).value, sizes)
    places += [_store(f, parameters, len(places) + k, Value(PTR, "null")) for k in range(NULL_PARAMETERS)]
    for k, place in enumerate(places):
        _store(f, addresses, k, place)
    slot = slot_symbol(op.kernel)
    f.module.globals[slot] = f"{slot} = external hidden constant i64"
    number, grid = f.emit(I64, f"load i64, ptr {slot}, align 8"), f.expr(f.prepare(op.grid))
    f.module.declare(LAUNCH, "hidden void", [PTR, I64, I64, PTR])
    f.raw(f"call void @{LAUNCH}(ptr %context, {number.typed}, {grid.typed}, {addresses.typed})")


def _parameters(op: LaunchOp) -> int:
    """Returns the number of parameters of a kernel."""
    descriptors = sum(1 + 2 * len(sizes) for sizes in op.maps)
    return len(op.addressed) + len(op.symbols) + descriptors + NULL_PARAMETERS


def _store_descriptor(f: Function, parameters: Value, at: int, base: Value, sizes: Sequence[Expr]) -> list[Value]:
    """Stores the parameters of a descriptor, from the place `at`; returns their addresses. The map has its own memory,
    which begins with the tensor's address until the run time encodes it."""
    made = f.alloca(f"[{MAP_BYTES} x i8]", MAP_ALIGNMENT, "map")
    f.raw(f"store {base.typed}, ptr {made.text}, align 8")
    numbers = [f.cast("trunc", f.expr(f.prepare(size)), I32) for size in sizes]
    numbers += [f.expr(f.prepare(product(sizes[k + 1 :]))) for k in range(len(sizes))]
    return [made, *(_store(f, parameters, at + k, number) for k, number in enumerate(numbers, 1))]


def emit_clock(f: Function, op: ClockOp) -> None:
    """Reads the time stamp counter on x86; the virtual counter on Arm, whose cycle counter user code cannot read."""
    intrinsic = "llvm.readcyclecounter" if f.target.arch == "x86_64" else "llvm.readsteadycounter"
    f.values[op.result] = f.call(intrinsic, I64, [])


def _make_arrays(f: Function, op: CallOp) -> tuple[Value, Value]:
    """Allocates arrays for the buffers and the symbols of the largest call of the func."""
    calls = [c for c in _func_of(op).walk() if isinstance(c, CallOp)]
    most_buffers, most_symbols = max(len(c.buffers) for c in calls), max(len(c.symbols) for c in calls)
    buffers = f.alloca(f"[{max(most_buffers, 1)} x ptr]", 8, "buffers")
    return buffers, f.alloca(f"[{max(most_symbols, 1)} x i64]", 8, "symbols")


def _func_of(op: Operation) -> FuncOp:
    """Returns the func around a statement."""
    func = op.parent_op()
    while not isinstance(func, FuncOp):
        assert func is not None
        func = func.parent_op()
    return func


def _store(f: Function, array: Value, index: int, value: Value) -> Value:
    """Stores one element of an array of 8-byte elements; returns its address."""
    slot = f.emit(PTR, f"getelementptr {I64 if value.type == I32 else value.type}, {array.typed}, i64 {index}", "slot")
    f.raw(f"store {value.typed}, ptr {slot.text}, align 8")
    return slot
