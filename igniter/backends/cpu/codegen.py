"""LLVM IR text to machine code: LLVM's O1 passes, then its code generator at O3.

The emitter leaves little to do (loops are explicit, addresses hoisted): register slots become registers, remaining
invariants move out of loops, dead code is removed. Measured, O2 and O3 took longer and gave the same code. Vectorising
and unrolling are the schedule's; functions carry "no-builtins", so no loop turns into a call of memset.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from igniter.backends.c_runtime.units import link_needed
from igniter.backends.cpu.target import Target
from igniter.errors import IgniterError

LIBRARY_EXPORTS = frozenset({"RegisterCustomOps", "igniter_library_info", "igniter_probe"})
"""The names that a library exports."""


class CodegenError(IgniterError):
    """Raised if LLVM refuses the IR."""

    code = "IGN0303"


@lru_cache(maxsize=1)
def _llvm() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # LLVM has only this one; parts of micro-kernels are assembly.
    return llvm


@lru_cache(maxsize=16)
def _machine(target: Target, jit: bool = False) -> Any:
    llvm = _llvm()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="default", jit=jit
    )


def data_layout(target: Target) -> str:
    """Returns the data layout of a target, as a module's text has it."""
    return str(_machine(target).target_data)


def parse(ir: str, context: Any = None) -> Any:
    """Parses `ir` into an LLVM module."""
    llvm = _llvm()
    try:
        # Each module has its own context, so that several threads can create modules.
        return llvm.parse_assembly(ir, context or llvm.create_context())
    except RuntimeError as error:
        raise CodegenError(f"the emitted LLVM IR is invalid: {error}")


def link_modules(modules: Sequence[str]) -> str:
    """Links modules into one; returns a single one unchanged."""
    if len(modules) == 1:
        return modules[0]
    context = _llvm().create_context()
    whole = parse(modules[0], context)
    for text in modules[1:]:
        try:
            whole.link_in(parse(text, context))
        except RuntimeError as error:
            raise CodegenError(f"two kernels cannot be in one LLVM module: {error}")
    return str(whole)


def optimize(ir: str, target: Target) -> Any:
    """Returns the module after the mid-level passes, with the units of the run time that it calls."""
    llvm = _llvm()
    context = llvm.create_context()
    module = parse(ir, context)
    link_needed(module, context, target.arch, target.system.stands_in)
    if target.system.format == "macho":
        _hide(module)
    machine = _machine(target)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_unrolling = options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _hide(module: Any) -> None:
    """Hides all names from other libraries but those of a library's own: a linker for Mach-O takes the exports from the
    objects, not from a list."""
    for value in (*module.functions, *module.global_variables):
        is_own = value.is_declaration or value.linkage.name in ("internal", "private")
        if not is_own and value.name not in LIBRARY_EXPORTS:
            value.visibility = "hidden"


def compile_object(ir: str, target: Target) -> bytes:
    """Returns a relocatable object: position-independent, small code model, no undefined symbols."""
    return bytes(_machine(target).emit_object(optimize(ir, target)))


def compile_assembly(ir: str, target: Target) -> str:
    """Returns the same as assembly text."""
    return str(_machine(target).emit_assembly(optimize(ir, target)))


def optimized_ir(ir: str, target: Target) -> str:
    """Returns the IR before LLVM's code generator."""
    return str(optimize(ir, target))
