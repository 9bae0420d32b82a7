"""Loops to measure a core: multiply-adds in registers, bytes read, the clock, functions, hand-overs.

The code is generated, so that nothing but the instructions is measured: independent multiply-adds in enough registers
to hide their latency, or one chain of them to show it; repeated loads of a buffer; a chain of exclusive ors, one cycle
a link on every CPU; and two threads in dialogue through a line of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from igniter.backends.cpu import vmath
from igniter.backends.cpu.builder import Builder, LlvmModule, Value, flatten
from igniter.backends.cpu.jit import CompiledFunc, compile_ir
from igniter.backends.cpu.llvm_types import I64, PTR, Type
from igniter.backends.cpu.target import Target, target_of
from igniter.backends.cpu.team import PAUSES

Arithmetic = Literal["f32", "bf16", "int8"]

LATENCY = 12
"""A number of accumulators above the latency of a multiply-add times those issued a cycle, on any CPU."""

_SIGNATURE = "(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context)"


# -- multiply-adds ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Instruction:
    """The syntax of one kind of multiply-add: the accumulator's and the factors' types, and the order of operands."""

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


def peak(kind: Arithmetic = "f32", trips: int = 20000, chains: int = 0) -> tuple[CompiledFunc, int] | None:
    """Returns a loop of `chains` independent multiply-adds in registers, and the operations of one call.

    Its one buffer has a vector's bytes. Without `chains`, as many as leave registers for the factors. Returns `None` if
    the CPU has no instruction for the kind.
    """
    target = target_of("native")
    chains = chains or max(LATENCY, target.vector_registers - 8)
    what = _instruction(kind, target)
    if what is None:
        return None
    one = "float" if "float" in what.total else "i32"
    add = "fadd" if one == "float" else "add"
    order = "{t} {a}, {f} %x, {f} %y" if what.total_first else "{f} %x, {f} %y, {t} {a}"
    # Different starts keep the compiler from merging equal chains.
    starts = [f"splat ({one} {float(k) if one == 'float' else k})" for k in range(chains)]
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
            for k in range(chains)
        ),
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {trips}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *_sum([f"%a{k}.1" for k in range(chains)], what.total, add),
        f"  store {what.total} %sum, ptr %p, align 4",
        "  ret void",
        "}",
    ]
    operations = round(what.flops_a_bit * 8 * target.vector_bytes) * chains * trips
    return compile_ir("peak", "\n".join(lines)), operations


def _parameters(what: _Instruction) -> list[str]:
    factors = [what.factor, what.factor]
    return [what.total, *factors] if what.total_first else [*factors, what.total]


def _sum(values: Sequence[str], kind: str, add: str) -> Iterator[str]:
    """Yields lines for the sum of `values` in `%sum`."""
    total = values[0]
    if len(values) == 1:
        nothing = f"splat ({kind.partition(' x ')[2][:-1]} {'-0.0' if add == 'fadd' else '0'})"
        yield f"  %sum = {add} {kind} {total}, {nothing}"
    for k, value in enumerate(values[1:], 1):
        name = "%sum" if k == len(values) - 1 else f"%s{k}"
        yield f"  {name} = {add} {kind} {total}, {value}"
        total = name


# -- reading ----------------------------------------------------------------------------------------------------------


def reader(size: int | None = None) -> CompiledFunc:
    """Returns a function to load every byte of a buffer of `size` bytes (a multiple of 512), `repeats` times (a
    symbol). Without `size`, the symbol `size` gives the bytes."""
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
        *(
            ["  %size.at = getelementptr i64, ptr %symbols, i64 1", "  %size = load i64, ptr %size.at"]
            if size is None
            else []
        ),
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
        f"  %more = icmp ult i64 %next, {'%size' if size is None else size}",
        "  br i1 %more, label %loop, label %end",
        "end:",
        *_sum([f"%a{k}.1" for k in range(unrolled)], kind, "xor"),
        # Every pass has an effect; otherwise LLVM could drop all but the last.
        f"  store volatile {kind} %sum, ptr %q, align 8",
        "  %r.next = add i64 %r, 1",
        "  %not.yet = icmp ult i64 %r.next, %repeats",
        "  br i1 %not.yet, label %again, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return compile_ir("read", "\n".join(lines), symbols=["repeats"] if size is not None else ["repeats", "size"])


def flusher() -> CompiledFunc | None:
    """Returns a function that evicts the lines of a buffer of `size` bytes (a symbol) from all caches; `None` if the
    CPU has no such instruction for user programs."""
    if target_of("native").arch != "x86_64":
        return None
    lines = [
        "declare void @llvm.x86.sse2.clflush(ptr)",
        "declare void @llvm.x86.sse2.mfence()",
        f"define void @flush{_SIGNATURE} {{",
        "entry:",
        "  %p = load ptr, ptr %buffers",
        "  %size = load i64, ptr %symbols",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        "  %line = getelementptr i8, ptr %p, i64 %i",
        "  call void @llvm.x86.sse2.clflush(ptr %line)",
        "  %next = add i64 %i, 64",
        "  %more = icmp ult i64 %next, %size",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  call void @llvm.x86.sse2.mfence()",
        "  ret void",
        "}",
    ]
    return compile_ir("flush", "\n".join(lines), symbols=["size"])


# -- chains -----------------------------------------------------------------------------------------------------------

LINKS = 32
"""The links of a chain in one iteration, enough to hide the cost of the loop."""


def clock(trips: int = 100_000) -> tuple[CompiledFunc, int]:
    """Returns a chain of exclusive ors, one cycle each, and their number. Its one buffer has 8 bytes."""
    # The empty assembly hides the chain's result from LLVM.
    links = [
        line
        for k in range(LINKS)
        for line in (
            f"  %x{k} = xor i64 %a{k}, %y",
            f'  %a{k + 1} = call i64 asm "", "=r,0"(i64 %x{k})',
        )
    ]
    text = _chain("clock", "i64", "load volatile i64, ptr %p", "i64 1", links, trips)
    return compile_ir("clock", text), LINKS * trips


def additions(trips: int = 20_000) -> tuple[CompiledFunc, int]:
    """Returns a chain of sums of vectors of f32, and their number. Its one buffer has a vector's bytes."""
    kind = f"<{target_of('native').lanes(4)} x float>"
    links = [f"  %a{k + 1} = fadd {kind} %a{k}, %y" for k in range(LINKS)]
    text = _chain("additions", kind, f"load volatile {kind}, ptr %p, align 4", f"{kind} zeroinitializer", links, trips)
    return compile_ir("additions", text), LINKS * trips


def _chain(name: str, kind: str, factor: str, start: str, links: Sequence[str], trips: int) -> str:
    lines = [
        f"define void @{name}{_SIGNATURE} {{",
        "entry:",
        "  %p = load ptr, ptr %buffers",
        f"  %y = {factor}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        f"  %a0 = phi {kind} [ {start.removeprefix(kind).strip()}, %entry ], [ %a{LINKS}, %loop ]",
        *links,
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {trips}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        f"  store {kind} %a{LINKS}, ptr %p, align 4",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


# -- functions --------------------------------------------------------------------------------------------------------

VECTORS = 64
"""The vectors of one pass over the buffers of a function: they stay in the first-level cache."""


def functions(ops: Sequence[str]) -> CompiledFunc:
    """Returns `@functions(x, y)` with the symbols `which` and `repeats`: the op number `which` on every vector of `x`.

    `ops` are `math` ops of `vmath`, and `arith.divf`. Both buffers have `VECTORS` vectors of f32; an op of two operands
    takes the vector twice.
    """
    target = target_of("native")
    module = LlvmModule(target)
    kind = Type("float", target.lanes(4))
    b = Builder(module)
    x, y = (_loaded(b, "buffers", k, PTR) for k in range(2))
    which, repeats = (_loaded(b, "symbols", k, I64) for k in range(2))
    cases = " ".join(f"i64 {k}, label %op{k}" for k in range(len(ops)))
    b.raw(f"switch {which.typed}, label %done [ {cases} ]")
    for k, op in enumerate(ops):
        b.start(f"op{k}")
        b.jump(f"op{k}.body")
        b.start(f"op{k}.body")
        at = len(b.lines)
        b.lines += [""]
        index = Value(I64, f"%op{k}.i")
        place = b.binary("and", index, b.const(I64, VECTORS - 1))
        source = b.emit(PTR, f"getelementptr {kind}, {x.typed}, {place.typed}")
        result = _applied(b, op, b.emit(kind, f"load {kind}, {source.typed}, align 4"))
        sink = b.emit(PTR, f"getelementptr {kind}, {y.typed}, {place.typed}")
        b.raw(f"store {result.typed}, {sink.typed}, align 4")
        following = b.binary("add", index, b.const(I64, 1))
        b.lines[at] = f"  {index.text} = phi i64 [ 0, %op{k} ], [ {following.text}, %{b.block} ]"
        b.branch(b.icmp("slt", following, repeats), f"op{k}.body", "done")
    b.start("done")
    header = f"define void @functions{_SIGNATURE} #0 {{"
    module.functions.append("\n".join([header, "entry:", *flatten(b.lines), "  ret void", "}", ""]))
    return compile_ir("functions", module.text(), symbols=["which", "repeats"])


def _loaded(b: Builder, array: str, index: int, kind: Type) -> Value:
    place = b.emit(PTR, f"getelementptr {kind}, ptr %{array}, i64 {index}")
    return b.emit(kind, f"load {kind}, {place.typed}")


def _applied(b: Builder, op: str, value: Value) -> Value:
    if op == "arith.divf":
        return b.binary("fdiv", b.const(value.type, 1.0), value)
    operands = [value, value] if op in ("math.powf", "math.atan2") else [value]
    return vmath.call(b, vmath.FUNCTIONS[op], operands)


# -- hand-overs -------------------------------------------------------------------------------------------------------

LOOKS = 1 << 18
"""The number of unsuccessful looks before a side gives up: the other thread is not running."""


def answers() -> CompiledFunc:
    """Returns `@answers(cell)`, symbols `side` and `rounds`: two calls of it, on two threads, count up one number in
    turn.

    `cell` is 64 bytes of zeros; sides are 0 and 1. It holds twice the rounds when both have ended.
    """
    target = target_of("native")
    pause = PAUSES[target.arch]
    name = pause.partition("@")[2].partition("(")[0]
    parameters = "i32" if "(i32" in pause else ""
    lines = [
        f"declare void @{name}({parameters})",
        f"define void @answers{_SIGNATURE} {{",
        "entry:",
        "  %cell = load ptr, ptr %buffers",
        "  %side = load i64, ptr %symbols",
        "  %rounds.at = getelementptr i64, ptr %symbols, i64 1",
        "  %rounds = load i64, ptr %rounds.at",
        "  br label %round",
        "round:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %answer ]",
        "  %twice = shl i64 %i, 1",
        "  %turn = add i64 %twice, %side",
        "  br label %look",
        "look:",
        "  %looks = phi i64 [ 0, %round ], [ %looks.next, %idle ]",
        "  %seen = load atomic i64, ptr %cell acquire, align 8",
        "  %mine = icmp eq i64 %seen, %turn",
        "  br i1 %mine, label %answer, label %wait",
        "wait:",
        "  %looks.next = add i64 %looks, 1",
        f"  %tired = icmp ugt i64 %looks.next, {LOOKS}",
        "  br i1 %tired, label %done, label %idle",
        "idle:",
        f"  {pause}",
        "  br label %look",
        "answer:",
        "  %said = add i64 %turn, 1",
        "  store atomic i64 %said, ptr %cell release, align 8",
        "  %i.next = add i64 %i, 1",
        "  %more = icmp ult i64 %i.next, %rounds",
        "  br i1 %more, label %round, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return compile_ir("answers", "\n".join(lines), symbols=["side", "rounds"])
