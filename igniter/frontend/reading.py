"""Bytes to `ModelProto`."""

from __future__ import annotations

import os
from os import PathLike

import onnx
from google.protobuf.message import DecodeError

from igniter.errors import IgniterError
from igniter.frontend.tensors import Source


def read_model(model: str | PathLike[str] | bytes | onnx.ModelProto, base_dir: str) -> tuple[onnx.ModelProto, Source]:
    """The message, its weights left in the file where that pays, and where the model comes from."""
    if isinstance(model, onnx.ModelProto):
        return model, Source(folder=base_dir)
    if isinstance(model, bytes):
        return _decode(model, "the given bytes"), Source(folder=base_dir)
    path = os.path.abspath(os.fspath(model))
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise IgniterError(f"cannot read the model {path}: {error.strerror}") from error
    return _decode(data, path), Source(path, os.path.dirname(path))


def _decode(data: bytes, what: str) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise IgniterError(f"{what} is not an ONNX model: it cannot be decoded ({error})") from error
    if not model.HasField("graph"):
        raise IgniterError(f"{what} is not an ONNX model: it has no graph")
    return model
