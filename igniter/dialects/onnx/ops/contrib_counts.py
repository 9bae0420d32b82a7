"""The costs of com.microsoft ops without a lowering: these specs contain counts only.

Rules prefer the dims of operands: most of these ops have no shape rule, so the dims of their results are known only if
the model declares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from igniter.dialects.onnx.ops.contrib_attention_counts import (
    decoder_attention_macs,
    elements,
    grouped_macs,
    indexer_macs,
    longformer_macs,
    masked_multi_head_macs,
    ordered_attention_macs,
    packed_attention_macs,
    packed_multi_head_macs,
    paged_macs,
    projected_attention_macs,
    relative_bias_macs,
    rows,
    selected_macs,
)
from igniter.dialects.onnx.ops.contrib_shapes import INFER
from igniter.dialects.onnx.ops.convolution import conv_macs
from igniter.dialects.onnx.ops.counts import counted, no_arithmetic, twice
from igniter.dialects.onnx.ops.node_counts import (
    DEQUANTIZE,
    GRAPHS,
    QUANTIZE,
    TEXT,
    per_operand,
    per_result,
    quantized_conv_macs,
)
from igniter.dialects.onnx.ops.pointwise import EXP, result_count
from igniter.dialects.onnx.ops.pooling import window_flops
from igniter.dialects.onnx.ops.recurrent import gates_flops
from igniter.dialects.onnx.ops.rules import (
    known,
    operand,
    operand_dims,
)
from igniter.dialects.onnx.ops.signal import quadratic_flops
from igniter.dialects.onnx.ops.transposed import transposed_macs
from igniter.dialects.onnx.registry import FlopsRule, OpSpec
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def _spec(name: str, flops: FlopsRule, macs: FlopsRule | None = None) -> OpSpec:
    return OpSpec(f"com.microsoft.{name}", infer=INFER.get(name), macs=macs, flops=flops)


def _product(name: str, macs: FlopsRule, text: str = "", rest: FlopsRule | None = None) -> OpSpec:
    """Returns the spec of a product, optionally with a further operation."""
    return _spec(name, twice(macs, text, rest), macs)


def _each(rule: FlopsRule, *names: str) -> list[OpSpec]:
    return [_spec(name, rule) for name in names]


def _all_inputs(op: OnnxOp) -> Expr:
    return sum((elements(op, k) for k in range(len(op.inputs))), ZERO)


# -- products ---------------------------------------------------------------------------------------------------------


def _matmul(a: int = 0, b: int = 1) -> FlopsRule:
    """Returns the rule of a product of two operands, either of which may be transposed."""

    def rule(op: OnnxOp) -> Expr:
        left, right = operand_dims(op, a), operand_dims(op, b)
        columns = right[-2 if op.attr("transB", 0) and len(right) > 1 else -1] if len(right) > 1 else ONE
        # A stack on the right multiplies the count only if the left operand is a single matrix.
        stack = product(right[:-2]) if len(left) <= 2 < len(right) else ONE
        return product(left) * columns * stack

    return counted("rows × columns × length of the summed dim", rule)


def _rows_by(text: str, *attributes: str, of: int = 0) -> FlopsRule:
    """Returns the rule of rows of the input times packed weights with sizes in attributes."""

    def rule(op: OnnxOp) -> Expr:
        return rows(operand_dims(op, of)) * int(op.attr("K")) * sum(int(op.attr(n)) for n in attributes)

    return counted(f"rows × {text}", rule)


def _by_weights(text: str, *weights: int) -> FlopsRule:
    """Returns the rule of each row of the input times every element of the weights."""

    def rule(op: OnnxOp) -> Expr:
        return rows(operand_dims(op, 0)) * sum((elements(op, k) for k in weights), ZERO)

    return counted(f"rows × elements of {text}", rule)


def _lora_macs(op: OnnxOp) -> Expr:
    """rows × (K × N + elements of the two narrow matrices)"""
    packed = 8 // int(op.attr("lora_bits", 4) or 4)
    narrow = (elements(op, 3) + elements(op, 5)) * packed
    return rows(operand_dims(op, 0)) * (int(op.attr("K")) * int(op.attr("N")) + narrow)


def _fp4_macs(op: OnnxOp) -> Expr:
    """rows × columns × length of the summed dim; two elements of the weights are in a byte"""
    return product(operand_dims(op, 0)) * operand_dims(op, 1)[0]


def _fpq4_macs(op: OnnxOp) -> Expr:
    """rows × columns × length of the summed dim, by the shape that its third input gives"""
    shape = known(op, 2)
    if shape is None:
        raise ValueError("the shape of its weights is not known")
    return product(operand_dims(op, 0)) * shape[-1]


def _sparse_matmul_macs(op: OnnxOp) -> Expr:
    """rows × columns × length of the summed dim, as if the left factor were dense"""
    right = operand_dims(op, 1)
    return result_count(op) * right[-1 if op.attr("transB", 0) else -2]


def _experts_macs(weights: tuple[int, ...], per_byte: Callable[[OnnxOp], int]) -> FlopsRule:
    """Returns the rule of a layer of experts; each token is routed to `k` of them."""

    def rule(op: OnnxOp) -> Expr:
        one = sum((product(operand_dims(op, k)[1:]) for k in weights if operand(op, k) is not None), ZERO)
        return rows(operand_dims(op, 0)) * int(op.attr("k", 1) or 1) * one * per_byte(op)

    return counted("tokens × k × elements of the weights of one expert", rule)


# -- states -----------------------------------------------------------------------------------------------------------


def _attention_lstm_macs(op: OnnxOp) -> Expr:
    """steps × batch × elements of W, R, QW and AW + steps × batch × memory × (its width + units)"""
    x = operand_dims(op, 0)
    steps = x[0] * x[1]
    cells = sum((elements(op, k) for k in (1, 2, 8, 13)), ZERO)
    memory = operand_dims(op, 11)
    units = operand_dims(op, 10)[-1]
    return steps * cells + product(memory) * units + steps * memory[1] * (memory[2] + units)


def _delta_net_macs(op: OnnxOp) -> Expr:
    """4 × elements of the keys × value size: a state is read, corrected, written and asked"""
    return 4 * product(operand_dims(op, 1)) * operand_dims(op, 2)[-1]


def _mamba_macs(op: OnnxOp) -> Expr:
    """rows × (3 × heads × head size × state + elements of the window)"""
    state = int(op.attr("heads")) * int(op.attr("head_dim")) * int(op.attr("d_state"))
    return rows(operand_dims(op, 0)) * (3 * state + elements(op, 3))


def _varlen_conv_macs(op: OnnxOp) -> Expr:
    """elements of the input × length of the window"""
    return product(operand_dims(op, 0)) * operand_dims(op, 1)[-1]


def _word_conv_macs(op: OnnxOp) -> Expr:
    """characters × elements of the weights"""
    return product(operand_dims(op, 0)) * elements(op, 1)


def _bits(op: OnnxOp) -> int:
    return 8 // (int(op.attr("expert_weight_bits", 4) or 4))


ELEMENT = DEQUANTIZE + QUANTIZE
"""The cost of dequantising and requantising an element."""
_SCORES = "14 × scores of a head of 64"


def _of_scores(macs: FlopsRule) -> FlopsRule:
    # Two products of a head of 64 are 128 MACs per score. Several of these ops do not declare their heads.
    return counted(_SCORES, lambda op: floordiv(macs(op) * (EXP + 4), Expr.of(128)))


def _attentions(*rows: tuple[str, FlopsRule]) -> list[OpSpec]:
    return [_product(name, macs, _SCORES, _of_scores(macs)) for name, macs in rows]


SPECS: list[OpSpec] = [
    # products
    *(
        _product(name, _matmul())
        for name in ("DynamicQuantizeMatMul", "GemmFloat8", "MatMulInteger16", "MatMulIntegerToFloat")
    ),
    _product("FusedMatMulActivation", _matmul(), "10 × elements of the result", per_result(EXP)),
    _product("GemmFastGelu", _matmul(), "10 × elements of the result", per_result(EXP)),
    _product("QGemm", _matmul(0, 3), "8 × elements of the result", per_result(QUANTIZE)),
    _product("QOrderedMatMul", _matmul(0, 2), "8 × elements of the result", per_result(QUANTIZE)),
    _product("RouterGateUpProj", _matmul(), "10 × elements of the result", per_result(EXP)),
    _product("SparseToDenseMatMul", _sparse_matmul_macs),
    _product("MatMulBlockQuantizedFp4Weight", _fp4_macs),
    _product("MatMulBlockQuantizedFp8Weight", _fp4_macs),
    _product("MatMulBnb4", _rows_by("K × N", "N")),
    _product("MatMulFpQ4", _fpq4_macs),
    _product("MatMulPacked", _rows_by("K × N", "N")),
    _product("MatMulNBitsMlp", _rows_by("K × 2 N", "N", "N"), "12 × elements of the result", per_result(EXP + 2)),
    _product("MatMulNBitsQkv", _rows_by("K × (Nq + 2 Nkv)", "Nq", "Nkv", "Nkv")),
    _product("MatMulNBitsQLoRA", _lora_macs),
    _product("MoE", _experts_macs((2, 4, 6), lambda op: 1)),
    _product("QMoE", _experts_macs((2, 5, 8), _bits)),
    _product("MoEPacked", _experts_macs((2, 3, 4), lambda op: 1)),
    _product("HyperConnectionLowRankMix", _by_weights("the three matrices", 2, 3, 4)),
    # convolutions
    _product("NhwcConv", conv_macs),
    _product("NhwcFusedConv", conv_macs, "elements of the result", per_result(1)),
    _product("QLinearConv", quantized_conv_macs, "8 × elements of the result", per_result(QUANTIZE)),
    _product("ConvTransposeWithDynamicPads", transposed_macs),
    _product("VarlenCausalConvWithState", _varlen_conv_macs),
    _product("WordConvEmbedding", _word_conv_macs),
    # attention
    *_attentions(
        ("DecoderAttention", decoder_attention_macs),
        ("DecoderMaskedMultiHeadAttention", masked_multi_head_macs),
        ("DecoderMaskedSelfAttention", projected_attention_macs(4)),
        ("QAttention", projected_attention_macs(8)),
        ("QOrderedAttention", ordered_attention_macs),
        ("PackedAttention", packed_attention_macs),
        ("PackedMultiHeadAttention", packed_multi_head_macs),
        ("LongformerAttention", longformer_macs(1, 4)),
        ("QOrderedLongformerAttention", longformer_macs(2, 8)),
        ("SparseAttention", grouped_macs(3, 2)),
        ("PagedAttention", paged_macs),
        ("DynamicSparseAttention", selected_macs(7)),
        ("SparsePagedAttention", selected_macs(9)),
    ),
    _product("SparseAttentionIndexer", indexer_macs(7)),
    _product("PackedSparseAttentionIndexer", indexer_macs(12)),
    _product("GatedRelativePositionBias", relative_bias_macs, "20 × elements of the queries", per_operand(2 * EXP)),
    # states
    _product("AttnLSTM", _attention_lstm_macs, "12 × gates", gates_flops),
    _product("GatedDeltaNet", _delta_net_macs),
    _product("Mamba2Verify", _mamba_macs),
    # elementwise
    _spec("BiasDropout", per_result(2)),
    _spec("BitmaskBiasDropout", per_result(2)),
    _spec("BitmaskDropout", no_arithmetic("without training it returns its input")),
    _spec("BiasSoftmax", per_operand(EXP + 5)),
    *_each(per_result(3, "a complex product is 6 operations for 2 elements"), "ComplexMul", "ComplexMulConj"),
    _spec("GemmaRotaryEmbedding", counted("6 × elements of q", lambda op: 6 * product(operand_dims(op, 1)))),
    _spec("IsAllFinite", counted("elements of all inputs", _all_inputs)),
    _spec("MoEGroupRouter", per_operand(8)),
    _spec("MulInteger", per_result(3)),
    _spec("MurmurHash3", per_result(20)),
    _spec("QOrderedGelu", per_result(ELEMENT + EXP)),
    _spec("RMSNormRotary", per_operand(8)),
    _spec("RelativePositionBias", per_result(EXP)),
    _spec("SampleOp", per_result(1)),
    _spec("SwiGLU", per_operand(EXP + 2)),
    # quantised
    *_each(per_result(QUANTIZE), "QuantizeBFP", "QuantizeWithOrder"),
    *_each(per_result(DEQUANTIZE), "DequantizeBFP", "DequantizeWithOrder"),
    _spec("GatherPacked", per_result(DEQUANTIZE)),
    *_each(per_result(ELEMENT + DEQUANTIZE + 1), "QLinearAdd", "QLinearMul"),
    _spec("QLinearConcat", per_result(ELEMENT)),
    _spec("QLinearLeakyRelu", per_operand(ELEMENT + 2)),
    _spec("QLinearSigmoid", per_operand(ELEMENT + EXP)),
    _spec("QLinearSoftmax", per_operand(ELEMENT + EXP + 4)),
    _spec("QLinearWhere", per_result(ELEMENT + 1)),
    _spec("QEmbedLayerNormalization", per_result(3 * DEQUANTIZE + 10)),
    _spec("QOrderedLayerNormalization", per_operand(ELEMENT + 8)),
    # reductions and pools
    _spec("MaxpoolWithMask", window_flops),
    _spec("QLinearAveragePool", window_flops),
    *_each(per_operand(DEQUANTIZE + 1), "QLinearGlobalAveragePool", "QLinearReduceMean"),
    _spec("ReduceSumInteger", per_operand(1)),
    _spec("DynamicTimeWarping", per_operand(3)),
    _spec("Unique", per_operand(32, "comparisons of a sort")),
    *_each(quadratic_flops, "Rfft", "Irfft"),
    # integers
    *_each(per_operand(4, "products and exclusive ors of integers"), "NGramHashMapping", "VarlenNGramHashMapping"),
    *_each(per_operand(1, "comparisons"), "BifurcationDetector", "NGramRepeatBlock"),
    _spec("PackedSparseAttentionIndexerMerge", per_operand(1, "comparisons")),
    # movement
    *_each(no_arithmetic(), "ConvStateReplay", "GatedDeltaNetStateReplay", "Range", "RemovePadding", "RestorePadding"),
    *_each(no_arithmetic(), "SpeculativePrefixCommit", "TorchEmbedding"),
    _spec("Tokenizer", TEXT),
    # graphs
    *_each(GRAPHS, "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"),
    *_each(no_arithmetic("its binary is readable only by its execution provider"), "EPContext", "Snpe"),
]
