"""The building blocks of micro-kernels with calls: their arguments, and calls with some of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from igniter.backends.cpu.builder import Builder, LlvmModule, Value, flatten
from igniter.backends.cpu.llvm_types import I64, PTR, Type

PARAMETERS = ("a", "a_row", "a_depth", "b", "b_panel", "b_depth", "c", "c_row", "rows", "depth", "add", "next")
ROUND_PARAMETERS = (*PARAMETERS, "rounds", "a_round", "b_round")
"""The parameters of micro-kernels with an outer sum."""

NEAREST, SECOND = 3, 2
"""The levels of caches in LLVM's prefetch."""


def parameter_type(name: str) -> Type:
    """Returns the type of a parameter of all micro-kernels."""
    return PTR if name in ("a", "b", "c", "next") else I64


def signature(parameters: Sequence[str]) -> str:
    """Returns the parameters of a definition, or the arguments of a call with its own."""
    return ", ".join(f"{parameter_type(p)} %{p}" for p in parameters)


SIGNATURE = signature(PARAMETERS)


def argument(name: str) -> Value:
    """Returns the function's argument for a parameter."""
    return Value(parameter_type(name), f"%{name}")


def call(
    f: Builder, name: str, other: Mapping[str, Value] | None = None, parameters: Sequence[str] = PARAMETERS
) -> None:
    """Emits a call with the function's own arguments, except those in `other`."""
    given = other or {}
    f.raw(f"call void @{name}({', '.join(given.get(p, argument(p)).typed for p in parameters)})")


def offset(f: Builder, base: Value, by: Value | int) -> Value:
    """Returns the address `by` bytes after `base`."""
    bytes_ = f.const(I64, by) if isinstance(by, int) else by
    return base if bytes_.text == "0" else f.emit(PTR, f"getelementptr i8, ptr {base.text}, {bytes_.typed}", "p")


def function(f: Builder, head: str) -> str:
    """Returns the text of a function from its body."""
    return "\n".join([head, "entry:", *flatten(f.lines), "}", ""])


def prefetch(f: Builder, place: Value, level: int, writes: bool = False) -> None:
    """Prefetches the line at an address into one of the caches above, for reading or writing."""
    f.module.declarations.setdefault("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    f.raw(f"call void @llvm.prefetch.p0(ptr {place.text}, i32 {int(writes)}, i32 {level}, i32 1)")


def stripes(
    module: LlvmModule,
    name: str,
    callee: str,
    height: int,
    parameters: Sequence[str] = PARAMETERS,
    linkage: str = "internal",
) -> str:
    """Returns `@name`, which calls `@callee` for all rows, `height` rows at a time."""
    f = Builder(module)
    rows, none = argument("rows"), f.const(I64, 0)
    f.branch(f.icmp("sgt", rows, none), "stripe", "done")
    f.start("stripe")
    following = Value(I64, "%following")
    row = f.phi(I64, [(none, "entry"), (following, "stripe")])
    left = f.binary("sub", rows, row)
    count = f.call("llvm.smin.i64", I64, [left, f.const(I64, height)])
    moved = {p: offset(f, argument(p), f.binary("mul", row, argument(f"{p}_row"))) for p in ("a", "c")}
    call(f, callee, {**moved, "rows": count}, parameters)
    f.raw(f"{following.text} = add i64 {row.text}, {height}")
    f.branch(f.icmp("slt", following, rows), "stripe", "done")
    f.start("done")
    f.raw("ret void")
    return function(f, f"define {linkage} void @{name}({signature(parameters)}) noinline #0 {{")
