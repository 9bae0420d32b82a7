"""Another machine in the place of this one, so that a test suite shows what it takes from the machine that runs it.

`IGNITER_NATIVE` in the environment says which machine the target `native` is:

    IGNITER_NATIVE=tests/machines/sapphire_rapids.json   figures of a file: caches, cores, ports, width of vectors
    IGNITER_NATIVE=neoverse-n1                          a target by name, instructions included

With a file, authors of schedules see its figures and kernels keep the instructions of this machine, so everything
still runs: LLVM splits vectors that are wider than its registers. Products of bytes and tiles, which are instructions
or nothing, stay as this machine has them. The file is one of `--machine`; its `name` is the target whose figures
complete it. Its figures are taken as they stand: nothing is derived from them, as nothing is derived from the caches
that Linux reports.

With a target's name, `native` is that target, and code for it runs only where the CPU has its instructions.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache

from igniter.analysis.machine import IDENTITY, MachineError, MachineModel
from igniter.environment import pretended_machine
from igniter.targets import read_machine

KEPT = ("fma", "byte_products", "byte_tiles", "half_tiles")
"""Figures of instructions that this machine may lack, and which nothing else stands in for."""


def pretended_target() -> str:
    """The name of the target that `native` stands for; "" where it is this machine's."""
    asked = pretended_machine()
    return "" if asked.endswith(".json") else asked


def pretended_figures(own: MachineModel) -> MachineModel:
    """The model of this machine, `own`, with the figures of the machine that is pretended; `own` where none is."""
    path = pretended_machine()
    return _with_figures(own, path) if path.endswith(".json") else own


@lru_cache(maxsize=8)
def _with_figures(own: MachineModel, path: str) -> MachineModel:
    from igniter.backends.cpu.machine import machine_for

    given = {name: (value, source) for name, value, source in read_machine(path)}
    if "name" not in given:
        raise MachineError(f"{path}: IGNITER_NATIVE needs a file with a 'name', the target whose figures complete it")
    base = machine_for(given["name"][0])
    said = {n: entry for n, entry in given.items() if n not in IDENTITY}
    base = dataclasses.replace(base, **{n: value for n, (value, _) in said.items()})
    kept = {n: getattr(own, n) and getattr(base, n) for n in KEPT} | {n: getattr(own, n) for n in IDENTITY}
    sources = {**base.sources, **{n: source for n, (_, source) in said.items()}}
    return dataclasses.replace(base, **kept, sources=sources)
