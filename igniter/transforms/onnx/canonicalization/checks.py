"""The checks of nodes that are rewritten away.

A Reshape to [3, -1] checks that 3 divides the number of elements, and that a computed dim is not 0; an Expand checks
that its operand broadcasts. If such a node is removed, the check becomes an assumption of the graph, which kernels
check (`infer-shapes`). A nested graph may not run, so it has no assumptions: nodes with checks stay there.
"""

from __future__ import annotations

from igniter.analysis.fusion.graph import node_label
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.onnx.structure import GraphOp
from igniter.transforms.onnx.infer_shapes import assume


def leave_checks(*nodes: OnnxOp) -> bool:
    """Records the requirements of removed nodes on the graph. False if that is impossible, so that the nodes must
    stay."""
    found = [r.at(node_label(node)) for node in nodes for r in node_requirements(node)]
    graph = nodes[0].parent_op()
    if found and not isinstance(graph, GraphOp):
        return False
    if found and graph is not None:
        assume(graph, found)
    return True
