"""Values for elided weights: IR without its weights still runs, on random values.

A reproducer (`igniter.reproducers`) elides weights. `fill` gives each elided weight values that depend only on its
place in the module. They are printed as `elided` again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr
from igniter.dialects.onnx.types import STRING, ElementType
from igniter.dialects.onnx.weights import Weight


@dataclass(frozen=True)
class StandIn:
    """Random floats of a standard normal distribution, or zeros for other types: 0 is a valid index."""

    shape: tuple[int, ...]
    element: ElementType
    seed: int

    printed = "elided"
    """The form in which `onnx.tensor` prints the weight."""

    def compute(self) -> np.ndarray[Any, Any]:
        dtype = self.element.dtype
        if self.element.bits < 16 or self.element.onnx_name.startswith(("int", "uint", "bool", "complex")):
            return np.zeros(self.shape, dtype)
        return np.random.default_rng(self.seed).standard_normal(self.shape).astype(dtype)


def elided(module: ModuleOp) -> int:
    """Returns the number of elided weights in a module."""
    found = 0

    def count(weight: Weight) -> Weight:
        nonlocal found
        found += weight.elided or isinstance(weight.derivation, StandIn)
        return weight

    replace_weights(module, count)
    return found


def fill(module: ModuleOp) -> None:
    """Gives every elided weight of a module values, in place."""
    number = 0

    def filled(weight: Weight) -> Weight:
        nonlocal number
        number += 1
        if not weight.elided:
            return weight
        if weight.element_type == STRING:
            return Weight(weight.shape, STRING, strings=[b""] * weight.size)
        return Weight(weight.shape, weight.element, derivation=StandIn(weight.shape, weight.element, number))

    replace_weights(module, filled)


def replace_weights(module: ModuleOp, change: Callable[[Weight], Weight]) -> None:
    """Replaces every weight of a module by the result of `change`; an unchanged weight is returned as it is."""
    for op in module.walk():
        for name, attr in list(op.attributes.items()):
            new = _changed(attr, change)
            if new is not attr:
                op.attributes[name] = new


def _changed(attr: Attribute, change: Callable[[Weight], Weight]) -> Attribute:
    """Returns `attr` with its weights changed; `attr` itself if none is."""
    if isinstance(attr, TensorAttr):
        weight = change(attr.handle)
        return attr if weight is attr.handle else TensorAttr(weight)
    if isinstance(attr, SparseTensorAttr):
        values, indices = _changed(attr.values, change), _changed(attr.indices, change)
        if values is attr.values and indices is attr.indices:
            return attr
        return SparseTensorAttr(cast(TensorAttr, values), cast(TensorAttr, indices), attr.dims)
    if isinstance(attr, ArrayAttr):
        before = cast("ArrayAttr[Attribute]", attr)
        items = [_changed(a, change) for a in before.data]
        return ArrayAttr(items) if any(a is not b for a, b in zip(items, before.data, strict=True)) else before
    if isinstance(attr, DictionaryAttr):
        entries = {k: _changed(v, change) for k, v in attr.data.items()}
        return DictionaryAttr(entries) if any(entries[k] is not v for k, v in attr.data.items()) else attr
    return attr
