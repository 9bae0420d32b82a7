"""Loops that show what a core can do at most: multiply-adds a second in registers, bytes read a second.

Generated code, so that nothing but the instructions is measured: independent multiply-adds in as many registers as hide
their latency, and loads of a buffer again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from igniter.backends.cpu.jit import CompiledFunc, compile_ir
from igniter.backends.cpu.target import Target, target_of

Arithmetic = Literal["f32", "bf16", "int8"]

REGISTERS = 24
"""Accumulators: more than the latency of a multiply-add times those issued a cycle, fewer than the registers."""

_SIGNATURE = "(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context)"


# -- multiply-adds ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Instruction:
    """How one kind of multiply-add is written: the accumulator's and the factors' types, and the order of operands."""

    name: str
    total: str
    factor: str
    total_first: bool
    flops_a_bit: float


def _instruction(kind: Arithmetic, target: Target) -> _Instruction | None:
    bits = 8 * target.vector_bytes
    floats, integers = f"<{bits // 32} x float>", f"<{bits // 32} x i32>"
    if kind == "f32":
        return _Instruction(f"llvm.fma.v{bits // 32}f32", floats, floats, False, 2 / 32)
    on = target.features.split(",")
    if kind == "bf16" and bits == 512 and "+avx512bf16" in on:
        return _Instruction("llvm.x86.avx512bf16.dpbf16ps.512", floats, f"<{bits // 16} x bfloat>", True, 2 / 16)
    if kind == "int8" and bits == 512 and "+avx512vnni" in on:
        return _Instruction("llvm.x86.avx512.vpdpbusd.512", integers, f"<{bits // 8} x i8>", True, 2 / 8)
    return None


def peak(kind: Arithmetic = "f32", trips: int = 20000) -> tuple[CompiledFunc, int] | None:
    """A loop of independent multiply-adds in registers, and the operations of one call.

    Its one buffer has a vector's bytes. `None` where the CPU has no instruction for the kind.
    """
    target = target_of("native")
    what = _instruction(kind, target)
    if what is None:
        return None
    one = "float" if "float" in what.total else "i32"
    add = "fadd" if one == "float" else "add"
    order = "{t} {a}, {f} %x, {f} %y" if what.total_first else "{f} %x, {f} %y, {t} {a}"
    # Different starts, or the compiler would make one chain of equal ones.
    starts = [f"splat ({one} {float(k) if one == 'float' else k})" for k in range(REGISTERS)]
    lines = [
        f"declare {what.total} @{what.name}({', '.join(_parameters(what))})",
        f"define void @peak{_SIGNATURE} {{",
        "entry:",
        "  %p = load ptr, ptr %buffers",
        f"  %x = load volatile {what.factor}, ptr %p, align 4",
        f"  %y = load volatile {what.factor}, ptr %p, align 4",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %a{k}.0 = phi {what.total} [ {start}, %entry ], [ %a{k}.1, %loop ]" for k, start in enumerate(starts)),
        *(
            f"  %a{k}.1 = call {what.total} @{what.name}("
            + order.format(t=what.total, a=f"%a{k}.0", f=what.factor)
            + ")"
            for k in range(REGISTERS)
        ),
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {trips}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *_sum([f"%a{k}.1" for k in range(REGISTERS)], what.total, add),
        f"  store {what.total} %sum, ptr %p, align 4",
        "  ret void",
        "}",
    ]
    operations = round(what.flops_a_bit * 8 * target.vector_bytes) * REGISTERS * trips
    return compile_ir("peak", "\n".join(lines)), operations


def _parameters(what: _Instruction) -> list[str]:
    factors = [what.factor, what.factor]
    return [what.total, *factors] if what.total_first else [*factors, what.total]


def _sum(values: Sequence[str], kind: str, add: str) -> Iterator[str]:
    """Lines that leave the sum of `values` in `%sum`."""
    total = values[0]
    for k, value in enumerate(values[1:], 1):
        name = "%sum" if k == len(values) - 1 else f"%s{k}"
        yield f"  {name} = {add} {kind} {total}, {value}"
        total = name


# -- reading ----------------------------------------------------------------------------------------------------------


def reader(size: int) -> CompiledFunc:
    """Loads every byte of a buffer of `size` bytes (a multiple of 512) a number of times, the symbol `repeats`."""
    vector = target_of("native").vector_bytes
    kind = f"<{vector // 8} x i64>"
    unrolled = 512 // vector
    step = [
        line
        for k in range(unrolled)
        for line in (
            f"  %at{k} = getelementptr i8, ptr %row, i64 {k * vector}",
            f"  %v{k} = load {kind}, ptr %at{k}, align 8",
            f"  %a{k}.1 = xor {kind} %a{k}.0, %v{k}",
        )
    ]
    lines = [
        f"define void @read{_SIGNATURE} {{",
        "entry:",
        "  %p = load ptr, ptr %buffers",
        "  %result = getelementptr ptr, ptr %buffers, i64 1",
        "  %q = load ptr, ptr %result",
        "  %repeats = load i64, ptr %symbols",
        "  br label %again",
        "again:",
        "  %r = phi i64 [ 0, %entry ], [ %r.next, %end ]",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %again ], [ %next, %loop ]",
        *(f"  %a{k}.0 = phi {kind} [ zeroinitializer, %again ], [ %a{k}.1, %loop ]" for k in range(unrolled)),
        "  %row = getelementptr i8, ptr %p, i64 %i",
        *step,
        "  %next = add i64 %i, 512",
        f"  %more = icmp ult i64 %next, {size}",
        "  br i1 %more, label %loop, label %end",
        "end:",
        *_sum([f"%a{k}.1" for k in range(unrolled)], kind, "xor"),
        # Every pass leaves something behind, or all but the last could be dropped.
        f"  store volatile {kind} %sum, ptr %q, align 8",
        "  %r.next = add i64 %r, 1",
        "  %not.yet = icmp ult i64 %r.next, %repeats",
        "  br i1 %not.yet, label %again, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return compile_ir("read", "\n".join(lines), symbols=["repeats"])
