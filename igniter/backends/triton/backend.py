"""The backend for NVIDIA GPUs: launches of Triton kernels, down to PTX, and the host code around them.

A func becomes two kinds of text: its kernels as Python, and LLVM IR for the host. The host code computes grids and
parameters and launches the kernels in sequence (`igniter.backends.launches`); the CPU backend compiles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Never

from igniter._version import __version__
from igniter.analysis.machine import Given, MachineModel, override
from igniter.backends import triton
from igniter.backends.triton.target import NAME, PORTABLE, CudaTarget, machine_of_target, target_names, target_of
from igniter.errors import IgniterError
from igniter.targets import Backend, Pipelines, backend_for
from igniter.targets import Target as AnyTarget

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.fusion.legality import Reason
    from igniter.dialects.loop import FuncOp, KernelOp
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.targets import CompiledFunc, Expectation, Listing, Rates, SearchSpace


class TritonBackend(Backend):
    """NVIDIA GPUs since sm_80, through Triton."""

    name = NAME
    pipelines = Pipelines(
        onnx="cuda-onnx",
        fusion="cuda-fusion",
        loop="cuda-loop",
        schedule="cuda-schedule",
        kernels="schedule-kernels",
        programs="cuda-programs",
        calls="cuda-calls",
        weights="fold-packs",
    )
    algorithms = True
    provider = "CUDAExecutionProvider"
    lacking = ("precision", "winograd", "sanitize", "profile", "debug_info")
    fusion_author = "default"
    schedule_author = "triton"

    # -- targets and machines -----------------------------------------------------------------------------------------

    def target_of(self, name: str) -> CudaTarget:
        return target_of(name)

    def targets_of(self, names: str) -> Sequence[CudaTarget]:
        # Code for several GPUs contains several codes of each kernel, from one schedule.
        return [target_of(names)]

    def target_names(self, start: str = "") -> Sequence[str]:
        return target_names(start)

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        found = target_of(target) if isinstance(target, str) else _own(target)
        return override(machine_of_target(found), given)

    def host_figures(self) -> Mapping[str, int]:
        return {}

    def rates(self) -> Rates:
        _missing("loops that measure a GPU")

    # -- fusion -------------------------------------------------------------------------------------------------------

    def fusion_reason(self, op: OnnxOp, machine: MachineModel) -> Reason | None:
        return triton.coverage.refusal(op)

    # -- schedules ----------------------------------------------------------------------------------------------------

    @property
    def words(self) -> frozenset[str]:
        """The words that launches carry out; the passes before serve the host code."""
        return triton.launch_schedules.WORDS

    # -- emission -----------------------------------------------------------------------------------------------------

    def emit_func(self, func: FuncOp, target: AnyTarget, sanitize: bool = False) -> str:
        """Emits the kernels of a func, and the func as host code: see `igniter.backends.triton.texts`."""
        if sanitize:
            _missing("checks of addresses")
        return triton.texts.emit_func(func)

    def emit_module(self, module: ModuleOp, target: AnyTarget) -> str:
        return triton.texts.emit_module(module)

    def vouch(self, text: str, target: AnyTarget) -> None:
        for kernel in triton.texts.kernels_of(text):
            for arch in _own(target).archs:
                kernel.compiled(arch)

    def expected(self, func: FuncOp, text: str, target: AnyTarget) -> Sequence[Expectation]:
        return triton.expectations.expected(func, text, _own(target).arch)

    # -- linking ------------------------------------------------------------------------------------------------------

    def identity(self, target: AnyTarget) -> tuple[str, ...]:
        host = _host()
        cpu = backend_for(host.name).identity(host)
        return (__version__, _own(target).name, *triton.compiler.identity().values(), *cpu)

    def needed(self, texts: Iterable[str], target: AnyTarget) -> list[str]:
        return []

    def launched(self, texts: Iterable[str]) -> Mapping[str, Sequence[str]]:
        return triton.texts.launched(texts)

    def merged(self, texts: Sequence[str], target: AnyTarget) -> str:
        return "\n\n".join(texts)

    def assembly(self, text: str, target: AnyTarget) -> str:
        """Returns the PTX of each kernel of a text, in order."""
        archs = _own(target).archs
        return "\n".join(
            f"// {k.label}\n{k.compiled(arch).ptx}" for k in triton.texts.kernels_of(text) for arch in archs
        )

    def object_code(self, text: str, target: AnyTarget) -> bytes:
        """Returns an object for the host, with the PTX of the kernels in it."""
        host = _host()
        return backend_for(host.name).object_code(triton.texts.host_module(text, _own(target).archs), host)

    def least(self, target: AnyTarget) -> AnyTarget:
        """Returns the host's target."""
        return _host()

    # -- on this machine ----------------------------------------------------------------------------------------------

    def compile_func(
        self, func: FuncOp, target: AnyTarget | str = "native", sanitize: bool | None = None
    ) -> CompiledFunc:
        """Loads the kernels of a func onto this machine's GPU; raises `IgniterError` without one."""
        if sanitize:
            _missing("checks of addresses")
        own = target_of(target) if isinstance(target, str) else _own(target)
        return triton.compiled.CompiledLaunches(triton.driver.gpu(), func, own.arch)

    def listing(self, func: FuncOp, target: AnyTarget) -> Listing:
        _missing("listings of machine code")

    # -- tuning -------------------------------------------------------------------------------------------------------

    def timed_on(self, target: AnyTarget) -> str:
        """Returns the name of this machine's GPU."""
        try:
            found = triton.driver.gpu()
        except IgniterError as error:
            raise IgniterError(
                f"kernels of '{target.name}' are timed on a GPU, and there is none here: {error}"
            ) from error
        least, most = triton.texts.capabilities(_own(target).arch)
        if not least <= found.capability <= most:
            raise IgniterError(
                f"the GPU here, {found.name}, is sm_{found.capability} and does not run code for '{target.name}': "
                f"name {NAME}:sm_{found.capability}, or {NAME} for all since sm_{PORTABLE}"
            )
        return found.name

    def schedule_space(self, kernel: KernelOp, target: AnyTarget, threads: int) -> SearchSpace | None:
        return triton.launch_schedules.space_of(kernel, _own(target))

    def expected_seconds(self, func: FuncOp, sizes: Mapping[str, int], target: AnyTarget) -> float | None:
        return triton.expectations.expected_seconds(func, sizes, _own(target).arch)


def _own(target: AnyTarget) -> CudaTarget:
    assert isinstance(target, CudaTarget), f"'{target.name}' is no GPU"
    return target


@cache
def _host() -> AnyTarget:
    """Returns the CPU that launches kernels: any of this machine's kind."""
    cpu = backend_for("native")
    return cpu.least(cpu.target_of("native"))


def _missing(what: str) -> Never:
    raise IgniterError(
        f"the backend '{NAME}' does not have {what} yet: models are compiled for it (igniter compile --target={NAME}), "
        f"and kernels can be looked at (igniter-opt --target={NAME} --emit=llvm, or asm for PTX)"
    )
