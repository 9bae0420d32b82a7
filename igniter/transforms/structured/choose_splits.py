"""`choose-splits`: splits sums with too few results to fill a GPU into partial sums and a sum of these.

    %c = loop.nest "matmul" [i: parallel 128, j: parallel 768, k: reduction 3072] -> tensor<128x768xf32>
becomes
    %t = loop.nest "matmul.parts" [part: parallel 4, i: parallel 128, j: parallel 768, k: reduction 768]
    %c = loop.nest "matmul" [i: parallel 128, j: parallel 768, part: reduction 4] -> tensor<128x768xf32>

The rewrite is that of `split-reductions`, with sums named by the user; here `igniter.schedules.split_sums`
chooses the sums and the number of parts. A product of few rows and columns with a long depth becomes split-K, and the
sum of a whole tensor takes two steps: parts that fill the GPU, then the sum of the parts. The order of each sum is
fixed, so results are deterministic. The sums of an attention run along its blocks of keys and are not split. The pass
runs before `choose-schedule`; nests with schedules are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import machine_of
from igniter.analysis.structured.attention import attentions
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import PRODUCTS
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.product_blocks import figures_of
from igniter.schedules.split_sums import parts_of, unit_of
from igniter.transforms.structured.split_reductions import split_reduction


@dataclass(frozen=True)
class ChooseSplits(ModulePass):
    """Splits the reductions with too few results to fill a GPU."""

    name = "choose-splits"
    one_rewrite = "a reduction split"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        features, gpu = machine.features, figures_of(machine.cpu)
        how = features if features in PRODUCTS else ""
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            inside = {nest for found in attentions(kernel) for nest in found.members}
            for nest in [n for n in kernel.nests if n not in inside and n.schedule is None]:
                chosen = parts_of(nest, how, gpu)
                if chosen is None:
                    continue
                axis, parts = chosen
                said = f"its sums over {axis} are computed in {parts} parts"
                if not budget(ctx, self.name).take(nest.label, said):
                    return
                split_reduction(nest, axis, parts, unit_of(nest))
                remark(ctx, self.name, nest.label, "applied", said)
