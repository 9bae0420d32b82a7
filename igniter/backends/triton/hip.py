"""The backend for AMD GPUs: the same schedules and kernels, compiled by Triton to AMDGCN and never run.

    igniter compile model.onnx --target=hip:gfx942 --emit=asm

It tests the portability of the levels above to a second kind of GPU. It does not support libraries: there is no code to
load its output into ONNX Runtime, and its output has never run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Never, cast

from igniter.analysis.machine import Given, MachineModel, override
from igniter.backends.triton.backend import TritonBackend
from igniter.backends.triton.compiler import from_source, load_source, part_of_triton, run_stages
from igniter.backends.triton.target import CudaTarget, machine_of_target
from igniter.backends.triton.texts import kernels_of
from igniter.errors import IgniterError
from igniter.targets import Target as AnyTarget

if TYPE_CHECKING:
    from igniter.backends.triton.texts import KernelText
    from igniter.dialects.loop import FuncOp
    from igniter.targets import Expectation

NAME = "hip"

WAVES = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1101": 32, "gfx1200": 32, "gfx1201": 32}
"""The GPUs that Triton compiles for here, with the threads of a wave of each."""


@dataclass(frozen=True)
class HipTarget(CudaTarget):
    """A GPU of AMD. Schedules are chosen by the figures of NVIDIA's GPUs since sm_80."""

    gpu: str = "gfx942"

    @property
    def name(self) -> str:
        return f"{NAME}:{self.gpu}"

    @property
    def triple(self) -> str:
        return "amdgcn-amd-amdhsa"

    @property
    def identity(self) -> Mapping[str, str]:
        return {"target": self.name}


class HipBackend(TritonBackend):
    """AMD GPUs, through Triton: code for inspection."""

    name = NAME
    provider = "MIGraphXExecutionProvider"
    lacking = (*TritonBackend.lacking, "tuned")
    no_library = (
        "kernels for GPUs of AMD are compiled and not run, so there is no library: --emit=asm gives their code, and "
        "--emit=llvm their text"
    )

    def target_of(self, name: str) -> HipTarget:
        gpu = name.removeprefix(f"{NAME}:")
        if gpu not in WAVES:
            raise IgniterError(
                f"there is no target '{name}': GPUs of AMD are {', '.join(f'{NAME}:{g}' for g in WAVES)}"
            )
        return HipTarget((80,), gpu=gpu)

    def target_names(self, start: str = "") -> Sequence[str]:
        return [name for gpu in WAVES if (name := f"{NAME}:{gpu}").startswith(start)]

    def targets_of(self, names: str) -> Sequence[HipTarget]:
        return list(dict.fromkeys(self.target_of(name.strip()) for name in names.split(",")))

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        found = self.target_of(target) if isinstance(target, str) else target
        assert isinstance(found, HipTarget), f"'{found.name}' is no GPU of AMD"
        return override(replace(machine_of_target(found), cpu=found.gpu), given)

    def vouch(self, text: str, target: AnyTarget) -> None:
        self.assembly(text, target)

    def expected(self, func: FuncOp, text: str, target: AnyTarget) -> Sequence[Expectation]:
        return ()

    def compile_func(self, func: FuncOp, target: AnyTarget | str = "hip", sanitize: bool | None = None) -> Never:
        raise IgniterError(self.no_library)

    def assembly(self, text: str, target: AnyTarget) -> str:
        """Returns the AMDGCN of each kernel of a text, in order."""
        assert isinstance(target, HipTarget)
        return "\n".join(f"; {kernel.label}\n{amdgcn(kernel, target.gpu)}" for kernel in kernels_of(text))

    def object_code(self, text: str, target: AnyTarget) -> Never:
        raise IgniterError(self.no_library)


def amdgcn(kernel: KernelText, gpu: str) -> str:
    """Returns the machine code of a kernel for a GPU of AMD, as text; raises `IgniterError` if Triton refuses it."""
    return _amdgcn(kernel.source, kernel.signature, kernel.warps, kernel.stages, gpu)


@lru_cache(maxsize=512)
def _amdgcn(source: str, signature: tuple[str, ...], warps: int, stages: int, gpu: str) -> str:
    function = load_source(source, libdevice=part_of_triton("triton.language.extra.hip.libdevice"))
    names = cast("list[str]", function.arg_names)
    module = from_source(function, dict(zip(names, signature, strict=True)), {})
    options: dict[str, Any] = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    try:
        codes, _ = run_stages(module, (NAME, gpu, WAVES[gpu]), options, "amdgcn")
    except Exception as error:  # Triton's errors have no common base
        raise IgniterError(f"Triton refuses a kernel for {gpu}: {type(error).__name__}: {error}") from error
    return str(codes["amdgcn"])
