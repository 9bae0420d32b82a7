"""`canonicalize-loop`: a canonical form of structured kernels.

Before:

    %c = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
      %v = loop.read %x[i] if [3 - i] : f32
      loop.yield none %v at [i]
    }
    %u = loop.view %c : tensor<4xf32> to tensor<2x2xf32>
    %w = loop.view %u : tensor<2x2xf32> to tensor<4xf32>
    %y = loop.nest "add" [i: parallel 4, one: parallel 1] -> tensor<4xf32> {
      %a = loop.read %w[i + one] : f32
      %b = loop.read %w[i] : f32
      %s = arith.addf %a, %b : f32
      loop.yield none %s at [i]
    }

After:

    %y = loop.nest "add" [i: parallel 4] -> tensor<4xf32> {
      %a = loop.read %x[i] : f32
      %s = arith.addf %a, %a : f32
      loop.yield none %s at [i]
    }

In bodies: axes of extent 1 are removed; expressions are simplified under the ranges of the axes; guards proven true are
removed, and a read with a guard proven false becomes its `else`; constants fold; equal ops merge; dead ops are removed.
Between nests: views of views merge, identity views and copies are removed, equal nests merge, dead results and nests
are removed. No float arithmetic changes its value. The pass runs after every pass that leaves such code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import Clause, KernelOp, NestOp, ReadOp, ReturnOp, ViewOp, YieldOp
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.dialects.sym.expr import ONE, ZERO, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges, is_nonneg
from igniter.dialects.sym.reindexing import is_injective, rename
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.fold_scalars import float_constant, fold_scalar, reciprocal
from igniter.transforms.structured.nest_rewriting import (
    erase_dead_nests,
    erase_dead_ops,
    merge_equal_ops,
    prune_indices,
    replace_op,
    set_clauses,
    set_subscripts,
    simplify_exprs,
    substitute_axes,
    zero,
)


def drop_unit_axes(nest: NestOp) -> None:
    """Removes the axes of extent 1."""
    unit = [a for a in nest.axes if a.extent == ONE]
    if unit and nest.schedule is None:
        substitute_axes(nest, [a for a in nest.axes if a.extent != ONE], {a.name: ZERO for a in unit})


def drop_combiners(nest: NestOp) -> None:
    """Removes the combiners of a nest without reductions in which every element gets exactly one value."""
    clauses = nest.yield_op.clauses
    if all(c.combiner == "none" for c in clauses) or any(a.kind == "reduction" for a in nest.axes):
        return
    extents = {a.name: a.extent for a in nest.axes}
    points = product(extents.values())
    alone = [
        clause.combiner != "none"
        and points == product(dims_of(result.type))
        and is_injective(clause.subscripts, extents)
        for clause, result in zip(clauses, nest.outputs, strict=True)
    ]
    set_clauses(
        nest.yield_op,
        [c if not one else Clause("none", c.value, c.subscripts) for c, one in zip(clauses, alone, strict=True)],
    )


def decide_guards(nest: NestOp) -> None:
    """Drops guards proven true, and reads with a guard proven false."""
    ranges: Ranges = nest.axes_attr.ranges
    for op in list(nest.block.ops):
        if not isinstance(op, ReadOp) or not op.guards:
            continue
        if any(is_nonneg(-1 - g, ranges) for g in op.guards):
            if op.otherwise is None:
                replace_op(op, zero(op.result.type))
            else:
                op.result.replace_all_uses_with(op.otherwise)
                op.detach()
                op.erase()
            continue
        # With the strongest proofs available: a contraction with guards cannot be tiled. `abstract-dims` shortens deep
        # exprs.
        guards = [g for g in dict.fromkeys(op.guards) if not is_nonneg(g, ranges) and not proven(g, ranges)]
        if len(guards) == len(op.guards):
            continue
        if guards or op.otherwise is None:
            set_subscripts(op, op.subscripts, guards)
        else:
            replace_op(op, ReadOp(op.source, op.subscripts, op.indices))


def fold_constants(nest: NestOp) -> None:
    """Folds arithmetic on constants and identity ops."""
    for op in list(nest.block.ops):
        inverse = reciprocal(op)
        if inverse is not None:
            factor = float_constant(inverse, op.results[0].type)
            assert factor is not None
            nest.block.insert_op_before(factor, op)
            replace_op(op, arith.MulfOp(op.operands[0], factor.result))
            continue
        folded = fold_scalar(op)
        if folded is None:
            continue
        if isinstance(folded, SSAValue):
            op.results[0].replace_all_uses_with(folded)
            op.detach()
            op.erase()
        else:
            replace_op(op, folded)


def canonicalize_body(nest: NestOp) -> None:
    """Applies all simplifications of a single nest."""
    drop_unit_axes(nest)
    drop_combiners(nest)
    simplify_exprs(nest)
    decide_guards(nest)
    fold_constants(nest)
    merge_equal_ops(nest.block)
    for op in list(nest.block.ops):
        if isinstance(op, ReadOp) and op.indices:
            prune_indices(op)
    erase_dead_ops(nest.block)


def drop_dead_results(nest: NestOp) -> NestOp:
    """Returns the nest without its unused results; the nest itself if none or all of them are unused."""
    live = [k for k, r in enumerate(nest.outputs) if r.first_use is not None]
    if not live or len(live) == len(nest.outputs):
        return nest
    clauses = nest.yield_op.clauses
    old = nest.yield_op
    nest.block.insert_op_before(YieldOp([clauses[k] for k in live]), old)
    old.detach()
    old.erase()
    outputs = [nest.outputs[k] for k in live]
    body = nest.detach_region(nest.body)
    fresh = NestOp(nest.label, nest.axes, [r.type for r in outputs], body, nest.schedule, dict(nest.attributes))
    assert nest.parent is not None
    nest.parent.insert_op_before(fresh, nest)
    for was, now in zip(outputs, fresh.outputs, strict=True):
        was.replace_all_uses_with(now)
    nest.detach()
    nest.erase()
    erase_dead_ops(fresh.block)
    return fresh


def join_views(view: ViewOp) -> bool:
    """Replaces a view of a view, or an identity view. True if the view was erased."""
    source = view.source
    while isinstance(source.owner, ViewOp):
        source = source.owner.source
    if source.type == view.result.type:
        view.result.replace_all_uses_with(source)
    elif source is not view.source:
        assert view.parent is not None
        joined = ViewOp(source, view.result.type)
        view.parent.insert_op_before(joined, view)
        view.result.replace_all_uses_with(joined.result)
        joined.result.name_hint = view.result.name_hint
    else:
        return False
    view.detach()
    view.erase()
    return True


def leaves_kernel(value: SSAValue) -> bool:
    """True if a tensor, or a view of it, is a result of the kernel."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, ReturnOp) or (isinstance(user, ViewOp) and leaves_kernel(user.result)):
            return True
    return False


def forward_copy(nest: NestOp) -> bool:
    """Replaces a nest that copies a tensor element by element. True if it was replaced. Each result of the kernel must
    have its own nest, so a copy may stay if it is such a result."""
    if len(nest.outputs) != 1 or nest.schedule is not None:
        return False
    clause, result = nest.yield_op.clauses[0], nest.outputs[0]
    read = clause.value.owner
    if not isinstance(read, ReadOp) or read.guards or clause.combiner != "none" or clause.otherwise is not None:
        return False
    if leaves_kernel(result) and (not isinstance(read.source.owner, NestOp) or leaves_kernel(read.source)):
        return False
    covered = [s.symbol for s in clause.subscripts]
    extents = {a.name: a.extent for a in nest.axes}
    same = read.source.type == result.type and read.subscripts == clause.subscripts
    whole = all(
        name is not None and extents.get(name) == d if s != ZERO else d == ONE
        for name, s, d in zip(covered, clause.subscripts, dims_of(result.type), strict=True)
    )
    if not same or not whole or len(set(covered)) != len(covered):
        return False
    result.replace_all_uses_with(read.source)
    return True


def rough_key(nest: NestOp) -> tuple[object, ...]:
    """Returns a cheap key that is equal for nests with equal `nest_key`s."""
    sources = tuple(id(r.source) for r in nest.reads)
    return tuple(nest.result_types), len(nest.axes), sources, sum(1 for _ in nest.block.ops)


def nest_key(nest: NestOp) -> tuple[object, ...]:
    """Returns a key that is equal for equal nests. The names of axes do not matter, nor does the order of parallel axes
    without a schedule; that of reductions does, as sums round."""
    axes = list(nest.axes)
    if nest.schedule is None:
        written = [name for clause in nest.yield_op.clauses for s in clause.subscripts if (name := s.symbol)]
        places = {name: k for k, name in reversed(list(enumerate(written)))}
        axes.sort(
            key=lambda a: (a.kind == "reduction", 0 if a.kind == "reduction" else places.get(a.name, len(places)))
        )
    names = {a.name: f"${k}" for k, a in enumerate(axes)}
    text: list[object] = [tuple((a.kind, a.extent) for a in axes), nest.schedule, tuple(nest.result_types)]
    numbers: dict[SSAValue, int] = {}
    for op in nest.block.ops:
        operands = tuple(numbers.get(o, id(o)) for o in op.operands)
        properties = tuple(
            (key, tuple(rename(e, names) for e in value.data) if isinstance(value, DimsAttr) else value)
            for key, value in sorted(op.properties.items())
        )
        if isinstance(op, YieldOp):
            properties = tuple(
                (c.combiner, tuple(rename(e, names) for e in c.subscripts), c.otherwise) for c in op.clauses
            )
        text.append((op.name, operands, properties, op.result_types))
        for r in op.results:
            numbers[r] = len(numbers)
    return tuple(text)


def merge_equal_nests(kernel: KernelOp) -> bool:
    """Merges equal nests and equal views. True if any were merged."""
    merged = False
    known: dict[tuple[object, ...], Operation] = {}
    rough = Counter(rough_key(nest) for nest in kernel.nests)
    for op in list(kernel.block.ops):
        if isinstance(op, NestOp):
            if rough[rough_key(op)] == 1:
                continue
            key = nest_key(op)
        elif isinstance(op, ViewOp):
            key = (op.name, op.source, op.result.type)
        else:
            continue
        same = known.setdefault(key, op)
        if same is op or any(leaves_kernel(r) for r in op.results):
            continue
        merged = True
        for old, new in zip(op.results, same.results, strict=True):
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()
    return merged


@dataclass(frozen=True)
class CanonicalizeLoop(ModulePass):
    """Simplifies structured kernels without changing their results."""

    name = "canonicalize-loop"
    one_rewrite = "a nest simplified, a view joined, or the equal nests of a kernel merged"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            self.run_on(ctx, kernel)

    def run_on(self, ctx: Context, kernel: KernelOp) -> None:
        """Canonicalises one kernel, in program order."""
        for label in erase_dead_nests(kernel):
            remark(ctx, self.name, label, "applied", "it is unused")
        rewrites = budget(ctx, self.name)
        for op in list(kernel.block.ops):
            if isinstance(op, ViewOp):
                if not rewrites.is_spent and join_views(op):
                    rewrites.count(f"@{kernel.sym_name.data}", "a view is joined")
            elif isinstance(op, NestOp) and rewrites.take(op.label, "the nest is simplified"):
                nest = drop_dead_results(op)
                canonicalize_body(nest)
                if forward_copy(nest):
                    remark(ctx, self.name, nest.label, "applied", "it copies its operand")
        # After two nests merge, their readers may be equal.
        while not rewrites.is_spent and merge_equal_nests(kernel):
            rewrites.count(f"@{kernel.sym_name.data}", "equal nests are merged")
            for nest in kernel.nests:
                merge_equal_ops(nest.block)
        erase_dead_nests(kernel)
