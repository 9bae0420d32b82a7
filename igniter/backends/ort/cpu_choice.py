"""The choice of a library's CPU variant, as LLVM IR: made when the library is loaded, before any kernel runs.

A library has its kernels for one CPU or for several. `RegisterCustomOps` asks the CPU for its psABI level (x86-64 to
x86-64-v4, including the registers saved by the operating system). It refuses the session if no variant fits; otherwise
it records the best one, and the kernels' entry points jump to it. On aarch64 there is one variant, and no test.

The bits are those of the x86-64 psABI's table of micro-architecture levels, and of CPUID in Intel's manual, volume 2A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from igniter.backends.ort.messages import StringPool, c_literal

LEVELS = {1: "x86-64", 2: "x86-64-v2", 3: "x86-64-v3", 4: "x86-64-v4"}


@dataclass(frozen=True)
class Variant:
    """The kernels of a library for one CPU: `level` is the least psABI level required, 0 on other machines."""

    name: str
    level: int
    suffix: str = ""
    """The suffix of its kernels' names."""


def _mask(*bits: int) -> int:
    return sum(1 << bit for bit in bits)


# The required bits by level, for leaf 1 ecx, leaf 0x80000001 ecx, leaf 7 ebx, XCR0.
_NEEDED = {
    2: (_mask(0, 9, 13, 19, 20, 23), _mask(0), 0, 0),
    3: (_mask(12, 22, 27, 28, 29), _mask(5), _mask(3, 5, 8), 0x6),
    4: (0, 0, _mask(16, 17, 28, 30, 31), 0xE6),
}
_OSXSAVE = 27

# LLVM has no intrinsic for CPUID, and llvmlite can parse inline assembly for the host's machine only, so these
# functions are given in machine code. `weak` keeps LLVM from drawing conclusions from their bodies.
_CPUID = bytes.fromhex("53 89f8 31c9 0fa2 8906 895e04 894e08 89560c 5b c3")
"""`void (i32 leaf, ptr out)`: push rbx; mov eax, edi; xor ecx, ecx; cpuid; eax, ebx, ecx and edx to out; pop; ret."""
_XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""`i32 ()`: xor ecx, ecx; xgetbv; ret."""


def _machine_code(code: bytes) -> str:
    # The literal ends in an unreachable zero byte.
    return f"prologue [{len(code) + 1} x i8] {c_literal(code)}"


_CODE = f"""
define weak hidden void @igniter_cpuid(i32 %leaf, ptr %out) noinline optnone nounwind {_machine_code(_CPUID)} {{
  ret void
}}
define weak hidden i32 @igniter_xgetbv() noinline optnone nounwind {_machine_code(_XGETBV)} {{
  ret i32 0
}}
"""


def emit_level() -> str:
    """Returns `i32 @igniter_cpu_level()`: the psABI level of the CPU that runs it."""
    lines = [_CODE, "define internal i32 @igniter_cpu_level() noinline {", "entry:", "  %out = alloca [4 x i32]"]

    def cpuid(name: str, leaf: int, register: int) -> None:
        lines.append(f"  call void @igniter_cpuid(i32 {leaf}, ptr %out)")
        lines.append(f"  %{name}.at = getelementptr i32, ptr %out, i64 {register}")
        lines.append(f"  %{name} = load i32, ptr %{name}.at")

    cpuid("leaves", 0, 0)
    cpuid("basic", 1, 2)
    cpuid("extended", -0x7FFFFFFF, 2)
    lines += [
        "  %has.7 = icmp uge i32 %leaves, 7",
        f"  %saves.bit = and i32 %basic, {1 << _OSXSAVE}",
        "  %saves = icmp ne i32 %saves.bit, 0",
        "  %asks = and i1 %has.7, %saves",
        "  br i1 %asks, label %more, label %test",
        "more:",
    ]
    cpuid("seven", 7, 1)
    lines += [
        "  %state.low = call i32 @igniter_xgetbv()",
        "  br label %test",
        "test:",
        "  %features = phi i32 [ 0, %entry ], [ %seven, %more ]",
        "  %state = phi i32 [ 0, %entry ], [ %state.low, %more ]",
    ]
    total, so_far = "1", "true"
    for level, needed in _NEEDED.items():
        for k, (register, mask) in enumerate(zip(("basic", "extended", "features", "state"), needed, strict=True)):
            lines += [
                f"  %has.{level}.{k} = and i32 %{register}, {mask}",
                f"  %all.{level}.{k} = icmp eq i32 %has.{level}.{k}, {mask}",
                f"  %ok.{level}.{k} = and i1 {so_far}, %all.{level}.{k}",
            ]
            so_far = f"%ok.{level}.{k}"
        lines += [
            f"  %one.{level} = zext i1 {so_far} to i32",
            f"  %level.{level} = add i32 {total}, %one.{level}",
        ]
        total = f"%level.{level}"
    lines += [f"  ret i32 {total}", "}", ""]
    return "\n".join(lines)


def emit_choice(variants: Sequence[Variant], kernels: Sequence[str], strings: StringPool) -> str:
    """Returns `ptr @igniter_choose_cpu()`, with the result null, or the reason why no variant can run; and the entry
    points of the kernels.

    The best variant is the one of the highest level within the CPU's, the first of equals.
    """
    declared = "".join(
        f'declare hidden void @"{kernel}{variant.suffix}"(ptr, ptr, ptr, ptr, ptr)\n'
        for variant in variants
        for kernel in kernels
    )
    if not any(v.level for v in variants):
        return f"{declared}define internal ptr @igniter_choose_cpu() {{\n  ret ptr null\n}}\n"
    ordered = sorted(range(len(variants)), key=lambda k: -variants[k].level)
    names = " or ".join(
        v.name if LEVELS.get(v.level, v.name) == v.name else f"{v.name} ({LEVELS[v.level]})" for v in variants
    )
    lines = [
        emit_level(),
        "@igniter_variant = internal global i32 0",
        "define internal ptr @igniter_choose_cpu() {",
        "entry:",
        "  %level = call i32 @igniter_cpu_level()",
        "  br label %try.0",
    ]
    for place, k in enumerate(ordered):
        lines += [
            f"try.{place}:",
            f"  %fits.{place} = icmp uge i32 %level, {variants[k].level}",
            f"  br i1 %fits.{place}, label %take.{place}, label %try.{place + 1}",
            f"take.{place}:",
            f"  store atomic i32 {k}, ptr @igniter_variant release, align 4",
            "  ret ptr null",
        ]
    lines.append(f"try.{len(ordered)}:")
    result = ""
    for level, name in LEVELS.items():
        said = strings(
            f"this library of Igniter is compiled for {names}, and this CPU is {name}: compile the model with "
            f"--target={name}"
        )
        if not result:
            result = f"{said}"
            continue
        lines += [
            f"  %is.{level} = icmp uge i32 %level, {level}",
            f"  %said.{level} = select i1 %is.{level}, ptr {said}, ptr {result}",
        ]
        result = f"%said.{level}"
    lines += [f"  ret ptr {result}", "}", ""]
    if len(variants) > 1:
        for kernel in kernels:
            lines += _entry(kernel, variants)
    return declared + "\n".join(lines)


def _entry(kernel: str, variants: Sequence[Variant]) -> list[str]:
    arguments = "ptr %a, ptr %b, ptr %c, ptr %d, ptr %e"
    others = " ".join(f"i32 {k}, label %is.{k}" for k in range(1, len(variants)))
    lines = [
        f'define internal void @"{kernel}"({arguments}) {{',
        "entry:",
        "  %variant = load atomic i32, ptr @igniter_variant monotonic, align 4",
        f"  switch i32 %variant, label %is.0 [ {others} ]",
    ]
    for k, variant in enumerate(variants):
        lines += [
            f"is.{k}:",
            f'  musttail call void @"{kernel}{variant.suffix}"({arguments})',
            "  ret void",
        ]
    return [*lines, "}", ""]
