"""Building LLVM IR as text: values, instructions, blocks and the module around them.

Text is several times faster to make than `llvmlite.ir`, and gives the backend exact control (flags, alignment,
metadata).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from igniter.backends.cpu.llvm_types import Type, literal
from igniter.backends.cpu.target import Target

if TYPE_CHECKING:
    from igniter.backends.cpu.sanitizer import Sanitizer

Lines = list["str | Lines"]
"""Instructions in order; a nested list is a place that is filled later (hoisted code)."""


def new_lines() -> Lines:
    """Returns an empty place for instructions."""
    return []


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value or a constant."""

    type: Type
    text: str

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"

    @property
    def is_constant(self) -> bool:
        return not self.text.startswith("%")


@dataclass
class LlvmModule:
    """The content of one LLVM module besides the functions being written."""

    target: Target
    functions: list[str] = field(default_factory=list[str])
    declarations: dict[str, str] = field(default_factory=dict[str, str])
    globals: dict[str, str] = field(default_factory=dict[str, str])
    helpers: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])
    """The kernels in this module; other functions of it call them without a declaration."""
    loops: int = 0
    locations: bool = False
    """Whether a comment names the node of each op, for `debug_info`."""
    sanitizer: Sanitizer | None = None
    """The run-time check of every access."""

    def declare(self, name: str, result: object, args: Iterable[Type]) -> None:
        if name not in self.declarations:
            self.declarations[name] = f"declare {result} @{name}({', '.join(map(str, args))})"

    def declare_kernel(self, name: str) -> None:
        """Declares a kernel, possibly defined in another module of the same library."""
        if name not in self.declarations:
            self.declarations[name] = f"declare hidden void @{quote(name)}({', '.join(['ptr'] * 5)})"

    def add_helper(self, name: str, make: Callable[[], str]) -> None:
        """Adds an internal function with several callers, unless it exists already."""
        if name not in self.helpers:
            self.helpers.add(name)
            self.functions.append(make())

    def loop_metadata(self) -> str:
        """Returns a fresh node that disables LLVM's own vectoriser and unroller: these loops are explicit."""
        self.loops += 1
        return f", !llvm.loop !{self.loops + 1}"

    def text(self) -> str:
        parts = [f'target triple = "{self.target.triple}"', ""]
        parts += [self.globals[k] for k in sorted(self.globals)]
        parts += self.functions
        parts += [self.declarations[k] for k in sorted(self.declarations) if k not in self.defined]
        parts.append(f"attributes #0 = {{ {self.target.function_attributes} }}")
        if self.loops:
            parts.append('!0 = !{!"llvm.loop.vectorize.enable", i1 false}')
            parts.append('!1 = !{!"llvm.loop.unroll.disable"}')
            parts += [f"!{i} = distinct !{{!{i}, !0, !1}}" for i in range(2, self.loops + 2)]
        return "\n".join(parts) + "\n"


class Builder:
    """A writer of one function's instructions; the next instruction is appended to `lines`."""

    def __init__(self, module: LlvmModule):
        self.module = module
        self.target = module.target
        self.lines: Lines = []
        self.block = "entry"
        self._count = 0

    # -- names, blocks ------------------------------------------------------------------------------------------------

    def name(self, hint: str = "v") -> str:
        self._count += 1
        return f"%{hint}{self._count}"

    def label(self, hint: str) -> str:
        return self.name(hint)[1:]

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.raw(f"br label %{label}")

    def branch(self, condition: Value, then: str, otherwise: str, suffix: str = "") -> None:
        self.raw(f"br i1 {condition.text}, label %{then}, label %{otherwise}{suffix}")

    def raw(self, line: str) -> None:
        self.lines.append("  " + line)

    def emit(self, t: Type, instruction: str, hint: str = "v") -> Value:
        name = self.name(hint)
        self.lines.append(f"  {name} = {instruction}")
        return Value(t, name)

    def phi(self, t: Type, incoming: Sequence[tuple[Value, str]]) -> Value:
        return self.emit(t, f"phi {t} " + ", ".join(f"[ {v.text}, %{b} ]" for v, b in incoming))

    # -- constants ----------------------------------------------------------------------------------------------------

    def const(self, t: Type, value: float) -> Value:
        return Value(t, literal(t, value))

    def zero(self, t: Type) -> Value:
        return Value(t, "zeroinitializer" if t.lanes else literal(t, 0))

    def iota(self, t: Type, scale: int = 1) -> Value:
        return Value(t, "<" + ", ".join(f"{t.spelled} {k * scale}" for k in range(t.lanes)) + ">")

    # -- operations ---------------------------------------------------------------------------------------------------

    def binary(self, op: str, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"{op} {a.type} {a.text}, {b.text}")

    def fneg(self, a: Value) -> Value:
        return self.emit(a.type, f"fneg {a.typed}")

    def cast(self, op: str, a: Value, to: Type) -> Value:
        return a if a.type == to else self.emit(to, f"{op} {a.typed} to {to}")

    def bitcast(self, a: Value, to: Type) -> Value:
        return self.cast("bitcast", a, to)

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self.emit(a.type.with_element("i1"), f"icmp {predicate} {a.type} {a.text}, {b.text}")

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self.emit(a.type.with_element("i1"), f"fcmp {predicate} {a.type} {a.text}, {b.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"select {condition.typed}, {a.typed}, {b.typed}")

    def call(self, intrinsic: str, result: Type, args: Sequence[Value], flags: str = "") -> Value:
        """Emits a call of `@<intrinsic>`, and its declaration. Trailing immediate arguments are constants."""
        self.module.declare(intrinsic, result, [a.type for a in args])
        arguments = ", ".join(a.typed for a in args)
        return self.emit(result, f"call {flags + ' ' if flags else ''}{result} @{intrinsic}({arguments})")

    def call_void(self, intrinsic: str, args: Sequence[Value]) -> None:
        self.module.declare(intrinsic, "void", [a.type for a in args])
        self.raw(f"call void @{intrinsic}({', '.join(a.typed for a in args)})")

    def unary_intrinsic(self, name: str, a: Value) -> Value:
        return self.call(f"llvm.{name}.{a.type.mangled}", a.type, [a])

    def binary_intrinsic(self, name: str, a: Value, b: Value) -> Value:
        return self.call(f"llvm.{name}.{a.type.mangled}", a.type, [a, b])

    def muladd(self, a: Value, b: Value, c: Value) -> Value:
        """Emits `a*b + c`, fused if the target has FMA, otherwise as two operations: never a libm call."""
        return self.call(f"llvm.fmuladd.{a.type.mangled}", a.type, [a, b, c])

    def splat(self, a: Value, lanes: int) -> Value:
        t = a.type.with_lanes(lanes)
        if a.is_constant:
            return Value(t, f"splat ({a.typed})")
        one = self.emit(t, f"insertelement {t} poison, {a.typed}, i64 0")
        return self.emit(t, f"shufflevector {one.typed}, {t} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Returns a vector of lanes of `a`, then `b`, by number."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        t = Type(a.type.element, len(lanes))
        return self.emit(t, f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{mask}>")

    def extract(self, a: Value, lane: int) -> Value:
        return self.emit(a.type.scalar, f"extractelement {a.typed}, i64 {lane}")

    def insert(self, a: Value, value: Value, lane: int) -> Value:
        return self.emit(a.type, f"insertelement {a.typed}, {value.typed}, i64 {lane}")

    def opaque(self, value: Value) -> Value:
        """Returns the same vector, with its origin hidden from LLVM; x86 only. Emits no instruction.

        It is an empty inline assembly on whole registers: narrower vectors are widened, wider ones taken in parts.
        """
        t, register = value.type, self.target.vector_bytes * 8
        lanes = max(128 // t.bits, 1 << (t.lanes - 1).bit_length())
        whole = min(lanes, register // t.bits)
        parts: list[Value] = []
        for first in range(0, lanes, whole):
            picks = [k if k < t.lanes else 0 for k in range(first, first + whole)]
            part = value if whole == t.lanes else self.shuffle(value, Value(t, "poison"), picks)
            parts.append(self.emit(part.type, f'call {part.type} asm "", "=v,0"({part.typed})'))
        while len(parts) > 1:
            pairs = [(parts[k], parts[k + 1]) for k in range(0, len(parts), 2)]
            parts = [self.shuffle(a, b, range(2 * a.type.lanes)) for a, b in pairs]
        result = parts[0]
        return result if result.type == t else self.shuffle(result, Value(result.type, "poison"), range(t.lanes))

    def in_order(self, values: Sequence[Value]) -> list[Value]:
        """Returns the same vectors; no load, and no instruction on one of them, is moved from one side of this place to
        the other. It is an empty inline assembly on whole registers; x86 only."""
        types = [str(v.type) for v in values]
        result = types[0] if len(types) == 1 else "{ " + ", ".join(types) + " }"
        ways = ",".join([*("=v" for _ in values), *map(str, range(len(values)))])
        name = self.name("kept")
        self.raw(f'{name} = call {result} asm sideeffect "", "{ways}"({", ".join(v.typed for v in values)})')
        if len(values) == 1:
            return [Value(values[0].type, name)]
        return [self.emit(v.type, f"extractvalue {result} {name}, {n}") for n, v in enumerate(values)]

    def gep(self, element: Type, base: Value, offset: Value, inbounds: bool = False) -> Value:
        t = Type("ptr", offset.type.lanes)
        flags = "inbounds " if inbounds else ""
        return self.emit(t, f"getelementptr {flags}{element}, {base.typed}, {offset.typed}", "p")


def flatten(lines: Lines) -> list[str]:
    """Returns the instructions in program order."""
    result: list[str] = []
    for line in lines:
        if isinstance(line, str):
            result.append(line)
        else:
            result.extend(flatten(line))
    return result


def quote(name: str) -> str:
    """Returns a global's name in LLVM's syntax."""
    return name if name.replace("_", "a").replace(".", "a").isalnum() else f'"{name}"'
