"""Ports, latencies and caches of microarchitectures: the one table of them, by archspec's names.

llvmlite gives access to LLVM's features of a CPU, but not to its scheduling models. So their figures are copied here,
from the sources named beside each row:

Fog      A. Fog, "Instruction tables" and "The microarchitecture of Intel, AMD and VIA CPUs", agner.org/optimize
uops     A. Abel and J. Reineke, uops.info: measured ports and latencies
Intel    "Intel 64 and IA-32 Architectures Optimization Reference Manual", the tables of caches and of ports
AMD      "Software Optimization Guide for the AMD Zen Microarchitecture" (one a generation)
Arm      "Software Optimization Guide" of the core, and its Technical Reference Manual for caches
Fujitsu  "A64FX Microarchitecture Manual"
Johnson  D. Johnson, "Apple M1 Firestorm", dougallj.github.io/applecpu
LLVM     llvm/lib/Target/X86/X86Sched*.td, AArch64/AArch64Sched*.td

The psABI levels have the row whose scheduling model LLVM gives them (X86.td: SandyBridgeModel for x86-64 and -v2,
HaswellModel for -v3, SkylakeServerModel for -v4).

Ports are for the widest vectors that Igniter uses on the machine: 64 bytes with AVX-512, 32 with AVX2, else 16. Without
FMA a multiply-add is a multiplication followed by an addition. Cache sizes are those of a core of a usual member of the
family; the third level is shared by a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ports:
    """The whole-vector instructions that a core starts in a cycle, and their latencies, in cycles."""

    fma: float
    fma_latency: float
    add_latency: float
    load: float
    store: float


@dataclass(frozen=True)
class Caches:
    """Sizes in bytes: L1 data and L2 per core; L3 shared by `l3_cores` cores (0: none)."""

    l1d: int
    l2: int
    l3: int
    l3_cores: int


@dataclass(frozen=True)
class Reads:
    """The bytes that a core reads in a cycle from each level of its caches."""

    l1: float
    l2: float
    l3: float


@dataclass(frozen=True)
class Core:
    """A row of the table."""

    ports: Ports
    caches: Caches
    reads: Reads


def _core(
    ports: tuple[float, float, float, float, float], kib: tuple[int, int, int, int], reads: tuple[float, float, float]
) -> Core:
    l1d, l2, l3, sharers = kib
    return Core(Ports(*ports), Caches(l1d << 10, l2 << 10, l3 << 10, sharers), Reads(*reads))


# fmt: off
CORES: dict[str, Core] = {
    #                        FMA lat. add lat. load store   L1d  L2     L3     shared   L1   L2  L3
    "core2":          _core((1, 7, 3, 1, 1),               (32, 2048, 0, 1),           (16, 8, 4)),     # Fog
    "nehalem":        _core((1, 7, 3, 1, 1),               (32, 256, 8192, 4),         (16, 10, 5)),    # Fog, Intel
    "sandybridge":    _core((1, 8, 3, 2, 1),               (32, 256, 20480, 8),        (32, 16, 8)),    # LLVM, Intel
    "haswell":        _core((2, 5, 3, 2, 1),               (32, 256, 30720, 12),       (64, 25, 10)),   # LLVM, uops
    "skylake":        _core((2, 4, 4, 2, 1),               (32, 256, 8192, 4),         (64, 29, 10)),   # LLVM, uops
    "skylake_avx512": _core((2, 4, 4, 2, 1),               (32, 1024, 36608, 26),      (128, 52, 6)),   # LLVM, uops
    "icelake":        _core((2, 4, 4, 2, 1),               (48, 1280, 61440, 40),      (128, 48, 6)),   # LLVM, Intel
    "sapphirerapids": _core((2, 4, 3, 2, 1),               (48, 2048, 107520, 56),     (128, 48, 6)),   # LLVM, Intel
    "alderlake":      _core((2, 4, 3, 3, 2),               (48, 1280, 30720, 8),       (96, 48, 10)),   # LLVM, uops
    "bulldozer":      _core((1, 6, 6, 2, 1),               (16, 2048, 8192, 8),        (32, 8, 4)),     # Fog
    "zen":            _core((1, 5, 3, 1, 0.5),             (32, 512, 8192, 4),         (32, 32, 16)),   # AMD, LLVM
    "zen2":           _core((2, 5, 3, 2, 1),               (32, 512, 16384, 4),        (64, 32, 16)),   # AMD, LLVM
    "zen3":           _core((2, 4, 3, 2, 1),               (32, 512, 32768, 8),        (64, 32, 16)),   # AMD, LLVM
    "zen4":           _core((1, 4, 3, 1, 0.5),             (32, 1024, 32768, 8),       (64, 32, 16)),   # AMD, LLVM
    "zen5":           _core((2, 4, 2, 2, 1),               (48, 1024, 32768, 8),       (128, 64, 16)),  # AMD
    "aarch64":        _core((2, 4, 2, 2, 1),               (64, 512, 4096, 4),         (32, 16, 8)),    # as neoverse_n1
    "cortex_a72":     _core((2, 7, 4, 1, 1),               (32, 1024, 0, 1),           (16, 8, 4)),     # Arm, LLVM
    "neoverse_n1":    _core((2, 4, 2, 2, 1),               (64, 1024, 32768, 64),      (32, 16, 8)),    # Arm, LLVM
    "neoverse_v1":    _core((4, 4, 2, 3, 2),               (64, 1024, 32768, 64),      (48, 32, 8)),    # Arm, LLVM
    "neoverse_n2":    _core((2, 4, 2, 3, 2),               (64, 1024, 32768, 64),      (48, 32, 8)),    # Arm, LLVM
    "neoverse_v2":    _core((4, 4, 2, 3, 2),               (64, 1024, 117760, 72),     (48, 32, 8)),    # Arm, LLVM
    "a64fx":          _core((2, 9, 9, 2, 1),               (64, 8192, 0, 12),          (32, 16, 8)),    # Fujitsu
    "thunderx2":      _core((2, 6, 6, 2, 1),               (32, 256, 32768, 32),       (32, 16, 8)),    # LLVM
    "ampere1":        _core((2, 4, 2, 2, 1),               (64, 2048, 65536, 192),     (32, 16, 8)),    # LLVM
    "m1":             _core((4, 4, 3, 3, 2),               (128, 12288, 8192, 8),      (48, 32, 16)),   # Johnson
}
# fmt: on

CORES["x86_64"] = CORES["x86_64_v2"] = CORES["sandybridge"]
CORES["x86_64_v3"] = CORES["haswell"]
CORES["x86_64_v4"] = CORES["skylake_avx512"]

LIKE: dict[str, str] = {
    **dict.fromkeys(("emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids"), "sapphirerapids"),
    **dict.fromkeys(("icelake-server", "icelake-client", "rocketlake", "tigerlake"), "icelake"),
    **dict.fromkeys(("raptorlake", "meteorlake", "lunarlake", "pantherlake", "wildcatlake"), "alderlake"),
    **dict.fromkeys(("cortex-a76", "cortex-a76ae", "cortex-a77", "cortex-a78", "cortex-x1"), "neoverse_n1"),
    **dict.fromkeys(("cortex-a710", "cortex-a715", "cortex-a720", "neoverse-n3", "cobalt-100"), "neoverse_n2"),
    **dict.fromkeys(("cortex-x3", "cortex-x4", "cortex-x925", "grace", "gb10", "neoverse-v3"), "neoverse_v2"),
    **{f"apple-m{k}": f"m{k}" for k in (1, 2, 3, 4)},
    "apple-m5": "m4",
    "cooperlake": "cascadelake",
    "generic": "aarch64",
    "olympus": "olympus",
    "skx": "skylake_avx512",
    "core-avx2": "haswell",
    "core-avx-i": "ivybridge",
    "corei7-avx": "sandybridge",
    "corei7": "nehalem",
    "thunderx2t99": "thunderx2",
}
"""archspec's names for LLVM's names of CPUs, or the most similar CPU, if archspec has neither the name itself nor an
entry of it for clang."""
