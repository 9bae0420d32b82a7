"""The open inference protocol over HTTP: JSON requests and responses, with tensors as numbers or as bytes.

A tensor is a list of numbers (`data`), or bytes after the JSON document, whose length is then in the header
`Inference-Header-Content-Length` (the binary extension; bytes are little-endian, strings have a prefix of four bytes
with their length). Source: https://github.com/kserve/open-inference-protocol and Triton's binary tensor extension.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from igniter.toolbox.serve.tensors import BadRequest, Tensor, check_feed, dtype_of

HEADER_LENGTH = "inference-header-content-length"


@dataclass(frozen=True)
class InferRequest:
    """A decoded request. `outputs` maps the requested outputs to whether they are sent as bytes."""

    id: str
    feed: dict[str, np.ndarray[Any, Any]]
    outputs: dict[str, bool]


def decode(body: bytes, header_length: str | None, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> InferRequest:
    """Decodes a request and checks it; raises `BadRequest` with what is wrong."""
    length = _length(header_length, len(body))
    document = _document(body[:length])
    feed, rest = dict[str, np.ndarray[Any, Any]](), memoryview(body)[length:]
    for each in _objects(document, "inputs"):
        name = _text(each, "name", "an input")
        if name in feed:
            raise BadRequest(f"input '{name}' is there twice")
        feed[name], rest = _array(name, each, rest)
    if len(rest):
        raise BadRequest(f"{len(rest)} bytes follow the last tensor")
    check_feed(inputs, feed)
    return InferRequest(_id(document), feed, _wanted(document, outputs))


def encode(
    model: str, request: InferRequest, outputs: Sequence[Tensor], results: Mapping[str, np.ndarray[Any, Any]]
) -> tuple[bytes, dict[str, str]]:
    """Encodes a response; returns the body and the headers."""
    made, tail = list[dict[str, Any]](), list[bytes]()
    for tensor in outputs:
        if tensor.name not in request.outputs:
            continue
        array = results[tensor.name]
        entry: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(array.shape)}
        if request.outputs[tensor.name]:
            data = _to_bytes(array)
            entry["parameters"] = {"binary_data_size": len(data)}
            tail.append(data)
        else:
            entry["data"] = _to_numbers(array)
        made.append(entry)
    document: dict[str, Any] = {"model_name": model, "model_version": "1", "outputs": made}
    if request.id:
        document["id"] = request.id
    text = json.dumps(document).encode()
    if not tail:
        return text, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return text + b"".join(tail), headers


def request_of(
    feed: Mapping[str, np.ndarray[Any, Any]], inputs: Sequence[Tensor], *, binary: bool = True
) -> tuple[bytes, dict[str, str]]:
    """Encodes a request for all outputs, as a client does; returns the body and the headers."""
    made, tail = list[dict[str, Any]](), list[bytes]()
    for tensor in inputs:
        array = feed[tensor.name]
        entry: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(array.shape)}
        if binary:
            tail.append(_to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = _to_numbers(array)
        made.append(entry)
    document = {"inputs": made, "parameters": {"binary_data_output": binary}}
    text = json.dumps(document).encode()
    return text + b"".join(tail), {HEADER_LENGTH: str(len(text))} if binary else {"content-type": "application/json"}


def response_of(body: bytes, header_length: str | None) -> dict[str, np.ndarray[Any, Any]]:
    """Decodes a response into arrays by name, as a client does."""
    length = _length(header_length, len(body))
    found, rest = dict[str, np.ndarray[Any, Any]](), memoryview(body)[length:]
    for each in _objects(_document(body[:length]), "outputs"):
        found[each["name"]], rest = _array(each["name"], each, rest)
    return found


def _length(given: str | None, most: int) -> int:
    if given is None:
        return most
    if not given.isdecimal() or int(given) > most:
        raise BadRequest(f"the header {HEADER_LENGTH} is '{given}'; the body has {most} bytes")
    return int(given)


def _document(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadRequest(f"the request is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest("the request is not a JSON object")
    return cast("dict[str, Any]", document)


def _objects(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found: Any = document.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in cast("list[Any]", found)):
        raise BadRequest(f"'{key}' is missing, or is not a list of objects")
    return cast("list[dict[str, Any]]", found)


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    found = entry.get(key)
    if not isinstance(found, str):
        raise BadRequest(f"{where} has no '{key}'")
    return found


def _id(document: Mapping[str, Any]) -> str:
    found = document.get("id", "")
    if not isinstance(found, str):
        raise BadRequest("'id' is not a string")
    return found


def _parameters(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = entry.get("parameters", {})
    if not isinstance(found, dict):
        raise BadRequest(f"the parameters of {where} are not an object")
    return cast("dict[str, Any]", found)


def _wanted(document: Mapping[str, Any], outputs: Sequence[Tensor]) -> dict[str, bool]:
    """Returns the requested outputs, by default all, and whether each is sent as bytes."""
    known = [t.name for t in outputs]
    default = bool(_parameters(document, "the request").get("binary_data_output", False))
    if not document.get("outputs"):
        return dict.fromkeys(known, default)
    wanted: dict[str, bool] = {}
    for each in _objects(document, "outputs"):
        name = _text(each, "name", "an output")
        if name not in known:
            raise BadRequest(f"there is no output '{name}'; known: {', '.join(known)}")
        wanted[name] = bool(_parameters(each, f"output '{name}'").get("binary_data", default))
    return wanted


def _array(name: str, entry: Mapping[str, Any], rest: memoryview) -> tuple[np.ndarray[Any, Any], memoryview]:
    """Returns the tensor of an entry, and the bytes that are left for the entries after it."""
    where = f"'{name}'"
    dtype, given = dtype_of(_text(entry, "datatype", where)), entry.get("shape")
    sizes = cast("list[Any]", given) if isinstance(given, list) else [None]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in sizes):
        raise BadRequest(f"the shape of {where} is {given}, not a list of sizes")
    shape = tuple(cast("list[int]", sizes))
    size = _parameters(entry, where).get("binary_data_size")
    if size is None:
        return _from_numbers(where, entry.get("data"), dtype, shape), rest
    if not isinstance(size, int) or size < 0 or size > len(rest):
        raise BadRequest(f"the binary_data_size of {where} is {size}; {len(rest)} bytes are left")
    return _from_bytes(where, rest[:size], dtype, shape), rest[size:]


def _from_numbers(where: str, data: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if not isinstance(data, list):
        raise BadRequest(f"{where} has neither 'data' nor a binary_data_size")
    values = _flat(cast("list[Any]", data))
    if len(values) != math.prod(shape):
        raise BadRequest(f"{where} has {len(values)} elements; its shape {list(shape)} has {math.prod(shape)}")
    # NumPy would round a fraction to an integer, and take 1 for a truth value.
    kinds: dict[str, tuple[type, ...]] = {"O": (str,), "b": (bool,), "i": (int,), "u": (int,)}
    expected = kinds.get(dtype.kind, (int, float))
    if not all(isinstance(v, expected) and (dtype.kind == "b" or not isinstance(v, bool)) for v in values):
        raise BadRequest(f"the data of {where} are not all of its datatype")
    try:
        return np.array(values, dtype).reshape(shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise BadRequest(f"the data of {where}: {error}") from error


def _flat(data: list[Any]) -> list[Any]:
    """Returns the elements in row-major order: the protocol allows nested lists."""
    while data and isinstance(data[0], list):
        if not all(isinstance(each, list) for each in data):
            raise BadRequest("nested data have rows of different kinds")
        data = [value for row in data for value in row]
    return data


def _from_bytes(where: str, data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    if dtype.kind == "O":
        strings = _strings(where, data)
        if len(strings) != count:
            raise BadRequest(f"{where} has {len(strings)} strings; its shape {list(shape)} has {count}")
        found = np.empty(count, object)
        found[:] = strings
        return found.reshape(shape)
    if len(data) != count * dtype.itemsize:
        raise BadRequest(f"{where} has {len(data)} bytes; its shape {list(shape)} has {count * dtype.itemsize}")
    return np.frombuffer(data, dtype).reshape(shape)


def _strings(where: str, data: memoryview) -> list[str]:
    found, at = list[str](), 0
    while at < len(data):
        if at + 4 > len(data):
            raise BadRequest(f"the bytes of {where} end within the length of a string")
        (length,) = struct.unpack_from("<I", data, at)
        if at + 4 + length > len(data):
            raise BadRequest(f"the bytes of {where} end within a string")
        try:
            found.append(str(data[at + 4 : at + 4 + length], "utf-8"))
        except UnicodeDecodeError as error:
            raise BadRequest(f"a string of {where} is not UTF-8: {error}") from error
        at += 4 + length
    return found


def _to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.kind != "O":
        return array.tobytes()
    texts = [str(value).encode() for value in array.reshape(-1).tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def _to_numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Returns the elements for JSON. NaN and infinities have no form in JSON, and are written as Python's `json` does
    (`NaN`, `Infinity`), which it reads again; the binary form is exact."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "V" or flat.dtype.name in ("bfloat16", "float16"):
        flat = flat.astype(np.float32)
    return flat.tolist()
