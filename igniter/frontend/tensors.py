"""`TensorProto` to `Weight` and back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import onnx
from xdsl.dialects.builtin import ArrayAttr

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr, ints_attr, to_python
from igniter.dialects.onnx.types import BY_CODE, STRING, ElementType
from igniter.dialects.onnx.weights import FileRange, Weight
from igniter.errors import IgniterError

MESSAGE_LIMIT = 2**31 - 1
"""The limit of a protobuf message, in bytes."""

SELF = "igniter:self"
"""The `location` of external data inside the model file itself (see `frontend.wire`)."""


@dataclass(frozen=True)
class Source:
    """The origin of a model: the file, if any, and the folder of its external data."""

    path: str = ""
    folder: str = ""
    is_own: bool = False
    """True if the message has no other owner and cannot change."""
    external: set[str] = field(default_factory=set[str], compare=False)
    """The files of external data used by tensors."""
    found: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]], compare=False)
    """Their absolute paths and sizes by location, after the check of their place beside the model."""


def import_tensor(tensor: onnx.TensorProto, source: Source) -> Weight:
    """Imports the weight of a tensor; its bytes stay in their file or in the message."""
    row = BY_CODE.get(tensor.data_type)
    if row is None:
        raise IgniterError(
            f"tensor {tensor.name!r} has the element type {tensor.data_type}, which ONNX does not define"
        )
    if tensor.HasField("segment"):
        raise IgniterError(f"tensor {tensor.name!r} is stored in segments, which ONNX does not specify")
    shape = tuple(tensor.dims)
    if shape and min(shape) < 0:
        raise IgniterError(f"tensor {tensor.name!r} has the invalid shape {list(shape)}")
    try:
        if row.attr == STRING:
            return Weight(shape, STRING, strings=list(tensor.string_data))
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return Weight(shape, row, file=_external(tensor, source, row))
        if tensor.HasField("raw_data"):
            return Weight(shape, row, raw=tensor.raw_data)
        return Weight(shape, row, raw=_typed_bytes(tensor, row))
    except IgniterError as error:
        raise IgniterError(f"tensor {tensor.name!r}: {error.message}") from error


def _external(tensor: onnx.TensorProto, source: Source, row: ElementType) -> FileRange:
    entries = {e.key: e.value for e in tensor.external_data}
    path, size = _data_file(entries.get("location", ""), source)
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries["length"]) if "length" in entries else _bytes_of(tensor, row)
    except ValueError as error:
        raise IgniterError(f"its external data has a bad offset or length: {error}") from error
    if offset < 0 or length < 0 or offset + length > size:
        raise IgniterError(f"its external data is bytes {offset} to {offset + length} of {path}, which has {size}")
    return FileRange(path, offset, length)


def _data_file(location: str, source: Source) -> tuple[str, int]:
    """Returns the absolute path of external data, and its size; checked once for all its tensors."""
    known = source.found.get(location)
    if known is not None:
        return known
    if location == SELF:
        path = source.path
    else:
        # A model must not make us read files from elsewhere and copy them into its output.
        normal = os.path.normpath(location)
        if not location or os.path.isabs(normal) or normal.split(os.sep)[0] == os.pardir:
            raise IgniterError(f"external data at {location!r} is not a file in the model's folder")
        path = os.path.join(source.folder, normal)
        if "\0" in location:
            raise IgniterError("its external data has a path that contains a NUL")
        _check_inside(path, location, source)
        source.external.add(os.path.abspath(path))
    try:
        found = source.found[location] = os.path.abspath(path), os.path.getsize(path)
    except OSError as error:
        raise IgniterError(f"its external data {path} cannot be read: {error.strerror}") from error
    return found


def _check_inside(path: str, location: str, source: Source) -> None:
    """Raises if a symbolic link leads out of the model's folder and of the folder of the linked model file (the layout
    of download caches); ORT has the same rule."""
    allowed = [os.path.realpath(source.folder or os.curdir)]
    if source.path:
        allowed.append(os.path.dirname(os.path.realpath(source.path)))
    real = os.path.realpath(path)
    if not any(os.path.commonpath([real, folder]) == folder for folder in allowed):
        raise IgniterError(f"external data at {location!r} is a link to {real}, outside the model's folder")


def _bytes_of(tensor: onnx.TensorProto, row: ElementType) -> int:
    size = 1
    for d in tensor.dims:
        size *= d
    return (size * row.bits + 7) // 8


def _typed_bytes(tensor: onnx.TensorProto, row: ElementType) -> bytes:
    """Returns the raw layout of a tensor whose values are in the field for their type."""
    name = row.onnx_name
    if name in ("float", "complex64"):
        return np.array(tensor.float_data, np.float32).tobytes()
    if name in ("double", "complex128"):
        return np.array(tensor.double_data, np.float64).tobytes()
    if name == "int64":
        return np.array(tensor.int64_data, np.int64).tobytes()
    if name in ("uint64", "uint32"):
        return np.array(tensor.uint64_data, np.uint64).astype(name).tobytes()
    values = np.array(tensor.int32_data, np.int32)
    if row.bits == 6:
        bits = np.unpackbits(values.astype(np.uint8)[:, None], axis=1, count=6, bitorder="little")
        return np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    # Narrow types are the low bits of an int32; elements under a byte are already packed into bytes.
    return values.astype({32: np.int32, 16: np.uint16}.get(row.bits, np.uint8)).tobytes()


class TensorSink(Protocol):
    """The destination of an exported tensor's bytes."""

    def put(self, proto: onnx.TensorProto, weight: Weight) -> None: ...


@dataclass
class InlineSink:
    """A sink into the message."""

    total: int = field(default=0)

    def put(self, proto: onnx.TensorProto, weight: Weight) -> None:
        self.total += weight.nbytes
        if self.total > MESSAGE_LIMIT:
            raise IgniterError("the model's weights are over 2 GB, the limit of a message; use save_model")
        proto.raw_data = bytes(weight.raw())


def export_tensor(weight: Weight, name: str, sink: TensorSink, proto: onnx.TensorProto | None = None) -> Any:
    """Returns a `TensorProto` (`proto`, if one is given to fill) of the weight."""
    proto = onnx.TensorProto() if proto is None else proto
    proto.data_type = weight.element.code
    proto.dims.extend(weight.shape)
    if name:
        proto.name = name
    if weight.strings is not None:
        proto.string_data.extend(weight.strings)
    else:
        sink.put(proto, weight)
    return proto


def import_sparse(sparse: onnx.SparseTensorProto, source: Source) -> SparseTensorAttr:
    """Imports a sparse tensor."""
    return SparseTensorAttr(
        TensorAttr(import_tensor(sparse.values, source)),
        TensorAttr(import_tensor(sparse.indices, source)),
        ints_attr(list(sparse.dims)) if sparse.dims else ArrayAttr([]),
    )


def export_sparse(attr: SparseTensorAttr, name: str, sink: TensorSink, proto: onnx.SparseTensorProto) -> None:
    """Writes a sparse tensor to `proto`; the name of a sparse initializer is that of its values."""
    export_tensor(attr.values.data, name, sink, proto.values)
    export_tensor(attr.indices.data, "", sink, proto.indices)
    proto.dims.extend(to_python(attr.dims))
