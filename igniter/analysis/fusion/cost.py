"""What fusion gains: an estimate in microseconds of the launches and the memory traffic that a region saves.

Dims that are not known are given a typical size. These are figures: what follows from them, a fusion author decides
(`author.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor, has_dims, is_kernel_type
from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.analysis.typical_sizes import MEMORY
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, product

Contractions = Literal["none", "small", "all"]
Singletons = Literal["none", "winning", "all"]
Views = Literal["fused", "all"]


@dataclass(frozen=True)
class CostModel:
    """What is assumed of sizes, and what follows for nodes and tensors."""

    typical_dim: int = MEMORY
    """The size assumed of a dim that is not in `typical`."""
    typical: Mapping[str, int] = field(default_factory=dict[str, int])
    machine: MachineModel = TYPICAL
    """What a launch costs, and how fast memory is."""

    def estimate(self, e: Expr) -> int:
        """The value of an expression at typical sizes."""
        return e.evaluate({s: self.typical.get(s, self.typical_dim) for s in e.symbols})

    def elements(self, shaped: Attribute) -> int:
        """The typical number of elements of a tensor; 0 where its rank is not known."""
        tensor = as_tensor(shaped)
        if tensor is None or not has_dims(tensor):
            return 0
        count = 1
        for dim in dims_of(tensor):
            count *= max(0, self.estimate(dim))
        return count

    def bytes(self, value: SSAValue) -> int:
        """The typical size of a tensor in memory."""
        return self.elements(value.type) * _width(value.type)

    def size(self, value: SSAValue) -> Expr:
        """The size of a tensor in memory as an expression in its symbols; 0 where its rank is not known."""
        tensor = as_tensor(value.type)
        if tensor is None or not has_dims(tensor):
            return Expr.of(0)
        return product(dims_of(tensor)) * _width(value.type)

    def flops(self, op: Operation) -> int:
        """The typical number of scalar operations of a node."""
        from igniter.dialects.onnx.base import OnnxOp
        from igniter.dialects.onnx.ops.counts import flops_of

        found = flops_of(op) if isinstance(op, OnnxOp) else None
        if found is not None:
            return self.estimate(found)
        return max((self.elements(r.type) for r in op.results), default=0)

    def saved(self, launches: int, moved: int) -> float:
        """Microseconds saved by that many launches less and that many bytes not moved."""
        return launches * self.machine.launch_us + moved / self.machine.memory_bytes_us


def is_constant(value: SSAValue) -> bool:
    """Whether a constant defines a tensor, itself or cast to another type."""
    owner = value.owner
    while isinstance(owner, Operation) and op_name(owner) == "Cast":
        owner = owner.operands[0].owner
    return isinstance(owner, Operation) and owner.name == "onnx.Constant"


def multiplies_bytes(op: Operation) -> bool:
    """Whether a node multiplies two dequantised factors: a product of bytes in ONNX Runtime (QLinearMatMul)."""
    if op_name(op) not in ("MatMul", "Gemm"):
        return False
    sources = [v.owner for v in op.operands[:2]]
    return all(isinstance(s, Operation) and op_name(s) == "DequantizeLinear" for s in sources)


def rounds_many_rows(op: Operation) -> bool:
    """Whether a node rounds many rows to bytes to multiply them with numbers of few bits."""
    from igniter.dialects.onnx.ops.block_products import rounds_rows

    if not isinstance(op, OnnxOp) or MANY_ROWS_ATTRIBUTE not in op.attributes:
        return False
    return op.qualified_name == "com.microsoft.MatMulNBits" and rounds_rows(op)


def is_widening(op: Operation) -> bool:
    """Whether a node only makes f32 of 16-bit floats, or i32 of i16, which a contraction reads as they are."""
    if op_name(op) != "Cast":
        return False
    source, result = as_tensor(op.operands[0].type), as_tensor(op.results[0].type)
    if source is None or result is None:
        return False
    kinds = source.element_type, result.element_type
    return kinds == (i16, i32) or (
        isinstance(kinds[0], (BFloat16Type, Float16Type)) and isinstance(kinds[1], Float32Type)
    )


def op_kind(op: Operation) -> str:
    """The kind that the op's spec gives; `other` where it has none."""
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.ops import spec_of

    spec = spec_of(op) if isinstance(op, OnnxOp) else None
    return "other" if spec is None else spec.kind


def _width(shaped: Attribute) -> int:
    from igniter.dialects.loop import element_bytes

    tensor = as_tensor(shaped)
    if tensor is None:
        return 1
    return element_bytes(tensor.element_type) if is_kernel_type(tensor.element_type) else 1
