"""`drop-checks`: removes the checks on data from kernels.

    loop.kernel @r0 symbols [n] (..) -> (tensor<?xf32>, tensor<i64>) checks [..] { .. loop.return %y, %found }
becomes
    loop.kernel @r0 symbols [n] (..) -> (tensor<?xf32>) { .. loop.return %y }

A kernel reports errors in its data, such as an index out of range, as its last results. The op around it reads these
after the run; on a GPU that would mean waiting for the run. So GPU kernels report nothing, like ONNX Runtime's own
kernels: an element out of range reads as 0. A kernel without other results keeps its checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.loop import KernelOp


@dataclass(frozen=True)
class DropChecks(ModulePass):
    """Removes the checks on data from every kernel."""

    name = "drop-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            for each in (kernel, *kernel.variants):
                drop_checks(each)


def drop_checks(kernel: KernelOp) -> None:
    """Removes the checks on data from one kernel; their code becomes dead."""
    kept = len(kernel.returned) - len(kernel.checks)
    if not kernel.checks or not kept:
        return
    end = kernel.block.last_op
    assert end is not None
    end.operands = list(kernel.returned)[:kept]
    kernel.declared_types = ArrayAttr(kernel.declared_types.data[:kept])
    kernel.checks_attr = None
