"""The gain of fusion: an estimate in microseconds of the launches and the memory traffic that a region saves.

Unknown dims have a typical size. These are figures only; a fusion author decides by them (`author.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i16, i32
from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor
from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.analysis.onnx.op_counts import flops_or_elements, size_of
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.sym.expr import ZERO, Expr

Contractions = Literal["none", "small", "all"]
Singletons = Literal["none", "winning", "all"]
Views = Literal["fused", "all"]


@dataclass(frozen=True)
class CostModel:
    """The assumed sizes, and the costs of nodes and tensors that follow."""

    typical_dim: int = MEMORY
    """The assumed size of a dim that is not in `typical`."""
    typical: Mapping[str, int] = field(default_factory=dict[str, int])
    machine: MachineModel = TYPICAL
    """The cost of a launch, and the speed of memory."""

    def estimate(self, e: Expr) -> int:
        """Returns the value of an expression at typical sizes."""
        return self._sizes.value(e, self.typical_dim)

    def known(self, e: Expr) -> int | None:
        """Returns the value of an expression if all of its symbols have a given size."""
        return self._sizes.known(e)

    @cached_property
    def _sizes(self) -> TypicalSizes:
        return TypicalSizes(tuple(self.typical.items()))

    def bytes(self, value: SSAValue) -> int:
        """Returns the typical size of a tensor; 0 where its rank is not known."""
        return max(0, self.estimate(self.size(value)))

    def size(self, value: SSAValue) -> Expr:
        """Returns the size of a tensor as an expression in its symbols; 0 where its rank is not known."""
        found = size_of(value)
        return ZERO if found is None else found.nbytes

    def flops(self, op: Operation) -> int:
        """Returns the typical number of scalar operations of a node."""
        return self.estimate(flops_or_elements(op) or ZERO)

    def saved(self, launches: int, moved: int) -> float:
        """Returns the microseconds saved by removing `launches` launches and `moved` bytes of traffic."""
        return launches * self.machine.launch_us + moved / self.machine.memory_bytes_us


def is_constant(value: SSAValue) -> bool:
    """True if a tensor is a constant, directly or cast to another type."""
    owner = value.owner
    while isinstance(owner, Operation) and op_name(owner) == "Cast":
        owner = owner.operands[0].owner
    return isinstance(owner, Operation) and owner.name == "onnx.Constant"


def multiplies_bytes(op: Operation) -> bool:
    """True if a node multiplies bytes in ONNX Runtime, and its kernel is no faster than that without such instructions:
    a product of two dequantised factors (QLinearMatMul), or a ConvInteger whose weight `form-integer-products` has left
    as u8."""
    if op_name(op) == "ConvInteger":
        weight = as_tensor(op.operands[1].type)
        return weight is not None and weight.element_type == ui8
    if op_name(op) not in ("MatMul", "Gemm"):
        return False
    sources = [v.owner for v in op.operands[:2]]
    return all(isinstance(s, Operation) and op_name(s) == "DequantizeLinear" for s in sources)


def is_widening(op: Operation) -> bool:
    """True if a node only converts 16-bit floats to f32, or i16 to i32; a contraction reads the narrow type
    directly."""
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
    """Returns the kind in the op's spec; `other` without a spec."""
    spec = spec_of(op) if isinstance(op, OnnxOp) else None
    return "other" if spec is None else spec.kind
