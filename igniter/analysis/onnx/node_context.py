"""A shape rule's view of its node: facts about its operands, and methods to report results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, SSAValue

from igniter.analysis.onnx.symbolic_values import as_elements, known_elements
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.registry import Dims, TensorInfo
from igniter.dialects.onnx.types import element_type
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.analysis.onnx.shape_inference import ShapeInference

    Array = np.ndarray[Any, Any]


class NodeContext:
    """The view of a node for a shape rule (`InferContext`) and for a rule of shape arithmetic (`ValueContext`)."""

    def __init__(self, engine: ShapeInference, op: OnnxOp):
        self.engine = engine
        self.op = op
        self.optimistic = engine.optimistic
        self.read_constant = False
        """True if a rule has read a constant whose elements are not part of shape arithmetic."""
        self._operands = list(op.operands)

    def _operand(self, index: int) -> SSAValue | None:
        if index >= len(self._operands):
            return None
        value = self._operands[index]
        return None if type(value.type) is NoneType else value

    def input(self, index: int) -> TensorInfo | None:
        """Returns the facts about an operand; `None` if it is omitted or no tensor."""
        value = self._operand(index)
        info = self.engine.info(value) if value is not None else None
        if info is None or value not in self.engine.elements:
            return info
        return TensorInfo(info.element, info.dims, self.values(index))

    def values(self, index: int) -> Dims | None:
        """Returns the elements of an integer operand: constants, or expressions of shape arithmetic."""
        array = self.elements(index)
        return None if array is None else known_elements(array)

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """Returns the operand's value, if it is a constant tensor of any type, or shape arithmetic with a constant
        result."""
        value = self._operand(index)
        if value is None:
            return None
        found = constant_value(value)
        if found is None:
            return self._folded(value)
        self._note(value)
        return found

    def weight(self, index: int) -> Weight | None:
        """Returns `constant` as a weight, without reading its bytes."""
        value = self._operand(index)
        if value is None:
            return None
        found = constant_weight(value)
        if found is not None:
            self._note(value)
            return found

        folded = self.constant(index)
        return Weight.of(folded) if folded is not None else None

    def _note(self, constant: SSAValue) -> None:
        if constant not in self.engine.elements:
            self.read_constant = True

    def _folded(self, value: SSAValue) -> np.ndarray[Any, Any] | None:
        array, info = self.engine.elements.get(value), self.engine.infos.get(value)
        if array is None or info is None:
            return None
        constants = [e.constant if e is not None else None for e in array.flat]
        if any(c is None for c in constants):
            return None

        return np.array(constants, dtype=element_type(info.element).dtype).reshape(array.shape)

    def fresh(self, hint: str) -> Expr:
        """Returns an unknown dim: the same symbol each time that this node asks with this hint."""
        return self.engine.fresh(self.op, hint)

    def equate(self, a: Expr, b: Expr) -> None:
        """Records that two dims are equal in every valid run (as broadcasting or MatMul require)."""
        self.engine.equalities.equate(a, b)

    def elements(self, index: int) -> Array | None:
        """Returns the operand's elements, some of them perhaps unknown; `None` when nothing is known of them."""
        value = self._operand(index)
        array = self.engine.elements.get(value) if value is not None else None
        if array is None or self.engine.equalities.version == 0:
            return array
        resolve = self.engine.equalities.resolve
        return as_elements([None if e is None else resolve(e) for e in array.flat], array.shape)

    def shape(self, index: int) -> Dims | None:
        """Returns the operand's dims; `None` when its rank is not known."""
        value = self._operand(index)
        info = self.engine.info(value) if value is not None else None
        return None if info is None else info.dims

    def element(self, index: int) -> Attribute | None:
        """Returns the operand's element type; `None` when it is not known."""
        found = self.input(index)
        return None if found is None else found.element
