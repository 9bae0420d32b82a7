"""Facts of tensor types, looked up once each."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from igniter.analysis.onnx.op_counts import TensorSize, tensor_size
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.toolbox.profile.profile import Tensor


@dataclass(frozen=True)
class TensorFact:
    """A tensor type; without a known rank it has no size."""

    tensor: Tensor
    size: TensorSize | None


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
    row = BY_ATTR.get(element) if element is not None else None
    return None if row is None else TensorFact(Tensor(row.onnx_name, known_dims_of(type_)), tensor_size(type_))
