"""The windows of pools on a GPU: reductions whose elements lie beside each other for neighbouring results.

    max [b, i, j, r: reduction 3, s: reduction 3]  reads x[b, 2*i + r - 1, 2*j + s - 1]

A program folds a window element by element, unrolled, on a block of results: each element of the window is one load of
a whole block, which is contiguous or nearly so. What windows share comes from the cache. Lanes along the window itself
would be few, and padded to powers of two.
"""

from __future__ import annotations

from math import prod

from igniter.dialects.sym.expr import ONE, Expr
from igniter.schedules.launch_groups import LaunchGroup

MOST_UNROLLED = 16
"""The most elements of a window that a program folds one by one: 4 x 4."""


def window_dims(group: LaunchGroup) -> frozenset[str]:
    """Returns the dims of small windows that a launch folds."""
    found: dict[str, int] = {}
    for nest in group.members:
        axes = {axis.name: axis for axis in nest.axes}
        for read in nest.reads:
            for subscript in read.subscripts:
                inside = [axes[name] for name in subscript.symbols if name in axes]
                kinds = {axis.kind for axis in inside}
                for axis in inside:
                    extent = axis.extent.constant
                    if axis.kind == "reduction" and kinds == {"parallel", "reduction"} and extent is not None:
                        found[group.names[nest][axis.name]] = extent
    others = {dim for dim in group.reduced if group.dims[dim] != ONE} - found.keys()
    if others or group.attention is not None or prod(found.values()) > MOST_UNROLLED:
        return frozenset()
    return frozenset(found)


def fullest(extent: Expr, most: int) -> int:
    """Returns the lanes, at most `most`, with the least padding; of equal ones the largest. A lane of padding loads a
    whole window for nothing."""
    known = extent.constant
    if known is None:
        return most
    candidates = [1 << k for k in range(most.bit_length()) if (1 << k) < 2 * known]
    return min(candidates, key=lambda lanes: (-(-known // lanes) * lanes, -lanes))
