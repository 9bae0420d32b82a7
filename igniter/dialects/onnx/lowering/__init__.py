"""Building blocks for lowering ONNX ops to structured nests."""

from __future__ import annotations

from igniter.dialects.onnx.lowering.builder import KernelBuilder, Nest, Subscript
from igniter.dialects.onnx.lowering.context import Lowering, LoweringError
from igniter.dialects.onnx.lowering.scalar import Number, Operand, Scalar

__all__ = [
    "KernelBuilder",
    "Lowering",
    "LoweringError",
    "Nest",
    "Number",
    "Operand",
    "Scalar",
    "Subscript",
]
