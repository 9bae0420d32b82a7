"""The operating systems that libraries are for: LLVM's names of them, and what a library takes from each.

A library takes a few functions from the system: memory and remainders for LLVM's own code, waiting and counting CPUs
for the run time. Systems without one of the latter get it from a unit of the run time (`stands_in`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MEMORY = ("memcpy", "memmove", "memset", "memcmp")
REMAINDERS = ("fmod", "fmodf")
"""The functions called by LLVM itself, besides `MEMORY`."""

POSIX = ("sched_yield", "sched_getaffinity", "open", "read", "close", "madvise", "getauxval")
"""The functions of the C library that the run time calls: waiting, counting the CPUs of the process, large pages, and
the features of CPUs of aarch64."""


@dataclass(frozen=True)
class System:
    """An operating system; `triples` are LLVM's names by architecture."""

    name: str
    format: Literal["elf", "coff", "macho"]
    suffix: str
    """The suffix of libraries."""
    triples: Mapping[str, str]
    provided: Mapping[str, tuple[str, ...]]
    """The functions by library; "" is the process, whatever it has loaded."""
    stands_in: str = ""
    """The unit of the run time with the functions that the system lacks; "" if there is none."""
    cpus: Mapping[str, str] = field(default_factory=dict[str, str])
    """By architecture, the CPU that every machine with the system has at least, if it is more than the base one."""

    @property
    def functions(self) -> frozenset[str]:
        """The names of all functions that it provides."""
        return frozenset(name for names in self.provided.values() for name in names)


LINUX = System(
    "linux",
    "elf",
    ".so",
    {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"},
    {"": (*MEMORY, "bcmp", *REMAINDERS, *POSIX)},
)
ANDROID = System(
    "android",
    "elf",
    ".so",
    # Version 7.0, the oldest one for ONNX Runtime's package for Java.
    {"x86_64": "x86_64-unknown-linux-android24", "aarch64": "aarch64-unknown-linux-android24"},
    # Android's loader looks into the libraries that a library names, not into all those of the process.
    {"libc.so": (*MEMORY, *POSIX), "libm.so": REMAINDERS},
)
WINDOWS = System(
    "windows",
    "coff",
    ".dll",
    {"x86_64": "x86_64-pc-windows-gnu"},
    {
        "msvcrt.dll": (*MEMORY, *REMAINDERS),
        "kernel32.dll": ("SwitchToThread", "GetCurrentProcess", "GetProcessAffinityMask"),
    },
    "windows",
)
_DARWIN = {"/usr/lib/libSystem.B.dylib": (*MEMORY, *REMAINDERS, "bzero", "__bzero", "sched_yield", "sysctlbyname")}
MACOS = System(
    "macos",
    "macho",
    ".dylib",
    {"x86_64": "x86_64-apple-macosx10.15.0", "aarch64": "arm64-apple-macosx11.0.0"},
    _DARWIN,
    "apple",
    {"aarch64": "apple-m1"},
)
IOS = System("ios", "macho", ".dylib", {"aarch64": "arm64-apple-ios13.0.0"}, _DARWIN, "apple")

SYSTEMS = {system.name: system for system in (LINUX, ANDROID, WINDOWS, MACOS, IOS)}


def system_of(triple: str) -> System | None:
    """Returns the system of a triple, of any version; None for others."""
    parts = triple.split("-")
    if "linux" in parts:
        return ANDROID if parts[-1].startswith("android") else LINUX
    if "windows" in parts:
        return WINDOWS
    if "apple" in parts or any(part.startswith("darwin") for part in parts):
        return IOS if any(part.startswith("ios") for part in parts) else MACOS
    return None


def architecture_of(triple: str) -> str:
    """Returns the architecture in a triple, by the name that all systems share."""
    arch = triple.partition("-")[0]
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(arch, arch)
