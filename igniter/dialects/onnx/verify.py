"""Checks of a node against its schema: the counts and types of inputs and outputs, and the names and kinds of
attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import NoneType, TensorType, UnrankedTensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.onnx.attributes import RefAttr, attribute_kind
from igniter.dialects.onnx.registry import NARROW_ATTRIBUTE
from igniter.dialects.onnx.types import (
    BY_ATTR,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
)

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.schemas import OpSchema, Parameter

_KIND_NAMES = {
    1: "float",
    2: "int",
    3: "string",
    4: "tensor",
    5: "graph",
    6: "floats",
    7: "ints",
    8: "strings",
    9: "tensors",
    10: "graphs",
    11: "sparse tensor",
    12: "sparse tensors",
    13: "type",
    14: "types",
}


def type_name(type_: Attribute) -> str | None:
    """Returns a type in the spelling of schemas, `seq(tensor(float))`; `None` if it is not fully known."""
    if isinstance(type_, (TensorType, UnrankedTensorType)):
        row = BY_ATTR.get(cast("TensorType[Attribute]", type_).element_type)
        return f"tensor({row.onnx_name})" if row is not None else None
    if isinstance(type_, SparseTensorType):
        inner = type_name(type_.dense)
        return f"sparse_{inner}" if inner is not None else None
    if isinstance(type_, (SequenceType, OptionalType)):
        inner = type_name(type_.element)
        word = "seq" if isinstance(type_, SequenceType) else "optional"
        return f"{word}({inner})" if inner is not None else None
    if isinstance(type_, MapType):
        key, value = BY_ATTR.get(type_.key), type_name(type_.value)
        if key is None or value is None:
            return None
        # Schemas write the scalar value type of a map without `tensor(...)`.
        scalar = value.removeprefix("tensor(").removesuffix(")")
        return f"map({key.onnx_name}, {scalar})"
    return None


def verify_node(op: OnnxOp) -> None:
    """Checks that `op` conforms to its schema and raises `VerifyException` otherwise; accepts any
    op without a schema."""
    from igniter.dialects.onnx.base import CustomOp

    if isinstance(op, CustomOp):
        if not op.op_type:
            raise VerifyException("onnx.custom needs the property op_type")
        return
    names = op.properties.get("output_names")
    if names is not None and len(op.output_names) != len(op.results):
        raise VerifyException(
            f"{_what(op)}: output_names has {len(op.output_names)} names for {len(op.results)} results"
        )
    schema = op.schema
    if schema is None:
        raise VerifyException(f"{_what(op)}: opset {op.opset} of {op.domain or 'ai.onnx'} has no such op")
    if schema.deprecated:
        raise VerifyException(f"{_what(op)}: deprecated since opset {schema.since_version}")
    _verify_count(op, "input", op.operand_types, schema.inputs, schema.min_inputs, schema.max_inputs)
    _verify_count(op, "output", op.result_types, schema.outputs, schema.min_outputs, schema.max_outputs)
    if op.OP_TYPE != "Constant":
        # Constants are exempt: exporters wrote int64 constants before opset 9 allowed them.
        _verify_types(op, schema)
    _verify_attributes(op, schema)


def _what(op: OnnxOp) -> str:
    return f"{op.qualified_name} {op.node_name!r}" if op.node_name else op.qualified_name


def _verify_count(
    op: OnnxOp, what: str, types: Sequence[Attribute], parameters: tuple[Parameter, ...], least: int, most: int
) -> None:
    if not least <= len(types) <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        raise VerifyException(f"{_what(op)}: {len(types)} {what}s where opset {op.opset} takes {expected}")
    for type_, parameter in zip(types, parameters, strict=False):
        if isinstance(type_, NoneType) and not parameter.optional and not parameter.variadic and what == "input":
            raise VerifyException(f"{_what(op)}: {what} {parameter.name!r} is omitted but required")


def _verify_types(op: OnnxOp, schema: OpSchema) -> None:
    bound: dict[str, tuple[str, str]] = {}
    for parameters, types in ((schema.inputs, op.operand_types), (schema.outputs, op.result_types)):
        if not parameters:
            continue
        last = len(parameters) - 1
        for index, type_ in enumerate(types):
            parameter = parameters[min(index, last)]
            found = type_name(type_)
            if found is None:
                continue
            if found == "tensor(bfloat16)" and NARROW_ATTRIBUTE in op.attributes:
                found = "tensor(float)"
            if found not in parameter.types:
                raise VerifyException(f"{_what(op)}: {parameter.name!r} is {found}, {_allowed(parameter)}")
            if parameter.variadic and not parameter.homogeneous:
                continue
            first, where = bound.setdefault(parameter.type_var, (found, parameter.name))
            if first != found:
                raise VerifyException(f"{_what(op)}: {parameter.name!r} is {found}, but {where!r} is {first}")


def _allowed(parameter: Parameter) -> str:
    if len(parameter.types) > 8:
        return f"which is not one of the {len(parameter.types)} allowed types"
    return f"allowed are {', '.join(sorted(parameter.types))}"


def _verify_attributes(op: OnnxOp, schema: OpSchema) -> None:
    graphs = op.graph_names if op.regions else []
    if len(graphs) != len(op.regions):
        raise VerifyException(f"{_what(op)}: {len(op.regions)} regions, but {len(graphs)} names in the property graphs")
    for name, attr in op.attributes.items():
        if name.startswith("igniter."):
            continue
        spec = schema.attributes.get(name)
        if spec is None:
            known = ", ".join(sorted(schema.attributes)) or "none"
            raise VerifyException(f"{_what(op)}: no attribute {name!r} in opset {op.opset}; it has {known}")
        kind = attribute_kind(attr)
        if kind != spec.kind and not isinstance(attr, RefAttr):
            found = _KIND_NAMES.get(kind or 0, str(attr))
            raise VerifyException(f"{_what(op)}: attribute {name!r} is {found}, not {_KIND_NAMES[spec.kind]}")
    for name, spec in schema.attributes.items():
        if spec.required and name not in op.attributes and name not in graphs:
            raise VerifyException(f"{_what(op)}: attribute {name!r} is missing")
