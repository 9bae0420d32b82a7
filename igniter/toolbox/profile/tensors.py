"""Facts of tensor types, looked up once each: element, dims, number of elements, bytes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.toolbox.profile.profile import Tensor


@dataclass(frozen=True)
class TensorFact:
    """A tensor type; without a known rank it has neither a number of elements nor bytes."""

    tensor: Tensor
    elements: Expr | None
    nbytes: Expr | None


class TensorTable:
    """Facts by type. Types are compared by identity: hashing one costs as much as computing its facts."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Attribute, TensorFact | None]] = {}

    def of(self, type_: Attribute) -> TensorFact | None:
        """Returns the facts; `None` for other types."""
        found = self._found.get(id(type_))
        if found is None:
            # The type is kept alive: another one could get its identity.
            found = self._found[id(type_)] = type_, _fact(type_)
        return found[1]


def _fact(type_: Attribute) -> TensorFact | None:
    element = tensor_element(type_)
    if element is None:
        return None
    try:
        row = element_type(element)
    except (KeyError, ValueError):
        return None
    dims = known_dims_of(type_)
    if dims is None:
        return TensorFact(Tensor(row.onnx_name, None), None, None)
    elements = product(dims)
    return TensorFact(Tensor(row.onnx_name, dims), elements, bytes_of(elements, row.bits))


def bytes_of(elements: Expr, bits: int) -> Expr:
    """Returns the bytes of `elements` elements, packed if they are smaller than a byte."""
    if bits % 8 == 0:
        return elements * (bits // 8)
    return (elements * bits).ceildiv(8)
