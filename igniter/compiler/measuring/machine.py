"""This machine, as the key of measured outcomes, and the requirement that the target's code runs on it."""

from __future__ import annotations

import json
from pathlib import Path

from igniter.compiler.compilation import Compilation
from igniter.errors import IgniterError
from igniter.runtime.session import onnxruntime_package
from igniter.targets import backend_for


def machine_key(threads: int) -> str:
    """Returns the name of this machine for outcomes: the CPU with its features and figures, the number of threads, and
    ONNX Runtime's version."""
    backend = backend_for("native")
    native = backend.target_of("native")
    said = [
        _cpu_name(),
        native.key,
        dict(native.identity),
        dict(backend.host_figures()),
        threads,
        str(onnxruntime_package().__version__),
    ]
    return json.dumps(said, sort_keys=True)


def _cpu_name() -> str:
    """Returns the system's name of the CPU; "" if it has none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def require_this_machine(c: Compilation) -> None:
    """Raises `IgniterError` if the code of the compilation does not run on this machine, or not only on it."""
    asked = c.options.target
    if any(part.backend.provider for part in c.parts) or c.options.provider:
        raise elsewhere(f"kernels for '{asked}' run on a GPU, and only CPUs are measured")
    if len(c.targets) > 1:
        raise elsewhere(f"'{asked}' names {len(c.targets)} targets, and the outcome holds for one machine")
    native = backend_for("native").target_of("native")
    (target,) = c.targets
    if target.triple != native.triple or target.level > native.level:
        raise elsewhere(f"'{asked}' is not this machine, which is {native.key} ({native.triple})")


def elsewhere(why: str) -> IgniterError:
    """Returns the error for a target that cannot be measured here."""
    return IgniterError(
        f"measuring times kernels on this machine: {why}. Leave --measure out, or give --target=native on the machine "
        "that the model is for"
    )
