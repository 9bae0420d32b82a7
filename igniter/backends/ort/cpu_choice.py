"""The tables for the choice of a library's CPU variant: made when the library is loaded, before any kernel runs.

A library has its kernels for one CPU or for several. `RegisterCustomOps` (`register.c` of the run time) asks the CPU
for its psABI level (x86-64 to x86-64-v4, including the registers saved by the operating system) and for the features
that the code of each variant may use (`igniter/cpu_features.py`). It refuses the session if no variant fits, with the
names of the missing features; otherwise it records the best one, and the kernels' entry points jump to it. On aarch64
there is one variant, and no level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from igniter.backends.ort.messages import StringPool, c_literal
from igniter.cpu_features import FEATURES
from igniter.systems import LINUX, WINDOWS, architecture_of, system_of

LEVELS = {1: "x86-64", 2: "x86-64-v2", 3: "x86-64-v3", 4: "x86-64-v4"}


@dataclass(frozen=True)
class Variant:
    """The kernels of a library for one CPU: `level` is the least psABI level required, 0 on other machines."""

    name: str
    level: int
    suffix: str = ""
    """The suffix of its kernels' names."""
    features: tuple[str, ...] = ()
    """The features of `igniter.cpu_features` that its code may use."""


# LLVM has no intrinsic for CPUID, and llvmlite can parse inline assembly for the host's machine only, so these
# functions are given in machine code. `weak` keeps LLVM from drawing conclusions from their bodies.
_CPUID = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""`void (i32 leaf, i32 subleaf, ptr out)`: push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; eax, ebx, ecx and
edx to [r8]; pop rbx; ret."""
_XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""`i32 ()`: xor ecx, ecx; xgetbv; ret."""


def _machine_code(code: bytes) -> str:
    # The literal ends in an unreachable zero byte.
    return f"prologue [{len(code) + 1} x i8] {c_literal(code)}"


_CPUID_WINDOWS = bytes.fromhex("53 89c8 89d1 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""The same by the calling convention of Windows, where r8 is `out`: mov eax, ecx; mov ecx, edx."""
_PROBE_STACK = bytes.fromhex(
    "51 50 483d00100000 488d4c2418 7218 4881e900100000 488509 482d00100000 483d00100000 77e8 4829c1 488509 58 59 c3"
)
"""`___chkstk_ms`, which LLVM calls in functions with large frames: it touches every page of rax bytes below the return
address, because Windows extends a stack by one page at a time. push rcx; push rax; cmp rax, 4096; lea rcx, [rsp+24];
jb last; next: sub rcx, 4096; test [rcx], rcx; sub rax, 4096; cmp rax, 4096; ja next; last: sub rcx, rax;
test [rcx], rcx; pop rax; pop rcx; ret."""


def machine_code(triple: str) -> str:
    """Returns the functions in machine code of a library for a triple."""
    if architecture_of(triple) != "x86_64":
        return ""
    windows = system_of(triple) is WINDOWS
    signature = "weak hidden void @igniter_cpuid(i32 %leaf, i32 %subleaf, ptr %out)"
    cpuid = _function(signature, _CPUID_WINDOWS if windows else _CPUID)
    xgetbv = _function("weak hidden i32 @igniter_xgetbv()", _XGETBV, "i32 0")
    return cpuid + xgetbv + (_function("void @___chkstk_ms()", _PROBE_STACK) if windows else "")


def _function(signature: str, code: bytes, result: str = "void") -> str:
    return f"define {signature} noinline optnone nounwind {_machine_code(code)} {{\n  ret {result}\n}}\n"


def emit_choice(variants: Sequence[Variant], kernels: Sequence[str], strings: StringPool, triple: str) -> str:
    """Returns the tables of `register.c`, the kernels' declarations, and their entry points if there are several
    variants.

    The best variant is the one of the highest level within the CPU's; of equals, the one with the most features; then
    the first.
    """
    declared = "".join(
        f'declare hidden void @"{kernel}{variant.suffix}"(ptr, ptr, ptr, ptr, ptr)\n'
        for variant in variants
        for kernel in kernels
    )
    lines = [
        declared + machine_code(triple),
        *_tables(variants, strings, triple),
        "@igniter_variant = external hidden global i32",
        "",
    ]
    if len(variants) > 1:
        for kernel in kernels:
            lines += _entry(kernel, variants)
    return "\n".join(lines)


def _tables(variants: Sequence[Variant], strings: StringPool, triple: str) -> list[str]:
    """Returns the features, the variants and the messages, for the structs of `register.c`."""
    names = sorted({name for variant in variants for name in variant.features})
    table = FEATURES.get(architecture_of(triple), {})
    features: list[str] = []
    for name in names:
        at = table[name]
        features.append(f"{_FEATURE} {{ ptr {strings(name)}, i32 {at.word}, i32 {at.bits}, i32 {at.saved}, i32 0 }}")
    rows: list[str] = []
    if names or any(v.level for v in variants):
        for k in sorted(range(len(variants)), key=lambda k: (-variants[k].level, -len(variants[k].features))):
            bits = sum(1 << names.index(name) for name in variants[k].features)
            rows.append(f"{_VARIANT} {{ i32 {k}, i32 {variants[k].level}, i64 {bits} }}")
    levels = (0, *LEVELS) if rows else ()
    refusals = [
        f"[2 x ptr] [ptr {strings(a)}, ptr {strings(b)}]" for a, b in (_refusal(variants, k, triple) for k in levels)
    ]
    return [
        _array("igniter_features", _FEATURE, features),
        f"@igniter_feature_count = hidden constant i64 {len(features)}",
        _array("igniter_variants", _VARIANT, rows),
        f"@igniter_variant_count = hidden constant i64 {len(rows)}",
        _array("igniter_refusals", "[2 x ptr]", refusals),
    ]


_FEATURE, _VARIANT = "{ ptr, i32, i32, i32, i32 }", "{ i32, i32, i64 }"


def _array(name: str, kind: str, values: Sequence[str]) -> str:
    return f"@{name} = hidden constant [{len(values)} x {kind}] [{', '.join(values)}]"


def _refusal(variants: Sequence[Variant], level: int, triple: str) -> tuple[str, str]:
    """Returns the begin and the end of the message for a CPU of a level that no variant fits; the names of the missing
    features are between them."""
    names = " or ".join(
        v.name if LEVELS.get(v.level, v.name) == v.name else f"{v.name} ({LEVELS[v.level]})" for v in variants
    )
    name = LEVELS.get(level, architecture_of(triple))
    system = system_of(triple)
    target = name if system in (LINUX, None) else f"{name}-{system.name}"
    return (
        f"this library of Igniter is compiled for {names}, and this CPU is {name}",
        f": compile the model with --target={target}",
    )


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
