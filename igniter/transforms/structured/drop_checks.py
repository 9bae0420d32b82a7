"""`drop-checks`: kernels that say nothing of their data.

    loop.kernel @r0 symbols [n] (..) -> (tensor<?xf32>, tensor<i64>) checks [..] { .. loop.return %y, %found }
becomes
    loop.kernel @r0 symbols [n] (..) -> (tensor<?xf32>) { .. loop.return %y }

What a kernel finds wrong with its data, an index out of range say, it gives as its last results, which the op around it
reads after the run. On a GPU that would be to wait for the run. So nothing is said there, as by ONNX Runtime's own
kernels: a place that is not there reads as 0. A kernel of which nothing else is asked keeps its checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.loop import KernelOp


@dataclass(frozen=True)
class DropChecks(ModulePass):
    """Takes the checks on data from every kernel."""

    name = "drop-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            for each in (kernel, *kernel.variants):
                drop_checks(each)


def drop_checks(kernel: KernelOp) -> None:
    """Takes the checks on data from one kernel; what computed them is dead."""
    kept = len(kernel.returned) - len(kernel.checks)
    if not kernel.checks or not kept:
        return
    end = kernel.block.last_op
    assert end is not None
    end.operands = list(kernel.returned)[:kept]
    kernel.declared_types = ArrayAttr(kernel.declared_types.data[:kept])
    kernel.checks_attr = None
