"""The requirements of libraries: the linker, the cache, and ONNX Runtime."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.toolbox.doctor import Finding

ANSWER = 42
PROBE = f"define i32 @igniter_probe() {{\n  ret i32 {ANSWER}\n}}\n"
"""A library for testing the linker."""

ROOM = 1 << 30
"""The free disk space for a compile, in bytes: the weights of a model, and its library."""


def linker() -> Iterator[Finding]:
    """Checks the linker, and loads a library made by it."""
    from igniter.runtime.library import compile_object
    from igniter.runtime.linker import LinkError, find_linker, link_shared
    from igniter.targets import backend_for

    target = backend_for("native").target_of("native")
    try:
        found = find_linker(target.triple)
    except LinkError as error:
        named = os.environ.get("IGNITER_LINKER")
        do = "name another in IGNITER_LINKER, or unset it" if named else install_command("link")
        yield Finding("linker", "linker", "problem", error.message, do)
        return
    chosen = " (IGNITER_LINKER)" if os.environ.get("IGNITER_LINKER") else ""
    yield Finding("linker", "linker", "ok", f"{' '.join(found.command)}{chosen}")
    try:
        data = link_shared([compile_object(PROBE, target)], target.triple, ["igniter_probe"], found)
    except LinkError as error:
        do = f"name another linker in IGNITER_LINKER, or {install_command('link')}"
        yield Finding("linker", "a library", "problem", error.message, do)
        return
    yield _loaded(data)


def _loaded(data: bytes) -> Finding:
    """Loads a library from the folder for temporary files, and calls it."""
    with tempfile.TemporaryDirectory(prefix="igniter-doctor-") as folder:
        path = Path(folder) / "libprobe.so"
        path.write_bytes(data)
        try:
            answer = ctypes.CDLL(str(path)).igniter_probe()
        except OSError as error:
            do = f"if {tempfile.gettempdir()} does not allow execution (noexec), name another folder in TMPDIR"
            return Finding("linker", "a library", "problem", f"it is linked, and not loaded: {error}", do)
    if answer != ANSWER:
        return Finding("linker", "a library", "problem", f"its function returned {answer}, not {ANSWER}")
    return Finding("linker", "a library", "ok", f"linked ({len(data):,} bytes), loaded and called")


def cache() -> Iterator[Finding]:
    """Checks the folder of compiled code: its place, permission, and free space."""
    from igniter.runtime.cache import default_cache

    try:
        found = default_cache()
    except IgniterError as error:
        yield Finding("cache", "cache", "problem", error.message, "correct the environment variable, or unset it")
        return
    if found.limit == 0:
        yield Finding("cache", "cache", "warning", "turned off by IGNITER_CACHE_SIZE: every compile begins anew")
        return
    problem = _unwritable(found.folder)
    if problem:
        do = "make the folder writable, or name another in IGNITER_CACHE_DIR"
        yield Finding("cache", "cache", "warning", f"nothing is kept: {problem}", do)
        return
    entries, size = found.contents()
    says = f"{found.folder}: {entries:,} entries, {_mib(size)} of {_mib(found.limit)}"
    yield Finding("cache", "cache", "ok", says)
    free = shutil.disk_usage(_existing(found.folder)).free
    if free < min(ROOM, found.limit):
        yield Finding("cache", "disk", "warning", f"{_mib(free)} are free where the cache is", "make room")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB" if size < 100 << 20 else f"{size / (1 << 20):,.0f} MiB"


def _existing(folder: Path) -> Path:
    """Returns the folder, or its nearest existing parent."""
    return next(p for p in (folder, *folder.absolute().parents) if p.exists())


def _unwritable(folder: Path) -> str:
    """Returns the reason why the folder is not writable; "" if it is. A missing folder is not created."""
    place = _existing(folder)
    if not place.is_dir():
        return f"{place} is no folder"
    probe = place / f".igniter-doctor.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        probe.write_bytes(b"probe")
    except OSError as error:
        return f"{place}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return ""


def providers() -> Iterator[Finding]:
    """Checks the installed ONNX Runtime, and its execution providers."""
    from igniter.backends.ort.api import API_VERSION, API_VERSION_INPLACE, OLDEST_ORT

    oldest = f"{OLDEST_ORT[API_VERSION]} (for GPUs, and where buffers are reused, {OLDEST_ORT[API_VERSION_INPLACE]})"
    found = installed_providers()
    if isinstance(found, str):
        do = "pip install --force-reinstall onnxruntime"
        yield Finding("onnxruntime", "onnxruntime", "problem", f"it does not load: {found}", do)
        return
    version, *named = found
    yield Finding("onnxruntime", "libraries", "ok", f"run in ONNX Runtime {oldest} and later; here is {version}")
    if "CPUExecutionProvider" not in named:
        yield Finding("onnxruntime", "providers", "problem", f"no CPUExecutionProvider among {', '.join(named)}")
        return
    yield Finding("onnxruntime", "providers", "ok", ", ".join(name.removesuffix("ExecutionProvider") for name in named))


def installed_providers() -> list[str] | str:
    """Returns the version of ONNX Runtime and its providers, or the reason why it does not load."""
    from igniter.toolbox.doctor.trial import ended, in_another_process

    code = "import onnxruntime as o; print(*['PROVIDERS', o.__version__, *o.get_available_providers()])"
    done = in_another_process(["-c", code], seconds=60)
    lines = [line for line in done.stdout.splitlines() if line.startswith("PROVIDERS ")] if done is not None else []
    return lines[-1].split()[1:] if lines else ended(done)
