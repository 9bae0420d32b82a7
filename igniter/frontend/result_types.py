"""The element type of a node's result, from its schema, for models without it: enough to type a value before
`infer-shapes` finds its dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import onnx
from xdsl.dialects.builtin import IntegerAttr, TensorType, UnrankedTensorType, f32, i64
from xdsl.ir import Attribute, Region, SSAValue

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr, to_python
from igniter.dialects.onnx.schemas import OpSchema, find_schema
from igniter.dialects.onnx.types import BY_CODE, BY_NAME, UNKNOWN, OptionalType, SequenceType
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.tensor_types import unranked

_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
"""The attributes with the element type of the first output."""

_CONSTANTS: dict[str, tuple[Attribute, bool]] = {
    "value_float": (f32, True),
    "value_floats": (f32, False),
    "value_int": (i64, True),
    "value_ints": (i64, False),
}


class ResultTypes:
    """The types of results by the schemas of the given opsets.

    A type follows from the op, its attributes and the types of its operands. These live as long as the nodes, so keys
    identify them by identity.
    """

    def __init__(self, opsets: Mapping[str, int]):
        self.opsets = opsets
        self._found: dict[tuple[str | int, ...], Attribute] = {}
        self._alive: list[Attribute] = []
        """The objects named by identity in keys, kept alive."""

    def infer(
        self,
        node: onnx.NodeProto,
        index: int,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        regions: Sequence[Region],
    ) -> Attribute:
        """Returns the type of result `index`; `!onnx.unknown` if the schema does not fix it."""
        if regions:
            return self._infer(node, index, operands, attributes, regions)
        types, values = [id(v.type) for v in operands], [id(a) for a in attributes.values()]
        key = (node.domain, node.op_type, index, *attributes, *values, *types)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._infer(node, index, operands, attributes, regions)
            self._alive += (*attributes.values(), *(v.type for v in operands))
        return found

    def _infer(
        self,
        node: onnx.NodeProto,
        index: int,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        regions: Sequence[Region],
    ) -> Attribute:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain == "" and node.op_type in ("Constant", "ConstantOfShape"):
            return _constant(node.op_type, attributes)
        version = self.opsets.get(domain, self.opsets.get("ai.onnx") if domain == "" else None)
        schema = find_schema(domain, node.op_type, version) if version is not None else None
        if schema is None or not schema.outputs:
            return UNKNOWN
        if node.op_type in _SEQUENCE_OPS and operands:
            return _of_sequence(node.op_type, operands[0].type)
        if regions:
            return _of_region(node.op_type, index, operands, regions)
        if index == 0:
            for name in _DTYPE_ATTRIBUTES:
                if name in schema.attributes:
                    code = attributes.get(name)
                    if isinstance(code, IntegerAttr) and code.value.data:
                        row = BY_CODE.get(code.value.data)
                        return _in_sequence(schema, unranked(row.attr)) if row is not None else UNKNOWN
        return _by_schema(schema, index, operands)


def _by_schema(schema: OpSchema, index: int, operands: Sequence[SSAValue]) -> Attribute:
    output = schema.output(index)
    if output.variadic and not output.homogeneous:
        return UNKNOWN
    for position, operand in enumerate(operands):
        parameter = schema.input(position)
        if parameter.type_var == output.type_var and (parameter.homogeneous or not parameter.variadic):
            found = _same_kind(operand.type)
            if found is not None:
                return found
    if len(output.types) == 1:
        return _of_name(next(iter(output.types)))
    default = schema.attributes.get("dtype")
    if default is not None and default.default in BY_CODE:
        return unranked(BY_CODE[default.default].attr)
    if schema.name == "SequenceEmpty":
        return SequenceType(unranked(f32))
    return UNKNOWN


def _in_sequence(schema: OpSchema, element: Attribute) -> Attribute:
    return SequenceType(element) if all(t.startswith("seq(") for t in schema.outputs[0].types) else element


_SEQUENCE_OPS = ("SequenceAt", "SequenceConstruct", "SplitToSequence", "ConcatFromSequence", "OptionalGetElement")


def _of_sequence(op_type: str, first: Attribute) -> Attribute:
    """Returns the result type of an op between sequences (or optionals) and their elements."""
    if op_type in ("SequenceConstruct", "SplitToSequence"):
        inner = _same_kind(first)
        return SequenceType(inner) if inner is not None else UNKNOWN
    if isinstance(first, (SequenceType, OptionalType)):
        return _same_kind(first.element) or UNKNOWN
    return _same_kind(first) or UNKNOWN if op_type == "OptionalGetElement" else UNKNOWN


def _same_kind(type_: Attribute) -> Attribute | None:
    """Returns a type with the same elements and unknown dims."""
    if isinstance(type_, (TensorType, UnrankedTensorType)):
        return unranked(cast("TensorType[Attribute]", type_).element_type)
    if isinstance(type_, (SequenceType, OptionalType)):
        inner = _same_kind(type_.element)
        return type(type_)(inner) if inner is not None else None
    return None


def _of_name(name: str) -> Attribute:
    if name.startswith(("seq(", "optional(")):
        word, _, inner = name[:-1].partition("(")
        found = _of_name(inner)
        return UNKNOWN if found == UNKNOWN else (SequenceType if word == "seq" else OptionalType)(found)
    if name.startswith("tensor("):
        row = BY_NAME.get(name[7:-1])
        return unranked(row.attr) if row is not None else UNKNOWN
    return UNKNOWN


def _constant(op_type: str, attributes: Mapping[str, Attribute]) -> Attribute:
    value = attributes.get("value")
    if op_type == "ConstantOfShape":
        if value is not None and not isinstance(value, TensorAttr):
            return UNKNOWN
        return unranked(value.data.element_type if value is not None else f32)
    if isinstance(value, TensorAttr):
        return value.type
    sparse = attributes.get("sparse_value")
    if isinstance(sparse, SparseTensorAttr):
        return tensor_of(sparse.values.data.element_type, to_python(sparse.dims))
    for name, (element, scalar) in _CONSTANTS.items():
        attr = attributes.get(name)
        if attr is not None and attr.name != "onnx.ref":
            return TensorType(element, () if scalar else (len(to_python(attr)),))
    strings = attributes.get("value_strings")
    if strings is not None and strings.name != "onnx.ref":
        return TensorType(BY_NAME["string"].attr, (len(to_python(strings)),))
    string = attributes.get("value_string")
    return TensorType(BY_NAME["string"].attr, ()) if string is not None and string.name != "onnx.ref" else UNKNOWN


def _of_region(op_type: str, index: int, operands: Sequence[SSAValue], regions: Sequence[Region]) -> Attribute:
    """Returns the type of a branch's or body's value for result `index`."""
    last = regions[0].block.last_op
    returned = list(last.operand_types) if last is not None else []
    if op_type == "If":
        return _same_kind(returned[index]) or UNKNOWN if index < len(returned) else UNKNOWN
    if op_type == "Loop":
        return _same_kind(returned[index + 1]) or UNKNOWN if index + 1 < len(returned) else UNKNOWN
    if op_type == "Scan":
        return _same_kind(returned[index]) or UNKNOWN if index < len(returned) else UNKNOWN
    return UNKNOWN
