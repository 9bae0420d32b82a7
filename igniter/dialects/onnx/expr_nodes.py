"""Expressions of symbols as ONNX nodes on i64 tensors of one element and one axis.

    2*seq + 1    ->    %d = onnx.Mul(%seq, [2])
                       %t = onnx.Add(%d, [1])

Each expression, each call and each list of constants is computed once. ONNX's `Div` rounds towards zero and its `Mod`
downwards, so the quotient of a number that may be negative is `Div(a - Mod(a, b), b)`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.dialects.onnx.base import OnnxOp, make_constant, make_op
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Atom, Call, Expr
from igniter.dialects.sym.lowering import Lowering


class ExprNodes(Lowering[SSAValue]):
    """Inserts nodes into a block before an op. A subclass reads the symbols."""

    coefficient_first = False
    named = False
    """True to name the results; named constants are exported as initializers."""

    def __init__(self, block: Block, before: Operation):
        self._block = block
        self.before = before
        self._made: dict[Any, SSAValue] = {}

    @abstractmethod
    def read_symbol(self, name: str) -> SSAValue:
        """Returns a new tensor with the value of a symbol."""

    # -- the fold -----------------------------------------------------------------------------------------------------

    def ordered(self, values: Iterator[SSAValue]) -> Iterable[SSAValue]:
        return list(values)

    def lower(self, e: Expr) -> SSAValue:
        value = self.known(e)
        return self.keep(e, super().lower(e)) if value is None else value

    def atom(self, atom: Atom) -> SSAValue:
        value = self.known(atom)
        return self.keep(atom, super().atom(atom)) if value is None else value

    def constant(self, value: int) -> SSAValue:
        return self.ints([value])

    def symbol(self, name: str) -> SSAValue:
        return self.read_symbol(name)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary("Add", a, b)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary("Mul", a, b)

    def floordiv(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        whole = a if self.is_exact(call) else self._binary("Sub", a, self.mod(a, b, call))
        return self._binary("Div", whole, b)

    def mod(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        return self._binary("Mod", a, b)

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary("Min", a, b)

    def maximum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary("Max", a, b)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def known(self, key: object) -> SSAValue | None:
        """Returns an earlier result, unless it was erased with its last reader."""
        value = self._made.get(key)
        erased = value is None or (isinstance(value.owner, Operation) and value.owner.parent is None)
        return None if erased else value

    def keep(self, key: object, value: SSAValue) -> SSAValue:
        """Returns `value`, remembered as the result for `key`."""
        self._made[key] = value
        return value

    def ints(self, values: Sequence[int]) -> SSAValue:
        """Returns a constant list."""
        import numpy as np

        key = ("ints", *values)
        known = self.known(key)
        if known is not None:
            return known
        name = f"ints_{'_'.join(map(str, values))}" if self.named else ""
        return self.keep(key, self._insert(make_constant(np.array(values, np.int64), name)))

    def node(self, name: str, operands: Sequence[SSAValue], result: Attribute, **attrs: int) -> SSAValue:
        """Returns the result of a new node."""
        op = make_op(name, list(operands), [result], attrs)
        if self.named:
            op.results[0].name_hint = f"{name.lower()}_of_shape"
        return self._insert(op)

    def _insert(self, op: OnnxOp) -> SSAValue:
        self._block.insert_op_before(op, self.before)
        return op.results[0]

    def _binary(self, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
        key = (name, a, b)
        known = self.known(key)
        return self.keep(key, self.node(name, [a, b], tensor_of(i64, [1]))) if known is None else known
