"""The requirements of one node on the dims around it, in terms of the model's symbols.

They have three sources. The first is `OpSpec.requires`. The second is the shape rule: its equated dims and its result
dims, evaluated again with the final types of inference (possibly simpler than derivable by the rule: `seq` for
`min(512, seq)`, because another node needs them equal). The third: no result may have a negative dim. All use only
symbols of the node's operands, results and known values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import NoneType, TensorType
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.lowering.context import operand_values
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import Dims, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import NO_RANGES, simplify
from igniter.dialects.sym.requirements import Requirement, at_most, equal, unproven

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.base import OnnxOp

_OPEN = "?"
"""The prefix of the unknown dims of a shape rule."""


def node_requirements(op: OnnxOp) -> list[Requirement]:
    """Returns the requirements to check in a run of the node, each fact once, without proven ones."""
    spec = spec_of(op)
    found: list[Requirement] = []
    if spec is not None and spec.requires is not None:
        found += spec.requires(op)
    if spec is not None and spec.infer is not None:
        found += _of_rule(op, spec.infer)
    for result in op.results:
        for dim in _dims(result) or ():
            if dim.symbol is None:
                found.append(at_most(0, dim, "a dim of its result would be negative"))
    return unproven(found)


def _of_rule(op: OnnxOp, infer: Any) -> list[Requirement]:
    """Returns the equalities of the shape rule, including those of its result dims with the types."""
    ctx = TypedContext(op)
    try:
        infos: list[TensorInfo] = infer(ctx)
    except (ValueError, IndexError, ArithmeticError):
        # Inference kept the type of the model, and reported it.
        return []
    for result, info in zip(op.results, infos, strict=False):
        dims = _dims(result)
        if dims is None or info.dims is None or len(dims) != len(info.dims):
            continue
        for found, taken in zip(info.dims, dims, strict=True):
            if found != taken:
                ctx.equate(simplify(found, NO_RANGES), taken)
    return ctx.equated


class TypedContext:
    """An `InferContext` over the types of values; it records the equalities of the rule."""

    optimistic = False

    def __init__(self, op: OnnxOp):
        self.op = op
        self.equated: list[Requirement] = []
        self._operands = op.inputs

    def input(self, index: int) -> TensorInfo | None:
        """Returns the operand; None if it is omitted or no tensor."""
        value = self._operands[index] if index < len(self._operands) else None
        if value is None or not isinstance(value.type, TensorType):
            return None
        return TensorInfo(element_of(cast("Attribute", value.type)), _dims(value), self.values(index))

    def values(self, index: int) -> Dims | None:
        """Returns the elements of an integer operand; None if unknown."""
        return operand_values(self.op, index)

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """Returns the value of an operand; None if it is not constant."""
        value = self._operands[index] if index < len(self._operands) else None
        return None if value is None else constant_value(value)

    def fresh(self, hint: str) -> Expr:
        """Returns an unknown dim."""
        return Expr.of(_OPEN + re.sub(r"\W+", "_", hint))

    def equate(self, a: Expr, b: Expr) -> None:
        """Records an equality of two dims, valid in every run accepted by ONNX Runtime."""
        if a != b and not any(name.startswith(_OPEN) for name in a.symbols | b.symbols):
            self.equated.append(equal(a, b, "its dims are inconsistent"))


def _dims(value: SSAValue) -> Dims | None:
    if isinstance(value.type, NoneType):
        return None
    try:
        return dims_of(value.type)
    except ValueError:
        return None
