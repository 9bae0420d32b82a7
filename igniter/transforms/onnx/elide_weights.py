"""`elide-weights`: omits the values of big tensors, so that the text of a model can be read and pasted.

    %w = onnx.Constant() {value = #onnx.tensor<2x3xi64, [0, 1, 2, 3, 4, 5]>} : () -> tensor<2x3xi64>

becomes, with `limit=4`,

    %w = onnx.Constant() {value = #onnx.tensor<2x3xi64, elided>} : () -> tensor<2x3xi64>

The result still parses and verifies; reading the values of an elided weight is an error. So the pass belongs only at
the end of pipelines whose output is for reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr
from igniter.dialects.onnx.weights import Weight


@dataclass(frozen=True)
class ElideWeights(ModulePass):
    """Elides tensors of more than `limit` elements."""

    name = "elide-weights"

    limit: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            for name, attr in inner.attributes.items():
                elided = self._elided(attr)
                if elided is not attr:
                    inner.attributes[name] = elided

    def _elided(self, attr: Attribute) -> Attribute:
        """Returns `attr` without the values of big tensors in it; `attr` itself without such tensors."""
        if isinstance(attr, TensorAttr):
            weight = attr.handle
            return TensorAttr(Weight(weight.shape, weight.element_type)) if weight.size > self.limit else attr
        if isinstance(attr, SparseTensorAttr):
            values, indices = self._elided(attr.values), self._elided(attr.indices)
            if values is attr.values and indices is attr.indices:
                return attr
            return SparseTensorAttr(cast(TensorAttr, values), cast(TensorAttr, indices), attr.dims)
        if isinstance(attr, ArrayAttr):
            before = cast("ArrayAttr[Attribute]", attr)
            items = [self._elided(a) for a in before.data]
            return ArrayAttr(items) if any(a is not b for a, b in zip(items, before.data, strict=True)) else before
        if isinstance(attr, DictionaryAttr):
            entries = {k: self._elided(v) for k, v in attr.data.items()}
            return DictionaryAttr(entries) if any(entries[k] is not v for k, v in attr.data.items()) else attr
        return attr
