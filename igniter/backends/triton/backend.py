"""The backend for NVIDIA GPUs: launches of Triton kernels, down to PTX.

Models are not compiled for it yet: a library has no code that loads kernels and launches them. What there is ends with
the text of kernels (`igniter-opt --target=cuda --emit=llvm`), their PTX (`--emit=asm`), and Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Never

from igniter._version import __version__
from igniter.analysis.machine import Given, MachineModel, override
from igniter.backends.triton.target import NAME, CudaTarget, machine_of_target, target_of
from igniter.errors import IgniterError
from igniter.targets import Backend, Pipelines
from igniter.targets import Target as AnyTarget

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.dialects.loop import FuncOp
    from igniter.targets import CompiledFunc, Listing, Rates

MARK = "# kernel "
"""What a line between kernels begins with."""


class TritonBackend(Backend):
    """NVIDIA GPUs since sm_80, by Triton."""

    name = NAME
    pipelines = Pipelines(
        onnx="cuda-onnx",
        fusion="cuda-fusion",
        loop="cuda-loop",
        schedule="cuda-schedule",
        kernels="schedule-kernels",
        programs="form-programs",
        calls="lower-programs,plan-buffers",
        weights="fold-packs",
    )
    fusion_author = "default"
    schedule_author = "triton"

    # -- targets and machines -----------------------------------------------------------------------------------------

    def target_of(self, name: str) -> CudaTarget:
        return target_of(name)

    def targets_of(self, names: str) -> Sequence[CudaTarget]:
        return list(dict.fromkeys(target_of(name.strip()) for name in names.split(",")))

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        found = target_of(target) if isinstance(target, str) else _own(target)
        return override(machine_of_target(found), given)

    def host_figures(self) -> Mapping[str, int]:
        return {}

    def rates(self) -> Rates:
        _missing("loops that measure a GPU")

    # -- schedules ----------------------------------------------------------------------------------------------------

    @property
    def words(self) -> frozenset[str]:
        from igniter.transforms.conversion.lower_to_triton import WORDS

        return WORDS

    # -- emission -----------------------------------------------------------------------------------------------------

    def emit_func(self, func: FuncOp, target: AnyTarget, sanitize: bool = False) -> str:
        """The kernels that a func launches, in the order of the launches, each as Python behind a line that says how it
        is launched."""
        from igniter.backends.triton.compiler import signature_of
        from igniter.backends.triton.python_source import print_kernel
        from igniter.dialects import triton as tt
        from igniter.dialects.loop import LaunchOp

        if sanitize:
            _missing("checks of addresses")
        module = func.parent_op()
        beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
        kernels = {op.sym_name.data: op for op in beside}
        texts: list[str] = []
        for op in func.walk():
            if isinstance(op, LaunchOp):
                kernel = kernels[op.kernel]
                types = ", ".join(signature_of(kernel))
                texts.append(f"{MARK}{op.kernel} warps {op.warps} stages {op.stages} ({types})\n{print_kernel(kernel)}")
        return "\n\n".join(texts)

    def emit_module(self, module: ModuleOp, target: AnyTarget) -> str:
        from igniter.dialects.loop import FuncOp

        return "\n\n".join(self.emit_func(op, target) for op in module.ops if isinstance(op, FuncOp))

    # -- linking ------------------------------------------------------------------------------------------------------

    def library_reason(self) -> str | None:
        return _reason("a library that launches kernels")

    def identity(self, target: AnyTarget) -> tuple[str, ...]:
        from igniter.backends.triton.compiler import identity

        return (__version__, _own(target).name, *identity().values())

    def needed(self, texts: Iterable[str], target: AnyTarget) -> list[str]:
        return []

    def merged(self, texts: Sequence[str], target: AnyTarget) -> str:
        return "\n\n".join(texts)

    def assembly(self, text: str, target: AnyTarget) -> str:
        """The PTX of each kernel of a text, one after the other."""
        from igniter.backends.triton.compiler import compile_source

        made: list[str] = []
        for part in text.split(MARK)[1:]:
            head, _, source = part.partition("\n")
            said, _, types = head.removesuffix(")").partition(" (")
            name, _, warps, _, stages = said.rsplit(" ", 4)
            signature = types.split(", ") if types else []
            kernel = compile_source(source, signature, int(warps), int(stages), _own(target).arch)
            made.append(f"// {name}\n{kernel.ptx}")
        return "\n".join(made)

    def object_code(self, text: str, target: AnyTarget) -> bytes:
        _missing("a library that launches kernels")

    def least(self, target: AnyTarget) -> CudaTarget:
        return _own(target)

    # -- on this machine ----------------------------------------------------------------------------------------------

    def compile_func(
        self, func: FuncOp, target: AnyTarget | str = "native", sanitize: bool | None = None
    ) -> CompiledFunc:
        _missing("kernels in the memory of a GPU")

    def listing(self, func: FuncOp, target: AnyTarget) -> Listing:
        _missing("listings of machine code")


def _own(target: AnyTarget) -> CudaTarget:
    assert isinstance(target, CudaTarget), f"'{target.name}' is no GPU"
    return target


def _missing(what: str) -> Never:
    raise IgniterError(_reason(what))


def _reason(what: str) -> str:
    return (
        f"the backend '{NAME}' does not have {what} yet: kernels can be looked at (igniter-opt --target={NAME} "
        "--emit=llvm, or asm for PTX) and run in Triton's interpreter, and models are compiled for CPUs"
    )
