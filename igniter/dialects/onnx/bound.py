"""Run-time values as the dims of a tensor: carriers, and nodes bound to a carrier (docs/explanation/values.md).

    %t = onnx.Concat(%zero, %v)             // [0, v0, v1]
    %c = onnx.ConstantOfShape(%t) {value = false, igniter.carrier = "..."} : tensor<0x?x?xi1, #sym.dims<0, a, b>>
    %y = onnx.custom(%x, %s, %c) <{domain = "igniter.bound", op_type = "Tile"}>

    %n = onnx.custom(%x) <{domain = "igniter.count", op_type = "NonMaxSuppression"}> {igniter.axis = 0 : i64}

A carrier has no bytes. `igniter.carrier` is the error message of ONNX Runtime for a negative value. A bound node
computes the same as the ONNX node without the last operand, and is exported as such; its carrier only provides sizes,
and follows all operands of the op. A counting node gives one dim of the result of the ONNX node, and is exported as the
node and a Shape.
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
"""The attribute with the dim given by a counting node."""
CARRIER_ATTRIBUTE = "igniter.carrier"
MAX_VALUES = 32
"""The maximum number of elements of a tensor whose values become dims."""


def is_bound(op: Operation) -> bool:
    """True if a node is bound to a carrier, its last operand."""
    from igniter.dialects.onnx.base import CustomOp

    return isinstance(op, CustomOp) and op.domain == BOUND_DOMAIN


def is_count(op: Operation) -> bool:
    """True if a node computes one dim of a result."""
    from igniter.dialects.onnx.base import CustomOp

    return isinstance(op, CustomOp) and op.domain == COUNT_DOMAIN


def is_exported(op: OnnxOp) -> bool:
    """True if a node of an Igniter domain is exported as an ONNX node."""
    return is_bound(op) or is_count(op)


def is_carrier(op: Operation) -> bool:
    """True if a node makes a carrier."""
    return CARRIER_ATTRIBUTE in op.attributes


def carrier_text(op: Operation) -> str:
    """Returns the error message for a negative value of the carrier."""
    return text_of(op.attributes.get(CARRIER_ATTRIBUTE))


def carrier_attr(text: str) -> StringAttr:
    """Returns the attribute of a ConstantOfShape used as a carrier."""
    return StringAttr(text)


def base_name(op: OnnxOp) -> str:
    """Returns the qualified name of the ONNX op computed by a node, bound or not."""
    return op.op_type if is_exported(op) else op.qualified_name


def own_attributes(op: OnnxOp) -> Mapping[str, Any]:
    """Returns the attributes of a node from the model."""
    kept: dict[str, Attribute] = {k: v for k, v in op.attributes.items() if not k.startswith("igniter.")}
    return kept
