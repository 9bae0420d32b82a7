"""What `infer-shapes` notes on a graph besides types: what its inputs were declared as, and what the types assume."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation

from igniter.dialects.onnx.registry import SIGNATURE_ATTRIBUTE
from igniter.dialects.sym import RequirementAttr
from igniter.dialects.sym.requirements import Requirement

ASSUMPTIONS_ATTRIBUTE = "igniter.assumptions"


def graph_assumptions(graph: Operation) -> tuple[Requirement, ...]:
    """What the types of a graph take for granted, as noted on it."""
    noted = graph.attributes.get(ASSUMPTIONS_ATTRIBUTE)
    found = cast("ArrayAttr[Attribute]", noted).data if isinstance(noted, ArrayAttr) else ()
    return tuple(a.data for a in found if isinstance(a, RequirementAttr))


def declared_types(graph: Operation) -> tuple[Attribute, ...]:
    """The types of a graph's inputs as the model gives them."""
    noted = graph.attributes.get(SIGNATURE_ATTRIBUTE)
    if isinstance(noted, ArrayAttr):
        return tuple(cast("ArrayAttr[Attribute]", noted).data)
    return tuple(a.type for a in graph.regions[0].block.args)
