"""Kernels for RISC-V, each call a process of qemu's user mode.

The process is a static program without a C library: the kernel, and `my_qemu.c`, which reads the buffers from the
standard input, calls the kernel and writes the buffers to the standard output. The `ziglang` package compiles and
links it.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from igniter.backends.cpu.target import Target
from igniter.errors import IgniterError

PROGRAMS = ("qemu-riscv64-static", "qemu-riscv64")
CALLER = Path(__file__).with_name("my_qemu.c")
TIMEOUT = 120


def missing() -> str | None:
    """Returns the reason why kernels cannot run here; None if they can."""
    if _qemu() is None:
        return "no qemu for RISC-V on this machine; install qemu-user-static (apt-get) to run kernels"
    if _zig() is None:
        return "no compiler and linker for RISC-V on this machine; install the package ziglang (pip)"
    return None


def _qemu() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _zig() -> str | None:
    spec = find_spec("ziglang")
    folders = spec.submodule_search_locations if spec is not None else None
    return next((str(Path(f) / "zig") for f in folders or () if (Path(f) / "zig").exists()), None)


class QemuFunc:
    """A kernel for RISC-V. Call it with its buffers, inputs then outputs, and its symbols by name."""

    def __init__(self, name: str, code: bytes, target: Target, symbols: Sequence[str], scratch: Any):
        reason = missing()
        if reason is not None:
            raise IgniterError(f"{name}: {reason}")
        self.name = name
        self.bits = target.vector_bytes * 8
        """The vector registers of the emulated CPU; the code runs on longer ones too."""
        self.symbols = tuple(symbols)
        self._scratch = scratch
        self._program = _linked(name, code)

    def __call__(self, *buffers: np.ndarray, threads: int = 1, **symbols: int) -> None:
        """Runs on C-contiguous arrays, in place. With `threads` > 1 the tasks run one after another."""
        size = self._scratch.evaluate(symbols) if self._scratch is not None else 0
        head = [len(buffers), len(self.symbols), size, int(threads > 1), *(b.nbytes for b in buffers)]
        head += [symbols[s] for s in self.symbols]
        given = struct.pack(f"<{len(head)}q", *head) + b"".join(b.tobytes() for b in buffers)
        data = self._run(given)
        for buffer in buffers:
            buffer[...] = np.frombuffer(data[: buffer.nbytes], buffer.dtype).reshape(buffer.shape)
            data = data[buffer.nbytes :]

    def prepared(
        self, buffers: Sequence[np.ndarray], symbols: Mapping[str, int], threads: int = 1
    ) -> Callable[[], None]:
        """Returns the call as a function without arguments. Its time is that of an emulator."""
        return lambda: self(*buffers, threads=threads, **symbols)

    def _run(self, given: bytes) -> bytes:
        qemu = _qemu()
        assert qemu is not None
        with tempfile.TemporaryDirectory(prefix="riscv64-") as folder:
            path = Path(folder) / "call"
            path.write_bytes(self._program)
            path.chmod(0o700)
            cpu = f"rv64,v=true,vext_spec=v1.0,vlen={self.bits}"
            done = subprocess.run(
                [qemu, "-cpu", cpu, str(path)], input=given, capture_output=True, timeout=TIMEOUT, check=False
            )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise IgniterError(f"{self.name}: the kernel ended in qemu with {done.returncode}: {said}")
        return done.stdout


def _linked(name: str, code: bytes) -> bytes:
    with tempfile.TemporaryDirectory(prefix="riscv64-") as place:
        folder = Path(place)
        (folder / "kernel.o").write_bytes(code)
        (folder / "caller.o").write_bytes(_caller())
        options = ["-m", "elf64lriscv", "-static", "--no-undefined", f"--defsym=kernel={name}", "-o", "call"]
        _zig_run(folder, "ld.lld", *options, "caller.o", "kernel.o")
        return (folder / "call").read_bytes()


@lru_cache(maxsize=1)
def _caller() -> bytes:
    """Returns the object of `my_qemu.c`, for any CPU with the vector extension."""
    with tempfile.TemporaryDirectory(prefix="riscv64-") as place:
        options = ["-target", "riscv64-freestanding", "-O2", "-fno-builtin", "-fno-sanitize=all", "-o", "caller.o"]
        _zig_run(Path(place), "cc", *options, "-c", str(CALLER))
        return (Path(place) / "caller.o").read_bytes()


def _zig_run(folder: Path, *command: str) -> None:
    zig = _zig()
    assert zig is not None
    caches = {"ZIG_GLOBAL_CACHE_DIR": "zig", "ZIG_LOCAL_CACHE_DIR": "zig"}
    done = subprocess.run(
        [zig, *command],
        cwd=folder,
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise IgniterError(f"zig {command[0]} failed: {done.stderr.strip()}")
