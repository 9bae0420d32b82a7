"""Facts recorded on a graph by `infer-shapes` besides types: the declared types of its inputs, and the assumptions."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation

from igniter.dialects.onnx.registry import SIGNATURE_ATTRIBUTE
from igniter.dialects.sym import RequirementAttr
from igniter.dialects.sym.requirements import Requirement

ASSUMPTIONS_ATTRIBUTE = "igniter.assumptions"


def graph_assumptions(graph: Operation) -> tuple[Requirement, ...]:
    """Returns the assumptions of a graph's types, as recorded on it."""
    noted = graph.attributes.get(ASSUMPTIONS_ATTRIBUTE)
    found = cast("ArrayAttr[Attribute]", noted).data if isinstance(noted, ArrayAttr) else ()
    return tuple(a.data for a in found if isinstance(a, RequirementAttr))


def declared_types(graph: Operation) -> tuple[Attribute, ...]:
    """Returns the types of a graph's inputs in the model."""
    noted = graph.attributes.get(SIGNATURE_ATTRIBUTE)
    if isinstance(noted, ArrayAttr):
        return tuple(cast("ArrayAttr[Attribute]", noted).data)
    return tuple(a.type for a in graph.regions[0].block.args)
