"""Reads of neighbouring dims by the parts of one axis: they become reads of one dim.

    %a = loop.read %x[m floordiv 14, m mod 14, d] : tensor<14x14x64xf32>
becomes
    %v = loop.view %x : tensor<14x14x64xf32> to tensor<196x64xf32>
    %a = loop.read %v[m, d]

Axes that were joined leave such reads where nothing else depends on the parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from igniter.dialects.loop import NestOp, ViewOp
from igniter.dialects.sym import DimsAttr, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import Expr, floordiv, mod
from igniter.dialects.sym.ranges import Ranges, simplify


def join_reads(nest: NestOp) -> None:
    """Makes every read of a nest by the parts of an expression a read by the expression."""
    block, ranges = nest.parent, nest.axes_attr.ranges
    assert block is not None
    views: dict[tuple[SSAValue, tuple[Expr, ...]], SSAValue] = {}
    for read in nest.reads:
        dims, subscripts = joined_parts(dims_of(read.source.type), read.subscripts, ranges)
        if len(dims) == len(read.subscripts):
            continue
        source = read.source.owner.source if isinstance(read.source.owner, ViewOp) else read.source
        key, wanted = (source, tuple(dims)), tensor_of(element_of(source.type), dims)
        if wanted == source.type:
            views[key] = source
        if key not in views:
            view = ViewOp(source, wanted)
            block.insert_op_before(view, nest)
            views[key] = view.result
        read.operands[0] = views[key]
        read.subscripts_attr = DimsAttr(subscripts)


def joined_parts(dims: Sequence[Expr], subscripts: Sequence[Expr], ranges: Ranges) -> tuple[list[Expr], list[Expr]]:
    """Returns dims and subscripts of the same elements, with each pair `x floordiv c, x mod c` of neighbours, the
    second in a dim of size `c`, as one."""
    new_dims, new = [dims[-1]], [subscripts[-1]]
    for dim, left in zip(reversed(dims[:-1]), reversed(subscripts[:-1]), strict=True):
        both = _whole(left, new[0], new_dims[0])
        if both is None:
            new_dims.insert(0, dim)
            new.insert(0, left)
        else:
            new_dims[0] = dim * new_dims[0]
            new[0] = simplify(both, ranges)
    return new_dims, new


def _whole(left: Expr, right: Expr, size: Expr) -> Expr | None:
    """Returns `x` for `x floordiv size` and `x mod size`, `x mod (size*n)` for `(x floordiv size) mod n` and the same;
    `None` for others."""
    call = right.call
    if call is None or call.fn != "mod" or call.args[1] != size:
        return None
    x = call.args[0]
    if left == floordiv(x, size):
        return x
    outer = left.call
    if outer is not None and outer.fn == "mod" and outer.args[0] == floordiv(x, size):
        return mod(x, outer.args[1] * size)
    return None
