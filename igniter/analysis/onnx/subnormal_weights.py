"""Subnormal numbers among weights: their count, and the reason why one cannot be written as 0.

A number is subnormal if it is nonzero and smaller than the least normal number of the type that computes with it:
2^-126 for f32 and bf16, 2^-1022 for f64. Kernels convert f16 to f32, where every f16 is normal, so f16 has none. On
many CPUs an instruction with a subnormal operand takes over a hundred cycles.

Writing one as 0 changes a weight by less than 2^-126. The change stays small if the weight is a factor or a term of a
sum, and if the result is not amplified afterwards. `refusal` follows the readers of a constant: first through copies to
the nodes that compute with it, then, from their results, through nodes that may keep a tiny number tiny. The walk ends
at nodes whose result changes no more than their input does, up to a factor of ordinary size (products, normalisations,
exponentials). It refuses at every other node: a logarithm, a denominator, a root, a comparison, an index of a maximum,
an integer, an op without an entry here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from xdsl.ir import SSAValue, Use

from igniter.analysis.onnx.stored_weights import Transposed
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import GraphOp, ReturnOp
from igniter.dialects.onnx.weights import Weight

Bits = np.ndarray[Any, np.dtype[Any]]

LEAST_NORMAL = {"float": 0x0080_0000, "bfloat16": 0x0080, "double": 0x0010_0000_0000_0000}
"""The bits of the least normal number, by ONNX's name of an element type."""

PART = 1 << 16
"""The number of elements counted together: few enough to stay in a cache."""


def subnormal_count(weight: Weight) -> int:
    """Returns the number of subnormal elements; 0 for elided weights and for other types."""
    while isinstance(weight.derivation, Transposed):
        weight = weight.derivation.source  # the same elements, without another copy of them
    bits = bits_of(weight)
    return 0 if bits is None else sum(_count(bits[start : start + PART], weight) for start in range(0, bits.size, PART))


def bits_of(weight: Weight) -> Bits | None:
    """Returns the elements as unsigned integers, flat; `None` for elided weights and for types without subnormals."""
    if weight.element.onnx_name not in LEAST_NORMAL or weight.elided:
        return None
    array = weight.array()
    return array.reshape(-1).view(np.dtype(f"u{array.itemsize}"))


def is_subnormal(bits: Bits, weight: Weight) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns a mask of the subnormal elements among some of a weight's."""
    # Twice the bits have no sign. One less than that, 0 is the largest number.
    least = bits.dtype.type(2 * LEAST_NORMAL[weight.element.onnx_name] - 1)
    shifted = bits << bits.dtype.type(1)
    shifted -= bits.dtype.type(1)
    return shifted < least


def _count(bits: Bits, weight: Weight) -> int:
    return int(np.count_nonzero(is_subnormal(bits, weight)))


# -- legality ---------------------------------------------------------------------------------------------------------

ALL = tuple(range(64))

COPIES = {
    **dict.fromkeys(("Concat", "Identity", "Transpose"), ALL),
    **dict.fromkeys(("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Pad", "Reshape", "Slice"), (0,)),
    **dict.fromkeys(("Split", "Squeeze", "Tile", "Unsqueeze", "DepthToSpace", "SpaceToDepth"), (0,)),
}
"""Ops whose results are elements of the operands at these places."""

FACTORS = {
    **dict.fromkeys(("Add", "Einsum", "Gemm", "MatMul", "Mul", "Sub", "Sum"), ALL),
    **dict.fromkeys(("Conv", "ConvTranspose", "com.microsoft.FusedConv"), (1, 2)),
    **dict.fromkeys(("com.microsoft.FusedMatMul", "com.microsoft.FusedGemm"), ALL),
    **dict.fromkeys(("com.microsoft.Attention", "GRU", "LSTM", "RNN"), (1, 2, 3)),
    **dict.fromkeys(("BatchNormalization", "GroupNormalization", "InstanceNormalization"), (1, 2)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "PRelu"), (1, 2)),
    "com.microsoft.SkipLayerNormalization": (2, 3, 4),
    "com.microsoft.SkipSimplifiedLayerNormalization": (2, 3),
    "com.microsoft.BiasGelu": (1,),
}
"""Ops that multiply or add the operands at these places."""

PASSES_ON = {
    **COPIES,
    **dict.fromkeys(("Abs", "LeakyRelu", "Mean", "Mul", "Neg", "PRelu", "Relu", "Sum", "ThresholdedRelu"), ALL),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "MaxPool", "GlobalLpPool"), ALL),
    **dict.fromkeys(("Clip", "Div", "Dropout", "ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin"), (0,)),
    **dict.fromkeys(("ReduceSum", "ReduceSumSquare", "Resize", "Upsample"), (0,)),
    **dict.fromkeys(("Max", "Min"), ALL),
    "Where": (1, 2),
}
"""Ops that can turn tiny operands at these places into tiny results."""

_PRODUCTS = (
    "Conv",
    "ConvTranspose",
    "Einsum",
    "Gemm",
    "MatMul",
    "com.microsoft.FusedConv",
    "com.microsoft.FusedMatMul",
)
_NORMS = {
    *("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "RMSNormalization"),
    *("SimplifiedLayerNormalization", "com.microsoft.SkipLayerNormalization"),
    "com.microsoft.SkipSimplifiedLayerNormalization",
}
_CURVES = ("Celu", "Cos", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LogSoftmax", "Mish", "Selu")

ABSORBS = {
    *(*_PRODUCTS, *_NORMS, *_CURVES, "Sigmoid", "Sin", "Softmax", "Softplus", "Softsign", "Swish", "Tanh"),
    *("Attention", "GRU", "LSTM", "RNN", "QuantizeLinear"),
    *(f"com.microsoft.{name}" for name in ("Attention", "BiasGelu", "FastGelu", "FusedGemm", "Gelu")),
    *(f"com.microsoft.{name}" for name in ("MultiHeadAttention", "QuickGelu")),
}
"""Ops whose results change by a bounded multiple of their operands' change."""

MULTIPLIES = {*_PRODUCTS, *_NORMS, "GRU", "LSTM", "Mul", "PRelu", "RNN", "com.microsoft.Attention"}
"""Ops that multiply a changed operand by their others."""

LARGEST = 2.0**40
"""The limit of a constant that multiplies a changed number; the inverse is the limit of one that divides it."""
LEAST_EPSILON = 1e-30
"""A normalisation with a smaller epsilon divides by numbers that may be tiny."""


class Readers:
    """The readers of a model's weights. It keeps the largest numbers of constants that were read."""

    def __init__(self) -> None:
        self._largest: dict[SSAValue, float] = {}

    def refusal(self, constant: OnnxOp) -> str | None:
        """Returns the reason why the subnormal elements of a constant cannot be written as 0; `None` if they can."""
        weight = constant_weight(constant.results[0])
        if weight is not None and weight.size == 1:
            return "it is a single number, perhaps one that keeps a denominator or a logarithm from 0"
        results: list[SSAValue] = []
        for use in self._uses([constant.results[0]], COPIES):
            reader, place = use.operation, use.index
            if not isinstance(reader, OnnxOp):
                return "it is an output of its graph"
            if place not in FACTORS.get(reader.qualified_name, ()):
                return f"{_named(reader)} reads it, neither as a factor nor as a term"
            if self._amplifies(reader, place):
                return f"{_named(reader)} multiplies it by a constant beyond {LARGEST:g}"
            results += reader.results
        return self._result_refusal(results)

    def _result_refusal(self, results: list[SSAValue]) -> str | None:
        for use in self._uses(results, PASSES_ON):
            reader = use.operation
            if isinstance(reader, ReturnOp):
                if not isinstance(reader.parent_op(), GraphOp):
                    return "a result of it leaves a nested graph"
            elif not isinstance(reader, OnnxOp) or not _absorbs(reader) or self._amplifies(reader, use.index):
                named = _named(reader) if isinstance(reader, OnnxOp) else reader.name
                return f"a result of it reaches {named}, which may amplify the change"
        return None

    def _uses(self, values: list[SSAValue], through: Mapping[str, tuple[int, ...]]) -> Iterator[Use]:
        """Yields the uses of values. An op in the table `through` is skipped: the uses of its results come instead."""
        pending, seen = list(values), set(values)
        while pending:
            for use in pending.pop().uses:
                reader = use.operation
                if not isinstance(reader, OnnxOp) or not self._continues(reader, use.index, through):
                    yield use
                    continue
                pending += [r for r in reader.results if r not in seen]
                seen.update(reader.results)

    def _continues(self, reader: OnnxOp, place: int, through: Mapping[str, tuple[int, ...]]) -> bool:
        if through is PASSES_ON and reader.qualified_name in ("Add", "Sub"):
            # Beside a constant the sum may be tiny; beside an activation it has the activation's size.
            return any(constant_value(operand) is not None for operand in reader.operands)
        return place in through.get(reader.qualified_name, ()) and not self._amplifies(reader, place)

    def _amplifies(self, reader: OnnxOp, place: int) -> bool:
        """True if a node multiplies its operand at `place` by a constant beyond `LARGEST`, or divides it by one below
        the inverse."""
        others = [operand for k, operand in enumerate(reader.operands) if k != place]
        if reader.qualified_name == "Div":
            divisor = constant_value(reader.operands[1])
            return divisor is not None and float(np.min(np.abs(divisor), initial=np.inf)) < 1 / LARGEST
        return reader.qualified_name in MULTIPLIES and any(self._largest_of(o) > LARGEST for o in others)

    def _largest_of(self, operand: SSAValue) -> float:
        if operand not in self._largest:
            value = constant_value(operand)
            found = 0.0 if value is None or value.size == 0 else float(max(np.max(value), -float(np.min(value))))
            self._largest[operand] = found
        return self._largest[operand]


def _absorbs(reader: OnnxOp) -> bool:
    name = reader.qualified_name
    if name in _NORMS:
        return float(reader.attr("epsilon", 1e-5)) >= LEAST_EPSILON
    return name in ABSORBS or name in ("Add", "Sub")


def _named(op: OnnxOp) -> str:
    return f"{op.op_type} '{op.node_name}'" if op.node_name else op.op_type
