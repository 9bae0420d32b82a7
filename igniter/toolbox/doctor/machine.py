"""The CPU: its name, and the features of `native`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from igniter.toolbox.doctor import Finding

GROUP = "machine"

GENERIC = ("x86_64", "x86_64_v2", "x86_64_v3", "x86_64_v4", "aarch64")
"""archspec's names of instruction sets: no microarchitectures."""


def cpu() -> Iterator[Finding]:
    """Checks the facts about this CPU, and the target `native`."""
    from igniter.errors import IgniterError
    from igniter.targets import backend_for

    backend = backend_for("native")
    try:
        target = backend.target_of("native")
        model = backend.machine_for(target)
    except IgniterError as error:
        do = "name a target that libraries are to be for: --target=x86-64-v3"
        yield Finding(GROUP, "native", "problem", error.message, do)
        return
    features = _instructions(model)
    yield Finding(GROUP, "llvm", "ok", f"{target.identity['cpu']} ({target.triple})")
    yield _figures(model.microarchitecture)
    level = f"x86-64-v{target.level}" if target.level > 1 else "x86-64" if target.level else model.arch
    says = f"{level}, vectors of {8 * model.vector_bytes} bits in {model.registers} registers"
    yield Finding(GROUP, "native", "ok", f"{says}, {', '.join(features)}" if features else says)
    yield _cores(model.cores)
    if 0 < target.level < 3:
        says = "without AVX2 and FMA, kernels are several times slower than they could be"
        yield Finding(
            GROUP, "vectors", "warning", says, "on a virtual machine, have it pass the features of its host on"
        )


def _instructions(model: Any) -> list[str]:
    named = {"fma": "FMA", "byte_products": "products of bytes", "byte_tiles": "tiles of bytes (AMX)"}
    named["half_tiles"] = "tiles of bf16 (AMX)"
    named["byte_pairs"], named["half_pairs"] = "matrix products of bytes (i8mm)", "matrix products of bf16"
    return [text for name, text in named.items() if getattr(model, name)]


def _figures(micro: str) -> Finding:
    """Returns the microarchitecture whose figures the machine model has: archspec's name for LLVM's name of the CPU,
    since archspec alone goes by the features, and a virtual machine hides some."""
    if micro in GENERIC:
        says = f"archspec does not know this CPU, so its figures are those of {micro}"
        return Finding(GROUP, "figures", "warning", says, "`igniter machine --measure -o FILE`, and --machine=FILE")
    return Finding(GROUP, "figures", "ok", f"of {micro}, in the manuals")


def _cores(cores: int) -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    says = f"{cores} cores" if cores != 1 else "1 core"
    return Finding(GROUP, "cores", "ok", f"{says}, {usable} logical CPUs for this process")
