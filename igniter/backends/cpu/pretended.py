"""A stand-in for this machine, to show in a test suite the influence of the machine.

`IGNITER_NATIVE` in the environment selects the machine of the target `native`:

    IGNITER_NATIVE=tests/machines/sapphire_rapids.json   figures of a file: caches, cores, ports, width of vectors
    IGNITER_NATIVE=neoverse-n1                          a target by name, instructions included

With a file, authors of schedules see its figures and kernels keep the instructions of this machine, so everything still
runs: LLVM splits vectors wider than its registers. Products of bytes and tiles cannot be replaced by other
instructions, so they stay as on this machine. The file has the format of `--machine`; its figures complete the model of
the target called `name` in it. They are used unchanged: nothing is derived from them, as nothing is derived from the
caches reported by Linux.

With a target's name, `native` is that target, and code for it runs only on CPUs with its instructions.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache

from igniter.analysis.machine import IDENTITY, MachineError, MachineModel
from igniter.environment import pretended_machine
from igniter.targets import read_machine

KEPT = ("fma", "byte_products", "byte_tiles", "half_tiles", "byte_pairs", "half_pairs")
"""The figures of instructions without a replacement on machines that lack them."""


def pretended_target() -> str:
    """Returns the name of the target in place of `native`; "" if it is this machine's."""
    asked = pretended_machine()
    return "" if asked.endswith(".json") else asked


def pretended_figures(own: MachineModel) -> MachineModel:
    """Returns the model of this machine, `own`, with the figures of the stand-in; `own` without one."""
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
