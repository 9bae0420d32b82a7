"""Element types of a model's values, as ONNX's codes, by the schemas of its ops; dims are ignored."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from igniter.dialects.onnx.schemas import find_schema
from igniter.dialects.onnx.types import BY_NAME

_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")

Codes = dict[str, int]


def add_codes(graph: onnx.GraphProto, codes: Codes) -> None:
    """Adds the types declared by a graph: of inputs, initializers, and listed values."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        code = value.type.tensor_type.elem_type
        if code:
            codes[value.name] = code
    codes.update((t.name, t.data_type) for t in graph.initializer)
    codes.update((t.values.name, t.values.data_type) for t in graph.sparse_initializer)


def add_results(node: onnx.NodeProto, opsets: Mapping[str, int], codes: Codes) -> None:
    """Adds the unknown types of a node's results, if the schema fixes them."""
    missing = [(i, name) for i, name in enumerate(node.output) if name and name not in codes]
    for index, name in missing:
        code = _code(node, index, opsets, codes)
        if code:
            codes[name] = code


def _code(node: onnx.NodeProto, index: int, opsets: Mapping[str, int], codes: Codes) -> int:
    domain = "" if node.domain == "ai.onnx" else node.domain
    graphs = [a.g for a in node.attribute if a.HasField("g")]
    if graphs:
        return _code_of_graph(node, index, graphs[0], codes)
    if domain == "" and node.op_type in ("Constant", "ConstantOfShape"):
        return _code_of_constant(node)
    version = opsets.get(domain)
    schema = None if version is None else find_schema(domain, node.op_type, version)
    if schema is None or not schema.outputs:
        return 0
    if index == 0:
        for attribute in node.attribute:
            if attribute.name in _DTYPE_ATTRIBUTES and attribute.i:
                return attribute.i
    output = schema.output(index)
    for position, given in enumerate(node.input):
        parameter = schema.input(position)
        if parameter.type_var == output.type_var and (parameter.homogeneous or not parameter.variadic):
            return codes.get(given, 0)
    names = list(output.types)
    if len(names) == 1 and names[0].startswith("tensor("):
        row = BY_NAME.get(names[0][len("tensor(") : -1])
        return 0 if row is None else row.code
    return 0


def _code_of_graph(node: onnx.NodeProto, index: int, graph: onnx.GraphProto, codes: Codes) -> int:
    """Returns the type declared by the body. A loop's body has the condition before the results."""
    at = index + 1 if node.op_type == "Loop" else index
    if at >= len(graph.output):
        return 0
    declared = graph.output[at].type.tensor_type.elem_type
    carried = index + 2 if node.op_type == "Loop" else index
    if declared or node.op_type == "If" or carried >= len(node.input):
        return declared
    return codes.get(node.input[carried], 0)


def _code_of_constant(node: onnx.NodeProto) -> int:
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values.data_type
        if attribute.name in ("value_int", "value_ints"):
            return onnx.TensorProto.INT64
        if attribute.name in ("value_float", "value_floats"):
            return onnx.TensorProto.FLOAT
    return onnx.TensorProto.FLOAT if node.op_type == "ConstantOfShape" else 0
