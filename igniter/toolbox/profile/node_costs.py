"""The cost of a node at given sizes, for balancing parts of a model: operations, and bytes of weights and results.

Operations are those of the op's rule (`OpSpec.flops`); without a rule, one for each element of the result. A node with
graphs costs as much as the nodes inside: for a branch the more expensive one, for a loop its constant trip count, or
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of, tensor_element

DEFAULT_SIZE = 64
"""The size of a dim without a given size."""


@dataclass(frozen=True)
class Sizes:
    """Numbers for symbols."""

    given: Mapping[str, int]

    def of(self, expr: Expr) -> int:
        """Returns the value of an expression; symbols without a size are `DEFAULT_SIZE`."""
        env = {s: self.given.get(s, DEFAULT_SIZE) for s in expr.symbols}
        try:
            return max(0, expr.evaluate(env))
        except ZeroDivisionError:
            return 0

    def elements(self, value: SSAValue) -> int:
        """Returns the number of elements of a tensor; 0 where its rank is not known."""
        dims = declared_dims(value.type)
        if dims is None:
            return 0
        return self.of(product(d if d is not None else Expr.of(DEFAULT_SIZE) for d in dims))

    def bytes(self, value: SSAValue) -> int:
        """Returns the bytes of a tensor."""
        element = tensor_element(value.type)
        row = BY_ATTR.get(element) if element is not None else None
        return self.elements(value) * (row.bits if row is not None else 32) // 8


def flops_of(op: Operation, sizes: Sizes) -> int:
    """Returns the operations of a node, including those of graphs inside it. Its types have to be inferred."""
    if not isinstance(op, OnnxOp) or op.name == "onnx.Constant":
        return 0
    if op.regions:
        inside = [sum(flops_of(inner, sizes) for inner in region.block.ops) for region in op.regions]
        return max(inside) if op.op_type == "If" else _trips(op, sizes) * sum(inside)
    spec = spec_of(op)
    known = all(known_dims_of(v.type) is not None for v in (*op.inputs, *op.outputs) if v is not None)
    if spec is not None and spec.flops is not None and known:
        return sizes.of(spec.flops(op))
    if spec is not None and spec.kind in ("movement", "shape"):
        return 0
    return sum(sizes.elements(r) for r in op.outputs if r is not None)


def _trips(op: OnnxOp, sizes: Sizes) -> int:
    if op.op_type == "Loop":
        count = constant_value(op.operands[0]) if op.operands else None
        return int(count.reshape(-1)[0]) if count is not None and count.size else 1
    if op.op_type == "Scan":
        scanned = op.operands[len(op.operands) - int(op.attr("num_scan_inputs", 1)) :]
        dims = known_dims_of(scanned[0].type) if scanned else None
        return sizes.of(dims[0]) if dims else 1
    return 1


def bytes_of(op: Operation, sizes: Sizes, weight_bytes: Callable[[Operation], int]) -> int:
    """Returns the bytes that a node writes, and those of the weights that it is the first to read."""
    return sum(sizes.bytes(r) for r in op.results) + weight_bytes(op)
