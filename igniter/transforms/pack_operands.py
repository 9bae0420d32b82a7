"""`pack-operands`: operands of contractions that are computed at run time get the layout that micro-kernels read.

    %s = loop.nest "scores" [b: parallel 12, i: parallel n, j: parallel n, k: reduction 64] -> .. {
      %x = loop.read %q[b, i, k] : f32      %y = loop.read %keys[b, j, k] : f32      ...
becomes
    %p = loop.nest "scores.pack" [b: parallel 12, p: parallel .., k: parallel 64, l: parallel 16] -> .. {
      %y = loop.read %keys[b, 16*p + l, k] if [n - 1 - 16*p - l] : f32
      loop.yield none %y at [b, p, k, l]
    }
    %s = loop.nest "scores" [...] { ...      %y = loop.read %p[b, j floordiv 16, k, j mod 16] : f32      ... }

Only where the columns of neither factor lie side by side in panels already (`igniter.analysis.contractions`), and where
enough rows share what is packed. It stands before `choose-schedule`, after the passes that change how a nest reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from igniter.analysis.contractions import contraction_of, factors_of, group_of, kind_of, panel_lanes
from igniter.analysis.expr import ONE, Expr, floordiv, mod, symbols_of
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.sym import element_of, tensor_of
from igniter.remarks import remark
from igniter.transforms.nest_rewriting import fresh_label

FEWEST_ROWS = 4
"""Packing moves every element once; fewer rows than this do not make up for it."""


@dataclass(frozen=True)
class PackOperands(ModulePass):
    """Adds a nest that packs the right factor of a contraction, where that is computed at run time."""

    name = "pack-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in list(kernel.nests):
                reason = pack_operand(nest)
                if reason is None:
                    remark(ctx, self.name, nest.label, "applied", "its right factor is packed into panels")
                elif reason:
                    remark(ctx, self.name, nest.label, "missed", reason)


def pack_operand(nest: NestOp) -> str | None:
    """Packs the right factor of one nest; why not, or "" where there is nothing to pack."""
    factors = factors_of(nest)
    if nest.schedule is not None or isinstance(factors, str) or not isinstance(contraction_of(nest), str):
        return ""
    result = nest.outputs[0]
    elements = [element_of(v.type) for v in (*(r.source for r in factors), result)]
    if kind_of(*elements) is None and kind_of(elements[1], elements[0], elements[2]) is None:
        return f"there is no micro-kernel for products of {elements[0]} and {elements[1]} in {elements[2]}"
    depth = next(a.name for a in nest.axes if a.kind == "reduction")
    found = _columns(nest, factors, depth)
    if found is None:
        return "no axis of the result is in one factor only"
    read, column, rows = found
    if group_of(read, nest) != 1:
        return f"elements of {element_of(read.source.type)} are packed at compile time only"
    count = rows.constant
    if count is not None and count < FEWEST_ROWS:
        return f"only {count} rows would share it"
    _pack(nest, read, column, depth)
    return None


def _columns(nest: NestOp, factors: tuple[ReadOp, ReadOp], depth: str) -> tuple[ReadOp, str, Expr] | None:
    """The factor to pack, its columns, and how many rows the other has; the result's last axis if that can be."""
    written = nest.yield_op.clauses[0].subscripts
    order = [a.name for s in reversed(written) for a in nest.axes if a.name in s.symbols and a.extent != ONE]
    for column in dict.fromkeys(order):
        for b, a in (factors, factors[::-1]):
            in_a, in_b = symbols_of(a.subscripts), symbols_of(b.subscripts)
            if column in in_b and column not in in_a and depth in in_b and depth in in_a:
                rows = [x.extent for x in nest.axes if x.kind == "parallel" and x.name in in_a and x.name not in in_b]
                if rows:
                    return b, column, rows[-1]
    return None


def _pack(nest: NestOp, read: ReadOp, column: str, depth: str) -> None:
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    extent = nest.axis(column).extent
    used = symbols_of(read.subscripts)
    batch = [a for a in nest.axes if a.kind == "parallel" and a.name in used and a.name != column]
    names = _fresh([a.name for a in nest.axes], ("p", "l"))
    panel, lane = Axis(names[0], extent.ceildiv(lanes), "parallel"), Axis(names[1], Expr.of(lanes), "parallel")
    deep = Axis(depth, nest.axis(depth).extent, "parallel")
    axes = [*batch, panel, deep, lane]
    at = Expr.of(panel.name) * lanes + Expr.of(lane.name)
    full = extent.constant is not None and extent.constant % lanes == 0
    inner = ReadOp(
        read.source,
        [s.substitute({column: at}) for s in read.subscripts],
        guards=[] if full else [extent - 1 - at],
    )
    where = [Expr.of(a.name) for a in axes]
    body = Block([inner, YieldOp([Clause("none", inner.result, where)])])
    target = tensor_of(element_of(read.source.type), [a.extent for a in axes])
    pack = NestOp(fresh_label(nest, f"{nest.label}.pack"), axes, [target], Region(body))
    block = nest.parent
    assert block is not None
    block.insert_op_before(pack, nest)
    at_column = Expr.of(column)
    subscripts = [
        *(Expr.of(a.name) for a in batch),
        floordiv(at_column, Expr.of(lanes)),
        Expr.of(depth),
        mod(at_column, Expr.of(lanes)),
    ]
    packed = ReadOp(pack.outputs[0], subscripts)
    nest.block.insert_op_before(packed, read)
    read.result.replace_all_uses_with(packed.result)
    read.detach()
    read.erase()


def _fresh(taken: list[str], wanted: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for base in wanted:
        name, k = base, 1
        while name in taken:
            name, k = f"{base}{k}", k + 1
        names.append(name)
        taken = [*taken, name]
    return names


__all__ = ["PackOperands", "pack_operand"]
