"""`form-fma`: a product that is added to something becomes one rounding.

    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %c : f32
becomes
    %s = math.fma %a, %b, %c : f32

Of two products that are added the first is the one that is not rounded. The choice is the pass's and not LLVM's, whose
own depends on what stands around the sum: `inline-nests` gives every reader of a nest a copy of its body, and copies
must have the same bits. ArgMin finds the least element in one nest and looks for it in another, and a model may ask
`x == ReduceMax(x)`. So the pass stands behind everything that copies bodies, and before anything that keeps a part of a
copy in a register.

Sums of f32 and f64 contract; a difference never does: where `x - y*z` is 0 but for rounding, a softmax takes its
exponential, and a variance its root. What a reduction adds up (`loop.yield add`) contracts when it is emitted. The
product of a code and its scale contracts with neither: what DequantizeLinear gives is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.arith import is_dequantized
from igniter.dialects.loop import KernelOp
from igniter.rewrites import budget
from igniter.transforms.structured.nest_rewriting import erase_dead_ops, replace_op


@dataclass(frozen=True)
class FormFma(ModulePass):
    """Sums of a product and another value become fused multiply-adds."""

    name = "form-fma"
    one_rewrite = "a sum and a product that become one op"

    fma: bool = True
    """Whether the machine has them; without, the pass does nothing."""

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
    """One sum, if a term of it is a product; whether it is."""
    if not isinstance(total.result.type, (Float32Type, Float64Type)):
        return False
    for term, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        product = term.owner
        if isinstance(product, arith.MulfOp) and not is_dequantized(product):
            replace_op(total, math.FmaOp(product.lhs, product.rhs, other))
            return True
    return False
