"""The backend for CPUs: scheduled kernels become LLVM IR, and this becomes machine code for x86-64 and aarch64.

This file implements the interface to the compiler (`igniter.targets`) by the files beside it, imported at first use: a
target's name can be read without LLVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from igniter._version import __version__
from igniter.analysis.machine import Given, MachineModel
from igniter.backends import cpu
from igniter.backends.cpu.machine import host_figures, machine_for
from igniter.backends.cpu.target import Target, target_names, target_of, targets_of
from igniter.targets import Backend, Pipelines
from igniter.targets import Target as AnyTarget

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.backends.cpu.assembly import Listing
    from igniter.backends.cpu.jit import CompiledFunc
    from igniter.dialects.loop import FuncOp
    from igniter.targets import Rates


class CpuBackend(Backend):
    """x86-64 and aarch64, through LLVM."""

    name = "cpu"
    pipelines = Pipelines(
        onnx="cpu-onnx",
        fusion="cpu-fusion",
        loop="cpu-loop",
        schedule="cpu-schedule",
        kernels="cpu-kernels",
        programs="cpu-programs",
        calls="cpu-calls",
        weights="cpu-weights",
        tiles="cpu-tiles",
        subnormals="cpu-subnormals",
        made="cpu-made",
    )
    fusion_author = "default"
    schedule_author = "default"
    modules = ("llvmlite.binding", "igniter.backends.cpu.jit")

    # -- targets and machines -----------------------------------------------------------------------------------------

    def target_of(self, name: str) -> Target:
        return target_of(_bare(name))

    def targets_of(self, names: str) -> Sequence[Target]:
        return targets_of(",".join(_bare(name.strip()) for name in names.split(",")))

    def target_names(self, start: str = "") -> Sequence[str]:
        return target_names(start)

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        return machine_for(_bare(target) if isinstance(target, str) else _own(target), given)

    def host_figures(self) -> Mapping[str, int]:
        return host_figures()

    def rates(self) -> Rates:
        return cpu.rates

    # -- schedules ----------------------------------------------------------------------------------------------------

    def lacks(self, micro_kernel: str, target: AnyTarget) -> str | None:
        return cpu.micro_kernels.lacking_reason(micro_kernel, _own(target))

    # -- emission -----------------------------------------------------------------------------------------------------

    def emit_func(self, func: FuncOp, target: AnyTarget, sanitize: bool = False) -> str:
        return cpu.emit_llvm.emit_llvm(func, _own(target), sanitize)

    def emit_module(self, module: ModuleOp, target: AnyTarget) -> str:
        return cpu.emit_llvm.emit_module(module, _own(target))

    def llvm_text(
        self, module: ModuleOp, target: AnyTarget, version: int | str | None = None, debug_info: bool = False
    ) -> str:
        own, versions = _own(target), cpu.llvm_versions
        whole = version is not None
        text = (cpu.emit_llvm.emit_whole if whole else cpu.emit_llvm.emit_module)(module, own, debug_info)
        older = None if version in (None, "newest", versions.llvm_version()[0]) else int(version or 0)
        if older is not None:
            text = versions.text_for(text, older, own)
        if debug_info:
            text = cpu.debug_info.with_debug_info(text, module)
        return versions.header(own, older) + text

    def with_nodes(self, texts: Sequence[str], module: ModuleOp, suffix: str) -> list[str]:
        return cpu.debug_info.with_nodes(texts, module, suffix)

    # -- linking ------------------------------------------------------------------------------------------------------

    def identity(self, target: AnyTarget) -> tuple[str, ...]:
        own = _own(target)
        return (*_versions(), _codegen_digest(), own.triple, own.cpu, own.features)

    def needed(self, texts: Iterable[str], target: AnyTarget) -> list[str]:
        kernels = cpu.tile_kernels
        names = sorted({name for text in texts for name in kernels.required(text)})
        return [kernels.emit_tile_kernel(name, _own(target)) for name in names]

    def merged(self, texts: Sequence[str], target: AnyTarget) -> str:
        return cpu.tile_kernels.with_tile_kernels(cpu.codegen.link_modules(texts), _own(target))

    def assembly(self, text: str, target: AnyTarget) -> str:
        return cpu.codegen.compile_assembly(text, _own(target))

    def object_code(self, text: str, target: AnyTarget) -> bytes:
        return cpu.codegen.compile_object(text, _own(target))

    def least(self, target: AnyTarget) -> Target:
        own = _own(target)
        return target_of(f"{'x86-64' if own.arch == 'x86_64' else 'aarch64'}-{own.system.name}")

    def instructions(self, identity: Mapping[str, str]) -> tuple[str, ...]:
        return cpu.instructions.instructions(identity)

    # -- on this machine ----------------------------------------------------------------------------------------------

    def compile_func(
        self, func: FuncOp, target: AnyTarget | str = "native", sanitize: bool | None = None
    ) -> CompiledFunc:
        return cpu.jit.compile_func(func, _bare(target) if isinstance(target, str) else _own(target), sanitize)

    def listing(self, func: FuncOp, target: AnyTarget) -> Listing:
        return cpu.assembly.Listing(self.assembly(self.merged([self.emit_func(func, target)], target), target))


def _bare(name: str) -> str:
    """Returns a target's name without the backend's prefix; `cpu` alone is this machine."""
    if name == CpuBackend.name:
        return "native"
    return name.removeprefix(f"{CpuBackend.name}:")


def _own(target: AnyTarget) -> Target:
    assert isinstance(target, Target), f"'{target.name}' is no target of the backend for CPUs"
    return target


def _versions() -> tuple[str, ...]:
    """Returns the versions of LLVM and Igniter, inputs of the machine code."""
    import llvmlite
    import llvmlite.binding as llvm

    info = cast("tuple[int, ...]", llvm.llvm_version_info)
    return (__version__, str(llvmlite.__version__), ".".join(str(part) for part in info))


@cache
def _codegen_digest() -> str:
    """Returns a digest of the code generator and of the run time that it links: a change invalidates cached code."""
    from igniter.backends.c_runtime.units import digest

    return hashlib.sha256(Path(str(cpu.codegen.__file__)).read_bytes() + digest().encode()).hexdigest()
