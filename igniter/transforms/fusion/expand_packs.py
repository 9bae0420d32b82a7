"""Expands `fusion.unpack` to ONNX nodes, for a region without its packed weight, such as a region run on its own.

    %w = fusion.unpack %p [1 floordiv 16, 0, 1 mod 16]

becomes a Transpose to place the parts of each dim side by side in the plain order, a Reshape to join them, and a Slice
to remove the padding of the last block. If the weight is stored as words, nodes first extract the bytes: each is
shifted down, and the higher bits are removed (BitShift, Mod, Cast).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.fusion import UnpackOp
from igniter.dialects.layouts import WORD
from igniter.dialects.onnx.base import make_constant, make_op
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv

UINT8 = 2
"""The number of the type in ONNX."""


def expand_unpack(op: UnpackOp) -> None:
    """Replaces a `fusion.unpack` by equivalent nodes."""
    layout, dims = op.layout, dims_of(op.result.type)
    stored, plain = dims_of(op.source.type), dims
    if layout.words:
        stored = (*stored, Expr.of(WORD))
    if layout.divided is not None:
        dim, blocks = layout.divided
        dims = (*dims[:dim], floordiv(dims[dim], Expr.of(blocks)), Expr.of(blocks), *dims[dim + 1 :])
        layout = layout.of_blocks()
    order = layout.order(len(dims))
    size = {part.dim: part.size for part in layout.parts}
    whole = [dim.ceildiv(size[k]) * size[k] if size[k] else dim for k, dim in enumerate(dims)]
    cut = [k for k, dim in enumerate(dims) if whole[k] != dim]
    element = element_of(op.result.type)

    def constant(values: Sequence[int], dtype: str = "int64") -> SSAValue:
        made = make_constant(np.array(values, dtype))
        _before(op, made)
        return made.results[0]

    def node(name: str, inputs: Sequence[SSAValue], result: Attribute, **attributes: Any) -> SSAValue:
        made = make_op(name, inputs, [result], attributes)
        _before(op, made)
        return made.results[0]

    value = op.source
    if layout.words:
        word = element_of(value.type)
        each, all_of = tensor_of(word, (*stored[:-1], ONE)), tensor_of(word, stored)
        # A Reshape is the same in every opset with BitShift; an Unsqueeze is not.
        value = node("Reshape", [value, constant([*(d.constant or 0 for d in stored[:-1]), 1])], each)
        value = node("BitShift", [value, constant(range(0, 8 * WORD, 8), "uint32")], all_of, direction="RIGHT")
        value = node("Mod", [value, constant([256], "uint32")], all_of)
        value = node("Cast", [value], tensor_of(element, stored), to=UINT8)
    value = node("Transpose", [value], tensor_of(element, [stored[k] for k in order]), perm=order)
    value = node("Reshape", [value, constant([d.constant or 0 for d in whole])], tensor_of(element, whole))
    if cut:
        ends = [constant([dims[k].constant or 0 for k in cut]), constant(cut)]
        value = node("Slice", [value, constant([0] * len(cut)), *ends], tensor_of(element, dims))
    if dims != plain:
        value = node("Reshape", [value, constant([d.constant or 0 for d in plain])], op.result.type)
    op.result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _before(op: UnpackOp, made: Any) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
