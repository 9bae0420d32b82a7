"""What fusion gains: an estimate in microseconds of the launches and the memory traffic that a region saves.

Dims that are not known are given a typical size. The estimate decides only what legality leaves open: whether a
contraction is left to ORT, and whether a region of one node or of views is worth a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.fusion.legality import Reason, as_tensor, has_dims, is_kernel_type
from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.names import VIEWS, op_name
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, product

Contractions = Literal["none", "small", "all"]
Singletons = Literal["none", "winning", "all"]
Views = Literal["fused", "all"]

WINNING_KINDS = frozenset(("reduction", "normalization"))
WINNING_OPS = frozenset(
    (
        "ArgMax",
        "ArgMin",
        "Celu",
        "CumSum",
        "Elu",
        "Erf",
        "Exp",
        "GRU",
        "Gelu",
        "HardSwish",
        "LSTM",
        "Log",
        "Mish",
        "Pow",
        "RNN",
        "Selu",
        "Softplus",
        "Swish",
        "Transpose",
        "Where",
        "com.microsoft.BiasGelu",
        "com.microsoft.FastGelu",
        "com.microsoft.Gelu",
        "com.microsoft.QuickGelu",
    )
)
"""Single ops whose kernels here beat ORT's, besides whole kinds: those that ORT computes in several passes over
memory, without vectors, or with an accurate but slow function."""


@dataclass(frozen=True)
class CostModel:
    """What to assume, and what to leave to ORT."""

    contractions: Contractions = "all"
    """Which MatMuls and their like are fused: none, those up to `small_flops`, or all."""
    small_flops: int = 65_536
    singletons: Singletons = "winning"
    """Which single nodes become a region: none, those whose kernels beat ORT's, or all."""
    typical_dim: int = 128
    """The size assumed of a dim that is not in `typical`."""
    typical: Mapping[str, int] = field(default_factory=dict[str, int])
    byte_products: bool = True
    """Whether a target of the library multiplies bytes (`Target.byte_products`)."""
    views: Views = "fused"
    """Which views are in regions: those between other nodes of one, or all, as copies."""
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
        from igniter.dialects.onnx.ops import spec_of

        spec = spec_of(op) if isinstance(op, OnnxOp) else None
        if isinstance(op, OnnxOp) and spec is not None and spec.flops is not None:
            return self.estimate(spec.flops(op))
        return max((self.elements(r.type) for r in op.results), default=0)

    def left_to_ort(self, op: Operation, convolved: bool = False) -> Reason | None:
        """Why a node that can be fused is not: ORT's kernel is at least as fast, whatever is fused with it.

        `convolved`: it belongs to a convolution that ORT runs (`conv_layout.py`).
        """
        from igniter.dialects.onnx.base import OnnxOp
        from igniter.dialects.onnx.ops import spec_of

        spec = spec_of(op) if isinstance(op, OnnxOp) else None
        slow = spec.slow(op, self.estimate) if isinstance(op, OnnxOp) and spec is not None and spec.slow else None
        small = op_kind(op) == "contraction" and self.flops(op) <= self.small_flops
        if small and self.contractions != "none" and not (spec is not None and spec.slow_when_small):
            slow = None
        if slow is None and not self.byte_products and not small and multiplies_bytes(op):
            slow = "no target multiplies bytes, and ONNX Runtime adds their products in 16 bits"
        if convolved and slow is None:
            slow = "it is part of a convolution, or done in its layout"
        if slow is not None and self.singletons != "all":
            return Reason("cost", f"{op_name(op)} is left to ONNX Runtime: {slow}")
        if op_kind(op) != "contraction" or self.contractions == "all":
            return None
        if self.contractions == "none":
            return Reason("cost", f"{op_name(op)} is left to ONNX Runtime (contractions=none)")
        if small:
            return None
        return Reason(
            "cost", f"{op_name(op)} of {self.flops(op):,} operations is left to ONNX Runtime (contractions=small)"
        )

    def contraction_class(self, op: Operation) -> str:
        """`weights` for a contraction with a constant operand, `products` for one of two tensors that are computed,
        and nothing for what is no contraction, or a small one."""
        if op_kind(op) != "contraction" or self.flops(op) <= self.small_flops:
            return ""
        return "weights" if any(is_constant(v) for v in op.operands[:2]) else "products"

    def region_reason(self, ops: Iterable[Operation]) -> Reason | None:
        """Why nodes that could be a region are none: a kernel of their own would not be faster."""
        working = [op for op in ops if op_name(op) not in VIEWS or self.views == "all"]
        if not working:
            return Reason("view", "views move no data, so a kernel of nothing else gains nothing")
        if len(working) > 1 or self.singletons == "all":
            return None
        (op,) = working
        if draws(op):
            return None
        name = op_name(op)
        if _folds_into_matmul(op) and self.contractions != "all":
            return Reason("cost", f"{name} of the last two dims is part of the MatMul that ONNX Runtime runs")
        if op_kind(op) == "contraction" and self.contractions == "all":
            return None
        if self.singletons == "winning" and (name in WINNING_OPS or op_kind(op) in WINNING_KINDS):
            return None
        return Reason("cost", f"{name} alone is left to ONNX Runtime (singletons={self.singletons})")

    def saved(self, launches: int, moved: int) -> float:
        """Microseconds saved by that many launches less and that many bytes not moved."""
        return launches * self.machine.launch_us + moved / self.machine.memory_bytes_us


def _folds_into_matmul(op: Operation) -> bool:
    """Whether a Transpose swaps the last two dims for nothing but MatMuls, which take their operands either way."""
    from igniter.dialects.onnx.base import OnnxOp

    if not isinstance(op, OnnxOp) or op.qualified_name != "Transpose":
        return False
    given: list[int] | None = op.attr("perm")
    tensor = as_tensor(op.results[0].type)
    if given is None and (tensor is None or tensor.get_num_dims() != 2):
        return False
    order = [1, 0] if given is None else given
    rank = len(order)
    swapped = rank >= 2 and order == [*range(rank - 2), rank - 1, rank - 2]
    return swapped and all(op_name(use.operation) == "MatMul" for use in op.results[0].uses)


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
