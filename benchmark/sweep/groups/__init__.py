"""The graphs of the sweep, by group."""

from __future__ import annotations

from benchmark.sweep.graph import Graph
from benchmark.sweep.groups import (
    attention,
    blocks,
    conv,
    deconv,
    moves,
    pointwise,
    pools,
    products,
    quantised,
    recurrent,
    reductions,
    rows,
    subnormal,
)

MODULES = (
    conv,
    deconv,
    pools,
    products,
    attention,
    rows,
    reductions,
    moves,
    pointwise,
    quantised,
    recurrent,
    blocks,
    subnormal,
)
GROUPS = tuple(module.GROUP for module in MODULES)


def all_graphs() -> list[Graph]:
    """Returns every graph, in the order of the groups."""
    return [graph for module in MODULES for graph in module.graphs()]
