"""What a stored model needs beside its own file: the domains of its ops, and the files of its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx

from igniter.frontend.surgery import read_proto


@dataclass(frozen=True)
class StoredTensor:
    """The place of a weight outside the model's file; `bytes` is None if the model does not say it."""

    name: str
    file: str
    offset: int
    bytes: int | None


@dataclass(frozen=True)
class StoredModel:
    domains: frozenset[str]
    """The domains of all nodes, in subgraphs and functions too."""
    tensors: tuple[StoredTensor, ...]


def read_stored(path: str) -> StoredModel:
    """Reads a model without its external data; raises `IgniterError` if it cannot be parsed."""
    proto, _ = read_proto(path)
    graphs = list(_graphs(proto.graph))
    nodes = [node for graph in graphs for node in graph.node]
    for function in proto.functions:
        inner = [g for node in function.node for g in _graphs_of(node)]
        graphs += inner
        nodes += [*function.node, *(node for graph in inner for node in graph.node)]
    tensors = [t for graph in graphs for t in graph.initializer]
    tensors += [a.t for node in nodes for a in node.attribute if a.HasField("t")]
    return StoredModel(frozenset(node.domain for node in nodes), tuple(_stored(tensors)))


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        yield from _graphs_of(node)


def _graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _graphs(graph)


def _stored(tensors: Iterable[onnx.TensorProto]) -> Iterator[StoredTensor]:
    for tensor in tensors:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        place = {entry.key: entry.value for entry in tensor.external_data}
        length = place.get("length")
        yield StoredTensor(
            tensor.name, place.get("location", ""), int(place.get("offset", 0)), None if length is None else int(length)
        )
