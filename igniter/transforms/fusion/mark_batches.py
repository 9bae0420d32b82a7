"""`mark-batches`: marks regions with independent batch elements.

    %b = fusion.region @r0 (%x = %a : tensor<?x8xf32, #sym.dims<n, 8>>, %w = ..) kernel @r0 -> (..) { .. }

becomes

    %b = fusion.region @r0 (%x = %a : ..) kernel @r0 -> (..) attributes {igniter.batched = array<i64: 0>} { .. }

if the result at one index of `n` depends on the first input only at that index (`igniter.analysis.structured.batches`).
The attribute lists the inputs with a batch dim; all results have one. `lower-programs` reads it, because the nests no
longer exist then.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.passes import ModulePass

from igniter.analysis.structured.batches import batched_inputs
from igniter.dialects.fusion import BATCHED, RegionOp
from igniter.dialects.loop import KernelOp
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class MarkBatches(ModulePass):
    """Marks regions batched along their first dim."""

    name = "mark-batches"
    one_rewrite = "a region marked"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        found = {k.sym_name.data: batched_inputs(k) for k in op.ops if isinstance(k, KernelOp)}
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            inputs = found.get(region.kernel_name or "")
            message = f"batched along the first dim of {len(inputs or ())} inputs"
            if inputs and rewrites.take(f"@{region.label}", message):
                region.attributes[BATCHED] = DenseArrayBase.from_list(i64, inputs)
                remark(ctx, self.name, region.label, "applied", message)
