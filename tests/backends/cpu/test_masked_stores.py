"""Masked stores of narrowed integers: never a byte more than the mask has lanes.

LLVM 22.1 folds a truncation into the masked store that follows. Where the mask is known to have one lane, that lane is
stored as wide as it was before the truncation (8 bytes for an i32 that was an i64): the X86 backend turns a masked
store of one lane into a scalar store and forgets that it truncates. The emitter keeps the two apart
(`Builder.opaque`). `MINIMAL` is the case to report upstream; once LLVM is mended, its test says so.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from igniter.backends.cpu.codegen import _llvm, compile_assembly
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.target import target_of

from .cpu_kit import check_against_interpreter, compiled, parse_func

MINIMAL = """
define void @f(ptr %p, <8 x i64> %v) {
  %t = trunc <8 x i64> %v to <8 x i32>
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %t, ptr align 4 %p, <8 x i1> bitcast (i8 1 to <8 x i1>))
  ret void
}
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, <8 x i1>)
"""

AVX512 = ("x86-64-v4", "znver5")
OTHERS = ("x86-64", "x86-64-v2", "x86-64-v3", "aarch64", "native")

# The bytes that an instruction without a mask stores. A mask stores what its lanes say.
STORES = {
    "vpextrb": 1, "movb": 1, "pextrb": 1,
    "vpextrw": 2, "movw": 2, "pextrw": 2,
    "vpextrd": 4, "vextractps": 4, "extractps": 4, "vmovd": 4, "movd": 4, "vmovss": 4, "movss": 4, "movl": 4,
    "vmovq": 8, "movq": 8, "vmovlps": 8, "movlps": 8, "vmovsd": 8, "movsd": 8, "vmovhps": 8, "vpextrq": 8, "vmovlpd": 8,
    "vmovups": 16, "vmovaps": 16, "vmovdqu": 16, "vmovdqa": 16, "movups": 16, "movdqu": 16, "movdqa": 16, "movaps": 16,
}  # fmt: skip

BYTES = {"q": 8, "d": 4, "w": 2, "b": 1}

NARROWED = """
loop.func @narrow symbols [] (%x: memref<{lanes}x{wide}>, %y: memref<{count}x{narrow}>) outputs 1 {{
  %a = loop.load %x[v] lane v : vector<{lanes}x{wide}>
{body}
  loop.store %t, %y[v - {first}] lane v if [v - {first}, {last} - v]
}}"""
PAIRS = [(w, n) for n, w in itertools.combinations((8, 16, 32, 64), 2)]


def narrowing(wide: int, narrow: int, lanes: int, first: int, last: int, saturated: bool = False) -> str:
    """Stores lanes `first` to `last` of a vector, narrowed."""
    types = f"vector<{lanes}xi{wide}> to vector<{lanes}xi{narrow}>"
    lines = [f"  %t = arith.trunci %a : {types}"]
    if saturated:
        low, high = -(1 << (narrow - 1)), (1 << (narrow - 1)) - 1
        lines = [
            f"  %l = arith.constant dense<{low}> : vector<{lanes}xi{wide}>",
            f"  %h = arith.constant dense<{high}> : vector<{lanes}xi{wide}>",
            f"  %b = arith.maxsi %a, %l : vector<{lanes}xi{wide}>",
            f"  %c = arith.minsi %b, %h : vector<{lanes}xi{wide}>",
            f"  %t = arith.trunci %c : {types}",
        ]
    return NARROWED.format(
        lanes=lanes, wide=f"i{wide}", narrow=f"i{narrow}", first=first, last=last, count=last - first + 1,
        body="\n".join(lines),
    )  # fmt: skip


def stored_end(assembly: str) -> int:
    """One past the last byte that instructions without a mask store by the pointer of the output."""
    end = 0
    for line in re.sub(r"\s*#.*", "", assembly).splitlines():
        match = re.fullmatch(r"\s+(\w+)\s+.*[^(,\s]+.*,\s*(-?\d*)\(%r(?!ip|sp|bp)\w+\)", line)
        if match is None:
            continue
        size = STORES.get(match[1])
        register = re.search(r"%([xyz])mm", line)
        whole = {"x": 16, "y": 32, "z": 64}[register[1]] if register is not None else 0
        if narrowed := re.fullmatch(r"vpmovu?s?([qdw])([dwb])", match[1]):
            size = whole * BYTES[narrowed[2]] // BYTES[narrowed[1]]
        elif match[1] == "vcvtps2ph":
            size = whole // 2
        assert size is not None, f"an unknown store: {line.strip()}"
        if size == 16 and whole:
            size = whole
        end = max(end, int(match[2] or 0) + size)
    return end


@pytest.mark.parametrize("opt", [2, 3])
@pytest.mark.parametrize("cpu", ["x86-64-v4", "skylake-avx512", "znver5"])
def test_llvm_still_needs_it(cpu: str, opt: int):
    """Fails when LLVM is mended: then `Builder.opaque` and its use in `accesses.py` can go."""
    llvm = _llvm()
    assert llvm.llvm_version_info[:2] == (22, 1), "another LLVM: look whether it still needs `Builder.opaque`"
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, opt=opt)
    assert "vmovlps" in machine.emit_assembly(llvm.parse_assembly(MINIMAL)), "LLVM is mended"


@pytest.mark.parametrize("target", AVX512)
@pytest.mark.parametrize("wide, narrow", PAIRS)
def test_code_for_avx512_stores_no_wider_than_the_mask(wide: int, narrow: int, target: str):
    """Looked up in the code, since few machines can run it."""
    for lanes, saturated in itertools.product((2, 4, 8, 16, 32), (False, True)):
        for first, last in {(0, 0), (0, 1), (0, lanes - 2), (1, 1), (lanes - 1, lanes - 1)}:
            text = narrowing(wide, narrow, lanes, first, last, saturated)
            assembly = compile_assembly(emit_llvm(parse_func(text), target_of(target)), target_of(target))
            assert stored_end(assembly) <= (last - first + 1) * narrow // 8, f"{text}\n{assembly}"


@pytest.mark.slow
@pytest.mark.parametrize("wide, narrow", PAIRS)
def test_stores_on_guard_pages(wide: int, narrow: int):
    """Run, with a page that is not mapped behind the last lane and before the first."""
    for lanes in (4, 8, 16):
        for first, last in ((0, 0), (0, 2), (lanes - 1, lanes - 1)):
            x = (
                np.random.default_rng(lanes)
                .integers(-(1 << (wide - 2)), 1 << (wide - 2), lanes)
                .astype(f"i{wide // 8}")
            )
            buffers = [x, np.zeros(last - first + 1, f"i{narrow // 8}")]
            targets = OTHERS if lanes == 8 and last == 0 else ("native",)
            check_against_interpreter(narrowing(wide, narrow, lanes, first, last), buffers, targets=targets)


@pytest.mark.parametrize("wide, narrow, kind", [("f64", "f32", "f4"), ("f32", "f16", "u2"), ("f32", "bf16", "u2")])
def test_narrowed_floats_on_guard_pages(wide: str, narrow: str, kind: str):
    for lanes, last in itertools.product((4, 8, 16), (0, 1, 2)):
        body = f"  %t = arith.truncf %a : vector<{lanes}x{wide}> to vector<{lanes}x{narrow}>"
        text = NARROWED.format(lanes=lanes, wide=wide, narrow=narrow, first=0, last=last, count=last + 1, body=body)
        x = np.arange(lanes).astype("f8" if wide == "f64" else "f4")
        for target in AVX512:
            assembly = compile_assembly(emit_llvm(parse_func(text), target_of(target)), target_of(target))
            assert stored_end(assembly) <= (last + 1) * np.dtype(kind).itemsize
        for target in ("native", "x86-64-v2"):
            y = np.zeros(last + 1, kind)
            compiled(text, target)(x, y)
            assert narrow != "f32" or y.tolist() == list(range(last + 1))


EXTENDED = """
loop.func @extend symbols [] (%x: memref<{count}x{narrow}>, %y: memref<{lanes}x{wide}>) outputs 1 {{
  %a = loop.load %x[v - {first}] lane v if [v - {first}, {last} - v] : vector<{lanes}x{narrow}>
  %t = arith.{op} %a : vector<{lanes}x{narrow}> to vector<{lanes}x{wide}>
  loop.store %t, %y[v] lane v
}}"""


@pytest.mark.parametrize("op", ["extsi", "extui"])
@pytest.mark.parametrize("wide, narrow", PAIRS)
def test_extended_loads_on_guard_pages(wide: int, narrow: int, op: str):
    for lanes in (4, 16):
        for first, last in ((0, 0), (0, 2), (lanes - 1, lanes - 1)):
            text = EXTENDED.format(
                lanes=lanes, wide=f"i{wide}", narrow=f"i{narrow}", first=first, last=last, count=last - first + 1, op=op
            )
            x = np.arange(last - first + 1).astype(f"i{narrow // 8}") - 1
            check_against_interpreter(text, [x, np.zeros(lanes, f"i{wide // 8}")], targets=("native",))
