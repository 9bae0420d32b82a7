"""`AttributeProto` to IR attributes and back; graphs are regions of the op instead."""

from __future__ import annotations

from typing import Any, cast

import onnx
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, f32, i64
from xdsl.ir import Attribute, TypeAttribute

from igniter.dialects.onnx.attributes import (
    EmptyListAttr,
    RefAttr,
    SparseTensorAttr,
    TensorAttr,
    attribute_kind,
    floats_attr,
    int_attr,
    ints_attr,
    text_attr,
    text_of,
    to_python,
)
from igniter.errors import IgniterError
from igniter.frontend.tensors import Source, TensorSink, export_sparse, export_tensor, import_sparse, import_tensor
from igniter.frontend.value_types import DimNames, Symbols, export_type, import_type

Kind = onnx.AttributeProto

_FIELDS = (
    (Kind.FLOAT, "f"),
    (Kind.INT, "i"),
    (Kind.STRING, "s"),
    (Kind.TENSOR, "t"),
    (Kind.GRAPH, "g"),
    (Kind.SPARSE_TENSOR, "sparse_tensor"),
    (Kind.TYPE_PROTO, "tp"),
    (Kind.FLOATS, "floats"),
    (Kind.INTS, "ints"),
    (Kind.STRINGS, "strings"),
    (Kind.TENSORS, "tensors"),
    (Kind.GRAPHS, "graphs"),
    (Kind.SPARSE_TENSORS, "sparse_tensors"),
    (Kind.TYPE_PROTOS, "type_protos"),
)


def attribute_type(proto: onnx.AttributeProto) -> int:
    """Returns the attribute's kind; old models omit it, and then the field with a value determines it."""
    if proto.type != Kind.UNDEFINED:
        return proto.type
    for kind, name in _FIELDS:
        repeated = kind in (6, 7, 8, 9, 10, 12, 14)
        if (len(getattr(proto, name)) > 0) if repeated else proto.HasField(cast(Any, name)):
            return kind
    raise IgniterError(f"attribute {proto.name!r} has neither a type nor a value")


def import_attribute(
    proto: onnx.AttributeProto, source: Source | None = None, symbols: Symbols | None = None
) -> Attribute:
    """Returns the IR attribute; for a graph or graphs, see the importer."""
    source = source if source is not None else Source()
    symbols = symbols if symbols is not None else Symbols()
    kind = attribute_type(proto)
    if proto.ref_attr_name:
        return RefAttr(StringAttr(proto.ref_attr_name), IntegerAttr(kind, i64))
    if kind == Kind.FLOAT:
        return FloatAttr(proto.f, f32)
    if kind == Kind.INT:
        return int_attr(proto.i)
    if kind == Kind.STRING:
        return text_attr(proto.s)
    if kind == Kind.TENSOR:
        return TensorAttr(import_tensor(proto.t, source))
    if kind == Kind.SPARSE_TENSOR:
        return import_sparse(proto.sparse_tensor, source)
    if kind == Kind.TYPE_PROTO:
        return import_type(proto.tp, symbols)
    if kind == Kind.FLOATS:
        return floats_attr(proto.floats)
    if kind == Kind.INTS:
        return ints_attr(proto.ints)
    items: list[Attribute]
    if kind == Kind.STRINGS:
        items = [text_attr(s) for s in proto.strings]
    elif kind == Kind.TENSORS:
        items = [TensorAttr(import_tensor(t, source)) for t in proto.tensors]
    elif kind == Kind.SPARSE_TENSORS:
        items = [import_sparse(t, source) for t in proto.sparse_tensors]
    elif kind == Kind.TYPE_PROTOS:
        items = [import_type(t, symbols) for t in proto.type_protos]
    else:
        raise IgniterError(f"attribute {proto.name!r} has the kind {kind}, which ONNX does not define")
    return ArrayAttr(items) if items else EmptyListAttr(IntegerAttr(kind, i64))


def read_attribute(data: bytes) -> tuple[str, Attribute]:
    """Returns the name and the value of a serialized `AttributeProto`."""
    proto = onnx.AttributeProto.FromString(data)
    return proto.name, import_attribute(proto)


def export_attribute(name: str, attr: Attribute, proto: onnx.AttributeProto, sink: TensorSink, names: DimNames) -> None:
    """Writes an attribute to `proto`."""
    kind = attribute_kind(attr)
    if kind is None:
        raise IgniterError(f"attribute {name!r} is {attr}, which an ONNX attribute cannot hold")
    proto.name = name
    proto.type = cast(Any, kind)
    if isinstance(attr, RefAttr):
        proto.ref_attr_name = attr.parameter.data
    elif isinstance(attr, FloatAttr):
        proto.f = attr.value.data
    elif isinstance(attr, IntegerAttr):
        proto.i = attr.value.data
    elif kind == Kind.STRING:
        proto.s = _bytes_of(attr)
    elif isinstance(attr, TensorAttr):
        export_tensor(attr.data, "", sink, proto.t)
    elif isinstance(attr, SparseTensorAttr):
        export_sparse(attr, "", sink, proto.sparse_tensor)
    elif isinstance(attr, TypeAttribute):
        export_type(attr, names, proto.tp)
    elif isinstance(attr, DenseArrayBase):
        values: Any = to_python(cast(Attribute, attr))
        (proto.floats if kind == Kind.FLOATS else proto.ints).extend(values)
    elif isinstance(attr, ArrayAttr):
        _export_items(cast("ArrayAttr[Attribute]", attr).data, kind, proto, sink, names)


def _export_items(
    items: tuple[Attribute, ...], kind: int, proto: onnx.AttributeProto, sink: TensorSink, names: DimNames
) -> None:
    for item in items:
        if kind == Kind.STRINGS:
            proto.strings.append(_bytes_of(item))
        elif isinstance(item, TensorAttr):
            export_tensor(item.data, "", sink, proto.tensors.add())
        elif isinstance(item, SparseTensorAttr):
            export_sparse(item, "", sink, proto.sparse_tensors.add())
        elif isinstance(item, IntegerAttr):
            proto.ints.append(item.value.data)
        elif isinstance(item, FloatAttr):
            proto.floats.append(item.value.data)
        else:
            export_type(item, names, proto.type_protos.add())


def _bytes_of(attr: Attribute) -> bytes:
    return text_of(attr).encode("utf-8", "surrogateescape")
