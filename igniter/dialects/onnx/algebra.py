"""Equivalences of nodes: commutative operands, and attributes at their defaults."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast

from xdsl.ir import Attribute

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr, to_python
from igniter.dialects.onnx.base import OnnxOp

# fmt: off
COMMUTATIVE = frozenset((
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Mean", "Min", "Mul", "Or", "Sum", "Xor",
))
# fmt: on
"""The commutative ops of ONNX."""


def commutes(op: OnnxOp) -> bool:
    """True if the operands of a node may be permuted."""
    return op.domain == "" and op.op_type in COMMUTATIVE and len(op.operands) > 1


def said_attributes(op: OnnxOp) -> dict[str, Attribute]:
    """Returns the node's own attributes with values other than the schema's defaults."""
    schema = op.schema
    found: dict[str, Attribute] = {}
    for name, attr in op.attributes.items():
        if name.startswith("igniter."):
            continue
        spec = schema.attributes.get(name) if schema is not None else None
        if spec is None or spec.default is None or not same_value(to_python(attr), spec.default):
            found[name] = attr
    return found


def same_value(a: Any, b: Any) -> bool:
    """True if two attribute values in Python are equal: numbers by value and type, lists element by element."""
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return a is b
    if isinstance(a, tuple):
        return isinstance(b, (list, tuple)) and list(cast("tuple[Any, ...]", a)) == list(cast("list[Any]", b))
    if isinstance(b, tuple):
        return same_value(b, a)
    return type(a) is type(b) and bool(a == b)


def attributes_key(attributes: Mapping[str, Attribute]) -> Hashable:
    """Returns a hash key of attributes; tensors count by type and first bytes, so that no large tensor is read."""
    return tuple(sorted((name, _attribute_key(attr)) for name, attr in attributes.items()))


def _attribute_key(attr: Attribute) -> str:
    if isinstance(attr, TensorAttr):
        return f"{attr.data.describe()} {hash(attr.data)}"
    if isinstance(attr, SparseTensorAttr):
        return "sparse"
    return str(attr)


def attribute_text(attr: Attribute | None) -> str:
    """Returns a short text of an attribute, for messages."""
    if attr is None:
        return "(default)"
    if isinstance(attr, TensorAttr):
        return attr.data.describe()
    value = to_python(attr)
    text = str(attr) if isinstance(value, Attribute) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
