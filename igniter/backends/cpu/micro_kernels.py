"""Micro-kernels of other packages: semantics, the CPUs that have them, and the code.

    DISTANCE = CpuMicroKernel(
        "acme.distance",
        meaning("distance", "f32", "f32", "f32", "%d = arith.subf %x, %y : f32  ...", lanes=16),
        code=Distance,
        missing=lambda target: None if target.has_fma else "it takes fused multiply-adds",
    )

The code is a class of bodies (`tile_bodies.py`), with Igniter's loops, or a function for the text of LLVM functions:
`@name`, hidden, with the parameters of all micro-kernels (`tile_calls.SIGNATURE`), for up to `size.rows` rows and
exactly `size.panels` panels, and its callees. The code is not verified against the semantics; a test of it is one line
(`docs/how-to/declare-a-micro-kernel.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from igniter.backends.cpu.builder import LlvmModule
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_bodies import Body, TileKind, TileSize, add_bodies
from igniter.dialects.loop.instructions import MicroKernel, micro_kernel, micro_kernel_reason, source_of
from igniter.errors import IgniterError

Text = Callable[[str, TileSize, Target], str]
"""The text of LLVM functions, one of them with the given name."""


def missing_nowhere(target: Target) -> str | None:
    """Returns None: no target lacks it."""
    return None


@dataclass(frozen=True)
class CpuMicroKernel(MicroKernel):
    """A micro-kernel with its code for CPUs."""

    code: type[Body] | Text
    missing: Callable[[Target], str | None] = missing_nowhere
    """The reason why a target lacks it; None if the target has it."""

    def sources(self) -> list[str]:
        """Returns the modules of the code."""
        return [source_of(self.code), source_of(self.missing)]

    def add_to(self, module: LlvmModule, name: str, size: TileSize) -> None:
        """Defines `@name`."""
        if isinstance(self.code, type):
            add_bodies(module, name, TileKind(self), size, self.code)
            return
        text = self.code(name, size, module.target)
        if f"@{name}(" not in text:
            raise IgniterError(f"the code of micro-kernel '{self.name}' does not define @{name}")
        module.functions.append(text)


def lacking_reason(name: str, target: Target) -> str | None:
    """As `missing_reason`, but also None for a name that is not declared."""
    return None if micro_kernel_reason(name) is not None else missing_reason(name, target)


def missing_reason(name: str, target: Target) -> str | None:
    """Returns the reason why a target lacks the micro-kernel called `name`; None if it has it."""
    kernel = micro_kernel(name)
    reason = kernel.missing(target) if isinstance(kernel, CpuMicroKernel) else None
    return None if reason is None else f"target '{target.name}' does not have the micro-kernel '{name}': {reason}"
