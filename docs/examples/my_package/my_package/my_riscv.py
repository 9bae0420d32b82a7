"""`riscv64`: a backend for 64-bit RISC-V with the vector extension (RVV), for single kernels run by qemu.

LLVM makes its code from the LLVM IR of Igniter's backend for CPUs. Vectors have a fixed length: the shortest register
that the target promises (LLVM's feature `zvlNb`). Its own are the targets, the machine model, and the run of a kernel
by an emulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from igniter.analysis.machine import INSTRUCTIONS, Given, MachineModel, override
from igniter.backends.cpu.backend import CpuBackend
from igniter.backends.cpu.target import Target
from igniter.dialects.loop import FuncOp
from igniter.errors import IgniterError, did_you_mean
from igniter.targets import Target as AnyTarget
from my_package.my_qemu import QemuFunc

LENGTHS = (128, 256, 512)
"""The bits of a vector register; every CPU with `V` has at least 128."""

FEATURES = "+m,+a,+f,+d,+c,+v"
"""RV64GCV, by LLVM's names."""

FIGURES = {
    "fma_ports": 1.0,
    "load_ports": 1.0,
    "l2_bytes": 512 << 10,
    "l3_bytes": 0,
    "l3_cores": 1,
    "cores": 4,
    "l1_bytes_cycle": 16.0,
    "l2_bytes_cycle": 8.0,
}
"""A small core with one vector unit: assumed, not measured."""


class RiscvBackend(CpuBackend):
    """64-bit RISC-V with vectors, through LLVM; no libraries."""

    name = "riscv64"
    no_library = "ONNX Runtime has no package for RISC-V, so only single kernels run, in qemu"

    def target_of(self, name: str) -> Target:
        bits = name.removeprefix(self.name).removeprefix(":") or str(LENGTHS[0])
        known = [str(length) for length in LENGTHS]
        if bits not in known:
            listed = ", ".join(self.target_names())
            raise IgniterError(f"there is no target '{name}'{did_you_mean(bits, known) or '.'} Targets: {listed}")
        return Target(
            name=f"{self.name}:{bits}",
            triple="riscv64-unknown-linux-gnu",
            cpu="generic-rv64",
            features=f"{FEATURES},+zvl{bits}b",
            vector_bytes=int(bits) // 8,
            vector_registers=32,
            has_fma=True,
            has_masks=True,
            has_rounding=True,
            has_half=False,
        )

    def targets_of(self, names: str) -> Sequence[Target]:
        found = list(dict.fromkeys(self.target_of(name.strip()) for name in names.split(",")))
        if len(found) > 1:
            raise IgniterError(f"targets '{names}': the code is for one vector length; name one")
        return found

    def target_names(self, start: str = "") -> Sequence[str]:
        return [name for name in (f"{self.name}:{bits}" for bits in LENGTHS) if name.startswith(start)]

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        own = self.target_of(target) if isinstance(target, str) else target
        assert isinstance(own, Target)
        model = MachineModel(
            name=own.name,
            cpu=own.cpu,
            arch=own.arch,
            microarchitecture="riscv64",
            features=own.digest,
            vector_bytes=own.vector_bytes,
            registers=own.vector_registers,
            fma=own.has_fma,
            half_loads=own.has_half,
            byte_products=own.byte_products,
            sources=dict.fromkeys(("name", "cpu", "arch", "features", *INSTRUCTIONS), "llvm"),
            **FIGURES,
        )
        return override(model, tuple(given))

    def compile_func(self, func: FuncOp, target: AnyTarget | str = "riscv64", sanitize: bool | None = None) -> Any:
        if sanitize:
            raise IgniterError(f"{func.sym_name.data}: '{self.name}' has no sanitizer; guard pages end its buffers")
        own = self.target_of(target) if isinstance(target, str) else target
        assert isinstance(own, Target)
        code = self.object_code(self.merged([self.emit_func(func, own)], own), own)
        return QemuFunc(func.sym_name.data, code, own, func.symbol_names, func.scratch_bytes)
