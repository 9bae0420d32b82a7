"""Constants inside a region, as tensors of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.lowering.builder import KernelBuilder, Nest
from igniter.dialects.onnx.lowering.scalar import Number, Scalar
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, linearize
from igniter.errors import IgniterError

TABLE_ELEMENTS = 16
"""The maximum number of elements of a non-uniform constant inside a kernel (as a chain of selects)."""


def is_inline(array: np.ndarray[Any, Any]) -> bool:
    """True if `constant_tensor` accepts the array: all elements have the same bits, or there are few. Other constants
    are operands."""
    return array.size <= TABLE_ELEMENTS or _splat(array) is not None


def constant_tensor(kernel: KernelBuilder, array: np.ndarray[Any, Any], tensor_type: Attribute) -> SSAValue:
    """Returns the constant as a tensor of the kernel."""
    number = _splat(array) if array.size else 0
    if number is not None:
        return kernel.splat(number, tensor_type)
    if array.size > TABLE_ELEMENTS:
        raise IgniterError(
            f"a constant of {array.size} elements is too large for a kernel; it must be an operand of its region"
        )
    nest = kernel.nest("constant")
    dims = dims_of(tensor_type)
    axes = nest.axes(dims)
    value = _table(nest, [_number(v) for v in array.reshape(-1)], linearize(axes, dims), element_of(tensor_type))
    return nest.finish(("none", value, axes, tensor_type))[0]


def dims_tensor(kernel: KernelBuilder, elements: Sequence[Expr], tensor_type: Attribute) -> SSAValue:
    """Returns the integer tensor of rank 0 or 1 whose elements are expressions over the symbols."""
    nest = kernel.nest("dims")
    axes = nest.axes(dims_of(tensor_type))
    at = nest.index(axes[0] if axes else 0)
    value = nest.index(elements[0] if elements else 0)
    for place, element in enumerate(elements):
        if place and element != elements[place - 1]:
            value = (at >= place).select(nest.index(element), value)
    return nest.finish(("none", value.to(element_of(tensor_type)), axes, tensor_type))[0]


def _table(nest: Nest, numbers: list[Number], position: Expr, element: Attribute) -> Scalar:
    """Returns the number at `position`, selected by comparisons with every position where the number changes."""
    at = nest.index(position)
    value = nest.const(numbers[0], element)
    for place, number in enumerate(numbers):
        if place and number != numbers[place - 1]:
            value = (at >= place).select(nest.const(number, element), value)
    return value


def _splat(array: np.ndarray[Any, Any]) -> Number | None:
    """Returns the common number of all elements, compared bitwise; None if they differ (even in the sign of a zero)."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size == 0:
        return None
    if flat.size > 1 and (flat.view(np.uint8).reshape(flat.size, -1) != flat[:1].view(np.uint8)).any():
        return None
    return _number(flat[0])


def _number(value: Any) -> Number:
    return bool(value) if value.dtype.kind == "b" else int(value) if value.dtype.kind in "iu" else float(value)
