"""Tensor maps of a driver without a GPU: encoded with the refusals of the real one, and read again by a launch."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from math import prod

from igniter.backends.triton.compiler import TensorMap

BYTES = {0: 1, 6: 2, 7: 4, 9: 2}
"""The bytes of an element, by CUDA's number of its type: u8, f16, f32, bf16."""
SPANS = (0, 32, 64, 128)
"""The bytes that a swizzle spans."""
_FORMAT = "<8sIIIQ5Q4Q5I"
_MARK = b"encoded!"


def encode(
    out: int,
    kind: int,
    rank: int,
    address: int | None,
    sizes: int,
    strides: int,
    box: int,
    steps: int,
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> str | None:
    """Writes a map, or returns the reason for which the driver refuses it."""
    if kind not in BYTES or not 1 <= rank <= 5 or out % 64:
        return f"type {kind}, rank {rank}, map at {out}"
    dims = [ctypes.c_uint64.from_address(sizes + 8 * k).value for k in range(rank)]
    steps_between = [ctypes.c_uint64.from_address(strides + 8 * k).value for k in range(rank - 1)]
    boxes = [ctypes.c_uint32.from_address(box + 4 * k).value for k in range(rank)]
    each = [ctypes.c_uint32.from_address(steps + 4 * k).value for k in range(rank)]
    if not address or address % 16:
        return f"address {address}"
    if any(not 1 <= n <= 1 << 32 for n in dims):
        return f"sizes {dims}"
    if any(n % 16 or n >= 1 << 40 for n in steps_between):
        return f"strides {steps_between}"
    if any(not 1 <= n <= 256 for n in boxes) or boxes[0] * BYTES[kind] % 16 or each != [1] * rank:
        return f"box {boxes}, steps {each}"
    if not 0 <= swizzle < len(SPANS) or (swizzle and boxes[0] * BYTES[kind] > SPANS[swizzle]):
        return f"box {boxes} and swizzle {swizzle}"
    if interleave or fill or not 0 <= promotion <= 3:
        return f"interleave {interleave}, promotion {promotion}, fill {fill}"
    padded = [*dims, *[0] * (5 - rank)], [*steps_between, *[0] * (5 - rank)], [*boxes, *[0] * (5 - rank)]
    data = struct.pack(_FORMAT, _MARK, kind, rank, swizzle, address, *padded[0], *padded[1], *padded[2])
    ctypes.memmove(out, data, len(data))
    return None


def decode(wanted: TensorMap, places: Sequence[int]) -> tuple[int, list[int]]:
    """Returns the address and the sizes of a descriptor among the addresses of a launch's parameters; raises if its map
    is not as the kernel reads it."""
    at = wanted.parameter
    assert places[at] % 64 == 0
    data = ctypes.string_at(places[at], struct.calcsize(_FORMAT))
    mark, kind, rank, swizzle, address, *rest = struct.unpack(_FORMAT, data)
    assert mark == _MARK, "a launch has a map that was not encoded"
    dims, strides, box = rest[:rank][::-1], rest[5 : 5 + rank - 1][::-1], rest[9 : 9 + rank][::-1]
    assert (kind, rank, swizzle, tuple(box)) == (wanted.type, wanted.rank, wanted.swizzle, wanted.box)
    sizes = [ctypes.c_uint32.from_address(places[at + 1 + k]).value for k in range(rank)]
    steps = [ctypes.c_uint64.from_address(places[at + 1 + rank + k]).value for k in range(rank)]
    assert dims == sizes
    assert steps == [prod(sizes[k + 1 :]) for k in range(rank)], "elements lie row after row"
    assert strides == [n * wanted.bytes for n in steps[:-1]]
    return address, sizes
