"""The content of a model without semantics: metadata, doc strings, names of tensors inside attributes, and messages
opaque to the IR. Each function here has its inverse beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import onnx
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute

from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import (
    ProtoAttr,
    dictionary,
    entries_of,
    pairs_attr,
    pairs_of,
    text_attr,
    text_of,
    texts_attr,
    texts_of,
)
from igniter.dialects.onnx.base import info_list
from igniter.frontend.attributes import Kind
from igniter.frontend.late_texts import LateTexts


def dictionaries(attr: Attribute | None) -> Sequence[DictionaryAttr]:
    """Returns the entries of a result of `info_list`."""
    return cast("ArrayAttr[DictionaryAttr]", attr).data if isinstance(attr, ArrayAttr) else ()


# -- metadata and messages --------------------------------------------------------------------------------------------


def metadata_attr(properties: Sequence[onnx.StringStringEntryProto], late: bool = False) -> Attribute | None:
    """Returns metadata, or `None` if it is empty; with `late`, it is read at its first use."""
    if not len(properties):
        return None
    if late:
        keys = tuple([p.key for p in properties])
        if len(set(keys)) == len(keys) and all(map(str.isascii, keys)):
            return building.data(DictionaryAttr, LateTexts.of(keys, properties))
    return pairs_attr([(p.key, p.value) for p in properties])


def fill_metadata(attr: Attribute | None, protos: Any) -> None:
    """Adds the entries of `metadata_attr`."""
    for key, value in pairs_of(attr):
        protos.add(key=key, value=value)


def messages_attr(message: str, protos: Iterable[Any]) -> Attribute | None:
    """Returns opaque messages, or `None` if `protos` is empty."""
    found = [ProtoAttr.of(message, p.SerializeToString(deterministic=True)) for p in protos]
    return ArrayAttr(found) if found else None


def fill_messages(attr: Attribute | None, protos: Any) -> None:
    """Adds the messages of `messages_attr`."""
    for item in cast("ArrayAttr[Attribute]", attr).data if isinstance(attr, ArrayAttr) else ():
        protos.add().ParseFromString(cast(ProtoAttr, item).bytes)


def annotations_attr(graph: onnx.GraphProto) -> Attribute | None:
    """Returns the quantization annotations: `[[tensor, [[parameter, tensor], ...]], ...]`."""
    if not len(graph.quantization_annotation):
        return None
    return ArrayAttr(
        ArrayAttr(
            [
                text_attr(a.tensor_name),
                ArrayAttr([texts_attr([p.key, p.value]) for p in a.quant_parameter_tensor_names]),
            ]
        )
        for a in graph.quantization_annotation
    )


def fill_annotations(attr: Attribute | None, graph: onnx.GraphProto) -> None:
    """Adds the annotations of `annotations_attr`."""
    for entry in cast("ArrayAttr[Any]", attr).data if isinstance(attr, ArrayAttr) else ():
        name, parameters = cast("ArrayAttr[Attribute]", entry).data
        annotation = graph.quantization_annotation.add(tensor_name=text_of(name))
        for pair in cast("ArrayAttr[Attribute]", parameters).data:
            key, value = texts_of(pair)
            annotation.quant_parameter_tensor_names.add(key=key, value=value)


# -- tensors and attributes -------------------------------------------------------------------------------------------


def tensor_extra(tensor: onnx.TensorProto, with_name: bool = True) -> DictionaryAttr | None:
    """Returns a tensor's name, doc string and metadata; `None` if it has none of them."""
    if not (with_name or tensor.doc_string or len(tensor.metadata_props)):
        return None
    return _some(
        {
            "name": text_attr(tensor.name) if with_name and tensor.name else None,
            "doc_string": text_attr(tensor.doc_string) if tensor.doc_string else None,
            "metadata": metadata_attr(tensor.metadata_props),
        }
    )


def fill_tensor_extra(info: Attribute | None, tensor: onnx.TensorProto) -> None:
    """Restores the result of `tensor_extra`."""
    entries = entries_of(info)
    if "name" in entries:
        tensor.name = text_of(entries["name"])
    if "doc_string" in entries:
        tensor.doc_string = text_of(entries["doc_string"])
    fill_metadata(entries.get("metadata"), tensor.metadata_props)


def sparse_extra(sparse: onnx.SparseTensorProto, with_name: bool = True) -> DictionaryAttr | None:
    """Returns `tensor_extra` of the values and the indices."""
    return _some({"values": tensor_extra(sparse.values, with_name), "indices": tensor_extra(sparse.indices)})


def fill_sparse_extra(info: Attribute | None, sparse: onnx.SparseTensorProto) -> None:
    """Restores the result of `sparse_extra`."""
    fill_tensor_extra(entries_of(info).get("values"), sparse.values)
    fill_tensor_extra(entries_of(info).get("indices"), sparse.indices)


def attribute_extra(proto: onnx.AttributeProto, kind: int) -> DictionaryAttr | None:
    """Returns an attribute's doc string and the extras of its tensors; `None` if both are empty."""
    tensors: list[DictionaryAttr | None] = []
    if kind == Kind.TENSOR:
        tensors = [tensor_extra(proto.t)]
    elif kind == Kind.TENSORS:
        tensors = [tensor_extra(t) for t in proto.tensors]
    elif kind == Kind.SPARSE_TENSOR:
        tensors = [sparse_extra(proto.sparse_tensor)]
    elif kind == Kind.SPARSE_TENSORS:
        tensors = [sparse_extra(t) for t in proto.sparse_tensors]
    doc_string = text_attr(proto.doc_string) if proto.doc_string else None
    return _some({"doc_string": doc_string, "tensors": info_list(tensors)}) if tensors or doc_string else None


def fill_attribute_extra(info: Attribute | None, proto: onnx.AttributeProto) -> None:
    """Restores the result of `attribute_extra`."""
    entries = entries_of(info)
    if "doc_string" in entries:
        proto.doc_string = text_of(entries["doc_string"])
    extras = dictionaries(entries.get("tensors"))
    if proto.type in (Kind.TENSOR, Kind.TENSORS):
        for extra, tensor in zip(extras, [proto.t] if proto.type == Kind.TENSOR else proto.tensors, strict=False):
            fill_tensor_extra(extra, tensor)
    elif proto.type in (Kind.SPARSE_TENSOR, Kind.SPARSE_TENSORS):
        found = [proto.sparse_tensor] if proto.type == Kind.SPARSE_TENSOR else proto.sparse_tensors
        for extra, sparse in zip(extras, found, strict=False):
            fill_sparse_extra(extra, sparse)


def _some(entries: dict[str, Attribute | None]) -> DictionaryAttr | None:
    return dictionary(entries) if any(e is not None for e in entries.values()) else None
