"""Other values for tensors of the same shapes, and the same values in memory that is laid out otherwise."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch

LAYOUTS = ("transposed", "strided", "expanded", "offset")


def other_values(tensors: Sequence[torch.Tensor], chance: random.Random, share: float) -> list[torch.Tensor]:
    """Tensors of the same shapes and types with other values, of which `share` are extremes."""
    return [_other(tensor, chance, share) for tensor in tensors]


def _other(tensor: torch.Tensor, chance: random.Random, share: float) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor.clone()
    dtype, count = tensor.dtype, tensor.numel()
    if dtype is torch.bool:
        values = torch.tensor([chance.random() < 0.5 for _ in range(count)], dtype=dtype)
    elif dtype.is_complex:
        parts = [_floats(count, torch.float32, chance, share) for _ in range(2)]
        values = torch.complex(*parts).to(dtype)
    elif dtype.is_floating_point:
        values = _floats(count, dtype, chance, share)
    else:
        values = _integers(count, dtype, chance, share)
    return values.reshape(tensor.shape)


def _floats(count: int, dtype: torch.dtype, chance: random.Random, share: float) -> torch.Tensor:
    limits = torch.finfo(dtype)
    extremes = [math.nan, math.inf, -math.inf, 0.0, -0.0, limits.max, -limits.max, limits.tiny, -limits.tiny]
    # Ties of roundings, the ends of domains, and what is beside them.
    extremes += [0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, 1.0 + limits.eps, 1.0 - limits.eps, limits.smallest_normal / 4]
    drawn = [chance.choice(extremes) if chance.random() < share else chance.gauss(0, 3) for _ in range(count)]
    return torch.tensor(drawn, dtype=torch.float64).to(dtype)


def _integers(count: int, dtype: torch.dtype, chance: random.Random, share: float) -> torch.Tensor:
    limits = torch.iinfo(dtype)
    extremes = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, 0, 1]
    extremes += [-1, -2] if limits.min < 0 else [2, 3]
    low, high = max(limits.min, -9), min(limits.max, 9)
    drawn = [chance.choice(extremes) if chance.random() < share else chance.randint(low, high) for _ in range(count)]
    return torch.tensor(drawn, dtype=dtype)


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """A tensor of the same shape and, but for `expanded`, the same values, in memory that is laid out as `layout`."""
    if tensor.layout is not torch.strided or tensor.dim() == 0 or tensor.is_quantized:
        return tensor.clone()
    if layout == "transposed":
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "strided":
        wide = tensor.new_zeros(*tensor.shape[:-1], 2 * tensor.shape[-1])
        found = wide[..., ::2]
    elif layout == "expanded":
        return tensor[:1].clone().expand(tensor.shape) if tensor.shape[0] else tensor.clone()
    else:
        found = tensor.new_zeros(tensor.shape[0] + 2, *tensor.shape[1:])[2:]
    return found.copy_(tensor)


def copied(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the strides and offsets of the originals, each storage in memory of its own; tensors that are one
    object, or share a storage, do so still."""
    storages: dict[int, torch.Tensor] = {}
    objects: dict[int, torch.Tensor] = {}
    found: list[torch.Tensor] = []
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            found.append(tensor.clone())
            continue
        if id(tensor) not in objects:
            key = tensor.untyped_storage()._cdata
            if key not in storages:
                whole = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
                storages[key] = whole.clone()
            base = storages[key]
            copy = base.view(tensor.dtype) if base.dtype != tensor.dtype else base
            objects[id(tensor)] = copy.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        found.append(objects[id(tensor)])
    return found
