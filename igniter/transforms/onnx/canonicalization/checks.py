"""What nodes that are rewritten away have checked.

A Reshape to [3, -1] checks that 3 divides the elements, and that a computed dim of it is not 0; an Expand, that what it
is given broadcasts. Where such a node goes, that becomes an assumption of the graph, which kernels check
(`infer-shapes`). A graph in a graph may not run, and has no assumptions: what checks something stays there.
"""

from __future__ import annotations

from igniter.analysis.fusion.graph import node_label
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.onnx.structure import GraphOp
from igniter.transforms.onnx.infer_shapes import assume


def leave_checks(*nodes: OnnxOp) -> bool:
    """Notes on the graph what nodes that go require of a run; whether that is possible, so that they may go."""
    found = [r.at(node_label(node)) for node in nodes for r in node_requirements(node)]
    graph = nodes[0].parent_op()
    if found and not isinstance(graph, GraphOp):
        return False
    if found and graph is not None:
        assume(graph, found)
    return True
