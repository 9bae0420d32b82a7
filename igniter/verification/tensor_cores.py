"""The tolerance of a model whose products of f32 are computed by tensor cores in TF32 (`+tf32`).

A factor loses its last 13 of 23 bits: it becomes smaller by less than 2^-10 of itself. So each product of two factors
is off by less than 2^-9 of itself, and a sum of products by less than 2^-9 of the sum of their magnitudes. Sums are of
f32. The errors of products in sequence are taken as independent of each other, and as neither amplified nor damped by
the nodes between them: n of them have sqrt(n) times the error of one. The tolerance stops at that of f16, `MOST`,
whatever the length of a model: the models that were computed stay below two thirds of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt

import onnx

STEP = 2.0**-9
"""The relative error of a product of two truncated factors."""

COARSER = 2.0**13
"""The rounding of a factor as a multiple of that of f32."""

MOST = 1e-2
"""The largest tolerance: that of f16."""

PRODUCTS = {
    "Attention": 2,
    "Conv": 1,
    "ConvTranspose": 1,
    "DeformConv": 1,
    "Einsum": 1,
    "FusedConv": 1,
    "FusedGemm": 1,
    "FusedMatMul": 1,
    "GRU": 2,
    "Gemm": 1,
    "GroupQueryAttention": 2,
    "LSTM": 2,
    "MatMul": 1,
    "MultiHeadAttention": 2,
    "RNN": 2,
}
"""The ops with products, and the number of them in sequence."""


def tf32_tolerance(model: onnx.ModelProto) -> float:
    """Returns the relative tolerance for the outputs of a model, at least that of one product."""
    functions = {(f.domain, f.name): f.node for f in model.functions}
    return min(MOST, STEP * sqrt(max(1, _in_sequence(model.graph.node, functions))))


def _in_sequence(nodes: Iterable[onnx.NodeProto], functions: Mapping[tuple[str, str], Iterable[onnx.NodeProto]]) -> int:
    """Returns the largest number of products on a path through nodes. The body of a loop counts once."""
    behind: dict[str, int] = {}
    for node in nodes:
        inner = [_in_sequence(a.g.node, functions) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
        called = functions.get((node.domain, node.op_type))
        own = PRODUCTS.get(node.op_type, 0) if called is None else _in_sequence(called, functions)
        count = max((behind.get(name, 0) for name in node.input), default=0) + max([own, *inner])
        behind.update(dict.fromkeys(node.output, count))
    return max(behind.values(), default=0)
