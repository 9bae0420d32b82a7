"""`inline-failed-regions`: leaves the nodes of regions without a compiled kernel to ONNX Runtime.

    %y = fusion.region @r0 (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) attributes {igniter.failed = "no lowering"} {
      %0 = onnx.Relu(%a) : ...
      fusion.yield %0 : tensor<8xf32>
    }

becomes

    %y = onnx.Relu(%x) : ...

A kernel-by-kernel pass in an isolating context (`igniter.isolation`) marks the groups whose unit failed
(`mark_failed`); they do not change until this pass runs. A program with a failed region is inlined with it; if a
program fails itself, its regions become separate custom ops. Each gets a remark with the reason.

The pass runs after the passes with failures of single kernels: `lower-onnx-to-loop`, `schedule-kernels`,
`lower-programs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.analysis.fusion.graph import is_node, node_label
from igniter.dialects.fusion import GroupOp, ProgramOp, RegionOp, program_around
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.isolation import isolation_of
from igniter.remarks import remark
from igniter.transforms.fusion.inline_regions import inline_group

FAILED = "igniter.failed"
"""The attribute of a group whose kernel failed: the reason."""

SAYS = "driver"
"""The source of these remarks: the user needs to know of an inlined region, not of the pass."""


@dataclass(frozen=True)
class InlineFailedRegions(ModulePass):
    """Inlines every region and every program marked as failed."""

    name = "inline-failed-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [p for p in op.walk() if isinstance(p, ProgramOp)]:
            reason = failure_of(program)
            if reason is not None:
                remark(ctx, SAYS, program.label, "missed", f"its regions remain separate ops: {reason}")
                inline_group(program)
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            reason = failure_of(region)
            if reason is not None:
                give_back(ctx, region, reason)


def failure_of(group: GroupOp) -> str | None:
    """Returns the reason why the kernel of a group failed; `None` if it did not."""
    found = group.attributes.get(FAILED)
    return found.data if isinstance(found, StringAttr) else None


def mark_failed(module: ModuleOp, name: str, reason: str) -> None:
    """Marks all groups computed by the kernel `name`, and erases the kernel."""
    for op in list(module.walk()):
        if (isinstance(op, RegionOp) and op.kernel_name == name) or (isinstance(op, ProgramOp) and op.label == name):
            mark_group(op, reason)
    for op in [op for op in module.ops if isinstance(op, (KernelOp, FuncOp)) and op.sym_name.data == name]:
        _erase(op)


def mark_group(group: GroupOp, reason: str) -> None:
    """Marks one group."""
    group.attributes[FAILED] = StringAttr(reason)


def give_back(ctx: Context, region: RegionOp, reason: str) -> None:
    """Inlines a region, and the program around it."""
    if (program := program_around(region)) is not None:
        inline_group(program)
    isolation = isolation_of(ctx)
    isolation.regions.append((region.label, reason))
    isolation.nodes.update((node_label(op), reason) for op in region.block.ops if is_node(op))
    remark(ctx, SAYS, region.label, "missed", f"left to ONNX Runtime: {reason}")
    inline_group(region)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
