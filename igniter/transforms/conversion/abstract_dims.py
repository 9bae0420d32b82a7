"""`abstract-dims`: turns dims computed from other dims into symbols, if the kernel does not need the others.

    loop.kernel @r7 symbols [h] (%x : tensor<?x64xf32, #sym.dims<(h + 1) floordiv 2 + 2, 64>>,
        %b : tensor<?xf32, #sym.dims<h>>) -> (tensor<?x64xf32, #sym.dims<(h + 1) floordiv 2, 64>>) {
      .. nothing reads %b ..
    }

becomes

    loop.kernel @r7 symbols [s0] (%x : tensor<?x64xf32, #sym.dims<s0 + 2, 64>>) -> (tensor<?x64xf32, #sym.dims<s0, 64>>)

After five layers with a stride of two, its height is an expression with five divisions. A kernel reads the height of
its own image from that image and need not know its derivation: its expressions become short, and kernels with different
derivations become equal. An operand of the region is removed with the symbols if it only gives them. The assumptions of
the graph about these symbols are then checked elsewhere (`guard-assumptions`, a later pass).

The pass runs directly after `lower-onnx-to-loop`; `deduplicate-kernels` merges the new equal kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import BlockArgument
from xdsl.passes import ModulePass

from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.typical import sizes_attr
from igniter.dialects.sym import checks_attr, dims_of, requirements_attr
from igniter.dialects.sym.bind_symbols import bind_symbols
from igniter.dialects.sym.expr import Atom, Call, Expr, Sym, call, symbols_of
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.kernel_exprs import exprs_of, map_kernel_exprs, retype

UNTAKEN = "?"
"""An unused symbol, to test if an expression still needs others."""


@dataclass(frozen=True)
class AbstractDims(ModulePass):
    """Gives kernels symbols for computed dims, if they need nothing else of the symbols inside."""

    name = "abstract-dims"
    one_rewrite = "a computed dim of a kernel replaced by a symbol"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions: dict[str, list[RegionOp]] = {}
        for region in op.walk():
            if isinstance(region, RegionOp) and region.kernel_name is not None:
                regions.setdefault(region.kernel_name, []).append(region)
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            name = kernel.sym_name.data
            made: list[str] = []
            while (found := _next(kernel)) is not None:
                if not budget(ctx, self.name).take(f"@{name}", f"{found} becomes a symbol"):
                    return
                made.append(_abstract(kernel, found, regions.get(name, [])))
            if made:
                remark(ctx, self.name, name, "applied", f"computed dims become symbols: {', '.join(made)}")


def _next(kernel: KernelOp) -> Call | None:
    """Returns the innermost call that is a dim of an argument, except for an offset and a factor, if the kernel needs
    its symbols nowhere else; else None."""
    used = [arg for arg in kernel.block.args if arg.first_use is not None]
    dims = {dim for arg in used for dim in dims_of(arg.type) if dim.symbol is None and dim.constant is None}
    calls = {atom for dim in dims for atom in _solvable(dim)}
    if not calls:
        return None
    exprs = list(_needed(kernel, used))
    for found in sorted(calls, key=lambda c: (len(str(c)), str(c))):
        symbols = Expr({(found,): 1}).symbols
        left = symbols_of(replaced(e, found, Expr.of(UNTAKEN)) for e in exprs)
        if symbols and not symbols & left:
            return found
    return None


def _idle(kernel: KernelOp, found: Call, renamed: Callable[[Expr], Expr]) -> list[BlockArgument]:
    """Returns the arguments without use once `found` is a symbol: they gave only symbols inside `found`. Returns none
    if one of them still gives another needed symbol; a later step may remove it."""
    gone = Expr({(found,): 1}).symbols
    dims = {arg: [renamed(d) for d in dims_of(arg.type)] for arg in kernel.block.args}
    idle = [arg for arg, of in dims.items() if arg.first_use is None and gone & symbols_of(of)]
    used = [arg for arg in kernel.block.args if arg.first_use is not None]
    needed = symbols_of(renamed(e) for e in _needed(kernel, used)) & set(kernel.symbol_names)
    told = bind_symbols([(of, True) for arg, of in dims.items() if arg not in idle]).bound
    return idle if needed <= set(told) else []


def _solvable(dim: Expr) -> Iterator[Call]:
    """Yields the calls in `c*call + rest` whose value can be solved from the dim."""
    for monomial, _ in dim.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Call):
            yield monomial[0]


def _needed(kernel: KernelOp, used: Sequence[BlockArgument]) -> Iterator[Expr]:
    """Yields the expressions in a kernel's computation. Dims of unused arguments do not count, and neither do
    assumptions of the graph, because they belong to no node of the region."""
    for arg in used:
        yield from dims_of(arg.type)
    yield from exprs_of(kernel)
    for requirement in kernel.requires:
        if isinstance(requirement.node, int):
            yield from (requirement.left, requirement.right)
    for check in kernel.checks:
        yield from check.bounds or ()


def replaced(e: Expr, found: Call, by: Expr) -> Expr:
    """Returns `e` with `by` in place of a call, also inside calls and in quotients of the call."""
    if all(not isinstance(atom, Call) for monomial, _ in e.terms for atom in monomial):
        return e

    def swap(atom: Atom) -> Expr:
        if atom == found:
            return by
        if isinstance(atom, Sym):
            return Expr({(atom,): 1})
        inner = _quotient_of(atom, found)
        if inner is not None:
            return call("floordiv", [by, Expr.of(inner)])
        return call(atom.fn, [replaced(a, found, by) for a in atom.args])

    return e.map_atoms(swap)


def _quotient_of(atom: Call, found: Call) -> int | None:
    """Returns the divisor of `found` in `atom`: (a floordiv 4) is (a floordiv 2) floordiv 2."""
    if atom.fn != "floordiv" or found.fn != "floordiv" or atom.args[0] != found.args[0]:
        return None
    whole, part = atom.args[1].constant, found.args[1].constant
    return whole // part if whole and part and whole > part and whole % part == 0 else None


def _abstract(kernel: KernelOp, found: Call, regions: Iterable[RegionOp]) -> str:
    """Turns a call into a symbol of the kernel, and drops the arguments needed only for the symbols inside it."""
    gone = Expr({(found,): 1}).symbols
    taken = {s for e in exprs_of(kernel) for s in e.symbols} | set(kernel.symbol_names)
    taken |= {s for arg in kernel.block.args for d in dims_of(arg.type) for s in d.symbols}
    name = next(n for k in range(len(taken) + 1) if (n := f"s{k}") not in taken)
    sizes = dict(typical_of(kernel).given)
    known = Expr({(found,): 1}).evaluate(sizes) if gone <= sizes.keys() else None

    def renamed(e: Expr) -> Expr:
        return replaced(e, found, Expr.of(name))

    _drop_arguments(kernel, [a.index for a in _idle(kernel, found, renamed)], regions)
    for arg in kernel.block.args:
        retype(arg, renamed)
    map_kernel_exprs(kernel, renamed)
    bound = bind_symbols([(dims_of(a.type), True) for a in kernel.block.args]).bound
    # The graph may assume facts about symbols of dropped operands.
    kept = [r for r in kernel.requires if isinstance(r.node, int) or _symbols(r.left, r.right, renamed) <= set(bound)]
    kernel.requires_attr = requirements_attr(r.mapped(renamed) for r in kept)
    kernel.checks_attr = checks_attr(c.mapped(renamed) for c in kernel.checks)
    kernel.declared_types = ArrayAttr([v.type for v in kernel.returned])
    names = [*(s for s in kernel.symbol_names if s in bound), name]
    kernel.symbols = ArrayAttr([StringAttr(n) for n in names])
    if known is not None and known > 0:
        sizes[name] = known
    kernel.typical = sizes_attr({n: size for n, size in sizes.items() if n in names})
    return f"{Expr({(found,): 1})} is {name}"


def _symbols(left: Expr, right: Expr, renamed: Callable[[Expr], Expr]) -> frozenset[str]:
    return renamed(left).symbols | renamed(right).symbols


def _drop_arguments(kernel: KernelOp, places: Sequence[int], regions: Iterable[RegionOp]) -> None:
    for region in regions:
        region.operands = [v for k, v in enumerate(region.inputs) if k not in places]
        for place in sorted(places, reverse=True):
            region.block.erase_arg(region.block.args[place])
    for place in sorted(places, reverse=True):
        kernel.block.erase_arg(kernel.block.args[place])
