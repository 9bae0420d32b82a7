"""Models compiled for Windows, run under Wine by a small C program with `onnxruntime.dll` of the Windows wheel."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from igniter.dialects.onnx.types import BY_CODE, element_of_dtype
from igniter.runtime.link_windows import import_library
from igniter.runtime.linker import find_linker
from igniter.systems import WINDOWS
from tests.platforms.arm64_root import FOLDER

SOURCE = Path(__file__).with_name("windows_runner.c")
PROGRAMS = ("wine64", "wine", "/usr/lib/wine/wine64")
TIMEOUT = 300
_IMPORTS = {
    "msvcrt.dll": (
        *("printf", "fopen", "fread", "fwrite", "fclose", "calloc", "exit", "atoi", "strcmp", "memset", "memcpy"),
        "__getmainargs",
    ),
    "kernel32.dll": ("LoadLibraryW", "GetProcAddress", "GetLastError", "MultiByteToWideChar"),
}


def wine() -> str | None:
    """The program that runs Windows's programs."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def missing() -> str | None:
    """The reason why Windows's programs cannot be run; None if they can."""
    if wine() is None:
        return "no Wine to run Windows's programs: install wine64"
    if find_spec("ziglang") is None:
        return "no C compiler for Windows: pip install ziglang"
    if not (FOLDER / "windows" / "complete").exists():
        return f"no onnxruntime.dll in {FOLDER}: python -m tests.platforms.windows fetches it"
    return None


def make() -> None:
    """Takes `onnxruntime.dll` from the wheel for Windows and builds the program, unless they are there."""
    folder = FOLDER / "windows"
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = f"onnxruntime=={importlib.metadata.version('onnxruntime')}"
    arguments = ["pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps", "--only-binary=:all:"]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    arguments += ["--platform", "win_amd64", "--python-version", python, "-d", str(folder), wanted]
    subprocess.run([sys.executable, "-m", *arguments], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        (folder / "onnxruntime.dll").write_bytes(archive.read("onnxruntime/capi/onnxruntime.dll"))
    _build(folder)
    (folder / "complete").touch()


def _build(folder: Path) -> None:
    """Compiles the program with zig's clang and links it without start-up code: MinGW's takes minutes to build."""
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-c", "-O1", "-std=gnu11"]
    # Functions of the table have no prototypes; large frames would need a probe of the stack.
    flags = ["-ffreestanding", "-fno-sanitize=all", "-mno-stack-arg-probe", "-Wno-deprecated-non-prototype"]
    subprocess.run([*compiler, *flags, "-o", "runner.obj", str(SOURCE)], cwd=folder, check=True)
    (folder / "imports.lib").write_bytes(import_library("x86_64", _IMPORTS))
    linker = find_linker(WINDOWS.triples["x86_64"])
    options = ["/nologo", "/machine:x64", "/nodefaultlib", "/subsystem:console", "/entry:start", "/out:runner.exe"]
    subprocess.run([*linker.command, *options, "runner.obj", "imports.lib"], cwd=folder, check=True)


def run(
    folder: Path, feed: Mapping[str, Any], prefix: Path, threads: int = 1, runs: int = 1, library: bool = True
) -> tuple[list[Any], str]:
    """Returns the outputs of a compiled model's folder, and what the program printed: the version of ONNX Runtime.
    `prefix` is Wine's folder; raises `RuntimeError` with the program's message."""
    program, windows = wine(), FOLDER / "windows"
    assert program is not None
    libraries = sorted(folder.glob("lib*.dll")) if library else []
    with (folder / "inputs").open("wb") as file:
        file.write(_packed(feed))
    arguments = [windows / "onnxruntime.dll", folder / "model.onnx", libraries[0] if libraries else "-", threads, runs]
    arguments += [folder / "inputs", folder / "outputs"]
    environment = {
        **os.environ,
        "WINEPREFIX": str(prefix),
        "WINEDEBUG": "-all",
        "DISPLAY": "",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    }
    done = subprocess.run(
        [program, str(windows / "runner.exe"), *map(_path, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stdout.strip()} {done.stderr.strip()}")
    return _unpacked((folder / "outputs").read_bytes()), done.stdout.strip()


def _path(argument: object) -> str:
    """Wine's drive Z: is the root of the file system."""
    return "Z:" + str(argument.absolute()).replace("/", "\\") if isinstance(argument, Path) else str(argument)


def _packed(feed: Mapping[str, Any]) -> bytes:
    parts = [struct.pack("<q", len(feed))]
    for name, value in feed.items():
        array = np.ascontiguousarray(value)
        text, code = name.encode(), element_of_dtype(array.dtype).code
        parts += [
            struct.pack("<q", len(text)),
            text,
            struct.pack(f"<{2 + array.ndim}q", code, array.ndim, *array.shape),
        ]
        parts += [struct.pack("<q", array.nbytes), array.tobytes()]
    return b"".join(parts)


def _unpacked(data: bytes) -> Sequence[Any]:
    (count,) = struct.unpack_from("<q", data)
    at, found = 8, []
    for _ in range(count):
        code, rank = struct.unpack_from("<qq", data, at)
        dims = struct.unpack_from(f"<{rank}q", data, at + 16)
        (size,) = struct.unpack_from("<q", data, at + 16 + 8 * rank)
        at += 24 + 8 * rank
        found.append(np.frombuffer(data[at : at + size], BY_CODE[code].dtype).reshape(dims))
        at += size
    return found


if __name__ == "__main__":
    if wine() is None:
        sys.exit(missing())
    make()
    print(FOLDER / "windows")
