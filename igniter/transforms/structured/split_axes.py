"""`split-axes`: splits an axis over joined dims of a producer into the producer's axes.

Before, `%g: tensor<?x8x8x49xf32>` written by a nest:

    %v = loop.view %g : tensor<?x8x8x49xf32, ...> to tensor<?x64x49xf32, ...>
    %y = loop.nest "relu" [n: parallel b, c: parallel 64, p: parallel 49] -> tensor<?x64x49xf32, ...> {
      %a = loop.read %v[n, c, p] : f32
      ...
      loop.yield none %r at [n, c, p]
    }

After:

    %0 = loop.nest "relu" [n: parallel b, c_0: parallel 8, c_1: parallel 8, p: parallel 49] -> tensor<?x8x8x49xf32> {
      %a = loop.read %g[n, c_0, c_1, p] : f32
      ...
      loop.yield none %r at [n, c_0, c_1, p]
    }
    %y = loop.view %0 : tensor<?x8x8x49xf32, ...> to tensor<?x64x49xf32, ...>

In terms of the producer, the subscript of `c` was `c floordiv 8` and `c mod 8`. Now it is `c_0` and `c_1`, and the
nest reads the producer directly. So the nest can absorb the producer's body (`inline-nests`) or share its loops; the
division forbade both. Examples are a group normalisation with an activation after it, a grouped convolution with its
bias, and the readers of a `Tile` or a rearranged block of pixels. By default, contractions are the only sums whose
readers are split, because these are computed on their tiles. `sums` adds all sums, for machines that compute the nests
of a kernel on blocks of shared axes. The innermost axis is split only if its remainder fills vectors (`min_inner`
elements); a nest with a single reader that absorbs it has the innermost axis of that reader, which may transpose. The
depth of a contraction is never split: micro-kernels have one. The pass runs before `inline-nests`; `collapse-axes`
joins again the axes that need no division.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.structured.nest_bodies import is_contraction
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, delinearize, linearize, product
from igniter.dialects.sym.ranges import simplify
from igniter.dialects.sym.reindexing import dim_groups
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_rewriting import replace_op, set_clauses, substitute_axes

Parts = dict[str, tuple[Expr, ...]]
"""The extents that replace each split axis, outermost first."""


@dataclass(frozen=True)
class SplitAxes(ModulePass):
    """Gives nests the axes of the producers that they read through views."""

    name = "split-axes"
    one_rewrite = "the axes of a nest split"

    min_inner: int = 16
    """The least remaining extent of the innermost axis of a nest."""
    sums: bool = False
    """Includes the axes of all sums."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in kernel.nests:
                if nest.schedule is not None:
                    continue
                parts = self.parts_of(nest)
                if parts:
                    if not budget(ctx, self.name).take(nest.label, f"{', '.join(parts)} are split"):
                        return
                    split(nest, parts, frozenset(kernel.symbol_names))
                for axis, extents in parts.items():
                    shown = ", ".join(map(str, extents))
                    remark(ctx, self.name, nest.label, "applied", f"{axis} became axes of {shown}")

    def parts_of(self, nest: NestOp) -> Parts:
        """Returns the axes of a nest to split. An axis stays if two reads need different splits."""
        wanted: dict[str, set[tuple[Expr, ...]]] = {}
        summed_there: set[str] = set()
        for read in nest.reads:
            view = read.source.owner
            if read.indices or not isinstance(view, ViewOp):
                continue
            producer = view.source.owner
            if not isinstance(producer, NestOp) or not (self.sums or _is_taken_in(producer)):
                continue
            source, dims = dims_of(view.source.type), dims_of(view.result.type)
            for there, here in dim_groups(source, dims):
                wide = tuple(source[d] for d in there if source[d] != ONE)
                own = [d for d in here if dims[d] != ONE]
                if len(own) == 1 and len(wide) > 1 and (axis := read.subscripts[own[0]].symbol) is not None:
                    wanted.setdefault(axis, set()).add(wide)
                    if not _is_taken_in(producer):
                        summed_there.add(axis)
        parts: Parts = {}
        if not wanted:
            return parts
        summed = is_contraction(nest)
        innermost = _innermost(nest)
        for axis in nest.axes:
            choices = wanted.get(axis.name, set())
            if len(choices) != 1 or (summed and axis.kind == "reduction"):
                continue
            (extents,) = choices
            if product(extents) != axis.extent:
                continue
            short = (extents[-1].constant or self.min_inner) < self.min_inner
            if axis.name == innermost and short and axis.name not in summed_there:
                continue
            parts[axis.name] = extents
        return parts


def _is_taken_in(producer: NestOp) -> bool:
    """True if a reader of the nest gains from sharing its axes: it can absorb the body, or it is computed on the tiles
    of a contraction, such as a grouped convolution."""
    return is_contraction(producer) or all(c.combiner == "none" for c in producer.yield_op.clauses)


def _innermost(nest: NestOp) -> str | None:
    """Returns the axis along which the results are stored in the end: the nest's last one, unless the nest is absorbed
    by its only reader (`inline-nests`), which may transpose. A convolution with channels last has its bias and its
    activation before the transpose: their innermost axis is the channel, not the column."""
    absorbed: list[tuple[NestOp, ReadOp]] = []
    while (read := _only_read(nest)) is not None:
        absorbed.append((nest, read))
        reader = read.parent_op()
        assert isinstance(reader, NestOp)
        nest = reader
    found = nest.axes[-1].name if nest.axes else None
    for producer, read in reversed(absorbed):
        at = [k for k, subscript in enumerate(read.subscripts) if found is not None and subscript.symbol == found]
        axis = producer.yield_op.clauses[0].subscripts[at[0]].symbol if len(at) == 1 else None
        found = axis if axis is not None else producer.axes[-1].name if producer.axes else None
    return found


def _only_read(nest: NestOp) -> ReadOp | None:
    """Returns the only read of a nest's result, if its reader can absorb the nest: neither of them reduces."""
    clauses, uses = nest.yield_op.clauses, list(nest.outputs[0].uses)
    if len(clauses) != 1 or clauses[0].combiner != "none" or len(uses) != 1:
        return None
    read = uses[0].operation
    if not isinstance(read, ReadOp) or read.indices or read.guards:
        return None
    reader = read.parent_op()
    if not isinstance(reader, NestOp) or any(c.combiner != "none" for c in reader.yield_op.clauses):
        return None
    return read


def split(nest: NestOp, parts: Parts, taken: frozenset[str]) -> None:
    """Splits axes of a nest. Its results get the new dims; views after them restore the old ones."""
    axes: list[Axis] = []
    pieces: dict[str, list[Expr]] = {}
    names = set(taken) | {a.name for a in nest.axes}
    for axis in nest.axes:
        if axis.name not in parts:
            axes.append(axis)
            continue
        for k, extent in enumerate(parts[axis.name]):
            name = f"{axis.name}_{k}"
            while name in names:
                name += "_"
            names.add(name)
            axes.append(Axis(name, extent, axis.kind))
            pieces.setdefault(axis.name, []).append(Expr.of(name))
    whole = {a.name: a.extent for a in nest.axes if a.name in parts}
    clauses: list[Clause] = []
    for k, clause in enumerate(nest.yield_op.clauses):
        dims: list[Expr] = []
        subscripts: list[Expr] = []
        declared = nest.outputs[k].type
        for dim, subscript in zip(dims_of(declared), clause.subscripts, strict=True):
            axis = subscript.symbol
            if axis in whole and whole[axis] == dim:
                dims += parts[axis]
                subscripts += pieces[axis]
            else:
                dims.append(dim)
                subscripts.append(subscript)
        clauses.append(clause.at(subscripts))
        fresh = tensor_of(element_of(declared), dims)
        if fresh != declared:
            output = Rewriter.replace_value_with_new_type(nest.outputs[k], fresh)
            view = ViewOp(output, declared)
            assert nest.parent is not None
            nest.parent.insert_op_after(view, nest)
            output.replace_uses_with_if(view.result, lambda use, view=view: use.operation is not view)
    set_clauses(nest.yield_op, clauses)
    substitute_axes(nest, axes, {a: linearize(pieces[a], parts[a]) for a in parts})
    for read in nest.reads:
        _see_through(read, nest)


def _see_through(read: ReadOp, nest: NestOp) -> None:
    """Makes a read of a view of a nest's result read the result itself, if the subscripts are axes: then passes that
    look for readers find it."""
    view = read.source.owner
    if read.indices or read.guards or not isinstance(view, ViewOp) or not isinstance(view.source.owner, NestOp):
        return
    offset = linearize(read.subscripts, dims_of(view.result.type))
    there = [simplify(e, nest.axes_attr.ranges) for e in delinearize(offset, dims_of(view.source.type))]
    if all(e.symbol is not None or e == ZERO for e in there):
        replace_op(read, ReadOp(view.source, there))
