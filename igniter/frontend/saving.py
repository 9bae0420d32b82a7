"""Modules to files: the model, and its weights beside it where they are big."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import IO

import onnx
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import TensorAttr
from igniter.dialects.onnx.weights import Weight
from igniter.errors import IgniterError
from igniter.frontend import tensors
from igniter.frontend.exact_integers import with_exact_integers
from igniter.frontend.exporter import export_module
from igniter.frontend.opsets import oldest_ir_version

_MARGIN = 64 << 20
"""The space for the content of a message besides the weights, in bytes."""

_DEFAULT_THRESHOLD = 1024
_NO_LIMIT = 1 << 62


@dataclass
class FileSink:
    """A file for the bytes of big weights, once for equal weights; small ones stay in the message."""

    file: IO[bytes]
    threshold: int
    alignment: int
    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    """The files whose weights stay in place: their names in the model, by path."""
    _locations: list[onnx.StringStringEntryProto] = field(default_factory=list[onnx.StringStringEntryProto])
    _digest: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=8))
    _written: dict[Weight, int] = field(default_factory=dict[Weight, int])

    def put(self, proto: onnx.TensorProto, weight: Weight) -> None:
        if weight.file is not None and weight.file.path in self.kept:
            where = weight.file
            proto.data_location = onnx.TensorProto.EXTERNAL
            entries = {"location": self.kept[where.path], "offset": where.offset, "length": where.length}
            for key, value in entries.items():
                proto.external_data.add(key=key, value=str(value))
            return
        if weight.nbytes < self.threshold:
            proto.raw_data = bytes(weight.raw())
            return
        offset = self._written.get(weight)
        if offset is None:
            end = self.file.tell()
            offset = -(-end // self.alignment) * self.alignment
            for part in (bytes(offset - end), weight.raw()):
                self.file.write(part)
                self._digest.update(part)
            self._written[weight] = offset
        proto.data_location = onnx.TensorProto.EXTERNAL
        self._locations.append(proto.external_data.add(key="location"))
        for key, value in (("offset", offset), ("length", weight.nbytes)):
            proto.external_data.add(key=key, value=str(value))

    @property
    def digest(self) -> str:
        """The hash of all written bytes."""
        return self._digest.hexdigest()

    def name(self, location: str) -> None:
        """Sets the location of the bytes, once all are written."""
        for entry in self._locations:
            entry.value = location


@dataclass(frozen=True)
class Style:
    """The options for writing a model: see `frontend.save_model`."""

    hashed: bool
    oldest_ir: bool
    exact_integers: bool


def save_module(
    module: ModuleOp,
    path: str | PathLike[str],
    threshold: int | None,
    alignment: int,
    style: Style,
    keep: Collection[str] = (),
) -> None:
    """Saves a module; `frontend.save_model` describes the arguments."""
    target: str = os.path.abspath(os.fspath(path))
    kept = _kept(keep, os.path.dirname(target))
    if threshold is None and weight_bytes(module, kept) + _MARGIN > tensors.MESSAGE_LIMIT:
        threshold = _DEFAULT_THRESHOLD
    folder, name = os.path.split(target)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as scratch:
            # The weights first: a model without its weights cannot be read, but weights without a model do no harm.
            for written in _write(module, scratch, name, threshold, alignment, style, kept):
                os.replace(os.path.join(scratch, written), os.path.join(folder, written))
    except OSError as error:
        raise IgniterError(f"cannot write the model {target}: {error.strerror}") from error


def _kept(paths: Collection[str], folder: str) -> dict[str, str]:
    """Returns the names, for a model in `folder`, of the files inside it."""
    found = {path: os.path.relpath(os.path.realpath(path), os.path.realpath(folder)) for path in paths}
    return {path: name.replace(os.sep, "/") for path, name in found.items() if name.split(os.sep)[0] != os.pardir}


def _write(
    module: ModuleOp,
    scratch: str,
    name: str,
    threshold: int | None,
    alignment: int,
    style: Style,
    kept: Mapping[str, str],
) -> list[str]:
    """Writes the files into `scratch`, and returns their names: the weights, if they are a file, and the model."""
    files = [name]
    if threshold is None and not kept:
        model = export_module(module)
    else:
        data = os.path.join(scratch, "weights")
        with open(data, "wb") as file:
            sink = FileSink(file, _NO_LIMIT if threshold is None else threshold, alignment, kept)
            model = export_module(module, sink)
        location = f"{os.path.splitext(name)[0]}.{sink.digest}.data" if style.hashed else f"{name}.data"
        if location in kept.values():
            # The file stays, because weights of the model are in it.
            location = f"{os.path.splitext(name)[0]}.{sink.digest}.data"
        sink.name(location)
        if os.path.getsize(data):
            os.replace(data, os.path.join(scratch, location))
            files.insert(0, location)
    exact = with_exact_integers(model, of_shapes=False) if style.exact_integers else None
    if exact is not None:
        model = exact.proto
    if style.oldest_ir:
        model.ir_version = oldest_ir_version(model)
    with open(os.path.join(scratch, name), "wb") as written:
        written.write(model.SerializeToString())
    return files


def weight_bytes(module: ModuleOp, kept: Collection[str] = ()) -> int:
    """Returns the bytes of all tensors in the module's attributes, except those in the files `kept`."""
    found = (attr.data for op in module.walk() for attr in op.attributes.values() if isinstance(attr, TensorAttr))
    return sum(w.nbytes for w in found if w.file is None or w.file.path not in kept)
