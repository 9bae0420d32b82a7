"""The GPU targets by name: `cuda` for all since sm_80, `cuda:sm_90` for one alone, `cuda,cuda:sm_90` for all with code
of its own for one, `cuda+tf32` with products of f32 by tensor cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from igniter.analysis.machine import MachineModel
from igniter.backends import triton
from igniter.errors import IgniterError

NAME = "cuda"

ARCHITECTURES = (80, 86, 89, 90, 100, 120)
"""The compute capabilities supported here, times ten."""

PORTABLE = ARCHITECTURES[0]

ALONE = 90
"""The first capability whose code uses features that later GPUs lack: from here on code runs on one GPU alone."""

LAUNCH_MICROSECONDS, MEMORY_BYTES_A_MICROSECOND, CACHE_BYTES = 2.0, 1_500_000.0, 40 << 20
"""The figures of an A100: the time between kernels, the memory bandwidth of kernels, and the second-level cache."""


@dataclass(frozen=True)
class CudaTarget:
    """A GPU of NVIDIA, or several kinds of them in one library."""

    archs: tuple[int, ...]
    """The compute capabilities of the library's code, times ten, in order; a GPU runs the latest one within its own.
    Schedules are chosen for the first."""
    products: str = ""
    """The method for products of f32, on request: see `igniter.dialects.loop.schedule.PRODUCTS`."""

    @property
    def arch(self) -> int:
        """The first capability."""
        return self.archs[0]

    @property
    def name(self) -> str:
        said = f"+{self.products}" if self.products else ""
        return ",".join(f"{NAME}:sm_{arch}{said}" for arch in self.archs)

    @property
    def key(self) -> str:
        return self.name

    @property
    def triple(self) -> str:
        return "nvptx64-nvidia-cuda"

    @property
    def level(self) -> int:
        return self.arch

    @property
    def identity(self) -> Mapping[str, str]:
        return {"target": self.name}


def target_names(start: str = "") -> list[str]:
    """Returns the names of targets with the prefix `start`."""
    bare = [NAME, *(f"{NAME}:sm_{arch}" for arch in ARCHITECTURES)]
    added = [f"{name}+{products}" for name in bare for products in triton.launch_schedules.PRODUCTS]
    return [name for name in (bare if "+" not in start else added) if name.startswith(start)]


def target_of(name: str) -> CudaTarget:
    """Returns the target called `cuda`, `cuda:sm_90` or `sm_90`, each also with `+tf32` or `+tf32x3`, or several of
    these for one library; `IgniterError` lists the known ones."""
    found = [_one(each.strip()) for each in name.split(",")]
    if len({each.products for each in found}) > 1:
        raise IgniterError(f"'{name}': products of f32 are computed in one way for all GPUs of a library")
    return CudaTarget(tuple(sorted({each.arch for each in found})), found[0].products)


def _one(name: str) -> CudaTarget:
    bare, _, products = name.removeprefix(f"{NAME}:").partition("+")
    # Most names are read without the dialects.
    if products and products not in (known := triton.launch_schedules.PRODUCTS):
        raise IgniterError(f"there is no target '{name}': what can be asked of it is +{' or +'.join(known)}")
    if bare == NAME:
        return CudaTarget((PORTABLE,), products)
    number = bare.removeprefix("sm_")
    if not bare.startswith("sm_") or not number.isdigit() or int(number) not in ARCHITECTURES:
        known = ", ".join(f"{NAME}:sm_{arch}" for arch in ARCHITECTURES)
        raise IgniterError(f"there is no target '{name}': GPUs are {NAME} (all since sm_{PORTABLE}), {known}")
    return CudaTarget((int(number),), products)


def machine_of_target(target: CudaTarget) -> MachineModel:
    """Returns the model of a target. The figures for fusion are an A100's: a launch, its memory and second-level cache;
    other figures are of CPUs and have no meaning here. One thread launches a program of any size."""
    return MachineModel(
        name=target.name,
        cpu=f"sm_{target.arch}",
        arch="nvptx64",
        features=target.products,
        microarchitecture="",
        cores=1,
        team_bytes=1 << 62,
        launch_us=LAUNCH_MICROSECONDS,
        memory_bytes_us=MEMORY_BYTES_A_MICROSECOND,
        l2_bytes=CACHE_BYTES,
    )
