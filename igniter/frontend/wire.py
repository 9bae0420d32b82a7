"""Reading a model file without copying its weights.

Protobuf parses a message as a whole, so it copies every tensor, and refuses a file over 2 GB. Here the file is mapped
and its framing read first: the bytes of every big tensor are cut out and replaced by a reference to their place, in the
form of ONNX's external data. The rest is small and goes to the protobuf parser.

Only messages big enough to contain a big tensor are entered, so the cost is a few microseconds an initializer.
"""

from __future__ import annotations

from igniter.frontend.tensors import SELF

THRESHOLD = 4096
"""The limit in bytes of tensors kept in the message."""

_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _TENSOR, _SPARSE, _FUNCTION = range(7)

# For each message, the fields on the way to tensors, with their message types.
_INSIDE: dict[int, dict[int, int]] = {
    _MODEL: {7: _GRAPH, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
    _FUNCTION: {7: _NODE, 11: _ATTRIBUTE},
}
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_LENGTH_DELIMITED = 2
_DEEPEST = 100
"""The limit of nested messages; protobuf's parsers have the same."""
_FIXED = {1: 8, 5: 4}


class WireError(ValueError):
    """Raised for bytes that are not a protobuf message."""


def without_weights(data: memoryview) -> bytes:
    """Returns the serialized model `data` with its big tensors cut out."""
    return b"".join(_message(data, 0, len(data), _MODEL))


def _message(data: memoryview, start: int, end: int, kind: int, depth: int = 0) -> list[bytes | memoryview]:
    """Returns the pieces of the message in `data[start:end]`, nested in `depth` others."""
    if depth > _DEEPEST:
        raise WireError(f"its graphs are nested more deeply than protobuf supports ({_DEEPEST} messages)")
    inside = _INSIDE.get(kind, {})
    pieces: list[bytes | memoryview] = []
    references: list[bytes] = []
    kept = position = start
    while position < end:
        field_start = position
        tag, position = _varint(data, position, end)
        wire = tag & 7
        if wire != _LENGTH_DELIMITED:
            position = _skip(data, position, end, wire)
            continue
        length, position = _varint(data, position, end)
        body, position = position, position + length
        if position > end:
            raise WireError("a field is longer than the message around it")
        if length < THRESHOLD:
            continue
        field = tag >> 3
        if kind == _TENSOR and field == _RAW_DATA:
            pieces.append(data[kept:field_start])
            references.append(_reference(body, length))
            kept = position
        elif field in inside:
            parts = _message(data, body, position, inside[field], depth + 1)
            pieces += [data[kept:field_start], _encode(tag), _encode(sum(map(len, parts))), *parts]
            kept = position
    # After all other fields: the last value of a repeated scalar field counts, and some fields mark data as internal.
    return [*pieces, data[kept:end], *references]


def _reference(offset: int, length: int) -> bytes:
    entries = b""
    for key, value in (("location", SELF), ("offset", str(offset)), ("length", str(length))):
        pair = _text(1, key) + _text(2, value)
        entries += _encode(_EXTERNAL_DATA << 3 | _LENGTH_DELIMITED) + _encode(len(pair)) + pair
    return entries + _encode(_DATA_LOCATION << 3) + _encode(1)


def _text(field: int, text: str) -> bytes:
    data = text.encode()
    return _encode(field << 3 | _LENGTH_DELIMITED) + _encode(len(data)) + data


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise WireError("a number is not terminated")


def _skip(data: memoryview, position: int, end: int, wire: int) -> int:
    if wire == 0:
        return _varint(data, position, end)[1]
    size = _FIXED.get(wire)
    if size is None or position + size > end:
        raise WireError("a field has an unknown kind" if size is None else "a field is truncated")
    return position + size
