"""`form-fma`: replaces the sum of a product and another value by a fused multiply-add, with one rounding.

    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %c : f32
becomes
    %s = math.fma %a, %b, %c : f32

If both terms are products, the first one is fused. The pass chooses, not LLVM: LLVM's choice depends on the code around
the sum. `inline-nests` gives every reader of a nest a copy of its body, and copies must have the same bits. ArgMin
finds the least element in one nest and searches for it in another, and a model may test `x == ReduceMax(x)`. So the
pass runs after all passes that copy bodies, and before all passes that keep part of a copy in a register.

Sums of f32 and f64 contract; a difference never does: where `x - y*z` is 0 except for rounding, a softmax takes its
exponential, and a variance its root. The sum of a reduction (`loop.yield add`) contracts at emission. The product of a
code and its scale contracts with neither: the result of DequantizeLinear is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.arith import is_dequantized
from igniter.dialects.loop import KernelOp
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_rewriting import erase_dead_ops, replace_op


@dataclass(frozen=True)
class FormFma(ModulePass):
    """Turns sums of a product and another value into fused multiply-adds."""

    name = "form-fma"
    one_rewrite = "a sum and a product fused into one op"

    fma: bool = True
    """True if the machine has fused multiply-adds; otherwise the pass does nothing."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.fma:
            return
        rewrites = budget(ctx, self.name)
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for total in [t for t in kernel.walk() if isinstance(t, arith.AddfOp)]:
                if not rewrites.is_spent and form(total):
                    rewrites.count(f"@{kernel.sym_name.data}", "a multiply-add is formed")
            for nest in kernel.nests:
                erase_dead_ops(nest.block)


def form(total: arith.AddfOp) -> bool:
    """Fuses one sum if one of its terms is a product. True if it did."""
    if not isinstance(total.result.type, (Float32Type, Float64Type)):
        return False
    for term, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        product = term.owner
        if isinstance(product, arith.MulfOp) and not is_dequantized(product):
            fused = math.FmaOp(product.lhs, product.rhs, other)
            fused.location = total.location
            replace_op(total, fused)
            return True
    return False
