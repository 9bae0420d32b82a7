"""Looking at the types of tensors, ranked or not."""

from __future__ import annotations

from functools import cache
from typing import cast

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute

from igniter.dialects.sym import DYNAMIC, DimsAttr
from igniter.dialects.sym.expr import Expr


def ranked(type_: Attribute) -> TensorType[Attribute] | None:
    """The type, when it is a tensor of known rank."""
    return type_ if type(type_) is TensorType else None


def tensor_element(type_: Attribute) -> Attribute | None:
    """The element type of a tensor of any rank; `None` for what is no tensor."""
    # Types are final classes, and an isinstance that fails asks their metaclass.
    kind = type(type_)
    if kind is TensorType or kind is UnrankedTensorType:
        return cast("TensorType[Attribute]", type_).element_type
    return None


@cache
def unranked(element: Attribute) -> UnrankedTensorType[Attribute]:
    """A tensor of unknown rank."""
    return UnrankedTensorType(element)


def declared_dims(type_: Attribute) -> list[Expr | None] | None:
    """The dims of a ranked tensor type, `None` for a dynamic dim without a name; `None` for any other type."""
    tensor = ranked(type_)
    if tensor is None:
        return None
    if isinstance(tensor.encoding, DimsAttr):
        return list(tensor.encoding.data)
    return [None if d == DYNAMIC else Expr.of(d) for d in tensor.get_shape()]


def known_dims_of(type_: Attribute) -> tuple[Expr, ...] | None:
    """The dims of a tensor type; `None` where the rank or a dim's name is not known."""
    dims = declared_dims(type_)
    known = [d for d in dims if d is not None] if dims is not None else []
    return tuple(known) if dims is not None and len(known) == len(dims) else None
