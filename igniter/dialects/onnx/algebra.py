"""What is the same node written in another way: the order of operands that commute, attributes at their defaults."""

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
"""Ops of ONNX whose operands may stand in any order."""


def commutes(op: OnnxOp) -> bool:
    """Whether the operands of a node may stand in any order."""
    return op.domain == "" and op.op_type in COMMUTATIVE and len(op.operands) > 1


def said_attributes(op: OnnxOp) -> dict[str, Attribute]:
    """The attributes of a node that are its own, and say something else than the schema's default."""
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
    """Whether two attribute values in Python are the same: numbers by value, lists element by element."""
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return a is b
    if isinstance(a, tuple):
        return isinstance(b, (list, tuple)) and list(cast("tuple[Any, ...]", a)) == list(cast("list[Any]", b))
    if isinstance(b, tuple):
        return same_value(b, a)
    return type(a) is type(b) and bool(a == b)


def attributes_key(attributes: Mapping[str, Attribute]) -> Hashable:
    """What tells attributes apart; a tensor by its type and first bytes, so that no big one is read."""
    return tuple(sorted((name, _attribute_key(attr)) for name, attr in attributes.items()))


def _attribute_key(attr: Attribute) -> str:
    if isinstance(attr, TensorAttr):
        return f"{attr.data.describe()} {hash(attr.data)}"
    if isinstance(attr, SparseTensorAttr):
        return "sparse"
    return str(attr)


def attribute_text(attr: Attribute | None) -> str:
    """An attribute for a message: short."""
    if attr is None:
        return "(default)"
    if isinstance(attr, TensorAttr):
        return attr.data.describe()
    value = to_python(attr)
    text = str(attr) if isinstance(value, Attribute) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
