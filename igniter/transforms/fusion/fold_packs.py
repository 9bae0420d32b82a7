"""`fold-packs`: turns packed weights into constants of the model.

    %p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x3072xf32> to tensor<192x768x16xf32>

becomes

    %p = onnx.Constant() <{initializer_name = "w.panels1.0.16x1"}> {value = ...} : () -> tensor<192x768x16xf32>

The pass computes nothing: the constant records its derivation, and its bytes are computed when they are written. The
pass runs when the kernels exist; until then a region that is left to ONNX Runtime finds the plain weight. A weight read
only by packs is removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.transforms.fusion.pack_weights import fold_packs


@dataclass(frozen=True)
class FoldPacks(ModulePass):
    """Turns packed weights into constants."""

    name = "fold-packs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold_packs(op)
