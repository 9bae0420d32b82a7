"""The MACs of com.microsoft attention ops without a lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.rules import operand, operand_dims
from igniter.dialects.onnx.registry import Dims, FlopsRule
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def elements(op: OnnxOp, index: int) -> Expr:
    """Returns the number of elements of an operand; 0 if it is omitted."""
    return ZERO if operand(op, index) is None else product(operand_dims(op, index))


def rows(dims: Dims) -> Expr:
    """Returns the number of rows of a tensor whose last dim is a row."""
    return product(dims[:-1])


def _attention(queries: Expr, keys: Expr, width: Expr) -> Expr:
    """Returns the MACs of scores and weighted values. `queries` counts all sequences; `width` is the total width of all
    heads, for keys and values alike."""
    return queries * keys * (2 * width)


def _past(op: OnnxOp, index: int, dim: int) -> Expr:
    return operand_dims(op, index)[dim] if operand(op, index) is not None else ZERO


def decoder_attention_macs(op: OnnxOp) -> Expr:
    """rows × elements of the weights + queries × keys × 2 × width"""
    query, key = operand_dims(op, 0), operand_dims(op, 1)
    projected = rows(query) * elements(op, 2) + rows(key) * elements(op, 3)
    return projected + _attention(rows(query), key[0] + _past(op, 6, 2), query[2])


def masked_multi_head_macs(op: OnnxOp) -> Expr:
    """queries × (past + keys) × 2 × width"""
    query = operand_dims(op, 0)
    own = operand_dims(op, 1)[1] if operand(op, 1) is not None and len(operand_dims(op, 1)) == 3 else query[1]
    return _attention(query[0] * query[1], _past(op, 5, 2) + own, query[2])


def projected_attention_macs(past: int) -> FlopsRule:
    """Returns the rule of an attention whose queries, keys and values are the product of the input and one matrix."""

    def rule(op: OnnxOp) -> Expr:
        given, weights = operand_dims(op, 0), operand_dims(op, 1)
        keys = given[1] + _past(op, past, 3)
        return rows(given) * product(weights) + _attention(rows(given), keys, floordiv(weights[1], Expr.of(3)))

    return counted("rows × elements of the weights + queries × keys × 2 × width", rule)


def ordered_attention_macs(op: OnnxOp) -> Expr:
    """rows × elements of the weights + queries × keys × 2 × width"""
    given = operand_dims(op, 0)
    projected = rows(given) * sum((elements(op, k) for k in (5, 6, 7)), ZERO)
    return projected + _attention(rows(given), given[1] + _past(op, 18, 3), operand_dims(op, 5)[1])


def packed_attention_macs(op: OnnxOp) -> Expr:
    """tokens × elements of the weights + tokens × longest sequence × 2 × width"""
    given, weights = operand_dims(op, 0), operand_dims(op, 1)
    longest = operand_dims(op, 3)[1]
    return given[0] * product(weights) + _attention(given[0], longest, floordiv(weights[1], Expr.of(3)))


def packed_multi_head_macs(op: OnnxOp) -> Expr:
    """tokens × longest sequence × 2 × width"""
    query = operand_dims(op, 0)
    width = query[1] if len(query) == 2 else query[1] * query[3]
    return _attention(query[0], operand_dims(op, 4)[1], width)


def longformer_macs(weight: int, global_weight: int) -> FlopsRule:
    """Returns the rule of an attention whose queries see a window on both sides."""

    def rule(op: OnnxOp) -> Expr:
        given = operand_dims(op, 0)
        projected = rows(given) * (elements(op, weight) + elements(op, global_weight))
        return projected + _attention(rows(given), Expr.of(2 * int(op.attr("window"))), given[2])

    return counted("rows × elements of the weights + queries × 2 × window × 2 × width", rule)


def grouped_macs(past: int, past_dim: int) -> FlopsRule:
    """Returns the rule of queries of `num_heads` heads, [batch, steps, width], with a cache of
    keys; every key counts."""

    def rule(op: OnnxOp) -> Expr:
        query = operand_dims(op, 0)
        heads, kv_heads = int(op.attr("num_heads")), int(op.attr("kv_num_heads", 0) or 0)
        width = query[-1]
        if operand(op, 1) is None and kv_heads:
            # Keys and values are packed after the queries.
            width = floordiv(width * heads, Expr.of(heads + 2 * kv_heads))
        own = query[1] if len(query) == 3 else ZERO
        return _attention(rows(query), own + _past(op, past, past_dim), width)

    return counted("queries × (past + keys) × 2 × width", rule)


def paged_macs(op: OnnxOp) -> Expr:
    """tokens × entries of the block table × block size × 2 × width"""
    query, cache, table = operand_dims(op, 0), operand_dims(op, 3), operand_dims(op, 7)
    heads, kv_heads = int(op.attr("num_heads")), int(op.attr("kv_num_heads", 0) or 0)
    packed = operand(op, 1) is None and kv_heads
    width = floordiv(query[-1] * heads, Expr.of(heads + 2 * kv_heads)) if packed else query[-1]
    return _attention(rows(query), table[1] * cache[1], width)


def selected_macs(selected: int) -> FlopsRule:
    """Returns the rule of an attention whose queries see selected keys only."""

    def rule(op: OnnxOp) -> Expr:
        query, chosen = operand_dims(op, 0), operand_dims(op, selected)
        return _attention(rows(query), chosen[-1], query[-1])

    return counted("queries × selected keys × 2 × width", rule)


def indexer_macs(past: int) -> FlopsRule:
    """Returns the rule of products of every query with every key, used to select the best keys."""

    def rule(op: OnnxOp) -> Expr:
        query, key = operand_dims(op, 0), operand_dims(op, 1)
        return product(query) * (key[-2] + _past(op, past, -2))

    return counted("elements of the queries × (past + keys)", rule)


def relative_bias_macs(op: OnnxOp) -> Expr:
    """elements of the queries × columns of the weight"""
    return product(operand_dims(op, 0)) * operand_dims(op, 3)[-1]
