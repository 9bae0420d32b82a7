"""Detection of changes to frozen weights.

A session has weights as constants, folded and packed for the machine. PyTorch's tensors still exist, and any code can
write to them. So four properties of each weight are compared before each call:

* its identity, because Dynamo runs one graph for several modules of the same structure;
* its version: in-place ops visible to autograd increment it, such as those of optimisers and `load_state_dict`;
* the address of its data: `param.data = other` changes it;
* some of its elements, 8 bytes at each of up to `SAMPLES` places: a write through `param.data` or NumPy leaves the
  version unchanged. A write elsewhere in the tensor goes unnoticed; `weights="checked"` adds a digest of all bytes.
"""

from __future__ import annotations

import ctypes
import hashlib
import weakref
from collections.abc import Sequence
from typing import Any

from igniter.torch.graphs import tensor_bytes
from igniter.torch.names import Tensor

SAMPLES = 8


class WeightWatch:
    """The state of a set of weights at the time of freezing."""

    def __init__(self, weights: Sequence[Tensor], whole: bool):
        self._tensors = [weakref.ref(w) for w in weights]
        # Tensors made in inference mode have no version.
        self._counted = [place for place, w in enumerate(weights) if not w.is_inference()]
        self._versions = [weights[place]._version for place in self._counted]
        self._addresses = [w.data_ptr() for w in weights]
        self._cells = [cell for w in weights for cell in _cells(w)]
        self._samples = [cell.value for cell in self._cells]
        self._digests = [_digest(w) for w in weights] if whole else None

    def alive(self) -> bool:
        """True if all frozen tensors still exist."""
        return all(ref() is not None for ref in self._tensors)

    def are(self, weights: Sequence[Tensor]) -> bool:
        """True if these are the frozen tensors, regardless of their content."""
        return all(ref() is w for ref, w in zip(self._tensors, weights, strict=True))

    def unchanged(self, weights: Sequence[Tensor]) -> bool:
        """True if `weights`, the frozen tensors, have their old content."""
        # The addresses come first: a cell may be read only while its tensor has its old address.
        if [w.data_ptr() for w in weights] != self._addresses:
            return False
        if [weights[place]._version for place in self._counted] != self._versions:
            return False
        if [cell.value for cell in self._cells] != self._samples:
            return False
        return self._digests is None or [_digest(w) for w in weights] == self._digests

    def changed(self, weights: Sequence[Tensor]) -> list[int]:
        """Returns the positions of the changed weights."""
        found: list[int] = []
        start = 0
        versions = dict(zip(self._counted, self._versions, strict=True))
        for place, weight in enumerate(weights):
            count = len(_places(weight))
            cells, samples = self._cells[start : start + count], self._samples[start : start + count]
            start += count
            same = weight.data_ptr() == self._addresses[place]
            same = same and (place not in versions or weight._version == versions[place])
            same = same and [cell.value for cell in cells] == samples
            if not same or (self._digests is not None and _digest(weight) != self._digests[place]):
                found.append(place)
        return found


def _digest(weight: Tensor) -> bytes:
    return hashlib.sha256(tensor_bytes(weight)).digest()


def _places(weight: Tensor) -> list[int]:
    """Returns the byte offsets of the samples. In a dense tensor they include its first and last 8-byte cells."""
    size = weight.element_size()
    count = weight.numel()
    if count == 0:
        return []
    if not weight.is_contiguous():
        # Elements along the last axis only: the strides of the others may overlap or leave gaps.
        steps = range(0, weight.shape[-1], max(1, weight.shape[-1] // SAMPLES))
        return [step * weight.stride(-1) * size for step in steps]
    cells = count * size // 8
    if cells == 0:
        return [0]
    return sorted({round(step * (cells - 1) / (SAMPLES - 1)) * 8 for step in range(SAMPLES)})


def _cells(weight: Tensor) -> list[Any]:
    size = weight.element_size()
    whole = weight.is_contiguous() and weight.numel() * size >= 8
    kind = ctypes.c_uint64 if whole else {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32}.get(size)
    return [(kind or ctypes.c_uint64).from_address(weight.data_ptr() + at) for at in _places(weight)]
