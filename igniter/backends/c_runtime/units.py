"""The units of the run time as LLVM IR, and the link of those that a module needs.

A unit is one C file. A module that declares a function of a unit gets the whole unit, like a program that is linked
with a static library. What it gets becomes internal, so LLVM inlines it and drops what nothing uses, and two kernels of
one library do not share it: they may be for different CPUs.

LLVM links only modules of one context, and every module that Igniter compiles has a context of its own. So the text of
a unit is parsed once for each process, and then kept as bitcode, which is read into a context in a fraction of the
time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import llvmlite.binding as llvm

from igniter.errors import IgniterError

UNITS = ("gpu", "register", "cpu", "sanitized", "infer", "ops", "made", "cpus", "messages", "team", "load")
"""The units by name, each before those that it needs."""

SYSTEM_UNITS = ("windows", "apple")
"""The units with functions of Linux's C library for other systems (`igniter.systems.System.stands_in`)."""

EXPORTED = frozenset({"RegisterCustomOps"})
"""The functions that ONNX Runtime calls: they do not become internal."""

SHARED = frozenset({"igniter_launch"})
"""The functions that the library's module has for its kernels: to declare one does not link a unit, and they do not
become internal."""

PREFIX = "igniter_"
"""The begin of every other name that a unit defines."""


@dataclass(frozen=True)
class Unit:
    """A compiled C file for one architecture."""

    bitcode: bytes
    functions: tuple[str, ...]
    """The functions that it defines for others."""
    variables: tuple[str, ...]
    wanted: tuple[str, ...]
    """The variables that a generated module defines for it."""


def unit_text(name: str, arch: str) -> str:
    """Returns the shipped IR of a unit for `x86_64` or `aarch64`."""
    return files("igniter.backends.c_runtime").joinpath("ir", arch, f"{name}.ll").read_text("utf-8")


@lru_cache(maxsize=1)
def digest() -> str:
    """Returns a digest of the IR of all units: an input of the machine code, so a part of the cache's keys."""
    hashed = hashlib.sha256()
    for arch in ("aarch64", "x86_64"):
        for name in (*UNITS, *SYSTEM_UNITS):
            hashed.update(unit_text(name, arch).encode())
    return hashed.hexdigest()


@lru_cache(maxsize=4)
def units(arch: str) -> Mapping[str, Unit]:
    """Returns the units of an architecture by name."""
    return {name: _read(unit_text(name, arch)) for name in UNITS}


@lru_cache(maxsize=4)
def system_unit(name: str, arch: str) -> Unit:
    """Returns the unit with the functions that a system lacks."""
    return _read(unit_text(name, arch))


def _read(text: str) -> Unit:
    module: Any = llvm.parse_assembly(text, llvm.create_context())
    functions = tuple(str(f.name) for f in module.functions if _is_defined(f))
    variables = tuple(str(v.name) for v in module.global_variables if _is_defined(v))
    wanted = tuple(str(v.name) for v in module.global_variables if v.is_declaration)
    return Unit(bytes(module.as_bitcode()), functions, variables, wanted)


def _is_defined(value: Any) -> bool:
    return not value.is_declaration and value.linkage.name == "external"


def link_needed(module: Any, context: Any, arch: str, stands_in: str = "") -> None:
    """Links the units into `module` whose functions it declares, and those that these need; their names, and those of
    the tables that they read, become internal. `stands_in` is the unit for functions that the system lacks.

    Raises `IgniterError` with LLVM's reason if the module defines a name of a unit with another meaning.
    """
    if not _declared(module):
        return
    linked: list[Unit] = []
    for name, unit in units(arch).items():
        if _declared(module).isdisjoint(unit.functions):
            continue
        linked.append(unit)
        try:
            module.link_in(llvm.parse_bitcode(unit.bitcode, context))
        except RuntimeError as error:
            raise IgniterError(f"the run time's unit '{name}' cannot be linked: {error}") from error
    # Only now: LLVM does not link to internal names.
    for name in sorted({f for unit in linked for f in unit.functions} - EXPORTED - SHARED):
        module.get_function(name).linkage = "internal"
    for name in sorted({v for unit in linked for v in (*unit.variables, *unit.wanted)}):
        variable = module.get_global_variable(name)
        if _is_defined(variable):
            variable.linkage = "internal"
    if stands_in:
        _link_system(module, context, system_unit(stands_in, arch))


def _link_system(module: Any, context: Any, unit: Unit) -> None:
    """Links the functions that the system lacks, if the module calls one of them."""
    declared = {str(f.name) for f in module.functions if f.is_declaration}
    if declared.isdisjoint(unit.functions):
        return
    module.link_in(llvm.parse_bitcode(unit.bitcode, context))
    for name in unit.functions:
        module.get_function(name).linkage = "internal"


def _declared(module: Any) -> set[str]:
    """Returns the functions of the run time that the module declares and that request their units."""
    declared = {str(f.name) for f in module.functions if f.is_declaration} - SHARED
    return {name for name in declared if name.startswith(PREFIX) or name in EXPORTED}
