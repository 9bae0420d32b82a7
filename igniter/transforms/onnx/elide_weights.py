"""`elide-weights`: omits the values of big tensors, so that the text of a model can be read and pasted.

    %w = onnx.Constant() {value = #onnx.tensor<2x3xi64, [0, 1, 2, 3, 4, 5]>} : () -> tensor<2x3xi64>

becomes, with `limit=4`,

    %w = onnx.Constant() {value = #onnx.tensor<2x3xi64, elided>} : () -> tensor<2x3xi64>

The result still parses and verifies; reading the values of an elided weight is an error. So the pass belongs only at
the end of pipelines whose output is for reading. A reproducer (`igniter.reproducers`) runs with other values in the
place of elided ones (`igniter.dialects.onnx.stand_ins`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.stand_ins import replace_weights
from igniter.dialects.onnx.weights import Weight


@dataclass(frozen=True)
class ElideWeights(ModulePass):
    """Elides tensors of more than `limit` elements."""

    name = "elide-weights"

    limit: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        replace_weights(op, self._elided)

    def _elided(self, weight: Weight) -> Weight:
        return Weight(weight.shape, weight.element_type) if weight.size > self.limit else weight
