"""`form-variants`: adds variants for certain sizes to kernels whose best schedule depends on their sizes.

    loop.kernel @k symbols [m, n] (..) -> (..) {
      %s = loop.nest "scores" [i: parallel m, j: parallel n, k: reduction 64] -> .. { .. }
      loop.return %s : ..
    }
becomes
    loop.kernel @k symbols [m, n] (..) -> (..) {
      the same
    } variants {
      loop.kernel @few_rows symbols [m, n] (..) -> (..) typical [m = 1] when m <= 1 {
        a copy
      }
    }

A variant is a copy with other typical sizes (`igniter.analysis.typical_sizes`), and later passes choose differently for
it. A call runs the first variant whose condition holds. The backend's schedule author decides if variants pay
(`igniter.schedules.worthwhile_variants` for CPUs, `igniter.schedules.launch_variants` for GPUs). With `symbol` and
`most`, every kernel with this symbol gets a variant for sizes up to `most`, unconditionally. The pass runs before the
first pass that chooses by sizes, `pack-operands` or `choose-splits`; the passes before it do the same for all sizes. A
kernel with variants or a schedule is not changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from igniter.analysis.machine import machine_of
from igniter.analysis.typical_sizes import give_sizes, typical_of
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.typical import sizes_attr
from igniter.dialects.loop.variants import condition_text
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.author import make_author
from igniter.schedules.size_variants import SizeVariant, SizeVariants
from igniter.targets import backend_of


@dataclass(frozen=True)
class FormVariants(ModulePass):
    """Adds variants to kernels for sizes with another best schedule."""

    name = "form-variants"
    one_rewrite = "a variant of a kernel"

    symbol: str = ""
    """Forces a variant for sizes of this symbol. Empty: the author decides."""
    most: int = 0
    """The largest size for the variant."""
    author: str = ""
    """The schedule author that decides, by name, with its options (`NAME{option=value}`). Empty: the backend's."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if bool(self.symbol) != (self.most > 0):
            raise IgniterError("'most' is the largest size of 'symbol'; give both or neither")
        author, machine = make_author(self.author or backend_of(ctx).schedule_author), machine_of(ctx)
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            name = kernel.sym_name.data
            found = self._asked(kernel) if self.symbol else author.variants(kernel, machine)
            if isinstance(found, str):
                remark(ctx, self.name, name, "missed", found)
            elif found is not None and not found.variants:
                add_variants(kernel, found)
                sizes = ", ".join(f"{symbol}={size}" for symbol, size in (found.rest or {}).items())
                remark(ctx, self.name, name, "note", f"one schedule is near the best at all sizes: that for {sizes}")
            elif found is not None and budget(ctx, self.name).take(f"@{name}", f"it gets {_named(found)}"):
                for this, variant in zip(found.variants, add_variants(kernel, found), strict=True):
                    assert variant.when is not None
                    text = f"variant @{this.name} when {condition_text(variant.when)}: {this.why}"
                    remark(ctx, self.name, name, "applied", text)

    def _asked(self, kernel: KernelOp) -> SizeVariants | str:
        if self.symbol not in kernel.symbol_names:
            return f"it has no symbol '{self.symbol}'"
        if kernel.variants or any(each.schedule is not None for each in kernel.computations):
            return "it keeps its own variants or schedule"
        name = f"{self.symbol}_to_{self.most}"
        asked = SizeVariant(name, Expr.of(self.symbol), self.most, {self.symbol: self.most}, "asked for")
        return SizeVariants((asked,))


def add_variants(kernel: KernelOp, found: SizeVariants) -> list[KernelOp]:
    """Adds variants, which are copies, to a kernel. If a variant covers the kernel's typical size and the kernel gets
    no other, the kernel loses the typical sizes of the variant."""
    copies: list[KernelOp] = []
    for this in found.variants:
        variant = kernel.clone()
        variant.sym_name = StringAttr(this.name)
        variant.when = DimsAttr([this.what, this.most])
        give_sizes(variant, this.typical)
        copies.append(variant)
    if found.rest is not None:
        give_sizes(kernel, found.rest)
    else:
        for this in found.variants:
            kept = {name: size for name, size in typical_of(kernel).given if name not in this.typical}
            known = typical_of(kernel).known(this.what)
            if known is not None and known <= this.most:
                kernel.typical = sizes_attr(kept)
    kernel.set_variants(copies)
    return copies


def _named(found: SizeVariants) -> str:
    names = [f"@{each.name}" for each in found.variants]
    return f"the variant{'s' * (len(names) > 1)} {' and '.join(names)}"
