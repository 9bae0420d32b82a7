"""`fold-conversions`: converts codes inside of the sums that read each of them a few times.

    %k = loop.nest "keys" [h: parallel 8, j: parallel n, p: parallel 2, c: parallel 32] -> tensor<8x?x2x32xf32, ..> {
      %b = loop.read %codes[h, j, c] : ui8
      ..                                                  the half `p` of a byte, as a float
      loop.yield none %x at [h, j, p, c]
    }
    %v = loop.view %k : .. to tensor<8x?x64xf32, ..>
    %s = loop.nest "scores" [h: parallel 8, j: parallel n, d: reduction 64] -> .. { .. loop.read %v[h, j, d] .. }
becomes
    %s = loop.nest "scores" [h: parallel 8, j: parallel n, d_0: reduction 2, d_1: reduction 32] -> .. {
      %b = loop.read %codes[h, j, d_1] : ui8
      ..                                                  the half `d_0` of the byte, as a float
    }

A step of a decoder multiplies every code of its cache with one query for each head. As a nest of its own the conversion
writes four or eight times the bytes that it reads, and the sum reads them again. A sum of many rows keeps plain reads:
its factor is converted once, packed, and shared by micro-kernels. So the pass counts how often a sum reads each number,
at typical sizes, and runs after `form-variants`, which gives few rows a kernel of their own, and before
`pack-operands`.

The nest has only conversions of one read of integers. An axis of the sum over joined dims of the nest is split
(`split-axes`), so no divisions are left.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.structured.nest_bodies import is_contraction
from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import Clause, IndexOp, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.attrs import as_integer, element_bytes
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, product
from igniter.dialects.sym.reindexing import dim_groups
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.inline_nests import InlineNests
from igniter.transforms.structured.nest_cloning import Site, locate
from igniter.transforms.structured.nest_rewriting import erase_dead_nests, readers_of
from igniter.transforms.structured.split_axes import Parts, split

CONVERSIONS = (
    *(arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp, arith.ConstantOp, IndexOp, arith.IndexCastOp),
    *(arith.AndIOp, arith.ShRUIOp, arith.ShRSIOp, arith.ShLIOp, arith.AddiOp, arith.SubiOp, arith.MuliOp),
    *(arith.TruncIOp, arith.CmpiOp, arith.SelectOp, arith.MinUIOp),
)
"""The ops of a conversion of codes to floats."""


@dataclass(frozen=True)
class FoldConversions(ModulePass):
    """Folds conversions of codes into sums that read each of them a few times"""

    name = "fold-conversions"
    one_rewrite = "a conversion folded into the sums that read it"

    most: int = 4
    """The most reads of a number. Conversions take about as many instructions as a load and a multiply-add."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in [n for n in kernel.nests if is_conversion(n)]:
                reason = self._refusal(nest, kernel)
                if reason is not None:
                    remark(ctx, self.name, nest.label, "missed", reason)
                elif budget(ctx, self.name).is_spent:
                    return
                else:
                    fold(ctx, nest, kernel)

    def _refusal(self, nest: NestOp, kernel: KernelOp) -> str | None:
        """Returns the reason why a conversion stays a nest; None if it is folded."""
        reads, escapes = readers_of(nest.outputs[0])
        if escapes or not reads:
            return "its result leaves the kernel"
        made = typical_of(kernel).value(product(dims_of(nest.outputs[0].type)), WORK)
        times = 0.0
        for read, _ in reads:
            reader = read.parent_op()
            assert isinstance(reader, NestOp)
            if not is_contraction(reader) or reader.schedule is not None or read.guards or read.indices:
                return f"'{reader.label}' is no sum of products, or reads it under guards"
            points = product(axis.extent for axis in reader.axes)
            times += typical_of(kernel).value(points, WORK) / max(1, made)
        return f"each number is read {times:.3g} times (more than {self.most})" if times > self.most else None


def is_conversion(nest: NestOp) -> bool:
    """True if a nest only makes floats of narrower integers, each of one element of a tensor."""
    clauses, reads = nest.yield_op.clauses, nest.reads
    if nest.schedule is not None or len(clauses) != 1 or clauses[0].combiner != "none" or len(reads) != 1:
        return False
    (read,), result = reads, element_of(nest.outputs[0].type)
    source = as_integer(element_of(read.source.type))
    if read.guards or read.indices or source is None or not isinstance(result, AnyFloat):
        return False
    if element_bytes(source) >= element_bytes(result):
        return False
    return all(isinstance(op, (ReadOp, YieldOp, *CONVERSIONS)) for op in nest.block.ops)


def fold(ctx: Context, nest: NestOp, kernel: KernelOp) -> None:
    """Folds a conversion into its readers, whose axes over joined dims of its result are split."""
    for read, views in readers_of(nest.outputs[0])[0]:
        reader = read.parent_op()
        assert isinstance(reader, NestOp)
        parts: Parts = {}
        for view in views:
            source, dims = dims_of(view.source.type), dims_of(view.result.type)
            for there, here in dim_groups(source, dims):
                wide = tuple(source[d] for d in there if source[d] != ONE)
                own = [d for d in here if dims[d] != ONE]
                if len(own) == 1 and len(wide) > 1 and (axis := read.subscripts[own[0]].symbol) is not None:
                    parts[axis] = wide
        if parts:
            split(reader, parts, frozenset(kernel.symbol_names))
    (clause,) = nest.yield_op.clauses
    found: list[tuple[Clause, Site]] = []
    for read, views in readers_of(nest.outputs[0])[0]:
        site = locate(clause, nest, read, views)
        if isinstance(site, str):
            remark(ctx, FoldConversions.name, nest.label, "missed", site)
            return
        found.append((clause, site))
    folding = InlineNests()
    readers = ", ".join(f"'{site.reader.label}'" for _, site in found)
    for clause, site in found:
        folding.fold(clause, site)
    erase_dead_nests(kernel)
    budget(ctx, FoldConversions.name).count(nest.label, f"folded into {readers}")
    remark(ctx, FoldConversions.name, nest.label, "applied", f"folded into {readers}")
