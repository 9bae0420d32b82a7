"""What a fusion region reads in a run of its graph: the inputs for regions that random ones do not fit.

The sizes in a region of bound nodes (docs/values.md) follow from parameters that nodes in front of it compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.fusion import GroupOp
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.runtime.session import make_session
from igniter.runtime.verification.original import unoptimised

if TYPE_CHECKING:
    import numpy as np


def has_bound_nodes(region: GroupOp) -> bool:
    """Whether a region or program holds a node that is bound to a carrier."""
    return any(is_bound(op) for op in region.walk())


def inputs_in_graph(module: ModuleOp, label: str, feed: Mapping[str, Any]) -> list[np.ndarray[Any, Any]] | None:
    """The operands of a region of the main graph where that is run on `feed`; `None` for a region in a subgraph."""
    from igniter.frontend import export_model
    from igniter.frontend.exact_integers import exact_bytes
    from igniter.transforms.fusion.inline_regions import onnx_level

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
