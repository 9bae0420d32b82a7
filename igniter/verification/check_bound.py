"""The inputs of a fusion region in a run of its graph, for regions that do not accept random inputs.

The sizes in a region of bound nodes (docs/explanation/values.md) follow from parameters computed by nodes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.fusion import GroupOp
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.frontend import export_model
from igniter.frontend.exact_integers import exact_bytes
from igniter.runtime.session import make_session
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.original import unoptimised

if TYPE_CHECKING:
    import numpy as np


def has_bound_nodes(region: GroupOp) -> bool:
    """True if a region or program contains a node bound to a carrier."""
    return any(is_bound(op) for op in region.walk())


def inputs_in_graph(module: ModuleOp, label: str, feed: Mapping[str, Any]) -> list[np.ndarray[Any, Any]] | None:
    """Returns the operands of a region in a run of the main graph on `feed`; `None` for a region in a subgraph."""
    clone = module.clone()
    graph = main_graph(clone)
    region = next(op for op in clone.walk() if isinstance(op, GroupOp) and op.label == label)
    outermost = region.parent_op()
    last = graph.body.last_op
    if not isinstance(outermost, GraphOp) or last is None:
        return None
    graph.body.insert_op_before(ReturnOp.make(region.inputs), last)
    graph.body.erase_op(last)
    graph.attributes["output_names"] = texts_attr([f"operand_{k}" for k in range(len(region.inputs))])
    graph.attributes.pop("output_info", None)
    data = exact_bytes(export_model(onnx_level(clone)))
    session: Any = make_session(data, graph_optimization_level=unoptimised(), log_severity_level=4)
    return list(session.run(None, dict(feed)))
