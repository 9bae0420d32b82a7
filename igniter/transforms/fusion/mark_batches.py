"""`mark-batches`: which regions do the same for every element of a batch, as their kernels say.

    %b = fusion.region @r0 (%x = %a : tensor<?x8xf32, #sym.dims<n, 8>>, %w = ..) kernel @r0 -> (..) { .. }

becomes

    %b = fusion.region @r0 (%x = %a : ..) kernel @r0 -> (..) attributes {igniter.batched = array<i64: 0>} { .. }

where the result at one place of `n` depends on that place of the first input alone
(`igniter.analysis.structured.batches`). The attribute has the inputs that have a batch; all results have it.
`lower-programs` goes by it, when the nests are gone.
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
from igniter.rewrites import budget


@dataclass(frozen=True)
class MarkBatches(ModulePass):
    """Tells regions that are batched along their first dim."""

    name = "mark-batches"
    one_rewrite = "a region that is marked"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        found = {k.sym_name.data: batched_inputs(k) for k in op.ops if isinstance(k, KernelOp)}
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            inputs = found.get(region.kernel_name or "")
            message = f"batched along the first dim of {len(inputs or ())} inputs"
            if inputs and rewrites.take(f"@{region.label}", message):
                region.attributes[BATCHED] = DenseArrayBase.from_list(i64, inputs)
                remark(ctx, self.name, region.label, "applied", message)
