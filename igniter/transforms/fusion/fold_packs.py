"""`fold-packs`: packed weights become constants of the model.

    %p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x3072xf32> to tensor<192x768x16xf32>

becomes

    %p = onnx.Constant() <{initializer_name = "w.panels1.0.16x1"}> {value = ...} : () -> tensor<192x768x16xf32>

Nothing is computed here: the constant knows what it is derived from, and its bytes are made when they are written. It
stands where the kernels are there; until then a region that goes back to ONNX Runtime finds the plain weight. A weight
that nothing but packs read goes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.transforms.fusion.pack_weights import fold_packs


@dataclass(frozen=True)
class FoldPacks(ModulePass):
    """Makes constants of packed weights."""

    name = "fold-packs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold_packs(op)
