"""Modules to files: the model, and its weights beside it where they are big."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from os import PathLike
from typing import IO

import onnx
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import TensorAttr
from igniter.errors import IgniterError
from igniter.frontend import tensors
from igniter.frontend.exporter import export_module
from igniter.frontend.weights import Weight

_MARGIN = 64 << 20
"""Room for all that is in a message besides the weights."""

_DEFAULT_THRESHOLD = 1024


@dataclass
class FileSink:
    """Appends the bytes of big weights to a file, once for equal weights, and leaves the small ones in the message."""

    file: IO[bytes]
    location: str
    threshold: int
    alignment: int
    _written: dict[Weight, int] = field(default_factory=dict[Weight, int])

    def put(self, proto: onnx.TensorProto, weight: Weight) -> None:
        if weight.nbytes < self.threshold:
            proto.raw_data = bytes(weight.raw())
            return
        offset = self._written.get(weight)
        if offset is None:
            end = self.file.tell()
            offset = -(-end // self.alignment) * self.alignment
            self.file.write(bytes(offset - end))
            self.file.write(weight.raw())
            self._written[weight] = offset
        proto.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self.location), ("offset", offset), ("length", weight.nbytes)):
            proto.external_data.add(key=key, value=str(value))


def save_module(module: ModuleOp, path: str | PathLike[str], threshold: int | None, alignment: int) -> None:
    """See `frontend.save_model`."""
    target: str = os.path.abspath(os.fspath(path))
    if threshold is None and weight_bytes(module) + _MARGIN > tensors.MESSAGE_LIMIT:
        threshold = _DEFAULT_THRESHOLD
    folder, name = os.path.split(target)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as scratch:
            _write(module, scratch, name, threshold, alignment)
            # The weights first: a model without its weights cannot be read, weights without a model can be ignored.
            for written in (f"{name}.data", name):
                if os.path.exists(os.path.join(scratch, written)):
                    os.replace(os.path.join(scratch, written), os.path.join(folder, written))
    except OSError as error:
        raise IgniterError(f"cannot write the model {target}: {error.strerror}") from error


def _write(module: ModuleOp, scratch: str, name: str, threshold: int | None, alignment: int) -> None:
    if threshold is None:
        model = export_module(module)
    else:
        data = os.path.join(scratch, f"{name}.data")
        with open(data, "wb") as file:
            model = export_module(module, FileSink(file, f"{name}.data", threshold, alignment))
        if os.path.getsize(data) == 0:
            os.remove(data)
    with open(os.path.join(scratch, name), "wb") as file:
        file.write(model.SerializeToString())


def weight_bytes(module: ModuleOp) -> int:
    """The bytes of all tensors in the module's attributes."""
    return sum(
        attr.data.nbytes for op in module.walk() for attr in op.attributes.values() if isinstance(attr, TensorAttr)
    )
