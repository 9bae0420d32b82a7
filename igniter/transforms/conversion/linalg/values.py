"""The values of a function during its lowering: tensors of the kernel, known scalars, and scalars that are data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.onnx.lowering.builder import KernelBuilder
from igniter.dialects.onnx.lowering.constants import dims_tensor
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.transforms.conversion.linalg.errors import refused
from igniter.transforms.conversion.linalg.facts import Facts
from igniter.transforms.conversion.linalg.known import Known


@dataclass(frozen=True)
class Empty:
    """A tensor of unspecified elements (`tensor.empty`): its dims matter."""

    dims: tuple[Expr, ...]
    element: Attribute


@dataclass(frozen=True)
class Sizes:
    """An integer tensor of rank 0 or 1 whose elements are known, such as the shape of a reshape."""

    elements: tuple[Known, ...]
    dims: tuple[Expr, ...]
    element: Attribute


Value: TypeAlias = SSAValue | Known | Empty | Sizes
"""A tensor of the kernel (of rank 0 for a scalar that is data), or a value known without one."""


@dataclass
class Scope:
    """The values of one function, and the kernel under construction."""

    kernel: KernelBuilder
    facts: Facts
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])

    def of(self, value: SSAValue, op: Operation) -> Value:
        """Returns the value of an operand of `op`."""
        found = self.values.get(value)
        if found is None:
            raise refused(op, f"its operand of type {value.type} has no value here; only tensors and scalars do")
        return found

    def known(self, value: SSAValue, op: Operation) -> Known | None:
        """Returns a scalar that is known; None for data."""
        found = self.of(value, op)
        return found if isinstance(found, Known) else None

    def size(self, value: SSAValue, op: Operation, what: str = "a size") -> Expr:
        """Returns an index as an expression; raises `LinalgError` for one computed from data."""
        return self.size_of(self.of(value, op), op, what)

    def size_of(self, found: Value, op: Operation, what: str = "a size") -> Expr:
        """Returns a known integer as an expression, and requires what it needs to be defined."""
        if not isinstance(found, Known) or found.expr is None:
            raise refused(
                op, f"{what} depends on data, not only on the sizes of the arguments; make it an argument of type index"
            )
        self.facts.require(op, *found.needs)
        return found.expr

    def tensor(self, value: SSAValue, op: Operation) -> SSAValue:
        """Returns a tensor of the kernel; unspecified elements are 0."""
        found = self.of(value, op)
        if isinstance(found, Empty):
            return self.kernel.splat(0, tensor_of(found.element, found.dims))
        if isinstance(found, Sizes):
            exprs = [self.size_of(e, op) for e in found.elements]
            made = dims_tensor(self.kernel, exprs, tensor_of(found.element, found.dims))
            self.values[value] = made
            return made
        if isinstance(found, Known):
            raise refused(op, f"it takes a tensor, not a scalar of type {value.type}")
        return found

    def dims(self, value: SSAValue, op: Operation) -> tuple[Expr, ...]:
        """Returns the dims of a tensor; none for a scalar."""
        found = self.of(value, op)
        if isinstance(found, Known):
            return ()
        return found.dims if isinstance(found, (Empty, Sizes)) else dims_of(found.type)


def stored_element(kind: Attribute) -> Attribute:
    """Returns the element type in memory: an index is an i64."""
    return i64 if isinstance(kind, IndexType) else kind


def static_dims(kind: TensorType[Attribute]) -> list[int | None]:
    """Returns the dims in a type; None for a dynamic one."""
    return [None if d < 0 else d for d in kind.get_shape()]
