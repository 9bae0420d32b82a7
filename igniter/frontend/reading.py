"""Bytes to `ModelProto`, and the sizes of messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike

import onnx
from google.protobuf.message import DecodeError, EncodeError, Message

from igniter.dialects.onnx.weights import map_file
from igniter.errors import IgniterError
from igniter.frontend.tensors import MESSAGE_LIMIT, SELF, Source
from igniter.frontend.wire import WireError, without_weights


def read_model(model: str | PathLike[str] | bytes | onnx.ModelProto, base_dir: str) -> tuple[onnx.ModelProto, Source]:
    """Returns the message, with large weights left in the file, and the model's source."""
    if isinstance(model, onnx.ModelProto):
        return model, Source(folder=base_dir)
    if isinstance(model, bytes):
        return _decode(model, "the given bytes"), Source(folder=base_dir, is_own=True)
    path: str = os.path.abspath(os.fspath(model))
    if os.path.isdir(path):
        compiled = os.path.isfile(os.path.join(path, "report.json"))
        hint = "; open a compiled model with igniter.Artifact.load" if compiled else ""
        raise IgniterError(f"cannot read the model {path}: it is a folder{hint}")
    data = map_file(path)
    try:
        small = without_weights(data)
    except WireError as error:
        raise IgniterError(f"{path} is not an ONNX model, or is damaged: {error}") from error
    return _decode(small, path), Source(path, os.path.dirname(path), is_own=True)


def byte_size(model: onnx.ModelProto) -> int:
    """Returns the size of a message in bytes; one more than the limit if protobuf cannot count it."""
    try:
        return model.ByteSize()
    except EncodeError:
        return MESSAGE_LIMIT + 1


def _decode(data: bytes, what: str) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise IgniterError(f"{what} is not an ONNX model, or is damaged: {error}") from error
    if not model.HasField("graph"):
        raise IgniterError(f"{what} is not an ONNX model: it has no graph")
    return model


def external_files(path: str | PathLike[str]) -> list[str]:
    """Returns the files of external data named by a model, relative to its folder; weights are not read."""
    model, _ = read_model(path, "")
    found = {
        entry.value
        for tensor in tensors_of(model)
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location" and entry.value != SELF
    }
    return sorted(found)


def tensors_of(message: Message) -> Iterator[onnx.TensorProto]:
    """Yields every tensor of a message, in initializers, attributes and graphs inside nodes."""
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in [value] if isinstance(value, Message) else value:
                yield from tensors_of(inner)
