"""`deduplicate-kernels`: equal regions share one kernel.

The layers of a transformer differ in their weights, and weights are arguments. So twelve layers give twelve copies of
each kernel, equal except for the names of symbols. The pass renames symbols to `d0`, `d1`, ... in the order of their
first use in the arguments' dims, and merges kernels with equal text. It runs directly after `lower-onnx-to-loop`, so
that later passes do their work once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import ComputeOp, ForOp, KernelOp
from igniter.dialects.sym import checks_attr, dims_of, requirements_attr
from igniter.dialects.sym.expr import Expr
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.kernel_exprs import map_kernel_exprs, retype


@dataclass(frozen=True)
class DeduplicateKernels(ModulePass):
    """Makes regions with equal kernels refer to one of them."""

    name = "deduplicate-kernels"
    one_rewrite = "a kernel replaced by an equal one"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first: dict[str, str] = {}
        same: dict[str, str] = {}
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            name = kernel.sym_name.data
            rename_symbols(kernel)
            kernel.sym_name = StringAttr("")
            text = str(kernel)
            kernel.sym_name = StringAttr(name)
            kept = first.setdefault(text, name)
            if kept != name and budget(ctx, self.name).take(f"@{name}", f"it is the same as @{kept}"):
                same[name] = kept
                kernel.detach()
                kernel.erase()
                remark(ctx, self.name, name, "applied", f"computes the same as {kept}")
        for region in op.walk():
            if isinstance(region, RegionOp) and region.kernel_name in same:
                region.kernel_name = same[region.kernel_name]


def rename_symbols(kernel: KernelOp) -> None:
    """Renames the symbols of `kernel` by the order of their first use in its arguments."""
    order: dict[str, None] = {}
    for arg in kernel.block.args:
        for dim in dims_of(arg.type):
            order.update(dict.fromkeys(sorted(dim.symbols)))
    order.update(dict.fromkeys(kernel.symbol_names))
    taken = {a.name for op in kernel.walk() if isinstance(op, ComputeOp) for a in op.axes}
    taken |= {op.axis for op in kernel.walk() if isinstance(op, ForOp)}
    names: dict[str, Expr] = {}
    for old in order:
        k = len(names)
        while f"d{k}" in taken:
            k += len(order)
        names[old] = Expr.of(f"d{k}")
    if all(str(new) == old for old, new in names.items()) and list(kernel.symbol_names) == list(order):
        return

    def renamed(e: Expr) -> Expr:
        return e.substitute(names)

    map_kernel_exprs(kernel, renamed)
    for each in (kernel, *kernel.variants):
        for arg in each.block.args:
            retype(arg, renamed)
        if each.typical is not None:
            each.typical = each.typical.renamed(names)
        if each.when is not None:
            each.when = each.when.substitute(names)
        each.requires_attr = requirements_attr(r.substitute(names) for r in each.requires)
        each.checks_attr = checks_attr(c.substitute(names) for c in each.checks)
        each.symbols = ArrayAttr([StringAttr(str(names[s].symbol)) for s in order])
        each.declared_types = ArrayAttr([v.type for v in each.returned])
