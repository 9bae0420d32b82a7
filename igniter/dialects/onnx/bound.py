"""Values that only a run knows as the dims of a tensor: carriers, and nodes that are bound to one (docs/values.md).

    %t = onnx.Concat(%zero, %v)             // [0, v0, v1]
    %c = onnx.ConstantOfShape(%t) {value = false, igniter.carrier = "..."} : tensor<0x?x?xi1, #sym.dims<0, a, b>>
    %y = onnx.custom(%x, %s, %c) <{domain = "igniter.bound", op_type = "Tile"}>

    %n = onnx.custom(%x) <{domain = "igniter.count", op_type = "NonMaxSuppression"}> {igniter.axis = 0 : i64}

A carrier has no bytes. `igniter.carrier` says what ONNX Runtime's user reads where a value is negative. A bound node
computes what the node of ONNX without its last operand does, and is exported as that; the carrier only tells sizes. It
comes behind all operands that the op can have. A counting node gives one dim of what the node of ONNX would, and is
exported as that and a Shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from igniter.dialects.onnx.attributes import text_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

BOUND_DOMAIN = "igniter.bound"
COUNT_DOMAIN = "igniter.count"
COUNT_AXIS = "igniter.axis"
"""The dim that a counting node gives."""
CARRIER_ATTRIBUTE = "igniter.carrier"
MAX_VALUES = 32
"""Elements of a tensor whose values become dims."""


def is_bound(op: Operation) -> bool:
    """Whether a node is bound to a carrier, its last operand."""
    from igniter.dialects.onnx.base import CustomOp

    return isinstance(op, CustomOp) and op.domain == BOUND_DOMAIN


def is_count(op: Operation) -> bool:
    """Whether a node gives how large a result would be."""
    from igniter.dialects.onnx.base import CustomOp

    return isinstance(op, CustomOp) and op.domain == COUNT_DOMAIN


def is_exported(op: OnnxOp) -> bool:
    """Whether a node of a domain of Igniter's stands for one of ONNX."""
    return is_bound(op) or is_count(op)


def is_carrier(op: Operation) -> bool:
    """Whether a node makes a carrier."""
    return CARRIER_ATTRIBUTE in op.attributes


def carrier_text(op: Operation) -> str:
    """What is wrong where a value of the carrier is negative."""
    return text_of(op.attributes.get(CARRIER_ATTRIBUTE))


def carrier_attr(text: str) -> StringAttr:
    """The attribute that makes a ConstantOfShape a carrier."""
    return StringAttr(text)


def base_name(op: OnnxOp) -> str:
    """The qualified name of the ONNX op that a node computes, bound or not."""
    return op.op_type if is_exported(op) else op.qualified_name


def own_attributes(op: OnnxOp) -> Mapping[str, Any]:
    """The attributes that the model gave a node."""
    kept: dict[str, Attribute] = {k: v for k, v in op.attributes.items() if not k.startswith("igniter.")}
    return kept
