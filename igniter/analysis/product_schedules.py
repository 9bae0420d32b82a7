"""Schedules of contractions: tiles for micro-kernels, and the nests that work on a tile while it is in the cache.

The loops are batch axes, groups of panels of columns, tiles of rows: a group of panels is read from memory once and
stays in the second-level cache while all rows go by, as in Goto and van de Geijn (2008). Together they are one loop of
tasks for the thread pool. Nests of the same axes that read the sums point by point (a bias, an activation, a residual)
run on each tile as it is finished.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from igniter.analysis.contractions import Contraction, contraction_of, panel_lanes, tile_size
from igniter.analysis.scheduling import Group, Machine, as_schedule, vector_width
from igniter.dialects.loop import NestOp
from igniter.dialects.sym import element_of

SMALLEST_COLUMNS = 4
"""Fewer columns than this fill too little of a panel."""


def worthwhile_contraction(nest: NestOp) -> Contraction | None:
    """The contraction that a nest is, where micro-kernels are the way to compute it."""
    if nest.schedule is not None:
        return None
    found = contraction_of(nest)
    if isinstance(found, str):
        return None
    columns = nest.axis(found.columns).extent.constant
    return None if columns is not None and columns < SMALLEST_COLUMNS else found


def product_schedules(
    group: Group, contraction: Contraction, label: str, machine: Machine
) -> dict[str, DictionaryAttr]:
    """The schedules of a contraction and of its epilogue, by the nests' labels."""
    anchor = group.members[0]
    columns = anchor.axis(contraction.columns).extent.constant
    lanes = panel_lanes(element_of(anchor.outputs[0].type))
    panels = None if columns is None else -(-columns // lanes)
    height, width = tile_size(machine.vector_bytes, machine.registers, panels)
    product: dict[str, Attribute] = {
        "columns": StringAttr(contraction.columns),
        "depth": StringAttr(contraction.depth),
        "tile": ArrayAttr([IntegerAttr(height, i64), IntegerAttr(width, i64)]),
    }
    if contraction.rows is not None:
        product["rows"] = StringAttr(contraction.rows)
    found: dict[str, DictionaryAttr] = {}
    for nest in group.members:
        names = {of[anchor.label]: of[nest.label] for _, of in group.levels}
        tiled = [names[n] for n in (contraction.columns, contraction.rows) if n is not None]
        outer = [*(names[n] for n in contraction.batch), *tiled]
        loops: dict[str, dict[str, Attribute]] = {n: {"fuse": StringAttr(label)} for n in outer}
        loops[outer[0]]["threads"] = UnitAttr()
        sizes = (width * lanes, height)
        for name, size in zip(tiled, sizes, strict=False):
            loops[name]["block"] = IntegerAttr(size, i64)
        lanes_here = vector_width(nest, machine, tiled[0])
        loops[tiled[0]]["inner"] = DictionaryAttr({"vector": IntegerAttr(lanes_here, i64)})
        more = {"product": DictionaryAttr(product)} if nest is anchor else None
        found[nest.label] = as_schedule([*outer, *tiled[::-1]], loops, more)
    return found
