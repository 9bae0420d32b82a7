"""A copy of a large model with its weights in a file of their own, so that all sessions of a verification share them.

A session of a model with weights inside copies them twice, once for the message and once for itself, and a verification
makes several sessions. A weight in a file is mapped by ONNX Runtime: its pages are in memory once, and the system can
take them back.
"""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from igniter.errors import IgniterError
from igniter.frontend import surgery

if TYPE_CHECKING:
    import onnx

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

    def __init__(self, proto: onnx.ModelProto):
        """Moves the weights out of `proto`, which is the caller's no longer."""
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-original-")
        self._remove = weakref.finalize(self, self._folder.cleanup)
        folder = Path(self._folder.name)
        self.path = folder / "model.onnx"
        self.packs = any(part in node.op_type for node in proto.graph.node for part in QUANTISED)
        """True if sessions should pack weights as usual: kernels of quantised ops give other results without."""
        with (folder / "weights").open("wb") as file:
            for tensor in proto.graph.initializer:
                if _moves(tensor):
                    file.write(bytes(-file.tell() % ALIGNMENT))
                    _refer(tensor, "weights", file.tell(), len(tensor.raw_data))
                    file.write(tensor.raw_data)
                    tensor.ClearField("raw_data")
        self.path.write_bytes(proto.SerializeToString())


def mapped(model: str | bytes) -> Mapped | None:
    """Returns a copy of a model, a path or the bytes of one; `None` if its weights are few, or in files already, or
    if there is no room for a copy.

    Floats of the main graph move. Integers stay: they may be sizes or indices, and are small beside the floats.
    """
    size = len(model) if isinstance(model, bytes) else Path(model).stat().st_size
    if size < LARGE:
        return None
    try:
        proto, _ = surgery.read_proto(model)
    except IgniterError:  # the session will report it
        return None
    if any(tensor.external_data for tensor in proto.graph.initializer):
        # Its files have their folder.
        return None
    if sum(len(tensor.raw_data) for tensor in proto.graph.initializer if _moves(tensor)) < LARGE:
        return None
    try:
        return Mapped(proto)
    except OSError:  # no room for temporary files: the sessions take the model as it is, and more memory
        return None


def _moves(tensor: onnx.TensorProto) -> bool:
    from onnx import TensorProto

    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
    return tensor.data_type in floats and len(tensor.raw_data) >= LEAST


def _refer(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    from onnx import TensorProto

    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
