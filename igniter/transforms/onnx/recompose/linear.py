"""Linear layers flattened by exporters to two dims for Gemm, and products of a part of a constant.

    %a = Reshape(%x)          // batch*seq x 768                %a = MatMul(%x, %w)
    %b = Gemm(%a, %w, %c)                              ->       %y = Add(%a, %c)
    %y = Reshape(%b)          // batch x seq x 3072

MatMul takes the dims directly: no view, and no computed target for it. The bias is one addition after the sum in both
forms. Conditions: alpha and beta are 1, A is not transposed, B is a constant (transposed at compile time if Gemm
transposes it), the bias is a row, and one view with a constant target gives x the dims of the result except the last.

Rows of a constant that depend on a dim, such as the relative positions of DeBERTa, are taken after the product, which
is then constant:

    %e = Slice(%table, ..)      // rows         %t = MatMul(%table, %w)    // computed at compile time
    %y = MatMul(%e, %w)                   ->    %y = Slice(%t, ..)

The table has at most LARGEST_TABLE rows, and a view that adds a leading dim may come between the two.
"""

from __future__ import annotations

from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import product
from igniter.transforms.onnx.canonicalization.views import view_of
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    element,
    ints_of,
    known_dims,
    operand,
)
from igniter.transforms.onnx.recompose.matching import is_closed


def form_linear(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a Gemm between two views."""
    gemm = defining(op.operands[0], "Gemm")
    view = defining(gemm.operands[0], "Reshape") if gemm is not None else None
    if gemm is None or view is None or not is_closed(op, [gemm]) or op.opset < 13:
        return None
    if gemm.attr("alpha") != 1 or gemm.attr("beta") != 1 or gemm.attr("transA"):
        return None
    x, w, bias = view.operands[0], gemm.operands[1], operand(gemm, 2)
    source, flat, weight = known_dims(x), known_dims(view.results[0]), constant_weight(w)
    result, kind = known_dims(op.results[0]), element(op.results[0])
    if source is None or flat is None or not result or weight is None or kind is None:
        return None
    size = weight.shape[0 if gemm.attr("transB") else 1]
    if result[-1] != size or product(result[:-1]) != flat[0]:
        return None
    # A bias of two dims may depend on the row.
    bias_dims = known_dims(bias) if bias is not None else ()
    if bias_dims is None or len(bias_dims) > 1:
        return None
    rows = view_of(rw, x, tensor_of(kind, (*result[:-1], flat[1])), opset=op.opset)
    if rows is None:
        return None
    if gemm.attr("transB"):
        types = [tensor_of(weight.element_type, weight.shape[::-1])]
        w = rw.op("Transpose", [w], types, {"perm": [1, 0]}).results[0]
    sums = rw.op("MatMul", [rows, w], [op.results[0].type])
    if bias is None:
        return sums.results
    return rw.op("Add", [sums.results[0], bias], [op.results[0].type]).results


LARGEST_TABLE = 4096


def multiply_table(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a product of rows of a constant."""
    view = defining(op.operands[0], "Unsqueeze")
    rows = defining(view.operands[0] if view is not None else op.operands[0], "Slice")
    if rows is None or op.opset < 13:
        return None
    table, weight = constant_weight(rows.operands[0]), constant_weight(op.operands[1])
    if table is None or weight is None or len(table.shape) != 2 or len(weight.shape) != 2:
        return None
    taken, result = known_dims(rows.results[0]), known_dims(op.results[0])
    axes, places = ints_of(operand(rows, 3)), ints_of(operand(view, 1)) if view is not None else [0]
    if axes not in ([0], [-2]) or places != [0] or taken is None or result is None or table.shape[0] > LARGEST_TABLE:
        return None
    kind, columns = element(op.results[0]), weight.shape[1]
    if kind is None or table.shape[1] != weight.shape[0] or not (table.element_type == weight.element_type == kind):
        return None
    whole = rw.op("MatMul", [rows.operands[0], op.operands[1]], [tensor_of(kind, (table.shape[0], columns))])
    part = rw.op("Slice", [whole.results[0], *rows.operands[1:]], [tensor_of(kind, (taken[0], columns))])
    noted(rows, part)
    if view is None:
        return part.results
    widened = rw.op("Unsqueeze", [part.results[0], view.operands[1]], [op.results[0].type])
    noted(view, widened)
    return widened.results


def noted(old: OnnxOp, new: OnnxOp) -> None:
    """Copies the values recorded by `infer-shapes` to a node with the same operands."""
    found = old.attributes.get(VALUES_ATTRIBUTE)
    if found is not None:
        new.attributes[VALUES_ATTRIBUTE] = found


RULES: Rules = {"Reshape": [form_linear], "MatMul": [multiply_table]}
