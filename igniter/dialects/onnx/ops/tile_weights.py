"""The kernels that transform the weights of convolutions in tiles when a session loads (`make-at-load`).

    weight [3, 3, c, o]  ->  G g G^T, in panels  [point, o ceildiv lanes, c, lane]

The numbers and the order of the operations are those of `MinimalFilter.weight`, in f64, rounded once, and every product
is exact or a factor of the whole. So the panels have the same bits as those of `Transformed.compute`, on every target.

One kernel serves all weights of a model: the channels are symbols. Output channels that fill all panels are `lanes*p`,
which needs no guards.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute

from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.typical import sizes_attr
from igniter.dialects.onnx.lowering import KernelBuilder
from igniter.dialects.onnx.lowering.procedure import Procedure
from igniter.dialects.onnx.ops.minimal_filters import TAPS, MinimalFilter, both_axes
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr

TYPICAL = {"c": 256, "p": 16, "o": 250}
"""The sizes for the schedule."""


def transform_kernel(name: str, tile: MinimalFilter, element: Attribute, lanes: int, full: bool) -> KernelOp:
    """Returns the kernel from weights `[3, 3, c, o]` to panels. With `full` the output channels fill all panels."""
    channels, panels = Expr.of("c"), Expr.of("p")
    outs = panels * lanes if full else Expr.of("o")
    source = tensor_of(element, [TAPS, TAPS, channels, outs])
    panels = panels if full else outs.ceildiv(lanes)
    kernel = KernelBuilder([source])
    result = tensor_of(element, [tile.size**2, panels, channels, lanes])
    p = Procedure(kernel, "tile_weights", kernel.args, [result])
    weight, target = p.buffers
    panel, c = p.axes([panels, channels])
    least = p.const(float(np.finfo(element_type(element).dtype).tiny), f64)
    with p.loop(lanes) as lane:
        o = panel * lanes + lane
        inside = [] if full else [outs - 1 - o]
        taps = [[p.load(weight, [k, n, c, o], guards=inside).to(f64) for n in range(TAPS)] for k in range(TAPS)]
        values = both_axes(taps, tile.of_weight)
        for point, (value, factor) in enumerate(zip(values, tile.factors(), strict=True)):
            made = value * factor
            made = (made.abs() < least).select(0.0, made)
            p.store(made.to(element), target, [point, panel, c, lane])
    found = kernel.finish(name, p.end())
    found.typical = sizes_attr({n: TYPICAL[n] for n in found.symbol_names})
    return found
