"""The machine model of a target, from archspec, LLVM, the manuals and Linux.

archspec gives a CPU's microarchitecture and its ancestors; the nearest of these with a row in `microarchitectures.py`
gives ports, latencies and typical caches. LLVM's features of the target give its instructions (`target.py`). For this
machine, Linux gives the sizes of the caches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.analysis.machine import INSTRUCTIONS, TYPICAL, Given, MachineError, MachineModel, Source, override
from igniter.backends.cpu.microarchitectures import CORES, LIKE, Core
from igniter.backends.cpu.pretended import pretended_figures
from igniter.backends.cpu.target import X86_LEVELS, Target, host_target, target_of

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture

SYSFS = Path("/sys/devices/system/cpu")


def machine_for(target: Target | str, given: Iterable[Given] = ()) -> MachineModel:
    """Returns the model of a target, with `given` figures in place of its own; raises `MachineError` for a figure
    without meaning there."""
    found = target_of(target) if isinstance(target, str) else target
    own = pretended_figures(_machine(found)) if found.name == "native" else _machine(found)
    others = tuple(given)
    return override(own, others) if others else own


# -- one target -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _machine(target: Target) -> MachineModel:
    micro = microarchitecture_of(target)
    core = _core_of(micro)
    if core is None:
        raise MachineError(f"the table of cores has no row for {micro.name}, nor for what it descends from: add one")
    figures: dict[str, Any] = {
        "fma_ports": core.ports.fma,
        "fma_latency": core.ports.fma_latency,
        "add_latency": core.ports.add_latency,
        "load_ports": core.ports.load,
        "store_ports": core.ports.store,
        "l1d_bytes": core.caches.l1d,
        "l2_bytes": core.caches.l2,
        "l3_bytes": core.caches.l3,
        "l3_cores": core.caches.l3_cores,
        "cores": max(1, core.caches.l3_cores),
        "l1_bytes_cycle": core.reads.l1,
        "l2_bytes_cycle": core.reads.l2,
        "l3_bytes_cycle": core.reads.l3,
    }
    figures = {name: type(getattr(TYPICAL, name))(value) for name, value in figures.items()}
    sources: dict[str, Source] = dict.fromkeys(figures, "manuals")
    sources |= dict.fromkeys(("name", "cpu", "arch", "features", *INSTRUCTIONS), "llvm")
    sources["microarchitecture"] = "archspec"
    if _is_here(target):
        own = host_figures()
        figures |= own
        sources |= dict.fromkeys(own, "sysfs")
    return MachineModel(
        name=target.name,
        cpu=target.cpu,
        arch=target.arch,
        microarchitecture=micro.name,
        features=target.digest,
        vector_bytes=target.vector_bytes,
        registers=target.vector_registers,
        fma=target.has_fma,
        half_loads=target.has_half,
        byte_products=target.byte_products,
        byte_tiles=target.byte_tiles,
        half_tiles=target.half_tiles,
        byte_pairs=target.byte_pairs,
        half_pairs=target.half_pairs,
        **figures,
        sources=sources,
    )


def _is_here(target: Target) -> bool:
    """True for the running machine, False for a target in its place."""
    return target.name == "native" and target == host_target()


def microarchitecture_of(target: Target) -> Microarchitecture:
    """Returns archspec's entry for a target's CPU, or for a similar one; for unknown CPUs, the entry of the psABI level
    or the architecture."""
    from archspec.cpu import host

    known, cpu = _microarchitectures(), target.cpu
    for name in (LIKE.get(cpu, ""), cpu.replace("-", "_"), cpu.replace("znver", "zen"), _clang_names().get(cpu, "")):
        if name in known:
            return known[name]
    if _is_here(target):
        found = host()
        if _core_of(found) is not None:
            return found
    level = X86_LEVELS[max(1, target.level) - 1] if target.arch == "x86_64" else "aarch64"
    return known[level.replace("-", "_")]


def _microarchitectures() -> Mapping[str, Microarchitecture]:
    from archspec.cpu import TARGETS

    return cast("Mapping[str, Microarchitecture]", TARGETS)


@lru_cache(maxsize=1)
def _clang_names() -> dict[str, str]:
    """Returns archspec's names by clang's names of the microarchitectures (LLVM's names)."""
    found: dict[str, str] = {}
    for name, micro in _microarchitectures().items():
        compilers = cast("Mapping[str, list[dict[str, str]]]", micro.compilers)
        for entry in compilers.get("clang", []):
            found.setdefault(entry.get("name", name), name)
    return found


def _core_of(micro: Microarchitecture) -> Core | None:
    """Returns the row of the nearest microarchitecture in the table."""
    line = (micro, *micro.ancestors)
    return next((CORES[m.name] for m in line if m.name in CORES), None)


# -- this machine -----------------------------------------------------------------------------------------------------


def host_figures(root: Path = SYSFS) -> dict[str, int]:
    """Returns the caches of the first CPU and the number of cores from Linux; a missing figure is omitted."""
    found: dict[str, int] = {}
    names = {"1": "l1d_bytes", "2": "l2_bytes", "3": "l3_bytes"}
    for index in sorted((root / "cpu0" / "cache").glob("index*")):
        try:
            level, kind, size = ((index / f).read_text().strip() for f in ("level", "type", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KM]?)", size)
        if match is None or kind == "Instruction" or level not in names:
            continue
        found[names[level]] = int(match[1]) << {"K": 10, "M": 20, "": 0}[match[2]]
        if level == "3":
            found["l3_cores"] = _count(_text(index / "shared_cpu_list"))
        if level == "1" and (line := _text(index / "coherency_line_size")).isdigit():
            found["line_bytes"] = int(line)
    if found and "l3_bytes" not in found:
        found |= {"l3_bytes": 0, "l3_cores": 1}
    listed = _text(root / "present")
    return {**found, "cores": _count(listed)} if listed else found


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _count(listed: str) -> int:
    """Counts the CPUs in a list like `0-3,8`; 1 for an empty list, as in a container with hidden CPUs."""
    total = 0
    for part in listed.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        total += int(match[2] or match[1]) - int(match[1]) + 1 if match else 0
    return max(1, total)
