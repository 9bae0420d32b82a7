"""The inner loop of micro-kernels on x86, in assembly.

A full tile uses all ports of a core. Integer additions use the ports of multiply-adds, too, and LLVM spends three or
four of them on the addresses of each step of depth; if steps are unrolled, it moves the loads of all of them to the
front and spills sums. So four steps are one piece of text here. The sums and one row of panels are in registers,
addresses are a base, a multiple of a stride and a displacement, and a step has one addition:

    prefetcht0 512(b)           vmovups (b), %zmm24               a row of panels, and what is wanted in 8 steps
    prefetcht0 512(b,panel)     vmovups (b,panel), %zmm25
    addq depth, b
    vbroadcastss 4(a), %zmm27   vfmadd231ps %zmm24, %zmm27, %zmm0    vfmadd231ps %zmm25, %zmm27, %zmm1
    vbroadcastss 4(a,row), %zmm28   ..

With AVX-512 the multiply-add itself reads a factor of a single vector (`Shape.reads_factors`):

    vfmadd231ps 4(a){1to16}, %zmm24, %zmm0
    vfmadd231ps 4(a,row){1to16}, %zmm24, %zmm1

With one broadcast for each multiply-add, a Zen 4 reaches three quarters of its rate of them.

LLVM can parse assembly only for the machine that it runs on: elsewhere, and for kinds not listed here, LLVM compiles
the loop (`tile_bodies.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import I64, Type
from igniter.backends.cpu.target import Target

STEPS = 4
"""The steps of depth of an iteration."""

GENERAL_REGISTERS = 14
"""The number of registers free for addresses: all but the stack's, and one for LLVM."""


@dataclass(frozen=True)
class Instructions:
    """The instructions for a vector of panels and a row's factor."""

    load: str
    broadcast: str
    multiply: str
    feature: str = ""
    """The feature required besides FMA."""
    shift: str = ""
    """The shift by 16 bits to the left after the load, if any."""


KINDS = {
    "f32": Instructions("vmovups", "vbroadcastss", "vfmadd231ps"),
    "f64": Instructions("vmovupd", "vbroadcastsd", "vfmadd231pd"),
    "f32f16": Instructions("vcvtph2ps", "vbroadcastss", "vfmadd231ps", "f16c"),
    "f32bf16": Instructions("vpmovzxwd", "vbroadcastss", "vfmadd231ps", "avx2", "vpslld"),
}
"""The kinds of micro-kernels with such a loop."""


@dataclass(frozen=True)
class Shape:
    """The number of sums, and the layout of operands, in bytes."""

    rows: int
    panels: int
    parts: int
    """The vectors of a panel."""
    vector: Type
    """The type of a vector of sums."""
    part_bytes: int
    """The bytes of a panel's vector in memory."""
    line_bytes: int
    """The bytes of a step of depth of a panel."""
    step_bytes: int
    """The bytes between the factors of a row, if they are contiguous; 0 if `a_depth` gives the distance."""
    ahead: int
    """The prefetch distance of panels, in steps."""

    @property
    def columns(self) -> int:
        """The number of vectors of a row of panels."""
        return self.panels * self.parts

    @property
    def reads_factors(self) -> bool:
        """True if a multiply-add reads a row's factor from memory, for all lanes: the factor is for one vector, of
        AVX-512's width."""
        return self.columns == 1 and self.vector.lanes * self.vector.bits == 512


def instructions_for(kind: str, shape: Shape, target: Target) -> Instructions | None:
    """Returns the instructions of a kind's loop; None if the target lacks them or has too few registers."""
    found = KINDS.get(kind)
    if found is None or target.arch != "x86_64" or not target.has_fma or target.vector_bytes < 32:
        return None
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    if found.feature and target.level < 3 and not target.has_feature(found.feature):
        return None
    vectors = shape.rows * shape.columns + shape.columns + 1
    strides = {_odd(n) for n in range(1, shape.rows)}, {_odd(n) for n in range(1, shape.panels)}
    general = 4 + sum(map(len, strides)) + 1 + (not shape.step_bytes)
    fits = vectors <= target.vector_registers and general <= GENERAL_REGISTERS
    return found if fits else None


def _odd(n: int) -> int:
    """Returns a positive number divided by its powers of two, up to 8; addressing modes supply these."""
    for _ in range(3):
        n = n // 2 if n % 2 == 0 else n
    return n


@dataclass
class _Registers:
    """The operands of an `asm`: registers that it writes, with or without an initial value, and others."""

    f: Builder
    written: list[tuple[str, Type, Value | None]] = field(default_factory=list[tuple[str, Type, "Value | None"]])
    read: list[Value] = field(default_factory=list[Value])

    def write(self, constraint: str, of: Type, first: Value | None = None) -> str:
        assert not self.read, "those that are written come first"
        self.written.append((constraint, of, first))
        return f"${len(self.written) - 1}"

    def multiple(self, of: Value, times: int) -> str:
        """Returns a register with a multiple of a value."""
        value = of if times == 1 else self.f.binary("mul nsw", of, self.f.const(I64, times))
        self.read.append(value)
        return f"${len(self.written) + len(self.read) - 1}"

    def run(self, text: Sequence[str]) -> list[Value]:
        """Emits the call; returns the contents of the written registers."""
        f = self.f
        tied = [(str(n), value) for n, (_, _, value) in enumerate(self.written) if value is not None]
        constraints = [c for c, _, _ in self.written] + ["r"] * len(self.read) + [n for n, _ in tied]
        constraints += ["~{memory}", "~{flags}", "~{dirflag}", "~{fpsr}"]
        arguments = ", ".join(v.typed for v in (*self.read, *(v for _, v in tied)))
        result = "{ " + ", ".join(str(t) for _, t, _ in self.written) + " }"
        name = f.name("after")
        body = "\\0A".join(text)
        f.raw(f'{name} = call {result} asm sideeffect "{body}", "{",".join(constraints)}"({arguments})')
        return [f.emit(t, f"extractvalue {result} {name}, {n}") for n, (_, t, _) in enumerate(self.written)]


def assembled_loop(
    f: Builder, of: Instructions, shape: Shape, args: dict[str, Value], count: Value, sums: Sequence[Value]
) -> list[Value]:
    """Returns the sums after `count` iterations of `STEPS` steps of depth, at least one, from the start of both
    operands."""
    spare = f.module.target.vector_registers - len(sums) - shape.columns
    registers = _Registers(f)
    totals = [registers.write("=&v", shape.vector, s) for s in sums]
    columns = [registers.write("=&v", shape.vector) for _ in range(shape.columns)]
    factors = [registers.write("=&v", shape.vector) for _ in range(0 if shape.reads_factors else min(2, spare))]
    a, b, following = (registers.write("=&r", args[n].type, args[n]) for n in ("a", "b", "next"))
    left = registers.write("=&r", I64, count)
    rows = _places(registers, a, args["a_row"], shape.rows)
    panels = _places(registers, b, args["b_panel"], shape.panels)
    depth = registers.multiple(args["b_depth"], 1)
    along = "" if shape.step_bytes else registers.multiple(args["a_depth"], 1)
    text = [".p2align 5", "1:"]
    for k in range(STEPS):
        for p, panel in enumerate(panels):
            text.append(f"prefetcht0 {shape.ahead * shape.line_bytes}{panel}")
            for q in range(shape.parts):
                column = columns[p * shape.parts + q]
                text.append(f"{of.load} {q * shape.part_bytes}{panel}, {column}")
                text += [f"{of.shift} $$16, {column}, {column}"] if of.shift else []
        text += [f"prefetcht1 {k * shape.line_bytes}({following})", f"addq {depth}, {b}"]
        for r, row in enumerate(rows):
            if shape.reads_factors:
                lanes = f"{{1to{shape.vector.lanes}}}"
                text.append(f"{of.multiply} {k * shape.step_bytes}{row}{lanes}, {columns[0]}, {totals[r]}")
                continue
            factor = factors[r % len(factors)]
            text.append(f"{of.broadcast} {k * shape.step_bytes}{row}, {factor}")
            for n, column in enumerate(columns):
                text.append(f"{of.multiply} {column}, {factor}, {totals[r * len(columns) + n]}")
        text += [f"addq {along}, {a}"] if along else []
    text += [f"addq $${STEPS * shape.step_bytes}, {a}"] if shape.step_bytes else []
    text += [f"addq $${STEPS * shape.line_bytes}, {following}", f"decq {left}", "jne 1b"]
    return registers.run(text)[: len(sums)]


def _places(registers: _Registers, base: str, stride: Value, count: int) -> list[str]:
    """Returns the addresses at 0, 1, .. strides from a base, with one register for each odd multiple."""
    made: dict[int, str] = {}
    found = [f"({base})"]
    for n in range(1, count):
        odd = _odd(n)
        if odd not in made:
            made[odd] = registers.multiple(stride, odd)
        found.append(f"({base},{made[odd]},{n // odd})")
    return found
