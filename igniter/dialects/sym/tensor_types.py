"""Queries on the types of tensors, ranked or unranked."""

from __future__ import annotations

from functools import cache
from typing import cast

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute

from igniter.dialects.sym import DYNAMIC, DimsAttr
from igniter.dialects.sym.expr import Expr


def ranked(type_: Attribute) -> TensorType[Attribute] | None:
    """Returns the type if it is a tensor of known rank; else None."""
    return type_ if type(type_) is TensorType else None


def tensor_element(type_: Attribute) -> Attribute | None:
    """Returns the element type of a tensor of any rank; `None` for other types."""
    # Types are final classes; a failing isinstance would query their metaclass.
    kind = type(type_)
    if kind is TensorType or kind is UnrankedTensorType:
        return cast("TensorType[Attribute]", type_).element_type
    return None


@cache
def unranked(element: Attribute) -> UnrankedTensorType[Attribute]:
    """Returns the type of a tensor of unknown rank."""
    return UnrankedTensorType(element)


def declared_dims(type_: Attribute) -> list[Expr | None] | None:
    """Returns the dims of a ranked tensor type, with `None` for each unnamed dynamic dim; `None` for any other type."""
    tensor = ranked(type_)
    if tensor is None:
        return None
    if isinstance(tensor.encoding, DimsAttr):
        return list(tensor.encoding.data)
    return [None if d == DYNAMIC else Expr.of(d) for d in tensor.get_shape()]


def known_dims_of(type_: Attribute) -> tuple[Expr, ...] | None:
    """Returns the dims of a tensor type; `None` if the rank or the name of a dim is unknown."""
    dims = declared_dims(type_)
    known = [d for d in dims if d is not None] if dims is not None else []
    return tuple(known) if dims is not None and len(known) == len(dims) else None
