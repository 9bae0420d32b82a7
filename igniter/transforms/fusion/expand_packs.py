"""`fusion.unpack` as ONNX nodes, for a region whose packed weight is not there: a region that is run on its own.

%w = fusion.unpack %p columns 1 depth 0 panel 16  ->  panels side by side (Transpose, Reshape), without the columns
                                                      that fill the last one (Slice), in the plain order (Transpose)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from igniter.dialects.fusion import UnpackOp
from igniter.dialects.sym import dims_of, element_of, tensor_of


def expand_unpack(op: UnpackOp) -> None:
    """Replaces a `fusion.unpack` by nodes that compute the same."""
    layout, dims = op.layout, dims_of(op.result.type)
    others = [k for k in range(len(dims)) if k not in (layout.columns, layout.depth)]
    first = len(others)
    batch = list(range(first))
    inner = [first + 1, first + 3] if layout.group > 1 else [first + 1]
    panels = dims_of(op.source.type)[first]
    depth, columns = dims[layout.depth], dims[layout.columns]
    shape = [*(dims[k] for k in others), depth, panels * layout.panel]
    element = element_of(op.result.type)

    def constant(values: Sequence[int]) -> SSAValue:
        import numpy as np

        from igniter.dialects.onnx.base import make_constant

        made = make_constant(np.array(values, np.int64))
        _before(op, made)
        return made.results[0]

    def node(name: str, inputs: Sequence[SSAValue], result: Attribute, **attributes: Any) -> SSAValue:
        from igniter.dialects.onnx.base import make_op

        made = make_op(name, inputs, [result], attributes)
        _before(op, made)
        return made.results[0]

    packed = dims_of(op.source.type)
    order = [*batch, *inner, first, first + 2]
    value = node("Transpose", [op.source], tensor_of(element, [packed[k] for k in order]), perm=order)
    value = node("Reshape", [value, constant([d.constant or 0 for d in shape])], tensor_of(element, shape))
    whole = [constant([n]) for n in (0, columns.constant or 0, first + 1)]
    value = node("Slice", [value, *whole], tensor_of(element, [*shape[:-1], columns]))
    place = {layout.depth: first, layout.columns: first + 1, **{k: n for n, k in enumerate(others)}}
    value = node("Transpose", [value], op.result.type, perm=[place[k] for k in range(len(dims))])
    op.result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _before(op: UnpackOp, made: Any) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
