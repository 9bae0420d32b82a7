"""The CPU features that a library requires when it is loaded: where the CPU reports each of them.

A feature has LLVM's name. The table has every feature whose instructions LLVM may select for a kernel, or that a
micro-kernel calls by an intrinsic. Code for a target may use all features of the target that are in this table
(`igniter/backends/cpu/instructions.py`); the library tests their bits (`igniter/backends/ort/cpu_choice.py`, and unit
`cpu` of the run time).

On x86-64 the bits are those of CPUID and of XCR0 (XGETBV), by Intel's manual, volume 2A, and AMD's manual, volume 3. On
aarch64 they are Linux's HWCAP and HWCAP2 (arch/arm64/include/uapi/asm/hwcap.h), which the run time builds from
`sysctl` on Apple's systems.

The table lacks AMX: its micro-kernels ask the system for the permission to use tiles, and have other code if it is
refused (`igniter/backends/cpu/tile_registers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WORDS = (
    "1.ecx",
    "7.ebx",
    "7.ecx",
    "7.edx",
    "7.1.eax",
    "7.1.edx",
    "80000001.ecx",
    "avx10",
    "xcr0",
)
"""The words with bits on x86-64, in the order of `igniter_cpu_words` (`cpu.c`). `avx10` has bit N if the version of
AVX10 (leaf 24H) is more than N."""

ARM_WORDS = ("hwcap", "hwcap.high", "hwcap2", "hwcap2.high")
"""The words on aarch64, each half of a 64-bit value."""

SAVED_AVX, SAVED_AVX512, SAVED_APX = 0x6, 0xE6, 1 << 19
"""The bits of XCR0 for registers that the operating system saves: xmm and ymm; the masks and zmm too; r16 to r31."""


@dataclass(frozen=True)
class CpuFeature:
    """The place of a feature: all `bits` of the word with the number `word`, and those of XCR0 in `saved`."""

    word: int
    bits: int
    saved: int = 0


def _x86() -> dict[str, CpuFeature]:
    rows = (
        ("1.ecx", 0, "sse3 0, ssse3 9, sse4.1 19, sse4.2 20, movbe 22, popcnt 23"),
        ("1.ecx", SAVED_AVX, "fma 12, avx 28, f16c 29"),
        ("7.ebx", 0, "bmi 3, bmi2 8"),
        ("7.ebx", SAVED_AVX, "avx2 5"),
        ("7.ebx", SAVED_AVX512, "avx512f 16, avx512dq 17, avx512ifma 21, avx512cd 28, avx512bw 30, avx512vl 31"),
        ("7.ecx", 0, "gfni 8"),
        ("7.ecx", SAVED_AVX512, "avx512vbmi 1, avx512vbmi2 6, avx512vnni 11, avx512bitalg 12, avx512vpopcntdq 14"),
        ("7.edx", SAVED_AVX512, "avx512fp16 23"),
        ("7.1.eax", 0, "raoint 3, cmpccxadd 7"),
        ("7.1.eax", SAVED_AVX, "avxvnni 4, avxifma 23"),
        ("7.1.eax", SAVED_AVX512, "avx512bf16 5"),
        ("7.1.edx", SAVED_AVX, "avxvnniint8 4, avxneconvert 5, avxvnniint16 10"),
        ("7.1.edx", SAVED_APX, "egpr 21, push2pop2 21, ppx 21, ndd 21, ccmp 21, nf 21, cf 21, zu 21"),
        ("80000001.ecx", 0, "lzcnt 5, sse4a 6, tbm 21"),
        ("80000001.ecx", SAVED_AVX, "xop 11, fma4 16"),
        ("avx10", SAVED_AVX512, "avx10.1 0, avx10.2 1"),
    )
    return _table(WORDS, rows)


def _arm() -> dict[str, CpuFeature]:
    rows = (
        ("hwcap", 0, "lse 8, fullfp16 10, rdm 12, complxnum 14, rcpc 15, sha3 17, dotprod 20, sve 22"),
        ("hwcap", 0, "fp16fml 23, rcpc-immo 26"),
        ("hwcap.high", 0, "cmpbr 1, fprcvt 2"),
        ("hwcap2", 0, "sve2 1, i8mm 13, bf16 14"),
        ("hwcap2.high", 0, "cssc 2, mops 11, hbc 12, rcpc3 14, lse128 15, faminmax 18"),
    )
    return _table(ARM_WORDS, rows)


def _table(words: tuple[str, ...], rows: tuple[tuple[str, int, str], ...]) -> dict[str, CpuFeature]:
    found: dict[str, CpuFeature] = {}
    for word, saved, listed in rows:
        for name, bit in (entry.split() for entry in listed.split(", ")):
            found[name] = CpuFeature(words.index(word), 1 << int(bit), saved)
    return found


FEATURES: Mapping[str, Mapping[str, CpuFeature]] = {"x86_64": _x86(), "aarch64": _arm()}
"""The features by architecture and LLVM's name."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNUSED: Mapping[str, frozenset[str]] = {
    # In lines: what every 64-bit CPU has, or psABI level 2; cryptography, checksums and random numbers; tiles, for
    # which kernels ask; the system, security, caches and counters; a preference.
    "x86_64": _names(
        """
        64bit cmov cx8 cx16 fxsr mmx sse sse2 sahf crc32 x87
        adx aes pclmul vaes vpclmulqdq sha sha512 sm3 sm4 kl widekl rdrnd rdseed
        amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-int8 amx-movrs amx-tf32 amx-tile
        avx512vp2intersect cldemote clflushopt clwb clzero enqcmd fsgsbase hreset invpcid jmpabs lwp movdir64b movdiri
        movrs mwaitx pconfig pku prefetchi prfchw ptwrite rdpid rdpru rtm serialize sgx shstk tsxldtrk uintr usermsr
        waitpkg wbnoinvd xsave xsavec xsaveopt xsaves
        prefer-256-bit
        """
    ),
    # What every CPU has; cryptography, checksums and random numbers; JavaScript's conversions, flags, atomics of 128
    # bits, and the streaming mode; the system and security.
    "aarch64": _names(
        """
        fp-armv8 neon
        aes crc crypto rand sha2 sm4
        altnzcv flagm fptoint jsconv lse2 sme
        bti dit mte pauth perfmon sb ssbs
        """
    ),
}
"""The features whose instructions no code of Igniter has, by architecture: LLVM selects them for intrinsics that
nothing here calls."""
