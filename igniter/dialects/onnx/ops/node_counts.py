"""The costs of ONNX ops without a lowering: these specs contain counts only.

Ops with graphs (If, Loop, Scan) compute nothing themselves; the profile counts each graph as often as it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from igniter.dialects.onnx.ops.counts import counted, no_arithmetic, times, twice
from igniter.dialects.onnx.ops.pointwise import EXP, operand_count, result_count
from igniter.dialects.onnx.ops.rules import operand_dims
from igniter.dialects.onnx.ops.selection import suppression_flops
from igniter.dialects.onnx.registry import FlopsRule, OpSpec
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

DEQUANTIZE, QUANTIZE = 3, 8
"""The costs of dequantising and of quantising an element, as in DequantizeLinear and QuantizeLinear."""

GRAPHS = no_arithmetic("the nodes of its graphs are counted for each run")
TEXT = no_arithmetic("it works on strings")


def per_result(cost: int, why: str = "") -> FlopsRule:
    """Returns the rule of `cost` for each element of the first result."""
    text = times(cost, "elements of the result")
    return counted(f"{text}: {why}" if why else text, lambda op: result_count(op) * cost)


def per_operand(cost: int, why: str = "", index: int = 0) -> FlopsRule:
    """Returns the rule of `cost` for each element of an operand."""
    of = "the input" if index == 0 else f"input {index}"
    text = times(cost, f"elements of {of}")
    return counted(f"{text}: {why}" if why else text, lambda op: product(operand_dims(op, index)) * cost)


def quantized_conv_macs(op: OnnxOp) -> Expr:
    """elements of the result × elements of a window in the channels of a group"""
    return product(dims_of(op.results[0].type)) * product(operand_dims(op, 3)[1:])


def quantized_matmul_macs(op: OnnxOp) -> Expr:
    """elements of the result × length of the summed dim"""
    return product(dims_of(op.results[0].type)) * operand_dims(op, 0)[-1]


def _flex_attention_macs(op: OnnxOp) -> Expr:
    """batch × heads × queries × keys × (head size + head size of the values)"""
    query, key, value = (operand_dims(op, k) for k in range(3))
    return product(query[:3]) * key[2] * (query[3] + value[3])


def _flex_attention_scores(op: OnnxOp) -> Expr:
    """Returns one exponential per score, with the cost of Softmax."""
    return product(operand_dims(op, 0)[:3]) * operand_dims(op, 1)[2] * (EXP + 4)


def _optimizer(cost: int) -> FlopsRule:
    def rule(op: OnnxOp) -> Expr:
        # After the rate and the step come tensors, gradients and states, the same number of each.
        groups = {"Adagrad": 3, "Momentum": 3, "Adam": 4}[op.op_type]
        return cost * sum(
            (product(operand_dims(op, k)) for k in range(2, 2 + (len(op.inputs) - 2) // groups)), Expr.of(0)
        )

    return counted(f"{cost} × elements of the trained tensors", rule)


def _counts(rule: FlopsRule, *names: str) -> list[OpSpec]:
    return [OpSpec(name, flops=rule) for name in names]


def _quadratic(op: OnnxOp) -> Expr:
    return operand_count(op) * max(1, len(op.attr("ngram_indexes") or ()).bit_length())


SPECS: list[OpSpec] = [
    *_counts(GRAPHS, "If", "Loop", "Scan", "SequenceMap"),
    *_counts(no_arithmetic("it is a value"), "Constant"),
    *_counts(no_arithmetic(), "Compress", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
    *_counts(no_arithmetic(), "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
    *_counts(no_arithmetic(), "SequenceLength", "SplitToSequence"),
    *_counts(no_arithmetic(), *(f"ai.onnx.ml.{n}" for n in ("CastMap", "CategoryMapper", "DictVectorizer", "ZipMap"))),
    *_counts(TEXT, "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"),
    OpSpec("ImageDecoder", flops=per_result(20, "an inverse transform of blocks, and of colours")),
    OpSpec("NonMaxSuppression", flops=suppression_flops),
    OpSpec("NonZero", flops=per_operand(1, "comparisons")),
    OpSpec("Unique", flops=per_operand(32, "comparisons of a sort")),
    OpSpec("TfIdfVectorizer", flops=counted("elements of the input × steps of a search among the n-grams", _quadratic)),
    OpSpec(
        "QLinearConv",
        macs=quantized_conv_macs,
        flops=twice(quantized_conv_macs, "8 × elements of the result", per_result(QUANTIZE)),
    ),
    OpSpec(
        "QLinearMatMul",
        macs=quantized_matmul_macs,
        flops=twice(quantized_matmul_macs, "8 × elements of the result", per_result(QUANTIZE)),
    ),
    OpSpec(
        "ai.onnx.preview.FlexAttention",
        macs=_flex_attention_macs,
        flops=twice(_flex_attention_macs, "14 × scores", _flex_attention_scores),
    ),
    OpSpec("ai.onnx.preview.training.Adagrad", flops=_optimizer(8)),
    OpSpec("ai.onnx.preview.training.Adam", flops=_optimizer(14)),
    OpSpec("ai.onnx.preview.training.Momentum", flops=_optimizer(5)),
    OpSpec("ai.onnx.preview.training.Gradient", flops=GRAPHS),
]
