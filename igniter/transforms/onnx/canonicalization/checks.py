"""The checks of removed nodes.

A Reshape to [3, -1] checks the divisibility of the number of elements by 3, and rejects a computed dim of 0; an Expand
checks its operand for broadcasting. If such a node is removed, the check becomes an assumption of the graph, checked by
kernels (`infer-shapes`). A nested graph may not run, so it has no assumptions: nodes with checks stay there.
"""

from __future__ import annotations

from igniter.analysis.fusion.graph import node_label
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.onnx.structure import GraphOp
from igniter.transforms.onnx.infer_shapes import assume


def leave_checks(*nodes: OnnxOp) -> bool:
    """Records the requirements of removed nodes on the graph. False if it is impossible; the nodes must then stay."""
    found = [r.at(node_label(node)) for node in nodes for r in node_requirements(node)]
    graph = nodes[0].parent_op()
    if found and not isinstance(graph, GraphOp):
        return False
    if found and graph is not None:
        assume(graph, found)
    return True
