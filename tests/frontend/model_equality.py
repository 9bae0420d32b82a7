"""Whether two models mean the same and carry the same: messages compared field by field, where fields that ONNX allows
to differ in spelling (how a tensor stores its bytes, the order of attributes) are brought into one form first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


def difference(before: onnx.ModelProto, after: onnx.ModelProto, *, base_dir: str = "") -> str | None:
    """What `after` lost or changed of `before`, or `None`; value_info that `after` has besides is no loss."""
    left, right = onnx.ModelProto(), onnx.ModelProto()
    left.CopyFrom(before)
    right.CopyFrom(after)
    for model in (left, right):
        _graph(model.graph, base_dir, model.ir_version)
        for function in model.functions:
            _nodes(function.node, base_dir)
            _values(function.value_info)
        model.opset_import.sort(key=lambda o: o.domain)
        _drop_empty(model)
    _drop_extra_values(left.graph, right.graph)
    for one, two in zip(left.functions, right.functions, strict=False):
        _keep_named(one.value_info, two.value_info, set())
    return None if left == right else _first_difference(left, right, "model")


def _drop_empty(message: Any) -> None:
    """Clear texts and numbers that are set to what they are by default, a node's domain "" among them."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else (value,):
                _drop_empty(item)
        elif not field.is_repeated and value == field.default_value and message.DESCRIPTOR.name != "AttributeProto":
            message.ClearField(field.name)


def _graph(graph: onnx.GraphProto, base_dir: str, ir_version: int) -> None:
    for tensor in graph.initializer:
        _tensor(tensor, base_dir)
    for sparse in graph.sparse_initializer:
        _tensor(sparse.values, base_dir)
        _tensor(sparse.indices, base_dir)
    for values in (graph.input, graph.output, graph.value_info):
        _values(values)
    if ir_version < 4:
        # Initializers are listed as inputs, in any place among them and with any spelling of the type.
        names = {t.name for t in graph.initializer}
        kept = [v for v in graph.input if v.name not in names]
        del graph.input[:]
        graph.input.extend(kept)
    _nodes(graph.node, base_dir)


def _nodes(nodes: Iterable[onnx.NodeProto], base_dir: str) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _tensor(attribute.t, base_dir)
            for tensor in attribute.tensors:
                _tensor(tensor, base_dir)
            if attribute.HasField("sparse_tensor"):
                _tensor(attribute.sparse_tensor.values, base_dir)
                _tensor(attribute.sparse_tensor.indices, base_dir)
            if attribute.HasField("tp"):
                _type(attribute.tp)
            if attribute.HasField("g"):
                _graph(attribute.g, base_dir, 10)
            for graph in attribute.graphs:
                _graph(graph, base_dir, 10)
        node.attribute.sort(key=lambda a: a.name)


def _tensor(tensor: onnx.TensorProto, base_dir: str) -> None:
    if tensor.data_type == onnx.TensorProto.STRING:
        return
    raw = np.ascontiguousarray(numpy_helper.to_array(tensor, base_dir)).tobytes()
    for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data"):
        tensor.ClearField(field)
    tensor.ClearField("data_location")
    tensor.raw_data = raw


def _values(values: Iterable[onnx.ValueInfoProto]) -> None:
    for value in values:
        if value.HasField("type") and value.type.WhichOneof("value") is None and not value.type.denotation:
            value.ClearField("type")
        _type(value.type) if value.HasField("type") else None


def _type(proto: onnx.TypeProto) -> None:
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        for dim in getattr(proto, kind).shape.dim:
            if (dim.HasField("dim_param") and not dim.dim_param) or (dim.HasField("dim_value") and dim.dim_value < 0):
                dim.ClearField("dim_param")
                dim.ClearField("dim_value")
    elif kind in ("sequence_type", "optional_type"):
        _type(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        _type(proto.map_type.value_type)


def _drop_extra_values(left: onnx.GraphProto, right: onnx.GraphProto) -> None:
    known = {t.name for t in left.initializer} | {v.name for v in (*left.input, *left.output)}
    known |= {name for node in left.node if node.op_type == "Constant" for name in node.output}
    produced = {name for node in left.node for name in node.output}
    known |= {v.name for v in left.value_info} - produced
    _keep_named(left.value_info, right.value_info, known)
    for one, two in zip(left.node, right.node, strict=False):
        for a, b in zip(one.attribute, two.attribute, strict=False):
            if a.HasField("g") and b.HasField("g"):
                _drop_extra_values(a.g, b.g)
            for g, h in zip(a.graphs, b.graphs, strict=False):
                _drop_extra_values(g, h)


def _keep_named(left: Any, right: Any, known: set[str]) -> None:
    mine = {v.name: v for v in left if v.name not in known}
    theirs = [v for v in right if v.name in mine]
    ordered = sorted(mine.values(), key=lambda v: v.name)
    theirs.sort(key=lambda v: v.name)
    copies = [[_copy(v) for v in ordered], [_copy(v) for v in theirs]]
    for values, kept in zip((left, right), copies, strict=True):
        del values[:]
        values.extend(kept)


def _copy(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def _first_difference(left: Any, right: Any, where: str) -> str:
    for field in left.DESCRIPTOR.fields:
        a, b = getattr(left, field.name), getattr(right, field.name)
        if field.is_repeated:
            if len(a) != len(b):
                return f"{where}.{field.name}: {len(a)} became {len(b)}"
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                if x != y and not (x != x and y != y):
                    inner = f"{where}.{field.name}[{i}]"
                    return _first_difference(x, y, inner) if field.message_type else f"{inner}: {x!r} became {y!r}"
            continue
        optional = field.has_presence
        if optional and left.HasField(field.name) != right.HasField(field.name):
            return f"{where}.{field.name}: {'lost' if left.HasField(field.name) else 'appeared'}"
        if a != b:
            return (
                _first_difference(a, b, f"{where}.{field.name}")
                if field.message_type
                else f"{where}.{field.name}: {a!r} became {b!r}"
            )
    return f"{where} differs"
