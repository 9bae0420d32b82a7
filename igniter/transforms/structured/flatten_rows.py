"""`flatten-rows`: joins the rows of a product of blocks into one axis, even if a window moves along them.

    %h = loop.nest "conv" [n: parallel b, c: parallel 64, y: parallel 14, x: parallel 14, d: reduction 32, ..] {
      %w = loop.read %weight[c, d, i, j]
      %a = loop.read %image[n, d, y + i - 1, x + j - 1] if [..]
becomes
    %h = loop.nest "conv" [n: parallel b, c: parallel 64, y_x: parallel 196, d: reduction 32, ..] {
      %w = loop.read %weight[c, d, i, j]
      %a = loop.read %image[n, d, y_x floordiv 14 + i - 1, y_x mod 14 + j - 1] if [..]

A view of the result has its old dims. A block of rows is then full even if the rows of an image are short: a GPU
divides once per element of a block, before the loop of products. The pass joins only axes of one factor, adjacent in
the result, and the same axes of elementwise readers. `collapse-axes`, which runs next, lets the other readers of the
result use the joined axis too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.structured.attention import attentions
from igniter.analysis.structured.dot_products import dot_product, hangs_on
from igniter.dialects.loop import Axis, KernelOp, NestOp, ViewOp
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv, mod, product
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.joined_reads import join_reads
from igniter.transforms.structured.nest_rewriting import set_clauses, substitute_axes


@dataclass(frozen=True)
class FlattenRows(ModulePass):
    """Joins the row axes of a product of blocks."""

    name = "flatten-rows"
    one_rewrite = "the rows of a product joined"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            attention = {nest for found in attentions(kernel) for nest in found.members}
            for nest in kernel.nests:
                run = rows_of(nest) if nest not in attention else []
                if not run:
                    continue
                said = f"joined the rows {', '.join(run)}"
                if not budget(ctx, self.name).take(nest.label, said):
                    return
                flatten(nest, run, frozenset(kernel.symbol_names))
                remark(ctx, self.name, nest.label, "applied", said)
                _flatten_readers(nest.outputs[0], frozenset(kernel.symbol_names))


def rows_of(nest: NestOp) -> list[str]:
    """Returns the axes of one factor that are adjacent in the result, outermost first; empty if there are fewer than
    two."""
    dot = dot_product(nest)
    if dot is None:
        return []
    (clause,) = nest.yield_op.clauses
    kinds = {a.name: a.kind for a in nest.axes if a.extent != ONE}
    in_a, in_b = hangs_on(dot.a), hangs_on(dot.b)
    for own, other in ((in_a, in_b), (in_b, in_a)):
        run: list[str] = []
        for subscript in clause.subscripts:
            name = subscript.symbol
            if name is not None and kinds.get(name) == "parallel" and name in own - other:
                run.append(name)
            elif len(run) > 1:
                break
            else:
                run = []
        if len(run) > 1:
            return run
    return []


def _flatten_readers(value: SSAValue, taken: frozenset[str]) -> None:
    """Joins the same axes in the elementwise readers of a nest whose rows were joined: in one launch their dims are the
    same. A window behind them would keep `collapse-axes` from it."""
    views = [use.operation for use in value.uses if isinstance(use.operation, ViewOp)]
    for view in views:
        for reader in list(dict.fromkeys(use.operation.parent_op() for use in view.result.uses)):
            run = _rows_of_reader(reader, view) if isinstance(reader, NestOp) else []
            if run and isinstance(reader, NestOp):
                flatten(reader, run, taken)
                _flatten_readers(reader.outputs[0], taken)


def _rows_of_reader(nest: NestOp, view: ViewOp) -> list[str]:
    """Returns the axes of an elementwise nest over the dims that a view takes apart; empty if it has others, or if they
    are not adjacent in its result."""
    clauses, schedule = nest.yield_op.clauses, nest.schedule
    if schedule is not None or len(clauses) != 1 or clauses[0].otherwise is not None:
        return []
    if any(a.kind != "parallel" for a in nest.axes):
        return []
    split = _split_dims(view)
    extents = {a.name: a.extent for a in nest.axes}
    runs = [[e.symbol or "" for e in r.subscripts[split]] for r in nest.reads if r.source is view.result]
    if len(runs) != 1 or any(
        extents.get(n) != d for n, d in zip(runs[0], dims_of(view.result.type)[split], strict=True)
    ):
        return []
    written = [e.symbol for e in clauses[0].subscripts]
    places = [written.index(n) if n in written else -1 for n in runs[0]]
    adjacent = places and places == list(range(places[0], places[0] + len(places))) and places[0] >= 0
    return runs[0] if adjacent and len(places) > 1 else []


def _split_dims(view: ViewOp) -> slice:
    """Returns the dims of a view's result that are one dim of its source; empty if it changes anything else."""
    whole, parts = dims_of(view.source.type), dims_of(view.result.type)
    first = next((k for k, (a, b) in enumerate(zip(whole, parts, strict=False)) if a != b), 0)
    behind = len(whole) - first - 1
    found = slice(first, len(parts) - behind)
    same = whole[first + 1 :] == parts[found.stop :] and product(parts[found]) == whole[first]
    return found if same else slice(0, 0)


def flatten(nest: NestOp, run: Sequence[str], taken: frozenset[str]) -> None:
    """Joins several adjacent axes of the result into one, and adds a view after the nest."""
    block = nest.parent
    assert block is not None
    extents = {a.name: a.extent for a in nest.axes}
    name = "_".join(run)
    while name in taken or name in extents:
        name += "_"
    axes: list[Axis] = []
    for axis in nest.axes:
        if axis.name == run[0]:
            axes.append(Axis(name, product(extents[n] for n in run), axis.kind))
        elif axis.name not in run:
            axes.append(axis)
    values: dict[str, Expr] = {}
    rest = Expr.of(name)
    for axis_name in reversed(run[1:]):
        values[axis_name] = mod(rest, extents[axis_name])
        rest = floordiv(rest, extents[axis_name])
    values[run[0]] = rest
    (clause,) = nest.yield_op.clauses
    place = next(k for k, e in enumerate(clause.subscripts) if e.symbol == run[0])
    declared = nest.outputs[0].type
    dims = list(dims_of(declared))
    joined = [*dims[:place], product(dims[place : place + len(run)]), *dims[place + len(run) :]]
    at = [*clause.subscripts[:place], Expr.of(name), *clause.subscripts[place + len(run) :]]
    substitute_axes(nest, axes, values)
    join_reads(nest)
    (clause,) = nest.yield_op.clauses
    set_clauses(nest.yield_op, [clause.at(at)])
    output = Rewriter.replace_value_with_new_type(nest.outputs[0], tensor_of(element_of(declared), joined))
    view = ViewOp(output, declared)
    block.insert_op_after(view, nest)
    output.replace_uses_with_if(view.result, lambda use: use.operation is not view)
