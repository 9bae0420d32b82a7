"""Weights of f32 stored as floats of 16 bits; their source stays accessible.

`fold-constants` folds a Cast of 16-bit floats into a constant. Its values are computed on demand, for passes that read
them; the stored floats remain for `form-half-products`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import Float32Type, f32
from xdsl.ir import Attribute

from igniter.dialects.loop.panels import is_half
from igniter.dialects.onnx.weights import Weight

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Widened:
    """The values of 16-bit floats in f32."""

    source: Weight

    def compute(self) -> Array:
        return self.source.array().astype(np.float32)


@dataclass(frozen=True)
class Transposed:
    """The values of a weight with its dims in another order."""

    source: Weight
    order: tuple[int, ...]

    def compute(self) -> Array:
        return np.ascontiguousarray(self.source.array().transpose(self.order))


def widened(weight: Weight, element: Attribute) -> Weight | None:
    """Returns a weight of 16-bit floats as one of f32; `None` for other weights, or if `element` is another type."""
    if not is_half(weight.element_type) or not isinstance(element, Float32Type) or weight.elided:
        return None
    return Weight(weight.shape, f32, derivation=Widened(weight))


def stored(weight: Weight) -> Weight | None:
    """Returns the 16-bit floats behind a weight of f32; `None` without them."""
    return weight.derivation.source if isinstance(weight.derivation, Widened) else None


def transposed(weight: Weight, order: Sequence[int]) -> Weight | None:
    """Returns a weight stored as 16-bit floats with its dims in another order; `None` for other weights."""
    source = stored(weight)
    if source is None:
        return None
    other = turned(source, order)
    return Weight(other.shape, f32, derivation=Widened(other))


def turned(weight: Weight, order: Sequence[int]) -> Weight:
    """Returns a weight with its dims in another order, computed at each access."""
    shape = [weight.shape[k] for k in order]
    return Weight(shape, weight.element_type, derivation=Transposed(weight, tuple(order)))


__all__ = ["Transposed", "Widened", "stored", "transposed", "turned", "widened"]
