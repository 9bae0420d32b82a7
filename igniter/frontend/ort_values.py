"""Runs of ONNX Runtime on arrays of types missing in numpy (`ml_dtypes`): bf16, floats of eight bits, integers of four.

ORT's Python package passes such tensors only as `OrtValue`s.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from igniter.dialects.onnx.types import BY_NAME, ElementType, element_of_dtype

NATIVE = frozenset("biufcOUS")
"""The kinds of numpy's own dtypes."""


class ArraySession(ABC):
    """A substitute for a session of ONNX Runtime, with arrays of every type (`ml_dtypes`) as inputs and outputs."""

    @abstractmethod
    def get_inputs(self) -> list[Any]:
        """Returns the inputs, each with `name`, `type` and `shape` as in ONNX Runtime."""

    @abstractmethod
    def get_outputs(self) -> list[Any]:
        """Returns the outputs, in the same form."""

    @abstractmethod
    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any], deadline: float = float("inf")) -> list[Any]:
        """Returns the outputs of these names, or all, before `time.monotonic` passes `deadline`."""


def run(session: Any, feed: Mapping[str, Any], outputs: Sequence[str] | None = None, options: Any = None) -> list[Any]:
    """Runs `session` on `feed` and returns the outputs (those named, in that order, or all), each an array of its ONNX
    type. `options` are ORT's `RunOptions`."""
    if isinstance(session, ArraySession):
        return session.run(outputs, feed)
    kinds = {o.name: _foreign(o.type) for o in session.get_outputs()}
    names = list(kinds) if outputs is None else list(outputs)
    if not any(kinds[n] for n in names) and not any(_is_foreign(value) for value in feed.values()):
        more = () if options is None else (options,)
        return list(session.run(None if outputs is None else names, dict(feed), *more))
    made = session.run_with_ort_values(names, {n: to_value(a) for n, a in feed.items()}, options)
    return [v.numpy() if (kind := kinds[n]) is None else to_array(v, kind) for n, v in zip(names, made, strict=True)]


def runner(session: Any, feed: Mapping[str, Any]) -> Callable[[], object]:
    """Returns a function to run `session` on `feed` without converting results: `OrtValue`s are made once for all
    runs."""
    if not has_foreign_types(session, feed):
        arrays = dict(feed)
        return lambda: session.run(None, arrays)
    values = {n: to_value(a) for n, a in feed.items()}
    names = [o.name for o in session.get_outputs()]
    return lambda: session.run_with_ort_values(names, values)


def has_foreign_types(session: Any, feed: Mapping[str, Any]) -> bool:
    """True if an input in `feed` or an output of `session` has a type missing in numpy."""
    return any(_foreign(o.type) for o in session.get_outputs()) or any(_is_foreign(a) for a in feed.values())


def typed(session: Any, feed: Mapping[str, Any]) -> dict[str, Any]:
    """Restores the types lost in a `.npz` file: for types missing in numpy it keeps at most the bytes, and for a
    sequence its elements (`storable`)."""
    found = gathered(feed, [value.name for value in session.get_inputs()])
    for value in session.get_inputs():
        kind, array = _foreign(value.type), found.get(value.name)
        if kind is None or array is None or isinstance(array, list):
            continue
        if array.dtype.kind in "Vu" and array.itemsize == kind.dtype.itemsize:
            found[value.name] = array.view(kind.dtype)
    return found


def gathered(feed: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Collects the elements `s[0]`, `s[1]`, ... of each missing name of `names` into a list."""
    found = dict(feed)
    for name in (n for n in names if n not in feed):
        elements: list[Any] = []
        while (key := f"{name}[{len(elements)}]") in found and key not in names:
            elements.append(found.pop(key))
        if elements:
            found[name] = elements
    return found


def storable(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the feed to the form of a `.npz` file; `typed` is the inverse. Types missing in numpy become their
    bytes, strings have a fixed width, and a sequence becomes `NAME[0]`, `NAME[1]`, ..."""
    found: dict[str, Any] = {}
    for name, value in feed.items():
        if isinstance(value, list):
            found.update(storable({f"{name}[{k}]": element for k, element in enumerate(cast("list[Any]", value))}))
        elif _is_foreign(value):
            found[name] = value.view(f"u{value.itemsize}")
        else:
            # Objects are stored by pickle, which no reader of the file accepts.
            found[name] = value.astype(np.str_) if value.dtype == object else value
    return found


def to_value(array: Any) -> Any:
    """Returns the array as an `OrtValue`, packed if its elements are smaller than a byte."""
    import onnxruntime

    ort: Any = onnxruntime
    if not _is_foreign(array):
        return ort.OrtValue.ortvalue_from_numpy(np.asarray(array))
    kind = element_of_dtype(array.dtype)
    value = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), kind.code)
    data = _packed(np.ascontiguousarray(array), kind.bits)
    ctypes.memmove(value.data_ptr(), data, len(data))
    return value


def to_array(value: Any, kind: ElementType) -> np.ndarray[Any, Any]:
    """Returns a copy of an `OrtValue` of elements of `kind`."""
    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes()
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", np.uint8)
    if kind.bits < 8:
        steps = np.arange(0, 8, kind.bits, dtype=np.uint8)
        codes = (raw[:, None] >> steps & ((1 << kind.bits) - 1)).reshape(-1)[: int(np.prod(shape))]
        if kind.dtype.name.startswith("int"):
            # ml_dtypes sign-extends integers to a byte.
            codes = (codes.astype(np.int8) ^ (1 << (kind.bits - 1))) - (1 << (kind.bits - 1))
        raw = codes.astype(np.int8).view(np.uint8)
    return raw.view(kind.dtype).reshape(shape).copy()


def _packed(array: np.ndarray[Any, Any], bits: int) -> bytes:
    if bits >= 8:
        return array.tobytes()
    codes = array.view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    each = 8 // bits
    padded = np.zeros(-(-codes.size // each) * each, np.uint8)
    padded[: codes.size] = codes
    shifted = padded.reshape(-1, each) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(shifted, axis=1).astype(np.uint8).tobytes() if codes.size else b""


def _foreign(type_: str) -> ElementType | None:
    """Returns the element type named `tensor(bfloat16)` or the like, if numpy lacks it."""
    kind = BY_NAME.get(type_.removeprefix("tensor(").removesuffix(")"))
    return kind if kind is not None and kind.bits and _lacks(kind.dtype) else None


def _is_foreign(value: Any) -> bool:
    return isinstance(value, np.ndarray) and _lacks(value.dtype)  # pyright: ignore[reportUnknownArgumentType]


def _lacks(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in NATIVE or dtype.name.startswith("float8")
