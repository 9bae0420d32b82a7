"""Targets by name, and the table of CPUs against what LLVM itself says of each."""

from __future__ import annotations

import re

import pytest

from igniter.backends.cpu import target as targets
from igniter.backends.cpu.codegen import compile_assembly
from igniter.backends.cpu.instructions import instructions
from igniter.backends.cpu.target import Target, UnknownTarget, target_of


def probe(target: Target) -> str:
    """The assembly of a multiply-add of 16 floats and of a rounding."""
    ir = f"""
target triple = "{target.triple}"
define void @probe(ptr %p, ptr %q) #0 {{
  %x = load <16 x float>, ptr %p
  %y = load <16 x float>, ptr %q
  %m = fmul contract <16 x float> %x, %y
  %a = fadd contract <16 x float> %m, %x
  %f = call <16 x float> @llvm.floor.v16f32(<16 x float> %a)
  store <16 x float> %f, ptr %p
  ret void
}}
declare <16 x float> @llvm.floor.v16f32(<16 x float>)
attributes #0 = {{ {target.function_attributes} }}
"""
    return compile_assembly(ir, target)


def test_levels():
    facts = {t: target_of(t) for t in targets.X86_LEVELS}
    assert [t.vector_bytes for t in facts.values()] == [16, 16, 32, 64]
    assert [t.has_fma for t in facts.values()] == [False, False, True, True]
    assert [t.has_rounding for t in facts.values()] == [False, True, True, True]
    assert [t.has_masks for t in facts.values()] == [False, False, True, True]
    assert [t.vector_registers for t in facts.values()] == [16, 16, 16, 32]
    assert [t.lanes(4) for t in facts.values()] == [4, 4, 8, 16]


def test_byte_tiles():
    assert target_of("sapphirerapids").byte_tiles and target_of("x86-64-v4+avx512vnni+amx-int8").byte_tiles
    assert not any(target_of(t).byte_tiles for t in ("icelake-server", "znver4", "x86-64-v4+amx-int8", "aarch64"))


@pytest.mark.parametrize("name", sorted(targets.known_cpus()))
def test_the_table_agrees_with_llvm(name: str, capfd: pytest.CaptureFixture[str]):
    target = target_of(name)
    text = probe(target)
    assert "not a recognized" not in capfd.readouterr().err
    if target.arch == "x86_64":
        widest = 64 if "zmm" in text else 32 if "ymm" in text else 16
        fused = "vfmadd" in text
        assert "floorf" not in text or not target.has_rounding
        # sandybridge and its like have 256 bits for floats alone: Igniter takes 128.
        assert widest == target.vector_bytes or (widest == 32 and target.vector_bytes == 16 and not fused)
    else:
        fused = "fmla" in text
    assert fused == target.has_fma
    if target.arch == "aarch64":
        there = set(instructions(target.identity))
        assert [f for f in ("bf16", "dotprod", "i8mm") if target.has_feature(f) != (f in there)] == []


@pytest.mark.usefixtures("this_machine")
def test_native_is_this_machine():
    target = target_of("native")
    assert target.cpu and target.features.count(",") > 10


def test_products_of_arm_cpus():
    """By name, as LLVM has them."""
    found = [(t.byte_products, t.byte_pairs, t.half_pairs) for t in map(target_of, ARM)]
    assert found == [(False,) * 3, (True, False, False), (True, False, False), (True,) * 3, (True,) * 3]
    assert not target_of("sapphirerapids").byte_pairs and target_of("aarch64+bf16").half_pairs


ARM = ("cortex-a53", "apple-m1", "cortex-a76", "apple-m2", "neoverse-v2")


def test_added_features(capfd: pytest.CaptureFixture[str]):
    arm = target_of("aarch64+dotprod+fp16")
    assert arm.features == "-sve,+dotprod,+fullfp16" and arm.arch == "aarch64"
    wide = target_of("x86-64-v3+avx512f+avx512vl+avx512bw+avx512dq")
    assert wide.vector_bytes == 64
    for name in ("aarch64", "x86-64"):
        known = targets.known_features(name)
        probe(target_of("+".join([name, *sorted(known - {"prefer-256-bit"})])))
    assert "not a recognized feature" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "name,message",
    [
        ("znver9", r"no target 'znver9'; did you mean 'znver\d' or 'znver\d' or 'znver\d'\? Common targets: native"),
        ("", r"no target ''\. Common targets: native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, znver4"),
        ("aarch64+fast", r"target 'aarch64\+fast': there is no feature 'fast'\. Features: aes, bf16"),
        ("x86-64-v3+avx51", "there is no feature 'avx51'; did you mean 'avx512"),
        ("x86-64-v3+sve", r"there is no feature 'sve'.* Features: amx-bf16"),
        ("aarch64+sve", r"there is no feature 'sve'.* Features: aes"),
        ("native+avx2", "target 'native' has the features of this machine"),
        ("pentium", "there is no target 'pentium'.*'igniter machine --list-targets' lists all$"),
    ],
)
def test_refusals(name: str, message: str):
    with pytest.raises(UnknownTarget) as error:
        target_of(name)
    assert re.search(message, error.value.message)
    assert len(error.value.message) < 600


def test_targets_are_values():
    assert target_of("x86-64-v3") == target_of("x86-64-v3") and hash(target_of("aarch64")) == hash(target_of("aarch64"))
