"""The counts of ops without a lowering, each on one node, against figures by hand."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Region

from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.onnx.ops import contrib_counts, node_counts
from igniter.dialects.onnx.ops.counts import flops_of, macs_of
from igniter.dialects.sym import tensor_of

Shape = tuple[int, ...]


def node(name: str, operands: list[Shape | None], result: Shape, **attributes: Any) -> OnnxOp:
    """A node of f32 operands; `None` omits one."""
    given = [s for s in operands if s is not None]
    block = Block(arg_types=[tensor_of(f32, s) for s in given])
    arguments = iter(block.args)
    values = [None if s is None else next(arguments) for s in operands]
    op = make_op(name, values, [tensor_of(f32, result)], attributes)
    block.add_op(op)
    _KEPT.append(Region(block))
    return op


_KEPT: list[Region] = []

MS = "com.microsoft."
B, S, H = 2, 5, 12
ROWS = B * S

# name, operands, result, attributes, MACs by hand
PRODUCTS: list[tuple[str, list[Shape | None], Shape, dict[str, Any], int]] = [
    ("QLinearMatMul", [(B, S, H), (), (), (H, 7), (), (), (), ()], (B, S, 7), {}, ROWS * H * 7),
    ("QLinearConv", [(1, 4, 8, 8), (), (), (6, 2, 3, 3), (), (), (), ()], (1, 6, 6, 6), {}, 6 * 36 * 2 * 9),
    ("ai.onnx.preview.FlexAttention", [(B, 3, S, 4), (B, 3, 9, 4), (B, 3, 9, 6)], (B, 3, S, 6), {}, B * 3 * S * 9 * 10),
    (MS + "DynamicQuantizeMatMul", [(B, S, H), (H, 7), ()], (B, S, 7), {}, ROWS * H * 7),
    (MS + "MatMulIntegerToFloat", [(S, H), (H, 7), (), ()], (S, 7), {}, S * H * 7),
    (MS + "MatMulInteger16", [(S, H), (B, H, 7)], (B, S, 7), {}, B * S * H * 7),
    (MS + "GemmFloat8", [(S, H), (7, H)], (S, 7), {"transB": 1}, S * H * 7),
    (MS + "FusedMatMulActivation", [(S, H), (H, 7)], (S, 7), {"activation": "Relu"}, S * H * 7),
    (MS + "GemmFastGelu", [(B, S, H), (H, 7)], (B, S, 7), {}, ROWS * H * 7),
    (MS + "QGemm", [(S, H), (), (), (7, H), (), ()], (S, 7), {"transB": 1}, S * H * 7),
    (MS + "QOrderedMatMul", [(B, S, H), (), (H, 7), (), ()], (B, S, 7), {}, ROWS * H * 7),
    (MS + "RouterGateUpProj", [(S, H), (H, 7)], (S, 7), {}, S * H * 7),
    (MS + "SparseToDenseMatMul", [(S, H), (H, 7)], (S, 7), {}, S * H * 7),
    (MS + "MatMulBlockQuantizedFp4Weight", [(S, H), (7, H // 2), (), (), ()], (S, 7), {}, S * H * 7),
    (MS + "MatMulBlockQuantizedFp8Weight", [(S, H), (7, H), ()], (S, 7), {}, S * H * 7),
    (MS + "MatMulBnb4", [(S, 64), (16,), (4,)], (S, 8), {"K": 64, "N": 8, "block_size": 16, "quant_type": 1}, S * 512),
    (MS + "MatMulPacked", [(S, 64), (16,)], (S, 8), {"K": 64, "N": 8}, S * 512),
    (MS + "MatMulNBitsMlp", [(S, 64), None, None, (8, 2, 16), (16,)], (S, 8), {"K": 64, "N": 8}, 2 * S * 512),
    (MS + "MatMulNBitsQkv", [(S, 64), None, None, (8, 2, 16), ()], (S, 8), {"K": 64, "Nq": 8, "Nkv": 4}, S * 64 * 16),
    (
        MS + "MatMulNBitsQLoRA",
        [(S, 64), (8, 2, 16), (16,), (64, 2), (), (4, 4)],
        *((S, 8), {"K": 64, "N": 8, "lora_bits": 4}, S * (512 + 2 * (128 + 16))),
    ),
    (MS + "MoE", [(S, H), (S, 4), (4, 20, H), None, (4, H, 20)], (S, H), {"k": 2}, S * 2 * 2 * 20 * H),
    (MS + "QMoE", [(S, H), (S, 4), (4, 20, 6), (), None, (4, H, 10), ()], (S, H), {"k": 2}, S * 2 * 2 * 20 * H),
    (MS + "MoEPacked", [(S, H), (S, 4), (4, 20, H), (4, 20, H), (4, H, 20)], (S, H), {"k": 1}, S * 3 * 20 * H),
    (MS + "HyperConnectionLowRankMix", [(S, H), (H,), (3, H), (H, 3), (H,)], (S, H), {}, S * (36 + 36 + 12)),
    (MS + "NhwcConv", [(1, 8, 8, 4), (6, 4, 3, 3)], (1, 6, 6, 6), {}, 216 * 36),
    (MS + "NhwcFusedConv", [(1, 8, 8, 4), (6, 4, 3, 3)], (1, 6, 6, 6), {}, 216 * 36),
    (MS + "QLinearConv", [(1, 4, 8, 8), (), (), (6, 4, 3, 3), (), (), (), ()], (1, 6, 6, 6), {}, 216 * 36),
    (MS + "ConvTransposeWithDynamicPads", [(1, 4, 8, 8), (4, 6, 3, 3), (4,)], (1, 6, 10, 10), {}, 256 * 54),
    (MS + "VarlenCausalConvWithState", [(S, H), (H, 1, 4), (3,)], (S, H), {}, S * H * 4),
    (MS + "WordConvEmbedding", [(B, S, 10), (8, 1, 3, 4), (8,), (100, 4)], (B, S, 8), {}, B * S * 10 * 96),
    (
        MS + "DecoderAttention",
        [(S, B, H), (9, B, H), (H, H), (H, 2 * H), (3 * H,), None, (B, 3, 4, 4), (B, 3, 4, 4)],
        *((S, B, H), {"num_heads": 3}, ROWS * H * H + 9 * B * 2 * H * H + ROWS * (9 + 4) * 2 * H),
    ),
    (
        MS + "DecoderMaskedMultiHeadAttention",
        [(B, 1, H), (B, 1, H), (B, 1, H), None, None, (B, 3, 8, 4), (B, 3, 8, 4)],
        *((B, 1, H), {"num_heads": 3}, B * 9 * 2 * H),
    ),
    (
        MS + "DecoderMaskedSelfAttention",
        [(B, 1, H), (H, 3 * H), (3 * H,), None, (2, B, 3, 8, 4)],
        *((B, 1, H), {"num_heads": 3}, B * 3 * H * H + B * 9 * 2 * H),
    ),
    (
        MS + "QAttention",
        [(B, S, H), (H, 3 * H), (3 * H,), (), ()],
        *((B, S, H), {"num_heads": 3}, ROWS * 3 * H * H + ROWS * S * 2 * H),
    ),
    (
        MS + "QOrderedAttention",
        [(B, S, H), (), (), (), (), (H, H), (H, H), (H, H)],
        *((B, S, H), {"num_heads": 3}, ROWS * 3 * H * H + ROWS * S * 2 * H),
    ),
    (
        MS + "PackedAttention",
        [(7, H), (H, 3 * H), (3 * H,), (B, S), (3,)],
        *((7, H), {"num_heads": 3}, 7 * 3 * H * H + 7 * S * 2 * H),
    ),
    (
        MS + "PackedMultiHeadAttention",
        [(7, H), (7, H), (7, H), None, (B, S), (3,)],
        *((7, H), {"num_heads": 3}, 7 * S * 2 * H),
    ),
    (
        MS + "LongformerAttention",
        [(B, S, H), (H, 3 * H), (3 * H,), (B, S), (H, 3 * H), (3 * H,), (B, S)],
        *((B, S, H), {"num_heads": 3, "window": 2}, ROWS * 6 * H * H + ROWS * 4 * 2 * H),
    ),
    (
        MS + "QOrderedLongformerAttention",
        [(B, S, H), (), (H, 3 * H), (), (3 * H,), (), (), (B, S), (H, 3 * H)],
        *((B, S, H), {"num_heads": 3, "window": 2}, ROWS * 6 * H * H + ROWS * 4 * 2 * H),
    ),
    (
        MS + "SparseAttention",
        [(B, S, H), (B, S, 4), (B, S, 4), (B, 1, 8, 4)],
        *((B, S, H), {"num_heads": 3, "kv_num_heads": 1}, ROWS * (S + 8) * 2 * H),
    ),
    (
        MS + "PagedAttention",
        [(7, H), (7, 4), (7, 4), (6, 16, 1, 4), (6, 16, 1, 4), (3,), (2,), (2, 3)],
        *((7, H), {"num_heads": 3, "kv_num_heads": 1}, 7 * 3 * 16 * 2 * H),
    ),
    (
        MS + "DynamicSparseAttention",
        [(B, S, H), (B, S, 4), (B, S, 4), (B, 1, 8, 4), (B, 1, 8, 4), None, None, (B, S, 6)],
        *((B, S, H), {"num_heads": 3, "kv_num_heads": 1}, ROWS * 6 * 2 * H),
    ),
    (
        MS + "SparsePagedAttention",
        [(7, H), (7, 4), (7, 4), (6, 16, 1, 4), (6, 16, 1, 4), (3,), (2,), (2, 3), None, (7, 6)],
        *((7, H), {"num_heads": 3, "kv_num_heads": 1}, 7 * 6 * 2 * H),
    ),
    (
        MS + "SparseAttentionIndexer",
        [(B, S, H), (B, S, 4), (4,), (4,), (9, 4), (9, 4), None, (B, 8, 4)],
        *((B, S, 6), {}, ROWS * H * (S + 8)),
    ),
    (
        MS + "PackedSparseAttentionIndexer",
        [(7, H), (7, 4), (4,), (4,), (9, 4), (9, 4), (3,), (2,)],
        *((7, 6), {}, 7 * H * 7),
    ),
    (
        MS + "GatedRelativePositionBias",
        [(B, S, H), (H,), (1, 3, S, S), (4, 8), (8,), (1, 3, 1, 1)],
        *((B, 3, S, S), {"num_heads": 3}, ROWS * H * 8),
    ),
    (
        MS + "AttnLSTM",
        [(S, B, 6), (1, 16, 6), (1, 16, 4), (1, 32), None, None, None, None, (1, 4, 5), (1, 7, 5), (1, 5), (B, 9, 7)],
        *((S, 1, B, 4), {"hidden_size": 4}, ROWS * (96 + 64 + 20) + B * 9 * 7 * 5 + ROWS * 9 * (7 + 5)),
    ),
    (MS + "GatedDeltaNet", [(S, 3, 4), (S, 3, 4), (S, 3, 6), (2,)], (S, 3, 6), {}, 4 * S * 3 * 4 * 6),
    (
        MS + "Mamba2Verify",
        [(S, 20), (1, 8, 4), (1, 2, 4, 8), (8, 4)],
        *((S, 8), {"heads": 2, "head_dim": 4, "d_state": 8}, S * (3 * 64 + 32)),
    ),
]


@pytest.mark.parametrize(("name", "operands", "result", "attributes", "macs"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_macs_of_products(
    name: str, operands: list[Shape | None], result: Shape, attributes: dict[str, Any], macs: int
):
    op = node(name, operands, result, **attributes)
    assert macs_of(op) == macs
    flops = flops_of(op)
    assert flops is not None and flops.constant is not None
    assert flops.constant >= 2 * macs


# name, operands, result, FLOPs by hand
OTHERS: list[tuple[str, list[Shape | None], Shape, int]] = [
    ("ImageDecoder", [(100,)], (4, 5, 3), 20 * 60),
    ("NonZero", [(4, 5)], (2, 7), 20),
    ("Unique", [(4, 5)], (7,), 32 * 20),
    ("NonMaxSuppression", [(B, 10, 4), (B, 3, 10)], (5, 3), 4 * B * 3 * 100),
    ("ai.onnx.preview.training.Adam", [(), (), (3, 4), (3, 4), (3, 4), (3, 4)], (3, 4), 14 * 12),
    ("ai.onnx.preview.training.Momentum", [(), (), (3,), (2,), (3,), (2,), (3,), (2,)], (3,), 5 * 5),
    ("ai.onnx.preview.training.Adagrad", [(), (), (3,), (3,), (3,)], (3,), 8 * 3),
    (MS + "BiasDropout", [(S, H), (H,)], (S, H), 2 * S * H),
    (MS + "BiasSoftmax", [(S, H), (H,)], (S, H), 15 * S * H),
    (MS + "ComplexMul", [(S, 2), (S, 2)], (S, 2), 6 * S),
    (MS + "GemmaRotaryEmbedding", [(S,), (S, H), (S, H), (S, H), (S, H)], (S, H), 6 * S * H),
    (MS + "IsAllFinite", [(3,), (4,)], (1,), 7),
    (MS + "MoEGroupRouter", [(S, 8), (8,)], (S, 8), 8 * S * 8),
    (MS + "MulInteger", [(S, H), None, (S, H)], (S, H), 3 * S * H),
    (MS + "QLinearAdd", [(S, H), (), (), (S, H), (), (), (), ()], (S, H), 15 * S * H),
    (MS + "QLinearSigmoid", [(S, H), (), (), (), ()], (S, H), 21 * S * H),
    (MS + "QLinearSoftmax", [(S, H), (), (), (), ()], (S, H), 25 * S * H),
    (MS + "QLinearConcat", [(), (), (S, H), (), ()], (S, H), 11 * S * H),
    (MS + "QLinearReduceMean", [(S, H), (), (), (), ()], (S, 1), 4 * S * H),
    (MS + "QuantizeBFP", [(S, H)], (S, H), 8 * S * H),
    (MS + "ReduceSumInteger", [(S, H)], (S, 1), S * H),
    (MS + "RMSNormRotary", [(S, H), (H,), (S,), (9, 4), (9, 4)], (S, H), 8 * S * H),
    (MS + "SwiGLU", [(S, H), (S, H)], (S, H), 12 * S * H),
    (MS + "DynamicTimeWarping", [(1, 7, 9)], (2, 12), 3 * 63),
    (MS + "NGramHashMapping", [(B, S), (3,), (3,)], (B, S, 3), 4 * ROWS),
    (MS + "Rfft", [(B, 16)], (B, 9, 2), 2 * B * 18 * 16),
    (MS + "TorchEmbedding", [(100, 8), (S,)], (S, 8), 0),
    (MS + "RemovePadding", [(B, S, H), (B,)], (7, H), 0),
    (MS + "EPContext", [(S,)], (S,), 0),
]


@pytest.mark.parametrize(("name", "operands", "result", "flops"), OTHERS, ids=[p[0] for p in OTHERS])
def test_flops_of_the_rest(name: str, operands: list[Shape | None], result: Shape, flops: int):
    op = node(name, operands, result)
    assert (macs_of(op), flops_of(op)) == (0, flops)


def test_every_product_is_tested():
    specs = [*contrib_counts.SPECS, *node_counts.SPECS]
    missing = {s.name for s in specs if s.macs is not None} - {p[0] for p in PRODUCTS}
    # Its columns are the elements of a third input, which is a constant.
    assert missing == {"com.microsoft.MatMulFpQ4"}
