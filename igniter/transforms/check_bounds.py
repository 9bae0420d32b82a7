"""`check-bounds`: proves that every access of a kernel stays in bounds and that no element is written twice.

It changes nothing. What is not proven becomes a remark, and with `strict` an error:

    %v = loop.read %x[i + 1] : f32          // i: parallel 4, %x: tensor<4xf32>

    remark: check-bounds: 'copy' missed: a read of tensor<4xf32>: i + 1 may reach 4, the size of its dim

It takes both levels of the `loop` dialect and may stand anywhere; the proofs are those of `igniter.analysis.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.bounds import unproven_accesses
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.remarks import remark


@dataclass(frozen=True)
class CheckBounds(ModulePass):
    """Proves accesses in bounds."""

    name = "check-bounds"

    strict: bool = False
    """Whether an access that is not proven is an error."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, (KernelOp, FuncOp))]:
            for found in unproven_accesses(kernel):
                remark(ctx, self.name, found.where, "missed", found.reason)
                if self.strict:
                    raise VerifyException(f"'{found.where}' in @{kernel.sym_name.data}: {found.reason}")
