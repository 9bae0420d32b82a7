"""The inner loop of micro-kernels on x86, in assembly.

A full tile leaves a core no slack. Additions of integers go to the ports of multiply-adds, too, and LLVM spends three
or four of them on the addresses of each step of depth; where steps are unrolled, it moves the loads of all of them to
the front and spills sums. So four steps are one piece of text here. The sums and one row of panels are in registers,
addresses are a base, a multiple of a stride and a displacement, and a step has one addition:

    prefetcht0 512(b)           vmovups (b), %zmm24               a row of panels, and what is wanted in 8 steps
    prefetcht0 512(b,panel)     vmovups (b,panel), %zmm25
    addq depth, b
    vbroadcastss 4(a), %zmm27   vfmadd231ps %zmm24, %zmm27, %zmm0    vfmadd231ps %zmm25, %zmm27, %zmm1
    vbroadcastss 4(a,row), %zmm28   ..

With AVX-512 a factor that has one vector to multiply is read by the multiply-add itself (`Shape.reads_factors`):

    vfmadd231ps 4(a){1to16}, %zmm24, %zmm0
    vfmadd231ps 4(a,row){1to16}, %zmm24, %zmm1

Where a broadcast goes with each multiply-add, a Zen 4 reaches three quarters of its rate of them.

LLVM has a parser for assembly only for the machine that it runs on: elsewhere, and for kinds that are not here, the
loop is LLVM's (`tile_bodies.py`).
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
"""Those that are free for addresses: all but the stack's, and one for LLVM."""


@dataclass(frozen=True)
class Instructions:
    """What is done with a vector of panels and a row's factor."""

    load: str
    broadcast: str
    multiply: str
    feature: str = ""
    """What a target needs for it besides FMA."""
    shift: str = ""
    """What follows the load in the register, by 16 bits to the left."""


KINDS = {
    "f32": Instructions("vmovups", "vbroadcastss", "vfmadd231ps"),
    "f64": Instructions("vmovupd", "vbroadcastsd", "vfmadd231pd"),
    "f32f16": Instructions("vcvtph2ps", "vbroadcastss", "vfmadd231ps", "f16c"),
    "f32bf16": Instructions("vpmovzxwd", "vbroadcastss", "vfmadd231ps", "avx2", "vpslld"),
}
"""The kinds of micro-kernels that have such a loop."""


@dataclass(frozen=True)
class Shape:
    """How many sums there are, and how operands lie, in bytes."""

    rows: int
    panels: int
    parts: int
    """The vectors of a panel."""
    vector: Type
    """Of sums."""
    part_bytes: int
    """Of a panel's vector in memory."""
    line_bytes: int
    """Of a step of depth of a panel."""
    step_bytes: int
    """Between the factors of a row, where they lie side by side; 0 where `a_depth` says it."""
    ahead: int
    """The steps before which a line of a panel is asked for."""

    @property
    def columns(self) -> int:
        """The vectors of a row of panels."""
        return self.panels * self.parts

    @property
    def reads_factors(self) -> bool:
        """Whether a multiply-add reads a row's factor, for all lanes: the factor is for one vector, and that is as wide
        as AVX-512's."""
        return self.columns == 1 and self.vector.lanes * self.vector.bits == 512


def instructions_for(kind: str, shape: Shape, target: Target) -> Instructions | None:
    """What the loop of a kind is made of; None where the target lacks it or registers are too few."""
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
    """What is left of a positive number without its powers of two that an address multiplies by."""
    for _ in range(3):
        n = n // 2 if n % 2 == 0 else n
    return n


@dataclass
class _Registers:
    """The operands of an `asm`: registers that it writes, which begin with a value or with nothing, and others."""

    f: Builder
    written: list[tuple[str, Type, Value | None]] = field(default_factory=list[tuple[str, Type, "Value | None"]])
    read: list[Value] = field(default_factory=list[Value])

    def write(self, constraint: str, of: Type, first: Value | None = None) -> str:
        assert not self.read, "those that are written come first"
        self.written.append((constraint, of, first))
        return f"${len(self.written) - 1}"

    def multiple(self, of: Value, times: int) -> str:
        """A register with a multiple of a value."""
        value = of if times == 1 else self.f.binary("mul nsw", of, self.f.const(I64, times))
        self.read.append(value)
        return f"${len(self.written) + len(self.read) - 1}"

    def run(self, text: Sequence[str]) -> list[Value]:
        """The call; what is in the registers that it writes afterwards."""
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
    """The sums after `count` iterations of `STEPS` steps of depth, at least one, from the start of both operands."""
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
    """The addresses of what is 0, 1, .. strides from a base, by a register for each odd multiple."""
    made: dict[int, str] = {}
    found = [f"({base})"]
    for n in range(1, count):
        odd = _odd(n)
        if odd not in made:
            made[odd] = registers.multiple(stride, odd)
        found.append(f"({base},{made[odd]},{n // odd})")
    return found
