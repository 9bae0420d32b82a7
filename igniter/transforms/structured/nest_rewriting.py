"""Shared helpers of the passes over structured kernels, for rewriting the bodies of nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from igniter.dialects.loop import AccessOp, Axis, Clause, ComputeOp, IndexOp, KernelOp, NestOp, ReadOp, ViewOp, YieldOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX, AxesAttr
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Atom, Call, Expr
from igniter.dialects.sym.lowering import Lowering
from igniter.dialects.sym.ranges import Ranges, simplify

Insert = Callable[[Operation], None]

TRAPPING = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
"""Ops that stop the program for some operands. They must not run where the nest would not have run them."""


def set_subscripts(op: AccessOp, subscripts: Iterable[Expr], guards: Iterable[Expr] | None = None) -> None:
    """Replaces the subscripts of an access, and its guards if they are given."""
    op.subscripts_attr = DimsAttr(subscripts)
    if guards is not None:
        kept = tuple(dict.fromkeys(guards))
        op.guards_attr = DimsAttr(kept) if kept else None


def map_exprs(nest: NestOp, fn: Callable[[Expr], Expr]) -> None:
    """Applies `fn` to every expression in the body of a nest: subscripts, guards, indices and clauses."""
    for op in nest.block.ops:
        if isinstance(op, AccessOp):
            subscripts, guards = [fn(e) for e in op.subscripts], [fn(e) for e in op.guards]
            if not _same(subscripts, op.subscripts) or not _same(guards, op.guards):
                set_subscripts(op, subscripts, guards)
        elif isinstance(op, IndexOp):
            value = fn(op.value)
            if value is not op.value:
                op.value_attr = DimsAttr([value])
        elif isinstance(op, YieldOp):
            clauses = [c.at(fn(e) for e in c.subscripts) for c in op.clauses]
            if not all(_same(a.subscripts, b.subscripts) for a, b in zip(clauses, op.clauses, strict=True)):
                set_clauses(op, clauses)


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    # By identity: an attribute is only rebuilt if one of its expressions changed.
    return all(x is y for x, y in zip(a, b, strict=True))


def set_clauses(op: YieldOp, clauses: Sequence[Clause]) -> None:
    """Replaces the subscripts and combiners of a yield; the values stay."""
    fresh = YieldOp(clauses)
    op.combiners, op.subscripts, op.others = fresh.combiners, fresh.subscripts, fresh.others
    # Its operands are uses of the values.
    fresh.erase()


def substitute_axes(nest: NestOp, axes: Sequence[Axis], values: Mapping[str, Expr]) -> None:
    """Gives a nest another domain. `values` gives each old axis as an expression of the new ones."""
    nest.axes_attr = AxesAttr(axes)
    ranges = nest.axes_attr.ranges
    map_exprs(nest, lambda e: simplify(e.substitute(values), ranges))


def indirect(index: int) -> str:
    """Returns the name of an access's indirect operand in its expressions."""
    return f"{INDIRECT_PREFIX}{index}"


def prune_indices(op: ReadOp) -> None:
    """Drops the indirect operands that no expression of the read uses, and merges equal ones."""
    used = frozenset[str]().union(*(e.symbols for e in (*op.subscripts, *op.guards)))
    kept: list[SSAValue] = []
    names: dict[str, Expr] = {}
    for k, value in enumerate(op.indices):
        if indirect(k) in used:
            if value not in kept:
                kept.append(value)
            names[indirect(k)] = Expr.of(indirect(kept.index(value)))
    if len(kept) == len(op.indices):
        return
    subscripts = [e.substitute(names) for e in op.subscripts]
    guards = [e.substitute(names) for e in op.guards]
    replace_op(op, ReadOp(op.source, subscripts, kept, guards, op.otherwise))


def replace_op(old: Operation, new: Operation) -> None:
    """Replaces `old` by `new`."""
    assert old.parent is not None
    old.parent.insert_op_before(new, old)
    old.results[0].replace_all_uses_with(new.results[0])
    old.detach()
    old.erase()


def erase_dead_ops(block: Block) -> None:
    """Erases the unused ops of a body."""
    for op in reversed(list(block.ops)):
        if not isinstance(op, YieldOp) and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()


def merge_equal_ops(block: Block) -> None:
    """Merges equal ops with equal operands; every op of a body is pure."""
    known: dict[tuple[object, ...], Operation] = {}
    for op in list(block.ops):
        if isinstance(op, YieldOp):
            continue
        key = (
            op.name,
            tuple(id(o) for o in op.operands),
            tuple(sorted(op.properties.items())),
            tuple(sorted(op.attributes.items())),
            op.result_types,
        )
        same = known.setdefault(key, op)
        if same is not op:
            for old, new in zip(op.results, same.results, strict=True):
                old.replace_all_uses_with(new)
            op.detach()
            op.erase()


def constant_int(value: SSAValue) -> int | None:
    """Returns the value of an integer constant; None for other values."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def zero(element: Attribute) -> arith.ConstantOp:
    """Returns the value of a guarded read without `else` where a guard fails."""
    if isa(element, IntegerType):
        return arith.ConstantOp(IntegerAttr(0, element))
    assert isa(element, AnyFloat)
    return arith.ConstantOp(FloatAttr(0.0, element))


def materialize(e: Expr, indices: Sequence[SSAValue], insert: Insert) -> SSAValue:
    """Returns `e` as an i64 value of a body, with `indices` for the symbols `_k` in it."""
    return _Arith({indirect(k): v for k, v in enumerate(indices)}, insert).lower(e)


class _Arith(Lowering[SSAValue]):
    """Expressions as `arith` ops for the parts with indirect operands; `loop.index` computes all others."""

    coefficient_first = False

    def __init__(self, names: Mapping[str, SSAValue], insert: Insert):
        self._names = names
        self._insert = insert

    def lower(self, e: Expr) -> SSAValue:
        direct = Expr({m: c for m, c in e.terms if self._is_direct(Expr({m: c}))})
        rest = e - direct
        if not rest.terms:
            return self._emit(IndexOp(direct))
        if not direct.terms:
            return super().lower(rest)
        start = self._emit(IndexOp(direct))
        return reduce(lambda total, term: self.add(total, self.term(*term)), rest.terms, start)

    def atom(self, atom: Atom) -> SSAValue:
        alone = Expr({(atom,): 1})
        return self._emit(IndexOp(alone)) if self._is_direct(alone) else super().atom(atom)

    def _is_direct(self, e: Expr) -> bool:
        return e.symbols.isdisjoint(self._names)

    def _emit(self, op: Operation) -> SSAValue:
        self._insert(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        return self._emit(arith.ConstantOp(IntegerAttr(value, i64)))

    def symbol(self, name: str) -> SSAValue:
        return self._names[name]

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._emit(arith.AddiOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._emit(arith.MuliOp(a, b))

    def floordiv(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        return self._emit(arith.FloorDivSIOp(a, b))

    def mod(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        return self._emit(arith.SubiOp(a, self.mul(self.floordiv(a, b, call), b)))

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._emit(arith.MinSIOp(a, b))

    def maximum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._emit(arith.MaxSIOp(a, b))


def condition(guards: Sequence[Expr], indices: Sequence[SSAValue], insert: Insert) -> SSAValue:
    """Returns an i1 that is true if every guard is >= 0."""
    nothing = arith.ConstantOp(IntegerAttr(0, i64))
    insert(nothing)
    result: SSAValue | None = None
    for guard in guards:
        holds = arith.CmpiOp(materialize(guard, indices, insert), nothing.result, "sge")
        insert(holds)
        if result is None:
            result = holds.result
        else:
            both = arith.AndIOp(result, holds.result)
            insert(both)
            result = both.result
    assert result is not None
    return result


def simplify_exprs(nest: NestOp) -> None:
    """Simplifies every expression of a nest under the ranges of its axes."""
    ranges: Ranges = nest.axes_attr.ranges
    map_exprs(nest, lambda e: simplify(e, ranges))


def readers_of(value: SSAValue) -> tuple[list[tuple[ReadOp, tuple[ViewOp, ...]]], bool]:
    """Returns the reads of a tensor, each with its views, and True if the tensor leaves the kernel."""
    reads: list[tuple[ReadOp, tuple[ViewOp, ...]]] = []
    escapes = False
    pending: list[tuple[SSAValue, tuple[ViewOp, ...]]] = [(value, ())]
    while pending:
        tensor, through = pending.pop()
        for use in tensor.uses:
            user = use.operation
            if isinstance(user, ViewOp):
                pending.append((user.result, (*through, user)))
            elif isinstance(user, ReadOp):
                reads.append((user, through))
            else:
                escapes = True
    return reads, escapes


def nest_of(op: Operation) -> NestOp:
    """Returns the nest whose body contains `op`."""
    parent = op.parent_op()
    assert isinstance(parent, NestOp)
    return parent


def erase_dead_nests(kernel: KernelOp) -> list[str]:
    """Erases the nests and views with unused results. Returns the labels of the nests."""
    labels: list[str] = []
    for op in reversed(list(kernel.block.ops)):
        if isinstance(op, (ComputeOp, ViewOp)) and all(r.first_use is None for r in op.results):
            if isinstance(op, ComputeOp):
                labels.append(op.label)
            op.detach()
            op.erase()
    return labels[::-1]


def erase_if_dead(op: NestOp | ViewOp) -> None:
    """Erases a nest or view used only by dead views, and these views."""
    for result in op.results:
        for use in list(result.uses):
            if isinstance(use.operation, ViewOp):
                erase_if_dead(use.operation)
    if all(r.first_use is None for r in op.results):
        op.detach()
        op.erase()


def fresh_axis(nest: NestOp, wanted: str) -> str:
    """Returns a name for a new axis: `wanted`, with a number if it is taken."""
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    taken = {a.name for a in nest.axes} | set(kernel.symbol_names)
    return next(n for n in (wanted, *(f"{wanted}{k}" for k in range(len(taken) + 1))) if n not in taken)


def fresh_label(nest: NestOp, wanted: str) -> str:
    """Returns `wanted`, with a number if another nest of the kernel has that label."""
    kernel = nest.parent_op()
    assert isinstance(kernel, KernelOp)
    taken = {other.label for other in kernel.computations}
    label, k = wanted, 1
    while label in taken:
        label, k = f"{wanted}_{k}", k + 1
    return label
