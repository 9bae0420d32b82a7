"""From objects to a shared library, with any available linker.

Tried in order for Linux and Android: `$IGNITER_LINKER`; `ld.lld`; the binutils `ld` and `TRIPLE-ld`, if it supports the
target's machine; `cc`, if it is for the target; the linker inside the `ziglang` wheel. For Windows: `lld-link`, then
that of the wheel. For macOS and iOS: that of the wheel, then on macOS `cc`. The output differs between linkers, but
each linker is deterministic: no build id, no paths, no timestamps.

A library for Linux is linked against nothing, one for another system against names of the system's libraries
(`igniter/systems.py`); no SDK is needed. Any other undefined symbol would be an error at load time, so it is an error
here.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.runtime import link_apple, link_windows
from igniter.runtime.elf import read_elf
from igniter.systems import ANDROID, LINUX, System, architecture_of, system_of

PROCESS_SYMBOLS = LINUX.functions
"""The functions present in every process with ORT on Linux."""

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
ANDROID_PAGE = 16384
"""The largest page of Android 15."""


def find_linker(triple: str) -> Linker:
    """Returns the linker for a target; `LinkError` names a package to install if no linker is found."""
    system, wanted, path = _system(triple), os.environ.get("IGNITER_LINKER", ""), os.environ.get("PATH", "")
    if wanted:
        return _named(wanted, path)
    finders = {"elf": _find, "coff": _find_for_windows, "macho": _find_for_apple}
    return finders[system.format](architecture_of(triple), triple, path)


def _system(triple: str) -> System:
    """Returns the system of a triple; raises `LinkError` for those without libraries."""
    system = system_of(triple)
    if system is None or architecture_of(triple) not in system.triples:
        raise LinkError(
            f"cannot link for {triple}; supported: x86_64 and aarch64 Linux, Android and macOS, x86_64 Windows, "
            "aarch64 iOS"
        )
    return system


def _named(wanted: str, path: str) -> Linker:
    found = shutil.which(wanted.split()[0], path=path)
    if found is None:
        raise LinkError(f"IGNITER_LINKER is '{wanted}', which is not a program")
    driver = Path(found).name.split("-")[-1] in ("cc", "gcc", "clang", "c++", "g++") or wanted.endswith(" cc")
    return Linker((found, *wanted.split()[1:]), driver)


def _find_for_windows(arch: str, triple: str, path: str) -> Linker:
    del arch
    lld, zig = shutil.which("lld-link", path=path), _zig()
    if lld is not None:
        return Linker((lld,))
    if zig is not None:
        return Linker((zig, "lld-link"))
    raise _no_linker(triple, "lld")


def _find_for_apple(arch: str, triple: str, path: str) -> Linker:
    zig, cc = _zig(), shutil.which("cc", path=path)
    if zig is not None:
        return Linker((zig, "cc"), driver=True)
    if cc is not None and sys.platform == "darwin" and system_of(_ask(cc, "-dumpmachine")) is system_of(triple):
        return Linker((cc,), driver=True)
    del arch
    raise _no_linker(triple, "on macOS Xcode's command line tools")


def _no_linker(triple: str, others: str) -> LinkError:
    return LinkError(
        f"no linker for {triple} on this machine. Install the one in the ziglang package ({install_command('link')}),"
        f" or {others}, or name one in the environment variable IGNITER_LINKER."
    )


@lru_cache(maxsize=64)
def _find(arch: str, triple: str, path: str) -> Linker:
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
    raise _no_linker(triple, "lld or binutils from the system's packages")


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


def link_arguments(
    linker: Linker, arch: str, exports: Sequence[str], debug_info: bool = False, page: int = 0
) -> list[str]:
    """Returns the options of a link for Linux or Android, without the files; `debug_info` keeps symbols and DWARF."""
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
        *("-z", f"max-page-size={max(page, _MAX_PAGE[arch])}"),
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
    name: str = "library",
) -> bytes:
    """Links `objects` to a shared library with exactly the exports `exports` and calls of the system's functions and
    `besides`. `name` is the name in the library itself, on systems where it has one.

    `LinkError` has the linker's message, and names symbols that the system does not provide.
    """
    linker = linker or find_linker(triple)
    arch, system = architecture_of(triple), _system(triple)
    zig = system.format == "macho" and len(linker.command) > 1
    if zig:
        objects = [link_apple.taken(data, system) for data in objects]
    with tempfile.TemporaryDirectory(prefix="igniter-link-") as place:
        folder, names = Path(place), [f"{i}.o" for i in range(len(objects))]
        for file, data in zip(names, objects, strict=True):
            (folder / file).write_bytes(data)
        if system.format == "coff":
            options, output = link_windows.arguments(folder, arch, exports, debug_info), link_windows.OUTPUT
        elif system.format == "macho":
            options = link_apple.arguments(folder, triple, system, exports, name, zig)
            output = link_apple.OUTPUT
        else:
            output = "library.so"
            _write_exports(folder / "exports.map", exports)
            page = ANDROID_PAGE if system is ANDROID else 0
            options = [*link_arguments(linker, arch, exports, debug_info, page), "-o", output]
            names += _android_libraries(linker, arch, folder) if system is ANDROID else []
        library = _run([*linker.command, *options, *names], folder, output, linker)
    library = link_apple.given(library, system, triple) if zig else library
    _check(library, arch, system, exports, besides)
    return library


def _write_exports(path: Path, exports: Sequence[str]) -> None:
    listed = " ".join(f"{name};" for name in exports)
    path.write_text(f"{{ global: {listed} local: *; }};\n")


def _android_libraries(linker: Linker, arch: str, folder: Path) -> list[str]:
    """Makes libraries with the names of the system's functions, to link against; returns the linker's arguments. Their
    content is a text: a linker needs some input."""
    prefix, join = ("-Wl,", ",") if linker.driver else ("", "=")
    for library, functions in ANDROID.provided.items():
        _write_exports(folder / f"{library}.map", functions)
        options = ["-shared", f"{prefix}--soname{join}{library}", f"{prefix}--version-script{join}{library}.map"]
        options += ["-nostdlib"] if linker.driver else []
        options += [f"{prefix}--defsym{join}{name}=0" for name in functions]
        machine = [] if linker.driver else ["-m", _EMULATIONS[arch]]
        _run(
            [*linker.command, *machine, *options, "-o", library, f"{prefix}--format{join}binary", "exports.map"],
            folder,
            library,
            linker,
        )
    return [f"{prefix}--as-needed", *ANDROID.provided]


def _run(command: Sequence[str], folder: Path, output: str, linker: Linker) -> bytes:
    """Runs a linker in a folder and returns its output."""
    _log.debug("%s", " ".join(command))
    # zig keeps what it knows of a target; a home may be read-only.
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": "zig", "ZIG_LOCAL_CACHE_DIR": "zig"}
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(f"the linker {linker.name} did not start: {error}") from error
    path = folder / output
    if result.returncode != 0 or not path.exists():
        said = (result.stderr or result.stdout).strip() or f"no message, exit status {result.returncode}"
        raise LinkError(f"the linker {linker.name} failed: {said}")
    return path.read_bytes()


def _check(library: bytes, arch: str, system: System, exports: Sequence[str], besides: frozenset[str]) -> None:
    try:
        if system.format == "coff":
            machine, exported, wrong = link_windows.facts(library)
        elif system.format == "macho":
            machine, exported, wrong = link_apple.facts(library, system)
        else:
            elf = read_elf(library)
            machine, exported = elf.machine, elf.exported
            wrong = tuple(name for name in elf.undefined if name not in system.functions | besides)
    except ValueError as error:
        raise LinkError(f"the linker wrote {error}") from None
    if machine != arch:
        raise LinkError(f"the linker wrote a library for {machine}, not for {arch}")
    missing = sorted(set(exports) - set(exported))
    if missing:
        raise LinkError(f"the linked library does not export {', '.join(missing)}")
    if wrong:
        raise LinkError(
            f"the kernels call {', '.join(sorted(wrong))}, which no library provides: an error of the emitter"
        )
