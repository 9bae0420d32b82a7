"""`check-bounds`: proves that every access of a kernel stays in bounds and that no element is written twice.

It takes both levels of the `loop` dialect and may stand anywhere; the proofs are those of
`igniter.analysis.structured.bounds`, from the ranges of axes, from guards, and from what the kernel requires. What is
not proven becomes a remark, and with `strict` an error:

    %v = loop.read %x[i + 1] : f32          // i: parallel 4, %x: tensor<4xf32>

    remark: check-bounds: 'copy' missed: a read of tensor<4xf32>: i + 1 may reach 4, the size of its dim

With `guard`, what is not proven becomes a guard, so that the access does not happen where it would be outside:

    %v = loop.read %x[i + 1] if [2 - i] : f32

A nest that may write outside, or one element twice, cannot be guarded and is an error: the driver leaves its region to
ONNX Runtime. So it stands in the pipeline `cpu-schedule`, where nests have their last form.
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
from igniter.remarks import remark


@dataclass(frozen=True)
class CheckBounds(ModulePass):
    """Proves accesses in bounds."""

    name = "check-bounds"

    strict: bool = False
    """Whether an access that is not proven is an error."""
    guard: bool = False
    """Whether an access that is not proven gets guards, and a write that is not proven is an error."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, (KernelOp, FuncOp))]:
            name = kernel.sym_name.data
            for found in _guarded(kernel) if self.guard else unproven_accesses(kernel):
                remark(ctx, self.name, found.where, "applied" if self.guard else "missed", found.reason)
                if self.strict:
                    raise VerifyException(f"'{found.where}' in @{name}: {found.reason}")


def _guarded(kernel: KernelOp | FuncOp) -> Iterator[Unproven]:
    """Guards what is not proven; what was guarded, and why."""
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
