"""From objects to a shared library, with any available linker.

Tried in order: `$IGNITER_LINKER`; `ld.lld`; the binutils `ld` and `TRIPLE-ld`, if it supports the target's machine;
`cc`, if it is for the target; the linker inside the `ziglang` wheel. The output differs between linkers, but each
linker is deterministic: no build id, no paths, no timestamps.

The library is linked against nothing. Symbols from the process must be in `PROCESS_SYMBOLS`; any other undefined symbol
would be an error at load time, so it is an error here.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.runtime.elf import read_elf

COMPILER_SYMBOLS = ("memcpy", "memmove", "memset", "memcmp", "bcmp", "fmod", "fmodf")
"""The functions called by LLVM itself."""

SYSTEM_SYMBOLS = ("sched_yield", "sched_getaffinity", "open", "read", "close", "madvise")
"""The functions of the C library that the run time calls: waiting, counting the CPUs of the process, large pages."""

PROCESS_SYMBOLS = frozenset(COMPILER_SYMBOLS + SYSTEM_SYMBOLS)
"""The functions present in every process with ORT."""

LOADER_SYMBOLS = frozenset(("dlopen", "dlsym", "dlerror"))
"""The functions for finding a GPU's driver, called only by libraries of GPU kernels."""

TIMEOUT = 120


_log = logging.getLogger(__name__)


class LinkError(IgniterError):
    """Raised if there is no linker, or if it fails."""

    code = "IGN0501"


@dataclass(frozen=True)
class Linker:
    """A command for linking shared libraries; `driver` is true for a compiler driver, false for a plain linker."""

    command: tuple[str, ...]
    driver: bool = False

    @property
    def name(self) -> str:
        return " ".join((Path(self.command[0]).name, *self.command[1:]))


_EMULATIONS = {"x86_64": "elf_x86_64", "aarch64": "aarch64linux"}
_MAX_PAGE = {"x86_64": 4096, "aarch64": 65536}


def find_linker(triple: str) -> Linker:
    """Returns the linker for a target; `LinkError` names a package to install if no linker is found."""
    return _find(architecture(triple), triple, os.environ.get("IGNITER_LINKER", ""), os.environ.get("PATH", ""))


def architecture(triple: str) -> str:
    """Returns `x86_64` or `aarch64`; raises `LinkError` for targets other than these on Linux."""
    arch, *rest = triple.split("-")
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(arch, arch)
    if arch not in _EMULATIONS or "linux" not in rest:
        raise LinkError(f"cannot link for {triple}; supported: x86_64 and aarch64 Linux")
    return arch


@lru_cache(maxsize=64)
def _find(arch: str, triple: str, wanted: str, path: str) -> Linker:
    if wanted:
        found = shutil.which(wanted.split()[0], path=path)
        if found is None:
            raise LinkError(f"IGNITER_LINKER is '{wanted}', which is not a program")
        driver = Path(found).name.split("-")[-1] in ("cc", "gcc", "clang", "c++", "g++")
        return Linker((found, *wanted.split()[1:]), driver)
    lld = shutil.which("ld.lld", path=path)
    if lld is not None:
        return Linker((lld,))
    for name in ("ld", f"{arch}-linux-gnu-ld"):
        ld = shutil.which(name, path=path)
        if ld is not None and _EMULATIONS[arch] in _ask(ld, "-V").split():
            return Linker((ld,))
    for name in ("cc", f"{arch}-linux-gnu-gcc"):
        cc = shutil.which(name, path=path)
        if cc is not None and _ask(cc, "-dumpmachine").startswith(f"{arch}-"):
            return Linker((cc,), driver=True)
    zig = _zig()
    if zig is not None:
        return Linker((zig, "ld.lld"))
    raise LinkError(
        f"no linker for {triple} on this machine. Install the one in the ziglang package ({install_command('link')}),"
        " or lld or binutils from the system's packages, or name one in the environment variable IGNITER_LINKER."
    )


def _ask(program: str, question: str) -> str:
    try:
        return subprocess.run(
            [program, question], capture_output=True, text=True, timeout=TIMEOUT, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        # A linker that fails to print its version is unusable.
        return ""


def _zig() -> str | None:
    spec = find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        program = Path(folder) / ("zig.exe" if os.name == "nt" else "zig")
        if program.exists():
            return str(program)
    return None


def link_arguments(linker: Linker, arch: str, exports: Sequence[str], debug_info: bool = False) -> list[str]:
    """Returns the options of a link, without the files; `debug_info` keeps symbols and DWARF."""
    version_script = "exports.map"
    options = [
        "--gc-sections",
        "--build-id=none",
        "--hash-style=gnu",
        "--no-undefined-version",
        f"--version-script={version_script}",
        *(f"--undefined={name}" for name in exports),
    ]
    flags = [
        *("-z", "now"),
        *("-z", "relro"),
        *("-z", "noexecstack"),
        *("-z", f"max-page-size={_MAX_PAGE[arch]}"),
    ]
    strip = [] if debug_info else ["-s"]
    if linker.driver:
        return ["-shared", "-nostdlib", *strip, *(f"-Wl,{o}" for o in options), *(f"-Wl,{f}" for f in flags)]
    return ["-m", _EMULATIONS[arch], "-shared", *strip, *options, *flags]


def link_shared(
    objects: Sequence[bytes],
    triple: str,
    exports: Sequence[str],
    linker: Linker | None = None,
    besides: frozenset[str] = frozenset(),
    debug_info: bool = False,
) -> bytes:
    """Links `objects` to a shared library with exactly the exports `exports` and calls of `PROCESS_SYMBOLS` and
    `besides`.

    `LinkError` has the linker's message, and names symbols not provided by any process.
    """
    linker = linker or find_linker(triple)
    arch = architecture(triple)
    with tempfile.TemporaryDirectory(prefix="igniter-link-") as folder:
        names: list[str] = []
        for i, data in enumerate(objects):
            names.append(f"{i}.o")
            (Path(folder) / names[-1]).write_bytes(data)
        listed = " ".join(f"{name};" for name in exports)
        (Path(folder) / "exports.map").write_text(f"{{ global: {listed} local: *; }};\n")
        command = [*linker.command, *link_arguments(linker, arch, exports, debug_info), "-o", "library.so", *names]
        _log.debug("%s", " ".join(command))
        try:
            result = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LinkError(f"the linker {linker.name} did not start: {error}") from error
        output = Path(folder) / "library.so"
        if result.returncode != 0 or not output.exists():
            said = (result.stderr or result.stdout).strip() or f"no message, exit status {result.returncode}"
            raise LinkError(f"the linker {linker.name} failed: {said}")
        library = output.read_bytes()
    _check(library, arch, exports, PROCESS_SYMBOLS | besides)
    return library


def _check(library: bytes, arch: str, exports: Sequence[str], provided: frozenset[str]) -> None:
    try:
        facts = read_elf(library)
    except ValueError as error:
        raise LinkError(f"the linker wrote {error}") from None
    if facts.machine != arch:
        raise LinkError(f"the linker wrote a library for {facts.machine}, not for {arch}")
    missing = sorted(set(exports) - set(facts.exported))
    if missing:
        raise LinkError(f"the linked library does not export {', '.join(missing)}")
    unknown = sorted(set(facts.undefined) - provided)
    if unknown:
        raise LinkError(f"the kernels call {', '.join(unknown)}, which no library provides: an error of the emitter")
