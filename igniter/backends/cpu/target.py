"""The CPUs and systems that Igniter compiles for, by name, and the instructions of each CPU.

native                       the machine that compiles, with exactly its features
x86-64, x86-64-v2, -v3, -v4  the psABI levels
znver4, icelake-server, ...  any 64-bit x86 or Arm CPU that LLVM knows, by LLVM's name
aarch64                      Armv8.0 with NEON
NAME-SYSTEM                  any of these for another system than Linux: x86-64-v3-windows, aarch64-macos,
                             x86-64-v3-macos, aarch64-android, aarch64-ios (igniter/systems.py)
NAME+FEATURE+...             any of these with features added: aarch64+dotprod+i8mm, x86-64-v4-windows+avx512bf16
NAME,NAME,...                several, for a library that chooses when it is loaded: x86-64-v2,x86-64-v3,x86-64-v4
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from igniter.backends.cpu.pretended import pretended_target
from igniter.cpu_features import FEATURES, UNUSED
from igniter.errors import IgniterError, did_you_mean
from igniter.systems import ANDROID, LINUX, SYSTEMS, System, architecture_of, system_of


class UnknownTarget(IgniterError):
    """Raised for an unknown target name."""

    code = "IGN0202"


@dataclass(frozen=True)
class Target:
    """The full description of a CPU: equal targets get equal code."""

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    has_fma: bool
    has_masks: bool
    """True if masked loads and stores of vectors are instructions (AVX and later)."""
    has_rounding: bool
    """True if floor, ceil, trunc and roundeven are instructions (SSE4.1 and later)."""
    has_half: bool
    """True if conversions between f16 and f32 are instructions (F16C and later)."""
    level: int = 0
    """The least x86-64 psABI level (1 to 4) required by the code; 0 on other machines."""

    @property
    def arch(self) -> str:
        """The architecture: `x86_64`, `aarch64`, or that of a backend derived from this one."""
        return architecture_of(self.triple)

    @property
    def system(self) -> System:
        """The operating system; Linux for triples of unknown ones."""
        return system_of(self.triple) or LINUX

    @property
    def function_attributes(self) -> str:
        """The attributes of every function of a module for this target, as LLVM IR."""
        parts = ["nounwind", '"no-builtins"', f'"target-cpu"="{self.cpu}"']
        if self.features:
            parts.append(f'"target-features"="{self.features}"')
        if self.vector_bytes == 64:
            # Several AVX-512 CPUs are tuned for 256 bits; here the schedule, not LLVM, chooses the width.
            parts.append('"min-legal-vector-width"="512" "prefer-vector-width"="512"')
        if self.arch == "x86_64":
            parts.append('"frame-pointer"="none"')
        return " ".join(parts)

    def lanes(self, element_bytes: int) -> int:
        """Returns the number of elements in one vector register."""
        return self.vector_bytes // element_bytes

    @property
    def key(self) -> str:
        """The key of measurements on it (`MachineModel.filed_as`): its name, or for this machine the CPU and a digest
        of its features."""
        return self.name if self.name != "native" else f"{self.cpu}-{self.digest}"

    @property
    def digest(self) -> str:
        """A digest of its features."""
        return hashlib.sha256(repr((self.cpu, self.features)).encode()).hexdigest()[:8]

    @property
    def identity(self) -> dict[str, str]:
        """The entries about it in a library."""
        return {"triple": self.triple, "cpu": self.cpu, "features": self.features}

    @property
    def byte_products(self) -> bool:
        """True if one instruction adds the products of four bytes, at four times the rate of f32."""
        if self.arch == "x86_64":
            return self.has_feature("avx512vnni") and self.vector_bytes == 64
        return self.has_feature("i8mm") or self.has_feature("dotprod")

    @property
    def byte_tiles(self) -> bool:
        """True if one instruction multiplies tiles of bytes (AMX), at eight times the rate of byte products."""
        return self.byte_products and self._has_tiles and self.has_feature("amx-int8")

    @property
    def half_tiles(self) -> bool:
        """True if one instruction multiplies tiles of bf16 (AMX), at sixteen times the rate of f32."""
        return self._has_tiles and self.vector_bytes == 64 and self.has_half and self.has_feature("amx-bf16")

    @property
    def byte_pairs(self) -> bool:
        """True if one instruction multiplies two rows by two columns of bytes (Arm's i8mm), at twice the rate of byte
        products."""
        return self.arch == "aarch64" and self.has_feature("i8mm")

    @property
    def half_pairs(self) -> bool:
        """True if one instruction multiplies two rows by two columns of bf16 (Arm's bf16), at four times the rate of
        f32."""
        return self.arch == "aarch64" and self.has_feature("bf16")

    @property
    def _has_tiles(self) -> bool:
        """True if kernels can ask the system for tiles: the request is a call of Linux."""
        return self.arch == "x86_64" and self.system in (LINUX, ANDROID)

    def has_feature(self, name: str) -> bool:
        """True if products of a kind (`avx512bf16`, `amx-bf16`, `dotprod`, `i8mm`, ...) are instructions."""
        given = self.features.split(",")
        return f"+{name}" in given or (f"-{name}" not in given and self.cpu in _DOT_PRODUCTS.get(name, frozenset()))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


X86_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")

# LLVM's 64-bit x86 CPUs by psABI level. Xeon Phi (AVX-512 without VL, BW, DQ) is omitted.
_X86_CPUS: dict[str, int] = {
    name: level
    for level, names in {
        1: "core2 penryn k8 k8-sse3 opteron opteron-sse3 athlon64 athlon64-sse3 athlon-fx amdfam10 barcelona btver1 "
        "atom bonnell nocona x86-64",
        2: "nehalem corei7 westmere sandybridge corei7-avx ivybridge core-avx-i btver2 silvermont "
        "slm goldmont goldmont-plus tremont x86-64-v2",
        3: "haswell core-avx2 broadwell skylake bdver4 znver1 znver2 znver3 alderlake raptorlake meteorlake arrowlake "
        "arrowlake-s lunarlake gracemont sierraforest grandridge clearwaterforest pantherlake wildcatlake x86-64-v3",
        4: "skylake-avx512 skx cascadelake cooperlake cannonlake icelake-client icelake-server rocketlake tigerlake "
        "sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids novalake znver4 znver5 x86-64-v4",
    }.items()
    for name in names.split()
}

_SAPPHIRE = "sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids"
_ARM_MATRICES = (
    "ampere1 ampere1a apple-a15 apple-a16 apple-a17 apple-a18 apple-a19 apple-m2 apple-m3 apple-m4 apple-m5 c1-nano "
    "c1-premium c1-pro c1-ultra cobalt-100 cortex-a320 cortex-a510 cortex-a520 cortex-a520ae cortex-a710 cortex-a715 "
    "cortex-a720 cortex-a720ae cortex-a725 cortex-x2 cortex-x3 cortex-x4 cortex-x925 fujitsu-monaka gb10 grace "
    "neoverse-512tvb neoverse-n2 neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 neoverse-v3ae olympus"
)
_ARM_DOTS = (
    "apple-a13 apple-a14 apple-m1 cortex-a55 cortex-a65 cortex-a65ae cortex-a75 cortex-a76 cortex-a76ae cortex-a77 "
    "cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c exynos-m4 exynos-m5 neoverse-e1 "
    "neoverse-n1 saphira tsv110"
)

# The dot-product features of CPUs given by name.
_DOT_PRODUCTS = {
    "amx-bf16": _names(_SAPPHIRE),
    "amx-int8": _names(_SAPPHIRE),
    "avx512bf16": _names(f"cooperlake znver4 znver5 {_SAPPHIRE}"),
    "avx512vnni": _names(
        f"cascadelake cooperlake icelake-client icelake-server rocketlake tigerlake znver4 znver5 {_SAPPHIRE}"
    ),
    "bf16": _names(_ARM_MATRICES),
    "dotprod": _names(f"{_ARM_DOTS} {_ARM_MATRICES}"),
    "i8mm": _names(_ARM_MATRICES),
}

# ampere1b, ampere1c and oryon-1 are left out: LLVM 22 aborts on their incomplete scheduling models.
_ARM_CPUS = _names(
    """
    a64fx ampere1 ampere1a apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15
    apple-a16 apple-a17 apple-a18 apple-a19 apple-a7 apple-a8 apple-a9 apple-m1 apple-m2 apple-m3 apple-m4
    apple-m5 c1-nano c1-premium c1-pro c1-ultra carmel cobalt-100 cortex-a320 cortex-a34 cortex-a35 cortex-a510
    cortex-a520 cortex-a520ae cortex-a53 cortex-a55 cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715
    cortex-a72 cortex-a720 cortex-a720ae cortex-a725 cortex-a73 cortex-a75 cortex-a76 cortex-a76ae cortex-a77
    cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c cortex-x2 cortex-x3
    cortex-x4 cortex-x925 exynos-m3 exynos-m4 exynos-m5 falkor fujitsu-monaka gb10 generic grace kryo
    neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2 neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3
    neoverse-v3ae olympus saphira thunderx thunderx2t99 thunderx3t110 tsv110
    """
)

_ARM_FEATURES = _names(
    """
    aes bf16 complxnum crc crypto dotprod fp16fml fullfp16 i8mm jsconv lse rcpc rdm sha2 sha3 sm4 v8.1a v8.2a v8.3a
    v8.4a v8.5a v8.6a
    """
)
_X86_FEATURES = _names(
    """
    amx-bf16 amx-int8 amx-tile avx avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f avx512fp16
    avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni avx512vpopcntdq avxifma avxneconvert avxvnni
    avxvnniint8 bmi bmi2 f16c fma gfni lzcnt movbe popcnt sse3 sse4.1 sse4.2 ssse3 vaes vpclmulqdq
    prefer-256-bit
    """
)


def known_cpus() -> frozenset[str]:
    """Returns every CPU by name, x86-64 levels included."""
    return frozenset(_X86_CPUS) | _ARM_CPUS


def known_features(name: str) -> frozenset[str]:
    """Returns the possible additional features of a CPU."""
    return _X86_FEATURES if name in _X86_CPUS else _ARM_FEATURES


def target_names(start: str = "") -> list[str]:
    """Returns the names of targets with the prefix `start`: CPUs, and after a `+` their possible features."""
    cpu, plus, _ = start.rpartition("+")
    if not plus:
        bases = {"x86_64": X86_LEVELS, "aarch64": ("aarch64",)}
        others = [f"{b}-{s.name}" for s in SYSTEMS.values() if s is not LINUX for a in s.triples for b in bases[a]]
        named = ["native", *X86_LEVELS, "aarch64", *others, *sorted(known_cpus() - {*X86_LEVELS, "generic"})]
        return [name for name in named if name.startswith(start)]
    whole, *given = cpu.split("+")
    base, _ = _parted(whole)
    if base not in known_cpus() | {"aarch64"}:
        return []
    names = (f"{cpu}+{feature}" for feature in sorted(known_features(base) - set(given)))
    return [name for name in names if name.startswith(start)]


@lru_cache(maxsize=64)
def target_of(name: str) -> Target:
    """Returns the target called `name`; `UnknownTarget` lists the known ones."""
    whole, *extra = name.split("+")
    base, system = _parted(whole)
    if base == "native":
        if system is not LINUX:
            raise UnknownTarget(f"target '{name}': 'native' is this machine; name a CPU for another system")
        if extra:
            raise UnknownTarget("target 'native' has the features of this machine; name a CPU to add features to it")
        return _native()
    if base in _X86_CPUS:
        features = _features(name, extra, _X86_FEATURES)
        return _x86(name, base, features, _X86_CPUS[base], _triple(name, system, "x86_64"))
    if base == "aarch64" or base in _ARM_CPUS:
        # Arm's manuals and the -march option of compilers say "fp16"; LLVM's name is fullfp16.
        features = _features(name, ["fullfp16" if e == "fp16" else e for e in extra], _ARM_FEATURES)
        # Vectors are NEON's. With SVE, LLVM uses it for some fixed vectors too, and fails to select their masks.
        features = ",".join(filter(None, ("-sve", features)))
        cpu = system.cpus.get("aarch64", "generic") if base == "aarch64" else base
        return _aarch64(name, cpu, features, _triple(name, system, "aarch64"))
    known = ["native", *X86_LEVELS, "aarch64", *sorted(_X86_CPUS), *sorted(_ARM_CPUS)]
    common = ", ".join(("native", *X86_LEVELS, "aarch64", "znver4", "icelake-server", "neoverse-v2"))
    raise UnknownTarget(
        f"there is no target '{name}'{did_you_mean(base, known) or '.'} Common targets: {common}, with a feature "
        "aarch64+dotprod, and for another system x86-64-v3-windows; 'igniter machine --list-targets' lists all"
    )


def _parted(name: str) -> tuple[str, System]:
    """Parts a name without features in the CPU and the system; `x86_64` and `arm64` are the names of other tools."""
    base, _, system = name.rpartition("-")
    cpu, found = (base, SYSTEMS[system]) if base and system in SYSTEMS else (name, LINUX)
    return {"x86_64": "x86-64", "arm64": "aarch64"}.get(cpu, cpu), found


def _triple(name: str, system: System, arch: str) -> str:
    if arch not in system.triples:
        raise UnknownTarget(
            f"target '{name}': libraries for {system.name} are made for {', '.join(system.triples)} only"
        )
    return system.triples[arch]


def targets_of(names: str) -> list[Target]:
    """Returns the targets of a comma-separated list, without duplicates."""
    found = list(dict.fromkeys(target_of(name.strip()) for name in names.split(",")))
    if len({t.triple for t in found}) > 1:
        raise UnknownTarget(f"targets '{names}' are different machines, and one library is for one of them")
    if len(found) > 1 and found[0].arch != "x86_64":
        raise UnknownTarget(f"targets '{names}': a library chooses between x86-64 CPUs only; name one")
    return found


def _features(name: str, extra: list[str], known: frozenset[str]) -> str:
    for feature in extra:
        if feature not in known:
            raise UnknownTarget(
                f"target '{name}': there is no feature '{feature}'{did_you_mean(feature, known) or '.'} Features: "
                f"{', '.join(sorted(known))}"
            )
    return ",".join(f"+{f}" for f in extra)


def _x86(name: str, cpu: str, features: str, level: int, triple: str) -> Target:
    on = {f[1:] for f in features.split(",") if f.startswith("+")}
    wide = level >= 4 or {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= on
    avx = level >= 3 or "avx2" in on or wide
    return Target(
        name=name,
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=64 if wide else 32 if avx else 16,
        vector_registers=32 if wide else 16,
        has_fma=level >= 3 or "fma" in on,
        has_masks=avx,
        has_rounding=level >= 2 or "sse4.1" in on or avx,
        has_half=level >= 3 or "f16c" in on,
        level=level,
    )


def _aarch64(name: str, cpu: str, features: str, triple: str) -> Target:
    return Target(
        name=name,
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        vector_registers=32,
        has_fma=True,
        has_masks=False,
        has_rounding=True,
        has_half=True,
    )


def _native() -> Target:
    """Returns this machine, or its stand-in from the environment."""
    asked = pretended_target()
    return replace(target_of(asked), name="native") if asked and asked != "native" else host_target()


@lru_cache(maxsize=1)
def host_target() -> Target:
    """Returns the running machine, with exactly its features."""
    import llvmlite.binding as llvm

    cpu: str = llvm.get_host_cpu_name()
    known = cast("dict[str, bool]", llvm.get_host_cpu_features())
    found = dict(known)
    process = llvm.get_process_triple()
    arch, system = architecture_of(process), system_of(process)
    triple = system.triples.get(arch) if system is not None else None
    if triple is None:
        raise UnknownTarget(
            f"this machine is {process}; Igniter makes code for x86-64 and aarch64 on {', '.join(SYSTEMS)}: name a "
            "target"
        )
    if arch == "aarch64":
        features = ",".join(["-sve", *(f"+{f}" for f in sorted(found) if found[f] and not f.startswith(("sv", "sm")))])
        return _aarch64("native", cpu, features, triple)
    level = 1
    if found.get("sse4.2") and found.get("popcnt"):
        level = 2
    if level == 2 and all(found.get(f) for f in ("avx2", "fma", "f16c", "bmi2")):
        level = 3
    if level == 3 and all(found.get(f) for f in ("avx512f", "avx512vl", "avx512bw", "avx512dq")):
        level = 4
    # A feature that the library could not ask for is not used.
    asked = FEATURES["x86_64"].keys() | UNUSED["x86_64"]
    features = ",".join(f"{'+' if found[f] and f in asked else '-'}{f}" for f in sorted(found))
    return _x86("native", cpu, features, level, triple)
