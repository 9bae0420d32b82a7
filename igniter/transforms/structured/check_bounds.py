"""`check-bounds`: proves every access of a kernel to be in bounds, and no element to be written twice.

It accepts both levels of the `loop` dialect and may run anywhere. The proofs are in
`igniter.analysis.structured.bounds`; they use the ranges of axes, the guards, and the kernel's requirements. An access
without a proof is a remark, and with `strict` an error:

    %v = loop.read %x[i + 1] : f32          // i: parallel 4, %x: tensor<4xf32>

    remark: check-bounds: 'copy' missed: a read of tensor<4xf32>: i + 1 may reach 4, the size of its dim

With `guard`, an access without a proof gets guards, and does not happen out of bounds:

    %v = loop.read %x[i + 1] if [2 - i] : f32

A nest that may write out of bounds, or one element twice, cannot be guarded. It is an error, and the driver leaves its
region to ONNX Runtime. So the pass runs in the pipeline `cpu-schedule`, where nests have their final form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.structured.bounds import (
    Unproven,
    known_accesses,
    missing_guards,
    unproven_accesses,
    unproven_writes,
)
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.sym import DimsAttr
from igniter.errors import IgniterError
from igniter.observation.statistics import Statistic
from igniter.remarks import remark


@dataclass(frozen=True)
class CheckBounds(ModulePass):
    """Proves accesses in bounds."""

    name = "check-bounds"
    unproven = Statistic("accesses without a proof")

    strict: bool = False
    """Makes an access without a proof an error."""
    guard: bool = False
    """Adds guards to an access without a proof; makes a write without a proof an error."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, (KernelOp, FuncOp))]:
            name = kernel.sym_name.data
            for found in _guarded(kernel) if self.guard else unproven_accesses(kernel):
                self.unproven.add(ctx)
                remark(ctx, self.name, found.where, "applied" if self.guard else "missed", found.reason)
                if self.strict:
                    raise VerifyException(f"'{found.where}' in @{name}: {found.reason}")


def _guarded(kernel: KernelOp | FuncOp) -> Iterator[Unproven]:
    """Guards each access without a proof; yields each with the reason."""
    for found in unproven_writes(kernel):
        raise IgniterError(f"check-bounds: '{found.where}': {found.reason}")
    for access in list(known_accesses(kernel)):
        missing = missing_guards(access)
        if missing:
            access.op.guards_attr = DimsAttr([*access.op.guards, *missing])
            yield Unproven(
                access.where, f"'{access.op.name}' of {access.op.accessed.type} is guarded by {_text(missing)}"
            )


def _text(guards: Sequence[object]) -> str:
    return f"[{', '.join(map(str, guards))}]"
