"""The steps of a program: the nodes of each kernel, their number of operations, and their bytes.

Both figures are expressions over the symbols of the graph. The bytes are those of a step's operands and results, each
once: the traffic to memory without caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from igniter.analysis.fusion.graph import is_node, node_label
from igniter.analysis.fusion.program_loops import LoopForm, loop_form
from igniter.analysis.onnx.op_counts import flops_or_elements, known_sum
from igniter.dialects.fusion import ProgramOp, RegionOp, is_step
from igniter.dialects.loop import stored_bytes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.sym.expr import ONE, ZERO, Expr


@dataclass(frozen=True)
class Step:
    """One call of a kernel, or a loop of calls; a loop has the name of its node, and no kernel."""

    region: str
    kernel: str
    nodes: tuple[str, ...]
    """The names of the region's nodes in the model."""
    ops: tuple[str, ...]
    """The ops of these nodes."""
    flops: Expr
    bytes: Expr

    def to_dict(self) -> dict[str, Any]:
        """Converts the step to JSON values; `parse_expr` reads the expressions."""
        return {
            "region": self.region,
            "kernel": self.kernel,
            "nodes": list(self.nodes),
            "ops": list(self.ops),
            "flops": str(self.flops),
            "bytes": str(self.bytes),
        }


@dataclass(frozen=True)
class ProgramSteps:
    """The calls of a program, in order."""

    program: str
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Converts the steps to JSON values, for reports."""
        return {"program": self.program, "steps": [step.to_dict() for step in self.steps]}


def program_steps(program: ProgramOp) -> ProgramSteps:
    """Returns the steps of a program."""
    return ProgramSteps(program.label, tuple(_step(op) for op in program.steps))


def _step(op: Operation) -> Step:
    if not isinstance(op, RegionOp):
        assert isinstance(op, OnnxOp)
        return _loop_step(op)
    return region_step(op)


def region_step(op: RegionOp) -> Step:
    """Returns the call of a region's kernel."""
    nodes = [node for node in op.block.ops if isinstance(node, OnnxOp) and is_node(node)]
    flops = known_sum(flops_or_elements(node) for node in nodes)
    moved = known_sum(stored_bytes(value.type) for value in (*op.inputs, *op.results))
    ops = tuple(op_name(node) for node in nodes)
    return Step(op.label, op.kernel_name or "", tuple(map(node_label, nodes)), ops, flops, moved)


def _loop_step(op: OnnxOp) -> Step:
    """Returns a loop as a step: the body's figures times its trip count, if that is known."""
    form = loop_form(op)
    count = form.count if isinstance(form, LoopForm) and form.count is not None else ONE
    inner = [_step(step) for region in op.regions for step in region.block.ops if is_step(step)]
    nodes = tuple(node for step in inner for node in step.nodes)
    ops = tuple(name for step in inner for name in step.ops)
    flops = count * sum((step.flops for step in inner), ZERO)
    moved = count * sum((step.bytes for step in inner), ZERO)
    return Step(node_label(op), "", (node_label(op), *nodes), (op.qualified_name, *ops), flops, moved)
