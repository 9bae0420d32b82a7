"""The `.pb` files of ONNX's test data: a `TensorProto`, or a `SequenceProto` or `OptionalProto`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from igniter.errors import IgniterError


def read_value(path: Path) -> tuple[str, Any]:
    """Returns the name in the file, "" for none, and the value: an array, or a list for a sequence."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IgniterError(f"cannot read {path}: {error.strerror}") from error
    tried: list[str] = []
    for kind, convert in (
        (onnx.TensorProto, onnx.numpy_helper.to_array),
        (onnx.SequenceProto, onnx.numpy_helper.to_list),
    ):
        try:
            message: Any = kind.FromString(data)
            if kind is onnx.TensorProto and not message.data_type:
                continue
            return message.name, convert(message)
        except (DecodeError, ValueError, TypeError) as error:
            tried.append(str(error))
    raise IgniterError(f"{path} is neither a tensor nor a sequence: {'; '.join(tried)}")
