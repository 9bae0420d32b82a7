"""What a program does, step by step: which nodes each kernel computes, in how many operations, on how many bytes.

Both figures are expressions over the symbols of the graph. The bytes are those of a step's operands and results, each
once: what must pass through memory where no cache holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Operation

from igniter.analysis.expr import ZERO, Expr, product
from igniter.analysis.fusion_cost import VIEWS, op_name
from igniter.analysis.fusion_graph import is_node, node_label
from igniter.dialects.fusion import ProgramOp, RegionOp
from igniter.dialects.sym import dims_of, element_of


@dataclass(frozen=True)
class Step:
    """One call of a kernel."""

    region: str
    kernel: str
    nodes: tuple[str, ...]
    """What the nodes of the region are called in the model."""
    ops: tuple[str, ...]
    """The ops of these nodes."""
    flops: Expr
    bytes: Expr

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `parse_expr` reads the expressions."""
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
        """JSON values, for reports."""
        return {"program": self.program, "steps": [step.to_dict() for step in self.steps]}


def program_steps(program: ProgramOp) -> ProgramSteps:
    """The steps of a program."""
    return ProgramSteps(program.label, tuple(_step(region) for region in program.calls))


def _step(region: RegionOp) -> Step:
    from igniter.dialects.onnx.base import OnnxOp

    nodes = [op for op in region.block.ops if isinstance(op, OnnxOp) and is_node(op)]
    flops = sum((_flops(op) for op in nodes), ZERO)
    moved = sum((_bytes(value.type) for value in (*region.inputs, *region.results)), ZERO)
    ops = tuple(op_name(op) for op in nodes)
    return Step(region.label, region.kernel_name or "", tuple(map(node_label, nodes)), ops, flops, moved)


def _flops(op: Operation) -> Expr:
    """The operations of a node: what its spec says, else one for every element of its largest result."""
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.ops import spec_of

    if op_name(op) in VIEWS:
        return ZERO
    spec = spec_of(op) if isinstance(op, OnnxOp) else None
    if isinstance(op, OnnxOp) and spec is not None and spec.flops is not None:
        return spec.flops(op)
    results = [r for r in op.results if not isinstance(r.type, NoneType)]
    return product(dims_of(results[0].type)) if results else ZERO


def _bytes(tensor: Attribute) -> Expr:
    from igniter.dialects.loop import element_bytes

    return product(dims_of(tensor)) * element_bytes(element_of(tensor))
