"""A copy of a large model with its weights in a file of their own, so that all sessions of a verification share them.

A session of a model with weights inside copies them twice, once for the message and once for itself, and a verification
makes several sessions. A weight in a file is mapped by ONNX Runtime: its pages are in memory once, and the system can
take them back. The copy is made from the mapped model, a weight at a time.
"""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from igniter.dialects.onnx.types import BY_CODE
from igniter.dialects.onnx.weights import map_file
from igniter.errors import IgniterError
from igniter.frontend.reading import tensors_of
from igniter.frontend.tensors import MESSAGE_LIMIT, SELF
from igniter.frontend.wire import WireError, without_weights

LARGE = 64 << 20
"""The least bytes of weights for a copy: smaller models load faster as they are."""
LEAST = 64 << 10
"""The least bytes of a weight that moves. Smaller ones may be sizes or indices that a reader of the model needs."""
ALIGNMENT = 4096
"""The alignment of a weight in the file: that of a mapping."""

QUANTISED = ("Quant", "Integer", "NBits", "QLinear", "QAttention", "QGemm")
"""Parts of the names of ops whose kernels compute with packed weights."""


class Mapped:
    """The copy, in a temporary folder that exists as long as the object."""

    def __init__(self, proto: onnx.ModelProto, data: memoryview):
        """Writes the copy. `proto` is the message without the large tensors of the model `data`; it is the caller's no
        longer."""
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-original-")
        self._remove = weakref.finalize(self, self._folder.cleanup)
        folder = Path(self._folder.name)
        self.path = folder / "model.onnx"
        with (folder / "weights").open("wb") as file:
            for tensor in proto.graph.initializer:
                if _moves(tensor):
                    file.write(bytes(-file.tell() % ALIGNMENT))
                    place = _place(tensor)
                    assert place is not None
                    _refer(tensor, "weights", file.tell(), len(data[place]))
                    file.write(data[place])
        for tensor in tensors_of(proto):
            place = _place(tensor)
            if place is not None:
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = bytes(data[place])
        self.path.write_bytes(proto.SerializeToString())


def mapped(model: str | bytes) -> Mapped | None:
    """Returns a copy of a model, a path or the bytes of one; `None` if its weights are few, or in files already, or
    if there is no room for a copy.

    Floats of the main graph move. Integers stay: they may be sizes or indices, and are small beside the floats.
    """
    size = len(model) if isinstance(model, bytes) else Path(model).stat().st_size
    if not LARGE <= size <= MESSAGE_LIMIT:
        return None
    try:
        data = memoryview(model) if isinstance(model, bytes) else map_file(os.path.abspath(model))
        proto = onnx.ModelProto.FromString(without_weights(data))
    except (IgniterError, WireError, DecodeError):  # the session will report it
        return None
    if any(t.data_location == onnx.TensorProto.EXTERNAL and _place(t) is None for t in proto.graph.initializer):
        # Its files have their folder.
        return None
    if sum(weight_bytes(tensor) for tensor in proto.graph.initializer if _moves(tensor)) < LARGE:
        return None
    try:
        return Mapped(proto, data)
    except OSError:  # no room for temporary files: the sessions take the model as it is, and more memory
        return None


def needs_packing(proto: onnx.ModelProto) -> bool:
    """True if the sessions of a model pack its weights: they are few, or its kernels give other results without.

    A session with packed weights has a second copy of them, which the system cannot take back.
    """
    if any(part in node.op_type for node in proto.graph.node for part in QUANTISED):
        return True
    return sum(weight_bytes(tensor) for tensor in proto.graph.initializer) < LARGE


def weight_bytes(tensor: onnx.TensorProto) -> int:
    """Returns the bytes of a tensor's elements, wherever they are."""
    kind = BY_CODE.get(tensor.data_type)
    return 0 if kind is None else math.prod(tensor.dims) * kind.bits // 8


def _moves(tensor: onnx.TensorProto) -> bool:
    floats = (
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BFLOAT16,
        onnx.TensorProto.DOUBLE,
    )
    return tensor.data_type in floats and _place(tensor) is not None and weight_bytes(tensor) >= LEAST


def _place(tensor: onnx.TensorProto) -> slice | None:
    """Returns the place of a tensor's bytes in the model's own file; `None` if they are in the message or elsewhere."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    entries: Mapping[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    if entries.get("location") != SELF:
        return None
    start = int(entries.get("offset", 0))
    return slice(start, start + int(entries.get("length", 0)))


def _refer(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    tensor.ClearField("external_data")
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
